"""Record the packaged sample capture: a download with losses by a slow reader, over a real kernel.

Run as ``.venv/bin/python tests/captures/record_sample.py sample.pcap``. The kernel's timing differs
between runs, so the file is not reproducible byte by byte.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import time

PORT = 8000
FILE_BYTES = 1_600_000
RECEIVE_BUFFER_BYTES = 80_000
PAUSE_S = 0.6
"""Length of the reader's pauses; it pauses after each :data:`PAUSE_BYTES`, like a slow disk."""
FAST_BYTES = 600_000
"""Bytes that the reader takes without a pause."""
PAUSE_BYTES = 150_000


def serve() -> None:
    """Send the file to one client with CUBIC, and wait until the client closes."""
    with socket.create_server(("", PORT)) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        client, _ = server.accept()
        with client:
            client.recv(65_536)
            client.sendall(os.urandom(FILE_BYTES))
            client.recv(1)


def fetch() -> None:
    """Request the file and read it with pauses."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        client.connect((os.environ["TCPCAST_PEER"], PORT))
        client.sendall(b"GET /backup HTTP/1.0\r\n\r\n")
        received = paused_at = 0
        while received < FILE_BYTES:
            received += len(client.recv(16_384))
            if received > FAST_BYTES and received - paused_at > PAUSE_BYTES:
                paused_at = received
                time.sleep(PAUSE_S)


def record(file: str) -> None:
    """Record the capture at the server's end of the link."""
    this = f"{shlex.quote(sys.executable)} {shlex.quote(os.path.abspath(__file__))}"
    link = "--rtt 40ms --rate 20mbit --buffer 30pkt --loss 0.2% --seed 4 --sender far"
    subprocess.run(
        [
            *(sys.executable, "-m", "tcpcast", "link", *link.split()),
            *("--pcap", file, "--pcap-side", "far"),
            *("--server-command", f"exec {this} serve"),
            *("--", f"sleep 0.5; exec {this} fetch"),
        ],
        check=True,
    )


if __name__ == "__main__":
    {"serve": serve, "fetch": fetch}.get(sys.argv[1], lambda: record(sys.argv[1]))()
