"""tshark's expert information and tcptrace, on the captures of ``expert_counts.csv``."""

import csv
import shutil
import subprocess
from pathlib import Path

import pytest
from expert_tools import compared, differs

HERE = Path(__file__).parent
FOLDERS = [parent / "shared/captures" for parent in HERE.parents]
FOLDER = next((folder for folder in FOLDERS if folder.is_dir()), None)


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as content:
        return list(csv.DictReader(content))


ROWS = table(HERE / "expert_counts.csv")


def tools_are_known() -> bool:
    """Return true if the installed programs are the versions used for the list."""
    if not (shutil.which("tshark") and shutil.which("tcptrace")):
        return False
    run = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=False)
    return "4.0." in run.stdout.partition("\n")[0]


def test_each_difference_has_a_reason() -> None:
    own = {row["reason"] for row in table(HERE / "expert_reasons.csv")}
    shared = {row["reason"] for row in table(HERE.parent / "agreement" / "trace_reasons.csv")}
    used = set()
    for row in ROWS:
        counts = {row[tool] for tool in ("tcpcast", "tshark", "tcptrace") if row[tool]}
        assert bool(row["reason"]) is (len(counts) > 1), row
        used.add(row["reason"])
    assert own <= used <= own | shared | {""}


@pytest.mark.skipif(FOLDER is None, reason="no captures next to the project")
@pytest.mark.skipif(not tools_are_known(), reason="no tcptrace with tshark 4.0: make peers")
@pytest.mark.parametrize("name", dict.fromkeys(row["capture"] for row in ROWS))
def test_counts_equal_the_listed_counts(name: str, tmp_path: Path) -> None:
    """If not: correct ``expert_counts.csv``, or the program."""
    assert FOLDER is not None
    path = next(
        folder / name for folder in (FOLDER, FOLDER / "offload") if (folder / name).exists()
    )
    listed = [tuple(row.values())[:-1] for row in ROWS if row["capture"] == name]
    rows = list(compared(path, tmp_path))
    assert [row for row in map(tuple, rows) if set(row[2:]) - {"", "0"}] == listed
    assert any(map(differs, rows)) is any(row["reason"] for row in ROWS if row["capture"] == name)
