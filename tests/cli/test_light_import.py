"""`import tcpcast` and `tcpcast --help` load no heavy modules."""

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
    """Return the modules that one interpreter has loaded after each piece of code, in order."""
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
COMMANDS = ["run", "plan", "trace", "new", "engines", "schema", "reproduce", "serve", "mcp"]
PREDICT = ["predict", "--rtt", "60ms", "--loss", "1%"]
PREDICTIONS = [
    [],
    ["--rate", "1gbit", "--explain"],
    ["--loss", "0%", "--rate", "20mbit", "--size", "100kB"],
    ["--loss", "0%", "--rate", "20mbit", "--stack", "rfc-reno", "--size", "9kB"],
]


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """Modules loaded after each piece of code, from the lightest to the heaviest."""
    helps = [MAIN.format(arguments=[command, "--help"]) for command in COMMANDS]
    predictions = [MAIN.format(arguments=PREDICT + more) for more in PREDICTIONS]
    codes = [*LIGHT, *helps, *predictions]
    return dict(zip(codes, heavy_after(*codes), strict=True))


@pytest.mark.parametrize("code", LIGHT)
def test_import_help_and_version_load_no_heavy_modules(
    code: str, loaded: dict[str, set[str]]
) -> None:
    assert loaded[code] == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_command_help_loads_no_heavy_module_except_pydantic(
    command: str, loaded: dict[str, set[str]]
) -> None:
    assert loaded[MAIN.format(arguments=[command, "--help"])] <= {"pydantic"}


@pytest.mark.parametrize("more", PREDICTIONS)
def test_predict_loads_no_scipy_and_no_simulator(
    more: list[str], loaded: dict[str, set[str]]
) -> None:
    # scipy.sparse alone takes longer than numpy.
    assert loaded[MAIN.format(arguments=PREDICT + more)] == {"numpy", "pydantic"}


def test_run_of_the_simulator_loads_no_scipy_optimize() -> None:
    # It takes longer than the simulation of a short scenario.
    words = ["run", "office-50mbit", "--engine", "packet"]
    for change in ("run.duration=2s", "run.warmup=1s", "run.replications=2"):
        words += ["--set", change]
    code = f"""
import sys
from tcpcast.cli import main
main({words})
assert "tcpcast._native" in sys.modules
assert "scipy.optimize" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_command_imports_no_other_command() -> None:
    code = f"""
import sys
{MAIN.format(arguments=PREDICT)}
others = "plan sweep query trace report serve mcp reproduce link new engines schema"
assert not [name for name in others.split() if f"tcpcast.cli.{{name}}" in sys.modules]
# No search for plugins in all installed packages, no tokenizer for signatures.
assert "tokenize" not in sys.modules or not sys.modules["tokenize"]._compile.cache_info().currsize
import pydantic.plugin._loader
assert pydantic.plugin._loader._plugins is None
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_garbage_collector_is_idle_during_imports() -> None:
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


def test_scenario_validators_are_built_on_first_use() -> None:
    code = """
import tcpcast.scenario as all_tables
from tcpcast.scenario.table import Table
found = [t for t in vars(all_tables).values() if isinstance(t, type) and issubclass(t, Table)]
assert len(found) > 20
built = [t.__name__ for t in found if t.__pydantic_complete__]
assert set(built) <= {"Distribution"}, built  # built early for its parameters
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_probe_detects_heavy_modules() -> None:
    codes = ["import numpy", "import rich.table", "print('{}')"]
    assert heavy_after(*codes) == [{"numpy"}, {"numpy", "rich"}, {"numpy", "rich"}]


def test_lazy_exports_are_the_original_objects() -> None:
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
