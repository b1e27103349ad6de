"""Completion scripts for shells, and the manual page."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from tcpcast.cli import complete, main
from tcpcast.cli.commands import COMMANDS
from tcpcast.cli.man import EXIT_STATUS

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]


def completions(monkeypatch: pytest.MonkeyPatch, capsys: Capture, *words: str) -> list[str]:
    """Return the completions of the last word in bash."""
    monkeypatch.setenv(complete.COMPLETION_VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(["tcpcast", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pre"], "predict"),
        (["plan", "us"], "users"),
        (["predict", "--rt"], "--rtt"),
        (["run", "web"], "web-10mbit"),
        (["run", "web-10mbit", "--engine", "packet,cu"], "packet,cubic-response"),
        (["run", "web-10mbit", "--set", "network.bottleneck.bu"], "network.bottleneck.buffer="),
        (["run", "web-10mbit", "--set", "traffic.siz"], "traffic.size="),
        (["completion", "f"], "fish"),
        (["predict", "--stack", "linux-c"], "linux-cubic"),
        (["plan", "streams", "--stack", "multc"], "multcp"),
        (["run", "web-10mbit", "--set", "tcp.stack=linux-b"], "tcp.stack=linux-bbr"),
        (["reproduce", "eng"], "engset"),
    ],
)
def test_completion_offers_matching_words(
    words: list[str], expected: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    words_offered = completions(monkeypatch, capsys, *words)
    assert expected in words_offered
    assert all(word.startswith(words[-1]) for word in words_offered)


def test_completion_offers_scenario_files_and_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own[1].toml").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "own.toml").touch()
    monkeypatch.chdir(tmp_path)
    assert complete.scenario_files("own[") == ["own[1].toml"]
    assert complete.scenario_files("mor") == ["more/"]
    assert complete.scenario_files("more/o") == ["more/own.toml"]
    assert complete.scenario_files("notes") == []
    assert complete.scenario_files("not/there") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid_shell_code(shell: str, capsys: Capture) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert complete.COMPLETION_VARIABLE in script
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_completion_rejects_unknown_shell(capsys: Capture) -> None:
    assert main(["completion", "csh"]) == 2
    assert "bash" in capsys.readouterr().err


def test_manual_page_has_all_commands_and_exit_codes(capsys: Capture) -> None:
    assert main(["man"]) == 0
    page = capsys.readouterr().out
    for command in COMMANDS:
        assert re.search(rf"^\.SS tcpcast {command}\b", page, re.MULTILINE), command
    assert ".SS tcpcast plan users " in page
    assert all(f".B {code}\n" in page for code in EXIT_STATUS)
    assert all(line.isprintable() for line in page.splitlines())


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_manual_page_has_no_groff_warnings(capsys: Capture) -> None:
    assert main(["man"]) == 0
    page = capsys.readouterr().out
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww"], input=page, text=True, capture_output=True, check=True
    )
    assert done.stderr == ""
