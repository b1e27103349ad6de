"""Cross traffic in scenarios: hops, units, and the resulting configuration."""

import tomllib
from typing import Any

import pytest
import tcpcast
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Scenario

HOPS: list[dict[str, Any]] = [
    {"name": "access", "rate": "20mbit", "buffer": "100pkt", "shared": False},
    {"name": "link", "rate": "10mbit", "buffer": "100pkt"},
]


def scenario(*cross: dict[str, Any], **tables: Any) -> Scenario:
    network = {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "100pkt"}}
    base = {"network": network, "traffic": {"kind": "bulk", "flows": 2}, "run": {"duration": "60s"}}
    return Scenario.from_dict(base | {"cross": list(cross)} | tables)


NOISE = {"model": "fgn", "mean": "80%", "sd": "4mbit", "hurst": 0.7, "name": "noise"}
SOURCES = {"model": "pareto", "mean": "3mbit", "sources": 20, "on": "100ms", "off": "300ms"}
RECORDING = {"model": "trace", "times": [1, 2, 4], "bytes": [3000, 0, 1500.5]}


@pytest.mark.parametrize("stream", [NOISE, SOURCES, RECORDING, {"model": "poisson", "mean": "9%"}])
def test_resolved_cross_traffic_reads_back(stream: dict[str, Any]) -> None:
    original = scenario(stream)
    assert Scenario.from_dict(original.resolved()) == original
    reread = Scenario.from_dict(tomllib.loads(original.to_toml()))
    assert reread == original
    assert reread.digest() == original.digest() != scenario().digest()


def process(cross_scenario: Scenario) -> Any:
    (stream,) = make_configuration(cross_scenario, 0.0)["cross"]
    return stream["process"]


def test_rates_and_shares_are_converted_to_packets() -> None:
    distribution = process(scenario(NOISE))
    assert distribution["mean"] == pytest.approx(8e6 / 12_000)
    assert distribution["sd"] == pytest.approx(4e6 / 12_000)
    # 60 s in bins of 10 ms, rounded up to a power of two.
    assert (distribution["bin_ns"], distribution["bins"]) == (10_000_000, 8192)
    assert process(scenario(SOURCES))["peak"] == pytest.approx(3e6 / 12_000 / 20 * 4)


def test_recording_starts_at_first_time_without_period() -> None:
    distribution = process(scenario(RECORDING))
    assert distribution["times_ns"] == [0, 10**9, 3 * 10**9]
    assert distribution["packets"] == [2.0, 0.0, 1500.5 / 1500]
    # The period ends a mean gap of 1.5 s after the last time.
    assert distribution["period_ns"] == 4.5e9
    assert distribution["offset_ns"] is None
    shifted = scenario(RECORDING | {"period": "10s", "offset": "2s"})
    distribution = process(shifted)
    assert distribution["times_ns"] == [1e9, 2e9, 4e9]
    assert (distribution["period_ns"], distribution["offset_ns"]) == (1e10, 2e9)
    assert shifted.cross[0].mean_bps(1e9) == pytest.approx(8 * 4500.5 / 10)


def test_changes_select_stream_by_name_or_index() -> None:
    original = scenario(SOURCES, NOISE)
    changed = original.with_changes({"cross.noise.mean": "7mbit", "cross.0.alpha": 1.9})
    assert str(changed.resolved()["cross"][1]["mean"]) == "7mbit"
    assert changed.resolved()["cross"][0]["alpha"] == 1.9
    with pytest.raises(ScenarioError, match="cross contains no entry"):
        original.with_changes({"cross.nois.mean": "7mbit"})


def test_default_hop_of_stream_is_bottleneck() -> None:
    network = {"rtt": "50ms", "hop": HOPS}
    two_streams = scenario(NOISE, NOISE | {"name": "other", "hop": "access"}, network=network)
    streams: Any = make_configuration(two_streams, 0.0)["cross"]
    assert [stream["link"] for stream in streams] == [1, 0]
    assert [stream["packet_bytes"] for stream in streams] == [1500, 1500]
    # Shares are of the hop's own rate.
    assert streams[1]["process"]["mean"] == 2 * streams[0]["process"]["mean"]
    # 60 s of 10 ms bins, rounded up to a power of two.
    assert streams[0]["process"]["bins"] == 2**13
    assert streams[0]["fluid"] is None
    # At the hop of a single source, twice as many for each of two sources.
    assert streams[1]["fluid"] == {"bin_ns": 10_000_000, "bins": 2**14, "series": 4}
    with pytest.raises(ScenarioError, match=r'no hop "acess" \(did you mean "access"\?\)'):
        scenario(NOISE | {"hop": "acess"}, network=network)


