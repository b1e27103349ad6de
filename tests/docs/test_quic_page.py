"""The page on QUIC summarises the measured cells of ``quic.csv``."""

import csv

import pytest
from doc_pages import ROOT

PAGES = ROOT / "docs" / "background"
TOLERANCES = {"quinn": 0.05, "quiche": 0.1, "aioquic": 0.1}


def agrees(row: dict[str, str], tolerance: float) -> bool:
    measured, simulated = float(row["time_ms"]), float(row["simulated_ms"])
    half_width = float(row["half_width_ms"] or 0)
    return abs(simulated - measured) <= max(tolerance * measured, half_width)


def span(rows: list[dict[str, str]]) -> str:
    differences = [int(row["difference_percent"]) for row in rows]
    return f"{min(differences):+} to {max(differences):+} %"


@pytest.mark.parametrize("program", TOLERANCES)
def test_table_has_the_counts_and_ranges_of_the_cells(program: str) -> None:
    with (PAGES / "quic.csv").open(encoding="utf-8", newline="") as content:
        rows = [row for row in csv.DictReader(content) if row["program"] == program]
    count = sum(agrees(row, TOLERANCES[program]) for row in rows)
    lossless = [row for row in rows if row["loss"] == "0%"]
    lossy = [row for row in rows if row["loss"] != "0%"]
    shares = [100 * float(row["half_width_ms"]) / float(row["time_ms"]) for row in lossy]
    cells = [program, f"{count} of {len(rows)}", span(lossless), span(lossy)]
    cells.append(f"{min(shares):.0f} to {max(shares):.0f} %")
    page = (PAGES / "quic.md").read_text(encoding="utf-8")
    assert f"| {' | '.join(cells)} |" in page
