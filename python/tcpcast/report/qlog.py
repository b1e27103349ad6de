"""Windows, packets and phases of BBR of simulated flows as qlog, for viewers as qvis.

The main schema is draft-ietf-quic-qlog-main-schema-02 (version 0.3), the events those of
draft-ietf-quic-qlog-quic-events-01. TCP has no packet numbers: they are numbers of segments, which
a retransmission repeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.process.errors import TcpcastError
from tcpcast.report.json import encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.answer import Answer
    from tcpcast.array_types import Table
    from tcpcast.scenario import Scenario

SUFFIX = ".qlog"


def check_scenario_records_flows(scenario: Scenario, path: str) -> None:
    """Raise unless a run of the scenario records flows.

    Raises
    ------
    TcpcastError
        ``probes.flows`` is empty.
    """
    if not scenario.probes.flows:
        raise TcpcastError(f"--out {path} requires recorded flows; use --set probes.flows=[0]")


def qlog_text(scenario: Scenario, answers: Sequence[Answer]) -> str:
    """Return the windows and packets of the recorded flows as one qlog file, a trace per flow.

    Times are in ms from the start of the run, windows in bytes of payload.

    Raises
    ------
    TcpcastError
        No answer has the tables ``windows`` and ``sequences``.
    """
    tables = next((a.tables for a in answers if {"windows", "sequences"} <= a.tables.keys()), None)
    if tables is None:
        raise TcpcastError("no engine recorded flows; use --engine packet")
    groups = [group for group in scenario.populations for _ in range(group.count)]
    windows, packets = tables["windows"], tables["sequences"]
    states = tables.get("bbr")
    traces = [
        {
            "title": f"{scenario.name}, flow {flow}",
            "vantage_point": {"name": "sender", "type": "server"},
            "common_fields": {
                "ODCID": f"{int(flow):016x}",
                "time_format": "relative",
                "reference_time": 0,
                "protocol_type": ["QUIC" if groups[flow].tcp.is_quic else "TCP"],
            },
            "events": _events(windows, packets, states, flow, groups[flow].payload_bytes),
        }
        for flow in np.unique(windows["flow"])
    ]
    document = {"qlog_version": "0.3", "qlog_format": "JSON", "title": scenario.name}
    return encode(document | {"traces": traces}) + "\n"


def _events(
    windows: Table, packets: Table, states: Table | None, flow: int, payload_bytes: int
) -> list[dict[str, Any]]:
    events = [
        *_window_events(windows, flow, payload_bytes),
        *_packet_events(packets, flow, payload_bytes),
        *(_phase_events(states, flow) if states is not None else ()),
    ]
    return sorted(events, key=lambda event: float(event["time"]))


def _window_events(table: Table, flow: int, payload_bytes: int) -> Iterator[dict[str, Any]]:
    own = table["flow"] == flow
    names = ("time_s", "cwnd_pkts", "ssthresh_pkts", "flight_pkts")
    for time, window, threshold, flight in zip(*(table[n][own] for n in names), strict=True):
        data = {"congestion_window": int(window) * payload_bytes}
        data["bytes_in_flight"] = int(flight) * payload_bytes
        if np.isfinite(threshold):
            data["ssthresh"] = int(threshold) * payload_bytes
        yield {"time": 1e3 * float(time), "name": "recovery:metrics_updated", "data": data}


def _phase_events(table: Table, flow: int) -> Iterator[dict[str, Any]]:
    """Yield the changes of the phase and of the pacing rate of BBR."""
    own = table["flow"] == flow
    names = ("time_s", "phase", "pacing_rate_bps", "min_rtt_s")
    before, rate_before = "", -1
    for time, phase, pacing_rate, min_rtt in zip(*(table[n][own] for n in names), strict=True):
        at, rate = 1e3 * float(time), int(pacing_rate)
        if phase != before:
            data: dict[str, Any] = {"old": before} if before else {}
            data["new"] = str(phase)
            yield {"time": at, "name": "recovery:congestion_state_updated", "data": data}
        if rate != rate_before:
            data = {"pacing_rate": rate}
            if np.isfinite(min_rtt):
                data["min_rtt"] = 1e3 * float(min_rtt)
            yield {"time": at, "name": "recovery:metrics_updated", "data": data}
        before, rate_before = str(phase), rate


def _packet_events(table: Table, flow: int, payload_bytes: int) -> Iterator[dict[str, Any]]:
    own = table["flow"] == flow
    names = ("time_s", "sequence", "event")
    for time, number, event in zip(*(table[name][own] for name in names), strict=True):
        header = {"packet_type": "1RTT", "packet_number": int(number)}
        data: dict[str, Any] = {"header": header}
        if event == "timeout":
            name, data = "recovery:loss_timer_updated", {"event_type": "expired"}
        elif event == "dropped":
            name = "recovery:packet_lost"
        else:
            name, data["raw"] = "transport:packet_sent", {"length": payload_bytes}
        yield {"time": 1e3 * float(time), "name": name, "data": data}
