"""The bytes of a sweep do not depend on the kernels that BLAS selects for a processor."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys, tcpcast
out = sys.argv[1]
several = {"network.rtt": ["20ms", "50ms", "120ms", "200ms"]}
tcpcast.sweep("web-10mbit", several, engines="engset", out=f"{out}/web", processes=1)
several |= {"run.duration": ["40s"], "run.warmup": ["5s"], "run.replications": [2]}
tcpcast.sweep("lossy-path", several, engines=["packet", "pftk"], out=f"{out}/path", processes=1)
several = {"network.rtt": ["20ms", "200ms"]}
tcpcast.sweep("short-transfers", several, engines="short", out=f"{out}/short", processes=1)
"""


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="kernels of x86")
def test_sweep_bytes_do_not_depend_on_blas_kernels(tmp_path: Path) -> None:
    def run_sweep(kernel: str) -> dict[str, bytes]:
        out = tmp_path / kernel
        environment = {**os.environ, "OPENBLAS_CORETYPE": kernel}
        subprocess.run([sys.executable, "-c", SCRIPT, out], env=environment, check=True)
        return {str(part.relative_to(out)): part.read_bytes() for part in out.glob("*/*.parquet")}

    with_oldest = run_sweep("Prescott")
    assert len(with_oldest) == 3
    assert run_sweep("Haswell" if "avx2" in _flags() else "Nehalem") == with_oldest


def _flags() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""
