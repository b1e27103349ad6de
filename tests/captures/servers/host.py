"""A host at one end of a link, with segmentation offload, that sends or receives and captures.

``tcpcast link`` starts one at each end, in a network namespace whose device has no offload. The
host moves the address of that namespace into a separate namespace, behind a veth pair with
offload. So its packets are captured as on servers: in frames of up to 64 kB. The first namespace
forwards the packets and splits the frames.

``python host.py ROLE FOLDER``: the role is ``sender`` or ``receiver``, the folder has
``transfer.json``. The namespaces end with the link.
"""

import ctypes
import fcntl
import json
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from traffic import receive, request, send, serve

ADDRESSES = {"sender": "10.0.0.1", "receiver": "10.128.0.1"}
TAPS = {"sender": "snd", "receiver": "rcv"}
MAC = "02:00:00:00:00:77"
"""Of both ends of the veth pair, so that neither resolves addresses."""
SNAPLEN = 128
SIOCETHTOOL, ETHTOOL_SGRO = 0x8946, 0x2C


def run(*command: str) -> None:
    """Run a command that has to succeed."""
    subprocess.run(command, check=True)


@contextmanager
def captured(file: Path, interface: str) -> Iterator[None]:
    """Capture the TCP headers of an interface."""
    options = ["-Z", "root", "-n", "-U", "--immediate-mode", "-B", "8192", "-s", str(SNAPLEN)]
    command = ["tcpdump", *options, "-i", interface, "-w", str(file), "tcp"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        while b"listening" not in process.stderr.readline():
            pass
        yield
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.communicate()


def forward(role: str, folder: Path) -> int:
    """Move this namespace's address into a new one, and forward its packets until it ends."""
    command = ["unshare", "-n", sys.executable, __file__, f"{role}-inside", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as inside:
        assert inside.stdout is not None
        inside.stdout.readline()  # The new namespace exists.
        own = ADDRESSES[role]
        peer = ["peer", "inner", "netns", str(inside.pid)]
        run("ip", "link", "add", "outer", "type", "veth", *peer)
        run("ip", "link", "set", "outer", "address", MAC, "arp", "off", "up")
        run("ip", "addr", "del", f"{own}/32", "dev", "link0")
        run("ip", "route", "add", own, "dev", "outer")
        run("ip", "route", "replace", "default", "dev", "link0")  # It went with the address.
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
        with ExitStack() as taps:
            if role == "sender":
                taps.enter_context(captured(folder / "mid.pcap", "link0"))
                if transfer_in(folder).get("any"):
                    taps.enter_context(captured(folder / "any.pcap", "any"))
            else:
                for outage in transfer_in(folder).get("outages", []):
                    threading.Thread(target=interrupt, args=(folder, outage), daemon=True).start()
            inside.communicate(b"\n")
    return inside.returncode


def interrupt(folder: Path, outage: dict[str, float]) -> None:
    """Stop forwarding near the server for ``seconds``, ``at_s`` after the server is ready."""
    forwarding = Path("/proc/sys/net/ipv4/ip_forward")
    while not (folder / "ready").exists():
        time.sleep(0.05)
    time.sleep(outage["at_s"])
    forwarding.write_text("0", encoding="ascii")
    time.sleep(outage["seconds"])
    forwarding.write_text("1", encoding="ascii")


def enter(role: str, sysctls: dict[str, object]) -> None:
    """Set up the device of the new namespace, and its keys of net.ipv4."""
    print(flush=True)
    sys.stdin.readline()  # The device exists.
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "set", "inner", "address", MAC, "arp", "off", "up")
    run("ip", "addr", "add", f"{ADDRESSES[role]}/32", "dev", "inner")
    run("ip", "route", "add", "default", "dev", "inner")
    merge_received("inner")
    for name, value in sysctls.items():
        Path(f"/proc/sys/net/ipv4/{name}").write_text(str(value), encoding="ascii")


def merge_received(interface: str) -> None:
    """Turn generic receive offload on."""
    value = (ctypes.c_uint32 * 2)(ETHTOOL_SGRO, 1)
    with socket.socket() as device:
        request = struct.pack("16sQ16x", interface.encode(), ctypes.addressof(value))
        fcntl.ioctl(device, SIOCETHTOOL, request)


def transfer_in(folder: Path) -> dict[str, Any]:
    """Return the transfer that a folder describes."""
    transfer: dict[str, Any] = json.loads((folder / "transfer.json").read_text(encoding="utf-8"))
    return transfer


def main(role: str, folder: Path) -> int:
    """Do the part of one process."""
    if role in ADDRESSES:
        return forward(role, folder)
    role = role.removesuffix("-inside")
    transfer = transfer_in(folder)
    enter(role, transfer.get(role, {}).get("sysctls", {}))
    with captured(folder / f"{TAPS[role]}.pcap", "inner"):
        service = transfer.get("service")
        if role == "receiver" and service:
            serve(service, folder / "ready")
        if role == "receiver":
            receive(transfer["receiver"], folder / "ready")
        while not (folder / "ready").exists():
            time.sleep(0.05)
        if service:
            counters = request(ADDRESSES["receiver"], service)
        else:
            counters = send(ADDRESSES["receiver"], transfer["sender"])
    (folder / "kernel.json").write_text(json.dumps(counters), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
