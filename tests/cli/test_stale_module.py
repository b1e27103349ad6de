"""Detection of a native module that is missing or older than its sources."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tcpcast.__main__ import is_native_module_stale

if TYPE_CHECKING:
    from pathlib import Path


def test_missing_or_outdated_native_module_is_stale(tmp_path: Path) -> None:
    package, sources = tmp_path / "python" / "tcpcast", tmp_path / "crates" / "sim" / "src"
    package.mkdir(parents=True)
    assert not is_native_module_stale(package)  # an installed package has no sources
    sources.mkdir(parents=True)
    (sources / "lib.rs").touch()
    assert is_native_module_stale(package)
    module = package / "_native.abi3.so"
    module.touch()
    os.utime(sources / "lib.rs", (1000, 1000))
    assert not is_native_module_stale(package)
    os.utime(module, (500, 500))
    assert is_native_module_stale(package)
