"""Connections that failed before they began: a SYN without an answer, or a refused one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.captures.table import endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KINDS = {
    "unanswered": "sent a SYN without an answer: check the address, the port and firewalls",
    "refused": "got a RST for its SYN: nothing listens at that port, or a firewall rejects it",
}
"""Each way in which connections fail, in the order of the compiled half, and what to check."""


def failures(counts: Mapping[str, int], examples: Sequence[Any]) -> list[str]:
    """Return a line for each way in which connections failed, with the first of them.

    Parameters
    ----------
    counts
        Connections by kind.
    examples
        Of each kind None, or both ends of the first and the number of its SYNs.
    """
    lines = []
    for (kind, what), example in zip(KINDS.items(), examples, strict=True):
        if example is None:
            continue
        source, destination, syns = example
        named = f"{endpoint(*source)} > {endpoint(*destination)}"
        tries = f", {syns} SYNs" if syns > 1 else ""
        of = f"{counts[kind]:,} connections, such as" if counts[kind] > 1 else "connection"
        lines.append(f"{of} {named}{tries}: {what}")
    return lines
