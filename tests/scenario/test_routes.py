"""Networks of links: routes, sites, changes, and one line per error."""

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tcpcast import Scenario, ScenarioError
from tcpcast.engines import answer
from tcpcast.engines.packet.configuration import make_configuration

HOME: dict[str, Any] = {
    "link": {
        "core": {"rate": "1gbit", "queue": "fq_codel"},
        "line": {"rate": "100mbit", "delay": "5ms", "each": "home", "buffer": "1bdp"},
        "up": {"rate": "20mbit", "each": "home"},
    },
    "site": {"home": {"count": 3}},
    "class": [
        {
            "name": "video",
            "site": "home",
            "flows": 2,
            "route": ["core", "line"],
            "back": ["up"],
            "delay": "18ms",
        }
    ],
    "traffic": {"kind": "bulk"},
    "run": {"duration": "60s"},
}


def changed(**values: Any) -> dict[str, Any]:
    """Return the tables of :data:`HOME` with values by dotted key (``__`` for a dot)."""
    tables = copy.deepcopy(HOME)
    for key, value in values.items():
        *above, last = key.split("__")
        table: Any = tables
        for part in above:
            table = table[int(part[1:])] if part.startswith("_") else table.setdefault(part, {})
        if value is None:
            del table[last]
        else:
            table[last] = value
    return tables


