"""Values of the algorithms of the appendix, to the digits that are printed."""

from __future__ import annotations

from tcpcast.models.parallel import cumulative_throughput, parallel_throughput
from tcpcast.papers.parallel.published import (
    VALUES,
    VALUES_LOST_PER_EVENT,
    VALUES_PACKETS_PER_ACK,
    VALUES_RTT_S,
    VALUES_T0_S,
    Value,
)
from tcpcast.papers.reproduction import PRINTED_DIGITS, Printed, Row, Section, Verdict


def section() -> Section:
    """Return the values beside the models'."""
    found = Section("Appendix. Values of algorithms 1 and 2", ("algorithm", "n", "p or p_e"))
    found.rows = [_row(value) for value in VALUES]
    found.remarks = [
        f"b = {VALUES_PACKETS_PER_ACK}, RTT = {1e3 * VALUES_RTT_S:g} ms, T = "
        f"{1e3 * VALUES_T0_S:g} ms; algorithm 2 with p_r = {VALUES_LOST_PER_EVENT} p_e. The "
        "values are not the paper's, which prints none, but were worked from its appendix before "
        "the models were written.",
    ]
    for value, row in zip(VALUES, found.rows, strict=True):
        if row.verdict is Verdict.DIFFERS:
            found.remarks.append(
                f"Algorithm {value.algorithm} as printed gives {_rate(value):.4f} for n = "
                f"{value.flows} at {100 * value.loss:g} %, where {value.rate_pps} was worked; with "
                f"the whole f(p) it would be {_rate(value, equations=True):.4f}. We take it for a "
                "slip of the pen and leave both."
            )
    return found


def _row(value: Value) -> Row:
    own = _rate(value)
    return Row(
        (f"{value.algorithm}", f"{value.flows}", f"{100 * value.loss:g} %"),
        "packets/s",
        Printed(value.rate_pps),
        own,
        tolerance=PRINTED_DIGITS,
        note=f"own {own:.4f}",
    )


def _rate(value: Value, *, equations: bool = False) -> float:
    if value.algorithm == 1:
        found = parallel_throughput(
            flows=value.flows,
            rtt_s=VALUES_RTT_S,
            t0_s=VALUES_T0_S,
            loss_event_ratio=value.loss,
            packets_per_ack=VALUES_PACKETS_PER_ACK,
            equations=equations,
        )
    else:
        found = cumulative_throughput(
            flows=value.flows,
            rtt_s=VALUES_RTT_S,
            t0_s=VALUES_T0_S,
            loss_event_ratio_cumulative=value.loss,
            loss_ratio=VALUES_LOST_PER_EVENT * value.loss,
            packets_per_ack=VALUES_PACKETS_PER_ACK,
            equations=equations,
        )
    return float(found.rate_pps)
