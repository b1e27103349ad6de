"""Engines and models of other packages, found by their entry points.

The entry point group ``tcpcast.engines`` contains engines: callables ``answer(scenario, options) ->
Answer``. The group ``tcpcast.models`` contains path models: callables that return the packets per
second of one flow, from any of the parameters in :data:`MODEL_PARAMETERS`. Engines and models are
selected by the name of the entry point. Their optional attribute ``applies`` describes their
domain. An engine may have ``metrics``, the units of its own metrics by name.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import traceback
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Answer
from tcpcast.engines.registry import PLUGINS_FAMILY, EngineEntry
from tcpcast.process.errors import DomainError, MachineError, TcpcastError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcpcast.engines.options import RunOptions
    from tcpcast.scenario import Scenario

ENGINE_GROUP, MODEL_GROUP = "tcpcast.engines", "tcpcast.models"
"""Groups of entry points."""

MODEL_PARAMETERS = (
    "loss_indication_ratio",
    "rtt_s",
    "t0_s",
    "packets_per_ack",
    "receiver_window_pkts",
)
"""Names of the parameters that a path model may have: p, RTT, T0, b and W_max."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginEntry(EngineEntry):
    """A registry entry of another package; ``package`` is the package's name and version."""

    point: metadata.EntryPoint
    package: str
    units: dict[str, str] = field(default_factory=dict)
    is_model: bool = False

    def load(self) -> Callable[..., Any]:
        """Import the package."""
        function: Callable[..., Any] = self.point.load()
        return function

    def run(self, scenario: Scenario, options: RunOptions, measured: Answer | None) -> Answer:
        """Answer a scenario.

        Raises
        ------
        NotApplicable
            The engine does not cover the scenario.
        MachineError
            The engine raised an exception that is not a TcpcastError; the message contains its
            location.
        TcpcastError
            Its return value is not an answer.
        """
        import numpy as np  # noqa: PLC0415 - slow; completion only needs the names

        function = self.load()
        with self._wrap_plugin_errors():
            answer = (
                _answer_by_path_model(self.point.name, function, scenario, measured)
                if self.is_model
                else function(scenario, options)
            )
            if not isinstance(answer, Answer):
                raise TcpcastError(
                    f"engine '{self.point.name}' of {self.package} returned "
                    f"{type(answer).__name__}; it must return tcpcast.Answer"
                )
            answer.metrics = {
                name: replace(m, value=float(m.value), unit=m.unit or self.units.get(name, ""))
                for name, m in answer.metrics.items()
            }
            answer.tables = {
                name: {column: np.asarray(values) for column, values in table.items()}
                for name, table in answer.tables.items()
            }
        answer.engine = self.point.name
        answer.provenance = {
            **answer.provenance,
            "package": self.package,
            "scenario": scenario.digest(),
        }
        return answer

    @contextmanager
    def _wrap_plugin_errors(self) -> Iterator[None]:
        """Redirect the package's standard output to standard error, and wrap its exceptions."""
        try:
            with _redirect_output_to_stderr():
                yield
        except TcpcastError:
            raise
        except (Exception, SystemExit) as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            raise MachineError(
                f"engine '{self.point.name}' of {self.package} failed: {type(error).__name__}: "
                f"{error} ({frame.filename}, line {frame.lineno})"
            ) from error


@contextmanager
def _redirect_output_to_stderr() -> Iterator[None]:
    """Redirect standard output of an engine and its subprocesses to standard error.

    Outside the main thread nothing is redirected, because all threads of a process share its
    streams.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))
        with suppress(OSError):  # a stream is closed
            before = os.dup(1)
            stack.callback(os.close, before)
            os.dup2(2, 1)
            stack.callback(os.dup2, before, 1)
        yield


@functools.cache
def find_plugin_entry_points() -> dict[str, metadata.EntryPoint]:
    """Return the entry points of both groups by name; the first of equal names is used."""
    points: dict[str, metadata.EntryPoint] = {}
    for group in (ENGINE_GROUP, MODEL_GROUP):
        for point in metadata.entry_points(group=group):
            points.setdefault(point.name, point)
    return points


def import_plugin(point: metadata.EntryPoint) -> PluginEntry:
    """Import the package of an entry point and return its row.

    Raises
    ------
    MachineError
        The package cannot be imported, or the entry point is not callable.
    """
    package = "another package" if point.dist is None else f"{point.dist.name} {point.dist.version}"
    try:
        function = point.load()
    except (Exception, SystemExit) as error:
        raise MachineError(
            f"engine '{point.name}' of {package} cannot be imported: {type(error).__name__}: "
            f"{error}"
        ) from error
    if not callable(function):
        raise MachineError(f"engine '{point.name}' of {package} is not callable: {point.value}")
    units = getattr(function, "metrics", {})
    if not (isinstance(units, dict) and all(isinstance(u, str) for p in units.items() for u in p)):
        raise MachineError(
            f"engine '{point.name}' of {package}: the attribute metrics must be a dict, "
            'such as {"goodput_bps": "bit/s"}'
        )
    is_model = point.group == MODEL_GROUP
    doc = (inspect.getdoc(function) or f"{point.name} of {package}").partition("\n")[0]
    applies = getattr(function, "applies", None)
    return PluginEntry(
        point.module,
        point.attr,
        doc.removesuffix("."),
        str(applies or ("bulk flows over one path" if is_model else "see its package")),
        PLUGINS_FAMILY,
        trust=f"see {package}",
        runs_by_default=False,
        point=point,
        package=package,
        units=units,
        is_model=is_model,
    )


def _answer_by_path_model(
    name: str, rate_pps: Callable[..., Any], scenario: Scenario, measured: Answer | None
) -> Answer:
    """Answer by a path model, for all flows, limited by the link's rate."""
    from tcpcast.engines.formula import rate_answers  # noqa: PLC0415 - imports numpy
    from tcpcast.engines.formula.collect_inputs import collect_path_inputs  # noqa: PLC0415
    from tcpcast.engines.formula.input_types import make_step  # noqa: PLC0415

    inputs = collect_path_inputs(name, scenario, measured)
    given = inputs.model_arguments
    rate = float(rate_pps(**{key: given[key] for key in _get_model_inputs(name, rate_pps)}))
    if not rate >= 0:
        raise DomainError(
            f"model '{name}' returned {rate}; it must return a rate in packets per second"
        )
    steps = [
        *inputs.select_steps("p", "RTT", "T0", "b", "W_max", "n"),
        make_step("B", rate, "packet/s", name),
    ]
    return rate_answers.make_answer_from_flow_rate(
        name, inputs, rate_pps=rate, regime="", steps=steps
    )


def _get_model_inputs(name: str, rate_pps: Callable[..., Any]) -> list[str]:
    """Return the inputs that a model has as parameters.

    Raises
    ------
    MachineError
        The model has another required parameter.
    """
    parameters = inspect.signature(rate_pps).parameters.values()
    unknown = [
        p.name for p in parameters if p.default is p.empty and p.name not in MODEL_PARAMETERS
    ]
    if unknown:
        raise MachineError(
            f"model '{name}' has unknown parameters: {', '.join(unknown)}; use only the "
            f"parameters {', '.join(MODEL_PARAMETERS)}"
        )
    return [p.name for p in parameters if p.name in MODEL_PARAMETERS]
