"""``tcpcast compare``: a measurement of another program beside its simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from tcpcast.cli.options import check_one_format
from tcpcast.cli.run import exit_code, run_engines
from tcpcast.cli.streams import print_message
from tcpcast.errors import naming_options
from tcpcast.measurements import make_line_scenario, read_line_test
from tcpcast.protected_inputs import protect_inputs
from tcpcast.report.measured import measured_parts
from tcpcast.report.text import print_parts
from tcpcast.scenario import parse_assignments

if TYPE_CHECKING:
    from tcpcast.answer import Answer

LINE_OPTIONS = ("down", "up", "rtt", "buffer", "queue")
"""Options that state what a file does not, or replace what it states."""

_KEYS = {
    f"link.{name}.{key}": f"--{option}"
    for name in ("down", "up")
    for key, option in (
        *((each, each) for each in ("queue", "buffer")),
        *((each, name) for each in ("rate", "rate.bucket", "queue.rate")),
    )
}
"""Options by the keys of the scenario that they set."""


def compare(  # noqa: PLR0913 - one parameter per option
    *,
    program: str,
    file: str,
    changes: list[str] | None,
    print_scenario: bool,
    as_json: bool,
    as_csv: bool,
    threads: int | None,
    **options: Any,
) -> None:
    """Print the measured values of a test beside the simulated ones, and exit."""
    check_one_format(as_csv=as_csv, as_json=as_json)
    protect_inputs(file)
    test = read_line_test(program, file)
    with naming_options(_KEYS):
        scenario = make_line_scenario(test, {name: options[name] for name in LINE_OPTIONS})
        scenario = scenario.with_changes(parse_assignments(changes or ()))
    if print_scenario:
        print(scenario.to_toml().rstrip("\n"))
        return
    (simulated,) = run_engines(
        scenario, ["packet"], threads, "scenario", force=False, over_time=False
    )
    measured = test.answer()
    answers = [measured, simulated]
    if not (as_json or as_csv):
        print_parts(measured_parts(measured, simulated, scenario, test.notes))
        raise typer.Exit(exit_code(answers))
    _print_rows(answers, scenario.resolved(), as_json=as_json)
    for note in test.notes:
        print_message(note)
    raise typer.Exit(exit_code(answers))


def _print_rows(answers: list[Answer], scenario: dict[str, Any], *, as_json: bool) -> None:
    """Print both answers as JSON or CSV."""
    from tcpcast.report.json import encode  # noqa: PLC0415 - rarely needed
    from tcpcast.report.metric_rows import csv_text  # noqa: PLC0415

    if as_json:
        shown = [answer.to_json() for answer in answers]
        print(encode({"scenario": scenario, "answers": shown}))
    else:
        print(csv_text(answers), end="")
