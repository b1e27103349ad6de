"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tcpcast.cli.complete import engine_lists, keys, scenario_files
from tcpcast.errors import TcpcastError

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE|NAME",
        help="A scenario file, or the name of a packaged one (`tcpcast new` lists them).",
        autocompletion=scenario_files,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key; may be repeated.",
        autocompletion=keys,
    ),
]
Engines = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="A,B",
        help="Engines, separated by commas; see `tcpcast engines`.",
        autocompletion=engine_lists,
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="N", help="Seed, instead of the scenario's.")
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", metavar="N", min=1, help="Threads of the simulator; default one per core."
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace files that are already there, whoever wrote them."),
]
_FEED = typer.Option(
    metavar="WHAT",
    help="Inputs of formulas of one path: those of the 'scenario', or the p, RTT and T0 "
    "'measured' in its simulation, which then runs first.",
)
Feed = Annotated[Literal["scenario", "measured"], _FEED]
FeedOrOfFile = Annotated[Literal["scenario", "measured"] | None, _FEED]
"""Without it that of the file's table ``[sweep]`` holds."""

Format = Annotated[
    Literal["png", "svg", "pdf"],
    typer.Option("--format", metavar="FORM", help="Form of figures: png, svg or pdf."),
]
Html = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write a report with figures as one HTML file."),
]
Markdown = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write the report as Markdown, without figures."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV for programs.")]


def check_one_form(*, as_csv: bool, as_json: bool) -> None:
    """Refuse two forms for programs at once.

    Raises
    ------
    TcpcastError
        Both are asked for.
    """
    if as_csv and as_json:
        raise TcpcastError("--csv and --json are both given; write one of them")
