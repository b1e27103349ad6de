"""Usage errors name the command to read the help of."""

from __future__ import annotations

import pytest
from tcpcast.cli import main


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["run", "web-10mbit", "--engine"], "tcpcast run"),
        (["run", "web-10mbit", "--nope"], "tcpcast run"),
        (["plan", "users", "--nope"], "tcpcast plan users"),
        (["plan", "users", "--rate"], "tcpcast plan users"),
        (["--nope"], "tcpcast"),
    ],
)
def test_usage_error_names_help_command(
    arguments: list[str], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].startswith(f"{command}: ")
    assert errors[-1] == f"Try '{command} --help'."
