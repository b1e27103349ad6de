"""Engines and models of other packages, found by their entry points.

A package offers an engine in the group ``tcpcast.engines``: a callable ``answer(scenario, options)
-> Answer``. A model of one path stands in ``tcpcast.models``: a callable that returns the packets
that one flow sends per second, from inputs that it names, any of :data:`INPUTS`. Both are asked by
the name of the entry point, and may have an attribute ``applies``, to what they apply in words;
an engine may have ``metrics``, the unit of each metric of its own, and ``check``, which raises
NotApplicable for a scenario that the engine does not cover.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import traceback
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any

from tcpcast.engines.plugin_answer import has_short_text, held, words_of
from tcpcast.engines.registry import OUTSIDE, EngineEntry
from tcpcast.errors import DomainError, MachineError, NotApplicable, TcpcastError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcpcast.answer import Answer
    from tcpcast.engines import RunOptions
    from tcpcast.scenario import Scenario

ENGINES, MODELS = "tcpcast.engines", "tcpcast.models"
"""Groups of entry points."""

INPUTS = ("loss_indication_ratio", "rtt_s", "t0_s", "packets_per_ack", "receiver_window_pkts")
"""What a model of one path may ask for: p, RTT, T0, b and W_max."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideEntry(EngineEntry):
    """A row of the registry that another package offers; ``package`` has its name and version."""

    point: metadata.EntryPoint
    package: str
    units: dict[str, str] = field(default_factory=dict)
    is_model: bool = False

    def load(self) -> Callable[..., Any]:
        """Import the package."""
        function: Callable[..., Any] = self.point.load()
        return function

    def check(self, scenario: Scenario) -> None:
        """Raise NotApplicable unless the engine accepts a scenario, without a run.

        A model of one path accepts what gives its inputs. An engine has an attribute ``check``, a
        callable that raises the same; without it, what the engine accepts is unknown.
        """
        if self.is_model:
            from tcpcast.engines.formula.feed import path_inputs  # noqa: PLC0415 - imports numpy

            path_inputs(self.point.name, scenario, None)
            return
        accepts = getattr(self.load(), "check", None)
        if not callable(accepts):
            raise NotApplicable("the engine has no check without a run")
        with self._guarded():
            accepts(scenario)

    def ask(self, scenario: Scenario, options: RunOptions, measured: Answer | None) -> Answer:
        """Answer a scenario.

        Raises
        ------
        NotApplicable
            The engine does not cover the scenario.
        MachineError
            It raised what is no error of tcpcast; the message says where.
        TcpcastError
            What it returned is no answer.
        """
        given = self._given(scenario, options, measured)
        try:
            found = held(given, self.units)
        except TcpcastError as fault:
            raise TcpcastError(f"engine '{self.point.name}' of {self.package} {fault}") from fault
        except Exception as fault:
            raise self._failed(fault) from fault
        found.engine = self.point.name
        found.provenance = {
            **found.provenance,
            "package": self.package,
            "scenario": scenario.digest(),
        }
        return found

    def _given(self, scenario: Scenario, options: RunOptions, measured: Answer | None) -> Any:
        function = self.load()
        with self._guarded():
            if self.is_model:
                return _of_path(self.point.name, function, scenario, measured)
            return function(scenario, options)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Call the package: its prints go to standard error, its errors are bounded."""
        try:
            with _prints_to_stderr():
                yield
        except TcpcastError as fault:
            if has_short_text(fault):
                raise
            raise self._failed(fault) from fault
        except (Exception, SystemExit) as fault:
            raise self._failed(fault) from fault

    def _failed(self, fault: BaseException) -> MachineError:
        place = traceback.extract_tb(fault.__traceback__)[-1]
        return MachineError(
            f"engine '{self.point.name}' of {self.package} failed: {words_of(fault)} "
            f"({place.filename}, line {place.lineno})"
        )


@contextmanager
def _prints_to_stderr() -> Iterator[None]:
    """Send what an engine or its programs print to standard error; standard output is the answer's.

    Streams belong to the process, so an engine in another thread than the main one keeps them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))
        with suppress(OSError):  # one of them is closed
            before = os.dup(1)
            stack.callback(os.close, before)
            os.dup2(2, 1)
            stack.callback(os.dup2, before, 1)
        yield


@functools.cache
def entry_points() -> dict[str, metadata.EntryPoint]:
    """Return the entry points of both groups by name; the first of a name counts."""
    found: dict[str, metadata.EntryPoint] = {}
    for group in (ENGINES, MODELS):
        for point in metadata.entry_points(group=group):
            found.setdefault(point.name, point)
    return found


def entry(point: metadata.EntryPoint) -> OutsideEntry:
    """Return the row of an entry point, whose package is imported for it.

    Raises
    ------
    MachineError
        It cannot be imported, or is nothing that can be called.
    """
    package = "another package" if point.dist is None else f"{point.dist.name} {point.dist.version}"
    try:
        function = point.load()
    except (Exception, SystemExit) as fault:
        raise MachineError(
            f"engine '{point.name}' of {package} cannot be imported: {words_of(fault)}"
        ) from fault
    if not callable(function):
        raise MachineError(f"engine '{point.name}' of {package} cannot be called: {point.value}")
    units = getattr(function, "metrics", {})
    if not (isinstance(units, dict) and all(isinstance(u, str) for p in units.items() for u in p)):
        raise MachineError(
            f"engine '{point.name}' of {package}: its metrics have to be a dict of units by name"
        )
    is_model = point.group == MODELS
    doc = (inspect.getdoc(function) or f"{point.name} of {package}").partition("\n")[0]
    applies = getattr(function, "applies", None)
    return OutsideEntry(
        point.module,
        point.attr,
        doc.removesuffix("."),
        str(applies or ("bulk flows over one path" if is_model else "what its package says")),
        OUTSIDE,
        trust=f"as {package} says",
        quick=False,
        point=point,
        package=package,
        units=units,
        is_model=is_model,
    )


def _of_path(
    name: str, rate_pps: Callable[..., Any], scenario: Scenario, measured: Answer | None
) -> Answer:
    """Answer by a model of one path, for all flows together and at most at the link's rate."""
    from tcpcast.engines.formula import rates  # noqa: PLC0415 - imports numpy
    from tcpcast.engines.formula.feed import path_inputs  # noqa: PLC0415
    from tcpcast.engines.formula.inputs import step  # noqa: PLC0415

    fed = path_inputs(name, scenario, measured)
    values = (fed.loss, fed.rtt_s, fed.t0_s, fed.packets_per_ack, fed.window_pkts)
    given = dict(zip(INPUTS, values, strict=True))
    rate = float(rate_pps(**{key: given[key] for key in _asked(name, rate_pps)}))
    if not rate >= 0:
        raise DomainError(f"model '{name}' returned {rate}; it has to return packets per second")
    steps = [*fed.used("p", "RTT", "T0", "b", "W_max", "n"), step("B", rate, "packet/s", name)]
    return rates.of_one(name, fed, rate_pps=rate, regime="", steps=steps)


def _asked(name: str, rate_pps: Callable[..., Any]) -> list[str]:
    """Return the inputs that a model asks for.

    Raises
    ------
    MachineError
        It needs another one.
    """
    asked = inspect.signature(rate_pps).parameters.values()
    unknown = [p.name for p in asked if p.default is p.empty and p.name not in INPUTS]
    if unknown:
        raise MachineError(
            f"model '{name}' asks for {', '.join(unknown)}; it may ask for {', '.join(INPUTS)}"
        )
    return [p.name for p in asked if p.name in INPUTS]
