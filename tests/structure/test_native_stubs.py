"""The stubs of the native module agree with the module."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tcpcast import _native

ROOT = Path(__file__).parents[2]
STUBS = ROOT / "python" / "tcpcast" / "_native.pyi"


def stub_class(name: str) -> ast.ClassDef:
    tree = ast.parse(STUBS.read_text(encoding="utf-8"))
    return next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)


def parameters_of_stub(
    function: ast.FunctionDef, *, is_method: bool = True
) -> list[tuple[str, str, bool]]:
    """Return name, kind and presence of a default for each parameter except self and cls."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    without = len(plain) - len(arguments.defaults)
    listed = [(a.arg, "plain", position >= without) for position, a in enumerate(plain)]
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return listed[is_method:] + [(a.arg, "keyword", default is not None) for a, default in named]


def parameters_of_module(function: object) -> list[tuple[str, str, bool]]:
    assert callable(function)
    given = list(inspect.signature(function).parameters.values())
    return [
        (
            p.name,
            "keyword" if p.kind is inspect.Parameter.KEYWORD_ONLY else "plain",
            p.default is not inspect.Parameter.empty,
        )
        for p in given
        if p.name not in ("self", "cls")
    ]


@pytest.mark.long
def test_stubs_pass_stubtest(tmp_path: Path) -> None:
    """Run mypy's comparison, which also finds what the other tests leave out.

    Modules that the stubs import are left out, which saves 80 % of the time.
    """
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nfollow_imports = skip\n")
    options = ["--ignore-disjoint-bases", "--mypy-config-file", str(config)]
    run = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", *options, "tcpcast._native"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_stub_methods_have_native_signatures() -> None:
    stub = {f.name: f for f in stub_class("Simulation").body if isinstance(f, ast.FunctionDef)}
    public = {name for name in vars(_native.Simulation) if not name.startswith("_")}
    assert stub.keys() - {"__new__"} == public
    for name in public:
        method = getattr(_native.Simulation, name)
        assert parameters_of_stub(stub[name]) == parameters_of_module(method), name


def test_stub_constructor_has_native_signature() -> None:
    stub = {f.name: f for f in stub_class("Simulation").body if isinstance(f, ast.FunctionDef)}
    expected = parameters_of_stub(stub["__new__"])
    assert expected == parameters_of_module(_native.Simulation)


def test_stub_names_and_functions_agree_with_the_module() -> None:
    tree = ast.parse(STUBS.read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    listed = next(ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign))
    assert sorted(listed) == sorted(_native.__all__)
    assert {f.name for f in functions} == {
        name for name in _native.__all__ if inspect.isbuiltin(getattr(_native, name))
    }
    for function in functions:
        native = getattr(_native, function.name)
        assert parameters_of_stub(function, is_method=False) == parameters_of_module(native)


def test_stub_capture_reader_has_native_signature() -> None:
    given = inspect.signature(_native.read_trace).parameters.values()
    defaults = {parameter.name: parameter.default for parameter in given}
    assert defaults == {"source": None, "after": None, "trail_points": 0, "max_connections": None}


KINDS: dict[str, tuple[type, type | None]] = {
    "list[str]": (list, str),
    "list[int]": (list, int),
    "tuple[int, int]": (tuple, int),
    "float": (float, None),
    "int": (int, None),
}
"""Types of declared constants and of their items."""


def test_constants_have_declared_types() -> None:
    declared = dict(re.findall(r"^([A-Z_]+): (.*)$", STUBS.read_text(encoding="utf-8"), re.M))
    present = {name for name in vars(_native) if name.isupper()}
    assert declared.keys() == present
    for name, kind in declared.items():
        value: Any = getattr(_native, name)
        whole, of_items = KINDS[kind]
        items = list(value) if of_items is not None else []
        assert type(value) is whole, name
        assert {type(item) for item in items} <= {of_items}, name
