"""Options that several plans share."""

from __future__ import annotations

from typing import Annotated

import typer

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
