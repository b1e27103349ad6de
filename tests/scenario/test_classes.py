"""Classes of users: inherited keys, own keys, and changes."""

import tomllib
from typing import Any

import pytest
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Bulk, OnOff, Population, Scenario, load
from tcpcast.scenario.classes import override_table

TOP = """
[network]
rtt = "50ms"
bottleneck = { rate = "10mbit" }
ingress = { rate = "100mbit" }
egress = { rate = "2mbit", buffer = "100pkt" }
[traffic]
kind = "on-off"
sources = 7
off = { distribution = "exponential", mean = "1s" }
size = { distribution = "exponential", mean = "12pkt", minimum = "3pkt" }
[run]
duration = "60s"
"""


def classes(text: str, top: str = TOP) -> list[Population]:
    return scenario(text, top).populations


def scenario(text: str, top: str = TOP) -> Scenario:
    return Scenario.from_dict(tomllib.loads(top + text))


def refused(text: str, top: str = TOP) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        scenario(text, top)
    return str(caught.value).splitlines()


def test_packaged_two_classes_has_documented_values() -> None:
    s = load("two-classes")
    near, far = s.populations
    assert (near.name, near.count, near.rtt_s) == ("near", 60, 0.05)
    assert (far.name, far.count, far.rtt_s) == ("far", 40, 0.2)
    assert isinstance(near.traffic, OnOff)
    assert isinstance(far.traffic, OnOff)
    assert near.traffic.size.parameters() == {
        "distribution": "exponential",
        "minimum": 3.0,
        "scale": 9.0,
    }
    assert far.traffic.size.parameters() == {
        "distribution": "exponential",
        "minimum": 3.0,
        "scale": 17.0,
    }
    assert far.traffic.off == near.traffic.off
    assert far.traffic.sources == far.traffic.count == 40
    assert near.ingress == far.ingress == s.network.ingress
    assert s.senders == 100
    assert isinstance(s.traffic, OnOff)
    assert s.traffic.sources == 0


def test_top_level_traffic_is_optional_if_each_class_has_one() -> None:
    top = TOP[: TOP.index("[traffic]")] + '[run]\nduration = "60s"\n'
    of_each = """
[[class]]
name = "a"
traffic = { kind = "bulk", flows = 3 }
[[class]]
name = "b"
traffic = { kind = "bulk", flows = 4, start = "within-rtt" }
"""
    both_classes = scenario(of_each, top)
    assert [group.count for group in both_classes.populations] == [3, 4]
    assert both_classes == scenario('[traffic]\nkind = "bulk"' + of_each, top)
    assert both_classes == Scenario.from_dict(both_classes.resolved())
    assert both_classes.with_changes({"run.precision": "1%"}).run.precision == {"goodput_pps": 0.01}
    assert both_classes.with_changes({"class.b.traffic.flows": 5}).senders == 8
    # Flows without traffic are bulk flows.
    assert scenario(of_each + '[[class]]\nname = "c"\nflows = 1', top).senders == 8
    (only,) = refused(of_each + '[[class]]\nname = "c"', top)
    assert only.startswith('class.c.traffic.kind: missing; add kind = "on-off"')


def test_class_without_keys_equals_top_level() -> None:
    (own,) = classes('[[class]]\nname = "a"')
    (top,) = classes("")
    assert top.name == "all"
    assert (own.count, own.rtt_s, own.forward_delay_s) == (7, 0.05, top.forward_delay_s)
    assert own.traffic == top.traffic
    assert (own.ingress, own.egress) == (top.ingress, top.egress)


def test_class_propagation_follows_from_rtt_and_links() -> None:
    (own,) = classes('[[class]]\nname = "a"\nrtt = "80ms"\negress = { rate = "1mbit" }')
    bits = 8 * 1540
    transmission = bits / 100e6 + bits / 10e6 + bits / 1e6
    assert own.forward_delay_s == own.return_delay_s == pytest.approx((0.08 - transmission) / 2)
    assert own.egress.rate_bps == 1e6
    assert own.egress.buffer.amount == 100


def test_class_distributions_merge_or_replace() -> None:
    laid, replaced = classes(
        """
        [[class]]
        name = "laid"
        traffic = { size = { mean = "30pkt" } }
        [[class]]
        name = "replaced"
        traffic = { size = { distribution = "exponential", mean = "30pkt" } }
        """
    )
    assert isinstance(laid.traffic, OnOff)
    assert isinstance(replaced.traffic, OnOff)
    assert laid.traffic.size.parameters()["minimum"] == 3
    assert replaced.traffic.size.parameters()["minimum"] == 0


