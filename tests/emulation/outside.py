"""State that a link must not change; imports little, because it also runs in namespaces."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

OUTSIDE_FILES = ("/proc/net/dev", "/proc/net/route", "/proc/net/arp", "/proc/self/mountinfo")
SYSCTLS = "/proc/sys/net"


def outside() -> dict[str, str]:
    """Return the interfaces, routes, neighbours, mounts, namespaces and network settings."""
    result = {}
    for name in OUTSIDE_FILES:
        text = Path(name).read_text()
        lines = [line.split()[0] for line in text.splitlines()] if name.endswith("dev") else text
        result[name] = str(lines)
    for folder, _, names in os.walk(SYSCTLS):
        for name in names:
            with suppress(OSError):
                result[f"{folder}/{name}"] = Path(folder, name).read_text()
    result["ns"] = str([os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "user", "mnt")])
    return result
