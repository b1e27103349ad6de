"""`import tcpcast` and `tcpcast --help` load nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"numpy", "scipy", "pydantic", "matplotlib", "rich", "tcpcast._native"}
PROBE = """
import json, sys
{code}
names = set(sys.modules)
print("\\n" + json.dumps(sorted(n for n in names if n.split(".")[0] in {heavy} or n in {heavy})))
"""
MAIN = "from tcpcast.cli import main; assert main({arguments}) == 0"


def heavy_after(code: str) -> set[str]:
    probe = PROBE.format(code=code, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    return {n if n in HEAVY else n.split(".")[0] for n in loaded}


@pytest.mark.parametrize(
    "code",
    [
        "import tcpcast",
        "import tcpcast; tcpcast.__version__; tcpcast.run; tcpcast.TcpcastError; tcpcast.Answer",
        "import tcpcast.engines; list(tcpcast.engines.REGISTRY)",
        MAIN.format(arguments="['--help']"),
        MAIN.format(arguments="['--version']"),
    ],
)
def test_nothing_heavy_is_loaded(code: str) -> None:
    assert heavy_after(code) == set()


@pytest.mark.parametrize(
    "command", ["run", "plan", "trace", "new", "engines", "schema", "reproduce", "serve"]
)
def test_help_of_a_command_loads_nothing_but_what_typer_itself_does(command: str) -> None:
    assert heavy_after(MAIN.format(arguments=f"['{command}', '--help']")) <= {"pydantic"}


def test_the_probe_sees_what_is_loaded() -> None:
    assert heavy_after("import numpy, rich.table") == {"numpy", "rich"}


def test_exports_are_the_things_themselves() -> None:
    code = """
import tcpcast
from tcpcast.scenario import Scenario, load
assert tcpcast.Scenario is Scenario and tcpcast.load is load
assert set(tcpcast.__all__) <= set(dir(tcpcast))
try:
    tcpcast.nonsense
except AttributeError as fault:
    assert "nonsense" in str(fault)
else:
    raise SystemExit("no AttributeError")
for name in tcpcast.__all__:
    getattr(tcpcast, name)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
