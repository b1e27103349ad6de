"""Completion in shells."""

import shutil
import subprocess

import pytest
from tcpcast.cli import complete, main

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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid_shell_code(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv(complete.COMPLETION_VARIABLE, f"source_{shell}")
    assert main([]) == 0
    script = capsys.readouterr().out
    assert complete.COMPLETION_VARIABLE in script
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize("command", ["completion", "man"])
def test_former_commands_name_what_replaces_them(command: str, capsys: Capture) -> None:
    assert main([command]) == 2
    assert f"no command {command}; " in capsys.readouterr().err
