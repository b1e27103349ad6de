"""Dependencies have one direction, in Python and in Rust, as drawn in ARCHITECTURE.md."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "tcpcast"
PAPERS = ROOT / "python" / "tcpcast_papers"
CRATES = ROOT / "crates"

QUESTION = {"process", "quantity", "scenario"}
ANSWERING = QUESTION | {
    *("_native", "array_types", "models", "statistics", "answer", "captures", "engines"),
}
MAY_IMPORT = {
    "process": set[str](),
    "array_types": set[str](),
    "quantity": {"process"},
    "networks": {"process"},
    "statistics": {"process", "array_types", "_native"},
    "models": {"process", "array_types", "statistics"},
    "answer": {"process"},
    # Of an answer, the names of metrics.
    "scenario": {"process", "quantity", "answer"},
    # Congestion controls that users write.
    "control": QUESTION | {"_native"},
    "captures": QUESTION | {"_native", "array_types", "models", "answer"},
    # Files of programs that test a line.
    "measurements": QUESTION | {"answer", "captures"},
    # The link's process, and its starter, used by engines and commands.
    "emulation": {"process", "_native"},
    "engines": ANSWERING | {"emulation"},
    "comparison": ANSWERING,
    "sweeps": ANSWERING | {"comparison"},
    "options": ANSWERING | {"comparison", "sweeps"},
    "plan": ANSWERING | {"comparison", "options"},
    # Formats the results of engines, and evaluates no models.
    "report": ANSWERING - {"models"} | {"comparison", "plan", "sweeps", "emulation"},
    # Finds packages of papers, whose reports a command prints.
    "papers": {"process", "report"},
    "web": ANSWERING | {"comparison", "options", "plan", "report", "sweeps"},
    "cli": ANSWERING
    | {"comparison", "options", "plan", "report", "sweeps", "web"}
    | {"control", "emulation", "measurements", "papers"},
    "pytest_plugin": {"comparison", "control"},
    "__main__": {"cli", "process"},
}
"""Packages, and the packages that each may import in addition to itself."""

PUBLIC = (
    *("tcpcast.answer.", "tcpcast.comparison.compare.", "tcpcast.process.errors."),
    *("tcpcast.engines.answer", "tcpcast.engines.RunOptions", "tcpcast.process.output"),
    *("tcpcast.measurements.", "tcpcast.models.", "tcpcast.papers.", "tcpcast.report."),
    *("tcpcast.scenario.", "tcpcast.statistics"),
)
"""Prefixes of the names that ``tcpcast_papers`` may import."""

PRIVATE = {
    # Simulations that pause at the end of each piece of a trace, to read their sums.
    "tcpcast._native",
    "tcpcast.engines.packet.configuration.make_configuration",
    "tcpcast.engines.packet.configuration.to_nanoseconds",
    "tcpcast.engines.packet.counters.CLASS_COUNTER",
    "tcpcast.engines.packet.counters.LINK_COUNTER",
    # The whole result of the model; the engine returns its metrics only.
    "tcpcast.engines.formula.engset.engset_inputs",
    # The formulas that a run requests by default.
    "tcpcast.engines.REGISTRY",
    "tcpcast.engines.registry.PATH_FAMILY",
}
"""Additional private names that it imports, with their purpose."""

FROM_OUTSIDE = {
    "process": {"matplotlib"},
    "quantity": set[str](),
    "networks": set[str](),
    "pytest_plugin": set[str](),
    "array_types": {"numpy"},
    "statistics": {"numpy"},
    "answer": {"numpy"},
    "models": {"numpy"},
    "captures": {"numpy"},
    "scenario": {"pydantic", "pydantic_core"},
}
"""Packages that may import only these installed packages; others may use any dependency."""


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return the nodes of a file that can name a module."""
    kinds = ast.Import | ast.ImportFrom | ast.Attribute
    walked = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in walked if isinstance(node, kinds)]


