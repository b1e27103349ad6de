"""The answer states features that the model lacks, with the affected metrics."""

from typing import Any

import pytest
import tcpcast
from tcpcast.answer import Note
from tcpcast.scenario import Scenario

BASE: dict[str, Any] = {
    "name": "path",
    "network": {"rtt": "60ms", "bottleneck": {"rate": "20mbit", "buffer": "1bdp"}},
    "run": {"duration": "20s", "warmup": "5s"},
}
QUEUE = {"rate": "20mbit", "buffer": "1bdp", "queue": "codel"}


def notes(stack: str, network: dict[str, Any], **tcp: Any) -> list[Note]:
    table = BASE | {
        "traffic": {"kind": "bulk", "flows": 2},
        "tcp": {"stack": stack, **tcp},
        "network": BASE["network"] | network,
    }
    (answer,) = tcpcast.run(Scenario.from_dict(table), ["packet"])
    return [note for note in answer.notes if note.kind in ("model", "remark")]


@pytest.mark.parametrize(
    ("stack", "tcp", "text", "kind"),
    [
        ("dctcp", {}, "behaves like Reno", "model"),
        ("linux-cubic", {"ecn": True}, "has no effect", "remark"),
    ],
)
def test_sender_that_requires_marks_has_a_note_if_no_queue_marks(
    stack: str, tcp: dict[str, Any], text: str, kind: str
) -> None:
    (note,) = notes(stack, {}, **tcp)
    assert text in str(note)
    assert (note.kind, note.metrics) == (kind, ())
    assert notes(stack, {"bottleneck": QUEUE}, **tcp) == []


def test_queue_that_could_mark_but_drops_is_named() -> None:
    red = {"kind": "red", "ecn": False}
    (note,) = notes("dctcp", {"bottleneck": QUEUE | {"queue": red}})
    assert "no queue on the path marks" in str(note)
    short = {"bottleneck": QUEUE | {"buffer": "2pkt"}}  # drops packets before they wait
    (note,) = notes("dctcp", short)
    assert "the queue dropped packets but marked none" in str(note)


def test_bbr3_has_a_note_that_it_was_not_compared() -> None:
    (note,) = notes("bbr3", {})
    assert "never compared with a kernel" in str(note)
    assert notes("linux-bbr", {}) == []


def test_queue_metrics_have_a_note_that_access_links_are_excluded() -> None:
    own = {"rate": "5mbit", "buffer": "50pkt"}
    (note,) = notes("linux-reno", {"ingress": own})
    assert "dropped" in str(note)
    assert {"loss_ratio", "queue_delay_p99_s"} <= set(note.metrics)
    assert notes("linux-reno", {"ingress": {"rate": "1gbit"}}) == []
