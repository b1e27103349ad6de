"""The examples in docstrings give the shown results."""

import doctest
import importlib
from pathlib import Path

import pytest
import tcpcast

PACKAGE = Path(tcpcast.__file__).parent


def modules(*, with_examples: bool) -> list[str]:
    result = sorted(path for path in PACKAGE.rglob("*.py") if path.stem != "__main__")
    if with_examples:
        result = [path for path in result if ">>>" in path.read_text(encoding="utf-8")]
    parts = [path.relative_to(PACKAGE.parent).with_suffix("").parts for path in result]
    return [".".join(names).removesuffix(".__init__") for names in parts]


@pytest.mark.parametrize("module", modules(with_examples=True))
def test_docstring_examples_pass(module: str) -> None:
    failed, tried = doctest.testmod(
        importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert failed == 0
    assert tried > 0


def test_every_module_can_be_imported() -> None:
    for name in modules(with_examples=False):
        importlib.import_module(name)
