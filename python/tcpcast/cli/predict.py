"""``tcpcast predict``: a run, or a sweep for ranges, of a path that options describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.cli.reports import typed_command_text
from tcpcast.cli.run import answer_scenario
from tcpcast.cli.scenario_args import read_engine_option
from tcpcast.cli.streams import print_message
from tcpcast.options.path_option_definitions import OPTIONS_BY_KEY, PATH_OPTIONS
from tcpcast.options.path_scenario import ask_path
from tcpcast.process.errors import OptionError, naming_options
from tcpcast.scenario import parse_assignments

if TYPE_CHECKING:
    import typer

_SWEEP_OPTIONS = {"feed", "plot", "form", "out", "force", "as_csv", "as_json"}


def predict(*, context: typer.Context, **values: Any) -> None:
    """Answer the scenario of the path like `run`, or `sweep` for ranges."""
    with naming_options(OPTIONS_BY_KEY):
        _answer_path(context, **values)


def _answer_path(
    context: typer.Context,
    *,
    packet: bool,
    count: int | None,
    engine: list[str] | None,
    changes: list[str] | None,
    **how: Any,
) -> None:
    path = {name: how.pop(name) for name in PATH_OPTIONS}
    changed = parse_assignments(changes or ())
    engines = read_engine_option(engine)
    question = ask_path(path, packet=packet, engines=engines, points=count, changes=changed)
    if not question.varied:
        answer_scenario(
            question.scenario,
            question.engines,
            lambda _: typed_command_text(context),
            refused=question.refused,
            amount_bytes=question.amount_bytes,
            **how,
        )
        return

    from tcpcast.cli.sweep import sweep_scenario  # noqa: PLC0415 - only for ranges

    for name, value in how.items():
        if name not in _SWEEP_OPTIONS and value:
            raise OptionError(
                f"--{name.replace('_', '-')}",
                "requires single values, but an option contains a range",
            )
    for each in question.refused:
        print_message(f"{each.engine}: {each.refusal()}")
    used = {name: how[name] for name in _SWEEP_OPTIONS}
    sweep_scenario(question.scenario, question.varied, question.engines, context=context, **used)
