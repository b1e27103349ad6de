"""Commands in an untrusted directory: they run none of its code and ignore its settings."""

import os
import subprocess
import sys
from pathlib import Path

import started

COMMAND = "import sys; sys.path.pop(0); from tcpcast.__main__ import main; sys.exit(main())"
"""The installed command: unlike ``python -m``, it does not import from the current directory."""
SHADOWED = ("json", "pickle", "socket", "numpy", "pyarrow", "selectors", "tcpcast", "warm")
"""Modules that sweep processes import and that a file in the directory could replace."""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", COMMAND, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_sweep_runs_no_code_from_current_directory(tmp_path: Path) -> None:
    for name in SHADOWED:
        (tmp_path / f"{name}.py").write_text("open('was-run', 'a').write(__name__ + ' ')\n")
    vary = ["--vary", "network.rtt=20ms,40ms", "--set", "run.duration=20s", "--set=run.warmup=2s"]
    done = run(tmp_path, "sweep", "one-path", *vary, "--engine=packet", "--processes=2", "--csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "was-run").exists()


SETTINGS = {
    "changed": b"lines.linewidth: 20\nno.such.key: 1\ntext.usetex: perhaps\n",
    "no text": b"\xff\xfe\x00font.size: 3\n",
}


def test_matplotlibrc_in_current_directory_is_ignored(tmp_path: Path) -> None:
    command = ["predict", "--rtt=50ms", "--loss=0.1%..1%", "--plot=figures", "--format=svg"]
    figure = "figures/goodput_bps.svg"
    done = started.completed(command, folder=tmp_path, environment=os.environ)
    assert done.returncode == 0, done.stderr
    for name, settings in SETTINGS.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "matplotlibrc").write_bytes(settings)
        done = run(folder, *command)
        assert done.returncode == 0, done.stderr
        assert all(line.startswith("tcpcast: wrote") for line in done.stderr.splitlines())
        assert (folder / figure).read_bytes() == (tmp_path / figure).read_bytes()
