"""Values of a scenario: round-trip times, buffers, windows, defaults, and reading back."""

import copy
import hashlib
import json
import math
import pickle
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest
from tcpcast.answer import UNITS
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import (
    PRECISION_METRICS,
    PRESETS,
    Bernoulli,
    Bulk,
    GilbertElliott,
    OnOff,
    RestOfRound,
    Scenario,
    TcpRules,
    get_packaged_names,
    load,
)
from tcpcast.scenario.table import Table, get_all_subclasses, get_union_member_names
from tcpcast.scenario.toml import write_toml

BULK: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "100mbit", "buffer": "500pkt"}},
    "traffic": {"kind": "bulk", "flows": 10},
    "tcp": {"stack": "rfc-newreno"},
    "run": {"duration": "300s"},
}


def bulk(changes: dict[str, Any] | None = None) -> Scenario:
    return Scenario.from_dict(BULK).with_changes(changes or {})


def test_web_10mbit_is_converted_to_si_units() -> None:
    s = load("web-10mbit")
    assert s.name == "web-10mbit"
    assert (s.network.rtt_s, s.network.packet_bytes, s.network.ack_bytes) == (0.05, 1500, 40)
    assert s.network.ingress.rate_bps == 100e6
    assert s.network.bottleneck.rate_bps == 10e6
    assert s.network.egress.rate_bps == 2e6
    assert (s.network.bottleneck.buffer.unit, s.network.bottleneck.buffer.amount) == (
        "packets",
        150,
    )
    assert s.network.bottleneck.queue == "droptail"
    assert s.network.bottleneck.loss is None
    assert isinstance(s.traffic, OnOff)
    assert s.traffic.sources == 134
    assert s.traffic.off.parameters() == {
        "distribution": "exponential",
        "minimum": 0.0,
        "scale": 1.0,
    }
    assert s.traffic.size.parameters() == {
        "distribution": "exponential",
        "minimum": 3.0,
        "scale": 9.0,
    }
    assert s.traffic.connection == "new"
    assert s.tcp.stack == "rfc-newreno"
    assert (s.tcp.initial_window, s.tcp.receiver_window, s.tcp.initial_ssthresh) == (2, 44, 44)
    assert (s.run.transfers, s.run.duration_s, s.run.warmup_s) == (200_000, None, 20.0)
    assert (s.run.replications, s.run.seed, s.run.precision, s.run.max_wall_s) == (1, 1, None, None)
    assert s.buffer_pkts == 150


def test_propagation_is_split_evenly_between_directions() -> None:
    (group,) = load("web-10mbit").populations
    data = 12_000 / 100e6 + 12_000 / 10e6 + 12_000 / 2e6
    acks = 320 / 100e6 + 320 / 10e6 + 320 / 2e6
    assert group.name == "all"
    assert group.count == 134
    assert group.rtt_s == 0.05
    assert group.forward_delay_s == group.return_delay_s
    assert group.forward_delay_s + group.return_delay_s + data + acks == pytest.approx(0.05)


def test_special_128k_delays_give_the_rtt_of_the_paper() -> None:
    s = load("special-128k")
    (group,) = s.populations
    assert group.forward_delay_s + group.return_delay_s == 0.3
    # The paper prints 341.83 ms.
    assert math.floor(1e5 * s.rtt_s) / 1e2 == 341.83
    assert group.rtt_s == s.rtt_s == s.network.rtt_s


def test_delays_of_several_links_add_up() -> None:
    s = bulk(
        {
            "network": {
                "ingress": {"delay": "1ms"},
                "bottleneck": {"rate": "12mbit", "delay": "10ms"},
                "egress": {"delay": "4ms"},
            }
        }
    )
    assert s.rtt_s == pytest.approx(2 * 0.015 + 12_320 / 12e6)
    assert s.populations[0].forward_delay_s == pytest.approx(0.015)


def test_rtt_and_delays_must_agree_if_both_are_given() -> None:
    rates = {"rate": "12320kbit", "delay": "10ms"}
    agreeing = {"network": {"rtt": "21ms", "bottleneck": rates}}
    assert bulk(agreeing).populations[0].forward_delay_s == pytest.approx(0.01)
    with pytest.raises(
        ScenarioError, match=r"^network\.rtt: 22ms contradicts .* give .* 21ms; use"
    ):
        bulk({"network": {"rtt": "22ms", "bottleneck": rates}})


