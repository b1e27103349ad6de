"""Texts for file sizes in packets, and also in bytes as typed if a scenario specifies bytes."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tcpcast.quantity.readable_units import count_text
from tcpcast.quantity.unit_tables import BYTE_UNITS
from tcpcast.quantity.units import digits
from tcpcast.scenario.byte_sizes import FileInBytes, SizeInBytes
from tcpcast.scenario.distributions import Distribution

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.scenario import Scenario, Transfers

_LARGE_UNITS = ("GB", "GiB", "MB", "MiB", "kB", "KiB")
_MAX_DENOMINATOR = 1000


def exact_size_text(size: int) -> str:
    """Return a size in bytes as text without rounding, in the shortest unit: ``64 KiB``."""
    texts = [f"{size:,} B"]
    for unit in _LARGE_UNITS:
        amount = Fraction(size) / int(BYTE_UNITS[unit])
        if amount >= 1 and (amount * _MAX_DENOMINATOR).denominator == 1:
            texts.append(f"{float(amount):,g} {unit}")
    return min(texts, key=len)


def size_text(packets: int, typed_sizes: Mapping[int, str]) -> str:
    """Return a size in packets, preceded by the size in bytes if it was typed in bytes."""
    words = count_text(packets, "packet")
    return f"{typed_sizes[packets]}, {words}" if packets in typed_sizes else words


def typed_byte_sizes(scenario: Scenario | None) -> dict[int, str]:
    """Return the sizes in bytes as typed, by size in packets, of listed transfer sizes."""
    # With different packet sizes per class, a number of packets has no unique size in bytes.
    groups = () if scenario is None or scenario.packet_size_classes else scenario.populations
    listed = (p.traffic.sizes or [] for p in groups if p.traffic.kind == "transfers")
    return {
        int(size): exact_size_text(size.data_bytes)
        for sizes in listed
        for size in sizes
        if isinstance(size, FileInBytes)
    }


def transfer_size_text(traffic: Transfers) -> str:
    """Return the size of transfers as a phrase: ``of 10 MB (6,907 packets)``."""
    sizes = traffic.sizes
    if sizes is not None and len(sizes) > 1:
        return f"of {len(sizes)} sizes"
    if sizes is not None:
        only = sizes[0]
        in_bytes = only.data_bytes if isinstance(only, FileInBytes) else None
        return f"of {_prepend_byte_size(in_bytes, count_text(only, 'packet'))}"
    mean = getattr(traffic.size, "mean", None) if isinstance(traffic.size, Distribution) else None
    in_bytes = mean.data_bytes if isinstance(mean, SizeInBytes) else None
    return (
        f"of {_prepend_byte_size(in_bytes, f'{digits(traffic.mean_size_pkts)} packets')} on average"
    )


def _prepend_byte_size(in_bytes: int | None, packets: str) -> str:
    return packets if in_bytes is None else f"{exact_size_text(in_bytes)} ({packets})"
