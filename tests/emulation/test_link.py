"""Programs over a link: exit statuses, packets, and cleanup."""

import json
import math
import shlex
import shutil
import statistics
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tcpcast.cli import main

from emulation.conftest import TCPCAST, Mode, Ran, works
from emulation.ends import ECHO, FLOOD, PINGS, SINK, python

Run = Callable[..., Ran]

FAST = ["--rtt", "2ms"]
SHOWN = "near to far: "


WITHOUT_IO_URING = """
import ctypes, os, struct, sys
SETUP = 425
# Load the call's number; refuse the setup of a ring (EPERM), allow all other calls.
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, SETUP), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
code = b"".join(struct.pack("=HBBI", *step) for step in steps)
held = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(held)))
process = ctypes.CDLL(None)
process.prctl(38, 1, 0, 0, 0)
if process.prctl(22, 2, program) != 0:
    sys.exit(9)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Runs a command without io_uring, as in containers: seccomp(2)."""


@pytest.mark.parametrize(("line", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_exit_status_of_the_command_is_returned(run: Run, line: str, status: int) -> None:
    ran = run(FAST, ["sh", "-c", line])
    assert ran.code == status
    assert f"tcpcast: {SHOWN}no packet" in ran.err


def test_failed_thread_start_gives_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUST_MIN_STACK", str(1 << 46))  # too large for any thread
    ran = run(FAST, ["true"])
    assert ran.code == 3
    (line,) = ran.err.splitlines()
    assert "cannot start a thread: " in line
    assert "raise the limits of processes and memory" in line


def test_each_end_has_its_address_and_that_of_its_peer(run: Run, tmp_path: Path) -> None:
    far = f"echo $TCPCAST_PEER > {tmp_path}/far"
    ran = run([*FAST, "--server-command", far], ["echo $TCPCAST_PEER; sleep 0.2"])
    assert (ran.code, ran.out) == (0, "10.128.0.1\n")
    assert (tmp_path / "far").read_text() == "10.0.0.1\n"


def test_program_waits_for_a_slow_server_and_its_time_does_not_include_the_wait(run: Run) -> None:
    """A server that asks for its own name before it listens, as http.server, and does not end."""
    serve = "import os, socket, time\n"
    serve += "dns = socket.socket(type=socket.SOCK_DGRAM)\n"
    serve += "dns.connect((os.environ['TCPCAST_PEER'], 53)); time.sleep(1.2)\n"
    serve += "own = socket.create_server(('', 7007)); peer, _ = own.accept()\n"
    serve += "peer.sendall(bytes(100_000)); peer.close(); time.sleep(100)"
    ask = "import os, socket\n"
    ask += "own = socket.create_connection((os.environ['TCPCAST_PEER'], 7007), timeout=120)\n"
    ask += "while own.recv(100_000): pass"
    ran = run([*FAST, "--server-command", shlex.join(python(serve))], python(ask))
    if ran.numbers["distortion"] is None:
        assert ran.code == 0
    back = ran.numbers["far_to_near"]
    assert 100_000 < back["program_bytes"] <= back["delivered_bytes"] < 120_000
    # The link also runs for 1.2 s before the program, and for .5 s after it.
    assert ran.numbers["program_ns"] < ran.numbers["elapsed_ns"] - 1.6e9


def test_a_name_is_refused_at_once_because_no_name_server_can_be_reached(run: Run) -> None:
    """http.server asks for its own name before it listens, and waited for 10 s."""
    ask = "import socket, time\nbegun = time.monotonic()\n"
    ask += "try: socket.getaddrinfo('no-such-host.example.org', 80)\n"
    ask += "except OSError: print(time.monotonic() - begun < 4)"
    assert run(FAST, python(ask)).out == "True\n"


def test_link_forwards_ipv6(run: Run) -> None:
    serve = "import socket; own = socket.create_server(('::', 7007), family=socket.AF_INET6)\n"
    serve += "peer, address = own.accept(); peer.sendall(address[0].encode()); peer.close()"
    ask = "import os, socket\n"
    ask += "own = socket.create_connection((os.environ['TCPCAST_PEER6'], 7007), timeout=120)\n"
    ask += "print(own.recv(100).decode(), own.getpeername()[0])"
    ran = run([*FAST, "--server-command", shlex.join(python(serve))], python(ask))
    if "KeyError" in ran.err:
        pytest.skip("this machine has no IPv6")
    # With so few packets a single late one exceeds the tolerance of the link.
    late = 3 if ran.numbers["distortion"] else 0
    assert (ran.code, ran.out) == (late, "fd00::a00:1 fd00::a80:1\n")
    # The link carries no neighbour or router discovery, and no multicast.
    assert [ran.numbers[way]["misaddressed"] for way in ("near_to_far", "far_to_near")] == [0, 0]


def test_missing_program_is_named(run: Run) -> None:
    ran = run(FAST, ["no-such-program", "-x"])
    assert ran.code == 3
    assert "tcpcast: cannot run no-such-program: " in ran.err


def test_random_loss_and_queue_affect_the_forward_path(run: Run) -> None:
    count, loss = 20_000, 0.05
    options = [*FAST, "--loss", "5%", "--server-command", shlex.join(python(SINK))]
    ran = run(options, python(FLOOD, count, 100, 20, 0.002, 0.1))
    assert ran.code in {0, 3}
    forward = ran.numbers["near_to_far"]
    sd = math.sqrt(count * loss * (1 - loss))
    assert forward["entered"] == count
    assert abs(forward["random_drops"] - count * loss) < 3 * sd
    assert forward["delivered"] == count - forward["random_drops"]
    assert forward["full_drops"] == forward["machinery_drops"] == 0
    assert ran.numbers["far_to_near"]["random_drops"] == 0


def test_packets_are_forwarded_one_by_one_without_io_uring(mode: Mode, tmp_path: Path) -> None:
    if mode.name != "tun":
        pytest.skip("other devices do not use it")
    far = shlex.join(python(SINK))
    options = [*FAST, "--device", mode.device, "--server-command", far, "--out", "numbers.json"]
    command = [*TCPCAST, "link", *options, "--", *python(FLOOD, 500, 100, 20, 0.002, 0.1)]
    done = subprocess.run(
        python(WITHOUT_IO_URING, *command), cwd=tmp_path, check=False, stderr=subprocess.PIPE
    )
    if done.returncode == 9:
        pytest.skip("this machine has no seccomp filters")
    assert done.returncode in {0, 3}, done.stderr
    assert json.loads((tmp_path / "numbers.json").read_text())["near_to_far"]["delivered"] == 500


def test_packets_above_the_mtu_are_dropped_and_reported(mode: Mode, run: Run) -> None:
    if mode.name != "tun" or not works("ip", "-V"):
        pytest.skip("the longest packet of a TAP device is changed by ip, as root")
    longer = "ip link set link0 mtu 9000"
    far = shlex.join(python(SINK))
    ran = run(
        [*FAST, "--server-command", far],
        [f"{longer}; {shlex.join(python(FLOOD, 3, 5000, 3, 0, 0.1))}"],
    )
    forward = ran.numbers["near_to_far"]
    assert (forward["machinery_drops"], forward["delivered"]) == (3, 0)
    assert ran.code == 3
    assert "3 packets were lost by this machine" in ran.err


def test_sender_far_applies_loss_to_the_other_direction(run: Run) -> None:
    far = shlex.join(python(ECHO))
    ran = run(
        [*FAST, "--loss", "50%", "--sender", "far", "--server-command", far], python(PINGS, 3)
    )
    back = ran.numbers["far_to_near"]
    assert ran.numbers["near_to_far"]["random_drops"] == 0
    assert back["entered"] == back["delivered"] + back["random_drops"] == 3


def packets(path: Path) -> list[tuple[int, int, str, int]]:
    """Return time in nanoseconds, IP length, address and port of the source of each packet."""
    data, offset, result = path.read_bytes(), 24, []
    while offset < len(data):
        seconds, rest, kept, length = struct.unpack_from("<IIII", data, offset)
        source = ".".join(map(str, data[offset + 28 : offset + 32]))
        port = int.from_bytes(data[offset + 36 : offset + 38])
        result.append((seconds * 10**9 + rest, length, source, port))
        offset += 16 + kept
    return result


def ports(captured: list[tuple[int, int, str, int]]) -> set[int]:
    return {port for *_, port in captured}


def usual_rate_pps(captured: list[tuple[int, int, str, int]], count: int) -> float:
    """Return the rate that a tenth of the spans of ``count`` packets exceed.

    A busy sender may have left the queue empty at times, which lowers the rate of the spans with
    this time; a late packet at the begin of a span raises its rate.
    """
    spans = zip(captured[::50], captured[count::50], strict=False)
    rates = [count * 1e9 / (end[0] - begin[0]) for begin, end in spans]
    return statistics.quantiles(rates, n=10)[-1]


@pytest.mark.timed
def test_link_rate_is_exact(run: Run, tmp_path: Path) -> None:
    pcap = tmp_path / "far.pcap"
    options = [
        *FAST,
        "--rate",
        "8mbit",
        "--buffer",
        "50pkt",
        "--server-command",
        shlex.join(python(SINK)),
    ]
    options += ["--pcap", str(pcap), "--pcap-side", "far"]
    ran = run(options, python(FLOOD, 4000, 972, 20, 0.01, 0.2))
    forward = ran.numbers["near_to_far"]
    assert forward["full_drops"] > 100
    # A buffer of 50 includes the one in transmission: others wait for at most 49 of 1 ms.
    assert 48e6 < forward["wait_max_ns"] <= 49e6
    captured = packets(pcap)
    assert len(captured) == forward["delivered"]
    assert {length for _, length, *_ in captured} == {1000}
    assert usual_rate_pps(captured, 500) == pytest.approx(1000, rel=1e-3)


@pytest.mark.timed
def test_cake_shapes_frames_and_shares_the_rate_among_flows(
    mode: Mode, run: Run, tmp_path: Path
) -> None:
    """A flow at 13 Mbit/s and one at 6.5 Mbit/s behind a shaper of 8 Mbit/s get 4 Mbit/s each."""
    if mode.name != "tun":
        pytest.skip("the queue does not depend on the device")
    overhead, pcap = 18, tmp_path / "far.pcap"
    cake = f'network.bottleneck.queue={{kind="cake",rate="8mbit",overhead={overhead}}}'
    options = [*FAST, "--rate", "100mbit", "--set", cake]
    options += ["--server-command", shlex.join(python(SINK))]
    options += ["--pcap", str(pcap), "--pcap-side", "far"]
    slow, fast = (
        python(FLOOD, count, 972, 4, pause, 0.2) for count, pause in ((1600, 0.005), (3200, 0.0025))
    )
    ran = run(options, [f"{shlex.join(slow)} & {shlex.join(fast)}; wait"])
    forward = ran.numbers["near_to_far"]
    drops = forward["full_drops"] + forward["early_drops"]
    assert forward["entered"] == 4800 == forward["delivered"] + drops
    assert forward["early_drops"] > 100
    captured = packets(pcap)
    assert len(captured) == forward["delivered"]
    frame_bits = 8 * (1000 + overhead)
    assert usual_rate_pps(captured, 100) == pytest.approx(8e6 / frame_bits, rel=1e-3)
    times = [[time for time, *_, port in captured if port == flow] for flow in ports(captured)]
    begin, end = max(flow[100] for flow in times), min(flow[-100] for flow in times)
    first, second = (sum(begin < time < end for time in flow) for flow in times)
    assert first == pytest.approx(second, rel=0.1)  # without isolation, one is twice the other


@pytest.mark.timed
def test_full_packet_and_ack_take_the_rtt(run: Run, tmp_path: Path) -> None:
    pcap = tmp_path / "near.pcap"
    options = ["--rtt", "30ms", "--rate", "10mbit", "--server-command", shlex.join(python(ECHO))]
    ran = run([*options, "--pcap", str(pcap)], python(PINGS, 40))
    assert ran.numbers["near_to_far"]["machinery_drops"] == 0
    captured = packets(pcap)
    sent = [time for time, _, source, _ in captured if source == "10.0.0.1"]
    answered = [time for time, _, source, _ in captured if source == "10.128.0.1"]
    assert len(sent) == len(answered) == 40
    rtts = [(there - here) / 1e6 for here, there in zip(sent, answered, strict=True)]
    assert min(rtts) >= 30.0
    # The echo is also a program, and answers late on a busy machine.
    assert sorted(rtts)[10] == pytest.approx(30.0, abs=0.3)


@pytest.mark.timed
def test_jitter_reorders_only_on_request(run: Run, tmp_path: Path) -> None:
    pcap = tmp_path / "far.pcap"
    options = ["--rtt", "2ms", "--jitter", "5ms", "--pcap", str(pcap), "--pcap-side", "far"]
    for reorder in (False, True):
        more = ["--reorder"] if reorder else []
        lengths = "import os, socket\nown = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        lengths += "for n in range(200): own.sendto(bytes(n), (os.environ['TCPCAST_PEER'], 9))\n"
        ran = run([*options, *more], ["sh", "-c", shlex.join(python(lengths)) + "; sleep 0.3"])
        assert ran.numbers["near_to_far"]["delivered"] == 200
        result = [length for _, length, source, _ in packets(pcap) if source == "10.0.0.1"]
        assert (result == sorted(result)) is not reorder


@pytest.mark.timed
def test_trace_of_packet_opportunities_sets_the_rate(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "up.trace"
    trace.write_text("5\n10\n")
    options = [
        *FAST,
        "--trace",
        str(trace),
        "--buffer",
        "10pkt",
        "--server-command",
        shlex.join(python(SINK)),
    ]
    ran = run(options, python(FLOOD, 40, 1472, 40, 0.3, 0))
    forward = ran.numbers["near_to_far"]
    # Ten wait for 5 ms each; one may have left in the meantime.
    assert forward["delivered"] in {10, 11}
    assert 45e6 <= forward["wait_max_ns"] <= 50e6


def test_trace_reads_the_tcp_capture_of_a_link(run: Run, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is missing")
    (tmp_path / "file").write_bytes(bytes(300_000))
    serve = shlex.join(python("import http.server as h; h.test(h.SimpleHTTPRequestHandler)"))
    options = ["--rtt", "20ms", "--rate", "20mbit", "--queue", "fq_codel", "--sender", "far"]
    options += [
        "--server-command",
        serve,
        "--pcap",
        str(tmp_path / "far.pcap"),
        "--pcap-side",
        "far",
    ]
    fetch = "curl -s http://$TCPCAST_PEER:8000/file | wc -c"
    ran = run(options, [f"sleep 0.5; {fetch}"])
    assert ran.code in {0, 3}, ran.err
    assert ran.out.split()[-1] == "300000"
    assert main(["trace", str(tmp_path / "far.pcap")]) == 0


@pytest.mark.timed
def test_iperf3_runs_over_the_link(run: Run) -> None:
    if shutil.which("iperf3") is None:
        pytest.skip("iperf3 is missing")
    options = [
        "--rtt",
        "10ms",
        "--rate",
        "20mbit",
        "--buffer",
        "100pkt",
        "--server-command",
        "iperf3 -s -1",
    ]
    ran = run(options, ["iperf3 -c $TCPCAST_PEER -t 2 -J"])
    assert ran.code in {0, 3}, ran.err
    ran.skip_if_distorted()
    forward = ran.numbers["near_to_far"]
    assert 3e6 < forward["delivered_bytes"] < 6e6


@pytest.mark.timed
def test_options_override_values_of_a_scenario(run: Run, tmp_path: Path) -> None:
    (tmp_path / "path.toml").write_text(
        'name = "path"\n[network]\nrtt = "10ms"\n[network.bottleneck]\nrate = "8mbit"\n'
        'buffer = "20pkt"\n[traffic]\nkind = "bulk"\nflows = 2\n[run]\nduration = "1s"\n'
    )
    far = shlex.join(python(SINK))
    ran = run(
        ["path.toml", "--buffer", "5pkt", "--server-command", far],
        python(FLOOD, 40, 972, 40, 0.2, 0),
    )
    # A busy sender uses part of the millisecond per packet; the scenario's 20 packets take more.
    assert 5 <= ran.numbers["near_to_far"]["delivered"] < 15
