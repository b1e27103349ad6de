"""Defaults of classes: the top level needs a key only if a class lacks it."""

import tomllib

import jsonschema
import pytest
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Population, Scenario
from tcpcast.scenario.traffic import OnOff, Transfers
from test_schema import SCHEMA

VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

NETWORK = '[network]\nrtt = "50ms"\nbottleneck = { rate = "10mbit", buffer = "100pkt" }\n'
RUN = '[run]\nduration = "60s"\n'
BULK = 'traffic = { kind = "bulk", flows = 2 }'


def one_class(name: str, *lines: str) -> str:
    return "\n".join(["[[class]]", f'name = "{name}"', *lines, ""])


def populations(text: str) -> list[Population]:
    tables = tomllib.loads(text + RUN if "[run]" not in text else text)
    VALIDATOR.validate(tables)
    scenario = Scenario.from_dict(tables)
    reread = Scenario.from_dict(scenario.resolved())
    assert reread == scenario
    assert reread.populations == scenario.populations
    VALIDATOR.validate(scenario.resolved())
    return scenario.populations


def refused(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(tomllib.loads(text))
    return str(caught.value).splitlines()


SIZES = (
    RUN
    + NETWORK
    + '[traffic]\nkind = "on-off"\noff = { distribution = "exponential", mean = "1s" }\n'
)


def test_top_level_size_is_optional_if_each_class_has_one() -> None:
    size = 'traffic = {{ size = {{ distribution = "constant", value = "{}pkt" }} }}'
    near = one_class("near", size.format(9), "sources = 3")
    far = one_class("far", size.format(8), "sources = 4")
    traffic = [group.traffic for group in populations(SIZES + near + far)]
    assert [t.size.mean_value() for t in traffic if isinstance(t, OnOff)] == [9, 8]
    assert refused(SIZES + near + one_class("far", "sources=4")) == [
        'class.far.traffic.size: missing; add size = { distribution = "exponential", mean = '
        '"12pkt", '
        'minimum = "3pkt" }'
    ]
    (only,) = refused(SIZES + one_class("near", "sources=3") + one_class("far", "sources=4"))
    assert only.startswith("traffic.size: missing; add size")


def test_class_completes_a_top_level_distribution() -> None:
    distribution = SIZES + 'size = { distribution = "exponential", minimum = "3pkt" }\n'
    near = one_class("near", 'traffic = { size = { mean = "9pkt" } }', "sources = 3")
    (group,) = populations(distribution + near)
    assert isinstance(group.traffic, OnOff)
    assert group.traffic.size.mean_value() == 9
    (only,) = refused(distribution + near + one_class("far", "sources = 4"))
    assert only.startswith("class.far.traffic.size.mean: missing; add mean")


def test_replaced_invalid_top_level_value_is_still_reported() -> None:
    wrong = SIZES.replace('"1s"', '"1 parsec"')
    near = 'size = { distribution = "constant", value = "9pkt" }, off = { mean = "2s" }'
    lines = refused(wrong + one_class("near", f"traffic = {{ {near} }}", "sources = 3"))
    assert lines[0].startswith('traffic.off.mean: "1 parsec"')


def test_class_arrivals_complete_top_level_transfers() -> None:
    top = RUN + NETWORK + '[traffic]\nkind = "transfers"\n'
    top += 'size = { distribution = "exponential", mean = "9pkt" }\n'
    rate = 'traffic = { arrivals = { distribution = "poisson", rate = "3/s" } }'
    web, long = populations(top + one_class("web", rate) + one_class("long", BULK))
    assert isinstance(web.traffic, Transfers)
    assert web.traffic.mean_size_pkts == 9
    assert long.count == 2
    (only,) = refused(top + one_class("web", rate) + one_class("other"))
    assert only.startswith("class.other.traffic.size: a distribution requires arrivals")


def test_unused_top_level_table_may_be_incomplete() -> None:
    top = RUN + NETWORK + '[traffic]\nkind = "transfers"\n'
    assert [group.count for group in populations(top + one_class("long", BULK))] == [2]


def test_key_of_traffic_that_no_class_uses_is_refused() -> None:
    """Regression: ``--set traffic.http=3`` changed nothing if each class had traffic of its own."""
    top = RUN + NETWORK + '[traffic]\nreads = "1mbit"\n'
    reason = "no class uses this key, because each class defines its traffic"
    assert refused(top + one_class("long", BULK)) == [
        f"traffic.reads: {reason}; use class.long.traffic.reads"
    ]


def test_unknown_key_of_a_class_with_traffic_names_the_class() -> None:
    """Regression: the message named ``traffic.connection``, which was then refused as well."""
    assert refused('connection = "new"\n' + RUN + NETWORK + one_class("long", BULK)) == [
        'connection: unknown key; use "class.long.traffic.connection"'
    ]
    classes = one_class("long", BULK) + one_class("far", BULK)
    assert refused('http = "3"\n' + RUN + NETWORK + classes) == [
        'http: unknown key; use "class.NAME.traffic.http"'
    ]


def test_top_level_rtt_is_optional_if_each_class_has_one() -> None:
    top = RUN + NETWORK.replace('rtt = "50ms"\n', "")
    near, far = one_class("near", 'rtt = "10ms"', BULK), one_class("far", 'rtt = "90ms"', BULK)
    assert [group.rtt_s for group in populations(top + near + far)] == [0.01, 0.09]
    delayed = one_class("far", 'egress = { delay = "20ms" }', BULK)
    assert populations(top + near + delayed)[1].forward_delay_s == 0.02
    missing = 'missing; add rtt = "50ms", or a delay for each link'
    assert refused(top + near + one_class("far", BULK)) == [f"class.far.rtt: {missing}"]
    neither = one_class("near", BULK) + one_class("far", BULK)
    assert refused(top + neither) == [f"network.rtt: {missing}"]


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('"100pkt"', '"1bdp"', "bottleneck.buffer"),
        ('"100pkt"', '"100pkt", queue = "red"', "bottleneck.queue"),
        ('rtt = "50ms"', 'return_delay = "60ms"', "return_delay"),
        ('rtt = "50ms"', 'return = { rate = "1mbit", buffer = "1bdp" }', "return.buffer"),
    ],
)
def test_key_in_bdp_requires_top_level_rtt(old: str, new: str, key: str) -> None:
    top = RUN + NETWORK.replace(old, new).replace('rtt = "50ms"\n', "")
    assert refused(top + one_class("near", 'rtt = "10ms"', BULK)) == [
        f'network.rtt: missing, and {key} depends on it; use "50ms", for example'
    ]


