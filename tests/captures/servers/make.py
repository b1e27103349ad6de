"""Make captures of real servers whose limit is known, and compare each verdict with it.

``python tests/captures/servers/make.py FOLDER [SET...]`` needs root, tcpdump and 4 to 20
minutes. For each transfer of ``tuning.toml`` or ``held-out.toml``, and each service of
``services-tuning.toml`` or ``services-held-out.toml``, two hosts (``host.py``) with the
real kernel are connected by ``tcpcast link``. Each set is a folder like
``shared/captures/offload``, with captures ``NAME-TAP.pcap.gz`` (``snd`` at the sender, ``mid``
behind it, where frames are split, ``any`` on all interfaces there, ``rcv`` at the receiver) and
``truth.csv`` with the kernel's counters. At the end of each set, ``verdicts.py`` prints each
verdict and the confusion matrix of each tap.
"""

import csv
import gzip
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TAPS = ("snd", "mid", "any", "rcv")
PRIORITY = -15
"""Niceness of a link and its hosts: a link that waits for the processor is another one."""
LONGEST_S = 60
BULK = '[traffic]\nkind = "bulk"\nflows = 1\n[run]\nduration = "60s"\n'
"""A scenario needs traffic; a link does not use it."""
ATTEMPTS = 5
"""A transfer is repeated if its link was late."""
SETS = ("tuning", "held-out", "services-tuning", "services-held-out")
"""Thresholds are tuned on the sets named so; the others only measure them."""
MEASURED = {
    "kernel_busy_s": ("busy_time", 1e-6),
    "kernel_rwnd_limited_s": ("rwnd_limited", 1e-6),
    "kernel_sndbuf_limited_s": ("sndbuf_limited", 1e-6),
    "kernel_retransmitted": ("total_retrans", 1),
    "kernel_acked_bytes": ("bytes_acked", 1),
    "kernel_min_rtt_ms": ("min_rtt", 1e-3),
}
"""Columns of ``truth.csv``: field of TCP_INFO and factor."""


def made(transfer: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run one transfer, put its captures into the folder, and return its row of ``truth.csv``."""
    name = transfer["name"]
    with tempfile.TemporaryDirectory(prefix="tcpcast-servers-") as work:
        place = Path(work)
        (place / "transfer.json").write_text(json.dumps(transfer), encoding="utf-8")
        scenario = f'name = "{name}"\n{transfer["network"]}{BULK}'
        (place / "network.toml").write_text(scenario, encoding="utf-8")
        for _ in range(ATTEMPTS):
            late = transferred(place)
            if late is None:
                break
            print(f"{name}: {late}")
        for tap in TAPS:
            plain = place / f"{tap}.pcap"
            if plain.exists():
                packed = gzip.compress(plain.read_bytes(), mtime=0)
                (folder / f"{name}-{tap}.pcap.gz").write_bytes(packed)
        kernel = json.loads((place / "kernel.json").read_text(encoding="utf-8"))
    row = {"scenario": name, "limited_by": transfer["cause"], "how_it_was_made": transfer["how"]}
    if "service" in transfer:
        return row | {"limited_by_at_rcv": transfer.get("cause_at_rcv", transfer["cause"])}
    return row | {name: round(kernel[of] * unit, 6) for name, (of, unit) in MEASURED.items()}


def transferred(place: Path) -> str | None:
    """Run both hosts over the link; return why its numbers cannot be trusted, if they cannot."""
    numbers = place / "numbers.json"
    (place / "ready").unlink(missing_ok=True)
    host = [sys.executable, str(HERE / "host.py")]
    link = [sys.executable, "-m", "tcpcast", "link", str(place / "network.toml")]
    options = ["--device", "veth", "--force", "--out", str(numbers)]
    far = ["--server-command", " ".join([*host, "receiver", str(place)])]
    command = [
        "nice",
        "-n",
        str(PRIORITY),
        *link,
        *options,
        *far,
        "--",
        *host,
        "sender",
        str(place),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LONGEST_S)
    if not numbers.exists() or not (place / "kernel.json").exists():
        sys.exit(done.stderr)
    distortion: str | None = json.loads(numbers.read_text(encoding="utf-8"))["distortion"]
    return distortion


def make(folder: Path, transfers: list[dict[str, Any]]) -> None:
    """Make the captures of one set, and print their verdicts."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for transfer in transfers:
        rows.append(made(transfer, folder))
        print(*rows[-1].values(), sep=", ", flush=True)
    with (folder / "truth.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    subprocess.run([sys.executable, str(HERE.parent / "verdicts.py"), str(folder)], check=True)


def main(folder: Path, wanted: list[str]) -> None:
    """Make all sets, or some."""
    for name in wanted or SETS:
        text = (HERE / f"{name}.toml").read_text(encoding="utf-8")
        make(folder / name, tomllib.loads(text)["transfer"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
