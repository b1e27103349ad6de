"""No file contains paths of the machine on which it was written."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOT_OURS = {
    ".venv", "target", "out", ".git", "__pycache__", ".hypothesis", ".mypy_cache", ".pytest_cache",
    ".ruff_cache",
}  # fmt: skip
BINARY = {".so", ".png", ".pcap", ".pyc", ".gz", ".zst", ".woff"}

MACHINE = re.compile(
    r"(?<![\w.])/(work|root|home|Users|mnt|media|private|scratch)/\w"
    r"|(?<![\w.])/tmp/\w|[A-Z]:\\\\?Users\\"
)


def tracked() -> list[Path]:
    """Return the files of the repository, or of the tree if there is no repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode == 0:
        names = [Path(name) for name in listed.stdout.split("\0") if name]
    else:
        names = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
    return sorted(
        name
        for name in names
        if (ROOT / name).is_file() and not NOT_OURS & set(name.parts) and name.suffix not in BINARY
    )


def test_tracked_files_are_found() -> None:
    assert {Path("README.md"), Path("Cargo.toml"), Path("pyproject.toml")} <= set(tracked())


def test_no_machine_specific_paths() -> None:
    assert not [
        f"{path}:{number}: {line.strip()}"
        for path in tracked()
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1)
        if MACHINE.search(line)
    ]
