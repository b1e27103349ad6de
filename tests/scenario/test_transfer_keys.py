"""Single transfers in a scenario: sizes, counts, arrivals, and incompatible keys."""

from typing import Any

import jsonschema
import pytest
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Scenario, Transfers, load
from tcpcast.scenario.byte_sizes import write_size
from tcpcast.scenario.distributions import Exponential
from test_schema import SCHEMA

VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
ARRIVALS = {"distribution": "poisson", "rate": "20/s"}


def tables(**traffic: Any) -> dict[str, Any]:
    return {
        "network": {"rtt": "50ms", "packet": "540B", "bottleneck": {"rate": "10mbit"}},
        "traffic": {"kind": "transfers", **traffic},
        "tcp": {"stack": "rfc-newreno"},
        "run": {"transfers": 10} if "arrivals" in traffic else {},
    }


def read(**traffic: Any) -> Transfers:
    given = tables(**traffic)
    VALIDATOR.validate(given)
    scenario = Scenario.from_dict(given)
    again = Scenario.from_dict(scenario.resolved())
    assert again == scenario
    VALIDATOR.validate(scenario.resolved())
    assert isinstance(scenario.traffic, Transfers)
    return scenario.traffic


def refused(given: dict[str, Any]) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(given)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("size", "sizes"),
    [
        ("8pkt", [8]),
        (8, [8]),
        ("500B", [1]),
        ("501B", [2]),
        ("100KB", [200]),
        (["30pkt", "1pkt", "1KiB"], [30, 1, 3]),
    ],
)
def test_sizes_are_whole_packets(size: Any, sizes: list[int]) -> None:
    assert read(size=size, count=5).sizes == sizes
    assert read(size=size, arrivals=ARRIVALS).sizes == sizes


def test_sizes_in_bytes_are_written_back_in_bytes() -> None:
    assert [write_size(size) for size in read(size=["1001B", "7pkt"]).sizes or []] == [
        "1001B",
        "7pkt",
    ]
    for mean, in_bytes in (("6KB", True), ("12pkt", False)):
        size = {"distribution": "exponential", "mean": mean}
        distribution = read(size=size, arrivals=ARRIVALS).size
        assert isinstance(distribution, Exponential)
        assert (distribution.mean, distribution.is_in_bytes) == (12.0, in_bytes)
        assert read(size=distribution.model_dump(), arrivals=ARRIVALS).size == distribution


def test_packaged_short_transfers_need_no_run() -> None:
    scenario = load("short-transfers")
    alone = scenario.isolated_transfers
    assert alone is not None
    assert (alone.count, alone.total, alone.sizes) == (50_000, 300_000, [1, 2, 4, 8, 16, 30])
    assert scenario.run.warmup_s == 0
    assert scenario.run.duration_s is scenario.run.transfers is None
    assert scenario.senders == 1
    assert scenario.resolved()["run"]["warmup"] == "0s"


def test_default_count_is_1000_without_arrivals() -> None:
    assert read(size="3pkt").count == 1000
    open_traffic = read(size="3pkt", arrivals=ARRIVALS)
    assert (open_traffic.count, open_traffic.sender_count, open_traffic.isolated) == (
        None,
        0,
        False,
    )
    assert open_traffic.arrivals is not None
    assert open_traffic.arrivals.rate == 20.0


@pytest.mark.parametrize(("rate", "per_second"), [("20/s", 20.0), ("3/min", 0.05), ("0.5 /s", 0.5)])
def test_arrival_rate_is_converted_to_per_second(rate: str, per_second: float) -> None:
    traffic = read(size="3pkt", arrivals={"distribution": "poisson", "rate": rate})
    assert traffic.arrivals is not None
    assert traffic.arrivals.rate == pytest.approx(per_second)


def test_size_distribution_requires_arrivals() -> None:
    distribution = {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"}
    traffic = read(size=distribution, arrivals=ARRIVALS)
    assert traffic.sizes is None
    assert traffic.mean_size_pkts == 12.0


@pytest.mark.parametrize(
    ("traffic", "line"),
    [
        (
            {"size": [f"{n}pkt" for n in range(1, 100)], "count": 10**8},
            "traffic.count: 9900000000 transfers in total; use at most 1000000000",
        ),
        (
            {"size": "1pkt", "count": 3, "arrivals": ARRIVALS},
            "traffic.count: requires isolated transfers; with arrivals, use run.trans",
        ),
        (
            {"size": "1pkt", "arrivals": {"distribution": "poisson", "rate": "20ms"}},
            'traffic.arrivals.rate: "20ms" is not a frequency; use "20/s"',
        ),
    ],
)
def test_each_error_gives_one_line(traffic: dict[str, Any], line: str) -> None:
    (only,) = refused(tables(**traffic))
    assert only.startswith(line)


def test_arrivals_require_run_length_and_accept_warmup() -> None:
    given = tables(size="3pkt", arrivals=ARRIVALS)
    assert refused(given | {"run": {}}) == [
        'run.duration: missing; add duration = "300s", or transfers = 200000'
    ]
    scenario = Scenario.from_dict(given | {"run": {"duration": "60s", "warmup": "5s"}})
    assert scenario.run.warmup_s == 5.0
    assert scenario.isolated_transfers is None


def test_precision_applies_to_completion_time() -> None:
    scenario = Scenario.from_dict(tables(size="3pkt") | {"run": {"precision": "1%"}})
    assert scenario.run.precision == {"completion_time_s": 0.01}


def test_class_transfers_need_arrivals() -> None:
    alone = tables(size="3pkt") | {"class": [{"name": "a"}], "run": {"duration": "9s"}}
    (line,) = refused(alone)
    assert line.startswith(
        "class.a.traffic.arrivals: isolated transfers cannot share the path with another class"
    )
    given = tables(size="3pkt", arrivals=ARRIVALS)
    scenario = Scenario.from_dict(given | {"class": [{"name": "a"}, {"name": "b", "rtt": "90ms"}]})
    assert [p.count for p in scenario.populations] == [0, 0]
    (line,) = refused(given | {"class": [{"name": "a", "sources": 3}]})
    assert line == (
        "class.a.sources: sources do not apply to transfers traffic; use traffic.arrivals"
    )


def test_only_isolated_transfers_can_be_traced() -> None:
    alone = Scenario.from_dict(tables(size="3pkt") | {"probes": {"flows": [0]}})
    assert alone.probes.flows == [0]
    (line,) = refused(tables(size="3pkt") | {"probes": {"flows": [1]}})
    assert line == "probes.flows.0: there is no flow 1; use 0"
    (line,) = refused(tables(size="3pkt", arrivals=ARRIVALS) | {"probes": {"flows": [0]}})
    assert line == (
        "probes.flows.0: flow 0 cannot be traced, because each transfer is a new flow; remove this "
        "number"
    )


def test_overload_by_arrivals_has_a_warning() -> None:
    # 540 B at 10 Mbit/s: 2315 per second.
    calm = Scenario.from_dict(
        tables(size="10pkt", arrivals={"distribution": "poisson", "rate": "200/s"})
    )
    assert calm.arriving_load == pytest.approx(0.864)
    assert calm.warnings() == []
    flooded = calm.with_changes({"traffic.arrivals.rate": "250/s"})
    (warning,) = flooded.warnings()
    assert warning.startswith("the offered load of arriving transfers is 108 % of the bottleneck")
    assert Scenario.from_dict(tables(size="3pkt")).arriving_load is None
