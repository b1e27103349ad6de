"""``tcpcast compare``: two scenarios, or a measurement of a program beside its simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from tcpcast.cli.options import check_one_format
from tcpcast.cli.progress import progress_bar
from tcpcast.cli.run import exit_code, run_engines
from tcpcast.cli.streams import print_message
from tcpcast.measurements import READERS, make_line_scenario, read_line_test
from tcpcast.process.errors import OptionError, naming_options
from tcpcast.process.protected_inputs import protect_inputs
from tcpcast.report.measured import measured_parts
from tcpcast.report.text import print_parts
from tcpcast.scenario import load, parse_assignments
from tcpcast.scenario.loading import get_packaged_names

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


def compare(
    *,
    program: str,
    file: str,
    as_json: bool,
    as_csv: bool,
    print_scenario: bool,
    **options: Any,
) -> None:
    """Compare two scenarios, or a measurement and its simulation, and exit."""
    check_one_format(as_csv=as_csv, as_json=as_json)
    shown: dict[str, Any] = {"as_json": as_json, "as_csv": as_csv}
    measured = {name: options.pop(name) for name in LINE_OPTIONS}
    paired = {name: options.pop(name) for name in ("metric", "replications", "plot")}
    form, force = options.pop("form"), options.pop("force")
    if not _is_scenario(program):
        for name, value in paired.items():
            if value is not None:
                raise OptionError(
                    f"--{name}", f"requires two scenarios, but {program} is not a scenario"
                )
        _compare_line(program, file, measured, print_scenario=print_scenario, **shown, **options)
    for name, value in measured.items():
        if value is not None:
            raise OptionError(
                f"--{name}", "requires a file of flent, iperf3 or crusader; use --set for scenarios"
            )
    if print_scenario:
        raise OptionError("--print-scenario", "requires a file of flent, iperf3 or crusader")
    _compare_scenarios((program, file), paired, form, force=force, **shown, **options)


def _is_scenario(name: str) -> bool:
    """Return True unless a name is that of a program, or could only be one."""
    if name in READERS:
        return False
    return name in get_packaged_names() or bool(Path(name).suffix) or Path(name).exists()


def _compare_scenarios(  # noqa: PLR0913 - options of the command
    sources: tuple[str, str],
    paired: dict[str, Any],
    form: str,
    *,
    changes: list[str] | None,
    threads: int | None,
    force: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    from tcpcast.comparison.ab_test import run_ab_test  # noqa: PLC0415 - loads the simulator
    from tcpcast.report.ab_test import ab_csv, ab_json, ab_parts, iter_ab_figures  # noqa: PLC0415

    changed = parse_assignments(changes or ())
    first = load(sources[0], changes=changed)
    if "=" in sources[1]:
        second, name = first.with_changes(parse_assignments(sources[1].split())), sources[1]
    else:
        second = load(sources[1], changes=changed)
        name = second.name
    with progress_bar(f"{first.name}, {name}") as progress:
        test = run_ab_test(
            (first, second),
            metric=paired["metric"],
            replications=paired["replications"],
            threads=threads,
            progress=progress,
        )
    names = ("A", "B") if name == first.name else (first.name, name)
    if as_json:
        print(ab_json(test, names))
    elif as_csv:
        print(ab_csv(test), end="")
    else:
        print_parts(ab_parts(test, names))
    if paired["plot"] is not None:
        from tcpcast.report.figures import write_figures  # noqa: PLC0415 - imports matplotlib

        figures = iter_ab_figures(test, names)
        for path in write_figures(figures, paired["plot"], force=force, form=form):
            print_message(f"wrote {path}")
    raise typer.Exit(exit_code(test.answers))


def _compare_line(  # noqa: PLR0913 - options of the command
    program: str,
    file: str,
    options: dict[str, Any],
    *,
    changes: list[str] | None,
    print_scenario: bool,
    as_json: bool,
    as_csv: bool,
    threads: int | None,
) -> None:
    """Print the measured values of a test beside the simulated ones, and exit."""
    protect_inputs(file)
    test = read_line_test(program, file)
    with naming_options(_KEYS):
        scenario = make_line_scenario(test, options)
        scenario = scenario.with_changes(parse_assignments(changes or ()))
    if print_scenario:
        print(scenario.to_toml().rstrip("\n"))
        raise typer.Exit
    (simulated,) = run_engines(
        scenario, ["packet"], threads, "scenario", force=False, over_time=False
    )
    measured = test.answer()
    answers = [measured, simulated]
    if not (as_json or as_csv):
        print_parts(measured_parts(measured, simulated, scenario, test.notes))
        raise typer.Exit(exit_code(answers))
    from tcpcast.report.json import encode  # noqa: PLC0415 - rarely needed
    from tcpcast.report.metric_rows import csv_text  # noqa: PLC0415

    if as_json:
        shown = [answer.to_json() for answer in answers]
        print(encode({"scenario": scenario.resolved(), "answers": shown}))
    else:
        print(csv_text(answers), end="")
    for note in test.notes:
        print_message(note)
    raise typer.Exit(exit_code(answers))
