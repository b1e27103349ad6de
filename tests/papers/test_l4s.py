"""Measurements of L4S: every row of the tables becomes a scenario, and Prague agrees with them."""

import csv
from importlib.resources import files
from pathlib import Path

import pytest
from tcpcast.scenario import Scenario
from tcpcast_papers.l4s.sets import (
    BBR3,
    CLASSIC_QUEUES,
    FALLBACK,
    OVERLOAD,
    PAM,
    RTT_FAIRNESS,
    SETS,
    SIMULA,
    SITUATIONS,
)
from tcpcast_papers.published.cells import CellSet
from tcpcast_papers.published.runs import PublishedRuns, SampleSizes


@pytest.mark.parametrize("cell_set", SETS, ids=lambda each: each.name)
def test_every_packaged_cell_is_a_scenario(cell_set: CellSet) -> None:
    cells = cell_set.read(())
    assert len(cells) == {RTT_FAIRNESS.name: 36, CLASSIC_QUEUES.name: 8}.get(cell_set.name, 0)
    for cell in cells:
        assert len(cell.label) == len(cell_set.columns)
        assert Scenario.from_dict(cell.tables).measured


def test_tables_of_other_sets_are_read_from_a_folder(tmp_path: Path) -> None:
    simula = {"set": "mixed_rtt", "aqm": "dualpi2", "link_mbps": "40", "rate_ratio_d_over_r": "2"}
    for side, stack in (("d", "prague"), ("r", "cubic")):
        simula |= {f"n_{side}": "1", f"rtt_{side}_ms": "5", f"flow_{side}": stack}
        simula |= {f"qdelay_ms_{side}_mean": "1", f"qdelay_ms_{side}_p99": "2"}
    overload = simula | {"set": "overload", "udp_d_mbps": "140", "udp_r_mbps": "0"}
    probes = [overload | {"probe": "tcp"}, overload | {"probe": "udp", "qdelay_ms_d_mean": "15"}]
    pam = {"group": "Prague vs Classic", "family": "cubic_ecn", "aqm": "FIFO", "buffer_bdp": "2"}
    pam |= {"rtt_ms": "10", "n_l4s": "1", "n_classic": "1", "threshold_ms": "none"}
    pam |= {"tput_mbps_mean": "50", "tput_ci95": "1", "srtt_mean_ms": "20", "srtt_ci95": "1"}
    for table, lines in (
        (SIMULA.table, [simula, simula | {"n_r": ""}, *probes]),
        (PAM.table, [pam | {"flow_cc": control} for control in ("prague", "cubic")]),
    ):
        with (tmp_path / table).open("w", newline="") as file:
            writer = csv.DictWriter(file, lines[-1])
            writer.writeheader()
            writer.writerows(lines)
    assert [len(cell.values) for cell in SIMULA.read([tmp_path])] == [5, 2]
    # Both lines of a run form one cell.
    (cell,) = OVERLOAD.read([tmp_path])
    assert [value.measured for value in cell.values] == [2, 1, 2, 1, 2, 15, 2]
    assert cell.tables["class"][2]["traffic"]["ecn"] == "ect1"
    assert not cell.variants
    (cell,) = PAM.read([tmp_path])
    assert [value.measured for value in cell.values] == [50, 20, 50, 20]
    assert not cell.tables["class"][0]["tcp"]["ecn_fallback"]
    assert FALLBACK.read([tmp_path]) == ()
    of_pam = tmp_path / PAM.table
    of_pam.write_text(of_pam.read_text().replace("cubic_ecn", "cubic_ecn_fallback"))
    (cell,) = FALLBACK.read([tmp_path])
    assert cell.tables["class"][0]["tcp"]["ecn_fallback"]
    (noisy,) = cell.variants
    assert noisy.tables["class"][0]["tcp"]["host_noise"] == "1ms"
    assert PAM.read([tmp_path]) == ()
    codel = of_pam.read_text().replace("cubic_ecn_fallback,FIFO", "ecnlow-bbrv3_2ms,Codel")
    of_pam.write_text(codel.replace("none", "1"))
    (cell,) = BBR3.read([tmp_path])
    assert cell.tables["link"]["bottleneck"]["queue"]["target"] == "1ms"
    assert cell.tables["class"][1]["tcp"]["ecn"]


