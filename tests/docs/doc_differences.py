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
    return "".join(
        _item(reason, captures[reason["reason"]])
        for reason in rows("trace_reasons.csv")
        if len(set(captures[reason["reason"]])) > 1 or reason["right"] != "tcpcast"
    )


def _item(reason: dict[str, str], captures: list[str]) -> str:
    right = RIGHT.get(reason["right"], f"{reason['right']} is right. ")
    values = f"{len(captures)} value{'s' if len(captures) > 1 else ''}"
    different = len(set(captures))
    where = f"{different} captures" if different > 1 else f"`{captures[0].partition('.')[0]}`"
    return f"- **{reason['reason']}** ({values}, {where}): {right}{reason['why']}\n"
