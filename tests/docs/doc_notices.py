"""Licences of the crates that are compiled into a wheel, which must contain them.

``LICENSE-CRATES`` lists each crate with its licence and its licence texts, each text
once. ``make docs-update`` writes it, and ``pyproject.toml`` declares it as a licence file.
"""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from doc_pages import ROOT

NOTICES = ROOT / "LICENSE-CRATES"
TEXTS = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "*/LICENSE")
"""Licence files of a crate, including those of a C library in a subfolder."""
RULE = "-" * 80


def crates() -> dict[str, Any]:
    """Return the crates whose code is in a wheel of any target, by name and version."""
    targets = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))["graph"]["targets"]
    result: dict[str, Any] = {}
    for target in targets:
        command = ["cargo", "metadata", "--locked", "--format-version=1"]
        run = subprocess.run(
            [*command, f"--filter-platform={target}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        result |= _linked(json.loads(run.stdout))
    return dict(sorted(result.items()))


def _linked(metadata: Any) -> dict[str, Any]:
    """Return the crates that ``tcpcast-py`` links, without build-time crates."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [key for key, package in packages.items() if package["name"] == "tcpcast-py"]
    visited: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key in visited or any("proc-macro" in t["kind"] for t in packages[key]["targets"]):
            continue
        visited.add(key)
        waiting += [
            dependency["pkg"]
            for dependency in nodes[key]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    linked = (packages[key] for key in visited)
    return {f"{p['name']} {p['version']}": p for p in linked if p["source"] is not None}


def notices() -> str:
    """Return the text of the file."""
    shown: dict[str, str] = {}
    lines = ["Crates whose code is in tcpcast's native module, with their licences.", ""]
    for name, package in crates().items():
        licence = (package["license"] or "see its files").replace("/", " OR ")
        lines.append(f"{name}: {re.sub(r' +', ' ', licence)}")
        folder = Path(package["manifest_path"]).parent
        for file in sorted({path for glob in TEXTS for path in folder.glob(glob)}):
            text = "\n".join(
                line.rstrip() for line in file.read_text("utf-8", "replace").strip().splitlines()
            )
            first = shown.setdefault(text, f"{name}, {file.relative_to(folder).as_posix()}")
            lines.append(f"    {file.relative_to(folder).as_posix()}: the text under {first!r}")
    for text, first in shown.items():
        lines += ["", RULE, first, RULE, "", text]
    return "\n".join(lines) + "\n"


def write() -> None:
    """Write the file if it has changed."""
    text = notices()
    if not NOTICES.exists() or NOTICES.read_text(encoding="utf-8") != text:
        NOTICES.write_text(text, encoding="utf-8")
        print(f"updated {NOTICES.relative_to(ROOT)}")


def listed_crates() -> list[str]:
    """Return the crates in the file, in its order."""
    return re.findall(r"^(\S+ \d\S*): ", NOTICES.read_text(encoding="utf-8"), re.MULTILINE)