def test_a_class_has_a_path_of_links() -> None:
    scenario = Scenario.from_dict(HOME)
    group = scenario.populations[0]
    assert group.count == 6
    assert [on.name for on in group.route] == ["core", "line"]
    assert [on.instances for on in group.route] == [1, 3]
    assert [on.name for on in group.back] == ["up"]
    sending = 1500 * 8 / 1e9 + 1500 * 8 / 100e6 + 52 * 8 / 20e6
    assert group.rtt_s == pytest.approx(0.036 + 0.005 + sending)
    assert group.route[1].buffer_pkts == -(-group.rtt_s * 100e6 // 12000)


def test_unlimited_bottleneck_of_several_classes_is_one_link() -> None:
    scenario = Scenario.from_dict(
        {
            "network": {"rtt": "50ms"},
            "traffic": {"kind": "bulk"},
            "tcp": {"stack": "linux-cubic", "receiver_window": 10},
            "run": {"duration": "5s"},
            "class": [{"name": "far", "flows": 2}, {"name": "near", "flows": 3}],
        }
    )
    assert list(scenario.topology.links) == [scenario.topology.headline]


def test_an_upload_takes_the_way_back() -> None:
    upload = Scenario.from_dict(changed(class___0__sends="client")).populations[0]
    assert [on.name for on in upload.route] == ["up"]
    assert [on.name for on in upload.back] == ["core", "line"]


def test_the_expanded_form_is_the_same_scenario() -> None:
    tables = changed(link__core__at={"20s": {"rate": "500mbit"}, "35s": {"loss": "1%"}})
    scenario = Scenario.from_dict(tables)
    again = Scenario.from_dict(tomllib.loads(scenario.to_toml()))
    assert again == scenario
    assert "[link.core]" in scenario.to_toml()
    assert [time for time, _ in scenario.links["core"].changes] == [20.0, 35.0]


def test_changes_by_dotted_key_and_of_the_headline_link() -> None:
    scenario = Scenario.from_dict(HOME)
    assert scenario.headline == "core"
    assert scenario.with_changes({"link.core.rate": "2gbit"}).links["core"].rate == 2e9
    slower = scenario.with_changes({"network.bottleneck.rate": "5mbit"})
    assert slower.bottleneck.rate == 5e6
    assert scenario.with_changes({"probes.link": "up"}).bottleneck.rate == 20e6


def test_the_headline_is_the_shared_link_with_the_lowest_rate_per_flow() -> None:
    tables: dict[str, Any] = {
        "link": {"a": {"rate": "30mbit"}, "b": {"rate": "20mbit"}},
        "class": [
            {"name": "far", "flows": 1, "route": ["a", "b"]},
            {"name": "near", "flows": 9, "route": ["a"]},
        ],
        "network": {"rtt": "20ms"},
        "traffic": {"kind": "bulk"},
        "run": {"duration": "60s"},
    }
    assert Scenario.from_dict(tables).headline == "a"


def test_changes_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "pass.csv").write_text("time,rate,delay\n20s,500mbit,\n35s,,40ms\n")
    tables = changed(link__core__at={"file": "pass.csv"})
    changes = Scenario.from_dict(tables, folder=tmp_path).links["core"].changes
    assert [(time, change.rate, change.delay) for time, change in changes] == [
        (20.0, 5e8, None),
        (35.0, None, 0.04),
    ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"class___0__route": ["cor", "line"]},
            'class.video.route: there is no link "cor" (did you mean "core"?); use core, line, up',
        ),
        (
            {"class___0__route": ["core", "line", "core"]},
            'class.video.route: passes "core" twice; list each link once',
        ),
        (
            {"link__free": {"buffer": "10pkt"}, "class___0__route": ["core", "line", "free"]},
            "link.free.buffer: a link without a rate has no queue; remove this key, or use "
            'rate = "10mbit"',
        ),
        (
            {
                "link__core__docsis": {},
                "link__core__jitter": {"distribution": "constant", "value": "1ms"},
            },
            "link.core.jitter: docsis and jitter are mutually exclusive on one link; remove "
            "jitter, or use another link",
        ),
        (
            {"link__core__docsis": {"min_delay": "20s"}},
            'link.core.docsis.min_delay: must be at most 1s; use "1.7ms", for example',
        ),
        (
            {"link__core__docsis": {"map_interval": "0ms"}},
            'link.core.docsis.map_interval: "0ms" must be above 0; use "1s", for example',
        ),
        (
            {"link__core__at": {"0s": {"rate": "1mbit"}}},
            "link.core.at.0s: is the start of the run; set the value as a key of the link",
        ),
        (
            {"link__core__at": {"60s": {"rate": "1mbit"}}},
            "link.core.at.60s: is after the end of the run; use an earlier time, or a longer run",
        ),
        (
            {"link__core__at": {"20": {"rate": "1mbit"}}},
            'link.core.at.20: "20" has no unit; use "20s"',
        ),
        (
            {"link__core__at": {"20s": {}}},
            'link.core.at.20s: changes nothing; use { rate = "500mbit" }, for example',
        ),
        (
            {"site__shop": {"count": 2}},
            'site.shop: no class belongs to this site; use site = "shop" in a [[class]] table',
        ),
        (
            {"site__home__count": 0},
            "site.home.count: 0 is too small; use at least 1",
        ),
        (
            {"class___0__site": None, "link__up__each": None},
            'class.video.route: each member of site home has a separate link "line"; use site = '
            '"home" here',
        ),
        (
            {"link__line__each": "hom"},
            'link.line.each: there is no site "hom" (did you mean "home"?); use sender, home',
        ),
        (
            {"link__spare": {"rate": "1mbit"}},
            "link.spare: no class uses this link; add it to a route, or remove the table",
        ),
        (
            {"class___0__route": None},
            'class.video.route: missing; add route = ["core", "line"], the links in order',
        ),
        (
            {
                "link__core": {},
                "class___0__route": ["core"],
                "link__line": None,
            },
            "class.video.route: nothing limits the flows; use a rate or a loss, or "
            "tcp.receiver_window = 44",
        ),
        (
            {"class___0__rtt": "1ms", "class___0__delay": None},
            "class.video.rtt: must be at least "
            '"5.2ms", to cover the delays and transmission times of the route',
        ),
        (
            {"class___0__rtt": "100ms"},
            "class.video.delay: rtt and the delays are mutually exclusive; use one",
        ),
        (
            {"network": {"bottleneck": {"rate": "1mbit"}}},
            "network.bottleneck: cannot be combined with [link.NAME] tables; set this key on a "
            "link, or remove this key",
        ),
        (
            {"probes__link": "cor"},
            'probes.link: there is no link "cor" (did you mean "core"?); use core, line, up',
        ),
        (
            {"link__core__loss": {"model": "rest-of-round", "rate": "1%"}},
            "link.core.loss: correlated loss requires the rounds of TCP, which a link cannot "
            'detect; use a random loss, such as "1%"',
        ),
        (
            {"link__core__rat": "1mbit"},
            'link.core.rat: unknown key; did you mean "rate"?',
        ),
    ],
)
def test_each_error_gives_one_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        Scenario.from_dict(changed(**values))
    assert str(error.value).splitlines() == [message]


def test_a_buffer_of_a_bdp_needs_one_rtt() -> None:
    tables = changed(link__core__buffer="1bdp")
    tables["class"].append({**tables["class"][0], "name": "far", "delay": "60ms"})
    with pytest.raises(
        ScenarioError, match=r"link\.core\.buffer: a buffer in bdp requires one RTT"
    ):
        Scenario.from_dict(tables)


def test_routes_need_links() -> None:
    tables = {
        "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit"}},
        "traffic": {"kind": "bulk"},
        "class": [{"name": "game", "flows": 2, "route": ["core"]}],
        "run": {"duration": "60s"},
    }
    with pytest.raises(ScenarioError) as error:
        Scenario.from_dict(tables)
    assert str(error.value) == (
        "class.game.route: requires [link.NAME] tables; add them, or remove this key"
    )


SHORT: dict[str, Any] = {
    "network": {
        "rtt": "50ms",
        "ingress": {"rate": "100mbit"},
        "bottleneck": {"rate": "10mbit", "buffer": "1bdp"},
        "return": {"rate": "1mbit", "buffer": "20pkt"},
        "ack_loss": "1%",
        "jitter": {"distribution": "exponential", "mean": "1ms"},
    },
    "class": [
        {"name": "near", "flows": 2},
        {"name": "far", "flows": 1, "rtt": "90ms", "egress": {"rate": "5mbit", "loss": "1%"}},
    ],
    "traffic": {"kind": "bulk"},
    "run": {"duration": "60s"},
}