def test_series_with_many_packets_are_shorter() -> None:
    network = {"rtt": "50ms", "hop": HOPS}
    fast = {"model": "poisson", "mean": "18mbit", "hop": "access", "bin": "10ms"}
    noise = NOISE | {"hop": "access"}
    both = scenario(fast, noise, network=network)
    streams = make_configuration(both, 0.0)["cross"]
    # 15 packets per bin, at most 4 million; streams of one hop have the same length.
    fluids = [stream["fluid"] for stream in streams]
    assert [(fluid["bins"], fluid["series"]) for fluid in fluids] == [(2**18, 1)] * 2
    fast = fast | {"bin": "1s"}
    (stream,) = make_configuration(scenario(fast, network=network), 0.0)["cross"]
    assert stream["fluid"]["bins"] == 2**11


@pytest.mark.parametrize(
    ("stream", "hop", "error"),
    [
        (
            NOISE,
            {"rate": "unlimited"},
            "cross traffic requires a hop with a rate; add network.hop.acc",
        ),
        (
            NOISE | {"mean": "100%"},
            {"buffer": "unlimited"},
            r"the queue grows without limit; add network\.hop\.access\.buffer =",
        ),
    ],
)
def test_per_source_hop_needs_rate_and_limited_load(
    stream: dict[str, Any], hop: dict[str, Any], error: str
) -> None:
    network = {"rtt": "50ms", "hop": [HOPS[0] | hop, HOPS[1]]}
    with pytest.raises(ScenarioError, match=error):
        scenario(stream | {"hop": "access"}, network=network)


@pytest.mark.parametrize(
    ("sources", "run", "bins", "series"),
    [
        (1, {"duration": "0.5s"}, 2**10, 4),
        (5, {"duration": "0.5s"}, 2**10, 8),
        (10_000, {"duration": "0.5s"}, 2**10, 2**10),
        (10_000, {"duration": "700s"}, 2**18, 4),
        (1, {"duration": "10h"}, 2**18, 4),
        (9, {"transfers": 100, "warmup": "1s"}, 2**18, 4),
    ],
)
def test_noise_series_cover_the_run_and_the_sources(
    sources: int, run: dict[str, Any], bins: int, series: int
) -> None:
    traffic = {
        "kind": "on-off",
        "sources": sources,
        "off": {"distribution": "constant", "value": "1s"},
        "size": {"distribution": "constant", "value": "3pkt"},
    }
    tables = {"network": {"rtt": "50ms", "hop": HOPS}, "traffic": traffic, "run": run}
    (config,) = make_configuration(scenario(NOISE | {"hop": "access"}, **tables), 0.0)["cross"]
    assert (config["fluid"]["bins"], config["fluid"]["series"]) == (bins, series)


def test_streams_at_a_per_source_hop_need_equal_bins() -> None:
    network = {"rtt": "50ms", "hop": HOPS}
    other = NOISE | {"name": "other", "hop": "access", "bin": "20ms"}
    with pytest.raises(ScenarioError, match=r'cross.1.bin: another stream at "access" has bins of'):
        scenario(NOISE | {"hop": "access"}, other, network=network)
    # At a shared hop, each stream has its own bin.
    assert scenario(NOISE, NOISE | {"name": "other", "bin": "20ms"}).cross[1].bin_s == 0.02


def test_cross_traffic_overload_has_a_warning() -> None:
    (warning,) = scenario(NOISE | {"mean": "120%"}).warnings()
    assert warning == "cross traffic alone is 120 % of the rate of the bottleneck"
    assert scenario(NOISE).warnings() == []


