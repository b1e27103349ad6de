"""State that a link must not change; imports little, because it also runs in namespaces."""

import os
from contextlib import suppress
from pathlib import Path

OUTSIDE_FILES = ("/proc/net/dev", "/proc/net/route", "/proc/net/arp", "/proc/self/mountinfo")
SYSCTLS = "/proc/sys/net"


def outside() -> dict[str, str]:
    """Return the interfaces, routes, neighbours, mounts, namespaces and network settings."""
    result = {}
    for name in OUTSIDE_FILES:
        # Tests that run at the same time mount small file systems in their folders.
        lines = [line for line in Path(name).read_text().splitlines() if "/pytest-of-" not in line]
        result[name] = str([line.split()[0] for line in lines] if name.endswith("dev") else lines)
    for folder, _, names in os.walk(SYSCTLS):
        for name in names:
            with suppress(OSError):
                result[f"{folder}/{name}"] = Path(folder, name).read_text()
    result["ns"] = str([os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "user", "mnt")])
    return result
