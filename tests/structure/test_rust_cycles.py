"""Import cycles within a Rust crate have at most two files.

Imports from a file to a module that contains the file do not count, because a submodule is part of
its parent. Re-exports (``pub use``) are resolved to the file that defines the item.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

CRATES = Path(__file__).parents[2] / "crates"
MAX_FILES = 2

Module = tuple[str, ...]
"""Path of a module within its crate; the crate's root is empty."""

USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")


def expand_use(tree: str, prefix: Module = ()) -> list[tuple[Module, str]]:
    """Return the path and the local name of each item of a ``use`` tree."""
    group = re.fullmatch(r"([\w:]*?)(?:::)?\{(.*)\}", tree.strip(), re.DOTALL)
    if group is None:
        path, _, alias = tree.strip().partition(" as ")
        names = tuple(path.split("::"))
        return [(prefix + names, alias.strip() or names[-1])] if path else []
    outer = prefix + tuple(name for name in group[1].split("::") if name)
    parts, depth = [""], 0
    for char in group[2]:
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [item for part in parts for item in expand_use(part, outer)]


class Crate:
    """The modules of a crate that have a file, and the names that each module imports."""

    def __init__(self, src: Path) -> None:
        self.text: dict[Module, str] = {}
        for path in src.rglob("*.rs"):
            if not path.stem.endswith("tests"):
                module = path.relative_to(src).with_suffix("").parts
                text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
                self.text[module[:-1] if module[-1] in {"mod", "lib"} else module] = re.split(
                    r"#\[cfg\(test\)\]\s*mod \w+ \{", text
                )[0]
        self.local_names = {
            (module, name): target
            for module, text in self.text.items()
            for _, tree in USE.findall(text)
            for item, name in expand_use(tree)
            if (target := self.absolute(module, item)) is not None
        }

    def absolute(self, module: Module, path: Module) -> Module | None:
        """Return a path from the crate's root; None for an item of another crate."""
        if path[0] == "crate":
            return path[1:]
        if path[0] in {"self", "super"}:
            outer = len([name for name in path if name == "super"])
            names = tuple(name for name in path if name not in {"self", "super"})
            return module[: len(module) - outer] + names
        return module + path if (*module, path[0]) in self.text else None

    def defining_module(self, path: Module) -> Module:
        """Return the module whose file defines an item, through re-exports."""
        if path in self.text:
            return path
        for end in range(len(path) - 1, -1, -1):
            if path[:end] in self.text:
                source = self.local_names.get((path[:end], path[end]))
                return self.defining_module(source + path[end + 1 :]) if source else path[:end]
        raise AssertionError(path)

    def imports(self, module: Module) -> set[Module]:
        """Return the modules from which a file imports, except for those that contain it."""
        text = self.text[module]
        paths = [
            path for public, tree in USE.findall(text) if not public for path, _ in expand_use(tree)
        ]
        paths += [
            tuple(path.split("::"))
            for path in re.findall(r"\b(?:crate|super|self)(?:::\w+)+", USE.sub("", text))
        ]
        found = [self.absolute(module, path) for path in paths]
        imported = {self.defining_module(path) for path in found if path is not None}
        return {other for other in imported if other != module[: len(other)]}

    def cycles(self) -> list[list[str]]:
        """Return the groups of two or more modules in which each imports each, also indirectly."""
        modules = sorted(self.text)
        edges = np.zeros((len(modules), len(modules)))
        for index, module in enumerate(modules):
            edges[index, [modules.index(other) for other in self.imports(module)]] = 1
        count, labels = connected_components(edges, connection="strong")
        groups = [np.flatnonzero(labels == label) for label in range(count)]
        return [["::".join(modules[i]) for i in group] for group in groups if len(group) > 1]


@pytest.mark.parametrize("crate", sorted(path.name for path in CRATES.iterdir()))
def test_cycles_have_at_most_two_files(crate: str) -> None:
    cycles = Crate(CRATES / crate / "src").cycles()
    assert [cycle for cycle in cycles if len(cycle) > MAX_FILES] == []


def test_a_made_up_cycle_is_found(tmp_path: Path) -> None:
    files = {
        "lib": "mod a; mod b; mod c; mod d; pub use d::D;",
        "a": "use crate::{b::{B, X as Y}, other};\n// use crate::d::D;",
        "b": "use std::fmt;\nfn f(c: super::c::C) {}",
        "c/mod": "mod inner; use crate::a::A;\nuse inner::I;",
        "c/inner": "use super::C;\n#[cfg(test)]\nmod tests { use crate::a::A; }",
        "d": "use crate::a::A;",
    }
    (tmp_path / "c").mkdir()
    for name, text in files.items():
        (tmp_path / f"{name}.rs").write_text(text)
    crate = Crate(tmp_path)
    assert crate.imports(("c", "inner")) == set()
    assert crate.cycles() == [["a", "b", "c"]]
    (tmp_path / "a.rs").write_text("use crate::D;")
    assert Crate(tmp_path).cycles() == [["a", "d"]]
