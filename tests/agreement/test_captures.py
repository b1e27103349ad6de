"""Captures at the four taps: each packet appears once, in order, with correct headers and times."""

import struct
from pathlib import Path
from typing import Any

import pytest
import tcpcast
from capture_file import Captured, read_capture
from tcpcast import _native
from tcpcast.engines import RunOptions
from tcpcast.engines.packet.capture_files import CaptureFiles
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.scenario import Scenario

TAPS = ["sender", "bottleneck-in", "bottleneck-out", "receiver"]
PACKET, ACK = 1500, 40

# Two files in 12 s each. The last file ends long before the next starts, so that no packet is in
# flight.
SCENARIO: dict[str, Any] = {
    "network": {
        "rtt": "40ms",
        "ingress": {"rate": "50mbit"},
        "bottleneck": {"rate": "4mbit", "buffer": "12pkt", "loss": "1%"},
        "egress": {"rate": "10mbit"},
    },
    "traffic": {
        "kind": "on-off",
        "sources": 7,
        "off": {"distribution": "constant", "value": "40s"},
        "size": {"distribution": "constant", "value": "60pkt"},
    },
    "tcp": {"stack": "rfc-newreno", "receiver_window": 30},
    "run": {"duration": "119s", "warmup": "0s"},
}


def make_scenario(folder: Path, **more: Any) -> Scenario:
    pcap = [{"link": tap, "file": str(folder / f"{tap}.pcap"), **more} for tap in TAPS]
    return Scenario.from_dict(SCENARIO | {"probes": {"pcap": pcap}})


@pytest.fixture(scope="module")
def capture_packets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Captured]]:
    folder = tmp_path_factory.mktemp("captures")
    (answer,) = tcpcast.run(make_scenario(folder), ["packet"])
    assert not any("capture" in warning for warning in answer.warnings)
    return {tap: read_capture((folder / f"{tap}.pcap").read_bytes(), PACKET) for tap in TAPS}


