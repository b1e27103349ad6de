"""Values of a run that the statements of the test cases are about, by name.

A statement that is true or false has the value 100 or 0 %; its mean over the seeds is a share of
runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers.bbr3.cases import QUIET_S
from tcpcast_papers.bbr3.states import CYCLE

if TYPE_CHECKING:
    from tcpcast_papers.bbr3.cases import Path
    from tcpcast_papers.bbr3.states import Phase, States

Check = Callable[["States", "Path"], float]


def _percent(holds: bool) -> float:
    return 100.0 if holds else 0.0


def _ratio_percent(value: float, of: float) -> float:
    return 100.0 * float(value) / float(of)


def _follows(phase: str, *names: str) -> Check:
    """Return the check that one of these phases follows the first phase with a name."""
    return lambda states, _: _percent(states.next_name(_changed(states, phase)) in names)


def _changed(states: States, name: str) -> Phase:
    """Return the phase in which the change was made, or else the first whole one."""
    if math.isnan(states.change_s):
        return states.phase(name, quiet_s=QUIET_S if name in CYCLE else 0.0)
    return next(
        each
        for each in reversed(states.phases)
        if each.name == name and each.start_s <= states.change_s + 1e-6
    )


def _max_bw_after_startup(states: States, path: Path) -> float:
    row = states.phase("startup").end
    return _ratio_percent(states.at("max_bw_bps", row), path.payload_bps)


def _full_bw_count(phase: str) -> Check:
    """Return the check of a count in the row that ends the first phase with a name."""
    return lambda states, _: float(states.at("full_bw_count", _changed(states, phase).end))


def _is_full_after_startup(states: States, _: Path) -> float:
    return _percent(bool(states.at("full_bw_reached", states.phase("startup").end)))


def _gain(column: str, phase: str) -> Check:
    return lambda states, _: float(states.at(column, _changed(states, phase).first))


def _rounds(phase: str) -> Check:
    """Return the check of the rounds that a phase with the change lasts."""

    def read(states: States, _: Path) -> float:
        one = _changed(states, phase)
        counts = states.table["round_count"]
        return float(int(states.at("round_count", one.end)) - int(counts[one.first]))

    return read


def _inflight_at_end(phase: str) -> Check:
    """Return the check of the packets in flight at the end of a phase, as a share of a target."""

    def read(states: States, _: Path) -> float:
        one = _changed(states, phase)
        inflight = states.window("flight_pkts", one.end_s)
        return _ratio_percent(inflight, states.at("target_inflight_pkts", one.end - 1))

    return read


def _inflight_before_end(phase: str) -> Check:
    """Return the check of the smallest number of packets in flight within a phase."""

    def read(states: States, _: Path) -> float:
        one = _changed(states, phase)
        inflight = states.windows("flight_pkts", one.start_s, one.end_s)
        return _ratio_percent(inflight.min(), states.at("target_inflight_pkts", one.end - 1))

    return read


def _has_no_drops(phase: str) -> Check:
    def read(states: States, _: Path) -> float:
        one = _changed(states, phase)
        return _percent(states.dropped_packets(0.0, one.end_s) == 0)

    return read


def _loss_ends_up(states: States, _: Path) -> float:
    one = _changed(states, "probe_up")
    ends = states.next_name(one) in {"probe_down", "probe_cruise"}
    return _percent(ends and states.at("full_bw_count", one.end - 1) < 3)


def _lowest_headroom(states: States, _: Path) -> float:
    one = _changed(states, "probe_down")
    longterm = states.at("inflight_longterm_pkts", one.end - 1)
    limit = min(0.85 * longterm, float(states.at("target_inflight_pkts", one.end - 1)))
    return _ratio_percent(states.window("flight_pkts", one.end_s), limit)


def _probe_rtt_interval(states: States, _: Path) -> float:
    first, second = (states.phase("probe_rtt", number=number) for number in (1, 2))
    return second.start_s - first.end_s


def _probe_rtt_ms(states: States, _: Path) -> float:
    return 1e3 * states.phase("probe_rtt").duration_s


def _probe_rtt_inflight(states: States, path: Path) -> float:
    one = states.phase("probe_rtt")
    inflight = states.windows("flight_pkts", one.end_s - 2 * path.rtt_s, one.end_s - 1e-4)
    return _ratio_percent(inflight.max(), states.at("target_inflight_pkts", one.end - 1))


def _resumes(states: States, path: Path) -> float:
    one = states.phase("probe_rtt")
    start_s = one.end_s + 2 * path.rtt_s
    sent = states.sent_packets(start_s, start_s + 10 * path.rtt_s) / (10 * path.rtt_s)
    return _ratio_percent(sent * 8 * 1500, path.rate_bps)


def _idle_s(states: States, _: Path) -> float:
    sent = states.answer.tables["sequences"]
    times = sent["time_s"][sent["event"] == "sent"]
    return float(np.diff(times[times >= states.change_s]).max())


def _largest_window_in_startup(states: States, path: Path) -> float:
    one = states.phase("startup")
    windows = states.windows("cwnd_pkts", one.start_s, one.end_s)
    return float(windows.max()) / path.bdp_packets


def _extra_acked(phase: str) -> Check:
    """Return the check of the aggregation as a share of the packets of 0.4 round trips."""

    def read(states: States, path: Path) -> float:
        one = states.phase(phase)
        return _ratio_percent(
            states.table["extra_acked_pkts"][one.first : one.end].max(), 0.4 * path.bdp_packets
        )

    return read


def _window_with_extra(states: States, _: Path) -> float:
    one = states.phase("probe_cruise")
    row = one.end - 1
    window = states.window("cwnd_pkts", one.end_s - 1e-6)
    model = 2 * states.at("target_inflight_pkts", row) + states.at("extra_acked_pkts", row)
    return _ratio_percent(window, model)


def _utilisation(phase: str) -> Check:
    """Return the check of the rate within a phase, as a share of the path's."""

    def read(states: States, path: Path) -> float:
        one = states.phase(phase)
        start_s = one.start_s + 4 * path.rtt_s
        sent = states.sent_packets(start_s, one.end_s)
        return _ratio_percent(8 * 1500 * sent / (one.end_s - start_s), path.rate_bps)

    return read


