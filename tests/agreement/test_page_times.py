"""Pages: round trips of each version of HTTP, hosts, priorities, chains, and shared links."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
import tcpcast
from tcpcast.scenario import Scenario

RTT_S = 0.1
ROUND_TRIPS = {"1.1": 3, "2": 3, "3": 2}
"""Round trips to the first byte: TCP, TLS 1.3 and the request; the handshake of QUIC and the
request, without certificates that need another round trip."""

TCP = {"stack": "linux-cubic", "handshake": "tls13"}
QUIC = {"stack": "quic", "handshake": "tls13-resumption"}


def page_objects(count: int, **keys: Any) -> list[dict[str, Any]]:
    """Return a document and small objects that are found when it is complete."""
    objects = [{"name": f"o{n}", "size": "1kB", **keys} for n in range(count)]
    return [{"name": "index", "size": "1kB"}, *objects]


def make_scenario(
    objects: Sequence[dict[str, Any]] | str, http: str = "2", /, **changed: Any
) -> Scenario:
    tables: dict[str, Any] = {
        "network": {"rtt": "100ms", "bottleneck": {"rate": "1gbit", "buffer": "2000pkt"}},
        "traffic": {"kind": "page", "sources": 1, "http": http, "objects": objects},
        "tcp": QUIC if http == "3" else TCP,
        "run": {"duration": "60s", "seed": 1, "warmup": "0s"},
    }
    return Scenario.from_dict(tables).with_changes(changed)


def metrics(scenario: Scenario) -> dict[str, float]:
    (answer,) = tcpcast.run(scenario, ["packet"])
    return {name: metric.value for name, metric in answer.metrics.items()}


def assert_round_trips(seconds: float, trips: float) -> None:
    """Within transmission times and the noise of hosts, beside whole round trips."""
    assert seconds / RTT_S == pytest.approx(trips, abs=0.05)


@pytest.mark.parametrize("http", ["1.1", "2", "3"])
def test_document_takes_the_round_trips_of_the_handshake(http: str) -> None:
    got = metrics(make_scenario([{"name": "index", "size": "1kB", "server_time": "50ms"}], http))
    for name in ("first_byte_p50_s", "first_object_p50_s", "page_time_mean_s"):
        assert_round_trips(got[name], ROUND_TRIPS[http] + 0.5)


@pytest.mark.parametrize("http", ["1.1", "2"])
def test_first_byte_waits_for_a_complete_record(http: str) -> None:
    """RFC 8446, section 5.1: a record of 16 KiB is longer than the first window of 10 packets."""
    image = {"name": "image", "size": "1kB", "found": 0.1}
    objects: list[dict[str, Any]] = [{"name": "index", "size": "60kB"}, image]
    scenario = make_scenario(objects, http)
    got = metrics(scenario)
    assert_round_trips(got["first_byte_p50_s"], 3 + 1)
    # The first record names the image, which HTTP/1.1 requests after the document.
    assert_round_trips(got["page_time_mean_s"], {"1.1": 6, "2": 5}[http])
    small = metrics(scenario.with_changes({"traffic.record": "1400B"}))
    assert_round_trips(small["first_byte_p50_s"], 3)


def test_session_tickets_and_settings_take_packets_of_the_first_window() -> None:
    """Of 10 packets, 8 carry the document; with 9 it needs another round trip."""
    for size, trips in (("11kB", 3), ("12kB", 4)):
        scenario = make_scenario([{"name": "index", "size": size}], "2")
        assert_round_trips(metrics(scenario)["page_time_mean_s"], trips)
    # HTTP/1.1 has no SETTINGS, and resumption only one ticket.
    first = make_scenario([{"name": "index", "size": "13kB"}], "1.1")
    assert_round_trips(metrics(first)["page_time_mean_s"], 3)


def test_0rtt_saves_a_round_trip() -> None:
    scenario = make_scenario(page_objects(0), "3")
    assert_round_trips(metrics(scenario)["page_time_mean_s"], 2)
    early = scenario.with_changes({"tcp.handshake": "tls13-0rtt"})
    assert_round_trips(metrics(early)["page_time_mean_s"], 1)


@pytest.mark.parametrize(
    ("handshake", "trips"), [("tls13", 2), ("tls13-0rtt", 1), ("tls12", 3), ("tcp", 1)]
)
@pytest.mark.parametrize("http", ["1.1", "2"])
def test_fast_open_saves_a_round_trip(http: str, handshake: str, trips: int) -> None:
    changed = {"tcp.handshake": handshake, "tcp.fast_open": True}
    got = metrics(make_scenario(page_objects(0), http, **changed))
    assert_round_trips(got["page_time_mean_s"], trips)


def test_request_of_several_packets_follows_the_syn() -> None:
    # A SYN carries 1420 of the 3000 bytes; the rest waits for the SYN-ACK.
    objects = [{"name": "index", "size": "1kB", "request": "3000B"}]
    changed = {"tcp.handshake": "tcp", "tcp.fast_open": True}
    assert_round_trips(metrics(make_scenario(objects, "2", **changed))["page_time_mean_s"], 2)


@pytest.mark.parametrize(
    ("http", "trips"),
    [
        # The open connection answers an object per round trip; five more, after two round trips of
        # handshakes, answer one each in the third: eight of twelve. The rest takes a fourth.
        ("1.1", 3 + 4),
        ("2", 3 + 1),
        ("3", 2 + 1),
    ],
)
def test_objects_share_connections(http: str, trips: int) -> None:
    assert_round_trips(metrics(make_scenario(page_objects(12), http))["page_time_mean_s"], trips)


@pytest.mark.parametrize("http", ["1.1", "2", "3"])
def test_chained_objects_take_a_round_trip_each(http: str) -> None:
    names = ["index", *(f"m{n}" for n in range(5))]
    chain = [{"name": "index", "size": "1kB"}]
    chain += [
        {"name": name, "size": "1kB", "parent": above, "delay": "20ms"}
        for above, name in itertools.pairwise(names)
    ]
    got = metrics(make_scenario(chain, http))
    assert_round_trips(got["page_time_mean_s"], ROUND_TRIPS[http] + 5 * 1.2)


def test_persistent_connections_need_no_handshake_after_the_first_page() -> None:
    scenario = make_scenario(page_objects(3), "2", **{"traffic.connection": "persistent"})
    assert_round_trips(metrics(scenario)["page_time_p50_s"], 2)


def test_host_has_its_own_round_trip_time() -> None:
    scenario = make_scenario(page_objects(1, host="cdn"))
    assert_round_trips(metrics(scenario)["page_time_mean_s"], 3 + 3)
    near = scenario.with_changes({"traffic.host_rtt": {"cdn": "20ms"}})
    assert_round_trips(metrics(near)["page_time_mean_s"], 3 + 3 * 0.2)
    far = scenario.with_changes({"traffic.host_rtt": {"cdn": "250ms"}})
    assert_round_trips(metrics(far)["page_time_mean_s"], 3 + 3 * 2.5)


@pytest.mark.parametrize("http", ["2", "3"])
def test_urgent_answers_precede_others(http: str) -> None:
    changed = {"network.bottleneck.rate": "10mbit"}
    if http == "2":
        changed["tcp.notsent_lowat"] = "16KB"
    document = {"name": "index", "size": "1MB"}
    image = {"name": "image", "size": "1MB", "found": 0.02}

    def times(*objects: dict[str, Any], order: str = "priority") -> tuple[float, float]:
        """Return the times of the document and of the page."""
        got = metrics(make_scenario(objects, http, **changed, **{"traffic.order": order}))
        return got["first_object_p50_s"], got["page_time_mean_s"]

    alone, _ = times(document)
    later, both = times(document, {**image, "priority": 7})
    # The image does not delay the document if it is less urgent or was requested later.
    assert later == pytest.approx(alone, rel=0.03)
    assert times(document, image) == pytest.approx((later, both), rel=0.03)
    # It precedes the rest of the document if it is more urgent; in turn, both end together.
    urgent = times(document, {**image, "priority": 0})
    assert urgent == pytest.approx((both, both), rel=0.03)
    assert times(document, image, order="in-turn") == pytest.approx((both, both), rel=0.06)
    assert both > later + 0.7 * 8e6 / 10e6


def test_browsers_share_the_link() -> None:
    one = make_scenario("median", **{"network.bottleneck.rate": "50mbit"})
    got = [metrics(one.with_changes({"traffic.sources": n}))["page_time_mean_s"] for n in (1, 8)]
    # Eight pages of 2.65 MB take 3.4 s at 50 Mbit/s, of which a second can be that of a pause.
    least_s = 8 * 2.652e6 * 8 / 50e6
    assert got[0] < 2.2
    assert least_s - 1 < got[1] < 1.5 * least_s


def test_access_links_belong_to_browsers() -> None:
    """All connections of a browser share its access link."""
    scenario = make_scenario("median", "1.1", **{"network.egress.rate": "10mbit"})
    seconds = metrics(scenario)["page_time_mean_s"]
    assert 8 * 2.652e6 / 10e6 < seconds < 8 * 2.652e6 / 10e6 + 1
    two = metrics(scenario.with_changes({"traffic.sources": 2}))["page_time_mean_s"]
    assert two == pytest.approx(seconds, rel=0.05)


def test_server_and_browser_draw_the_same_times_for_each_version() -> None:
    """Random numbers belong to the browser, not to its connections."""
    exponential = {"distribution": "exponential", "mean": "100ms"}
    changed = {"traffic.server_time": exponential, "traffic.pause": exponential}
    first = [
        metrics(make_scenario(page_objects(0), http, **changed, **{"run.duration": "200s"}))
        for http in ("1.1", "2")
    ]
    # SETTINGS of HTTP/2 change acks by microseconds; other random numbers change the mean by 1 %.
    one, two = (each["page_time_mean_s"] for each in first)
    assert one == pytest.approx(two, rel=1e-3)


def test_classes_have_pages_beside_other_traffic() -> None:
    tables = {
        "link": {"down": {"rate": "20mbit", "buffer": "50ms"}, "up": {"rate": "5mbit"}},
        "site": {"home": {"count": 2}},
        "tcp": {"handshake": "tls13"},
        "class": [
            {"name": "web", "site": "home", "sources": 2, "route": ["down"], "back": ["up"]}
            | {
                "delay": "10ms",
                "back_delay": "10ms",
                "traffic": {"kind": "page", "objects": "text"},
            },
            {"name": "bulk", "site": "home", "flows": 1, "route": ["down"], "back": ["up"]}
            | {"delay": "10ms", "back_delay": "10ms", "traffic": {"kind": "bulk"}},
        ],
        "run": {"duration": "30s", "seed": 1},
    }
    scenario = Scenario.from_dict(tables)
    (answer,) = tcpcast.run(scenario, ["packet"])
    assert [(group.users, group.count) for group in scenario.populations] == [(4, 4), (2, 2)]
    table = answer.tables["by_class"]
    times = dict(zip(table["name"], table["page_time_p95_s"], strict=True))
    assert 0.1 < times["web"] < 2
    assert math.isnan(times["bulk"])