def test_class_buffer_in_bdp_requires_network_rtt() -> None:
    top = RUN + NETWORK.replace('rtt = "50ms"\n', "")
    near = one_class("near", 'rtt = "10ms"', 'egress = { rate = "5mbit", buffer = "1bdp" }', BULK)
    assert refused(top + near) == [
        'class.near.egress.buffer: "1bdp" requires network.rtt; use an RTT, or a buffer such as '
        '"150pkt"'
    ]


def test_class_completes_a_top_level_link() -> None:
    top = RUN + NETWORK + 'egress = { buffer = "2bdp" }\n'
    near = one_class("near", 'egress = { rate = "2mbit" }', BULK)
    (group,) = populations(top + near)
    assert (group.egress.rate, str(group.egress.buffer)) == (2e6, "2bdp")
    assert refused(top + near + one_class("far", BULK)) == [
        'class.far.egress.buffer: a bandwidth-delay product requires a rate; use rate = "10mbit"'
    ]
    slow = RUN + NETWORK + 'egress = { rate = "1kbit" }\n'
    assert populations(slow + near)[0].egress.rate == 2e6
    (only,) = refused(slow + near + one_class("far", BULK))
    assert only.startswith("class.far.rtt: 50ms is less than the transmission times")


def test_top_level_stack_is_optional_if_each_class_has_one() -> None:
    top = RUN + NETWORK + '[tcp]\nack_timeout = "100ms"\n'
    reno = one_class("reno", 'tcp = { stack = "rfc-reno" }', BULK)
    pftk = one_class("pftk", 'tcp = { stack = "pftk-reno" }', BULK)
    assert [g.tcp.stack for g in populations(top + reno + pftk)] == ["rfc-reno", "pftk-reno"]
    (only,) = refused(top + reno + one_class("other", BULK))
    assert only.startswith("tcp.ack_timeout: linux-cubic adapts the delay of acks to the times")


def test_sizes_in_bytes_use_the_payload_of_the_class() -> None:
    top = RUN + NETWORK + '[traffic]\nkind = "transfers"\nsize = "29200B"\n'
    top += (
        'arrivals = { distribution = "poisson", rate = "5/s" }\n[tcp]\nreceiver_window = "29200B"\n'
    )
    stamps, plain = populations(
        top + one_class("stamps") + one_class("plain", "tcp = { timestamps = false }")
    )
    assert isinstance(stamps.traffic, Transfers)
    assert isinstance(plain.traffic, Transfers)
    assert (stamps.traffic.sizes, plain.traffic.sizes) == ([21], [20])
    assert (stamps.tcp.receiver_window, plain.tcp.receiver_window) == (20, 20)
    distribution = top.replace(
        '"29200B"\narr', '{ distribution = "constant", value = "29200B" }\narr'
    )
    _, other = populations(
        distribution + one_class("stamps") + one_class("plain", "tcp = { timestamps = false }")
    )
    assert isinstance(other.traffic, Transfers)
    assert other.traffic.mean_size_pkts == 20
    (only,) = refused(
        top + one_class("plain", "tcp = { timestamps = false }", 'traffic = { size = "9 ms" }')
    )
    assert only.startswith('class.plain.traffic.size: "9 ms" is not a size')