@pytest.fixture(scope="module")
def engine_totals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Counters of the engine for the same run."""
    numbers = make_configuration(make_scenario(tmp_path_factory.mktemp("unused")), 0.0)
    run = _native.Simulation(numbers, 1)
    run.advance(transfers=None, until_ns=119 * 10**9, threads=1)
    cells = run.counters()[0][-1].tolist()[len(_native.LINK_CELLS) :]
    return dict(zip(_native.CLASS_CELLS, cells, strict=False))


def data(packets: list[Captured]) -> list[Captured]:
    return [packet for packet in packets if packet.is_data]


def acks(packets: list[Captured]) -> list[Captured]:
    return [packet for packet in packets if not packet.is_data]


def test_counts_equal_engine_counters(
    capture_packets: dict[str, list[Captured]], engine_totals: dict[str, int]
) -> None:
    lost = engine_totals["queue_drops"] + engine_totals["random_drops"]
    assert engine_totals["queue_drops"] > 0
    assert engine_totals["random_drops"] > 0
    assert engine_totals["transfers"] == 14
    assert (
        len(data(capture_packets["sender"]))
        == len(data(capture_packets["bottleneck-in"]))
        == engine_totals["sent"]
    )
    assert len(data(capture_packets["bottleneck-out"])) == engine_totals["sent"] - lost
    assert len(data(capture_packets["receiver"])) == engine_totals["sent"] - lost
    # One ack per arriving packet, and no ack is lost.
    assert {tap: len(acks(capture_packets[tap])) for tap in TAPS} == dict.fromkeys(
        TAPS, engine_totals["sent"] - lost
    )


def test_packet_is_captured_at_the_taps_in_order(
    capture_packets: dict[str, list[Captured]],
) -> None:
    # The bottleneck and the access links preserve order, so the n-th packet of a connection at one
    # tap, if it is not lost, is the n-th at the next tap.
    for one, other, forward in [
        ("sender", "bottleneck-in", True),
        ("bottleneck-out", "receiver", True),
        ("receiver", "bottleneck-out", False),
        ("bottleneck-out", "bottleneck-in", False),
        ("bottleneck-in", "sender", False),
    ]:
        for flow in range(7):
            for connection in (1, 2):
                kind = data if forward else acks
                before, after = (
                    [
                        p
                        for p in kind(capture_packets[tap])
                        if (p.flow, p.connection) == (flow, connection)
                    ]
                    for tap in (one, other)
                )
                assert [p.number for p in before] == [p.number for p in after]
                assert all(p.time_ns < q.time_ns for p, q in zip(before, after, strict=True))


def test_first_packet_takes_the_link_times(capture_packets: dict[str, list[Captured]]) -> None:
    # 240 us, 3 ms and 1.2 ms for 1500 bytes; 6.4, 80 and 32 us for 40 bytes. The remainder of the
    # 40 ms is propagation between the bottleneck and the egress link, half of it in each direction.
    propagation = (40_000_000 - 240_000 - 3_000_000 - 1_200_000 - 6_400 - 80_000 - 32_000) // 2
    first = {
        (tap, is_data): min(
            p.time_ns for p in capture_packets[tap] if p.is_data == is_data and p.connection == 1
        )
        for tap in TAPS
        for is_data in (True, False)
    }
    start = first["sender", True]
    assert start == 40 * 10**9
    assert first["bottleneck-in", True] - start == 240_000
    assert first["bottleneck-out", True] - first["bottleneck-in", True] == 3_000_000
    assert first["receiver", True] - first["bottleneck-out", True] == propagation + 1_200_000
    assert first["receiver", False] == first["receiver", True]
    assert first["bottleneck-out", False] - first["receiver", False] == 32_000
    assert first["bottleneck-in", False] - first["bottleneck-out", False] == 80_000
    assert first["sender", False] - start == 40_000_000


def ones_complement(words: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(words) // 2}H", words))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@pytest.mark.parametrize("tap", TAPS)
def test_headers_and_checksums_are_correct(
    capture_packets: dict[str, list[Captured]], tap: str
) -> None:
    for packet in capture_packets[tap][:200]:
        header = packet.header
        assert header[0] == 0x45
        assert int.from_bytes(header[2:4]) == packet.length == (PACKET if packet.is_data else ACK)
        assert header[9] == 6
        assert ones_complement(header[:20]) == 0xFFFF
        pseudo = header[12:20] + struct.pack(">HH", 6, packet.length - 20)
        # The payload consists of zeros, which do not change the sum.
        assert ones_complement(pseudo + header[20:]) == 0xFFFF
        assert header[32] >> 4 == 5


def captured_lengths(content: bytes) -> list[int]:
    """Return the captured bytes of each packet of a pcap file."""
    lengths, offset = [], 24
    while offset < len(content):
        (captured,) = struct.unpack_from("<I", content, offset + 8)
        lengths.append(captured)
        offset += 16 + captured
    return lengths


@pytest.mark.parametrize("limit", [1, 100, 1000])
def test_truncated_capture_contains_the_first_packets(
    tmp_path: Path, capture_packets: dict[str, list[Captured]], limit: int
) -> None:
    (answer,) = tcpcast.run(make_scenario(tmp_path, packets=limit), ["packet"])
    for tap in TAPS:
        file = tmp_path / f"{tap}.pcap"
        content = file.read_bytes()
        result = read_capture(content, PACKET)
        assert result == capture_packets[tap][: len(result)], tap
        packets = captured_lengths(content)
        assert len(packets) == limit
        # Each handshake has three packets, two of them with eight bytes of options. It may precede
        # the first packet of its connection by the queueing delay.
        options = sum(length == 48 for length in packets)
        handshakes = {(p.flow, p.connection) for p in result}
        assert 2 * len(handshakes) - 1 <= options <= 2 * 14
        assert len(result) <= limit - options
        assert len(content) <= 24 + 56 * limit + 8 * options
        assert any(str(file) in w and f"{limit} packets" in w for w in answer.warnings)


def test_interrupted_run_removes_its_files_and_keeps_existing_ones(tmp_path: Path) -> None:
    request = make_scenario(tmp_path)
    (tmp_path / "sender.pcap").write_text("of before")
    run = _native.Simulation(make_configuration(request, 0.0), 1)
    replaced = RunOptions(force=True)

    def stopped() -> None:
        with CaptureFiles(request, run, replaced):
            run.advance(transfers=None, until_ns=50 * 10**9, threads=1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stopped()
    assert [file.name for file in tmp_path.iterdir()] == ["sender.pcap"]
    assert (tmp_path / "sender.pcap").read_text() == "of before"
    answer = tcpcast.Answer(engine="packet")
    with CaptureFiles(request, run, replaced) as captures:
        captures.complete_and_rename(answer)
    assert not answer.write_errors
    assert not answer.notes
    assert sorted(file.stem for file in tmp_path.iterdir()) == sorted(TAPS)


def test_packets_are_written_during_the_run(tmp_path: Path) -> None:
    run = _native.Simulation(make_configuration(make_scenario(tmp_path, packets=10**8), 0.0), 1)
    file = tmp_path / "written"
    run.begin_capture(0, file)
    run.advance(transfers=None, until_ns=119 * 10**9, threads=1)
    # The writer's buffer and the packets of one round trip are not yet written.
    assert file.stat().st_size > 50_000
    assert run.end_capture(0) is False
    assert len(read_capture(file.read_bytes(), PACKET)) > 2 * 14 * 60


def test_trace_with_omitted_points_has_a_warning() -> None:
    changes = {"probes.flows": list(range(134)), "run.transfers": 100_000}
    (answer,) = tcpcast.run(tcpcast.load("web-10mbit", changes=changes), ["packet"])
    assert 100_000 < answer.tables["windows"]["time_s"].size <= 1_000_000
    thinned = [note for note in answer.notes if "has too many points" in str(note)]
    assert thinned
    assert all(note.limited_to(answer.metrics) is None for note in thinned)  # affects no metric
    (short,) = tcpcast.run(
        tcpcast.load("web-10mbit", changes=changes | {"run.transfers": 1_000}), ["packet"]
    )
    assert not any("too many points" in warning for warning in short.warnings)
