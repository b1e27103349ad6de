"""Files that a wheel installs with the package: the manual page and shell completions.

They are files of the repository, because building a wheel runs none of its commands. ``make
docs-update`` writes the present output of the commands.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from doc_pages import ROOT

SHARE = ROOT / "installed" / "data" / "share"
COMMANDS = {
    "man/man1/tcpcast.1": ["man"],
    "bash-completion/completions/tcpcast": ["completion", "bash"],
    "zsh/site-functions/_tcpcast": ["completion", "zsh"],
    "fish/vendor_completions.d/tcpcast.fish": ["completion", "fish"],
}


def printed(arguments: list[str]) -> str:
    """Return the output of a command."""
    program = str(Path(sys.executable).with_name("tcpcast"))
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def write() -> None:
    """Write the output of each command to its file, and list the changed files."""
    for name, arguments in COMMANDS.items():
        path, text = SHARE / name, printed(arguments)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"updated {path.relative_to(ROOT)}")