def _smallest_window(states: States, _: Path) -> float:
    start_s = next(each.start_s for each in states.phases if each.name in CYCLE)
    return float(states.windows("cwnd_pkts", start_s, np.inf).min())


def _pacing(states: States, path: Path) -> float:
    cruising = np.flatnonzero(states.table["pacing_gain"] == 1)
    return _ratio_percent(np.median(states.table["pacing_rate_bps"][cruising]), path.payload_bps)


def _goodput(states: States, path: Path) -> float:
    start_s, end_s = states.phases[-1].end_s / 2, states.phases[-1].end_s
    return _ratio_percent(
        8 * 1500 * states.sent_packets(start_s, end_s) / (end_s - start_s), path.rate_bps
    )


def _growth_per_round(states: States, _: Path) -> float:
    """Return the mean factor between the steps of the long-term bound in the first four rounds."""
    one = _fast_probe(states)
    rounds = states.table["round_count"][one.first : one.end]
    bounds = states.table["inflight_longterm_pkts"][one.first : one.end]
    ends = np.append(np.flatnonzero(np.diff(rounds) > 0), len(rounds) - 1)
    growth = np.diff(bounds[ends])
    first = int(np.argmax(growth > 0))
    return float((growth[first + 3] / growth[first]) ** (1 / 3))


def _fast_probe(states: States) -> Phase:
    """Return the probe after the change in which the maximum bandwidth grows most."""
    probes = [
        each for each in states.phases if each.name == "probe_up" and each.start_s > states.change_s
    ]
    max_bw = states.table["max_bw_bps"]
    return max(probes, key=lambda each: max_bw[each.end - 1] / max_bw[each.first])


def _final_max_bw(share: float) -> Check:
    """Return the check of the maximum bandwidth at the end of the run, for a changed rate."""
    return lambda states, path: _ratio_percent(
        states.table["max_bw_bps"][-1], share * path.payload_bps
    )


