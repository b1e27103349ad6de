"""Process settings for all tests."""

import gc
import importlib
import os
import signal
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

# A background job starts with Ctrl-C ignored, and commands that tests start would inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tables use the terminal width from the environment if it is set.
os.environ.pop("COLUMNS", None)

# No deadline for examples, which may be slow on a busy machine. Each run draws other examples: few
# by default, many with `make check-long`.
settings.register_profile("untimed", deadline=None, max_examples=20)
settings.register_profile("many", deadline=None, max_examples=1000)
settings.load_profile("untimed")


def pytest_xdist_auto_num_workers() -> int:
    """Return more workers than processors: tests of links, pages and signals mostly wait."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable garbage collection during collection, which would take a third longer.

    The collected tests and modules are frozen: later garbage collections would examine all of them.
    They are as rare as in ``tcpcast.__main__``, which takes 6 % less processor time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(100_000, 10, 10)


MAX_PRESSURE_SHARE = 0.05
"""A machine is busy if processes wait for a processor for a larger share of the time."""


def _seconds_of_cpu_pressure() -> float | None:
    """Return the time in which some process waited for a processor, or None if unknown."""
    try:
        words = Path("/proc/pressure/cpu").read_text(encoding="ascii").split()
    except OSError:
        return None
    return next(float(word[6:]) * 1e-6 for word in words if word.startswith("total="))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Skip a test of measured times that fails while the machine was busy."""
    if pyfuncitem.get_closest_marker("timed") is None:
        return (yield)
    begun, before = time.monotonic(), _seconds_of_cpu_pressure()
    try:
        return (yield)
    except AssertionError as error:
        after, took = _seconds_of_cpu_pressure(), time.monotonic() - begun
        if before is None or after is None:
            busy = os.getloadavg()[0] >= (os.cpu_count() or 1)
        else:
            busy = after - before > MAX_PRESSURE_SHARE * took
        if busy:
            pytest.skip(f"this machine is too busy to measure times: {error}")
        raise


@pytest.fixture(scope="module")
def punctual_hosts() -> Generator[None]:
    """Remove the noise that breaks ties between classes, which reference simulators lack."""
    configuration = importlib.import_module("tcpcast.engines.packet.configuration")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configuration, "TIE_NOISE_NS", 0)
        yield


@pytest.fixture(autouse=True)
def without_registered_controls() -> Generator[None]:
    """Remove congestion controls that a test registers; other tests would list them as stacks."""
    yield
    control = sys.modules.get("tcpcast.control")
    if control is None or not control._REGISTERED:
        return
    from tcpcast.scenario import modern_stacks, modern_tcp, tcp  # noqa: PLC0415 - imports pydantic

    for name in [stack.control for stack in control._REGISTERED]:
        for known in (modern_stacks.MODERN_STACKS, modern_tcp.MODERN_PRESETS, tcp.STACKS):
            known.pop(name, None)
        modern_tcp.RATE_BASED.discard(name)
    control._REGISTERED.clear()