@pytest.mark.parametrize("queue", ["droptail", "fq"])
def test_overload_with_unlimited_buffer_is_rejected(queue: str) -> None:
    link = {"rate": "10mbit", "queue": queue}
    tcp = {"receiver_window": 40}
    twice: list[dict[str, Any]] = [NOISE, RECORDING | {"bytes": [2e5, 0, 2e5]}]
    # A load of 80 % and 7 %.
    assert scenario(*twice, network={"rtt": "50ms", "bottleneck": link}, tcp=tcp).warnings() == []
    error = (
        r'cross\.0: cross traffic alone is 112 % of the rate of "bottleneck", so the '
        r"queue grows without limit; add network\.bottleneck\.buffer = "
    )
    more = RECORDING | {"bytes": [3e5, 0, 3e5], "times": [0, 0.5, 1]}
    with pytest.raises(ScenarioError, match=error):
        scenario(NOISE, more, network={"rtt": "50ms", "bottleneck": link}, tcp=tcp)
    # Cutting negative rates raises the mean of noise.
    cut = NOISE | {"sd": "250%"}
    with pytest.raises(ScenarioError, match="cross traffic alone is 145 % of"):
        scenario(cut, network={"rtt": "50ms", "bottleneck": link}, tcp=tcp)
    flood = {"model": "poisson", "mean": "10000%", "hop": "first"}
    hops = [link | {"name": "first"}, {"name": "second", "rate": "5mbit", "buffer": "9pkt"}]
    with pytest.raises(
        ScenarioError, match=r'alone is 10,000 % of .*network\.hop\.first\.buffer = "'
    ):
        scenario(flood, network={"rtt": "50ms", "hop": hops}, tcp=tcp)
    scenario(flood, network={"rtt": "50ms", "hop": [hops[0] | {"buffer": "9pkt"}, hops[1]]})


def test_noise_with_many_negative_rates_has_a_warning() -> None:
    """For sd = mean, Phi(-1) = 15.9 % is cut, and the mean is Phi(1) + phi(1) = 1.0833."""
    assert scenario(NOISE | {"mean": "5mbit", "sd": "2.5mbit"}).warnings() == []
    (warning,) = scenario(NOISE | {"mean": "5mbit", "sd": "5mbit"}).warnings()
    assert warning == (
        "the mean rate of cross.noise is 1.08 times the specified rate, because 15.9 % of the "
        "drawn rates are below 0 and set to 0; use a smaller sd"
    )
    # Extreme permitted values.
    for sd in ("1e-300%", "1bit"):
        assert scenario(NOISE | {"sd": sd}).warnings() == []
    (warning,) = scenario(NOISE | {"mean": "1bit", "sd": "8mbit"}).warnings()
    assert "is 3,191,539 times the specified rate" in warning


def test_bin_longer_than_run_is_reported() -> None:
    (answer,) = tcpcast.run(
        scenario(NOISE | {"bin": "100s"}, run={"duration": "2s", "warmup": "1s"}), ["packet"]
    )
    assert (
        "the rate of cross.noise changes every 100 s, but the run lasts only 2 s; set a shorter "
        "bin, or make the run longer"
    ) in answer.warnings


def test_isolated_transfers_reject_cross_traffic() -> None:
    alone = {"traffic": {"kind": "transfers", "size": ["3pkt"], "count": 10}, "run": {}}
    with pytest.raises(
        ScenarioError, match=r"cross\.0: isolated transfers cannot share the path with cross"
    ):
        scenario(NOISE, **alone)


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ("", "contains no rows"),
        ("time_s,bytes\n", "contains no rows"),
        ("1,2,3\n", "line 1: the number of columns is 3; use two columns: time_s and bytes"),
        ("time_s,bytes\n1,x\n", 'line 2: "x" is not a number'),
        ("1,-5\n", 'line 1: "-5" is not a number'),
        (
            "1,5\n" * 100_001,
            "contains more than 100000 rows; use one row with the total bytes of each interval "
            "of 10 ms",
        ),
    ],
)
def test_invalid_recording_is_rejected(tmp_path: Any, rows: str, error: str) -> None:
    (tmp_path / "cross.csv").write_text(rows)
    tables = scenario().resolved() | {"cross": [{"model": "trace", "file": "cross.csv"}]}
    with pytest.raises(ScenarioError, match=error):
        Scenario.from_dict(tables, folder=tmp_path)


def test_packets_per_bin_are_limited() -> None:
    network = {"rtt": "50ms", "hop": HOPS}
    fast = {"model": "poisson", "mean": "12mbit", "hop": "access"}
    scenario(fast | {"bin": "30s"}, network=network)
    with pytest.raises(
        ScenarioError,
        match=r"bin: a bin contains 3,600,000 packets, which is too many; .* about 30s",
    ):
        scenario(fast | {"bin": "1h"}, network=network)
