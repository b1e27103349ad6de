"""Values that are steady or withheld, and the sentences about them."""

import json
import math
from typing import Any

import pytest
import tcpcast
from tcpcast.cli import main
from tcpcast.engines.packet.reliability import MAX_STEADY_WIDTH, _steady_interval
from tcpcast.scenario import Scenario
from tcpcast.statistics import estimate_mean

Printed = pytest.CaptureFixture[str]


@pytest.mark.parametrize("differing", [1, 2, 9])
@pytest.mark.parametrize("share", [1e-3, 0.5])
def test_a_value_that_few_batches_change_a_little_is_steady(differing: int, share: float) -> None:
    """An interval contains the value of up to the Poisson limit of differing batches."""
    values = [1.0] * (32 - differing) + [1.0 - share] * differing
    estimate = estimate_mean(values)
    assert estimate is not None
    assert estimate.differing_units == differing
    ends = _steady_interval(estimate)
    if share == 0.5:
        assert ends is None
        return
    assert ends is not None
    low, high = ends
    upper = {1: 5.572, 2: 7.225, 9: 17.08}[differing]
    assert low <= 1 - upper / 32 * share
    assert high >= 1 - {1: 0.0253, 2: 0.2422, 9: 4.115}[differing] / 32 * share
    assert high - low < 2 * MAX_STEADY_WIDTH


def test_a_busy_link_has_an_interval_of_its_utilisation() -> None:
    scenario = Scenario.from_dict(
        {
            "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "50pkt"}},
            "traffic": {"kind": "bulk", "flows": 2},
            "cross": [{"model": "poisson", "mean": "60%"}],
            "run": {"duration": "60s", "warmup": "10s"},
        }
    )
    (answer,) = tcpcast.run(scenario, ["packet"])
    metric = answer.metrics["utilisation"]
    assert metric.low is not None
    assert metric.high is not None
    assert 0.99 < metric.low <= metric.value <= metric.high <= 1.0
    assert metric.interval_warning is None


def test_users_of_an_overloaded_link_have_a_sentence_with_their_total(capsys: Printed) -> None:
    changes = [
        "traffic.sources=1370",
        "run.duration=30s",
        "run.warmup=10s",
        "traffic.size.mean=1MB",
    ]
    words = ["run", "office-50mbit", "--engine", "packet", *(f"--set={each}" for each in changes)]
    main([*words, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    total = document["answers"][0]["metrics"]["goodput_bps"]["value"]
    verdict = document["verdict"]
    assert verdict.startswith("The 1,370 users together get ")
    assert math.isclose(float(verdict.split()[5]) * 1e6, total, rel_tol=0.01)
    assert "the rate while a file is loading is unknown (unfinished transfers)" in verdict


@pytest.mark.parametrize(
    ("options", "suffice"),
    [(["--loss", "1%"], "70.2 KB"), (["--loss", "0.00001%"], None), ([], None)],
)
def test_socket_buffers_are_for_the_rate_that_the_loss_allows(
    options: list[str], suffice: str | None, capsys: Printed
) -> None:
    """1.4 Mbit/s over 100 ms are 17.5 kB; the link of 135 Mbit/s would need 4.66 MB."""
    assert main(["predict", "--rtt", "100ms", "--rate", "135mbit", *options]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert ("Linux needs socket buffers of 4.66 MB" in text) == (suffice is None)
    if suffice is not None:
        assert f"not the socket buffers: {suffice} suffice" in text
