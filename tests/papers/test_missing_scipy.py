"""Without scipy, an extra, papers are refused with the command that installs it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tcpcast.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_missing_scipy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("tcpcast_papers.engset")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    assert main(["reproduce", "engset", "--quick", "--output", str(tmp_path / "out")]) == 3
    assert capsys.readouterr().err.endswith("pip install 'tcpcast[papers]'\n")
