"""Summaries of the claims of a paper, from the data of its quick reproduction."""

import textwrap
from collections import defaultdict

from tcpcast_papers import PAPERS, claims
from tcpcast_papers.published import QUICK, Line
from tcpcast_papers.reproduction import Verdict

WIDTH = 105


def of_paper(name: str) -> tuple[Line, ...]:
    """Return the claims of a paper's quick reproduction; () if it has none."""
    return claims.read(f"tcpcast_papers.{name.replace('-', '_')}", QUICK)


WITH_CLAIMS = tuple(name for name in PAPERS if of_paper(name))
"""Papers with claims."""


def summary(name: str) -> str:
    """Return the number of claims by verdict, and the claims that do not agree, by reason."""
    lines = of_paper(name)
    by_verdict = defaultdict(list)
    for line in lines:
        by_verdict[claims.expected_verdict(line)].append(line)
    counts = ", ".join(f"{verdict.value} {len(of)}" for verdict, of in by_verdict.items())
    head = f"`tcpcast reproduce {name} --quick` measures {len(lines)} claims: {counts}."
    by_verdict.pop(Verdict.AGREES)
    items = []
    for verdict, of in by_verdict.items():
        by_reason: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for line in of:
            by_reason[_reason(line)][line["place"]].append(line["statement"])
        items += [
            f"- **{verdict.value}**, {_by_place(places)}. {reason}."
            for reason, places in by_reason.items()
        ]
    wrapped = ("\n".join(textwrap.wrap(item, WIDTH, subsequent_indent="  ")) for item in items)
    return "\n" + textwrap.fill(head, WIDTH) + "\n\n" + "\n".join(wrapped) + "\n\n"


def _by_place(places: dict[str, list[str]]) -> str:
    return "; ".join(f"{place}: {'; '.join(of)}" for place, of in places.items())


def _reason(line: Line) -> str:
    cause = f"Cause: {line['cause']}" if line["cause"] else ""
    reason = f"{line['reason'][:1].upper()}{line['reason'][1:]}"
    return ". ".join(filter(None, (cause, reason)))
