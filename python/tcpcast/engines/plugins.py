"""Engines and models of other packages, found by their entry points.

The entry point group ``tcpcast.engines`` contains engines: callables ``answer(scenario, options) ->
Answer``. The group ``tcpcast.models`` contains path models: callables that return the packets per
second of one flow, from any of the parameters in :data:`MODEL_PARAMETERS`. Engines and models are
selected by the name of the entry point. Their optional attribute ``applies`` describes their
domain. An engine may have ``metrics``, the units of its own metrics by name, and ``check``,
which raises NotApplicable for an unsupported scenario.
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

from tcpcast.engines.plugin_answer import exception_text, has_short_text, validate_plugin_answer
from tcpcast.engines.registry import PLUGINS_FAMILY, EngineEntry
from tcpcast.errors import DomainError, MachineError, NotApplicable, TcpcastError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcpcast.answer import Answer
    from tcpcast.engines import RunOptions
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

    def raise_if_unsupported(self, scenario: Scenario) -> None:
        """Raise NotApplicable unless the engine accepts a scenario, without a run.

        A path model accepts every scenario that has its inputs. An engine may have a callable
        attribute ``check`` that raises NotApplicable; without it, this method always raises.
        """
        if self.is_model:
            from tcpcast.engines.formula.collect_inputs import collect_path_inputs  # noqa: PLC0415 - imports numpy

            collect_path_inputs(self.point.name, scenario, None)
            return
        accepts = getattr(self.load(), "check", None)
        if not callable(accepts):
            raise NotApplicable("this engine can check a scenario only by running it")
        with self._wrap_plugin_errors():
            accepts(scenario)

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
            Its return value is not a valid answer.
        """
        given = self._call_plugin(scenario, options, measured)
        try:
            answer = validate_plugin_answer(given, self.units)
        except TcpcastError as error:
            raise TcpcastError(f"engine '{self.point.name}' of {self.package} {error}") from error
        except Exception as error:
            raise self._plugin_error(error) from error
        answer.engine = self.point.name
        answer.provenance = {
            **answer.provenance,
            "package": self.package,
            "scenario": scenario.digest(),
        }
        return answer

    def _call_plugin(self, scenario: Scenario, options: RunOptions, measured: Answer | None) -> Any:
        function = self.load()
        with self._wrap_plugin_errors():
            if self.is_model:
                return _answer_by_path_model(self.point.name, function, scenario, measured)
            return function(scenario, options)

    @contextmanager
    def _wrap_plugin_errors(self) -> Iterator[None]:
        """Redirect the package's standard output to standard error, and wrap its exceptions."""
        try:
            with _redirect_output_to_stderr():
                yield
        except TcpcastError as error:
            if has_short_text(error):
                raise
            raise self._plugin_error(error) from error
        except (Exception, SystemExit) as error:
            raise self._plugin_error(error) from error

    def _plugin_error(self, error: BaseException) -> MachineError:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return MachineError(
            f"engine '{self.point.name}' of {self.package} failed: {exception_text(error)} "
            f"({frame.filename}, line {frame.lineno})"
        )


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
            f"engine '{point.name}' of {package} cannot be imported: {exception_text(error)}"
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
            f"model '{name}' has unknown parameters: {', '.join(unknown)}; a model can have "
            f"the parameters {', '.join(MODEL_PARAMETERS)}"
        )
    return [p.name for p in parameters if p.name in MODEL_PARAMETERS]
