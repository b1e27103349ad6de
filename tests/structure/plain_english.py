"""Finds phrases that are hard to understand, by the patterns of ``plain_english.tsv``.

A row holds an extended regular expression (case is ignored) and a replacement. Part of
``make lint``::

    python tests/structure/plain_english.py [FILE...]
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
PATTERNS = Path(__file__).with_suffix(".tsv")
SUFFIXES = {".md", ".py", ".rs", ".toml", ".js", ".html"}
GENERATED = ("docs/reference/api.md", "uv.lock", "Cargo.lock", "python/tcpcast/web/static/vendor")


def patterns() -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns with their replacements."""
    with PATTERNS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [(re.compile(pattern, re.IGNORECASE), hint) for pattern, hint in rows]


def checked_files() -> list[str]:
    """Return the tracked text files of the repository, without Python tests."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [
        name
        for name in listed
        if Path(name).suffix in SUFFIXES and not name.startswith((*GENERATED, "tests/"))
    ]


def phrases(names: Iterable[str]) -> Iterator[str]:
    """Yield a line for each phrase: file, line number, phrase, replacement."""
    rules = patterns()
    for name in names:
        lines = (ROOT / name).read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            for rule, hint in rules:
                if match := rule.search(line):
                    yield f"{name}:{number}: {match[0].strip()!r}: {hint}"


def main() -> int:
    """Print the phrases in the named files, or in all; return 1 if there are any."""
    listed = list(phrases(sys.argv[1:] or checked_files()))
    print("\n".join(listed), end="\n" * bool(listed))
    return 1 if listed else 0


if __name__ == "__main__":
    sys.exit(main())
