"""A narrow terminal shows complete summaries and addresses, and no table splits a word."""

import re
from pathlib import Path

import pytest
from capture_files import CAPTURES, read
from hypothesis import given
from hypothesis import strategies as st
from tcpcast.cli import main
from tcpcast.cli.commands import COMMANDS
from tcpcast.report.document import Column, Table
from tcpcast.report.text import plain_text
from tcpcast.report.trace import capture_parts

WIDTHS = (60, 80)
UNLIMITED = 10_000
COMMAND_LINES = [
    "engines",
    "predict --rtt 50ms --rate 10mbit --size 100pkt",
    "predict --loss 1%..2% --rtt 50ms --rate 10mbit",
    "plan buffer web-10mbit --loss 1% --engine engset",
    "plan streams --loss 1% --rtt 50ms --rate 100mbit --engine cubic-response",
    "plan max-loss --rtt 50ms --goodput 10mbit --engine cubic-response",
    *(f"run {name} --engine ENGINES" for name in ("web-10mbit", "lossy-path", "short-transfers")),
    "sweep web-10mbit --engine engset --vary traffic.sources=50,100 --vary network.rtt=20ms,50ms",
]
ENGINES = {"web-10mbit": "engset", "lossy-path": "pftk,parallel", "short-transfers": "short"}


WALL_TIME = re.compile(r" in\s+[\d.,]+\s+(ms|s|µs)\b")


def words(output: str) -> set[str]:
    """Return words and numbers of an output, without marks around them and wall times."""
    found = {word.strip("(),;:.") for word in WALL_TIME.sub("", output).split()}
    return {word for word in found if re.search("[^\\W_]", word)}


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_no_command_splits_a_word(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = line.split()
    if arguments[-1] == "ENGINES":
        arguments[-1] = ENGINES[arguments[1]]
    outputs = []
    for width in (UNLIMITED, *WIDTHS):
        monkeypatch.setenv("COLUMNS", str(width))
        assert main(arguments) == 0
        outputs.append(capsys.readouterr().out)
    every = words(outputs[0])
    for output in outputs[1:]:
        assert words(output) <= every


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_addresses_of_a_capture_are_complete(path: Path) -> None:
    capture = read(path)
    parts = capture_parts(capture, verdict=False)
    wide, table = words(plain_text(parts, UNLIMITED)), capture.connections
    for width in WIDTHS:
        narrow = words(plain_text(parts, width))
        assert {*table["src"].tolist(), *table["dst"].tolist()} <= narrow <= wide


@given(
    st.lists(
        st.lists(st.text("abcdefgh12345:.-", min_size=1, max_size=50), min_size=1, max_size=6),
        min_size=1,
        max_size=5,
    ),
    st.integers(20, 120),
)
def test_a_cell_is_wrapped_only_between_words(cells: list[list[str]], width: int) -> None:
    rows = [" ".join(cell) for cell in cells]
    columns = [Column("name", rows, False), Column("more", rows, False, min_width=10)]
    ends = [(cell[0], cell[-1]) for cell in cells]
    shown = plain_text([Table(columns, ends=ends)], width)
    assert {word for cell in cells for word in cell} <= set(shown.split())


@pytest.mark.parametrize("command", ["", "plan"])
@pytest.mark.parametrize("width", WIDTHS)
def test_summaries_of_commands_are_complete(
    width: int, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([*command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert "..." not in out.partition("Commands:")[2]
    if not command:
        flat = " ".join(out.split())
        assert all(f"{name} {row.summary}" in flat for name, row in COMMANDS.items())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_options_is_complete(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    flat = " ".join(capsys.readouterr().out.split())
    for option in COMMANDS[command].options:
        # A default follows instead of the full stop.
        assert " ".join(option.help_text.split()).removesuffix(".") in flat
