"""Help, version, `engines`, `schema`, `new` and `reproduce`; unknown commands."""

import json
from pathlib import Path

import jsonschema
import pytest
import tcpcast
from tcpcast.cli import main

Capture = pytest.CaptureFixture[str]

COMMANDS = [
    *("predict", "run", "home", "compare", "plan", "sweep", "query", "trace", "report", "serve"),
    *("mcp", "reproduce", "link", "accept", "new", "engines", "schema"),
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
