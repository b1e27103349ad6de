"""Sending and receiving programs, clients and servers, and the counters of the sending kernel."""

import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

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


def request(address: str, options: dict[str, Any]) -> Counters:
    """Send requests to :func:`serve` one after the other, and return the last counters.

    Parameters
    ----------
    address
        The server's.
    options
        ``requests`` of ``request_bytes`` in ``writes`` (the last of 100 bytes; ``pause_s`` between
        them), for responses of ``response_bytes``; ``think_s`` before each; ``timeout_s`` for a
        response; ``reconnect`` after each request, from local ``port`` if given; ``nodelay``; read
        ``read_bytes`` every ``read_period_s`` with ``rcvbuf``; ``give_up`` after one without
        a response.
    """
    connection, found = None, dict.fromkeys(FIELDS, 0)
    for _ in range(options["requests"]):
        if connection is None:
            connection = connect(address, options)
        time.sleep(options.get("think_s", 0.05))
        try:
            write_request(connection, options)
            complete = read_exactly(connection, options["response_bytes"], options)
            found = counters(connection)
        except OSError:
            complete = False
        if not complete and options.get("give_up", False):
            break
        if not complete or options.get("reconnect", False):
            connection.close()
            connection = None
    return found


def connect(address: str, options: dict[str, Any]) -> socket.socket:
    """Open the connection of a client."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if "rcvbuf" in options:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options["rcvbuf"])
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, options.get("nodelay", 1))
    if "port" in options:
        time.sleep(0.2)  # The last connection from this port has ended here, but not at the server.
        connection.bind(("", options["port"]))
    connection.settimeout(options.get("timeout_s", LONGEST_WAIT_S))
    connection.connect((address, PORT))
    return connection


def write_request(connection: socket.socket, options: dict[str, Any]) -> None:
    """Write one request with one or several calls."""
    writes, last = options.get("writes", 1), 100
    if writes > 1:
        first = (options["request_bytes"] - last) // (writes - 1)
        for _ in range(writes - 1):
            connection.sendall(bytes(first))
            time.sleep(options.get("pause_s", 0))
        connection.sendall(bytes(options["request_bytes"] - first * (writes - 1)))
    else:
        connection.sendall(bytes(options["request_bytes"]))


def read_exactly(connection: socket.socket, size: int, options: dict[str, Any]) -> bool:
    """Read a message; return False if the connection ends first."""
    while size > 0:
        part = len(connection.recv(min(size, options.get("read_bytes", BLOCK))))
        if part == 0:
            return False
        size -= part
        time.sleep(options.get("read_period_s", 0))
    return True


def serve(options: dict[str, Any], ready: Path) -> NoReturn:
    """Answer requests until the process is killed.

    Parameters
    ----------
    options
        As for :func:`request`; ``delay_s`` before each response, ``slow_s`` before those with a
        number in ``slow``; no response to those in ``silent``; a response in ``response_writes``
        with ``response_pause_s`` between them; ``reject_after`` bytes of each request, close the
        connection; ``close`` it after each response.
    ready
        File to create when connections are accepted.
    """
    with socket.socket() as listening, ThreadPoolExecutor(32) as pool:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("", PORT))
        listening.listen()
        ready.touch()
        numbers = iter(range(1 << 30))
        while True:
            connection, _ = listening.accept()
            pool.submit(answer, connection, options, numbers)


def answer(connection: socket.socket, options: dict[str, Any], numbers: Any) -> None:
    """Answer the requests of one connection."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        while True:
            if "reject_after" in options:
                read_exactly(connection, options["reject_after"], {})
                return
            if not read_exactly(connection, options["request_bytes"], {}):
                return
            number = next(numbers)
            if number in options.get("silent", []):
                continue
            slow = number in options.get("slow", [])
            time.sleep(options.get("slow_s" if slow else "delay_s", 0.002))
            writes = options.get("response_writes", 1)
            for part in range(writes):
                time.sleep(options.get("response_pause_s", 0) if part else 0)
                connection.sendall(bytes(options["response_bytes"] // writes))
            if options.get("close", False):
                return
