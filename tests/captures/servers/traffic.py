"""Sending and receiving programs, and the counters of the sending kernel."""

from __future__ import annotations

import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pathlib import Path

PORT = 5001
SO_MAX_PACING_RATE = 47
FIELDS = {
    "unacked": ("I", 24),
    "total_retrans": ("I", 100),
    "bytes_acked": ("Q", 120),
    "notsent_bytes": ("I", 144),
    "min_rtt": ("I", 148),
    "busy_time": ("Q", 168),
    "rwnd_limited": ("Q", 176),
    "sndbuf_limited": ("Q", 184),
}
"""Format and offset of fields of ``struct tcp_info`` (linux/tcp.h), which begin with ``tcpi_``."""
LONGEST_WAIT_S = 10.0
"""For the acknowledgement of the last byte."""
BLOCK = 1 << 16

Counters = dict[str, int]


def counters(connection: socket.socket) -> Counters:
    """Return the kernel's counters of a connection."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return {
        name: struct.unpack_from(kind, info, offset)[0] for name, (kind, offset) in FIELDS.items()
    }


def send(address: str, options: dict[str, Any]) -> Counters:
    """Send over parallel connections, or over one at a time.

    Parameters
    ----------
    address
        The receiver's.
    options
        ``control`` (congestion control); parallel ``flows``; ``seconds``; ``write_bytes`` every
        ``period_s`` (all the time if it is 0); ``count`` transfers of ``write_bytes`` instead;
        ``sndbuf``; ``pacing`` in bytes per second.

    Returns
    -------
    dict
        The counters of the connection with the most bytes.
    """
    flows, count = options.get("flows", 1), options.get("count", 1)
    with ThreadPoolExecutor(flows) as pool:
        every = list(pool.map(lambda _: send_one(address, options), range(flows * count)))
    return max(every, key=lambda each: each["bytes_acked"])


def send_one(address: str, options: dict[str, Any]) -> Counters:
    """Send over one connection, and wait until all is acknowledged."""
    with socket.socket() as connection:
        control = options["control"].encode()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control)
        if "sndbuf" in options:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options["sndbuf"])
        if "pacing" in options:
            connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, options["pacing"])
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.connect((address, PORT))
        write(connection, options)
        until = time.monotonic() + LONGEST_WAIT_S
        while time.monotonic() < until:
            tcp_counters = counters(connection)
            if tcp_counters["unacked"] == tcp_counters["notsent_bytes"] == 0:
                break
            time.sleep(0.01)
    return tcp_counters


def write(connection: socket.socket, options: dict[str, Any]) -> None:
    """Write as the application does."""
    data = bytes(options.get("write_bytes", BLOCK))
    if "count" in options:
        connection.sendall(data)
        return
    period, began = options.get("period_s", 0.0), time.monotonic()
    writes = 0
    while time.monotonic() - began < options["seconds"]:
        connection.sendall(data)
        writes += 1
        time.sleep(max(began + writes * period - time.monotonic(), 0))


def receive(options: dict[str, Any], ready: Path) -> NoReturn:
    """Read all connections until the process is killed.

    Parameters
    ----------
    options
        ``rcvbuf``; ``read_bytes`` every ``period_s`` (all the time if it is left out).
    ready
        File to create when connections are accepted.
    """
    with socket.socket() as listening, ThreadPoolExecutor(32) as pool:
        if "rcvbuf" in options:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options["rcvbuf"])
        listening.bind(("", PORT))
        listening.listen()
        ready.touch()
        while True:
            connection, _ = listening.accept()
            pool.submit(read, connection, options)


def read(connection: socket.socket, options: dict[str, Any]) -> None:
    """Read one connection to its end."""
    with connection:
        while connection.recv(options.get("read_bytes", BLOCK)):
            time.sleep(options.get("period_s", 0))
