"""Help, version, `engines`, `schema`, `new` and `reproduce`; unknown commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import tcpcast
from tcpcast.cli import main
from tcpcast_papers.page import write
from tcpcast_papers.report import Report
from tcpcast_papers.reproduction import PRINTED_DIGITS, Printed, Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    Capture = pytest.CaptureFixture[str]

COMMANDS = [
    *("predict", "run", "plan", "sweep", "query", "trace", "report", "serve", "mcp"),
    *("reproduce", "link", "new", "engines", "schema"),
]


def test_help_lists_all_commands(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    section = out.partition("Commands:")[2].partition("Example:")[0]
    listed = [line.split()[0] for line in section.splitlines() if line.strip()]
    assert listed == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_example(command: str, capsys: Capture) -> None:
    assert main([command, "-h"]) == 0
    out = capsys.readouterr().out
    assert f"Example: tcpcast {command}" in out


def test_missing_command_prints_help_and_exits_2(capsys: Capture) -> None:
    assert main([]) == 2
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version_option_prints_version(option: str, capsys: Capture) -> None:
    assert main([option]) == 0
    assert capsys.readouterr().out == f"tcpcast {tcpcast.__version__}\n"


@pytest.mark.parametrize("words", [["run"], ["plan", "users"], []])
def test_help_command_equals_help_option(words: list[str], capsys: Capture) -> None:
    assert main(["help", *words]) == 0
    text = capsys.readouterr().out
    assert main([*words, "--help"]) == 0
    assert text == capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "meant"), [("rnu", "run"), ("reproduction", "reproduce"), ("sweeps", "sweep")]
)
def test_unknown_command_suggests_nearest_command(typed: str, meant: str, capsys: Capture) -> None:
    assert main([typed]) == 2
    assert f"no command '{typed}'; did you mean '{meant}'?" in capsys.readouterr().err


def test_unknown_option_error_names_command(capsys: Capture) -> None:
    assert main(["engines", "--jsn"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("tcpcast engines: ")
    assert "--json" in err


def test_engines_lists_all_engines_as_table_and_json(capsys: Capture) -> None:
    assert main(["engines"]) == 0
    table = capsys.readouterr().out
    assert main(["engines", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["engines"]
    names = [r["engine"] for r in rows]
    assert names[0] == "engset"
    assert {"packet", "mean-field", "fixed-point"} < set(names)
    assert {"mathis", "td-only", "pftk-approx", "pftk", "parallel"} < set(names)
    for row in rows:
        assert row["engine"] in table
        assert row["summary"].split()[0] in table


def test_schema_accepts_valid_scenario_and_rejects_unknown_key(capsys: Capture) -> None:
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    resolved = tcpcast.load("web-10mbit").resolved()
    jsonschema.validate(resolved, schema)
    resolved["traffic"]["sauces"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(resolved, schema)


def test_new_lists_and_copies_scenarios_without_overwriting(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert {"web-10mbit", "lossy-path"} <= set(names)
    assert main(["new", "web-10mbit"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "web-10mbit.toml" in err
    copy = tmp_path / "web-10mbit.toml"
    assert tcpcast.load(str(copy)).digest() == tcpcast.load("web-10mbit").digest()
    copy.write_text("mine")
    assert main(["new", "web-10mbit"]) == 2
    assert "not overwritten" in capsys.readouterr().err
    assert copy.read_text() == "mine"
    assert main(["new", "web-10mbt"]) == 2
    assert "web-10mbit" in capsys.readouterr().err


def made_up_report(output: Path, *, own: float) -> Report:
    rows = [
        Row(("82",), "kbit/s", Printed("547.8"), 547.8, tolerance=PRINTED_DIGITS),
        Row(("134",), "kbit/s", Printed("154.9"), own, 150.0, 160.0, PRINTED_DIGITS),
        Row(("134",), "%", None, float("nan")),
    ]
    report = Report("A paper", [Section("Table 6", ("N",), rows, remarks=["As printed."])])
    write(report, output)
    return report


@pytest.mark.parametrize(("own", "code"), [(154.91, 0), (155.2, 1)])
def test_reproduce_prints_and_writes_report(
    own: float, code: int, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {}

    def reproduce(output: Path, **given: Any) -> Report:
        options.update(given)
        return made_up_report(output, own=own)

    monkeypatch.setattr("tcpcast.papers.load_reproduction", lambda _: reproduce)
    folder = tmp_path / "page"
    assert main(["reproduce", "engset", "--quick", "--out", str(folder)]) == code
    out, err = capsys.readouterr()
    assert options == {"quick": True, "progress": None, "threads": None, "force": False}
    assert "Table 6" in out
    assert "547.8" in out
    assert ("1 new difference" in out) == bool(code)
    assert str(folder / "index.md") in err
    assert main(["reproduce", "engset", "--json", "--out", str(folder)]) == code
    rows = json.loads(capsys.readouterr().out)["sections"][0]["rows"]
    assert [r["verdict"] for r in rows] == ["agrees", "differs" if code else "agrees", None]
    assert rows[2]["value"] is None


def test_reproduce_rejects_unknown_paper_and_lists_papers(capsys: Capture) -> None:
    assert main(["reproduce", "engest"]) == 2
    assert "engset" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("run web-10mbit --html a.html", "there is no option --html; write --out FILE.html"),
        ("trace a.pcap --markdown a.md", "there is no option --markdown; write --out FILE.md"),
        ("plan buffer web-10mbit --html a.html", "write --out FILE.html"),
        ("reproduce engset --output a", "there is no option --output; write --out DIR"),
        ("link --statistics a.json -- true", "there is no option --statistics; write --out FILE"),
        ("run web-10mbit --show", "there is no option --show; write --print-scenario"),
        ("run lossy-path --loss 1%", "write --set network.bottleneck.loss=1%"),
        ("run web-10mbit --users=50", "write --set traffic.sources=50"),
        ("run lossy-path --cc cubic", "write --set tcp.stack=linux-cubic"),
        ("run lossy-path --cc pftk-reno", "write --set tcp.stack=pftk-reno"),
        ("sweep lossy-path --duration 60s", "write --set run.duration=60s"),
        ("run lossy-path --bandwidth 10mbit", "write --set network.bottleneck.rate=10mbit"),
        (
            "predict --bandwidth 10mbit --rtt 1s",
            "there is no option --bandwidth; write --rate 10mbit",
        ),
        ("plan streams --delay 10ms", "there is no option --delay; write --rtt 10ms"),
        ("link --cc cubic -- true", "write --set tcp.stack=linux-cubic"),
        ("run lossy-path --loss", "write --set network.bottleneck.loss=VALUE"),
        ("run lossy-path --colour", "No such option: --colour"),
    ],
)
def test_unknown_option_states_what_to_write(typed: str, words: str, capsys: Capture) -> None:
    assert main(typed.split()) == 2
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err
