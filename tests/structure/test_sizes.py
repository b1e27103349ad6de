"""Files and functions stay short enough to read."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
LONGEST_FILE = 500
"""Maximum lines of a file without tests, plus one."""
LONGEST_FUNCTION = 60
"""Maximum lines of a function without its docstring, plus one."""

VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}


def python_files() -> list[Path]:
    return sorted([*(ROOT / "python").rglob("*.py"), *(ROOT / "benches").rglob("*.py")])


def rust_files() -> list[Path]:
    crates = ROOT / "crates"
    files = [*crates.glob("*/src/**/*.rs"), *crates.glob("*/examples/*.rs")]
    return sorted(path for path in files if not path.stem.endswith("_tests"))


def identify(path: Path) -> str:
    return str(path.relative_to(ROOT))


def python_functions(source: str) -> Iterator[tuple[str, int]]:
    """Yield name and length in lines of every function, without its docstring."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        first = node.body[0]
        if (
            isinstance(first, ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        ):
            length -= (first.end_lineno or first.lineno) - first.lineno + 1
        yield node.name, length


TESTS_OF_RUST = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{\n.*?^\}\n", re.DOTALL | re.MULTILINE)
NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|r(\#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^\\'])'""", re.DOTALL
)
RUST_FUNCTION = re.compile(r"\bfn (\w+)")


def without_tests(source: str) -> str:
    return TESTS_OF_RUST.sub("", source)


def rust_functions(source: str) -> Iterator[tuple[str, int]]:
    """Yield name and length in lines of every function, by its braces."""
    # Strings, characters and comments may contain braces; their lines still count.
    code = NOT_CODE.sub(lambda result: "\n" * result[0].count("\n"), source)
    for result in RUST_FUNCTION.finditer(code):
        depth = 0
        for position in range(result.end(), len(code)):
            if code[position] == "{":
                depth += 1
            elif code[position] == "}":
                depth -= 1
            if (code[position] == ";" and depth == 0) or (code[position] == "}" and depth == 0):
                yield result[1], code.count("\n", result.start(), position) + 1
                break


def too_long(path: Path, source: str, functions: Iterator[tuple[str, int]]) -> Iterator[str]:
    lines = len(source.splitlines())
    if lines >= LONGEST_FILE:
        yield f"{identify(path)}: {lines} lines"
    yield from (f"{identify(path)}: {f}: {n}" for f, n in functions if n >= LONGEST_FUNCTION)


def test_python_files_and_functions_are_short() -> None:
    sources = ((path, path.read_text(encoding="utf-8")) for path in python_files())
    assert not [line for path, s in sources for line in too_long(path, s, python_functions(s))]


def test_rust_files_and_functions_are_short() -> None:
    sources = ((path, without_tests(path.read_text(encoding="utf-8"))) for path in rust_files())
    assert not [line for path, s in sources for line in too_long(path, s, rust_functions(s))]


def test_lengths_of_rust_functions_are_measured() -> None:
    source = "fn a() {\n    let x = \"{\";\n    // }\n}\n\nfn b();\nfn c<'a>(y: &'a str) {}\n"
    assert list(rust_functions(source)) == [("a", 4), ("b", 1), ("c", 1)]


def test_module_names_are_specific() -> None:
    files = [*python_files(), *rust_files()]
    assert not [p for p in files if VAGUE & {*p.relative_to(ROOT).parts, p.stem}]