def test_rtt_equal_to_transmission_time_is_accepted() -> None:
    s = bulk({"network": {"rtt": "1ms", "bottleneck": {"rate": "12320kbit"}}})
    assert s.populations[0].forward_delay_s == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("typed", "packets"),
    [
        ("1pkt", 1),
        ("150.0 pkt", 150),
        ("200KB", 133),
        ("1500B", 1),
        ("2999B", 1),
        ("3000B", 2),
        ("unlimited", math.inf),
        ("1bdp", 500),
        ("0.5bdp", 250),
        ("0.00001bdp", 1),
        ("1.001 bdp", 501),
    ],
)
def test_buffer_sizes_are_converted_to_packets(typed: str, packets: float) -> None:
    # 100 Mbit/s x 60 ms is exactly 500 packets of 1500 B; a float product would say 501.
    assert bulk({"network.bottleneck.buffer": typed}).buffer_pkts == packets


def test_buffer_in_bdp_follows_rate_and_rtt() -> None:
    s = bulk({"network.bottleneck.buffer": "1bdp"})
    assert s.with_changes({"network.rtt": "90ms"}).buffer_pkts == 750
    assert s.with_changes({"network.bottleneck.rate": "10mbit"}).buffer_pkts == 50
    assert s.resolved()["network"]["bottleneck"]["buffer"] == "1bdp"
    assert load("web-10mbit", changes={"network.ingress.buffer": "1bdp"})


def test_loss_keys_select_the_loss_model() -> None:
    assert bulk({"network.bottleneck.loss": "0%"}).network.bottleneck.loss is None
    for typed in ("1%", 0.01, {"model": "bernoulli", "rate": "1%"}):
        loss = bulk({"network.bottleneck.loss": typed}).network.bottleneck.loss
        assert loss == Bernoulli(model="bernoulli", rate=0.01)
    bursts = {"model": "gilbert-elliott", "to_bad": "1%", "to_good": "25%"}
    loss = bulk({"network.bottleneck.loss": bursts}).network.bottleneck.loss
    assert isinstance(loss, GilbertElliott)
    assert (loss.to_bad, loss.to_good, loss.loss_good, loss.loss_bad) == (0.01, 0.25, 0.0, 1.0)
    assert loss.mean_ratio() == pytest.approx(0.01 / 0.26)
    rounds = bulk({"network.bottleneck.loss": {"model": "rest-of-round", "rate": 0.01}})
    assert rounds.network.bottleneck.loss == RestOfRound(model="rest-of-round", rate=0.01)
    assert_reads_back(rounds)


def test_window_sizes_are_converted_to_packets() -> None:
    assert bulk({"tcp.receiver_window": "64KiB"}).tcp.receiver_window == 44
    assert bulk({"tcp.receiver_window": "44pkt"}).tcp.receiver_window == 44
    assert (
        bulk({"tcp.receiver_window": "64KiB", "network.packet": "576B"}).tcp.receiver_window == 122
    )
    unlimited = bulk().tcp
    assert unlimited.receiver_window == unlimited.initial_ssthresh == math.inf
    assert bulk({"tcp.receiver_window": 44}).tcp.initial_ssthresh == 44
    own = {"tcp.receiver_window": 44, "tcp.initial_ssthresh": 16}
    assert bulk(own).tcp.initial_ssthresh == 16
    assert bulk({**own, "tcp.initial_ssthresh": "unlimited"}).tcp.initial_ssthresh == math.inf


def test_sizes_in_bytes_are_payload_bytes() -> None:
    s = load("web-10mbit", changes={"traffic.size.mean": "29200B"})
    assert isinstance(s.traffic, OnOff)
    assert s.traffic.size.mean_value() == 20
    smaller = s.with_changes({"network.packet": "540B"}).traffic
    assert isinstance(smaller, OnOff)
    assert smaller.size.mean_value() == pytest.approx(58.4)


