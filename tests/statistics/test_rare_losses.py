"""Bursty losses: data for their rate, and bounds from a run without losses."""

from typing import Any

import pytest
import tcpcast

ARRIVALS: dict[str, Any] = {
    "traffic": {
        "kind": "transfers",
        "size": {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"},
        "arrivals": {"distribution": "poisson", "rate": "60/s"},
    },
    "run": {"duration": "300s"},
}


def web(rate: int, seed: int, **changes: Any) -> tcpcast.Answer:
    changes_made = ARRIVALS | {"traffic.arrivals.rate": f"{rate}/s", "run.seed": seed} | changes
    (answer,) = tcpcast.run(tcpcast.load("web-10mbit", changes=changes_made), ["packet"])
    return answer


def test_few_loss_bursts_give_no_interval() -> None:
    changes_made = {"run.duration": "60s"}
    estimates = [web(60, seed, **changes_made).metrics["loss_ratio"] for seed in range(1000, 1012)]
    for result in estimates:
        assert result.low is None
        assert result.interval_warning is not None
        reason = "the queue dropped no packet" if result.value == 0.0 else "they occurred in"
        assert result.interval_warning.startswith(f"too few losses: {reason}")
    assert {result.value == 0.0 for result in estimates} == {True, False}


def test_few_timeouts_are_named_timeouts() -> None:
    changes = {"tcp.stack": "linux-cubic", "run.duration": "25s", "run.warmup": "10s"}
    (answer,) = tcpcast.run(tcpcast.load("web-10mbit", changes=changes), ["packet"])
    assert answer.metrics["loss_ratio"].missing_interval is None
    assert answer.metrics["to_indications"].missing_interval == "too few timeouts"


def test_short_queue_makes_losses_very_unlikely() -> None:
    answer = web(20, 1)
    result = answer.metrics["loss_ratio"]
    assert answer["queue_max_pkts"] < 75
    assert result.low == result.value == 0.0
    assert result.high is not None
    assert 0.0 < result.high < 1e-4


def test_per_flow_buffers_are_not_compared_with_the_whole_queue() -> None:
    queue = {"kind": "fq", "buffers": "individual"}
    answer = web(60, 1, **{"network.bottleneck.queue": queue})
    texts = " ".join(answer.warnings)
    assert "packets in total over all flows" in texts
    assert " of 150 packets" not in texts


def test_slow_files_need_more_busy_periods() -> None:
    texts = [line for line in web(60, 1).warnings if "of files reach" in line]
    assert any("are needed; run longer" in line and "that 95 %" in line for line in texts)
    assert not any("50 %" in line and "are needed" in line for line in texts)


@pytest.mark.parametrize(("duration", "short"), [("30s", True), ("80s", False)])
def test_bulk_flows_need_many_losses(duration: str, short: bool) -> None:
    changes = {"run.duration": duration, "run.replications": 1}
    (answer,) = tcpcast.run(tcpcast.load("lossy-path", changes=changes), ["packet"])
    warning = answer.metrics["goodput_bps"].interval_warning or ""
    assert warning.startswith("the run is too short: ") == short
