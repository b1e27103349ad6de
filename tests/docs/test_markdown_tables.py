"""Rows of Markdown tables have as many cells as their heads."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def cells(row: str) -> int:
    """Return the number of cells; code may contain bars as ``\\|``."""
    return len(re.split(r"(?<!\\)\|", row.strip().strip("|")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_table_rows_match_their_heads(page: Path) -> None:
    in_code, width = False, 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        in_code ^= line.lstrip().startswith("```")
        if in_code or not line.startswith("|"):
            width = 0
            continue
        result = cells(line)
        width = width or result
        assert result == width, f"{page.name}:{number}: {result} cells instead of {width}"