@pytest.mark.parametrize(
    "stack", ["rfc-reno", "rfc-newreno", "rfc-newreno-patient", "max-plus-reno"]
)
def test_preset_supplies_omitted_tcp_keys(stack: str) -> None:
    tcp = bulk({"tcp.stack": stack}).tcp
    assert tcp.stack == stack
    assert tcp.initial_window == (1 if stack == "max-plus-reno" else 2)
    assert tcp.idle_restart == (10 if stack == "max-plus-reno" else "rto")
    assert tcp.delayed_acks is False
    assert (tcp.ack_timeout_s, tcp.min_rto_s) == (0.2, 1.0)
    assert tcp.initial_rto_s == (3.0 if stack == "max-plus-reno" else 1.0)
    assert (tcp.max_rto_s, tcp.rto_granularity_s) == (64.0, 0.0)
    assert bulk({"tcp.stack": stack, "tcp.initial_window": 10}).tcp.initial_window == 10


def test_loss_detection_keys_set_thresholds() -> None:
    tcp = bulk().tcp
    assert (tcp.duplicate_threshold, tcp.last_packets_threshold) == (3, 3)
    assert tcp.limited_transmit is False
    assert bulk({"tcp.duplicate_threshold": 2}).tcp.last_packets_threshold == 2
    paper = {"tcp.limited_transmit": True, "tcp.rules.last_packets_threshold": 1}
    proposal = bulk(paper).tcp
    assert (proposal.duplicate_threshold, proposal.last_packets_threshold) == (3, 1)
    assert proposal.limited_transmit is True
    second = {"tcp.limited_transmit": True, "tcp.rules.limited_transmit_on": "second"}
    assert bulk(second).tcp.rules.limited_transmit_on == "second"
    reread = Scenario.from_dict(bulk(paper).resolved()).tcp
    assert (reread.last_packets_threshold, reread.limited_transmit) == (1, True)


def test_start_times_are_none_listed_or_drawn() -> None:
    starts = [bulk().traffic, bulk({"traffic.start": "within-rtt"}).traffic]
    assert [t.start for t in starts if isinstance(t, Bulk)] == [None, None]
    listed = bulk({"traffic.flows": 3, "traffic.start": ["0s", 0, "1s"]}).traffic
    assert isinstance(listed, Bulk)
    assert listed.start == [0.0, 0.0, 1.0]
    drawn: Any = bulk(
        {"traffic.start": {"distribution": "uniform", "low": 0, "high": "1s"}}
    ).traffic
    assert drawn.start.parameters() == {"distribution": "uniform", "low": 0.0, "high": 1.0}


def test_precision_applies_to_main_or_named_metrics() -> None:
    assert bulk({"run.precision": "2%"}).run.precision == {"goodput_pps": 0.02}
    web = load("web-10mbit", changes={"run.precision": 0.01})
    assert web.run.precision == {"connection_rate_bps": 0.01}
    named = {"loss_ratio": "5%", "utilisation": "1%"}
    assert bulk({"run.precision": named}).run.precision == {"loss_ratio": 0.05, "utilisation": 0.01}
    assert set(PRECISION_METRICS) <= set(UNITS)


def test_one_value_is_a_constant_distribution() -> None:
    changes = {"traffic.off": "1s", "traffic.size": "100KB"}
    users = load("web-10mbit", changes=changes).resolved()["traffic"]
    assert users["off"] == {"distribution": "constant", "value": "1s"}
    assert users["size"] == {"distribution": "constant", "value": "100000B"}
    packets = load("web-10mbit", changes={"traffic.size": "12pkt"}).resolved()["traffic"]["size"]
    assert packets == {"distribution": "constant", "value": "12pkt"}
    start = bulk({"traffic.start": "1s"}).resolved()["traffic"]["start"]
    assert start == {"distribution": "constant", "value": "1s"}


def test_warmup_and_max_wall_accept_special_values() -> None:
    assert bulk({"run.warmup": "mser-5"}).run.warmup_s is None
    assert bulk({"run.warmup": 0}).run.warmup_s == 0.0
    assert bulk({"run.max_wall": "2min"}).run.max_wall_s == 120.0
    assert bulk({"run.max_wall": "unlimited"}).run.max_wall_s is None


