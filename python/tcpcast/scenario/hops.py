"""Hops in series: ``[[network.hop]]`` tables instead of one bottleneck."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field, StrictBool

from tcpcast.scenario.link import Link
from tcpcast.scenario.loss import RestOfRound
from tcpcast.scenario.name_patterns import Name
from tcpcast.scenario.table import make_error_at


class Hop(Link):
    """A link that all sources share or, with ``shared = False``, one link per source.

    One link per source models access routers with one user each; it has drop-tail queues.
    """

    name: Name = Field(
        examples=["backbone"], description="name in tables and in --set network.hop.NAME"
    )
    measured: StrictBool = Field(
        default=False,
        examples=[True],
        description="the bottleneck metrics describe this hop; default: the slowest shared hop",
    )
    shared: StrictBool = Field(
        default=True,
        examples=[False],
        description=("whether all sources share this hop; false: one hop per source"),
    )


def find_measured_hop(hops: Sequence[Hop]) -> int:
    """Return the index of the hop marked as measured, or else of the slowest shared hop.

    Among several candidates, the first is returned; without candidates, the result is 0.
    """
    marked = [index for index, hop in enumerate(hops) if hop.measured]
    shared = [(hop.rate, index) for index, hop in enumerate(hops) if hop.shared]
    return marked[0] if marked else min(shared, default=(math.inf, 0))[1]


def find_hop_errors(hops: Sequence[Hop]) -> Iterator[Any]:
    """Return contradictions between hops that are valid on their own."""
    if not hops:
        return
    if not any(hop.shared for hop in hops):
        message = "the sources share no hop; remove shared = false from one hop"
        yield make_error_at(message, "hop")
    names = Counter(hop.name for hop in hops)
    marked = [index for index, hop in enumerate(hops) if hop.measured]
    for index, hop in enumerate(hops):
        if names[hop.name] > 1:
            message = f'"{hop.name}" is the name of another hop; use another name'
            yield make_error_at(message, "hop", index, "name")
        if hop.measured and marked[0] != index:
            message = "another hop also has measured = true; use measured = true at only one hop"
            yield make_error_at(message, "hop", index, "measured")
        if hop.shared:
            continue
        if hop.queue != "droptail":
            message = (
                'a hop with shared = false serves one source, so only "droptail" is available; use '
                '"droptail", or remove shared = false'
            )
            yield make_error_at(message, "hop", index, "queue")
        if hop.varying is not None:
            message = (
                f"a {hop.varying.kind} is possible only at a shared hop; use a constant rate "
                'here, such as "10mbit", or remove shared = false'
            )
            yield make_error_at(message, "hop", index, "rate")
        if hop.measured:
            message = (
                "the measured hop must be shared; use measured = true at another hop, or remove "
                "shared = false here"
            )
            yield make_error_at(message, "hop", index, "measured")
    first = next((index for index, hop in enumerate(hops) if hop.shared), None)
    for index, hop in enumerate(hops):
        if isinstance(hop.loss_rule, RestOfRound) and not (
            index == first == find_measured_hop(hops)
        ):
            message = (
                "correlated loss within a round is possible only at the measured hop, and "
                'only if no shared hop precedes it; use a random loss here, such as "1%"'
            )
            yield make_error_at(message, "hop", index, "loss")