def imports(path: Path) -> Iterator[str]:
    """Yield dotted names of all imports of a file, including those for types and in functions."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the module"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def root_attributes(path: Path) -> set[str]:
    """Return the attributes that a file uses of ``import tcpcast``, such as ``run``."""
    return {
        node.attr
        for node in nodes(path)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "tcpcast"
    }


def test_every_package_has_a_rule() -> None:
    assert {package_of(path) for path in modules()} <= MAY_IMPORT.keys()


def from_above(path: Path) -> Iterator[str]:
    """Yield imports of a module from packages above its own."""
    allowed = MAY_IMPORT[package_of(path)] | {package_of(path)}
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top != "tcpcast":
            continue
        if rest and rest.split(".")[0] not in allowed:
            yield f"{path}: {package_of(path)} must not import {name}"
        # The package itself re-exports everything; its version is not a dependency.
        elif not rest and package_of(path) != "cli" and root_attributes(path) - {"__version__"}:
            yield f"{path} takes more of {name}"


def test_modules_import_only_lower_packages() -> None:
    assert not [error for path in modules() for error in from_above(path)]


def test_papers_use_the_public_interface() -> None:
    named = {name for path in PAPERS.rglob("*.py") for name in imports(path)}
    own = {name for name in named if name.startswith("tcpcast.") and not name.startswith(PUBLIC)}
    assert own == PRIVATE


def test_tcpcast_finds_papers_by_entry_points_only() -> None:
    named = {name.partition(".")[0] for path in modules() for name in imports(path)}
    assert "tcpcast_papers" not in named
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["tcpcast.papers"] == {"tcpcast": "tcpcast_papers"}


def test_restricted_packages_import_only_listed_dependencies() -> None:
    installed = {
        "numpy",
        "scipy",
        "pydantic",
        "pydantic_core",
        "rich",
        "typer",
        "matplotlib",
        "pyarrow",
    }
    pure = [path for path in modules() if package_of(path) in FROM_OUTSIDE]
    outside = {path: {name.split(".")[0] for name in imports(path)} & installed for path in pure}
    assert not {p: names for p, names in outside.items() if names - FROM_OUTSIDE[package_of(p)]}


CRATE_MAY_USE = {
    "link": set[str](),
    "wire": set[str](),
    "net": {"link"},
    "tcp": {"link"},
    "sim": {"link", "net", "tcp", "wire"},
    "fixed_point": {"link", "sim", "tcp"},
    "trace": {"wire"},
    "emu": {"link", "net", "wire"},
    "py": {"emu", "fixed_point", "link", "net", "sim", "tcp", "trace"},
    "wasm": {"sim"},
}
CRATE_LIBRARIES = {
    "link": {"libm", "rand_core", "rand_xoshiro", "serde", "thiserror"},
    "wire": {"thiserror"},
    "net": set[str](),
    "tcp": {"libm", "serde"},
    "sim": {"libm", "rand_core", "rand_xoshiro", "rustfft", "serde", "thiserror"},
    "fixed_point": {"libm", "serde"},
    "trace": {"flate2", "thiserror", "zstd"},
    "emu": {
        "io_uring",
        "netlink_packet_core",
        "netlink_packet_route",
        "netlink_sys",
        "nix",
        "thiserror",
    },
    "py": {"libc", "numpy", "pyo3", "serde", "serde_path_to_error", "statrs"},
    "wasm": {"serde", "serde_json", "serde_path_to_error"},
}


def crates() -> list[str]:
    return sorted(path.parent.name for path in CRATES.glob("*/Cargo.toml"))


def test_every_crate_has_a_rule() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    assert workspace == ["crates/*"]
    assert set(crates()) == CRATE_MAY_USE.keys()


@pytest.mark.parametrize("crate", crates())
def test_crates_depend_only_on_lower_crates(crate: str) -> None:
    manifest = tomllib.loads((CRATES / crate / "Cargo.toml").read_text())
    tables = [manifest, *manifest.get("target", {}).values()]
    needs = {name.replace("-", "_") for table in tables for name in table.get("dependencies", {})}
    own = {name.removeprefix("tcpcast_") for name in needs if name.startswith("tcpcast_")}
    assert own <= CRATE_MAY_USE[crate]
    assert {n for n in needs if not n.startswith("tcpcast_")} <= CRATE_LIBRARIES[crate]


@pytest.mark.parametrize("crate", crates())
def test_crates_name_only_lower_crates(crate: str) -> None:
    for path in sorted((CRATES / crate / "src").rglob("*.rs")):
        named = set(re.findall(r"\btcpcast_(\w+)", path.read_text(encoding="utf-8")))
        # Examples in documentation name the crate itself.
        assert named <= CRATE_MAY_USE[crate] | {crate}, path


@pytest.mark.parametrize("crate", ["fixed_point", "link", "net", "sim", "tcp", "wire"])
def test_simulator_crates_do_no_io(crate: str) -> None:
    """No clock, file, socket or print: times and bytes are arguments and results."""
    forbidden = re.compile(
        r"std::(fs|net|time|env|process)\b|\bSystemTime\b|\bInstant\b|\be?print(ln)?!|\bdbg!"
    )
    for path in sorted((CRATES / crate / "src").rglob("*.rs")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            code = line.split("//")[0]
            assert not forbidden.search(code), f"{path}:{number}: {line.strip()}"
