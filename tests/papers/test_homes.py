"""Homes under load: runs of flent become scenarios, and their values are compared."""

import json
from pathlib import Path

import pytest
from tcpcast.cli import main
from tcpcast.measurements.line_test import FlowGroup
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Scenario
from tcpcast_papers.homes.sets import SETS, read_flows, shaped_link
from tcpcast_papers.published.cells import Cell, CellSet

Capture = pytest.CaptureFixture[str]

HOME, FAST, UPLOAD, ACK_FILTER = SETS
HEADER = (
    "set,file,test,rtt_ms,ecn,router_queue,offloads,server_qdisc,down_mbit,up_mbit,swap,"
    "ping_median_ms,ping_p95_ms,down_sum_mean,up_sum_mean,flows,suspect,qdisc_in_force"
)


def cells_of_lines(folder: Path, cell_set: CellSet, *lines: str) -> tuple[Cell, ...]:
    """Return the cells of a table of homes with these lines."""
    (folder / "home_under_load.csv").write_text("\n".join((HEADER, *lines)))
    return cell_set.read([folder])


@pytest.mark.parametrize("cell_set", [HOME, UPLOAD, ACK_FILTER], ids=lambda each: each.name)
def test_every_packaged_cell_is_a_scenario(cell_set: CellSet) -> None:
    cells = cell_set.read(())
    assert cells
    for cell in cells:
        assert len(cell.label) == len(cell_set.columns)
        scenarios = (cell.tables, *(variant.tables for variant in cell.variants))
        assert all(Scenario.from_dict(tables).links for tables in scenarios)
    assert len({cell.label for cell in cells}) == len(cells)


def test_flows_are_grouped_by_direction_control_and_codepoint() -> None:
    text = "TCP download BE=1;TCP download BE2=2;TCP upload CDG CS1=.5;TCP upload BE::10=3"
    assert read_flows(text) == {
        FlowGroup("download", "cubic", "BE"): [1, 2],
        FlowGroup("upload", "cdg", "CS1"): [0.5],
        FlowGroup("upload", "cubic", "BE"): [3],
    }


def test_links_count_ethernet_headers() -> None:
    htb = shaped_link(10, "bfifo_64k")
    assert htb["rate"] == {"bucket": "10mbit", "burst": "1600B", "overhead": 14}
    assert htb["buffer"] == "64930B"  # 65536 B of frames
    assert shaped_link(10, "pfifo_100")["buffer"] == "100pkt"
    assert shaped_link(10, "cake", "bandwidth=10Mbit diffserv4=flows")["queue"] == {
        "kind": "cake",
        "rate": "10mbit",
        "flows": "flows",
        "tins": "diffserv4",
    }
    with pytest.raises(ScenarioError, match="unknown queue discipline hfsc of a router"):
        shaped_link(10, "hfsc")


def test_swapped_uploads_are_downloads_and_contradictory_runs_are_left_out(tmp_path: Path) -> None:
    start = "cake_vs_everything,rtt_fair_up-2016-04-16T120000.1.x.gz,rtt_fair_up,48,ecn,pie,on,"
    end = "sch_fq,110,10,yes,60,70,,96,TCP upload BE1 host=48;TCP upload BE2 host=48"
    cells = cells_of_lines(tmp_path, HOME, f"{start}{end},,pie", f"{start}{end},wrong title,pie")
    (cell,) = cells
    assert cell.label[0] == "rtt_fair_up swapped"
    flows, ping = cell.tables["class"]
    assert (flows["flows"], "sends" in flows, ping["name"]) == (2, False, "ping")
    assert flows["tcp"] == {
        "stack": "linux-cubic",
        "kernel": "4.14",
        "socket_buffers": "linux-5.15",
        "tso": "auto",
        "ecn": True,
        "pacing": "fq",
    }
    assert [value.quantity for value in cell.values] == ["ping p95", "ping median", "download"]
    # 10 % of 70 ms, and 5 % of 96 Mbit/s.
    allowed = [value.allowed and value.allowed.absolute for value in cell.values]
    assert allowed == pytest.approx([7, None, 4.8])


def test_one_run_of_a_home(tmp_path: Path, capsys: Capture) -> None:
    cell = "Home line, rrul_be, 12, cake_besteffort, ping p95"
    assert main(["reproduce", "homes", "--quick", "--json", "--cell", cell]) == 0
    (section,) = json.loads(capsys.readouterr().out)["sections"]
    (row,) = section["rows"]
    assert row["verdict"] == "agrees"
    assert row["low"] < row["value"] < row["high"]
    assert main(["reproduce", "homes", "--measurements", str(tmp_path)]) == 2
    assert "use a folder with any of home_under_load.csv, " in capsys.readouterr().err


def test_a_variant_is_a_cause_of_a_difference(capsys: Capture) -> None:
    cell = "Home line, rrul, 12, cake_flowblind, upload"
    main(["reproduce", "homes", "--quick", "--json", "--cell", cell])
    (section,) = json.loads(capsys.readouterr().out)["sections"]
    (row,) = section["rows"]
    assert row["verdict"] == "explained"
    assert row["explained_by"]["reason"].startswith("CoDel instead of COBALT")
