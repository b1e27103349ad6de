"""`import tcpcast` and `tcpcast --help` load nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"numpy", "scipy", "pydantic", "matplotlib", "rich", "tcpcast._native"}
PROBE = """
import contextlib, io, json, sys
print()
for code in {codes!r}:
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code)
    names = set(sys.modules)
    print(json.dumps(sorted(n for n in names if n.split(".")[0] in {heavy} or n in {heavy})))
"""
MAIN = "from tcpcast.cli import main; assert main({arguments}) == 0"


def heavy_after(*codes: str) -> list[set[str]]:
    """Modules that one interpreter has loaded after each piece of code, in order."""
    probe = PROBE.format(codes=codes, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    loaded = map(json.loads, done.stdout.splitlines()[-len(codes) :])
    return [{n if n in HEAVY else n.split(".")[0] for n in names} for names in loaded]


LIGHT = [
    "import tcpcast",
    "import tcpcast; tcpcast.__version__; tcpcast.run; tcpcast.TcpcastError; tcpcast.Answer",
    "import tcpcast.engines; list(tcpcast.engines.REGISTRY)",
    MAIN.format(arguments="['--help']"),
    MAIN.format(arguments="['--version']"),
]
COMMANDS = ["run", "plan", "trace", "new", "engines", "schema", "reproduce", "serve"]
PREDICT = ["predict", "--rtt", "60ms", "--loss", "1%"]
PREDICTIONS = [
    [],
    ["--rate", "1gbit", "--explain"],
    ["--size", "100kB"],
    ["--stack", "rfc-reno", "--size", "9kB"],
]


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """Modules loaded after each of these, from the lightest to the heaviest."""
    helps = [MAIN.format(arguments=[command, "--help"]) for command in COMMANDS]
    predictions = [MAIN.format(arguments=PREDICT + more) for more in PREDICTIONS]
    codes = [*LIGHT, *helps, *predictions]
    return dict(zip(codes, heavy_after(*codes), strict=True))


@pytest.mark.parametrize("code", LIGHT)
def test_nothing_heavy_is_loaded(code: str, loaded: dict[str, set[str]]) -> None:
    assert loaded[code] == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_loads_nothing_but_what_typer_itself_does(
    command: str, loaded: dict[str, set[str]]
) -> None:
    assert loaded[MAIN.format(arguments=[command, "--help"])] <= {"pydantic"}


@pytest.mark.parametrize("more", PREDICTIONS)
def test_a_prediction_loads_no_scipy_and_no_simulator(
    more: list[str], loaded: dict[str, set[str]]
) -> None:
    # scipy.sparse alone takes longer than numpy.
    assert loaded[MAIN.format(arguments=PREDICT + more)] == {"numpy", "pydantic"}


def test_a_link_loads_no_scipy() -> None:
    code = (
        "from tcpcast.cli import link; "
        "from tcpcast.engines.kernel.emulated_path import path_configuration"
    )
    assert heavy_after(code) == [{"numpy", "pydantic", "tcpcast._native"}]


def test_a_command_loads_no_other() -> None:
    code = f"""
import sys
{MAIN.format(arguments=PREDICT)}
others = "run plan sweep query trace report serve reproduce link new engines schema"
assert not [name for name in others.split() if f"tcpcast.cli.{{name}}" in sys.modules]
# No search for plugins in all that is installed, no grammar of Python for a signature.
assert "tokenize" not in sys.modules or not sys.modules["tokenize"]._compile.cache_info().currsize
import pydantic.plugin._loader
assert pydantic.plugin._loader._plugins is None
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_a_command_looks_for_no_garbage_among_what_it_imports() -> None:
    code = f"""
import gc, sys
sys.argv = ["tcpcast", *{PREDICT}]
from tcpcast.__main__ import main
before = sum(generation["collections"] for generation in gc.get_stats())
assert main() == 0
assert sum(generation["collections"] for generation in gc.get_stats()) - before < 5
assert gc.isenabled()
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_tables_are_validated_by_what_is_built_when_one_is_read() -> None:
    code = """
import tcpcast.scenario as all_tables
from tcpcast.scenario.table import Table
found = [t for t in vars(all_tables).values() if isinstance(t, type) and issubclass(t, Table)]
assert len(found) > 20
built = [t.__name__ for t in found if t.__pydantic_complete__]
assert set(built) <= {"Distribution"}, built  # whose parameters need it
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_probe_sees_what_is_loaded() -> None:
    codes = ["import numpy", "import rich.table", "print('{}')"]
    assert heavy_after(*codes) == [{"numpy"}, {"numpy", "rich"}, {"numpy", "rich"}]


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
