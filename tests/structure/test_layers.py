"""The modules of the simulator import downwards only: there is no circle among them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SIM = Path(__file__).parents[2] / "crates" / "sim" / "src"

LAYERS = (
    {"balance", "clock", "packet", "random"},
    {"access", "heads", "queue", "rounds", "traffic", "wheel"},
    {"jitter", "loss", "mean_field", "probe", "timers"},
    {"agenda", "cross", "tcp"},
    {"config", "source"},
    {"hops", "memory"},
    {"way"},
    {"network"},
    {"replications"},
    {"lib"},
)
"""From the bottom up. A module imports only from lower layers, and from itself."""

STAGE = re.compile(r"^impl<[^{;]*>\s*(Network|Simulation)<", re.MULTILINE)
"""Files that have a stage of a packet's way are of the network, wherever they lie."""


def sources() -> list[Path]:
    """All files but those of unit tests."""
    return [path for path in sorted(SIM.rglob("*.rs")) if not path.stem.endswith("tests")]


def code(path: Path) -> str:
    """The text of a file without comments and unit tests."""
    text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    return re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]


def room(path: Path) -> str:
    if STAGE.search(code(path)):
        return "network"
    return path.relative_to(SIM).parts[0].removesuffix(".rs")


def imported(path: Path) -> set[str]:
    """The modules at the top that a file names."""
    text = code(path)
    names = re.findall(r"\bcrate::(\w+)", text)
    for group in re.findall(r"\bcrate::\{([^;]*)\};", text):
        inner = re.sub(r"\{[^{}]*\}", "", group)
        names += [item.split("::")[0].strip() for item in inner.split(",") if item.strip()]
    return set(names)


def named(name: str) -> str:
    """The room of a module that is imported by its name."""
    file = SIM / f"{name}.rs"
    return room(file) if file.exists() else name


def layer(name: str) -> int:
    (at,) = [at for at, rooms in enumerate(LAYERS) if name in rooms]
    return at


def test_every_module_has_its_layer() -> None:
    known = set[str]().union(*LAYERS)
    assert len(known) == sum(map(len, LAYERS))
    assert {room(path) for path in sources()} == known


@pytest.mark.parametrize("name", sorted(set[str]().union(*LAYERS) - {"lib"}))
def test_a_module_imports_from_lower_layers_only(name: str) -> None:
    for path in sources():
        if room(path) != name:
            continue
        for other in {named(other) for other in imported(path)} - {name}:
            assert layer(other) < layer(name), f"{path.relative_to(SIM)} imports {other}"


def test_what_a_file_imports_is_read(tmp_path: Path) -> None:
    path = tmp_path / "some.rs"
    path.write_text(
        "use crate::clock::{Nanos, SECOND};\n"
        "use crate::{packet::Packet, queue::{DropTail, Fair}};\n"
        "// use crate::run::Simulation;\n"
        "fn f(x: crate::tcp::Tcp) {}\n"
        "#[cfg(test)]\nmod tests { use crate::replications::Replications; }\n"
    )
    assert imported(path) == {"clock", "packet", "queue", "tcp"}
