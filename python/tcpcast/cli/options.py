"""Definitions of options that several commands share."""

from __future__ import annotations

from typing import Literal

from tcpcast.cli.complete import complete_engine_list, complete_scenario_key, complete_scenario_name
from tcpcast.options.command_option import Argument, KeyOption, Option
from tcpcast.process.errors import OptionError, TcpcastError, UnitError
from tcpcast.quantity.units import parse_duration

FILE = Argument(
    "file",
    "FILE|NAME",
    "Scenario file, packaged scenario (see `tcpcast new`), or - for standard input.",
    completion=complete_scenario_name,
)
CHANGES = Option(
    "changes",
    "KEY=VALUE",
    "Override a key of the scenario, such as network.rtt=50ms; repeatable.",
    "--set",
    type=list[str],
    completion=complete_scenario_key,
)
ENGINE = Option(
    "engine",
    "A,B",
    "Engines to run (see `tcpcast engines`).",
    type=list[str],
    completion=complete_engine_list,
)
SEED = KeyOption("seed", "N", "Override the seed of the simulation.", type=int, keys=("run.seed",))
THREADS = Option(
    "threads", "N", "Number of simulator threads; default: one per core.", type=int, minimum=1
)
FORCE = Option("force", "", "Overwrite any existing file.")
FEED = Option(
    "feed",
    "WHAT",
    "Source of loss and RTT for path formulas: the keys of the scenario (scenario), or a "
    "simulation of it (measured).",
    type=Literal["scenario", "measured"],
    default="scenario",
)
FIGURE_FORMAT = Option(
    "form",
    "FORM",
    "Figure format: png, svg or pdf.",
    "--format",
    type=Literal["png", "svg", "pdf"],
    default="png",
)
OUT = Option(
    "out",
    "FILE",
    "Write a report (.html or .md); repeatable.",
    type=list[str],
)
JSON = Option("as_json", "", "Print JSON.", "--json")
CSV = Option("as_csv", "", "Print CSV.", "--csv")


def read_positive_duration(flag: str, text: str, example: str) -> float:
    """Return the duration above 0, in seconds, of an option; an error names the option."""
    try:
        seconds = parse_duration(text)
    except UnitError as error:
        raise OptionError(flag, str(error)) from None
    if seconds == 0:
        raise OptionError(flag, f"must be above 0, not {text}; use {example}, for example")
    return seconds


def check_one_format(*, as_csv: bool, as_json: bool) -> None:
    """Reject two machine-readable formats in one command.

    Raises
    ------
    TcpcastError
        Both formats are requested.
    """
    if as_csv and as_json:
        raise TcpcastError("--csv and --json are mutually exclusive; use one")
