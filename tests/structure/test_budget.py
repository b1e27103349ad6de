"""The size of each package stays within 2 % of ``budget.tsv``.

Python counts syntax nodes and Rust counts code lines, both without tests, comments and docstrings;
data files count rows, so that code moved into data stays visible. After an intended change::

    python tests/structure/test_budget.py
"""

import ast
import csv
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUDGET = Path(__file__).with_name("budget.tsv")
TOLERANCE, MIN_DIFFERENCE = 0.02, 10
"""Allowed difference of a size, as a share and as a number."""

DATA = ("python", "scenarios")
ROWS = {".csv", ".tsv", ".toml", ".md", ".json"}
LIGHT = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


def nodes(text: str) -> int:
    """Return the number of syntax nodes of Python, without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                del node.body[0]
    return sum(not isinstance(node, LIGHT) for node in ast.walk(tree))


def lines(text: str) -> int:
    """Return the number of code lines of Rust, without the tests at the end of a file."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.split(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*mod \w+ \{", text)[0]
    return sum(
        1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//")
    )


def package(path: Path, depth: int) -> str:
    """Return the folder to which a file belongs: ``depth`` levels below the root, or its own."""
    return "/".join(path.relative_to(ROOT).parts[:-1][:depth])


def sizes() -> Counter[tuple[str, str]]:
    """Return the size of each package, by kind of count and folder."""
    counted: Counter[tuple[str, str]] = Counter()
    for path in ROOT.glob("python/**/*.py"):
        counted["nodes", package(path, 3)] += nodes(path.read_text(encoding="utf-8"))
    for path in ROOT.glob("crates/*/src/**/*.rs"):
        if "test" not in path.name and "tests" not in path.relative_to(ROOT).parts:
            counted["lines", package(path, 4)] += lines(path.read_text(encoding="utf-8"))
    for folder in DATA:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in ROWS:
                rows = path.read_text(encoding="utf-8").count("\n")
                counted["rows", package(path, 3)] += rows
    return counted


def budget() -> Counter[tuple[str, str]]:
    """Return the table."""
    with BUDGET.open(encoding="utf-8") as file:
        return Counter(
            {(kind, name): int(size) for kind, name, size in csv.reader(file, "excel-tab")}
        )


def test_packages_are_within_their_budget() -> None:
    now, planned = sizes(), budget()
    differing = [
        f"{name}: {now[kind, name]:,} {kind}, planned {planned[kind, name]:,}"
        for kind, name in sorted({*now, *planned})
        if abs(now[kind, name] - planned[kind, name])
        > max(MIN_DIFFERENCE, TOLERANCE * planned[kind, name])
    ]
    assert differing == [], "if the change is intended: python tests/structure/test_budget.py"


def test_docstrings_comments_and_tests_are_not_counted() -> None:
    assert nodes('"""A module."""\nx = 1\n') == nodes("x = 1  # one\n") == 4
    assert lines("// a\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n") == 1


def write() -> None:
    """Write the present sizes into the table."""
    with BUDGET.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, "excel-tab", lineterminator="\n")
        table.writerows((*key, size) for key, size in sorted(sizes().items()))


if __name__ == "__main__":
    write()
