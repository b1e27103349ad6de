"""Table ``[probes]``: additional recorded data."""

import os
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from tcpcast.process.errors import UnitError
from tcpcast.quantity import units
from tcpcast.scenario.name_patterns import Name
from tcpcast.scenario.quantities import RATIO_SCHEMA, Ratio, Size, integer_annotation
from tcpcast.scenario.table import Choice, Errors, Table, make_error_at

MAX_GOODPUT_PKTS = 10**9


def _check_name(name: str) -> str:
    if "\0" in name:
        raise UnitError(f'{units.quote(name)} is not a file name; use "in.pcap"')
    return name


class PacketCapture(Table):
    """A pcap file of at most ``packets`` packets at one point of the path."""

    link: Annotated[
        Literal["sender", "bottleneck-in", "bottleneck-out", "receiver"],
        Choice("place to capture"),
    ] = Field(examples=["bottleneck-in"])
    file: Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_check_name)] = Field(
        examples=["in.pcap"],
        description="file name, in or below the scenario's folder",
    )
    packets: Annotated[int, *integer_annotation(1, 10**9)] = 1_000_000


def _read_goodput_share(value: object) -> float:
    share = float(value) if isinstance(value, int | float) else units.parse_ratio(value)
    if not 0 < share < 1:
        raise ValueError(
            f'{units.quote(value)} is not a share of the files; use "95%" or 0.95, for example'
        )
    return share


GoodputShare = Annotated[
    Ratio,
    BeforeValidator(_read_goodput_share),
    WithJsonSchema(RATIO_SCHEMA),
]


class Probes(Table):
    """Additional recorded data: windows of selected flows, and captured packets.

    Further keys select results on the goodput of files: the minimum for given shares of the files,
    and the distribution over files, large files and blocks of packets.
    """

    link: Name | None = Field(
        default=None,
        examples=["core"],
        description="the [link.NAME] that the bottleneck metrics describe; default: the shared "
        "link with the lowest rate per flow",
    )
    flows: list[Annotated[int, *integer_annotation(0, 10**7 - 1)]] = Field(
        default=[], max_length=1000, examples=[[0, 1]]
    )
    pcap: list[PacketCapture] = Field(
        default=[], max_length=16, examples=[[{"link": "bottleneck-in", "file": "in.pcap"}]]
    )
    goodput_shares: list[GoodputShare] = Field(
        default=[0.95, 0.9, 0.8, 0.5],
        min_length=1,
        max_length=100,
        examples=[["95%", "50%"]],
        description="report the goodput that these shares of the files exceed",
    )
    goodput_packets: Annotated[int, *integer_annotation(1, 10**6)] | None = Field(
        default=None,
        examples=[10],
        description="also report the goodput of blocks of this many packets",
    )
    goodput_least: Size = Field(
        default=10,
        examples=["10pkt"],
        description="size above which a file counts as large",
    )

    def _find_errors(self) -> Errors:
        files = [os.path.normpath(capture.file) for capture in self.pcap]
        if same := next((file for file in files if files.count(file) > 1), None):
            message = f"two captures use the file {same}; choose different names"
            yield make_error_at(message, "pcap")
        shares = self.goodput_shares
        twice = next((share for share in shares if shares.count(share) > 1), None)
        if twice is not None:
            message = f"{units.format_ratio(twice)} is listed twice; remove one entry"
            yield make_error_at(message, "goodput_shares")
        if self.goodput_least > MAX_GOODPUT_PKTS:
            written = units.format_packets(self.goodput_least)
            message = f'{written} is above the largest size of a file; use "10pkt", for example'
            yield make_error_at(message, "goodput_least")
