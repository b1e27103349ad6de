# mypy: ignore-errors
"""Client and server that transfer files with aioquic, for comparisons with the simulation.

Run by a Python that has aioquic: ``aioquic_peer.py server``, and ``aioquic_peer.py client BYTES
COUNT``, which prints the time of each transfer in seconds as JSON, from the request, which follows
the handshake, to the last byte.
"""

import asyncio
import datetime
import json
import os
import ssl
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PORT = 4433


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a self-signed certificate and its key; return their paths."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "peer")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=10))
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


class FileServer(QuicConnectionProtocol):
    """Answers a request, the number of bytes as text, with that many bytes."""

    def quic_event_received(self, event: Any) -> None:
        if isinstance(event, StreamDataReceived) and event.end_stream:
            self._quic.send_stream_data(event.stream_id, bytes(int(event.data)), end_stream=True)
            self.transmit()


async def run_server() -> None:
    with tempfile.TemporaryDirectory() as folder:
        configuration = QuicConfiguration(is_client=False, alpn_protocols=["peer"])
        configuration.load_cert_chain(*write_certificate(Path(folder)))
        await serve("0.0.0.0", PORT, configuration=configuration, create_protocol=FileServer)
        await asyncio.Event().wait()


async def fetch(size: int) -> float:
    """Return the time of a transfer."""
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["peer"])
    configuration.verify_mode = ssl.CERT_NONE
    async with connect(os.environ["TCPCAST_PEER"], PORT, configuration=configuration) as client:
        reader, writer = await client.create_stream()
        began = time.monotonic()
        writer.write(str(size).encode())
        writer.write_eof()
        received = 0
        while data := await reader.read(1 << 16):
            received += len(data)
        assert received == size
        return time.monotonic() - began


async def run_client(size: int, count: int) -> None:
    times = []
    for _ in range(count):
        times.append(await fetch(size))
        await asyncio.sleep(0.3)
    print(json.dumps(times))


if __name__ == "__main__":
    if sys.argv[1] == "server":
        asyncio.run(run_server())
    else:
        asyncio.run(run_client(int(sys.argv[2]), int(sys.argv[3])))