def _rounds_to_full_bw(states: States, path: Path) -> float:
    """Return the rounds of probes until the maximum bandwidth is that after the change."""
    full = 0.98 * 10 * path.payload_bps
    row = int(np.argmax(states.table["max_bw_bps"] >= full))
    probe = _fast_probe(states)
    counts = states.table["round_count"]
    return float(int(counts[row]) - int(counts[probe.first])) / math.log2(10 * path.bdp_packets)


def _short_term_bw(states: States, path: Path) -> float:
    """Return the bandwidth in use at the end of the phase of the change, as a share of the new."""
    one = _changed(states, "probe_cruise")
    bound = states.at("bw_shortterm_bps", one.end - 1)
    return _ratio_percent(bound, path.payload_bps)


def _cycles_to_new_bw(states: States, path: Path) -> float:
    """Return the cycles after the change until the maximum bandwidth is the new one."""
    probes = [
        each for each in states.phases if each.name == "probe_up" and each.start_s > states.change_s
    ]
    times = states.table["time_s"]
    later = (times > states.change_s) & (
        states.table["max_bw_bps"] <= 1.02 * 0.1 * path.payload_bps
    )
    if not later.any():
        return math.inf
    when = float(times[int(np.argmax(later))])
    return float(sum(each.start_s < when for each in probes))


def _has_short_term_bounds(states: States, _: Path) -> float:
    table = states.table
    bounded = np.isfinite(table["bw_shortterm_bps"]) & np.isfinite(table["inflight_shortterm_pkts"])
    return _percent(bool(bounded.any()))


def _loss_of_second_half(states: States, _: Path) -> float:
    start_s, end_s = states.phases[-1].end_s / 2, states.phases[-1].end_s
    return _ratio_percent(
        states.dropped_packets(start_s, end_s), states.sent_packets(start_s, end_s)
    )


def _spurious(metric: str) -> Check:
    return lambda states, _: _percent(states.answer.metrics[metric].value >= 1)


def _resumes_probe(states: States, _: Path) -> float:
    names = [each.name for each in states.phases]
    index = states.phases.index(_changed(states, "probe_up"))
    return _percent(names[index + 1 : index + 4] == ["probe_down", "probe_refill", "probe_up"])


def _has_bounds_of_before(states: States, _: Path) -> float:
    """Return whether the bounds after the undo are at least those before the losses."""
    one = _changed(states, "probe_up")
    after = states.phase("probe_refill", one.end_s)
    columns = ("inflight_longterm_pkts", "inflight_shortterm_pkts", "bw_shortterm_bps")
    return _percent(
        all(states.at(name, after.first) >= states.at(name, one.first) for name in columns)
    )


def _bound_ratio(states: States, _: Path) -> float:
    """Return the long-term bound after the losses, as a share of that before."""
    one = _changed(states, "probe_up")
    before = float(states.at("inflight_longterm_pkts", one.first))
    return _ratio_percent(states.at("inflight_longterm_pkts", one.end), before)


def _bound_of_target(states: States, _: Path) -> float:
    """Return the long-term bound after the losses, as a share of BDP or window."""
    one = _changed(states, "probe_up")
    target = float(states.at("target_inflight_pkts", one.end - 1))
    target = min(target, states.window("cwnd_pkts", one.end_s - 1e-6))
    return _ratio_percent(states.at("inflight_longterm_pkts", one.end), target)


def _max_bw_in_refill(states: States, _: Path) -> float:
    one = _changed(states, "probe_refill")
    values = states.table["max_bw_bps"][one.first : one.end + 1]
    return _ratio_percent(values.min(), states.at("max_bw_bps", one.first - 1))


def _is_limited_in_refill(states: States, path: Path) -> float:
    one = _changed(states, "probe_refill")
    sent = states.sent_packets(one.start_s + path.rtt_s / 2, one.end_s)
    return _ratio_percent(8 * 1500 * sent / (path.rtt_s / 2), path.rate_bps)