def test_setting_run_length_removes_other_length() -> None:
    web = load("web-10mbit", changes={"run.duration": "60s"})
    assert (web.run.transfers, web.run.duration_s) == (None, 60.0)
    back = web.with_changes({"run.transfers": 5})
    assert (back.run.transfers, back.run.duration_s) == (5, None)


def test_changes_do_not_modify_the_original() -> None:
    before = load("web-10mbit")
    kept = before.resolved()
    after = before.with_changes({"traffic.sources": 98, "network.bottleneck.buffer": "300pkt"})
    assert after.senders == 98
    assert after.buffer_pkts == 300
    assert before.resolved() == kept
    assert before.senders == 134


def test_scenario_copies_its_input() -> None:
    tables = copy.deepcopy(BULK)
    s = Scenario.from_dict(tables)
    tables["traffic"]["flows"] = 3
    assert s.with_changes({"name": "again"}).senders == 10


def test_scenario_accepts_tables_and_objects_as_arguments() -> None:
    first = Scenario.from_dict(BULK)
    assert Scenario(**BULK) == first
    assert (
        Scenario(network=first.network, traffic=first.traffic, tcp=first.tcp, run=first.run)
        == first
    )
    with pytest.raises(ScenarioError, match=r"^network\.rtt: 50 has no unit; use \"50ms\"$"):
        Scenario(network={"rtt": 50}, traffic=first.traffic, run=first.run)


def test_none_means_omitted_key() -> None:
    assert (
        bulk({"run.warmup": None, "network.bottleneck.delay": None, "tcp.min_rto": None}) == bulk()
    )
    without = {key: value for key, value in BULK.items() if key != "tcp"}
    assert bulk({"tcp": None}) == Scenario.from_dict(without)


def test_scenario_is_immutable() -> None:
    s = bulk()
    with pytest.raises(ValueError, match="frozen"):
        s.network.rtt = 3.0


def test_pickled_and_copied_scenarios_are_equal() -> None:
    s = load("two-classes")
    for other in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        assert other == s
        assert hash(other) == hash(s)
        assert other.with_changes({"class.far.rtt": "1s"}).populations[1].rtt_s == 1.0


def test_resolved_contains_all_defaults_with_units() -> None:
    assert bulk().resolved() == {
        "name": "scenario",
        "network": {
            "rtt": "60ms",
            "packet": "1500B",
            "ack": "40B",
            "ingress": NO_LINK,
            "bottleneck": {
                "rate": "100mbit",
                "buffer": "500pkt",
                "queue": "droptail",
                "loss": "0%",
                "loss_at": "before",
            },
            "egress": NO_LINK,
        },
        "traffic": {"kind": "bulk", "flows": 10, "start": "within-rtt"},
        "tcp": {
            "stack": "rfc-newreno",
            **PRESETS["rfc-newreno"],
            "rules": TcpRules().model_dump(exclude_none=True, exclude={"recovery"}),
        },
        "run": {
            "duration": "300s",
            "warmup": "mser-5",
            "replications": 1,
            "seed": 1,
            "max_wall": "unlimited",
        },
        "probes": {
            "flows": [],
            "pcap": [],
            "goodput_shares": ["95%", "90%", "80%", "50%"],
            "goodput_least": "10pkt",
        },
    }


NO_LINK = {
    "rate": "unlimited",
    "buffer": "unlimited",
    "queue": "droptail",
    "loss": "0%",
    "loss_at": "before",
}


@pytest.mark.parametrize("name", get_packaged_names())
def test_packaged_scenarios_read_back(name: str) -> None:
    assert_reads_back(load(name))


