"""TCP-Erlang and the simulator: transfers that arrive at random."""

import pytest
import tcpcast
from tcpcast.answer import Answer
from tcpcast.engines import answer
from tcpcast.models.erlang import erlang_slowdown
from tcpcast.process.errors import DomainError
from tcpcast.scenario import Scenario

EXPONENTIAL = {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"}
LONG_TAIL = {"distribution": "ee", "mean": "12pkt", "minimum": "3pkt", "c": 7}


def run(load: float, size: object, engine: str, egress: str = "2mbit") -> Answer:
    tables = {
        "name": "arrivals",
        "network": {
            "rtt": "50ms",
            "ingress": {"rate": "100mbit"},
            "bottleneck": {"rate": "10mbit", "buffer": "1000pkt"},
            "egress": {"rate": egress},
        },
        "traffic": {
            "kind": "transfers",
            "size": size,
            "arrivals": {"distribution": "poisson", "rate": f"{load * 10e6 / (12 * 12_000):.4f}/s"},
        },
        "tcp": {"stack": "engset-newreno", "receiver_window": 12},
        "run": {"transfers": 40_000, "warmup": "20s"},
    }
    (result,) = answer(Scenario.from_dict(tables), [engine])
    return result


@pytest.mark.parametrize("egress", ["2mbit", "100mbit"])
@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
def test_time_is_at_most_15_percent_too_short(load: float, egress: str) -> None:
    own, simulated = (run(load, EXPONENTIAL, each, egress) for each in ("erlang", "packet"))
    time = own.metrics["completion_time_s"]
    assert time.trusted
    assert 0.85 < time.value / simulated["completion_time_s"] < 1.01


@pytest.mark.parametrize(("load", "size"), [(0.8, LONG_TAIL), (0.95, EXPONENTIAL)])
def test_long_tails_and_high_loads_are_not_trusted(load: float, size: object) -> None:
    own = run(load, size, "erlang")
    assert not own.metrics["completion_time_s"].trusted
    assert own.notes


def test_overloaded_link_has_no_finite_time() -> None:
    own = run(1.2, EXPONENTIAL, "erlang")
    assert own["completion_time_s"] == float("inf")
    assert own["connection_rate_bps"] == 0
    assert not own.metrics["completion_time_s"].trusted


def test_on_off_sources_are_not_covered() -> None:
    (own,) = answer(tcpcast.load("web-10mbit"), ["erlang"])
    assert own.not_applicable is not None
    assert "TCP-Erlang requires one class of transfers with traffic.arrivals" in own.not_applicable


def test_slowdown_of_one_server_is_that_of_processor_sharing() -> None:
    assert erlang_slowdown(load=[0.0, 0.5, 0.9], servers=1).tolist() == pytest.approx([1, 2, 10])
    # Below one server the flow's own rate exceeds the link's.
    assert erlang_slowdown(load=0.5, servers=0.5) == pytest.approx(4)
    assert erlang_slowdown(load=0.9, servers=1e4) == pytest.approx(1)


@pytest.mark.parametrize(("load", "servers"), [(1.0, 1), (-0.1, 1), (0.5, 0), (float("nan"), 1)])
def test_arguments_outside_the_domain_are_refused(load: float, servers: float) -> None:
    with pytest.raises(DomainError):
        erlang_slowdown(load=load, servers=servers)
