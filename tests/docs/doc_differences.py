"""Lists of differences between tcpcast and other programs, from the CSV files of the tests."""

from __future__ import annotations

import csv

from doc_pages import ROOT

LISTS = ROOT / "tests" / "agreement"
"""``trace_differences.csv`` and ``trace_reasons.csv``, checked by ``test_trace_tools.py``."""

RIGHT = {"tcpcast": "", "nobody": "No program is right. "}


def rows(name: str) -> list[dict[str, str]]:
    with (LISTS / name).open(encoding="utf-8", newline="") as content:
        return list(csv.DictReader(content))


def differences() -> str:
    """Return, per reason, the number of different values and of captures, and the explanation."""
    different = rows("trace_differences.csv")
    return "".join(
        _item(reason, [row["capture"] for row in different if row["reason"] == reason["reason"]])
        for reason in rows("trace_reasons.csv")
    )


def _item(reason: dict[str, str], captures: list[str]) -> str:
    right = RIGHT.get(reason["right"], f"{reason['right']} is right. ")
    values = f"{len(captures)} value{'s' if len(captures) > 1 else ''}"
    different = len(set(captures))
    where = f"{different} captures" if different > 1 else f"`{captures[0].partition('.')[0]}`"
    return f"- **{reason['reason']}** ({values}, {where}): {right}{reason['why']}\n"


EXPERTS = ROOT / "tests" / "captures"
"""``expert_counts.csv`` and ``expert_reasons.csv``, checked by ``test_expert_tools.py``."""


def experts() -> str:
    """Return one row per capture with the counts of all three programs, and the reasons."""
    with (EXPERTS / "expert_counts.csv").open(encoding="utf-8", newline="") as content:
        result = list(csv.DictReader(content))
    figures = list(dict.fromkeys(("zero windows", *(row["figure"] for row in result))))
    lines = [["capture", *figures, "reasons"], ["---", *["---:"] * len(figures), "---"]]
    for capture in dict.fromkeys(row["capture"] for row in result):
        its = {row["figure"]: row for row in result if row["capture"] == capture}
        cells = [_three(its[figure]) if figure in its else "" for figure in figures]
        reasons = dict.fromkeys(row["reason"] for row in its.values() if row["reason"])
        lines.append([f"`{capture.partition('.')[0]}`", *cells, ", ".join(reasons)])
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("|  |", "| |")
    with (EXPERTS / "expert_reasons.csv").open(encoding="utf-8", newline="") as content:
        why = [f"- **{row['reason']}**: {row['why']}\n" for row in csv.DictReader(content)]
    return f"{table}\n{''.join(why)}"


def _three(row: dict[str, str]) -> str:
    return " / ".join(row[tool] or "–" for tool in ("tcpcast", "tshark", "tcptrace"))
