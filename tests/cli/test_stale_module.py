"""Detection of a native module that is missing or older than its sources."""

import os
from pathlib import Path

from tcpcast.__main__ import is_native_module_stale


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