CHECKS: dict[int, dict[str, Check]] = {
    1: {
        "max_bw": _max_bw_after_startup,
        "count": _full_bw_count("startup"),
        "full": _is_full_after_startup,
        "next": _follows("startup", "drain"),
    },
    2: {
        "count": _full_bw_count("startup"),
        "full": _is_full_after_startup,
        "next": _follows("startup", "drain", *CYCLE),
    },
    3: {
        "gain": _gain("pacing_gain", "drain"),
        "before": _inflight_before_end("drain"),
        "after": _inflight_at_end("drain"),
        "next": _follows("drain", *CYCLE),
    },
    4: {
        "before": _inflight_before_end("drain"),
        "rounds": _rounds("drain"),
        "next": _follows("drain", *CYCLE),
    },
    5: {
        "loss": _has_no_drops("probe_up"),
        "count": _full_bw_count("probe_up"),
        "rounds": _rounds("probe_up"),
        "next": _follows("probe_up", "probe_down"),
    },
    6: {
        "next": _loss_ends_up,
        "rounds": lambda states, path: (
            (_changed(states, "probe_up").end_s - states.change_s) / path.rtt_s
        ),
    },
    7: {
        "stays": _follows("probe_up", "", "probe_rtt"),
        "rounds": lambda states, path: _changed(states, "probe_up").duration_s / path.rtt_s,
    },
    8: {
        "gain": _gain("pacing_gain", "probe_down"),
        "after": _lowest_headroom,
        "next": _follows("probe_down", "probe_cruise"),
    },
    9: {
        "before": _inflight_before_end("probe_down"),
        "wait": lambda states, _: _changed(states, "probe_down").duration_s,
        "next": _follows("probe_down", "probe_refill"),
    },
    10: {
        "interval": _probe_rtt_interval,
        "gain": _gain("cwnd_gain", "probe_rtt"),
        "inflight": _probe_rtt_inflight,
        "time": _probe_rtt_ms,
        "rounds": _rounds("probe_rtt"),
        "next": _follows("probe_rtt", *CYCLE),
        "rate": _resumes,
    },
    11: {
        "idle": _idle_s,
        "restart": lambda states, _: _percent(
            states.within("idle_restart", states.change_s + 5, states.phases[-1].end_s).any()
        ),
        "skips": lambda states, _: _percent(
            all(each.name != "probe_rtt" for each in states.phases)
        ),
    },
    12: {
        "extra": _extra_acked("startup"),
        "cwnd": _largest_window_in_startup,
        "max_bw": _max_bw_after_startup,
    },
    13: {
        "extra": _extra_acked("probe_cruise"),
        "cwnd": _window_with_extra,
        "rate": _utilisation("probe_cruise"),
    },
    14: {"cwnd": _smallest_window, "pacing": _pacing, "rate": _goodput},
    15: {
        "growth": _growth_per_round,
        "rounds": _rounds_to_full_bw,
        "max_bw": _final_max_bw(10),
    },
    16: {
        "short": _short_term_bw,
        "cycles": _cycles_to_new_bw,
        "max_bw": _final_max_bw(0.1),
    },
    17: {
        "bounds": _has_short_term_bounds,
        "rate": _goodput,
        "loss": _loss_of_second_half,
    },
    18: {
        "spurious": _spurious("spurious_recoveries"),
        "ended": _follows("probe_up", "probe_down"),
        "bounds": _has_bounds_of_before,
        "resumes": _resumes_probe,
    },
    19: {
        "spurious": _spurious("spurious_timeouts"),
        "ended": _follows("probe_up", "probe_down"),
        "bounds": _has_bounds_of_before,
        "resumes": _resumes_probe,
    },
    20: {
        "enters": _follows("startup", "probe_rtt"),
        "time": _probe_rtt_ms,
        "full": lambda states, _: _percent(not states.table["full_bw_reached"].any()),
        "next": _follows("probe_rtt", "startup"),
    },
    21: {
        "bound": lambda states, _: _percent(
            math.isfinite(states.at("inflight_longterm_pkts", _changed(states, "probe_up").first))
        ),
        "next": _loss_ends_up,
        "ratio": _bound_ratio,
        "target": _bound_of_target,
    },
    22: {
        "limited": _is_limited_in_refill,
        "max_bw": _max_bw_in_refill,
        "next": _follows("probe_refill", "probe_up"),
    },
}
"""The checks of each test case by the names of their lines in the data."""