def test_the_short_form_is_expanded_to_links_and_routes() -> None:
    short = Scenario.from_dict(SHORT)
    topology = short.topology
    assert list(topology.links) == [
        "return",
        "ingress-near",
        "bottleneck",
        "ingress-far",
        "egress-far",
    ]
    links = topology.links
    assert (topology.headline, links["bottleneck"].each) == ("bottleneck", None)
    assert links["ingress-near"].each == links["egress-far"].each == "sender"
    assert links["bottleneck"].jitter == short.network.jitter
    assert (links["return"].rate, links["return"].loss) == (1e6, short.network.ack_loss)
    assert [routes.route for routes in topology.classes] == [
        [["ingress-near", "bottleneck"]],
        [["ingress-far", "bottleneck", "egress-far"]],
    ]
    # A packet and its acknowledgement take the base round-trip time on the idle path.
    for routes, group in zip(topology.classes, short.populations, strict=True):
        assert routes.back == [["return"]]
        there = sum(8 * 1500 / links[name].rate for name in routes.route[0])
        idle_s = there + 8 * 40 / 1e6 + routes.delay_s + routes.back_delay_s
        assert idle_s == pytest.approx(group.rtt_s, abs=1e-9)


def test_a_link_that_only_delays_exists_once_and_links_without_effect_do_not() -> None:
    network = {
        "ingress": {"delay": "5ms"},
        "bottleneck": {"rate": "10mbit", "delay": "10ms"},
        "egress": {},
    }
    scenario = Scenario.from_dict(
        {k: v for k, v in SHORT.items() if k != "class"}
        | {
            "network": network,
            "traffic": {"kind": "bulk", "flows": 3},
        }
    )
    topology = scenario.topology
    assert list(topology.links) == ["ingress", "bottleneck"]
    assert topology.links["ingress"].each is None
    (routes,) = topology.classes
    # The acknowledgement takes the same propagation delays, and transmission times without a queue.
    assert routes.delay_s == 0
    assert routes.back_delay_s == pytest.approx(0.015 + 8 * 40 / 10e6, abs=1e-12)


ONE_LINK: dict[str, Any] = {
    "link": {"core": {"rate": "10mbit", "loss": "1%"}},
    "class": [{"name": "web", "flows": 2, "route": ["core"], "delay": "20ms"}],
    "traffic": {"kind": "bulk"},
    "tcp": {"stack": "linux-reno"},
    "run": {"duration": "60s"},
}


def test_a_formula_applies_to_a_route_as_to_the_short_form() -> None:
    short = {
        **{key: ONE_LINK[key] for key in ("traffic", "tcp", "run")},
        "network": {"bottleneck": {"rate": "10mbit", "loss": "1%", "delay": "20ms"}},
        "class": [{"name": "web", "flows": 2}],
    }
    # The short form transmits acks over the bottleneck, in 32 us.
    own, other = (
        answer(Scenario.from_dict(tables), "pftk")[0]["send_rate_pps"]
        for tables in (ONE_LINK, short)
    )
    assert own == pytest.approx(other, rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"link.thin.rate": "5mbit", "class.web.route": ["core", "thin"]},
            "a formula models one queue, but core and thin limit the path",
        ),
        (
            {"link.core.at": {"20s": {"rate": "5mbit"}}},
            "a formula models a constant path, but link core changes with time",
        ),
        (
            {"link.up.rate": "5mbit", "class.web.back": ["up"], "class.web.sends": "both"},
            "a formula models data in one direction, but acks share link up with data",
        ),
    ],
)
def test_a_formula_states_why_it_does_not_apply(changes: dict[str, Any], reason: str) -> None:
    result = answer(Scenario.from_dict(ONE_LINK).with_changes(changes), "pftk")[0]
    assert not result.applies
    assert result.reason == reason


def test_hosts_and_codepoints_are_numbered_for_the_simulator() -> None:
    tables = changed(class___0__host="laptop", class___0__dscp="ef")
    tables["class"] += [
        {**tables["class"][0], "name": "game", "host": "console", "dscp": 8},
        {**tables["class"][0], "name": "mail", "dscp": "be"},
    ]
    classes = make_configuration(Scenario.from_dict(tables), 0.0)["classes"]
    assert [(each["host"], each["dscp"]) for each in classes] == [(0, 46), (1, 8), (0, 0)]


def test_an_unknown_codepoint_is_refused() -> None:
    with pytest.raises(ScenarioError) as error:
        Scenario.from_dict(changed(class___0__dscp="af44"))
    assert str(error.value) == (
        'class.video.dscp: "af44" is not a codepoint (did you mean "af43"?); use "ef", or 0 to 63'
    )
