"""No code parses a message: notes, reasons and errors are values until a front end prints them."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "tcpcast"
METHODS = {"startswith", "endswith", "partition", "rpartition", "split", "replace"}
PATTERNS = {"sub", "search", "match", "fullmatch", "findall", "split"}
MESSAGES = {
    "reason",
    "interval_warning",
    "incomplete_reason",
    "not_applicable",
    "message",
    "why",
    "warnings",
}
"""Attributes that contain a message."""

KNOWN = {
    "answer/__init__.py": 1,  # Metric.missing_interval, until a doubt is a value
}
"""Files that still parse messages, and how often; the numbers may only decrease."""


def is_message(node: ast.expr, caught: set[str]) -> bool:
    """Return True for a text attribute of a note, answer or error, and for the text of an error."""
    if isinstance(node, ast.Attribute):
        return node.attr in MESSAGES
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        return any(
            isinstance(argument, ast.Name) and argument.id in caught for argument in node.args
        )
    return False


def parses(node: ast.AST, caught: set[str]) -> bool:
    """Return True for a string method, a pattern or ``in`` that is applied to a message."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        of_text = node.func.attr in METHODS and is_message(node.func.value, caught)
        patterns = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
        of_pattern = patterns and node.func.attr in PATTERNS
        return of_text or (of_pattern and any(is_message(a, caught) for a in node.args))
    if isinstance(node, ast.Compare):
        pairs = zip(node.ops, node.comparators, strict=True)
        return any(isinstance(op, ast.In | ast.NotIn) and is_message(n, caught) for op, n in pairs)
    return False


def parsed(source: str) -> Iterator[int]:
    """Yield the lines of a module that parse a message."""
    tree = ast.parse(source)
    caught = {n.name for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler) and n.name}
    yield from (n.lineno for n in ast.walk(tree) if isinstance(n, ast.expr) and parses(n, caught))


def test_no_code_parses_a_message() -> None:
    result = Counter[str]()
    lines = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        for line in parsed(path.read_text()):
            result[name] += 1
            lines.append(f"{name}:{line}")
    assert dict(result) == KNOWN, lines


def test_all_ways_to_parse_are_found() -> None:
    for text in (
        'note.why.startswith("a")',
        'answer.reason.partition(":")',
        're.sub("a", "b", note.why)',
        '"a" in answer.incomplete_reason',
        'answer.not_applicable.replace("a", "b")',
        'try:\n    f()\nexcept ValueError as fault:\n    str(fault).split(":")',
    ):
        assert list(parsed(text)), text
    assert not list(parsed('name.startswith("a")\n"a" in names'))
