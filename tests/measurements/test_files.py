"""Files of flent, iperf3 and Crusader as tests of a line, and their scenarios."""

import json
import re
from pathlib import Path

import pytest
from line_test_files import (
    CODEL,
    RATES_MBIT,
    crusader_document,
    flent_document,
    write_flent,
)
from tcpcast.cli import main
from tcpcast.measurements import make_line_scenario, read_line_test
from tcpcast.measurements.traffic_shaping import Qdisc, parse_qdiscs, shaped_link
from tcpcast.process.errors import OptionError, ScenarioError

Capture = pytest.CaptureFixture[str]

LOGS = Path(__file__).parents[1] / "captures" / "logs"


def test_flent_file_states_flows_ping_and_links(tmp_path: Path) -> None:
    test = read_line_test("flent", write_flent(tmp_path, flent_document()))
    assert (test.title, test.seconds, test.warmup_s) == ("rrul a home", 30, 10)
    rates = {group.name: each for group, each in test.flows.items()}
    # The slow third of the load is left out; the server's default is Reno.
    assert rates == {
        "download-reno-be": pytest.approx([45e6, 44e6]),
        "upload-cubic-be": pytest.approx([9e6]),
        "upload-bbr-cs1": pytest.approx([8e6]),
    }
    assert test.idle_rtt_s == pytest.approx(0.02)
    assert (len(test.ping_s), set(test.ping_s)) == (100, {0.05})
    assert (test.ecn, test.paced, test.offloads) == (True, frozenset({"upload"}), True)
    assert test.links["download"]["rate"]["bucket"] == "100mbit"  # the ceiling of the upper class
    assert test.links["upload"]["queue"] == {
        "kind": "cake",
        "rate": "20mbit",
        "flows": "dual-srchost",
        "tins": "besteffort",
        "ack_filter": "on",
        "split_gso": False,
        "overhead": 18,
    }


def test_flent_file_becomes_a_scenario(tmp_path: Path) -> None:
    test = read_line_test("flent", write_flent(tmp_path, flent_document()))
    scenario = make_line_scenario(test, {})
    assert {each.name: each.count for each in scenario.populations} == {
        "download-reno-be": 2,
        "upload-cubic-be": 1,
        "upload-bbr-cs1": 1,
        "ping": 1,
    }
    tables = scenario.resolved()
    by_name = {entry["name"]: entry for entry in tables["class"]}
    assert by_name["upload-bbr-cs1"]["tcp"]["stack"] == "linux-bbr"
    assert by_name["upload-bbr-cs1"]["tcp"]["tso"] == "auto"
    assert by_name["upload-bbr-cs1"]["tcp"]["pacing"] == "fq"
    assert by_name["upload-bbr-cs1"]["tcp"]["kernel"] == "5.4"
    assert by_name["download-reno-be"]["tcp"]["kernel"] == "6.18"
    assert by_name["download-reno-be"]["tcp"]["pacing"] == "internal"
    assert by_name["ping"]["delay"] == "10ms"
    assert (tables["run"]["duration"], tables["run"]["warmup"]) == ("30s", "10s")
    slower = make_line_scenario(test, {"down": "50mbit", "up": "10mbit", "queue": "fq_codel"})
    links = slower.resolved()["link"]
    assert links["down"]["rate"]["bucket"] == "50mbit"
    assert links["up"]["queue"]["kind"] == "fq_codel"


def test_series_without_samples_are_read_from_the_plot(tmp_path: Path) -> None:
    document = flent_document()
    document["raw_values"] = {}
    x = document["x_values"]
    for name, rate in RATES_MBIT.items():
        document["results"][name] = [None if at < 5 else rate for at in x]
    document["results"]["Ping (ms) ICMP"] = [20.0 if at < 5 else 60.0 for at in x]
    test = read_line_test("flent", write_flent(tmp_path, document))
    assert test.rate_bps("download") == pytest.approx(89e6)
    assert test.idle_rtt_s == pytest.approx(0.02)
    assert set(test.ping_s) == {0.06}


def test_missing_shaper_needs_a_rate_and_takes_the_other_queue(tmp_path: Path) -> None:
    document = flent_document()
    del document["metadata"]["REMOTE_METADATA"]["router"]["EGRESS_INFO"]
    test = read_line_test("flent", write_flent(tmp_path, document))
    with pytest.raises(OptionError, match=r"the shaper of the upload; .* for example --up 18mbit"):
        make_line_scenario(test, {})
    links = make_line_scenario(test, {"up": "20mbit"}).resolved()["link"]
    assert links["up"]["queue"] == links["down"]["queue"]
    assert links["up"]["rate"]["bucket"] == "20mbit"
    note = (
        "the file does not describe the queue of the upload; tcpcast assumes the queue of the "
        "other direction"
    )
    assert test.notes == [note]


