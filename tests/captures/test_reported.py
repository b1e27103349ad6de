"""Reported cases: each input of ``reported`` gets the right values, and the sentence says so.

The inputs were rebuilt from public reports with other addresses and without payload (CC0).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tcpcast.captures import Capture, trace
from tcpcast.captures.capture_tables import restrict_to_directions
from tcpcast.cli import main

FOLDER = Path(__file__).parent / "reported"


class Case(NamedTuple):
    """An input, its right values, and parts of the text of ``tcpcast trace``.

    ``values`` returns a value of the capture and the right one. Spaces and line breaks of the text
    are equal.
    """

    name: str
    values: Callable[[Capture], tuple[Any, Any]]
    says: tuple[str, ...]
    omits: tuple[str, ...] = ()


def column(name: str, capture: Capture) -> Any:
    """Return a value of the direction with the most bytes."""
    return capture.connections[name][capture.connections["bytes"].argmax()].item()


def failed(capture: Capture, *names: str) -> list[tuple[Any, ...]]:
    """Return the rows of the table ``failed``."""
    return list(zip(*(capture.failed[name].tolist() for name in names), strict=True))


CASES = (
    Case(
        "rst-after-fin-loses-upload",
        lambda capture: (
            (failed(capture, "failure", "by", "lost_bytes"), capture.rest["reset_without_loss"]),
            ([("reset", "server", 2800)], 0),
        ),
        ("before it had received all data", "2,800 B from the client were never acknowledged"),
        ("without loss",),
    ),
    Case(
        "syn-meets-time-wait",
        lambda capture: (
            (
                failed(capture, "failure", "waited_s"),
                capture.connection_count,
                sorted(capture.connections["window_max_bytes"].tolist()),
                set(capture.connections["syn_captured"].tolist()),
            ),
            ([("old_connection", 1.0)], 2, [64256, 65160], {True}),
        ),
        (
            "late, because an old connection between the same ports still existed",
            "TIME_WAIT",
            "half-open); use other source ports",
        ),
        ("failed", "port scanner", "raise the receiver window"),
    ),
    Case(
        "zero-window-probes-midstream",
        lambda capture: (
            (
                column("limited_by", capture),
                round(column("window_closed_s", capture), 1),
                column("zero_window_probes", capture),
                capture.rest["keep_alives"],
            ),
            ("receiver_window", 25.2, 6, 0),
        ),
        (
            "closed once, for 25.2 s; the capture contains 6 window probes",
            "receiving application did not read",
            "kept its receive window closed for 25.2 s",
        ),
        ("keepalive", "Limit unknown", "was silent"),
    ),
    Case(
        "receiver-dies-after-window-shrinks",
        lambda capture: (
            (
                failed(capture, "failure", "by", "tries", "window_max_bytes", "lost_bytes"),
                column("cause", capture),
                round(column("receiver_silence_s", capture), 1),
            ),
            ([("silent", "server", 3, 8760, 1092)], "no_response", 15.9),
        ),
        ("stopped responding 15.9 s before", "window had shrunk from 8,760", "check the server"),
        ("raise the receiver window",),
    ),
    Case(
        "gap-shown-by-pure-ack",
        lambda capture: (
            (
                column("retransmissions", capture),
                column("timeouts", capture),
                column("limited_by", capture),
                round(column("t0_s", capture), 1),
            ),
            (1, 1, "timeout", 17.8),
        ),
        ("takes 17.8 s; the main cause is retransmission of lost packets", "T0 = 17.8 s"),
        (
            "18 B to 192.0.2.10:40000 at 5.39 bit/s, limited by the application",
            "the server's processing time",
        ),
    ),
    Case(
        "idle-session-tap-in-the-middle",
        lambda capture: (
            (
                column("limited_by", capture),
                column("share_application", capture) > 0.9,
                column("timeouts", capture),
            ),
            ("application", True, 1),
        ),
        ("limited by the application", "1 timeout"),
        ("capture at the sender", "does not show"),
    ),
    Case(
        "one-packet-is-not-slow-start",
        lambda capture: (
            (column("limited_by", capture), column("share_slow_start", capture)),
            ("unknown", 0.0),
        ),
        ("network 80.1 ms, one round trip",),
        ("slow start", "initial", "use one connection"),
    ),
    Case(
        "capture-ends-at-syn",
        lambda capture: (failed(capture, "failure"), []),
        ("limited by application pacing",),
        ("failed", "SYN"),
    ),
    Case(
        "keepalive-one-byte",
        lambda capture: (
            (column("bytes", capture), column("retransmissions", capture)),
            (60 * 1448, 0),
        ),
        ("10 keepalive probes, all answered", "988 kbit/s"),
        ("1.03 kbit/s",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reported_case_has_right_answer(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    path = FOLDER / f"{case.name}.pcap.gz"
    found, right = case.values(trace(path))
    assert found == right
    main(["trace", str(path)])
    text = " ".join(capsys.readouterr().out.split())
    assert not [part for part in case.says if part not in text], text
    assert not [part for part in case.omits if part in text], text


def test_selected_connection_keeps_its_failure() -> None:
    """Regression: the counters of failures were empty, so the verdict named another cause."""
    capture = trace(FOLDER / "rst-after-fin-loses-upload.pcap.gz")
    one = restrict_to_directions(capture, np.flatnonzero(capture.connections["bytes"] > 0))
    assert one.verdict() == capture.verdict()
    assert "failed" in one.verdict()
