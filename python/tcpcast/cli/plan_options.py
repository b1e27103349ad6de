"""Options of plans, one row each, and the function that builds a command from rows."""

# ruff: noqa: PLC0415 - heavy modules are imported when the command runs
from __future__ import annotations

from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpcast.cli.options import Changes, File, Force, Format, Html, Json, Markdown, Seed, Threads
from tcpcast.errors import TcpcastError, UnitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Parse = Callable[[object], float]

HELP = {
    "rtt": ("TIME", "Round-trip time of the empty path."),
    "mss": ("BYTES", "Payload of a packet; 1500 B less headers if left out."),
    "rwnd": ("WINDOW", "Receiver window; unlimited if left out."),
    "min_rto": ("TIME", "Minimum RTO; else the stack's."),
    "stack": ("NAME", "TCP preset; linux-cubic if left out."),
    "share": ("RATIO", "Instead: the share of the files that is faster ..."),
    "above": ("RATE", "... than this goodput of a file."),
    "plot": ("DIR", "Draw what the models say into a folder."),
}


def row(name: str, annotation: Any, default: Any = None) -> Parameter:
    """Return an option as a parameter of a command."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def text(
    name: str, metavar: str = "", meaning: str = "", option: str = "", *, required: bool = False
) -> Parameter:
    """Return an option whose value is read later; without a meaning it is one of :data:`HELP`."""
    metavar, meaning = (metavar, meaning) if meaning else HELP[name]
    info = typer.Option(*filter(None, [option]), metavar=metavar, help=meaning)
    if required:
        return row(name, Annotated[str, info], Parameter.empty)
    return row(name, Annotated[str | None, info])


def flag(name: str, meaning: str) -> Parameter:
    """Return an option without a value."""
    option = typer.Option(f"--{name.replace('_', '-')}", help=meaning)
    return row(name, Annotated[bool, option], default=False)


SCENARIO = row("file", File, Parameter.empty)
PATH_FILE = row(
    "file",
    Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|NAME",
            help="A scenario in place of the options of the path.",
            show_default=False,
        ),
    ],
)
MEAN_RATE = text("rate", "RATE", "Least mean connection rate.")
PATH_ENDS = (
    text("mss"),
    text("rwnd"),
    row(
        "delayed_acks",
        Annotated[bool, typer.Option("--delayed-acks", help="One ack for two packets.")],
        False,
    ),
    text("min_rto"),
    text("stack"),
)
COMMON = (
    flag("verify", "Check by simulation, and solve by simulation, too."),
    row("changes", Changes),
    row("seed", Seed),
    row("threads", Threads),
    text("plot"),
    row("form", Format, "png"),
    row("html", Html),
    row("markdown", Markdown),
    row("force", Force, False),
    row("as_json", Json, False),
)
"""Options of all plans."""


def command(
    action: Callable[[typer.Context, dict[str, Any]], None], rows: tuple[Parameter, ...]
) -> Callable[..., None]:
    """Return a command that passes the values of its options, by name, to a function."""

    def run(context: typer.Context, **values: Any) -> None:
        action(context, values)

    parameters = [row("context", typer.Context, Parameter.empty), *rows]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


@dataclass(frozen=True, slots=True)
class Asked:
    """A plan as typed: the values of its options by name."""

    values: Mapping[str, Any]

    def given(self, *names: str) -> dict[str, Any]:
        """Return those of the options that were given."""
        return {name: self.values[name] for name in names if self.values[name] not in {None, False}}

    @property
    def changes(self) -> dict[str, Any]:
        """The keys that ``--set`` changes, and their values."""
        from tcpcast.scenario import parse_assignments

        return parse_assignments(self.values["changes"] or ())

    @property
    def connections(self) -> dict[str, int]:
        """How many transfers each simulation counts, where ``--set`` gives their number."""
        wanted = self.changes.get("run.connections")
        return {"connections": wanted} if isinstance(wanted, int) else {}

    def read(self, name: str, parse: Parse, default: str = "") -> float:
        """Return the value of an option; an error names the option."""
        try:
            return parse(self.values[name] or default)
        except UnitError as fault:
            raise UnitError(f"--{name}: {fault}") from None

    def quality(self) -> dict[str, float]:
        """Return the share of the files and the goodput that they have to exceed."""
        from tcpcast.units import parse_rate, parse_ratio

        missing = [name for name in ("share", "above") if self.values[name] is None]
        if missing:
            raise TcpcastError(
                f"--{' and --'.join(missing)}: missing; write --share 95% --above 500kbit for the "
                "goodput that most files reach, or --rate 200kbit for a mean rate"
            )
        return {
            "share": self.read("share", parse_ratio),
            "above_bps": self.read("above", parse_rate),
        }

    def mean_rate(self, *others: str) -> dict[str, Any]:
        """Return the mean rate; raises if options of a quality, ``others``, were given."""
        from tcpcast.units import parse_rate

        for name in others:
            if self.values[name] is not None:
                raise TcpcastError(
                    f"--{name}: belongs to the quality of files, --rate to a mean rate; leave one "
                    "of the two out"
                )
        return {"rate_bps": self.read("rate", parse_rate), **self.connections}
