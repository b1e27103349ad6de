"""``tcpcast link --nat``: access to the host and beyond, and cleanup.

The host is a network namespace with another one behind it, so that this machine is unchanged.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from emulation.conftest import TCPCAST, is_open, user_prefix, works
from emulation.test_nothing_left import changing, parent, processes, within

HOST, WORLD = "203.0.113.1", "203.0.113.2"

ANSWERS = """
import socket
own = socket.create_server(("", 7))
while True:
    peer, address = own.accept()
    peer.sendall(address[0].encode())
    peer.close()
"""
"""Sends the address of each client back to it."""

ASKS = """
import socket, sys, time
for address in sys.argv[2:]:
    with socket.create_connection((address, 7), timeout=120) as peer:
        print(address, peer.recv(100).decode(), flush=True)
time.sleep(float(sys.argv[1]))
"""

TABLES = """
import json, socket, struct
own = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
own.bind((0, 0))
own.send(struct.pack("=IHHIIBBH", 20, 10 << 8 | 1, 0x301, 1, 0, 0, 0, 0))
found, done = [], False
while not done:
    data = own.recv(1 << 16)
    while data:
        length, kind = struct.unpack_from("=IH", data)
        done |= kind == 3
        if kind == 10 << 8:
            found.append(data[20:length].hex())
        data = data[(length + 3) // 4 * 4:]
print(json.dumps(found))
"""
"""Prints all tables of nftables."""

MORE = {"/proc/net/dev", "/proc/net/route", "/proc/net/arp", "tables"}
"""Parts of the state with more lines while NAT is active."""

STATE = "import json; from emulation.outside import outside; print(json.dumps(outside()))"


class Host:
    """A namespace for the host, and one behind it."""

    def __init__(self) -> None:
        """Create both, and connect them."""
        sleeps = ["unshare", "-n", "sleep", "3600"]
        self.processes = [subprocess.Popen(sleeps) for _ in range(2)]
        for process in self.processes:
            for _ in within(10):
                if os.readlink(f"/proc/{process.pid}/ns/net") != os.readlink("/proc/self/ns/net"):
                    break
        host, world = self.processes
        join = f"ip link add out type veth peer name in netns {world.pid}; ip link set lo up"
        self.run(host, "sh", "-c", f"{join}; ip addr add {HOST}/24 dev out; ip link set out up")
        self.run(world, "sh", "-c", f"ip addr add {WORLD}/24 dev in; ip link set in up")
        for process in (host, world):
            command = [*self.prefix(process), sys.executable, "-c", ANSWERS]
            self.processes.append(subprocess.Popen(command))
        # Let both resolve each other's address.
        for _ in within(20):
            with suppress(subprocess.CalledProcessError):
                self.run(host, sys.executable, "-c", ASKS, "0", WORLD)
                break

    @staticmethod
    def prefix(process: subprocess.Popen[bytes]) -> list[str]:
        """Return a command prefix for a namespace."""
        return ["nsenter", "-t", str(process.pid), "-n"]

    def run(self, process: subprocess.Popen[bytes], *command: str) -> str:
        """Run a command in a namespace, and return its output."""
        done = subprocess.run(
            [*self.prefix(process), *command],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        return done.stdout

    def state(self) -> dict[str, str]:
        """Return interfaces, routes, settings and tables of nftables."""
        host = self.processes[0]
        result = json.loads(self.run(host, sys.executable, "-c", STATE))
        return {**result, "tables": self.run(host, sys.executable, "-c", TABLES)}

    def changed(self, before: dict[str, str]) -> set[str]:
        """Return the differences from ``before``, except for changes by the kernel itself."""
        after = self.state()
        differ = {name for name in before | after if before.get(name) != after.get(name)}
        return {name for name in differ if not changing(name)}

    def end(self) -> None:
        """End both namespaces."""
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def host() -> Iterator[Host]:
    """Return a host if this machine allows creating one."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("the test of --nat requires root")
    if not (works("nsenter", "-V") and works("ip", "-V") and works("unshare", "-n", "true")):
        pytest.skip("nsenter, ip or unshare is missing")
    if not works("unshare", "-n", sys.executable, "-c", TABLES):
        pytest.skip("this machine's kernel has no nftables")
    if not is_open("/dev/net/tun"):
        pytest.skip("/dev/net/tun cannot be opened")
    made = Host()
    yield made
    made.end()


def children(process: int) -> list[int]:
    """Return the processes of a link that another process started."""
    return [p for p in processes("tcpcast.emulation.link_process") if parent(p) == process]


@pytest.mark.parametrize("whom", ["none", "command", "process", "sandbox", "all"])
def test_nat_reaches_the_host_and_networks_behind_it(host: Host, tmp_path: Path, whom: str) -> None:
    before, own = host.state(), set[int]()
    lasts = "0" if whom == "none" else "3600"
    asks = [sys.executable, "-c", ASKS, lasts, HOST, WORLD]
    link = subprocess.Popen(
        [*host.prefix(host.processes[0]), *TCPCAST, "link", "--rtt", "5ms", "--nat", "--", *asks],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert link.stdout is not None
    lines = [link.stdout.readline().split() for _ in range(2)]
    # The host receives from the link's address, the network behind it from the host's.
    assert lines[0][:1] == [HOST], link.communicate()
    assert lines[0][1].startswith("198.18.")
    assert lines[1] == [WORLD, HOST]
    if whom != "none":
        # One more device and table, but no changed setting to restore.
        assert {name for name in host.changed(before) if name in before} <= MORE
        (process,) = children(link.pid)
        (sandbox,) = children(process)
        own = {process, sandbox}
        victims = {"command": [link.pid], "process": [process], "sandbox": [sandbox]}
        for victim in victims.get(whom, [sandbox, process, link.pid]):
            os.kill(victim, signal.SIGKILL)
    _, errors = link.communicate(timeout=120)
    # On a busy machine, the link reports that its counters are not reliable.
    is_complete = link.returncode == 0 or "this machine stalled" in errors
    assert is_complete is (whom == "none"), errors
    until = time.monotonic() + 30
    while (changed := host.changed(before)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not changed
    for _ in within(10):
        if not own & set(processes("tcpcast.emulation.link_process")):
            break


def test_two_links_use_nat_simultaneously_with_separate_addresses(
    host: Host, tmp_path: Path
) -> None:
    before, links, addresses = host.state(), [], []
    for lasts in ("3600", "0"):
        asks = [sys.executable, "-c", ASKS, lasts, HOST, WORLD]
        link = [*TCPCAST, "link", "--rtt", "5ms", "--nat", "--", *asks]
        started = subprocess.Popen(
            [*host.prefix(host.processes[0]), *link],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert started.stdout is not None
        addresses.append([started.stdout.readline().split()[1] for _ in range(2)])
        links.append(started)
    assert addresses == [["198.18.0.2", HOST], ["198.18.1.2", HOST]]
    assert links[1].wait(60) in {0, 3}
    links[0].kill()
    links[0].wait(60)
    for _ in within(30):
        if not host.changed(before):
            break


def test_nat_without_root_is_rejected(tmp_path: Path) -> None:
    prefix = user_prefix()
    if sys.platform != "linux" or prefix is None:
        pytest.skip("no namespaces for another user on this machine")
    done = subprocess.run(
        [*prefix, *TCPCAST, "link", "--rtt", "1ms", "--nat", "--", "true"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 3
    assert "--nat creates a device and firewall rules on this machine and requires" in done.stderr
