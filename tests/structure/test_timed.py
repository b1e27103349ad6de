"""Tests that compare measured times are marked, so that they do not fail on a busy machine."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
CLOCKS = {"monotonic", "perf_counter", "time", "process_time", "monotonic_ns", "perf_counter_ns"}


def reads_clock(node: ast.AST) -> bool:
    """Return True if the code calls a clock of ``time``."""
    return any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and (call.func.value.id, call.func.attr in CLOCKS) == ("time", True)
        for call in ast.walk(node)
    )


def unmarked_tests(source: str) -> list[str]:
    """Return the tests whose assertions depend on a clock, without the mark ``timed``."""
    found = []
    for test in ast.walk(ast.parse(source)):
        if not isinstance(test, ast.FunctionDef) or not test.name.startswith("test_"):
            continue
        timed = {
            name.id
            for assigned in ast.walk(test)
            if isinstance(assigned, ast.Assign)
            and isinstance(assigned.value, ast.BinOp)
            and isinstance(assigned.value.op, ast.Sub)
            and reads_clock(assigned.value)
            for name in assigned.targets
            if isinstance(name, ast.Name)
        }
        asserted = [node.test for node in ast.walk(test) if isinstance(node, ast.Assert)]
        measured = any(
            reads_clock(one)
            or any(isinstance(name, ast.Name) and name.id in timed for name in ast.walk(one))
            for one in asserted
        )
        if measured and not any("timed" in ast.unparse(mark) for mark in test.decorator_list):
            found.append(test.name)
    return found


def test_an_asserted_time_is_found() -> None:
    code = "def test_a():\n    a = time.monotonic()\n    assert time.monotonic() - a < 2\n"
    assert unmarked_tests(code) == ["test_a"]
    named = "def test_b():\n    took = time.perf_counter() - began\n    assert took < 2\n"
    assert unmarked_tests(named) == ["test_b"]
    assert unmarked_tests("@pytest.mark.timed\n" + named) == []


def test_tests_of_measured_times_are_marked() -> None:
    found = {
        path.relative_to(TESTS).as_posix(): names
        for path in sorted(TESTS.rglob("test_*.py"))
        if (names := unmarked_tests(path.read_text(encoding="utf-8")))
    }
    assert not found
