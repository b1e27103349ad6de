"""Import cycles in Python are small, including imports for annotations.

Larger cycles mean that a package can only be read as a whole. Imports of the package ``tcpcast``
itself do not count, because it loads its contents on demand.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.sparse.csgraph import connected_components

PYTHON = Path(__file__).parents[2] / "python"
MAX_FILES = 5


def find_modules() -> dict[str, Path]:
    """Return the files of both packages by the dotted names of their modules."""
    return {
        ".".join(path.relative_to(PYTHON).with_suffix("").parts).removesuffix(".__init__"): path
        for path in PYTHON.rglob("*.py")
    }


def iter_imports(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else node.module for name in names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_import_cycles_are_small() -> None:
    modules = find_modules()
    names = list(modules)
    imports = np.zeros((len(names), len(names)), dtype=bool)
    for at, path in enumerate(modules.values()):
        for name in {*iter_imports(path, modules)} & (modules.keys() - {"tcpcast"}):
            imports[at, names.index(name)] = True
    assert imports.sum() > len(names)
    count, label = connected_components(imports, directed=True, connection="strong")
    cycles = [[names[i] for i in np.flatnonzero(label == each)] for each in range(count)]
    assert not [cycle for cycle in cycles if len(cycle) > MAX_FILES]
