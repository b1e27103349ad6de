"""Options of ``tcpcast plan`` and their values."""

# ruff: noqa: PLC0415 - slow modules are imported when the command runs
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcpcast.cli.options import (
    CHANGES,
    FIGURE_FORMAT,
    FILE,
    FORCE,
    HTML,
    JSON,
    MARKDOWN,
    SEED,
    THREADS,
)
from tcpcast.command_option import REQUIRED, Option
from tcpcast.errors import TcpcastError, UnitError
from tcpcast.path_option_definitions import PATH_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Parse = Callable[[object], float]

SHARE = Option("share", "RATIO", "Share of files whose goodput must exceed --above.")
ABOVE = Option("above", "RATE", "Minimum goodput of these files (see --share).")
MEAN_RATE = Option("rate", "RATE", "Minimum mean rate of a connection during a transfer.")
GOODPUT = Option("goodput", "RATE", "Total goodput of all flows.", default=REQUIRED)
PATH_FILE = replace(FILE, help="Scenario, instead of options that describe the path.", default=None)
RTT = replace(PATH_OPTIONS["rtt"], default=None)
PATH_ENDS = tuple(row for row in PATH_OPTIONS.values() if not row.example and row.name != "iw")
"""Options of the hosts; the initial window has no effect on bulk flows."""
VERIFY = Option("verify", "", "Also solve by simulation, to check the model's answer.")
COMMON = (
    VERIFY,
    CHANGES,
    SEED,
    THREADS,
    Option("plot", "DIR", "Plot the models into a folder."),
    FIGURE_FORMAT,
    HTML,
    MARKDOWN,
    FORCE,
    JSON,
)
"""Options of all plans."""


@dataclass(frozen=True, slots=True)
class PlanArguments:
    """The options of a plan as typed, by name."""

    values: Mapping[str, Any]

    def given(self, *names: str) -> dict[str, Any]:
        """Return the options among ``names`` that were given."""
        return {name: self.values[name] for name in names if self.values[name] not in {None, False}}

    @property
    def changes(self) -> dict[str, Any]:
        """New values by scenario key, from ``--set``."""
        from tcpcast.scenario import parse_assignments

        return parse_assignments(self.values["changes"] or ())

    @property
    def transfers(self) -> dict[str, int]:
        """Number of transfers per simulation, if ``--set`` specifies it."""
        wanted = self.changes.get("run.transfers")
        return {"transfers": wanted} if isinstance(wanted, int) else {}

    def read(self, name: str, parse: Parse, default: str = "") -> float:
        """Return the value of an option; an error names the option."""
        try:
            return parse(self.values[name] or default)
        except UnitError as error:
            raise UnitError(f"--{name}: {error}") from None

    def quality(self) -> dict[str, float]:
        """Return the share of files and the goodput that they must exceed."""
        from tcpcast.units import parse_rate, parse_ratio

        missing = [name for name in ("share", "above") if self.values[name] is None]
        if missing:
            raise TcpcastError(
                f"--{' and --'.join(missing)}: missing; write --share 95% --above 500kbit if 95 "
                "% of files must exceed this goodput, or --rate 200kbit for a mean rate"
            )
        return {
            "share": self.read("share", parse_ratio),
            "above_bps": self.read("above", parse_rate),
        }

    def mean_rate(self, *others: str) -> dict[str, Any]:
        """Return the target ``--rate``; raise if options ``others`` of another target are given."""
        from tcpcast.units import parse_rate

        for name in others:
            if self.values[name] is not None:
                raise TcpcastError(
                    f"--{name} and --rate cannot be combined, because --{name} is for a target "
                    f"with --share and --above; omit --{name} or --rate"
                )
        return {"rate_bps": self.read("rate", parse_rate), **self.transfers}
