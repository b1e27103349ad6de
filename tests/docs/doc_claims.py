"""Summaries of the claims of a paper, from the data of its quick reproduction."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from typing import TYPE_CHECKING

from tcpcast_papers import PAPERS, claims
from tcpcast_papers.published import QUICK
from tcpcast_papers.reproduction import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcpcast_papers.published import Line

WIDTH = 105


def of_paper(name: str) -> tuple[Line, ...]:
    """Return the claims of a paper's quick reproduction; () if it has none."""
    return claims.read(f"tcpcast_papers.{name.replace('-', '_')}", QUICK)


WITH_CLAIMS = tuple(name for name in PAPERS if of_paper(name))
"""Papers with claims."""


def summary(name: str) -> str:
    """Return the claims by verdict: first those that do not agree, with their reasons."""
    lines = of_paper(name)
    by_verdict = defaultdict(list)
    for line in lines:
        by_verdict[claims.expected(line)].append(line)
    counts = ", ".join(f"{verdict.value} {len(of)}" for verdict, of in by_verdict.items())
    head = f"`tcpcast reproduce {name} --quick` measures {len(lines)} claims, by verdict: {counts}."
    agreeing = by_verdict.pop(Verdict.AGREES)
    items = [
        f"- **{verdict.value}**, {line['place']}: {line['statement']}. {_reason(line)}."
        for verdict, of in by_verdict.items()
        for line in of
    ]
    items += [f"- agrees, {place}: {text}." for place, text in _by_place(agreeing).items()]
    wrapped = ("\n".join(textwrap.wrap(item, WIDTH, subsequent_indent="  ")) for item in items)
    return "\n" + textwrap.fill(head, WIDTH) + "\n\n" + "\n".join(wrapped) + "\n\n"


def _reason(line: Line) -> str:
    if line["cause"]:
        return f"Cause: {line['cause']}"
    return f"{line['reason'][:1].upper()}{line['reason'][1:]}"


def _by_place(lines: Iterable[Line]) -> dict[str, str]:
    places: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        places[line["place"]].append(line["statement"])
    return {place: "; ".join(statements) for place, statements in places.items()}
