"""``tcpcast accept``: test a congestion control against the criteria of RFC 9743."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tcpcast import control
from tcpcast.cli.progress import progress_bar
from tcpcast.cli.reports import check_report_files, typed_command_text, write_reports
from tcpcast.comparison.acceptance import Outcome
from tcpcast.comparison.acceptance import accept as run_battery
from tcpcast.process.errors import TcpcastError
from tcpcast.quantity import readable_units, units
from tcpcast.report.document import (
    BLANK_LINE,
    Column,
    Document,
    Paragraph,
    Table,
    command_parts,
)
from tcpcast.report.json import encode
from tcpcast.report.text import print_parts
from tcpcast.scenario.modern_tcp import is_modern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.report.document import Part

FAILED_EXIT_CODE = 1
"""Exit code if a value is outside its permissible range."""


def accept(  # noqa: PLR0913 - one parameter per option
    *,
    context: typer.Context,
    stack: str,
    against: str,
    seed: int,
    as_json: bool,
    out: list[str] | None,
    threads: int | None,
    force: bool,
) -> None:
    """Run the battery for a stack or a file of Python, and print one row per value."""
    check_report_files(out, force=force)
    name = load_stack(stack)
    if not is_modern(against):
        raise TcpcastError(
            f'--against: {units.quote(against)} is not a modern stack; use "linux-bbr", for example'
        )
    with progress_bar(f"accept {name}") as progress:
        try:
            outcomes = run_battery(
                name, against=against, seed=seed, threads=threads, progress=progress
            )
        except Exception as error:
            place = control.place_in_file(error, Path(stack))
            if not place:
                raise
            raise TcpcastError(f"{place}: {control.describe_error(error)}") from error
    if as_json:
        rows = [outcome.to_json() for outcome in outcomes]
        print(encode({"stack": name, "against": against, "cells": rows}))
    else:
        print_parts(acceptance_parts(name, against, outcomes))

    def document(_has_figures: bool) -> Document:
        command = command_parts(typed_command_text(context))
        return Document(
            f"Acceptance of {name}", [*acceptance_parts(name, against, outcomes), *command]
        )

    write_reports(document, out, force=force)
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(FAILED_EXIT_CODE)


def load_stack(text: str) -> str:
    """Return the name of a stack; a file of Python is loaded and registered by its name.

    Raises
    ------
    TcpcastError
        There is no such stack, or the file defines no congestion control.
    """
    if text.endswith(".py"):
        path = Path(text)
        name = path.stem.lower().replace("_", "-")
        control.register_control(name, control.load_control(path))
        return name
    if not is_modern(text):
        raise TcpcastError(
            f"{units.quote(text)} is neither a modern stack nor a Python file; use linux-bbr or "
            "FILE.py, for example"
        )
    return text


def acceptance_parts(name: str, against: str, outcomes: Sequence[Outcome]) -> list[Part]:
    """Return the verdict, and a table with one row per value."""
    failed = [outcome for outcome in outcomes if not outcome.passed]
    passed = len(outcomes) - len(failed)
    verdict = f"{name} against {against} meets {passed} of {len(outcomes)} criteria."
    if failed:
        places = dict.fromkeys(outcome.cell.section for outcome in failed)
        verdict += f" It fails: {', '.join(places)}."
    table = Table(
        [
            Column("test", [each.cell.section for each in outcomes], right=False),
            Column("path", [each.cell.name for each in outcomes], right=False),
            Column("value", [each.cell.quantity for each in outcomes], right=False),
            Column("result", [value_text(each, each.value) for each in outcomes]),
            Column("range", [range_text(each) for each in outcomes]),
            Column("", ["ok" if each.passed else "out" for each in outcomes], right=False),
        ],
        repeated_columns=2,
        emphasized_rows=[at for at, each in enumerate(outcomes) if not each.passed],
    )
    errors = [
        Paragraph(f"{each.cell.section}, {each.cell.name}: {each.error}", "warning", " ! ")
        for each in outcomes
        if each.error
    ]
    return [Paragraph(verdict), BLANK_LINE, table, *errors]


def value_text(outcome: Outcome, value: float) -> str:
    """Return a value in the unit of its cell."""
    if math.isnan(value):
        return "none"
    if math.isinf(value):
        return "never"
    match outcome.cell.unit:
        case "s":
            return readable_units.time_text(value)
        case "bit/s":
            return readable_units.rate_text(value)
    return units.digits(value, 3)


def range_text(outcome: Outcome) -> str:
    """Return the permissible range of a value."""
    low, high = outcome.cell.low, outcome.cell.high
    if math.isinf(high):
        return f">= {value_text(outcome, low)}"
    if low <= 0:
        return f"<= {value_text(outcome, high)}"
    return f"{value_text(outcome, low)} to {value_text(outcome, high)}"
