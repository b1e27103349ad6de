"""Rows of options that several commands share."""

from __future__ import annotations

from typing import Literal

from tcpcast.cli.complete import engine_lists, keys, scenario_files
from tcpcast.errors import TcpcastError
from tcpcast.option import Argument, Option

FILE = Argument(
    "file",
    "FILE|NAME",
    "A scenario file, or the name of a packaged one (`tcpcast new` lists them).",
    completion=scenario_files,
)
CHANGES = Option(
    "changes",
    "KEY=VALUE",
    "Override a key; may be repeated.",
    "--set",
    type=list[str],
    completion=keys,
)
ENGINE = Option(
    "engine",
    "A,B",
    "Engines, separated by commas; see `tcpcast engines`.",
    type=list[str],
    completion=engine_lists,
)
SEED = Option("seed", "N", "Seed, instead of the scenario's.", type=int)
THREADS = Option(
    "threads", "N", "Threads of the simulator; default one per core.", type=int, least=1
)
FORCE = Option("force", "", "Replace files that are already there, whoever wrote them.")
FEED = Option(
    "feed",
    "WHAT",
    "Inputs of formulas of one path: those of the 'scenario', or the p, RTT and T0 "
    "'measured' in its simulation, which then runs first.",
    type=Literal["scenario", "measured"],
    default="scenario",
)
FORM = Option(
    "form",
    "FORM",
    "Form of figures: png, svg or pdf.",
    "--format",
    type=Literal["png", "svg", "pdf"],
    default="png",
)
HTML = Option("html", "FILE", "Write a report with figures as one HTML file.")
MARKDOWN = Option("markdown", "FILE", "Write the report as Markdown, without figures.")
JSON = Option("as_json", "", "Print JSON for programs.", "--json")
CSV = Option("as_csv", "", "Print CSV for programs.", "--csv")


def check_one_form(*, as_csv: bool, as_json: bool) -> None:
    """Refuse two forms for programs at once.

    Raises
    ------
    TcpcastError
        Both are asked for.
    """
    if as_csv and as_json:
        raise TcpcastError("--csv and --json are both given; write one of them")
