"""Plugin of pytest: fixtures that test a program over emulated links, and a congestion control.

.. code-block:: python

    def test_upload_keeps_up_with_cubic(tcpcast_link):
        tcpcast_link(
            "./client --upload 10MB $TCPCAST_PEER",
            server="./server",
            rtt="60ms",
            rate="20mbit",
            vary={"network.bottleneck.loss": ["0%", "1%"]},
            expect=["rate >= 80% of linux-cubic"],
        )

    def test_control_is_acceptable(tcpcast_accept):
        tcpcast_accept(MyControl, against="linux-bbr")
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tcpcast.control import CongestionControl


@pytest.fixture
def tcpcast_link() -> Callable[..., None]:
    """Return :func:`run_over_links`."""
    return run_over_links


def run_over_links(
    program: str,
    *,
    server: str | None = None,
    expect: Sequence[str] = (),
    vary: Mapping[str, Sequence[str] | str] | None = None,
    **options: str,
) -> None:
    """Run a program with ``tcpcast link`` over each path, and fail the test if a bound is missed.

    Parameters
    ----------
    program
        Shell command at the near end.
    server
        Shell command at the far end.
    expect
        Bounds, as in ``tcpcast link --expect``.
    vary
        Values, or a range as text, of keys of the path; the program runs for each combination.
    options
        Options of ``tcpcast link``, with ``_`` instead of ``-``, for example ``rtt="60ms"``. The
        value of an option without a value is ``""``.

    Notes
    -----
    The test is skipped on machines that cannot create the link, or that are too busy for it.
    """
    command = [sys.executable, "-m", "tcpcast", "link"]
    for name, value in options.items():
        command += [f"--{name.replace('_', '-')}", *([value] if value else [])]
    if server is not None:
        command += ["--server-command", server]
    for key, values in (vary or {}).items():
        command += ["--vary", f"{key}={values if isinstance(values, str) else ','.join(values)}"]
    for bound in expect:
        command += ["--expect", bound]
    done = subprocess.run([*command, "--", program], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == NOT_POSSIBLE:
        pytest.skip(done.stderr)
    if done.returncode:
        pytest.fail(done.stderr, pytrace=False)


@pytest.fixture
def tcpcast_accept() -> Callable[..., None]:
    """Return :func:`accept_control`."""
    return accept_control


def accept_control(
    control: str | type[CongestionControl], *, against: str = "linux-cubic", seed: int = 1
) -> None:
    """Run the battery of ``tcpcast accept``, and fail the test if a value leaves its range.

    Parameters
    ----------
    control
        A subclass of :class:`tcpcast.CongestionControl`, or the name of a modern stack.
    against
        Stack of the other flows.
    seed
        Seed of all simulations.
    """
    from tcpcast.comparison.acceptance import accept  # noqa: PLC0415 - imports pydantic
    from tcpcast.control import register_control  # noqa: PLC0415

    name = control if isinstance(control, str) else "control-under-test"
    if not isinstance(control, str):
        register_control(name, control)
    outcomes = accept(name, against=against, seed=seed)
    left = [
        f"{each.cell.section}, {each.cell.name}: {each.cell.quantity} is {each.value:.3g}, not "
        f"{each.cell.low:.3g} to {each.cell.high:.3g}"
        for each in outcomes
        if not each.passed
    ]
    if left:
        pytest.fail("\n".join(left), pytrace=False)


NOT_POSSIBLE = 3
"""Exit code of a link that could not be created, or whose counters are not reliable."""
