"""Lists of differences between tcpcast and other programs, from the CSV files of the tests."""

import csv

from doc_pages import ROOT

LISTS = ROOT / "tests" / "agreement"
"""``trace_differences.csv`` and ``trace_reasons.csv``, checked by ``test_trace_tools.py``."""

RIGHT = {"tcpcast": "", "nobody": "No program is right. "}


def rows(name: str) -> list[dict[str, str]]:
    with (LISTS / name).open(encoding="utf-8", newline="") as content:
        return list(csv.DictReader(content))


def differences() -> str:
    """Return, per reason, the number of different values and of captures, and the explanation.

    A reason is left out if it concerns a single capture in which tcpcast is right.
    """
    captures: dict[str, list[str]] = {}
    for row in rows("trace_differences.csv"):
        captures.setdefault(row["reason"], []).append(row["capture"])
    in_table = {row["reason"] for row in _expert_counts()}
    return "".join(
        _item(reason, captures[reason["reason"]])
        for reason in rows("trace_reasons.csv")
        if len(set(captures[reason["reason"]])) > 1
        or reason["right"] != "tcpcast"
        or reason["reason"] in in_table
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
    """Return the counts of all three programs, and the reasons of their differences.

    Of several captures with the same reasons, the table has only the first one.
    """
    result = _expert_counts()
    figures = list(dict.fromkeys(("zero windows", *(row["figure"] for row in result))))
    lines = [["capture", *figures, "reasons"], ["---", *["---:"] * len(figures), "---"]]
    shown = set()
    for capture in dict.fromkeys(row["capture"] for row in result):
        its = {row["figure"]: row for row in result if row["capture"] == capture}
        reasons = ", ".join(dict.fromkeys(row["reason"] for row in its.values() if row["reason"]))
        if reasons in shown:
            continue
        shown.add(reasons)
        cells = [_three(its[figure]) if figure in its else "" for figure in figures]
        lines.append([f"`{capture.partition('.')[0]}`", *cells, reasons])
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("|  |", "| |")
    with (EXPERTS / "expert_reasons.csv").open(encoding="utf-8", newline="") as content:
        why = [f"- **{row['reason']}**: {row['why']}\n" for row in csv.DictReader(content)]
    return f"{table}\n{''.join(why)}"


def _expert_counts() -> list[dict[str, str]]:
    with (EXPERTS / "expert_counts.csv").open(encoding="utf-8", newline="") as content:
        return list(csv.DictReader(content))


def _three(row: dict[str, str]) -> str:
    return " / ".join(row[tool] or "–" for tool in ("tcpcast", "tshark", "tcptrace"))
