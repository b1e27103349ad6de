"""``tcpcast accept``: permissible ranges, exit codes, and reports."""

import json
from pathlib import Path

import pytest
from tcpcast.cli import main
from tcpcast.comparison import acceptance
from tcpcast.comparison.acceptance import accept

GREEDY = """
from tcpcast import CongestionControl

class Greedy(CongestionControl):
    def on_ack(self, ack):
        self.cwnd = 400.0

    def on_loss(self, now_s):
        pass
"""


def test_cubic_meets_all_criteria() -> None:
    outcomes = accept("linux-cubic")
    assert [each.cell.name for each in outcomes if not each.passed] == []
    sections = {each.cell.section for each in outcomes}
    assert {"fairness", "RTTs", "convergence", "ECN", "policer"} <= sections


def test_greedy_control_fails_some_criteria(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four scenarios suffice: calls of Python make a complete battery slow."""
    names = {"1%, 20ms", "1 against 1, 1bdp", "CoDel that marks", "10 Mbit/s, 60 KB"}
    whole = acceptance._cells
    monkeypatch.setattr(
        acceptance,
        "_cells",
        lambda *stacks: [cell for cell in whole(*stacks) if cell.name in names],
    )
    path = tmp_path / "greedy.py"
    path.write_text(GREEDY, encoding="utf-8")
    report = tmp_path / "page.md"
    assert main(["accept", str(path), "--json", "--out", str(report)]) == 1
    cells = json.loads(capsys.readouterr().out)["cells"]
    failed = {cell["section"] for cell in cells if not cell["passed"]}
    assert {"fairness", "ECN", "policer"} <= failed
    assert "random loss" not in failed, "losses do not slow it down"
    assert len(cells) == 6
    assert "greedy against linux-cubic meets" in report.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            GREEDY.replace("400.0", "400.0 / len(())"),
            "greedy.py, line 6, in on_ack: ZeroDivisionError: float division by zero",
        ),
        (
            GREEDY + "\n    def __init__(self, mss):\n        pass\n",
            "Greedy() fails (TypeError: Greedy.__init__() missing 1 required positional argument",
        ),
    ],
)
def test_errors_of_a_class_are_one_line(
    code: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "greedy.py"
    path.write_text(code, encoding="utf-8")
    assert main(["accept", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["linux-cubik"], "neither a modern stack nor a Python file"),
        (["rfc-reno"], "neither a modern stack nor a Python file"),
        (["nowhere.py"], "there is no such file"),
        (["linux-cubic", "--against", "tahoe"], "--against"),
    ],
)
def test_errors_say_what_to_write(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["accept", *words]) == 2
    assert message in capsys.readouterr().err