def test_classes_can_have_different_kinds_of_traffic() -> None:
    web, long = classes(
        """
        [[class]]
        name = "web"
        traffic = { sources = 5 }
        [[class]]
        name = "long"
        flows = 2
        traffic = { kind = "bulk", start = ["0s", "3s"] }
        """
    )
    assert (web.traffic.kind, web.count) == ("on-off", 5)
    assert isinstance(long.traffic, Bulk)
    assert (long.traffic.flows, long.traffic.start) == (2, [0.0, 3.0])


def test_class_delays_add_up_to_its_rtt() -> None:
    top = TOP.replace('rtt = "50ms"', "").replace(
        'rate = "10mbit"', 'rate = "10mbit", delay = "5ms"'
    )
    inherits, own, by_rtt = classes(
        """
        [[class]]
        name = "inherits"
        [[class]]
        name = "own"
        egress = { delay = "20ms" }
        [[class]]
        name = "by-rtt"
        rtt = "1s"
        """,
        top,
    )
    assert inherits.forward_delay_s == pytest.approx(0.005)
    assert own.forward_delay_s == pytest.approx(0.025)
    assert by_rtt.rtt_s == 1.0
    s = scenario('[[class]]\nname = "by-rtt"\nrtt = "1s"\n[[class]]\nname = "own"', top)
    again = Scenario.from_dict(s.resolved())
    assert again.populations == s.populations
    assert again == s


def test_changes_select_class_by_name_or_index() -> None:
    s = load("two-classes")
    by_name = s.with_changes({"class.far.rtt": "300ms", "class.near.sources": 1})
    by_place = s.with_changes({"class.1.rtt": "300ms", "class.0.sources": 1})
    assert by_name == by_place
    assert [p.rtt_s for p in by_name.populations] == [0.05, 0.3]
    assert [p.count for p in by_name.populations] == [1, 40]
    deeper = s.with_changes({"class.near.egress.rate": "1mbit"})
    assert [p.egress.rate_bps for p in deeper.populations] == [1e6, 2e6]
    whole = s.with_changes({"class.0": {"name": "only", "sources": 3}})
    assert [p.name for p in whole.populations] == ["only", "far"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("class.fat.rtt", 'class contains no entry "fat" (did you mean "far"?); use near, far'),
        ("class.2.rtt", 'class contains no entry "2"; use near, far'),
        ("class.-1.rtt", "no entry"),
        ("class.far.rttt", 'class.far.rttt: unknown key; did you mean "rtt"?'),
    ],
)
def test_changes_of_missing_classes_are_rejected(change: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load("two-classes", changes={change: "1s"})
    assert message in str(caught.value)


def test_class_start_after_end_of_run_is_rejected() -> None:
    late = {"class.cubic.start": "60s"}
    assert load("cubic-and-bbr", changes={**late, "run.duration": "61s"}).classes
    with pytest.raises(ScenarioError, match=r'after the end of the run; .* run.duration = "120s"'):
        load("cubic-and-bbr", changes={**late, "run.duration": "60s"})


def test_too_many_classes_are_rejected_before_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> None:
        raise AssertionError("a class was read")

    monkeypatch.setattr("tcpcast.scenario.classes._merge_class", read)
    (only,) = refused("".join(f'[[class]]\nname = "c{n}"\n' for n in range(1001)))
    assert only == "class: contains 1001 classes; use at most 1000 classes"


def test_inherited_error_is_reported_once() -> None:
    lines = refused(
        '[[class]]\nname = "a"\n[[class]]\nname = "b"\ningress = { rat = "1mbit" }',
        TOP.replace('"50ms"', '"50parsec"')
        .replace('"1s"', "1")
        .replace("sources = 7", "sources = 0"),
    )
    assert [line.split(":")[0] for line in lines] == [
        "network.rtt",
        "traffic.sources",
        "traffic.off.mean",
        "class.b.ingress.rat",
    ]


def test_missing_sender_count_is_reported() -> None:
    assert refused("", TOP.replace("sources = 7", "")) == [
        "traffic.sources: missing; add sources = 100, or [[class]] tables"
    ]


@pytest.mark.parametrize(
    ("base", "top", "together"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}}, {"a": {"x": 1, "y": 3}}),
        ({"distribution": "a", "x": 1}, {"x": 2}, {"distribution": "a", "x": 2}),
        (
            {"distribution": "a", "x": 1},
            {"distribution": "a", "y": 2},
            {"distribution": "a", "y": 2},
        ),
        ("1%", {"model": "m"}, {"model": "m"}),
        ({"model": "m"}, "1%", "1%"),
        (None, {"a": 1}, {"a": 1}),
    ],
)
def test_overlay_merges_tables(base: Any, top: Any, together: Any) -> None:
    assert override_table(base, top) == together


