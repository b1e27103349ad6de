"""The modules of the simulator import only downwards, without cycles."""

import re
from pathlib import Path

import pytest

SIM = Path(__file__).parents[2] / "crates" / "sim" / "src"

LAYERS = (
    {"clock", "conservation", "merge", "packet", "random"},
    {"queue", "round_loss", "traffic"},
    {"jitter", "loss", "population"},
    {"cross"},
    {"probe"},
    {"replication"},
    {"flows"},
    {"lib"},
)
"""Folders and files from the bottom up; each imports from lower layers and from itself."""


def sources() -> list[Path]:
    """Return all files except for unit tests."""
    return [path for path in sorted(SIM.rglob("*.rs")) if not path.stem.endswith("tests")]


def code(path: Path) -> str:
    """Return the text of a file without comments and unit tests."""
    text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    return re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]


def top_module(path: Path) -> str:
    return path.relative_to(SIM).parts[0].removesuffix(".rs")


def imported(path: Path) -> set[str]:
    """Return the top-level modules that a file names."""
    text = code(path)
    names = re.findall(r"\bcrate::(\w+)", text)
    for group in re.findall(r"\bcrate::\{([^;]*)\};", text):
        inner = re.sub(r"\{[^{}]*\}", "", group)
        names += [item.split("::")[0].strip() for item in inner.split(",") if item.strip()]
    return set(names)


def layer(name: str) -> int:
    (level,) = [level for level, modules in enumerate(LAYERS) if name in modules]
    return level


def test_every_module_has_a_layer() -> None:
    known = set[str]().union(*LAYERS)
    assert len(known) == sum(map(len, LAYERS))
    assert {top_module(path) for path in sources()} == known


@pytest.mark.parametrize("name", sorted(set[str]().union(*LAYERS) - {"lib"}))
def test_modules_import_from_lower_layers_only(name: str) -> None:
    for path in sources():
        if top_module(path) != name:
            continue
        for other in imported(path) - {name}:
            assert layer(other) < layer(name), f"{path.relative_to(SIM)} imports {other}"


def test_imports_of_a_file_are_parsed(tmp_path: Path) -> None:
    path = tmp_path / "some.rs"
    path.write_text(
        "use crate::clock::{Nanos, SECOND};\n"
        "use crate::{packet::Packet, queue::{DropTail, Fair}};\n"
        "// use crate::run::Simulation;\n"
        "fn f(x: crate::cross::Stream) {}\n"
        "#[cfg(test)]\nmod tests { use crate::run::Replications; }\n"
    )
    assert imported(path) == {"clock", "packet", "queue", "cross"}
