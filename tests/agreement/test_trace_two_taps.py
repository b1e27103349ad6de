"""Two captures of one simulation, around the bottleneck or at both ends, give drops and RTTs."""

import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast import _native
from tcpcast.captures import Capture
from tcpcast.cli import main
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.process.errors import CaptureError
from tcpcast.scenario import Scenario

TRANSFER = Path(__file__).parents[2] / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"
SECONDS = 30
TAPS = ("sender", "bottleneck-in", "bottleneck-out", "receiver")
LOSSES: dict[str, Any] = {
    "queue": {},
    "random": {"loss": "3%"},
    "bursts": {"loss": {"model": "gilbert-elliott", "to_bad": "1%", "to_good": "20%"}},
    "rounds": {"loss": {"model": "rest-of-round", "rate": "1%"}},
    "red": {
        "buffer": "60pkt",
        "queue": {"kind": "red", "min_threshold": "5pkt", "max_threshold": "15pkt"},
    },
}
HEAD = 24
RECORD = struct.Struct("<IIII")


def scenario(folder: Path, link: dict[str, Any], **tables: Any) -> Scenario:
    taps = [{"link": tap, "file": str(folder / f"{tap}.pcap")} for tap in TAPS]
    bottleneck = {"rate": "4mbit", "buffer": "20pkt"} | link
    document = {
        "network": {"rtt": "60ms", "bottleneck": bottleneck},
        "traffic": {"kind": "bulk", "flows": 10},
        "tcp": {"stack": "rfc-newreno"},
        "run": {"duration": f"{SECONDS}s", "warmup": "0s"},
        "probes": {"pcap": taps},
    }
    return Scenario.from_dict(document | tables)


def engine_totals(
    question: Scenario, seconds: float, transfers: int | None = None
) -> dict[str, int]:
    """Run the simulation again and return the engine's totals."""
    run = _native.Simulation(make_configuration(question, 0.0), 1)
    run.advance(transfers=transfers, until_ns=int(seconds * 1e9), threads=1)
    cells = run.counters()[0][-1].tolist()[len(_native.LINK_CELLS) :]
    return dict(zip(_native.CLASS_CELLS, cells, strict=False))


def records(path: Path) -> list[tuple[int, bytes]]:
    """Return the records of a capture: time in ns, and the remaining bytes."""
    content, offset, result = path.read_bytes(), HEAD, []
    while offset < len(content):
        seconds, nanos, captured_bytes, _ = RECORD.unpack_from(content, offset)
        end = offset + RECORD.size + captured_bytes
        result.append((seconds * 10**9 + nanos, content[offset + 8 : end]))
        offset = end
    return result


def write_capture(template: Path, path: Path, rest: Iterable[tuple[int, bytes]]) -> Path:
    stamped = (struct.pack("<II", *divmod(time, 10**9)) + record for time, record in rest)
    path.write_bytes(template.read_bytes()[:HEAD] + b"".join(stamped))
    return path


def total(capture: Capture, column: str) -> float:
    (value,) = capture.between[column]
    return float(value)


