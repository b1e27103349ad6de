"""Files of flent and Crusader with known rates and RTTs."""

import gzip
import json
from pathlib import Path
from typing import Any

LOAD_S, IDLE_S = 30, 5
RATES_MBIT = {
    "TCP download BE": 45.0,
    "TCP download BE2": 44.0,
    "TCP upload Cubic BE": 9.0,
    "TCP upload BBR CS1": 8.0,
}
CODEL = "qdisc codel 110: parent 1:10 limit 1000p target 5.0ms interval 100.0ms ecn "


def flent_document() -> dict[str, Any]:
    """Return a test of 30 s after 5 s: at least 20 ms idle, 50 ms loaded, a slow start of 10 s."""
    ping = [
        {"seq": n, "t": 1000.0 + n / 5, "val": 20.0 + n % 3 if n < 5 * IDLE_S else 50.0}
        for n in range(5 * (IDLE_S + LOAD_S))
    ]
    raw: dict[str, Any] = {"Ping (ms) ICMP": ping}
    for name, rate in RATES_MBIT.items():
        raw[name] = [
            {"t": 1000.0 + IDLE_S + n + 1, "dur": 1.0, "val": rate if n >= LOAD_S / 3 else 1.0}
            for n in range(LOAD_S)
        ]
    x = [float(second) for second in range(IDLE_S + LOAD_S)]
    results: dict[str, list[float | None]] = {name: [None] * len(x) for name in raw}
    results |= {"TCP upload sum": [None] * len(x), "TCP upload BE::tcp_cwnd": [None] * len(x)}
    shaper = {
        "tc_stats_pre": ["qdisc htb 1: root refcnt 2 default 10\n Sent 1 bytes", f"{CODEL}\n Sent"],
        "classes": [
            {"name": "htb", "id": "1:1", "parent": "root", "params": {"ceil": "100Mbit"}},
            {"name": "htb", "id": "1:10", "parent": "1:1", "params": {"ceil": "200Mbit"}},
        ],
        "offloads": {"generic-receive-offload": True},
    }
    cake = "qdisc cake 8001: root refcnt 2 bandwidth 20Mbit besteffort dual-srchost ack-filter"
    client = {"tc_stats_pre": ["qdisc fq 8002: root refcnt 2 limit 10000p\n Sent 0"]}
    metadata = {
        "NAME": "rrul",
        "TITLE": "a home",
        "T0": "1970-01-01T00:16:40Z",
        "HOST": "far",
        "KERNEL_NAME": "Linux",
        "KERNEL_RELEASE": "5.10.0-28-amd64",
        "SYSCTLS": {"net.ipv4.tcp_ecn": 1, "net.ipv4.tcp_congestion_control": "cubic"},
        "SERIES_META": {},
        "EGRESS_INFO": client,
        "REMOTE_METADATA": {
            "router": {
                "INGRESS_INFO": shaper,
                "EGRESS_INFO": {"tc_stats_pre": [f"{cake} no-split-gso overhead 18\n Sent 0"]},
            },
            "far": {
                "KERNEL_NAME": "Darwin",
                "KERNEL_RELEASE": "23.1.0",
                "SYSCTLS": {"net.ipv4.tcp_congestion_control": "reno"},
            },
        },
    }
    return {
        "version": 4,
        "metadata": metadata,
        "x_values": x,
        "results": results,
        "raw_values": raw,
    }


def write_flent(folder: Path, document: object) -> Path:
    """Write a document as flent does, and return the file."""
    path = folder / "test.flent.gz"
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return path


def crusader_document() -> dict[str, Any]:
    """Return a test with 80 Mbit/s down, and then 40 Mbit/s in both directions."""

    def time(seconds: float) -> dict[str, int]:
        whole = int(seconds)
        return {"secs": whole, "nanos": round(1e9 * (seconds - whole))}

    def stream(start: float, mbit: float) -> dict[str, Any]:
        per_s = mbit * 1e6 / 8
        points = [(0.5, 0.0), *((start + n / 10, n / 10 * per_s) for n in range(51))]
        return {"data": [{"time": time(at), "bytes": round(total)} for at, total in points]}

    pings = [
        {
            "index": n,
            "sent": time(n / 100),
            "latency": None if n % 50 == 7 else {"total": time(0.01 if n < 100 else 0.03)},
        }
        for n in range(1500)
    ]
    groups = [
        {"download": True, "both": False, "streams": [stream(1.0, 80.0)]},
        {"download": True, "both": True, "streams": [stream(8.0, 20.0), stream(8.0, 20.0)]},
        {"download": False, "both": True, "streams": [stream(8.0, 40.0)]},
    ]
    return {"version": 2, "generated_by": "Crusader 0.3", "stream_groups": groups, "pings": pings}