def test_populations_are_computed_once() -> None:
    """Populations are used for each metric of each class."""
    packaged = load("two-classes")
    assert packaged.populations is packaged.populations
    # Cached populations are not part of the scenario.
    assert packaged == load("two-classes")
    assert packaged.with_changes({"class.0.sources": 5}).populations[0].count == 5


OWN_TCP = '[tcp]\nstack = "rfc-reno"\ninitial_window = 4\n[[class]]\nname = "a"\n' + (
    '[[class]]\nname = "b"\ntcp = { stack = "rfc-newreno", min_rto = "200ms" }\n'
)


def test_class_tcp_overrides_top_level_tcp() -> None:
    first, second = classes(OWN_TCP)
    assert (first.tcp.stack, first.tcp.initial_window, first.tcp.min_rto_s) == ("rfc-reno", 4, 1.0)
    assert (second.tcp.stack, second.tcp.initial_window) == ("rfc-newreno", 4)
    assert second.tcp.min_rto_s == 0.2


def test_class_without_tcp_inherits_tcp() -> None:
    shown = scenario(OWN_TCP).resolved()["class"]
    assert "tcp" not in shown[0]
    assert shown[1]["tcp"]["stack"] == "rfc-newreno"
    assert Scenario.from_dict(scenario(OWN_TCP).resolved()) == scenario(OWN_TCP)


def test_changes_set_tcp_of_class() -> None:
    changed = scenario(OWN_TCP).with_changes({"class.a.tcp.stack": "rfc-newreno-patient"})
    assert changed.populations[0].tcp.stack == "rfc-newreno-patient"
    assert changed.populations[1].tcp.stack == "rfc-newreno"


def test_incompatible_senders_are_rejected() -> None:
    text = OWN_TCP.replace('stack = "rfc-newreno", min_rto = "200ms"', 'stack = "max-plus-reno"')
    assert refused(text) == [
        'class.b.tcp.stack: "max-plus-reno" cannot be combined with "rfc-reno" of class a; '
        "use one value for all classes, or one scenario per class"
    ]
    text = OWN_TCP.replace('min_rto = "200ms"', 'rules = { window_unit = "bytes" }')
    assert refused(text) == [
        'class.b.tcp.rules.window_unit: "bytes" cannot be combined with "packets" of class a; '
        "use one value for all classes, or one scenario per class"
    ]


def test_unlimited_bulk_class_is_rejected() -> None:
    top = TOP.replace('bottleneck = { rate = "10mbit" }', "bottleneck = {}")
    top = top.replace('{ rate = "2mbit", buffer = "100pkt" }', "{}").replace(
        'ingress = { rate = "100mbit" }', ""
    )
    bulk = 'traffic = { kind = "bulk", flows = 2 }'
    window = f'[[class]]\nname = "a"\n{bulk}\ntcp = {{ receiver_window = 10 }}\n'
    assert [p.tcp.receiver_window for p in classes(window, top)] == [10]
    endless = f'{window}[[class]]\nname = "b"\n{bulk}\n'
    assert "nothing limits the flows" in refused(endless, top)[0]


def test_traffic_errors_are_reported_at_their_class() -> None:
    top = TOP[: TOP.index("[traffic]")] + TOP[TOP.index("[run]") :]
    bulk = '[[class]]\nname = "a"\ntraffic = { kind = "bulk", flows = 2, size = "3pkt" }\n'
    other = '[[class]]\nname = "b"\ntraffic = { kind = "bulk", flows = 1 }\n'
    assert [line.split(":")[0] for line in refused(bulk + other, top)] == ["class.a.traffic.size"]
