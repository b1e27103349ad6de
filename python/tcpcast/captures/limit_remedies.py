"""Recommendations for each limit of a direction, with the gain predicted by models.

Each function receives the directions with one limit, and returns a :class:`Remedy` for each.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tcpcast.captures.cause_rules import MIN_OUTAGE_TIMEOUTS
from tcpcast.captures.congestion_control import BBR, MIN_LOSS_INDICATIONS
from tcpcast.captures.predicted_gain import GainPredictor, lossless_round_trips
from tcpcast.captures.quantity_text import (
    format_digits,
    format_percent,
    format_rate,
    format_size_rounded_up,
    format_time,
    format_times,
    mean_rtt_text,
    sentence_case,
)
from tcpcast.captures.table import is_tap_away
from tcpcast.quantity.readable_units import count_text

if TYPE_CHECKING:
    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

MIN_GAIN = 1.05
"""Minimum ratio of predicted to current rate for which a change is recommended."""
PARALLEL_FLOWS = 4
"""Number of parallel flows in predictions."""
RECOMMENDED_INITIAL_WINDOWS_PKTS = (10, 32)
"""Recommended initial windows in packets: RFC 6928, and a value used by large services."""
MIN_LONG_QUEUE_RTT_RATIO = 2.0
"""Ratio of RTT to minimum RTT above which the queue is unnecessarily long."""
MIN_FULL_LINK_SHARE = 0.8
"""Ratio of mean rate to link rate below which other limits are mentioned."""
MIN_PACKETS_FOR_CONCLUSION = 10
"""Number of data packets below which a direction is too short for a conclusion."""
FAST_RETRANSMIT_PKTS = 4
"""Minimum packets in flight for a fast retransmit: a lost packet and three duplicate acks."""
MIN_SPURIOUS_SHARE = 0.5
"""Minimum share of unnecessary retransmissions for the advice that the RTO is too short."""
MAX_MEASURED_TO_MODEL_RATIO = 2.5
"""Ratio of the measured to the predicted rate above which the model does not apply."""
FREQUENT_LOSS_RATIO = 0.1
"""Loss ratio above which the mean number of packets between losses is shown with a decimal."""
MAX_UNSCALED_WINDOW_BYTES = 65_535
"""Maximum window without scaling in bytes (RFC 7323)."""
MOSTLY_CLOSED_WINDOW_RATIO = 0.5
"""If a window reached zero, and the sender sent less than this share of the largest window per RTT,
the window was mostly smaller than its maximum."""
MAX_SMALL_WINDOW_RATIO = 0.25
"""Share of the largest window sent per RTT below which a window was mostly smaller, if the sender
waited for it. Its announced value need not reach zero: the sender leaves the last bytes of a window
unused that do not fill a packet."""
MIN_WAITING_SHARE = 0.02
"""Minimum share of the time in which the sender waited for such a window."""
MIN_ZERO_WINDOWS_PER_RTT = 0.2
"""Minimum number of zero windows per round trip that indicates a slow receiver. A receiver that
reads 50 kB every 100 ms causes 0.51."""
MAX_BYTES_PER_RTT_TO_WINDOW = 1.5
"""Ratio of bytes sent per RTT to the largest window, above which a few long rounds dominate the
mean RTT."""
MAX_PLAUSIBLE_MIN_RTO_S = 3.0
"""Largest plausible minimum RTO in seconds. RFC 6298 has a minimum of 1 s, and 3 s as initial
RTO."""


class Remedy(NamedTuple):
    """Advice on a direction; the caller prepends the name of the limit.

    ``evidence`` ends the phrase that names the limit, and ``rest`` has all following text.
    ``action`` is the recommendation in ``rest`` as a separate clause: what to change first, or
    that no change helps; "" if there is no recommendation.
    """

    evidence: str
    rest: str
    action: str = ""


UNKNOWN_TAP_REMARK = " (if the tap is not at the sender, the limit may be loss instead)"
WRITE_EARLIER = "make the sender write earlier or in larger blocks"
ENABLE_SACK = "enable SACK"
FASTER_LINK = "only a faster link increases the rate"


def remedies_for_application(gains: GainPredictor) -> list[Remedy]:
    """Return the advice for idle senders, with the rate that the network would have allowed."""
    table = gains.table
    model = gains.pftk_pps() * table["segment_bytes"] * 8
    rtt = np.where(table["rtt_mean_s"] > 0, table["rtt_mean_s"], np.nan)
    window = 8 * table["window_max_bytes"] / rtt
    most = gains.max_rate_bps
    ends = []
    for at, now in enumerate(table["throughput_bps"].tolist()):
        end = f". The network is not the limit. First {WRITE_EARLIER}"
        by_loss, by_window = min(model[at], most[at]), min(window[at], most[at])
        if by_loss > MIN_GAIN * now:
            end += (
                f". If data were always available, the rate would be {format_rate(by_loss)} (PFTK)"
            )
        elif (
            not gains.has_inputs[at]
            and by_window > MIN_GAIN * now
            and table["window_max_bytes"][at] > 0
        ):
            why = "No packet was lost" if gains.is_lossless[at] else "No model of loss applies"
            end += f". {why}. The receiver window allows up to {format_rate(by_window)}"
        unsure = UNKNOWN_TAP_REMARK if table["tap_side"][at] == "unknown" else ""
        ends.append(Remedy(unsure, end + ".", WRITE_EARLIER))
    return ends


def remedies_for_receiver_window(gains: GainPredictor) -> list[Remedy]:
    """Return the advice on the receive buffer."""
    largest = gains.table["window_max_bytes"]
    now = np.maximum(largest / np.maximum(gains.table["segment_bytes"], 1), 1.0)
    before = gains.pftk_pps(receiver_window_pkts=np.fmin(gains.inputs["receiver_window_pkts"], now))
    ends = _larger_window_advice(
        gains,
        largest,
        ("the receiver window", "SO_RCVBUF", "tcp_rmem"),
        gains.pftk_pps(receiver_window_pkts=np.inf) / before,
    )
    slow = has_slow_reader(gains)
    return [
        _slow_reader_advice(gains.table, at) if slow[at] else end for at, end in enumerate(ends)
    ]


def has_slow_reader(gains: GainPredictor) -> Column:
    """Return a mask of rows with a receiving application that is too slow for any buffer size."""
    closed, largest = gains.table["zero_windows"], gains.table["window_max_bytes"]
    often = (
        closed * gains.table["rtt_mean_s"] >= MIN_ZERO_WINDOWS_PER_RTT * gains.table["duration_s"]
    )
    smaller = _bytes_per_rtt(gains) < MOSTLY_CLOSED_WINDOW_RATIO * largest
    small = (_bytes_per_rtt(gains) < MAX_SMALL_WINDOW_RATIO * largest) & (
        gains.table["window_closed_s"] >= MIN_WAITING_SHARE * gains.table["duration_s"]
    )
    always = (largest < 1) & (closed >= 0)  # a log of another program has no count
    return np.asarray((closed > 0) & (often | smaller) | (closed == 0) & small | always)


def _bytes_per_rtt(gains: GainPredictor) -> Column:
    """Return the bytes sent per RTT."""
    return np.asarray(gains.table["throughput_bps"] * gains.table["rtt_mean_s"] / 8)


def _slow_reader_advice(table: Table, at: int) -> Remedy:
    """Return the advice on a slow receiving application."""
    closed, duration = int(table["zero_windows"][at]), float(table["window_closed_s"][at])
    found = ""
    if closed:
        found = ": it was closed once" if closed == 1 else f": it was closed {closed:,} times"
        if duration > 0:
            found += f", for {format_time(duration)}{' in total' if closed > 1 else ''}"
        seen = [
            count_text(count, name)
            for name, count in (
                ("window probe", int(table["zero_window_probes"][at])),
                ("window update", int(table["window_updates"][at])),
            )
            if count
        ]
        found += f"; the capture contains {' and '.join(seen)}" if seen else ""
    action = "make the receiving application read faster"
    why = (
        "The receiving application did not read its data in time"
        if closed
        else "The window was mostly smaller than its maximum"
    )
    return Remedy(
        found,
        f". {why}. First {action}; a larger buffer would also fill up.",
        f"{action}, because a larger buffer would also fill up",
    )


SEND_BUFFER_KEYS = ("SO_SNDBUF", "tcp_wmem")
"""Socket option and Linux setting of the send buffer."""


def buffer_setting_text(option: str, key: str) -> str:
    """Return how to set a buffer for a new window; Linux doubles the value of the option."""
    return f"Set {option} to the new window, or {key} to twice the new window."


def remedies_for_send_buffer(gains: GainPredictor) -> list[Remedy]:
    """Return the advice on the send buffer."""
    largest = gains.table["flight_max_bytes"]
    now = np.maximum(largest / np.maximum(gains.table["segment_bytes"], 1), 1.0)
    factor = 1 / gains.pftk_gain(receiver_window_pkts=now)
    keys = ("the send buffer", *SEND_BUFFER_KEYS)
    return _larger_window_advice(gains, largest, keys, factor)


def _larger_window_advice(
    gains: GainPredictor, largest: Column, keys: tuple[str, str, str], factor: Column
) -> list[Remedy]:
    """Return the advice to raise a window above ``largest`` bytes, as far as loss or link allow.

    ``keys`` holds the name of the window, the socket option of the buffer (Linux doubles its
    value), and the Linux setting that limits the buffer.
    """
    window, option, key = keys
    how = buffer_setting_text(option, key)
    table = gains.table
    by_loss, by_link = gains.window_for_loss_bytes(), gains.window_for_link_bytes()
    scaling = table["syn_captured"] & np.isnan(table["window_scale"])
    uneven = _bytes_per_rtt(gains) > MAX_BYTES_PER_RTT_TO_WINDOW * largest
    ends = []
    for at, now in enumerate(table["throughput_bps"].tolist()):
        link, loss = gains.max_rate_bps[at], now * factor[at]
        start, raised = f": {format_size_rounded_up(largest[at])}", f"raise {window}"
        if uneven[at]:
            more = "The RTT varies too much for a prediction."
            ends.append(Remedy(start, f". First {raised}. {how} {more}", raised))
            continue
        # At an unknown tap, the RTT of the path is unknown.
        has_rtt = table["rtt_mean_s"][at] > 0 and table["tap_side"][at] != "unknown"
        if not (now > 0 and has_rtt):
            ends.append(Remedy(start, f". First {raised}. {how}", raised))
            continue
        start += f" per RTT of {mean_rtt_text(table, at)}"
        is_loss = loss <= link  # otherwise the link is the next limit, or both are unknown
        goal, needed = (loss, by_loss[at]) if is_loss else (link, by_link[at])
        if not math.isfinite(goal):
            gain = f"doubling the window doubles the rate ({format_rate(2 * now)})"
            text = (
                f". First {raised}. {how} "
                f"{'No packet was lost' if gains.is_lossless[at] else 'No model of loss applies'} "
                f"and the link was never full, so {gain}."
            )
            raised += f", because {gain}"
        elif goal <= MIN_GAIN * now or not needed > largest[at]:
            why = (
                "according to PFTK, loss is the limit"
                if is_loss
                else f"the link carries at most {format_rate(link)}"
            )
            raised = "a larger window alone does not increase the rate"
            text = f". {raised.capitalize()}: {why}."
        else:
            why = "loss is the limit (PFTK)" if is_loss else "the link is full"
            raised += f" to at least {format_size_rounded_up(needed)}"
            gain = f"then the rate is {format_rate(goal)}, and {why}"
            text = f". First {raised}. {how} {sentence_case(gain)}."
            raised += f"; {gain}"
            if needed > MAX_UNSCALED_WINDOW_BYTES and scaling[at]:
                text += " A window of this size needs window scaling, which is off."
        ends.append(Remedy(start, text, raised))
    return ends


def remedies_for_slow_start(gains: GainPredictor) -> list[Remedy]:
    """Return the advice on short transfers, with the gain of a larger initial window."""
    table = gains.table
    full = np.maximum(table["segment_bytes"], 1)
    sizes = np.maximum(np.ceil(table["unique_bytes"] / full), 1).astype(np.int64)
    windows = np.nan_to_num(table["initial_window_pkts"], nan=RECOMMENDED_INITIAL_WINDOWS_PKTS[0])
    most = np.maximum(gains.inputs["receiver_window_pkts"], 1.0)
    rtt = gains.inputs["rtt_s"]
    ends = []
    for at, packets in enumerate(sizes.tolist()):
        first = max(int(windows[at]), 1)
        larger = next(
            (window for window in RECOMMENDED_INITIAL_WINDOWS_PKTS if window > first), first
        )
        before, after = (lossless_round_trips(packets, w, float(most[at])) for w in (first, larger))
        total = "one packet in total" if packets == 1 else f"{packets:,} packets in total"
        known = math.isfinite(table["initial_window_pkts"][at])
        start = f": {total}{f' with an initial window of {first}' if known else ''}"
        action = "use one connection for several transfers"
        if after < before:
            each = f" of {mean_rtt_text(table, at)}" if rtt[at] > 0 else ""
            raised = f"raise the initial window to {larger}"
            action = f"{raised} or {action}"
            end = (
                f". First {action}. According to the model of short transfers, the larger window "
                f"reduces {before} round trips{each} to {after}."
            )
        else:
            end = f". {sentence_case(action)}."
        ends.append(Remedy(start, end, action))
    return ends


def remedies_for_congestion_window(gains: GainPredictor) -> list[Remedy]:
    """Return the predicted gains of less loss, more flows and a shorter RTT."""
    return _less_loss_advice(gains, [""] * gains.has_inputs.size)


def remedies_for_loss_recovery(gains: GainPredictor) -> list[Remedy]:
    """Return :func:`remedies_for_congestion_window` with the advice to enable SACK if it is off."""
    without = gains.table["syn_captured"] & ~gains.table["sack"]
    sack = f" First {ENABLE_SACK}: without SACK, TCP retransmits one lost packet per round trip."
    return _less_loss_advice(gains, [sack if each else "" for each in without.tolist()])


def _less_loss_advice(gains: GainPredictor, before: list[str]) -> list[Remedy]:
    """Return the predicted gain of less loss; ``before`` holds advice with a higher priority."""
    p, rtt = gains.inputs["loss_indication_ratio"], gains.inputs["rtt_s"]
    half = gains.loss_model_gain(loss_indication_ratio=p / 2)
    near = gains.loss_model_gain(rtt_s=rtt / 2)
    many, by_n_times = gains.parallel_flows_gain(PARALLEL_FLOWS)
    most = gains.max_rate_bps / np.maximum(gains.table["throughput_bps"], 1e-9)
    too_much = np.fmax(np.fmax(half, near), many) > most
    gained, beyond = gains.rate_after_gain_bps(half), gains.measured_to_model_ratio()
    ends = []
    for at, start in enumerate(before):
        if not gains.has_inputs[at]:
            ends.append(_advice_without_loss_indications(gains, at))
            continue
        every = format_digits(1 / p[at], 2) if p[at] > FREQUENT_LOSS_RATIO else f"{1 / p[at]:,.0f}"
        model = "CUBIC's response function" if gains.is_cubic[at] else "PFTK"
        if gains.table["looks_like"][at] == BBR:
            action, end = _bbr_loss_texts(gains, at)
        elif gained[at] < MIN_GAIN * gains.table["throughput_bps"][at]:
            full = gains.max_rate_bps[at]
            why = (
                f"the link ({format_rate(full)})"
                if math.isfinite(full)
                else "the receiver's window"
            )
            action = "less loss alone does not increase the rate"
            end = f" {action.capitalize()}: {why} is the limit."
        elif beyond[at] > MAX_MEASURED_TO_MODEL_RATIO:
            action, end = _inapplicable_model_texts(gains, at, model, beyond[at])
        else:
            gain = f"half the loss gives {format_times(min(half[at], most[at]))} the rate"
            action = f"reduce loss: according to {model}, {gain}"
            end = (
                f" {'Then' if start else 'First'} reduce loss. According to {model}, {gain} "
                f"({format_rate(gained[at])}), and half the RTT gives "
                f"{format_times(min(near[at], most[at]))} the rate. According to "
                f"{'n times PFTK' if by_n_times[at] else 'the model of parallel flows'}, "
                f"{PARALLEL_FLOWS} parallel flows give {format_times(min(many[at], most[at]))} the "
                "rate."
                f"{' The link limits at least one of these rates.' if too_much[at] else ''}"
            )
        seen = f", with one loss indication per {every} packets"
        ends.append(Remedy(seen, f".{start}{end}", ENABLE_SACK if start else action))
    return ends


def _bbr_loss_texts(gains: GainPredictor, at: int) -> tuple[str, str]:
    """Return statements that losses hardly affect BBR: one without and one with its link share."""
    link = gains.max_rate_bps[at]
    share = gains.table["throughput_bps"][at] / link
    used = (
        f". The mean rate is {format_percent(min(share, 1.0))} of the link rate "
        f"({format_rate(link)})"
        if share > 0
        else ""
    )
    action = "the sender behaves like BBR, whose rate hardly depends on losses"
    return action, f" {sentence_case(action)}{used}."


def _inapplicable_model_texts(
    gains: GainPredictor, at: int, model: str, factor: float
) -> tuple[str, str]:
    """Return two statements that the model does not apply: a short one, and one with the reason."""
    few = gains.table["td"][at] + gains.table["to"][at] < MIN_LOSS_INDICATIONS
    why = (
        "the capture contains too few losses"
        if few
        else ("losses hardly reduce the window of this sender, which may use BBR")
    )
    action = f"no model applies, because {why}"
    end = f". The measured rate is {format_times(factor)} the rate predicted by {model}."
    return action, f" {sentence_case(action)}{end}"


def _advice_without_loss_indications(gains: GainPredictor, at: int) -> Remedy:
    if not gains.is_lossless[at]:
        again = int(gains.table["retransmissions"][at])
        longer = "take a longer capture"
        return Remedy(
            "",
            f". The capture contains {count_text(again, 'retransmission')}, but not "
            f"the loss indications, RTT and window that a model needs. {longer.capitalize()}.",
            longer,
        )
    if gains.table["ecn_echoes"][at] > 0:
        return Remedy(
            "",
            ". No packet was lost, but a queue marked packets (ECN). First check this queue.",
            "check the queue that marked packets (ECN), because no packet was lost",
        )
    sender = "check the congestion control, the pacing, or a cached ssthresh of the sender"
    return Remedy(
        "",
        f". No packet was lost in the capture, so models of loss do not apply. First {sender}.",
        f"{sender}, because no packet was lost",
    )


def remedies_for_timeout(gains: GainPredictor) -> list[Remedy]:
    """Return the advice for fewer or shorter timeouts."""
    table = gains.table
    t0, rtt = gains.inputs["t0_s"], gains.inputs["rtt_s"]
    shorter = rtt + np.minimum(t0 - rtt, 0.2)
    quick = gains.pftk_gain(t0_s=np.where(gains.has_inputs, shorter, 1.0))
    none = gains.gain_without_timeouts()
    half = gains.pftk_gain(loss_indication_ratio=gains.inputs["loss_indication_ratio"] / 2)
    flight = table["flight_mean_bytes"] / np.maximum(table["segment_bytes"], 1)
    needless = table["spurious_dsack"] + table["spurious_eifel"]
    ends = []
    for at, count in enumerate(table["timeouts"].tolist()):
        start = f": {count_text(count, 'timeout')}"
        if table["t0_s"][at] > 0:
            start += f", mean first timeout {format_time(table['t0_s'][at])}"
        start += f", mean RTT {mean_rtt_text(table, at)}" if rtt[at] > 0 else ""
        end = _gain_sentence(gains, at, none[at], "Without timeouts")
        deep = table["max_backoff"][at]
        if deep >= MIN_OUTAGE_TIMEOUTS or (deep > 1 and count >= 2 * table["to"][at]):
            action = "find the cause of the outage"
            end = (
                f": up to {deep} consecutive timeouts occurred. No setting of a timer prevents them"
            )
        elif needless[at] > MIN_SPURIOUS_SHARE * table["retransmissions"][at]:
            action = "increase the RTO or use F-RTO"
            end = f": most retransmissions were unnecessary{end}"
        elif table["syn_captured"][at] and not table["sack"][at]:
            action = "enable SACK and RACK-TLP"
            end = f", which detect losses without an RTO{end}"
        elif t0[at] > MAX_PLAUSIBLE_MIN_RTO_S:
            action = "find the reason for the long RTO"
            end = ": no common TCP uses such a long minimum RTO"
            if is_tap_away(table)[at]:
                action = "find the cause of the outage"
                end = (
                    ": probably, the sender had retransmitted the same data earlier, and these "
                    "copies were lost before the tap. No setting of a timer prevents this"
                )
        elif quick[at] > MIN_GAIN:
            action = "reduce the RTO"
            end = f": Linux uses RTT + 200 ms, here {format_time(shorter[at])}"
            end += _gain_sentence(gains, at, quick[at], "With this RTO")
        elif flight[at] < FAST_RETRANSMIT_PKTS:
            action = "use limited transmit, early retransmit or tail loss probes"
            end = (
                f", because {max(flight[at], 1):.1f} packets in flight are too few for three "
                f"duplicate acks{end}"
            )
        else:
            action, end = "reduce loss", _gain_sentence(gains, at, half[at], "With half the loss")
        ends.append(Remedy(start, f". First {action}{end}.", action))
    return ends


def _gain_sentence(gains: GainPredictor, at: int, factor: float, when: str) -> str:
    """Return the gain predicted by PFTK for a change, or "" if it is negligible."""
    if not factor > MIN_GAIN:
        return ""
    after = min(float(gains.table["throughput_bps"][at]) * factor, float(gains.max_rate_bps[at]))
    return f". {when}, PFTK predicts {format_times(factor)} the rate ({format_rate(after)})"


def remedies_for_bottleneck(gains: GainPredictor) -> list[Remedy]:
    """Return the advice on a full link, and on its queue if it is too long."""
    table, least = gains.table, gains.rtt_min_s
    seen = np.where(np.isfinite(gains.max_rate_bps), gains.max_rate_bps, table["throughput_bps"])
    ends = []
    for at, full in enumerate(seen.tolist()):
        start, action = (f" at {format_rate(full)}" if full > 0 else ""), FASTER_LINK
        mean = float(table["throughput_bps"][at])
        if mean < MIN_FULL_LINK_SHARE * full:
            action = f"while the link is full, {FASTER_LINK}"
            other = f". The mean rate was only {format_rate(mean)} because of other limits"
        else:
            other = ""
        end = f". {sentence_case(action)}{other}"
        queue = float(table["rtt_mean_s"][at] / least[at]) if least[at] > 0 else math.nan
        if queue >= MIN_LONG_QUEUE_RTT_RATIO:
            end += (
                f". The queue of the link increases the mean RTT to {format_times(queue)} the "
                "minimum "
                f"({mean_rtt_text(table, at)} instead of {format_time(least[at])}). A smaller "
                "buffer or "
                "AQM (fq_codel) shortens the queue and hardly reduces the rate"
            )
        ends.append(Remedy(start, end + ".", action))
    return ends


def remedies_for_unknown(gains: GainPredictor) -> list[Remedy]:
    """Return the advice on a capture that would show the limit."""
    table = gains.table
    ends = []
    sides, sent = table["tap_side"].tolist(), table["data_packets"].tolist()
    complete = (table["retransmissions"] + table["missing_bytes"] == 0) & (table["acks"] > 0)
    at_once = complete & (table["flight_max_bytes"] >= table["unique_bytes"])
    for at, (side, packets) in enumerate(zip(sides, sent, strict=True)):
        if at_once[at]:
            names = {1: "the data packet was", 2: "both data packets were"}
            all_data = names.get(packets, f"all {packets:,} data packets were")
            short = f"{all_data} in flight for one round trip, so no window was a limit"
            ends.append(Remedy("", f". {sentence_case(short)}.", short))
            continue
        if packets < MIN_PACKETS_FOR_CONCLUSION:
            count = "one data packet is" if packets == 1 else f"{packets} data packets are"
            short = f"{count} not enough for a conclusion"
            ends.append(Remedy("", f". {short.capitalize()}.", short))
            continue
        start, end, action = "", "", "take a longer capture that includes the handshake"
        if np.isnan(table["acks"][at]):  # a log of another program
            action = "run ss -tin at the sender during the transfer, or capture there"
        elif table["acks"][at] == 0 and table["flight_max_bytes"][at] == 0:
            again = int(table["retransmissions"][at])
            start = (
                f". The acks are missing from the capture, and {again:,} of {packets:,} packets "
                "are retransmissions"
            )
            action = "capture both directions"
        elif side != "sender":
            action, end = "capture at the sender", " to see the limit"
        ends.append(Remedy("", f"{start}. {action.capitalize()}{end}.", action))
    return ends
