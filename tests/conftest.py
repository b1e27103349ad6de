"""What all tests need of the process that they run in."""

from __future__ import annotations

import gc
import importlib
import os
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Generator

# A job in the background begins with Ctrl-C ignored, and so would every command that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tables are laid out for a terminal of the width that the environment tells of, if it does.
os.environ.pop("COLUMNS", None)

# An example that takes long on a busy machine is no fault. Each run draws other examples: few of
# them in each, and many where `make check-long` asks for them.
settings.register_profile("untimed", deadline=None, max_examples=40)
settings.register_profile("many", deadline=None, max_examples=1000)
settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among what is collected: it all stays, and that takes a third longer."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(scope="module")
def punctual_hosts() -> Generator[None]:
    """Remove the noise that breaks ties between classes: reference simulators have none."""
    configuration = importlib.import_module("tcpcast.engines.packet.configuration")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configuration, "TIE_NOISE_NS", 0)
        yield
