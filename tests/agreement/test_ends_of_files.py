"""Ends of files in modern stacks: a partial last packet, and FIN."""

import struct
from pathlib import Path
from typing import Any

import pytest
import tcpcast
from tcpcast.scenario import Scenario
from tcpcast.scenario.modern_tcp import MODERN_PRESETS

RATE = 1_000_000.0
RTT_S = 0.1
FIN, SYN, ECE, CWR = 0x01, 0x02, 0x40, 0x80


def make_scenario(stack: str, size: Any, **more: Any) -> Scenario:
    return Scenario.from_dict(
        {
            "network": {"rtt": "100ms", "bottleneck": {"rate": "1mbit", **more.get("link", {})}},
            "traffic": {"kind": "transfers", "size": size, **more.get("traffic", {"count": 1})},
            "tcp": {"stack": stack, "host_noise": "0s", **more.get("tcp", {})},
            "run": {"seed": 1, **more.get("run", {})},
            "probes": more.get("probes", {}),
        }
    )


@pytest.mark.parametrize("stack", MODERN_PRESETS)
def test_last_packet_takes_the_time_of_its_length(stack: str) -> None:
    def delivery_s(size: str) -> float:
        return tcpcast.run(make_scenario(stack, size), ["packet"])["packet"]["delivery_time_s"]

    payload = 1460 if stack == "rfc-sack" else 1448
    full, short = delivery_s("2pkt"), delivery_s(f"{2 * payload - 1000}B")
    assert full - short == pytest.approx(8 * 1000 / RATE, abs=2e-9)
    assert delivery_s(f"{2 * payload}B") == full


def test_classic_stacks_send_full_packets() -> None:
    runs = [
        tcpcast.run(make_scenario("rfc-newreno", size), ["packet"]) for size in ("2pkt", "1900B")
    ]
    values = [{name: run["packet"][name] for name in run["packet"].metrics} for run in runs]
    assert values[0] == values[1]


@pytest.mark.parametrize("queue", ["droptail", "codel", "red"])
def test_goodput_counts_payload_bytes(queue: str) -> None:
    # Files of 148 bytes fit into one packet, a tenth of a full one.
    scenario = make_scenario(
        "linux-cubic",
        "148B",
        link={"queue": queue, "buffer": "100pkt"},
        traffic={"arrivals": {"distribution": "poisson", "rate": "20/s"}},
        run={"duration": "100s", "warmup": "10s"},
    )
    answer = tcpcast.run(scenario, ["packet"])["packet"]
    assert answer["goodput_bps"] == pytest.approx(answer["goodput_pps"] * 8 * 148, rel=1e-9)
    # SYN-ACK, the file and FIN: 52, 200 and 52 bytes.
    busy = answer["goodput_pps"] * 8 * (52 + 200 + 52) / RATE
    assert answer["utilisation"] == pytest.approx(busy, rel=0.02)


def packets(file: Path) -> list[tuple[bool, int, int, int]]:
    """Return sender flag, codepoint, TCP flags and payload bytes of each packet."""
    data, offset, result = file.read_bytes(), 24, []
    while offset < len(data):
        (captured_bytes,) = struct.unpack_from("<I", data, offset + 8)
        header = data[offset + 16 : offset + 16 + captured_bytes]
        offset += 16 + captured_bytes
        (length,) = struct.unpack_from(">H", header, 2)
        payload = length - 20 - 4 * (header[32] >> 4)
        result.append((header[13] < 128, header[1] & 3, header[33], payload))
    return result


def capture_packets(tmp_path: Path, size: str, *, ecn: bool, **link: Any) -> list[Any]:
    file = tmp_path / "sender.pcap"
    probes = {"pcap": [{"link": "bottleneck-out", "file": str(file), "packets": 100_000}]}
    scenario = make_scenario("linux-cubic", size, tcp={"ecn": ecn}, link=link, probes=probes)
    tcpcast.run(scenario, ["packet"])
    return packets(file)


def test_captures_contain_fin(tmp_path: Path) -> None:
    sent = [packet for packet in capture_packets(tmp_path, "2000B", ecn=False) if packet[0]]
    assert [(flags & (FIN | SYN), payload) for _, _, flags, payload in sent] == [
        (SYN, 0),
        (0, 1448),
        (0, 552),
        (FIN, 0),
    ]
    # The file is larger than the initial window, so that FIN is on the last packet.
    (tmp_path / "sender.pcap").unlink()
    sent = [packet for packet in capture_packets(tmp_path, "15000B", ecn=False) if packet[0]]
    assert sent[-1][2] & FIN
    assert sent[-1][3] == 15000 - 10 * 1448
    assert not any(flags & FIN for _, _, flags, _ in sent[:-1])


def test_captures_contain_ecn(tmp_path: Path) -> None:
    packets_seen = capture_packets(tmp_path, "500pkt", ecn=True, queue="codel", buffer="1000pkt")
    opening = [(sender, flags & (ECE | CWR)) for sender, _, flags, _ in packets_seen if flags & SYN]
    assert opening == [(False, ECE | CWR), (True, ECE)]
    data = [
        (codepoint, flags)
        for sender, codepoint, flags, payload in packets_seen
        if sender and payload
    ]
    assert {codepoint for codepoint, _ in data} == {2, 3}
    assert any(flags & CWR for _, flags in data)
    acks = [(codepoint, flags) for sender, codepoint, flags, _ in packets_seen if not sender]
    assert {codepoint for codepoint, _ in acks} == {0}
    assert any(flags & ECE and not flags & SYN for _, flags in acks)
