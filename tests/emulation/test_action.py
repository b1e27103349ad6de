"""The steps of ``action.yml``, run as a runner of GitHub runs them."""

import base64
import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from .conftest import works

yaml = pytest.importorskip("yaml", reason="needs PyYAML: make setup")

ROOT = Path(__file__).parents[2]
ACTION: Any = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
SERVER = """\
import socket
with socket.create_server(("", 5000), reuse_port=True) as listener:
    connection, _ = listener.accept()
    while connection.recv(65536):
        pass
"""
CLIENT = """\
import os, socket, time
with socket.create_connection((os.environ["TCPCAST_PEER"], 5000)) as connection:
    end = time.monotonic() + 3
    while time.monotonic() < end:
        connection.sendall(bytes(65536))
"""


def test_each_input_is_used_and_each_expression_is_an_input() -> None:
    used = set(EXPRESSION.findall(str(ACTION["runs"])))
    assert used == {f"inputs.{name}" for name in ACTION["inputs"]}


def wheel_of_this_tree(directory: Path) -> Path:
    """Return a wheel of the sources and the native module that the other tests use."""
    installed = importlib.metadata.distribution("tcpcast")
    wheel = directory / f"tcpcast-{installed.version}-cp311-abi3-linux_x86_64.whl"
    info = f"tcpcast-{installed.version}.dist-info"
    files = {
        str(path.relative_to(ROOT / "python")): path.read_bytes()
        for path in (ROOT / "python").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    for name in ("METADATA", "WHEEL", "entry_points.txt"):
        text = installed.read_text(name)
        assert text is not None
        files[f"{info}/{name}"] = text.encode()
    with zipfile.ZipFile(wheel, "w") as archive:
        record = []
        for name, content in files.items():
            archive.writestr(name, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            record.append(f"{name},sha256={digest.decode()},{len(content)}\n")
        archive.writestr(f"{info}/RECORD", "".join([*record, f"{info}/RECORD,,\n"]))
    return wheel


class Runner:
    """A job of a runner: its folders, and the steps that it runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.summary = folder / "summary.md"
        self.workspace = folder / "workspace"
        tools = folder / "tools"
        for directory in (self.workspace, tools, folder / "temporary"):
            directory.mkdir()
        # The test changes no setting of this machine. A runner without `sudo` also has to work.
        (tools / "sudo").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        (tools / "sudo").chmod(0o755)
        (tools / "python3").symlink_to(sys.executable)
        self.environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(folder / "temporary"),
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }

    def run(self, steps: list[Any], **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run steps until one fails; return the last one."""
        values = {name: entry["default"] for name, entry in ACTION["inputs"].items()}
        assert inputs.keys() <= values.keys()
        values |= inputs
        self.summary.unlink(missing_ok=True)
        script = self.folder / "step.sh"
        for step in steps:
            assert step["shell"] == "bash"
            script.write_text(step["run"], encoding="utf-8")
            environment = {
                name: EXPRESSION.sub(lambda found: values[found[1].removeprefix("inputs.")], text)
                for name, text in step["env"].items()
            }
            result = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
                env=self.environment | environment,
                cwd=self.workspace,
                capture_output=True,
                text=True,
                check=False,
                timeout=600,
            )
            if result.returncode != 0:
                break
        return result


@pytest.mark.long  # pip downloads and installs the dependencies
def test_steps_compare_a_program_and_a_stack(tmp_path: Path) -> None:
    if sys.platform != "linux" or not works("unshare", "-Urn", "true"):
        pytest.skip("this machine does not allow network namespaces")
    runner = Runner(tmp_path)
    (runner.workspace / "server.py").write_text(SERVER, encoding="utf-8")
    (runner.workspace / "client.py").write_text(CLIENT, encoding="utf-8")
    install, use = ACTION["runs"]["steps"]
    result = runner.run([install], tcpcast=str(wheel_of_this_tree(tmp_path)))
    assert result.returncode == 0, result.stderr

    program = {"server-command": "python3 server.py", "command": "python3 client.py"}
    two_paths = {"path": "--rtt 20ms --rate 10mbit", "vary": "network.rtt=20ms,40ms"}
    result = runner.run([use], **program, **two_paths, expect="rate >= 50% of linux-cubic\n")
    assert result.returncode == 0, result.stderr
    table = runner.summary.read_text(encoding="utf-8")
    assert table.count("linux-cubic") >= 2
    cases = ElementTree.parse(runner.workspace / "tcpcast-link.xml").findall(".//testcase")
    assert len(cases) == 2
    assert not any(case.findall("failure") for case in cases)

    result = runner.run([use], **program, expect="rate >= 30mbit", junit="reports.xml")
    assert result.returncode == 1
    assert "rate >= 30mbit" in runner.summary.read_text(encoding="utf-8")
    assert ElementTree.parse(runner.workspace / "reports.xml").find(".//failure") is not None

    result = runner.run([use])
    assert result.returncode == 2
    assert "give the input command or accept" in result.stdout
    assert not runner.summary.exists()

    result = runner.run([use], accept="linux-reno")
    assert result.returncode in (0, 1), result.stderr
    assert "linux-reno" in runner.summary.read_text(encoding="utf-8")