def digest_of(tables: Mapping[str, Any]) -> str:
    text = json.dumps(tables, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def assert_reads_back(s: Scenario) -> None:
    tables = tomllib.loads(s.to_toml())
    assert tables == s.resolved()
    reread = Scenario.from_dict(tables)
    assert reread == s
    assert reread.resolved() == s.resolved()
    assert reread.digest() == s.digest() == digest_of(s.resolved())
    assert reread.populations == s.populations
    assert reread.network == s.network
    assert reread.tcp == s.tcp
    assert reread.run == s.run


def test_digest_ignores_spelling() -> None:
    s = bulk()
    assert s.digest().startswith("sha256:")
    assert len(s.digest()) == 71
    assert (
        bulk({"network.rtt": "0.06s", "network.bottleneck.rate": "0.1 Gbit/s"}).digest()
        == s.digest()
    )
    other = s.with_changes({"run.seed": 2})
    assert other.digest() == bulk({"run.seed": 2}).digest() != s.digest()


def test_questionable_values_have_warnings() -> None:
    assert load("web-10mbit").warnings() == []
    heavy = {"distribution": "ep", "mean": "12pkt", "minimum": "3pkt"}
    (warning,) = load("web-10mbit", changes={"traffic.size": heavy}).warnings()
    assert "traffic.size has no finite variance" in warning
    (warning,) = bulk({"network.bottleneck.buffer": "unlimited"}).warnings()
    assert "the queue grows as long as the run lasts" in warning
    (warning,) = bulk({"network.rtt": "2s"}).warnings()
    assert "spurious timeout" in warning
    (warning,) = bulk({"tcp.receiver_window": 1}).warnings()
    assert "tcp.initial_window" in warning


def test_repr_summarises_scenario() -> None:
    shown = "<Scenario web-10mbit: 134 on-off, bottleneck 10mbit, rtt 50ms>"
    assert repr(load("web-10mbit")) == str(load("web-10mbit")) == shown


def test_key_names_differ_from_union_member_names() -> None:
    """pydantic would omit such a key from error paths; ``run.transfers`` is the only exception.

    Errors in the trace of a rate are reported at the rate.
    """
    keys = {key for table in get_all_subclasses(Table) for key in table.fields_by_key()}
    assert keys & get_union_member_names() == {"trace", "transfers"}


def test_every_required_key_has_an_example_for_its_message() -> None:
    for table in get_all_subclasses(Table):
        if "[" in table.__name__:
            continue
        for key, field in table.fields_by_key().items():
            is_tag = key in ("kind", "distribution", "model")
            assert not field.is_required() or is_tag or table.example(key) is not None


def test_written_toml_reads_back_unchanged() -> None:
    tables: dict[str, Any] = {
        "name": 'quotes " and \\ and \t and é and 😀 and \x7f',
        "list": [1, 2.5, True, "x", [], {}],
        "network": {"a": 1, "deep": {"b key": "c", "deeper": {"x": {"y": False}}}},
        "class": [{"name": "a", "t": {"u": [1]}}, {}],
        "none": [],
        "empty": {},
    }
    assert tomllib.loads(write_toml(tables)) == tables
    with pytest.raises(TypeError):
        write_toml({"when": object()})


# Random scenarios: every valid scenario reads back unchanged.


def test_return_delay_can_differ_from_forward_delay() -> None:
    def ways(network: dict[str, Any], **user_class: Any) -> list[tuple[float, float]]:
        tables: dict[str, Any] = {
            "network": network,
            "traffic": {"kind": "bulk", **({} if user_class else {"flows": 1})},
            "run": {"duration": "1s"},
        }
        if user_class:
            tables["class"] = [{"name": "far", "flows": 1, **user_class}]
        groups = Scenario.from_dict(tables).populations
        return [(group.forward_delay_s, group.return_delay_s) for group in groups]

    delays = {
        "return_delay": "60ms",
        "ingress": {"delay": "30ms"},
        "bottleneck": {"rate": "12mbit"},
        "egress": {"delay": "10ms"},
    }
    assert ways(delays) == [pytest.approx((0.04, 0.06))]
    # A longer link is longer in both directions.
    assert ways(delays, ingress={"delay": "50ms"}) == [pytest.approx((0.06, 0.08))]
    given = {"rtt": "100ms", "return_delay": "60ms", "bottleneck": {"rate": "12mbit"}}
    propagation = 0.1 - 1540 * 8 / 12e6
    assert ways(given) == [pytest.approx((propagation - 0.06, 0.06))]
    # With its own round-trip time, the return path keeps its share.
    share = 0.06 / propagation
    longer = 0.2 - 1540 * 8 / 12e6
    assert ways(given, rtt="200ms") == [pytest.approx((longer * (1 - share), longer * share))]
    with pytest.raises(ScenarioError, match="on the return path, 40ms"):
        ways({**delays, "return_delay": "30ms"})
