"""Fixtures with scenarios and engines for the tests of the commands."""

import sys
from collections.abc import Callable
from types import ModuleType

import pytest
import tcpcast
from tcpcast.answer import Answer
from tcpcast.engines import REGISTRY, RunOptions
from tcpcast.engines.registry import EngineEntry
from tcpcast.process.errors import NotApplicable
from tcpcast.scenario import Scenario

from cli.made_up import calculated, simulated


@pytest.fixture
def scenario() -> Scenario:
    return tcpcast.load("web-10mbit")


@pytest.fixture
def pair() -> list[Answer]:
    return [calculated(), simulated()]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that replaces the registry: ``install(packet=function)``."""

    def _install(**given: Callable[[Scenario, RunOptions], Answer]) -> None:
        module = ModuleType("synthetic_engines")
        monkeypatch.setitem(sys.modules, "synthetic_engines", module)
        # In place, because modules hold the dictionary. Undo restores the last deleted row first.
        for name in reversed([*REGISTRY]):
            monkeypatch.delitem(REGISTRY, name)
        for name, function in given.items():
            setattr(module, name, function)
            entry = EngineEntry(
                "synthetic_engines", name, f"the {name} engine", "everything", "simulation"
            )
            monkeypatch.setitem(REGISTRY, name, entry)

    return _install


@pytest.fixture
def synthetic_engines(install: Callable[..., None]) -> None:
    """Install engines ``engset`` and ``packet`` with made-up answers; ``pftk`` does not apply."""

    def pftk(*_: object) -> Answer:
        raise NotApplicable("it needs bulk flows")

    install(engset=lambda *_: calculated(), packet=lambda *_: simulated(), pftk=pftk)