@pytest.fixture(scope="module", params=LOSSES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("between")
    question = scenario(folder, LOSSES[request.param])
    tcpcast.run(question, ["packet"])
    return folder, engine_totals(question, SECONDS)


def test_losses_between_the_taps_equal_bottleneck_drops(run: Any) -> None:
    folder, truth = run
    drops = truth["queue_drops"] + truth["random_drops"]
    capture = tcpcast.trace(folder / "bottleneck-in.pcap", after=folder / "bottleneck-out.pcap")
    assert drops > 20
    # The engine does not count the one SYN-ACK per connection.
    handshakes = capture.connections["src"].size
    assert total(capture, "packets_seen_before") == truth["arrived"] + handshakes
    # A drop at the end, without a later packet of its flow, may also be a packet in the queue.
    in_flight = total(capture, "under_way")
    assert 0 <= drops - total(capture, "lost_between") <= in_flight
    # Losses just before the end; a burst or the rest of a round has several.
    assert in_flight <= 20
    table = capture.connections
    assert table["lost_between"].sum() == total(capture, "lost_between")
    per_flow = table["lost_between"] / (table["packets_seen_before"] - table["under_way"])
    assert table["loss_ratio_between"].tolist() == per_flow.tolist()
    assert set(table["passes"].tolist()) == {"before-after"}


def test_order_of_the_captures_does_not_matter(run: Any) -> None:
    folder, _ = run
    taps = [folder / f"bottleneck-{end}.pcap" for end in ("in", "out")]
    forward, backward = tcpcast.trace(taps[0], after=taps[1]), tcpcast.trace(taps[1], after=taps[0])
    assert forward.between["passes"].tolist() == ["before-after"]
    assert backward.between["passes"].tolist() == ["after-before"]
    for name in ("lost_between", "under_way", "loss_ratio_between", "transit_max_s"):
        assert total(forward, name) == total(backward, name)


def test_loss_ratio_of_a_single_flow_is_exact(tmp_path: Path) -> None:
    """Transfers that end leave no packet in flight."""
    question = scenario(
        tmp_path,
        {"loss": "5%"},
        traffic={"kind": "transfers", "size": "40pkt", "count": 100},
        run={},
    )
    tcpcast.run(question, ["packet"])
    truth = engine_totals(question, 10_000, 100)
    capture = tcpcast.trace(tmp_path / "bottleneck-in.pcap", after=tmp_path / "bottleneck-out.pcap")
    drops = truth["queue_drops"] + truth["random_drops"]
    assert drops > 100
    assert total(capture, "lost_between") == drops
    assert total(capture, "under_way") == 0
    # Each of the 100 transfers also has a SYN-ACK.
    assert total(capture, "loss_ratio_between") == drops / (truth["arrived"] + 100)


@pytest.fixture(scope="module")
def taps(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("taps")
    tcpcast.run(scenario(folder, {"loss": "2%"}), ["packet"])
    return lambda tap: folder / f"{tap}.pcap"


def test_transit_times_agree_with_the_path(taps: Any) -> None:
    capture = tcpcast.trace(taps("sender"), after=taps("receiver"))
    # At least half an RTT and a packet's transmission; at most a full queue of 20 packets more.
    assert total(capture, "transit_min_s") == pytest.approx(0.030, abs=0.002)
    assert total(capture, "transit_max_s") == pytest.approx(0.030 + 20 * 0.003, abs=0.004)
    assert not [line for line in capture.warnings if "clock" in line]


def test_captures_of_unrelated_packets_have_a_warning(taps: Any) -> None:
    capture = tcpcast.trace(taps("sender"), after=TRANSFER)
    assert not capture.between
    assert any("not seen at the second tap" in line for line in capture.warnings)


def merge_frames(
    packets: list[tuple[int, bytes]], most: int, within_ns: int
) -> list[tuple[int, bytes]]:
    """Merge successive data packets of a direction, as TSO and GRO do."""
    merged: list[tuple[int, bytes]] = []
    last: dict[bytes, int] = {}  # index in ``merged`` by addresses, ports and all later fields
    for time, record in packets:
        ip = record[8:]
        header = 4 * (ip[0] & 15)
        length, sequence = struct.unpack_from(">H", ip, 2)[0], ip[header + 4 : header + 8]
        tcp = 4 * (ip[header + 12] >> 4)
        payload = length - header - tcp
        number = int.from_bytes(sequence, "big")
        ends = ip[12 : header + 4]
        index = last.get(ends)
        if index is not None and payload:
            begun, frame = merged[index]
            total_bytes = struct.unpack_from(">H", frame, 10)[0]
            joined = total_bytes - header - tcp
            start = int.from_bytes(frame[8 + header + 4 : 8 + header + 8], "big")
            before, now = frame[8 + header : 8 + header + tcp], ip[header : header + tcp]
            # All fields but the checksum.
            same = (before[8:16], before[20:]) == (now[8:16], now[20:])
            if (
                joined % payload == 0
                and start + joined == number
                and joined + payload <= most * payload
                and time - begun <= within_ns
                and same
            ):
                size = struct.pack(">H", total_bytes + payload)
                wire = struct.pack("<I", struct.unpack_from("<I", frame, 4)[0] + payload)
                merged[index] = (begun, frame[:4] + wire + frame[8:10] + size + frame[12:])
                continue
        last[ends] = len(merged)
        merged.append((time, record))
    return merged


def coarsen_timestamps(record: bytes) -> bytes:
    """Return the record with a timestamp clock of 0.5 s, so that frames have equal timestamps."""
    at = record.find(b"\x01\x01\x08\x0a")
    if at < 0:
        return record
    values = (value >> 9 for value in struct.unpack_from(">II", record, at + 4))
    return record[: at + 4] + struct.pack(">II", *values) + record[at + 12 :]


@pytest.fixture(scope="module", params=[True, False], ids=["timestamps", "plain"])
def stamped_taps(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("offload")
    tcp = {"stack": "linux-cubic" if request.param else "rfc-newreno"}
    flows = {"kind": "bulk", "flows": 2}
    tcpcast.run(scenario(folder, {"loss": "1%"}, tcp=tcp, traffic=flows), ["packet"])
    for file in (folder / "sender.pcap", folder / "receiver.pcap"):
        packets = [(time, coarsen_timestamps(record)) for time, record in records(file)]
        write_capture(file, file, packets)
    return lambda tap: folder / f"{tap}.pcap"


@pytest.mark.parametrize("merged_taps", [("sender",), ("receiver",), ("sender", "receiver")])
def test_frames_that_one_tap_merges_are_matched_by_bytes(
    stamped_taps: Any, tmp_path: Path, merged_taps: tuple[str, ...]
) -> None:
    whole = tcpcast.trace(stamped_taps("sender"), after=stamped_taps("receiver"))
    files = {tap: stamped_taps(tap) for tap in ("sender", "receiver")}
    for tap, most in zip(merged_taps, (10, 7), strict=False):
        packets = records(files[tap])
        joined = merge_frames(packets, most, 40_000_000)
        assert len(joined) < 0.9 * len(packets)
        files[tap] = write_capture(files[tap], tmp_path / f"{tap}.pcap", joined)
    capture = tcpcast.trace(files["sender"], after=files["receiver"])
    lost, true = total(capture, "lost_between"), total(whole, "lost_between")
    assert true > 50
    # At the end, data may count as in flight instead of lost.
    ended = abs(total(capture, "under_way") - total(whole, "under_way"))
    assert abs(lost - true) <= ended < 10
    assert total(capture, "seen_at_both") == pytest.approx(total(whole, "seen_at_both"), abs=1)
    ratio = total(whole, "loss_ratio_between")
    assert total(capture, "loss_ratio_between") == pytest.approx(ratio, rel=0.05)
    assert not [line for line in capture.warnings if "unknown loss" in line]


def test_loss_is_unknown_if_packets_cannot_be_matched(
    taps: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A device renumbers the data of every third packet."""
    changed = []
    for number, (time, record) in enumerate(records(taps("receiver"))):
        at = 8 + 4 * (record[8] & 15) + 4
        flip = record[:at] + bytes([record[at] ^ 0x40]) + record[at + 1 :]
        changed.append((time, record if number % 3 else flip))
    after = write_capture(taps("receiver"), tmp_path / "changed.pcap", changed)
    capture = tcpcast.trace(taps("sender"), after=after)
    for table in (capture.connections, capture.between):
        assert np.isnan(table["lost_between"]).all()
        assert np.isnan(table["loss_ratio_between"]).all()
    assert any("unknown loss between the taps" in line for line in capture.warnings)
    assert main(["trace", str(taps("sender")), "--second-capture", str(after)]) == 0
    out = capsys.readouterr().out
    assert "the loss between the taps is unknown" in " ".join(out.split())
    assert " lost" not in out
    assert "p_r" not in out


OFFLOAD = [
    path
    for parent in Path(__file__).resolve().parents
    for path in parent.glob("shared/captures/offload")
]


@pytest.mark.skipif(not OFFLOAD, reason="without shared/captures/offload")
@pytest.mark.parametrize(
    "name", ["burst", "policer", "bloat", "four", "app65", "http", "pg", "slowreader", "reorder"]
)
def test_losses_with_real_offload_equal_retransmissions(name: str) -> None:
    file = {tap: OFFLOAD[0] / f"{name}-{tap}.pcap.gz" for tap in ("snd", "mid", "rcv")}
    pairs = [("snd", "rcv"), ("mid", "rcv"), ("rcv", "snd"), ("snd", "mid")]
    captures = {pair: tcpcast.trace(file[pair[0]], after=file[pair[1]]) for pair in pairs}
    lost = [int(np.sum(captures[pair].between["lost_between"])) for pair in pairs]
    retransmitted = int(captures["snd", "rcv"].connections["retransmissions"].sum())
    assert lost[0] == lost[1] == lost[2]
    assert lost[3] == 0
    # Reordering and the reader cause unnecessary retransmissions.
    needless = {"reorder": 12, "slowreader": 1}.get(name, 0)
    assert lost[0] == retransmitted - needless


def test_command_prints_the_loss_ratio_between_taps(
    taps: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", str(taps("sender")), "--second-capture", str(taps("receiver"))]) == 0
    assert "p_r = " in capsys.readouterr().out
    assert main(["trace", str(taps("sender")), "--second-capture", "nowhere.pcap"]) == 2
    assert "nowhere.pcap: No such file" in capsys.readouterr().err
    assert main(["trace", str(taps("sender")), str(taps("sender")), "--second-capture", "x"]) == 2
    assert "requires exactly one FILE" in capsys.readouterr().err


def test_error_of_the_second_capture_names_it(taps: Any) -> None:
    with pytest.raises(CaptureError, match=r"nowhere\.pcap"):
        tcpcast.trace(taps("sender"), after="nowhere.pcap")
    with pytest.raises(CaptureError, match="<bytes>"):
        tcpcast.trace(taps("sender"), after=b"this is no capture at all")


RTT_NS = 60_000_000
PATHS: dict[str, dict[str, Any]] = {
    "a queue": {},
    "random loss": {"rate": "20mbit", "loss": "3%"},
    "both": {"loss": "2%"},
}


@pytest.mark.parametrize("path", PATHS)
def test_receiver_tap_gives_a_lower_estimate(path: str, tmp_path: Path) -> None:
    taps = ("sender", "receiver")
    bottleneck = {"rate": "4mbit", "buffer": "20pkt", **PATHS[path]}
    question = tcpcast.Scenario.from_dict(
        {
            "network": {"rtt": f"{RTT_NS}ns", "bottleneck": bottleneck},
            "traffic": {"kind": "bulk", "flows": 1},
            "tcp": {"stack": "rfc-newreno"},
            "run": {"duration": "60s", "warmup": "0s"},
            "probes": {"pcap": [{"link": t, "file": str(tmp_path / t)} for t in taps]},
        }
    )
    tcpcast.run(question, ["packet"])
    near, far = (tcpcast.trace(tmp_path / tap).connections for tap in taps)
    assert [near["tap_side"][0], far["tap_side"][0]] == ["sender", "receiver"]
    # The handshake's packets are shorter than data on the link.
    empty_s = near["handshake_rtt_s"][0]
    data_s = 1500 * 8 / question.network.bottleneck.rate_bps
    assert RTT_NS / 1e9 - data_s <= empty_s < RTT_NS / 1e9
    assert far["handshake_rtt_s"][0] == pytest.approx(empty_s)
    truth = near["rtt_mean_s"][0]
    assert 0.99 * empty_s < far["rtt_mean_s"][0] < truth
