# mypy: ignore-errors
"""Client and server that transfer files with aioquic, for comparisons with the simulation.

``aioquic_peer.py server FOLDER`` reads the certificate in the folder, and writes a line with sent
and lost packets of its qlog into ``FOLDER/packets`` when a connection ends. ``aioquic_peer.py
client FOLDER HANDSHAKE BYTES COUNT`` prints the times of each transfer in seconds as JSON: from
the first packet to the end of the handshake, from the request, which follows it, to the last byte,
and both. HANDSHAKE is ``tls13``, or ``tls13-0rtt`` for requests with the first packet, after a
first transfer.
"""

import asyncio
import json
import os
import ssl
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived
from aioquic.quic.logger import QuicLogger, QuicLoggerTrace

PORT = 4433


class Counts(QuicLogger):
    """Counts the events of the qlog of a connection, and writes them when it ends."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def start_trace(self, is_client: bool, odcid: bytes) -> QuicLoggerTrace:
        return CountedTrace(is_client=is_client, odcid=odcid)

    def end_trace(self, trace: QuicLoggerTrace) -> None:
        with (self.folder / "packets").open("a", encoding="utf-8") as file:
            file.write(f"{trace.counts['packet_sent']} {trace.counts['packet_lost']}\n")


class CountedTrace(QuicLoggerTrace):
    """Keeps only the number of events by name."""

    def __init__(self, **properties: Any) -> None:
        super().__init__(**properties)
        self.counts = Counter[str]()

    def log_event(self, **record: Any) -> None:
        self.counts[record["event"]] += 1


class FileServer(QuicConnectionProtocol):
    """Answers a request, the number of bytes as text, with that many bytes."""

    def quic_event_received(self, event: Any) -> None:
        if isinstance(event, StreamDataReceived) and event.end_stream:
            self._quic.send_stream_data(event.stream_id, bytes(int(event.data)), end_stream=True)
            self.transmit()


async def run_server(folder: Path) -> None:
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=["peer"], quic_logger=Counts(folder)
    )
    configuration.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    tickets: dict[bytes, Any] = {}
    await serve(
        "0.0.0.0",
        PORT,
        configuration=configuration,
        create_protocol=FileServer,
        session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
        session_ticket_fetcher=tickets.get,
    )
    await asyncio.Event().wait()


async def fetch(size: int, ticket: Any, tickets: list[Any]) -> dict[str, float]:
    """Return the times of a transfer; with a ticket, the request is sent as early data."""
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["peer"])
    configuration.verify_mode = ssl.CERT_NONE
    configuration.session_ticket = ticket
    began = time.monotonic()
    async with connect(
        os.environ["TCPCAST_PEER"],
        PORT,
        configuration=configuration,
        session_ticket_handler=tickets.append,
        wait_connected=ticket is None,
    ) as client:
        requested = time.monotonic()
        reader, writer = await client.create_stream()
        writer.write(str(size).encode())
        writer.write_eof()
        received = 0
        while data := await reader.read(1 << 16):
            received += len(data)
        ended = time.monotonic()
        assert received == size
    return {
        "handshake_s": requested - began,
        "transfer_s": ended - requested,
        "total_s": ended - began,
    }


async def run_client(handshake: str, size: int, count: int) -> None:
    tickets: list[Any] = []
    early = handshake == "tls13-0rtt"
    if early:
        await fetch(1, None, tickets)
    times = []
    for _ in range(count):
        times.append(await fetch(size, tickets[-1] if early else None, tickets))
        await asyncio.sleep(0.3)
    print(json.dumps(times))


if __name__ == "__main__":
    role, folder, *rest = sys.argv[1:]
    if role == "server":
        asyncio.run(run_server(Path(folder)))
    else:
        asyncio.run(run_client(rest[0], int(rest[1]), int(rest[2])))