def test_situations_that_two_tables_contain_are_simulated_with_each_version(tmp_path: Path) -> None:
    assert SITUATIONS.read(()) == ()
    pam = {"group": "Prague vs Classic", "family": "cubic_ecn", "aqm": "DualPI2"}
    pam |= {"buffer_bdp": "2.0", "rtt_ms": "10", "n_l4s": "1", "n_classic": "1"}
    pam |= {"threshold_ms": "5", "tput_ci95": "1", "srtt_mean_ms": "20", "srtt_ci95": "1"}
    rates = {"prague": "45", "cubic": "55"}
    lines = [pam | {"flow_cc": flow, "tput_mbps_mean": rate} for flow, rate in rates.items()]
    with (tmp_path / PAM.table).open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    assert SITUATIONS.read([tmp_path]) == ()
    packaged = files("tcpcast_papers.l4s").joinpath("data", RTT_FAIRNESS.table)
    (tmp_path / RTT_FAIRNESS.table).write_bytes(packaged.read_bytes())
    cells = SITUATIONS.read([tmp_path])
    measured = [(cell.label[1], round(cell.values[0].measured)) for cell in cells]
    assert measured == [(RTT_FAIRNESS.name, 72)] * 3 + [(PAM.name, 45)] * 3
    stacks = [cell.tables["class"][0]["tcp"]["stack"] for cell in cells]
    assert stacks == ["prague-2020", "prague", "prague-2024"] * 2
    assert all(value.allowed is None for cell in cells for value in cell.values)


def test_flows_without_a_rate_are_left_out_as_a_variant(tmp_path: Path) -> None:
    line = {"set": "overload", "aqm": "dualpi2", "link_mbps": "100", "rate_ratio_d_over_r": "1"}
    for side, stack, first_quartile in (("d", "prague", "0.0"), ("r", "cubic", "4.1")):
        line |= {f"n_{side}": "5", f"rtt_{side}_ms": "10", f"flow_{side}": stack}
        line |= {f"qdelay_ms_{side}_{statistic}": "1" for statistic in ("mean", "p99")}
        rates = {"mean": "4.4", "p1": "0.0", "p25": first_quartile, "p75": "7.5"}
        line |= {f"rate_per_flow_mbps_{side}_{name}": rate for name, rate in rates.items()}
    line |= {"udp_d_mbps": "0", "udp_r_mbps": "50", "probe": "tcp"}
    starved = {name: "0.5" for name in line if name.endswith("_mean") and name.startswith("rate")}
    for lines, flows in (([line], [[3, 4, 1]]), ([line | starved], [])):
        with (tmp_path / OVERLOAD.table).open("w", newline="") as file:
            writer = csv.DictWriter(file, line)
            writer.writeheader()
            writer.writerows(lines)
        (cell,) = OVERLOAD.read([tmp_path])
        assert [
            [entry["flows"] for entry in each.tables["class"]] for each in cell.variants
        ] == flows


def test_prague_beside_cubic_behind_dualpi2_and_behind_one_classic_queue() -> None:
    """Both were measured: half of the window with DualPI2, nearly all of the rate without L4S."""
    named = {
        ("dualpi2", "prague", "10", "cubic", "10"): RTT_FAIRNESS,
        ("dualpi2", "prague", "80", "cubic", "80"): RTT_FAIRNESS,
        ("pie", "prague", "20", "cubic-ecn", "20"): CLASSIC_QUEUES,
    }
    for label, cell_set in named.items():
        (cell,) = (each for each in cell_set.read(()) if each.label == label)
        sizes = SampleSizes(seeds=2, packets=1e9)
        runs = PublishedRuns(sizes, 1, None, sets=(cell_set,))
        runs._cells[cell_set.name] = (cell,)
        runs.request_all()
        runs.simulate()
        (line,) = runs.compare(cell_set)
        assert line.is_inside_tolerance, (label, line.own, line.value.measured)
