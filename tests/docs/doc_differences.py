"""The tables of what other programs count otherwise, from the lists that tests hold whole."""

from __future__ import annotations

import csv

from doc_pages import ROOT

LISTS = ROOT / "tests" / "agreement"
"""``trace_differences.csv`` and ``trace_reasons.csv``, checked by ``test_trace_tools.py``."""

HEAD = ["capture", "from", "figure", "tcpcast", "tcptrace", "tshark", "third count"]
RIGHT = {"nobody": "Nobody is right."}


def rows(name: str) -> list[dict[str, str]]:
    with (LISTS / name).open(encoding="utf-8", newline="") as content:
        return list(csv.DictReader(content))


def differences() -> str:
    """Return, for each reason, who is right and why, and the figures that differ for it."""
    found = rows("trace_differences.csv")
    return "\n".join(
        _section(reason, [row for row in found if row["reason"] == reason["reason"]])
        for reason in rows("trace_reasons.csv")
    )


def _section(reason: dict[str, str], found: list[dict[str, str]]) -> str:
    title = reason["reason"][0].upper() + reason["reason"][1:]
    right = RIGHT.get(reason["right"], f"{reason['right']} is right.")
    lines = [HEAD, ["---"] * 3 + ["---:"] * 4, *map(_row, found)]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"### {title}\n\n**{right}** {reason['why']}\n\n{table}"


def _row(row: dict[str, str]) -> list[str]:
    number = int(row["connection"]) + 1
    source = row["from"] if number == 1 else f"{row['from']} ({number})"
    tools = [row[tool] for tool in ("tcpcast", "tcptrace", "tshark", "third")]
    return [f"`{row['capture']}`", source, row["figure"], *tools]


EXPERTS = ROOT / "tests" / "captures"
"""``expert_counts.csv`` and ``expert_reasons.csv``, checked by ``test_expert_tools.py``."""


def experts() -> str:
    """Return a row per capture of all three programs' counts, and the reasons of differences."""
    with (EXPERTS / "expert_counts.csv").open(encoding="utf-8", newline="") as content:
        found = list(csv.DictReader(content))
    figures = list(dict.fromkeys(("zero windows", *(row["figure"] for row in found))))
    lines = [["capture", *figures, "reasons"], ["---", *["---:"] * len(figures), "---"]]
    for capture in dict.fromkeys(row["capture"] for row in found):
        its = {row["figure"]: row for row in found if row["capture"] == capture}
        cells = [_three(its[figure]) if figure in its else "" for figure in figures]
        reasons = dict.fromkeys(row["reason"] for row in its.values() if row["reason"])
        lines.append([f"`{capture.partition('.')[0]}`", *cells, ", ".join(reasons)])
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("|  |", "| |")
    with (EXPERTS / "expert_reasons.csv").open(encoding="utf-8", newline="") as content:
        why = [f"- **{row['reason']}**: {row['why']}\n" for row in csv.DictReader(content)]
    return f"{table}\n{''.join(why)}"


def _three(row: dict[str, str]) -> str:
    return " / ".join(row[tool] or "–" for tool in ("tcpcast", "tshark", "tcptrace"))
