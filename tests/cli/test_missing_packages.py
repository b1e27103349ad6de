"""What to install without an extra or with a native module older than its sources."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tcpcast.__main__ import is_native_module_stale

WITHOUT = {
    "matplotlib": "trace none.pcap --plot out | pip install matplotlib",
    "pyarrow": "trace none.pcap --parquet out | pip install pyarrow",
    "pyarrow ": "sweep one-path --vary network.rtt=1s,2s | need pyarrow, which is not installed",
    "distributed": "sweep one-path --vary network.rtt=1s,2s --dask tcp://127.0.0.1:9 | distributed",
    "duckdb": "query none SELECT | pip install duckdb",
    "uvicorn": "serve --no-browser | pip install starlette uvicorn",
    "mcp": "mcp | pip install 'mcp>=2,<3'",
    "scipy.stats": "reproduce engset --quick --out out | pip install 'tcpcast[papers]'",
}
"""Commands and parts of their messages, by the missing package."""


@pytest.mark.parametrize("package", WITHOUT)
def test_missing_package_is_named(package: str, tmp_path: Path) -> None:
    command, message = WITHOUT[package].split(" | ")
    code = (
        f"import sys; sys.modules[{package.strip()!r}] = None\n"
        f"from tcpcast.cli import main; sys.exit(main({command.split()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert message in done.stderr
    assert "none" not in done.stderr
    assert list(tmp_path.iterdir()) == []


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