@pytest.mark.parametrize(
    ("lines", "link"),
    [
        (
            ["qdisc tbf 1: root refcnt 2 rate 10Mbit burst 15140b lat 100.0ms ", CODEL],
            {"buffer": "1000pkt"},
        ),
        (["qdisc tbf 1: root refcnt 2 rate 10Mbit burst 15140b lat 80.0ms"], {"buffer": "100000B"}),
        (
            ["qdisc netem 1: root refcnt 2 limit 50 delay 20.0ms loss 1% rate 8Mbit"],
            {"rate": "8mbit", "buffer": "50pkt", "loss": "1%"},
        ),
        (
            [
                "qdisc tbf 1: root refcnt 2 rate 10Mbit burst 2Kb lat 100.0ms",
                "qdisc bfifo 2: parent 1:1 limit 64Kb",
            ],
            {"buffer": "64930B"},
        ),
    ],
)
def test_shapers_of_tc(lines: list[str], link: dict[str, str]) -> None:
    found = shaped_link(parse_qdiscs(lines))
    assert found is not None
    assert link.items() <= found.items()


def test_interfaces_without_a_shaper_and_unknown_disciplines() -> None:
    plain = ("qdisc fq_codel 0: root limit 10240p", "qdisc netem 2: root limit 1000 delay 20ms")
    assert shaped_link(parse_qdiscs(plain)) is None
    unlimited = "qdisc cake 1: root refcnt 2 bandwidth unlimited besteffort"
    assert shaped_link(parse_qdiscs([unlimited, "noise", "qdisc"])) is None
    hfsc = [Qdisc("tbf", "1:", "", ("rate", "1Mbit")), Qdisc("hfsc", "2:", "1:1")]
    with pytest.raises(ScenarioError, match='"hfsc" is not simulated; use --queue'):
        shaped_link(hfsc)


def test_iperf3_log_needs_the_rate_of_the_line() -> None:
    test = read_line_test("iperf3", LOGS / "link.json")
    assert test.rate_bps("upload") == pytest.approx(9.24e6, rel=0.01)
    assert test.idle_rtt_s == pytest.approx(0.0496, abs=1e-4)
    with pytest.raises(OptionError, match="does not describe the shaper of the upload"):
        make_line_scenario(test, {})
    links = make_line_scenario(test, {"up": "10mbit"}).resolved()["link"]
    assert (links["up"]["buffer"], links["down"]["rate"]) == ("312500B", "1gbit")
    assert test.notes[0] == (
        "the file does not describe the shaper of the download; tcpcast assumes a rate of 1gbit"
    )
    without_rtt = read_line_test("iperf3", LOGS / "reverse.json")
    with pytest.raises(OptionError, match="the RTT of the idle line; add this RTT"):
        make_line_scenario(without_rtt, {"down": "10mbit"})


def test_crusader_compares_the_part_in_both_directions(tmp_path: Path) -> None:
    path = tmp_path / "test.json"
    path.write_text(json.dumps(crusader_document()))
    test = read_line_test("crusader", path)
    assert {group.name: sum(each) for group, each in test.flows.items()} == {
        "download-cubic-be": pytest.approx(40e6, rel=1e-6),
        "upload-cubic-be": pytest.approx(40e6, rel=1e-6),
    }
    assert test.seconds == pytest.approx(5.0)
    assert test.idle_rtt_s == pytest.approx(0.01)
    assert min(test.ping_s) == pytest.approx(max(test.ping_s)) == pytest.approx(0.03)
    assert "tcpcast omits the parts of the test with load in one direction" in test.notes


def test_compare_prints_measured_beside_simulated(tmp_path: Path, capsys: Capture) -> None:
    path = str(write_flent(tmp_path, flent_document()))
    assert main(["compare", "flent", path]) == 0
    text = capsys.readouterr().out
    assert "rrul a home: 5 senders in 4 classes, 2 links" in text
    assert re.search(r"download-reno-be, goodput .*\n?.*\b89\.00", text)
    assert main(["compare", "flent", path, "--json"]) == 0
    measured, simulated = json.loads(capsys.readouterr().out)["answers"]
    assert (measured["engine"], simulated["engine"]) == ("flent", "packet")
    assert measured["metrics"]["delay_p95_s"]["value"] == 0.05
    # CoDel keeps the queue of the download short; the ping is simulated, not measured.
    assert 0.02 < simulated["metrics"]["delay_p95_s"]["value"] < 0.04
    assert main(["compare", "flent", path, "--print-scenario"]) == 0
    scenario = capsys.readouterr().out
    (tmp_path / "line.toml").write_text(scenario)
    assert main(["run", str(tmp_path / "line.toml"), "--print-scenario"]) == 0
    assert capsys.readouterr().out == scenario
