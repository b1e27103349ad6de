"""The examples in docstrings are right."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest
import tcpcast

PACKAGE = Path(tcpcast.__file__).parent


def modules() -> list[str]:
    found = (path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py"))
    names = (".".join(path.parts).removesuffix(".__init__") for path in found)
    return sorted(name for name in names if not name.endswith("__main__"))


@pytest.mark.parametrize("module", modules())
def test_examples(module: str) -> None:
    failed, _ = doctest.testmod(
        importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert failed == 0
