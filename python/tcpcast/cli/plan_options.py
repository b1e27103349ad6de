"""Options that several plans share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tcpcast.errors import TcpcastError, UnitError

if TYPE_CHECKING:
    from collections.abc import Callable

PathFile = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE|NAME",
        help="A scenario in place of the options of the path.",
        show_default=False,
    ),
]
Rtt = Annotated[str | None, typer.Option(metavar="TIME", help="Round-trip time of the empty path.")]
Mss = Annotated[
    str | None,
    typer.Option(metavar="BYTES", help="Payload of a packet; 1500 B less headers if left out."),
]
Rwnd = Annotated[
    str | None, typer.Option(metavar="WINDOW", help="Receiver window; unlimited if left out.")
]
DelayedAcks = Annotated[bool, typer.Option("--delayed-acks", help="One ack for two packets.")]
MinRto = Annotated[str | None, typer.Option(metavar="TIME", help="Minimum RTO; else the stack's.")]
Stack = Annotated[
    str | None, typer.Option(metavar="NAME", help="TCP preset; linux-cubic if left out.")
]
Share = Annotated[
    str | None,
    typer.Option(metavar="RATIO", help="Instead: the share of the files that is faster ..."),
]
Above = Annotated[str | None, typer.Option(metavar="RATE", help="... than this goodput of a file.")]
Plot = Annotated[
    str | None, typer.Option(metavar="DIR", help="Draw what the models say into a folder.")
]
Verify = Annotated[
    bool, typer.Option("--verify", help="Check by simulation, and solve by simulation, too.")
]


def refuse_quality(others: dict[str, str | None]) -> None:
    """Refuse options of a quality next to a mean rate."""
    for name in [name for name, value in others.items() if value is not None]:
        raise TcpcastError(
            f"--{name}: belongs to the quality of files, --rate to a mean rate; leave one of the "
            "two out"
        )


def read_option(option: str, parse: Callable[[object], float], text: str) -> float:
    """Return the value of an option; an error names the option."""
    try:
        return parse(text)
    except UnitError as fault:
        raise UnitError(f"{option}: {fault}") from None
