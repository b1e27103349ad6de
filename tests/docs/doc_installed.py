"""What a wheel installs beside the package: the manual page and the scripts of shells.

They are files of the repository, as building a wheel runs no command of it. ``make docs-update``
writes them as the commands print them now.
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
    """Return what a command prints."""
    program = str(Path(sys.executable).with_name("tcpcast"))
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def write() -> None:
    """Write each file as its command prints it, and say which have changed."""
    for name, arguments in COMMANDS.items():
        path, text = SHARE / name, printed(arguments)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"updated {path.relative_to(ROOT)}")
