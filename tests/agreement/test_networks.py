"""Engine packet on networks of links: results per link and class, and what must not matter."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast import Answer, Scenario, networks
from tcpcast.process.errors import ScenarioError

RUN = {"run": {"duration": "20s", "warmup": "4s", "seed": 1}}


def simulate(tables: dict[str, Any], **changes: Any) -> Answer:
    """Return the answer of the packet engine to tables with changes by dotted key."""
    scenario = Scenario.from_dict(RUN | tables)
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    (answer,) = tcpcast.run(scenario.with_changes(dotted), ["packet"])
    return answer


def by(answer: Answer, table: str, key: str, name: str) -> dict[str, float]:
    """Return the numbers of the row of a table whose key has this name."""
    columns = answer.tables[table]
    row = columns[key].tolist().index(name)
    return {
        column: float(values[row])
        for column, values in columns.items()
        if values.dtype.kind in "fi"
    }


def home(**uplink: Any) -> dict[str, Any]:
    """Return a home with a download, an upload and a ping."""
    way = {"route": ["down"], "back": ["up"], "delay": "10ms", "flows": 1}
    return {
        "link": {
            "down": {"rate": "100mbit", "buffer": "100pkt"},
            "up": {"rate": "10mbit", "buffer": "150KB", **uplink},
        },
        "class": [
            {"name": "download", "traffic": {"kind": "bulk"}, **way},
            {"name": "upload", "traffic": {"kind": "bulk"}, "sends": "client", **way},
            {"name": "ping", "traffic": {"kind": "ping", "interval": "50ms"}, **way},
        ],
    }


def test_an_upload_delays_the_acks_of_a_download_and_a_ping() -> None:
    full, managed = simulate(home()), simulate(home(queue="fq_codel"))
    for answer in (full, managed):
        up = by(answer, "by_link", "link", "up")
        assert up["utilisation"] > 0.9
        assert up["utilisation_low"] <= up["utilisation"] <= up["utilisation_high"]
    slow, fast = (by(answer, "by_class", "name", "ping") for answer in (full, managed))
    # A full buffer takes 120 ms; FQ-CoDel sends sparse flows first.
    assert slow["delay_p95_s"] > 0.08
    assert fast["delay_p95_s"] < 0.05
    assert fast["delay_p50_s"] < slow["delay_p50_s"]
    queued = by(full, "by_link", "link", "up")
    assert queued["queue_delay_mean_s"] < queued["queue_delay_p95_s"] <= 0.121
    downloads = [by(answer, "by_class", "name", "download") for answer in (full, managed)]
    assert downloads[1]["goodput_bps"] > downloads[0]["goodput_bps"]


@pytest.mark.parametrize(("stack", "size"), [("linux-cubic", 52), ("rfc-sack", 40)])
def test_acks_with_timestamps_are_longer(stack: str, size: int) -> None:
    answer = simulate(home(), tcp__stack=stack, link__up__rate="50mbit", link__down__loss="0%")
    columns = answer.tables["by_link_class"]
    (row,) = (
        index
        for index, pair in enumerate(zip(columns["link"], columns["class"], strict=True))
        if pair == ("up", "download")
    )
    length = columns["rate_bps"][row] * 16 / 8 / columns["packets"][row]
    # A few acks have SACK blocks.
    assert size <= length < size + 2


def test_the_overhead_of_a_bucket_takes_its_share_of_the_rate() -> None:
    bucket = {"bucket": "10mbit", "burst": "3000B", "overhead": 14}
    tables = home(rate=bucket, buffer="50pkt")
    tables["class"] = [entry for entry in tables["class"] if entry["name"] == "upload"]
    used = by(simulate(tables), "by_link", "link", "up")["utilisation"]
    assert used == pytest.approx(1500 / 1514, abs=1e-3)


def test_responsiveness_of_a_known_queue() -> None:
    # A window of 100 packets on 10 Mbit/s takes 120 ms, whatever its queue; the ping waits for all
    # of it, too: 500 round trips per minute.
    tables = home(buffer="1000pkt")
    tables["class"] = [entry for entry in tables["class"] if entry["name"] != "download"]
    answer = simulate(tables, tcp__receiver_window="100pkt")
    assert answer.metrics["rpm"].value == pytest.approx(500, rel=0.02)
    # With a queue per flow, the ping takes 20 ms, its transmission, and .6 ms for half a packet.
    managed = simulate(tables, tcp__receiver_window="100pkt", link__up__queue="fq")
    assert managed.metrics["rpm"].value == pytest.approx(60 / ((0.0207 + 0.12) / 2), rel=0.02)


def test_packets_of_each_class_on_each_link_add_up() -> None:
    answer = simulate(home())
    links, pairs = answer.tables["by_link"], answer.tables["by_link_class"]
    for row, name in enumerate(links["link"]):
        assert pairs["packets"][pairs["link"] == name].sum() == links["packets"][row]
    assert set(zip(pairs["link"].tolist(), pairs["class"].tolist(), strict=True)) == {
        (link, name) for link in ("down", "up") for name in ("download", "upload", "ping")
    }


def test_percentiles_of_the_delay_of_each_class_on_a_link() -> None:
    answer = simulate(home())
    links, pairs = answer.tables["by_link"], answer.tables["by_link_class"]
    for row, name in enumerate(links["link"]):
        of = pairs["link"] == name
        for percent in (50, 95, 99):
            of_classes = pairs[f"queue_delay_p{percent}_s"][of]
            assert of_classes.min() <= links[f"queue_delay_p{percent}_s"][row] <= of_classes.max()
        assert (pairs["queue_delay_p50_s"][of] <= pairs["queue_delay_p99_s"][of]).all()
    # The only class of a link has the delays of the link.
    tables = home()
    tables["class"] = [entry for entry in tables["class"] if entry["name"] == "upload"]
    answer = simulate(tables)
    for percent in (50, 95, 99):
        key = f"queue_delay_p{percent}_s"
        expected = by(answer, "by_link", "link", "up")[key]
        assert by(answer, "by_link_class", "link", "up")[key] == pytest.approx(expected)


def test_the_headline_link_is_chosen_by_name() -> None:
    answer = simulate(home(), probes__link="down")
    row = by(answer, "by_link", "link", "down")
    assert answer["utilisation"] == pytest.approx(row["utilisation"], rel=1e-3)
    assert answer["queue_delay_p95_s"] == pytest.approx(row["queue_delay_p95_s"], rel=0.15)


def test_a_link_equals_the_short_form() -> None:
    common = {"traffic": {"kind": "bulk"}, "tcp": {"stack": "linux-reno", "host_noise": "0.1ms"}}
    link = {"rate": "20mbit", "buffer": "60pkt"}
    tables = common | {
        "link": {"core": link},
        "class": [{"name": "all", "flows": 4, "route": ["core"], "delay": "20ms"}],
    }
    short = common | {"network": {"bottleneck": {**link, "delay": "20ms"}}}
    own = simulate(tables, run__duration="120s")
    other = simulate(short | {"class": [{"name": "all", "flows": 4}]}, run__duration="120s")
    for name in ("goodput_bps", "utilisation", "queue_delay_mean_s", "rtt_mean_s"):
        assert own[name] == pytest.approx(other[name], rel=0.05), name
    assert own["loss_ratio"] == pytest.approx(other["loss_ratio"], rel=0.3)


def test_a_change_of_the_rate_changes_the_goodput() -> None:
    tables = {
        "link": {"core": {"rate": "20mbit", "buffer": "50pkt"}},
        "class": [{"name": "all", "flows": 1, "route": ["core"], "delay": "10ms"}],
        "traffic": {"kind": "bulk"},
    }
    steady = simulate(tables, run__duration="20s")["goodput_bps"]
    halved = simulate(tables, run__duration="20s", link__core__at={"12s": {"rate": "10mbit"}})
    # 8 s of 20 Mbit/s, then 8 s of 10 Mbit/s.
    assert halved["goodput_bps"] == pytest.approx(0.75 * steady, rel=0.03)
    assert by(halved, "by_link", "link", "core")["utilisation"] == pytest.approx(1, abs=0.03)


def test_messages_have_one_way_delays_and_losses() -> None:
    tables = {
        "link": {"core": {"rate": "1mbit", "loss": "5%"}},
        "class": [
            {
                "name": "game",
                "flows": 1,
                "route": ["core"],
                "delay": "30ms",
                "traffic": {"kind": "messages", "size": "125B", "interval": "10ms"},
            }
        ],
    }
    answer = simulate(tables, run__duration="100s")
    row = by(answer, "by_class", "name", "game")
    assert row["delay_p50_s"] == pytest.approx(0.031, rel=0.03)
    assert row["message_loss_ratio"] == pytest.approx(0.05, rel=0.2)
    assert math.isnan(row.get("goodput_bps", math.nan))
    core = by(answer, "by_link", "link", "core")
    assert core["random_loss_ratio"] == pytest.approx(0.05, rel=0.2)
    assert core["queue_loss_ratio"] == 0


def play(rate: str, seconds: int = 600, **traffic: Any) -> dict[str, float]:
    """Return the row of a player on a line."""
    tables = {
        "link": {"line": {"rate": rate, "buffer": "100ms"}},
        "class": [
            {
                "name": "film",
                "flows": 1,
                "route": ["line"],
                "delay": "10ms",
                "traffic": {"kind": "stream", "ladder": ["1mbit", "2mbit", "4mbit"]} | traffic,
            }
        ],
    }
    answer = simulate(tables, run__duration=f"{seconds}s", run__warmup="60s")
    return by(answer, "by_class", "name", "film")


def test_a_player_by_throughput_is_steady_and_one_by_its_buffer_uses_the_line() -> None:
    by_throughput, by_buffer = (play("3mbit", control=c) for c in ("throughput", "buffer"))
    # The line carries 2.9 Mbit/s of payload, between two rates.
    assert by_throughput["video_rate_bps"] == pytest.approx(2e6, rel=0.02)
    assert by_throughput["quality_switch_ratio"] < 0.02
    # Requests one after the other leave the line idle for a round trip each.
    assert by_buffer["video_rate_bps"] == pytest.approx(2.8e6, rel=0.07)
    assert by_buffer["quality_switch_ratio"] > 0.05
    assert by_buffer["stall_ratio"] == by_throughput["stall_ratio"] == 0


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"rate": "1mbit"}, 'rate: and ladder are mutually exclusive; use rate = "5mbit", or'),
        ({"ladder": None}, 'rate: is missing; use rate = "5mbit", or ladder ='),
        ({"ladder": ["2mbit", "1mbit"]}, "ladder: rates must increase; begin with the lowest"),
        ({"ladder": ["1mbit"]}, "ladder"),
        ({"ladder": None, "rate": "1mbit", "control": "buffer"}, "control: requires ladder"),
    ],
)
def test_a_ladder_has_increasing_rates(changes: dict[str, Any], error: str) -> None:
    traffic = {key: value for key, value in ({"kind": "stream"} | changes).items() if value}
    if "ladder" not in changes:
        traffic["ladder"] = ["1mbit", "2mbit"]
    tables = {
        "link": {"line": {"rate": "1mbit", "buffer": "100ms"}},
        "class": [{"name": "film", "flows": 1, "route": ["line"], "traffic": traffic}],
    }
    with pytest.raises(ScenarioError) as raised:
        Scenario.from_dict(tables)
    assert error in str(raised.value)


@pytest.mark.parametrize(
    "tables",
    [
        networks.dumbbell(2, buffer="50pkt"),
        networks.parking_lot(3, buffer="50pkt"),
        networks.fat_tree(2, rate="100mbit", delay="10us", buffer="50pkt"),
    ],
)
def test_functions_return_networks_that_run(tables: dict[str, Any]) -> None:
    answer = simulate(tables | {"traffic": {"kind": "bulk"}}, run__duration="6s", run__warmup="1s")
    assert answer["goodput_bps"] > 0
    assert (answer.tables["by_link"]["utilisation"] > 0.1).any()


@pytest.mark.parametrize("sends", ["server", "client"])
def test_captures_at_both_ends_show_the_data_of_a_network(tmp_path: Path, sends: str) -> None:
    captures = [
        {"link": tap, "file": str(tmp_path / f"{tap}.pcap")} for tap in ("sender", "receiver")
    ]
    routes = (
        {"route": ["core"], "back": []} if sends == "server" else {"route": [], "back": ["core"]}
    )
    tables = {
        "link": {"core": {"rate": "20mbit", "buffer": "40pkt", "loss": "1%"}},
        "class": [{"name": "all", "flows": 2, "delay": "20ms", "sends": sends, **routes}],
        "traffic": {"kind": "bulk"},
        "probes": {"pcap": captures},
        "run": {"duration": "10s", "warmup": "0s"},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
    sender, receiver = (
        tcpcast.trace(tmp_path / f"{tap}.pcap").connections for tap in ("sender", "receiver")
    )
    assert len(sender["data_packets"]) == 2
    sent = answer["send_rate_pps"] * 10
    assert sender["data_packets"].sum() == pytest.approx(sent, abs=2)
    lost = sent * answer["loss_ratio"]
    assert receiver["data_packets"].sum() == pytest.approx(sent - lost, abs=100)
    assert np.mean(sender["rtt_mean_s"]) == pytest.approx(answer["rtt_mean_s"], rel=0.05)
