"""``make demo``: a home's line, predicted by simulation and measured with this machine's kernel.

Every number is the output of a command that is printed before. Without network namespaces, the
measurement is left out with the reason.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TCPCAST = str(Path(sys.executable).with_name("tcpcast"))
OUT = Path("out")
LINE = ("--uses", "call,page,upload")
QUANTITIES = (
    ("call, delay p95 (ms)", "delay_p95_s.call", 1e3),
    ("upload (Mbit/s)", "goodput_bps.upload", 1e-6),
)


def run(*arguments: str) -> str:
    """Run a command of tcpcast, and return what it prints to stdout."""
    done = subprocess.run([TCPCAST, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout


def show(*arguments: str) -> None:
    """Print a command before it runs."""
    print(f"\n$ tcpcast {' '.join(arguments)}", flush=True)


def first_paragraph(text: str) -> str:
    """Return the verdict of a command: the lines before the first empty one."""
    return text.strip().partition("\n\n")[0]


def compare(answers: list[dict[str, Any]]) -> None:
    """Print predicted and measured values of each queue."""
    queues = list(dict.fromkeys(answer["link.*.queue"] for answer in answers))
    heads = " ".join(f"{title:>33}" for title, *_ in QUANTITIES)
    print(f"{'':9} {heads}")
    columns = f"{'predicted':>13} {'measured':>10} {'error':>8}"
    print(f"{'queue':9} " + " ".join([columns] * len(QUANTITIES)))
    for queue in queues:
        both = {a["engine"]: a for a in answers if a["link.*.queue"] == queue}
        cells = []
        for _, key, scale in QUANTITIES:
            predicted, measured = (both[engine].get(key) for engine in ("packet", "kernel"))
            if predicted is None or measured is None:
                cells.append(f"{'':13} {'-':>10} {'':>8}")
                continue
            error = 100 * (predicted / measured - 1)
            cells.append(f"{predicted * scale:13.4g} {measured * scale:10.4g} {error:+7.1f}%")
        print(f"{queue:9} " + " ".join(cells))
        if both["kernel"]["reason"]:
            print(f"          {both['kernel']['reason']}")


def main() -> None:
    """Predict, measure, compare, and explain a capture."""
    OUT.mkdir(exist_ok=True)
    show("home", *LINE)
    print(first_paragraph(run("home", *LINE)))
    measure = ("home", *LINE, "--engine", "packet,kernel")
    show(*measure)
    print("Measuring each queue for 24 s, with real sockets over an emulated line:", flush=True)
    answers = json.loads(run(*measure, "--json") or "{}").get("answers", [])
    measured = [each for each in answers if each["engine"] == "kernel"]
    if not any(each["status"] in ("answered", "partial") for each in measured):
        print(measured[0]["reason"] if measured else "not measured")
        return
    compare(answers)
    line = OUT / "home.toml"
    pcap = 'probes.pcap=[{link="receiver",file="home.pcap"}]'
    line.write_text(run("home", *LINE, "--set", pcap, "--print-scenario"), encoding="utf-8")
    later = (
        "--set",
        "class.upload.start=4s",
        "--set",
        "run.duration=16s",
        "--set",
        "run.warmup=1s",
    )
    report = ("run", str(line), "--engine", "packet,kernel", *later)
    show(*report, "--out", "out/demo.html")
    run(*report, "--out", str(OUT / "demo.html"), "--force")
    print("The report shows the delay over time, predicted (lines) and measured (dots).")
    capture = OUT / "home-kernel.pcap"
    if capture.exists():
        show("trace", str(capture))
        print(first_paragraph(run("trace", str(capture))))


if __name__ == "__main__":
    main()
