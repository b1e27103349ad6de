"""The files that a wheel installs with the package equal the outputs of the commands."""

from __future__ import annotations

import tomllib

import pytest
from doc_installed import COMMANDS, SHARE, printed
from doc_pages import ROOT


@pytest.mark.parametrize("name", COMMANDS)
def test_installed_file_equals_command_output(name: str) -> None:
    installed = (SHARE / name).read_text(encoding="utf-8")
    assert installed == printed(COMMANDS[name]), f"{name} has changed: make docs-update"


def test_wheel_contains_exactly_these_files() -> None:
    files = {path.relative_to(SHARE).as_posix() for path in SHARE.rglob("*") if path.is_file()}
    assert files == set(COMMANDS)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert ROOT / project["tool"]["maturin"]["data"] / "data" / "share" == SHARE
