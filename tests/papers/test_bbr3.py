"""The example test cases of BBR's draft, and their checks of another version of BBR."""

import math
from pathlib import Path

from tcpcast.scenario import Scenario
from tcpcast_papers.bbr3 import description
from tcpcast_papers.bbr3.cases import CASES, PATHS
from tcpcast_papers.bbr3.checks import CHECKS
from tcpcast_papers.bbr3.states import States
from tcpcast_papers.printed import read_lines
from tcpcast_papers.reproduction import Verdict, section_name
from tcpcast_papers.simulations import simulate_scenario

CASE_NUMBERS = range(1, 23)


def test_all_test_cases_of_the_draft_hold(tmp_path: Path) -> None:
    report = description.reproduce(tmp_path, quick=True)
    summary, *sections = report.sections
    assert summary.remarks == ["22 of 22 test cases hold."]
    assert [section_name(each.title) for each in sections] == [f"Case {n}" for n in CASE_NUMBERS]
    for number, section in zip(CASE_NUMBERS, sections, strict=True):
        assert len(section.rows) == len(CHECKS[number])
        assert {row.verdict for row in section.rows} == {Verdict.AGREES}
        assert all(row.low is not None for row in section.rows)


def test_data_and_checks_have_the_same_statements() -> None:
    lines = read_lines(description.PACKAGE, "test_cases.csv")
    assert [case.number for case in CASES] == list(CASE_NUMBERS)
    assert [(int(line["case"]), line["check"]) for line in lines] == [
        (number, name) for number in CASE_NUMBERS for name in CHECKS[number]
    ]
    assert all(line["low"] or line["high"] for line in lines)


def test_version_1_fails_where_its_rules_differ() -> None:
    """The checks see the rules: gains, phases and times of version 1 are others."""
    expected = {line["check"]: line for line in description.statements()[10]}
    case = CASES[9]
    tables = case.tables(PATHS[0])
    tables["class"][0]["tcp"]["stack"] = "linux-bbr"
    tables["run"] |= {"duration": "26s", "seed": 1}
    states = States(simulate_scenario(Scenario.from_dict(tables), lambda _: None))
    failed = set()
    for name, check in CHECKS[10].items():
        line, value = expected[name], check(states, PATHS[0])
        if not float(line["low"] or -math.inf) <= value <= float(line["high"] or math.inf):
            failed.add(name)
    # Version 1 probes every 10 s with four packets, and continues with probe_bw.
    assert {"interval", "gain", "inflight", "next"} <= failed
