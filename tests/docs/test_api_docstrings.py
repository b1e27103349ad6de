"""The docstrings of the public API describe each argument, attribute, result and error."""

import dataclasses
import importlib
import inspect
import re
from typing import Any

import pytest
from doc_api import MODULES, SECTION, names

PUBLIC = [(module, name) for module in MODULES for name in names(module)]
FUNCTIONS = [
    (module, name)
    for module, name in PUBLIC
    if not inspect.isclass(getattr(importlib.import_module(module), name))
]
ENTRY = re.compile(r"^(\S.*?)(?: : .*)?$", re.MULTILINE)


def sections(documented: Any) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by heading, with the text above as ""."""
    pieces = SECTION.split(inspect.getdoc(documented) or "")
    return {"": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}


def entries(text: str) -> set[str]:
    """Return the names in a list of parameters; several may share a line."""
    return {name.strip("*` ") for line in ENTRY.findall(text) for name in line.split(",")}


def referred(documented: Any) -> set[str]:
    """Return the entries of functions to which a docstring refers."""
    module = inspect.getmodule(documented)
    text = " ".join((inspect.getdoc(documented) or "").split())
    refers = re.findall(r"(?:as (?:in|for)|see) :func:`(\w+)`", text, re.IGNORECASE)
    others = (getattr(module, name, None) for name in refers)
    return {name for other in others for name in entries(sections(other).get("Parameters", ""))}


def lacking(documented: Any) -> list[str]:
    """Return the arguments that neither the list of parameters nor the text above it names."""
    result = sections(documented)
    listed = entries(result.get("Parameters", "")) | entries(result.get("Attributes", ""))
    mentioned = set(re.findall(r"``(\w+)", result[""])) | referred(documented)
    if inspect.isclass(documented) and dataclasses.is_dataclass(documented):
        wanted = [f.name for f in dataclasses.fields(documented) if not f.name.startswith("_")]
    elif inspect.isclass(documented):
        return []
    else:
        wanted = list(inspect.signature(documented).parameters)
    return [name for name in wanted if name not in listed | mentioned | {"self"}]


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=str)
def test_every_argument_is_described(module: str, name: str) -> None:
    documented = getattr(importlib.import_module(module), name)
    assert inspect.getdoc(documented), name
    assert lacking(documented) == []


@pytest.mark.parametrize(("module", "name"), FUNCTIONS, ids=str)
def test_return_values_are_described(module: str, name: str) -> None:
    documented = getattr(importlib.import_module(module), name)
    result = sections(documented)
    mentioned = result[""].split()[0] in {"Return", "Estimate", "Tell"}
    assert "Returns" in result or "Yields" in result or mentioned


def test_missing_descriptions_are_found() -> None:
    def rate(*, loss: float, rtt_s: float, more: int) -> float:
        """Return a rate; ``more`` counts.

        Parameters
        ----------
        loss : float
            A share.
        """
        return loss * rtt_s * more

    assert lacking(rate) == ["rtt_s"]
