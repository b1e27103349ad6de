"""Hops in series: ``[[network.hop]]`` tables in place of one bottleneck."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pydantic import Field, StrictBool

from tcpcast.scenario.link import Link
from tcpcast.scenario.loss import RestOfRound
from tcpcast.scenario.names import Name
from tcpcast.scenario.table import fault


class Hop(Link):
    """A link that the packets of all sources take, or one of each source's own.

    ``shared = False`` is an access router with one user: a drop-tail queue for each source.
    """

    name: Name = Field(
        examples=["backbone"], description="name in tables and in --set network.hop.NAME"
    )
    measured: StrictBool = Field(
        default=False,
        examples=[True],
        description="hop of the bottleneck metrics; default the slowest shared hop",
    )
    shared: StrictBool = Field(
        default=True,
        examples=[False],
        description="one hop for all sources, or one per source",
    )


def measured_hop(hops: Sequence[Hop]) -> int:
    """Return which hop is measured: one that says so, else the slowest shared one.

    Of equals it is the first, and 0 where none could be.
    """
    told = [at for at, hop in enumerate(hops) if hop.measured]
    shared = [(hop.rate, at) for at, hop in enumerate(hops) if hop.shared]
    return told[0] if told else min(shared, default=(math.inf, 0))[1]


def hop_faults(hops: Sequence[Hop]) -> list[Any]:
    """Find what is wrong between hops that are each right by themselves."""
    if not hops:
        return []
    found = []
    if not any(hop.shared for hop in hops):
        message = "the sources share no hop; leave shared = false out of one, or write [[class]]"
        found.append(fault(message, "hop"))
    names = Counter(hop.name for hop in hops)
    told = [at for at, hop in enumerate(hops) if hop.measured]
    for at, hop in enumerate(hops):
        if names[hop.name] > 1:
            message = f'"{hop.name}" is another hop as well; write a new name'
            found.append(fault(message, "hop", at, "name"))
        if hop.measured and told[0] != at:
            message = "another hop is measured; write it once"
            found.append(fault(message, "hop", at, "measured"))
        if not hop.shared:
            found += [fault(text, "hop", at, key) for key, text in _faults_of_own(hop)]
    first = next((at for at, hop in enumerate(hops) if hop.shared), None)
    for at, hop in enumerate(hops):
        if isinstance(hop.loss_rule, RestOfRound) and not (at == first == measured_hop(hops)):
            message = (
                "correlated loss within a round needs the measured hop, with no shared one "
                'before it; write "1%" here'
            )
            found.append(fault(message, "hop", at, "loss"))
    return found


def _faults_of_own(hop: Hop) -> list[tuple[str, str]]:
    found = []
    if hop.queue != "droptail":
        message = (
            'each source is alone at its own hop; write "droptail" here, or leave shared = '
            "false out"
        )
        found.append(("queue", message))
    if hop.varying is not None:
        message = (
            f'a {hop.varying.kind} is for a shared hop; write "10mbit" here, or leave shared = '
            "false out"
        )
        found.append(("rate", message))
    if hop.measured:
        message = (
            "the measured hop must be shared; write measured = true at another hop, or leave "
            "shared = false out"
        )
        found.append(("measured", message))
    return found
