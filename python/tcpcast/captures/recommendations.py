"""What to change first for each limit of a direction, and the gain that models predict.

Each function takes the rows with one limit and returns the rest of the advice for each row.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.control import BBR
from tcpcast.captures.predicted_gain import Gains, start_round_trips
from tcpcast.captures.words import digits, mean_rtt, percent, rate, size, time, times

if TYPE_CHECKING:
    from tcpcast.captures.table import Table

    Column = np.ndarray[Any, Any]

WORTH = 1.05
"""Least ratio of the rates after and before for which a change is named."""
STREAMS = 4
"""Number of parallel flows that the advice tries."""
INITIAL_WINDOWS = (10, 32)
"""Initial windows to try, packets: that of RFC 6928, and what large services use."""
FULL_QUEUE = 2.0
"""RTT over its minimum above which the queue is longer than the path needs to stay full."""
MOSTLY_FULL = 0.8
"""Mean rate over that of the full link below which other limits are named."""
FEW_PACKETS = 10
"""Data packets below which a direction is too short to say much about."""
FAST_RETRANSMIT_PKTS = 4
"""A lost packet and three duplicate acks: with fewer in flight every loss ends in an RTO."""
NEEDLESS = 0.5
"""Share of retransmissions that were needless from which on the timer is at fault."""
BEYOND = 2.5
"""Measured rate over a model's above which the model does not describe the sender."""
FEW_LOSSES = 20
"""Loss indications below which chance, or the slow start, decides the rate."""
OUTAGE = 4
"""Consecutive timeouts from which on the path is taken to have been interrupted."""
FREQUENT = 0.1
"""Loss beyond which packets from one to the next have a decimal."""
UNSCALED = 65_535
"""The largest window without scaling, bytes (RFC 7323)."""
MOSTLY_CLOSED = 0.5
"""Bytes sent in an RTT over the largest window; below it a window that closed was mostly
smaller."""
OFTEN_CLOSED = 0.2
"""Closings of the window by round trips from which on the receiver is slow: one that reads 50 kB
every 100 ms has 0.51."""
BEYOND_WINDOW = 1.5
"""The same ratio above which a few long rounds make the mean RTT."""
LONGEST_LEAST_RTO_S = 3.0
"""A first timeout beyond it is no least RTO: the standard's is 1 s (RFC 6298), initial ones 3 s."""


def application(gains: Gains) -> list[str]:
    """Name the rate that the network would have carried."""
    table = gains.table
    model = gains.pftk_pps() * table["segment_bytes"] * 8
    rtt = np.where(table["rtt_mean_s"] > 0, table["rtt_mean_s"], np.nan)
    window = 8 * table["window_max_bytes"] / rtt
    most = gains.most_bps
    ends = []
    for at, now in enumerate(table["throughput_bps"].tolist()):
        end = ". The network is not the limit: make the sender write sooner or in larger pieces"
        if table["tap_side"][at] == "unknown":
            end = f", if the tap is at the sender; at other taps losses look the same{end}"
        by_loss, by_window = min(model[at], most[at]), min(window[at], most[at])
        if by_loss > WORTH * now:
            end += f". With data always available PFTK allows {rate(by_loss)}"
        elif not gains.fed[at] and by_window > WORTH * now and table["window_max_bytes"][at] > 0:
            why = "Nothing was lost" if gains.lossless[at] else "No model of loss applies"
            end += f". {why}: a window per RTT allows up to {rate(by_window)}"
        ends.append(end + ".")
    return ends


def receiver_window(gains: Gains) -> list[str]:
    """Say how large the receive buffer should be."""
    largest = gains.table["window_max_bytes"]
    now = np.maximum(largest / np.maximum(gains.table["segment_bytes"], 1), 1.0)
    before = gains.pftk_pps(receiver_window_pkts=np.fmin(gains.inputs["receiver_window_pkts"], now))
    ends = _larger_window(
        gains,
        largest,
        ("the receive window", "SO_RCVBUF", "tcp_rmem"),
        gains.pftk_pps(receiver_window_pkts=np.inf) / before,
    )
    closed = gains.table["zero_windows"]
    often = closed * gains.table["rtt_mean_s"] >= OFTEN_CLOSED * gains.table["duration_s"]
    smaller = _in_an_rtt(gains) < MOSTLY_CLOSED * largest
    slow = (closed > 0) & (often | smaller) | (largest < 1)
    return [_reader(gains.table, at) if slow[at] else end for at, end in enumerate(ends)]


def _in_an_rtt(gains: Gains) -> Column:
    """Return the bytes sent in an RTT."""
    return np.asarray(gains.table["throughput_bps"] * gains.table["rtt_mean_s"] / 8)


def _reader(table: Table, at: int) -> str:
    """Say that the receiving application is slow: its buffer fills, however large it is."""
    closed = int(table["zero_windows"][at])
    often = f", and closed {'once' if closed == 1 else f'{closed:,} times'}" if closed else ""
    seen = [
        f"{count:,} {name}{'' if count == 1 else 's'}"
        for name, count in (
            ("window probe", int(table["zero_window_probes"][at])),
            ("window update", int(table["window_updates"][at])),
        )
        if count
    ]
    updates = f" ({', '.join(seen)})" if seen else ""
    return (
        f". It was mostly smaller than its largest value{often}{updates}. First make the receiving "
        "application read faster: a larger buffer fills up, too."
    )


def send_buffer(gains: Gains) -> list[str]:
    """Say how large the send buffer should be."""
    largest = gains.table["flight_max_bytes"]
    now = np.maximum(largest / np.maximum(gains.table["segment_bytes"], 1), 1.0)
    factor = 1 / gains.pftk(receiver_window_pkts=now)
    keys = ("the sender's window", "SO_SNDBUF", "tcp_wmem")
    return _larger_window(gains, largest, keys, factor)


def _larger_window(
    gains: Gains, largest: Column, keys: tuple[str, str, str], factor: Column
) -> list[str]:
    """Say to what a window of ``largest`` bytes should be raised: as loss or the link allows.

    ``keys`` are its name, the socket option that sets it, of which Linux makes a buffer of twice
    the size, and the key of Linux that limits this buffer.
    """
    window, option, key = keys
    how = f"by {option}, or {key} of twice as much"
    table = gains.table
    by_loss, by_link = gains.window_for_loss_bytes(), gains.window_for_link_bytes()
    scaling = table["syn_captured"] & np.isnan(table["window_scale"])
    uneven = _in_an_rtt(gains) > BEYOND_WINDOW * largest
    ends = []
    for at, now in enumerate(table["throughput_bps"].tolist()):
        link, loss = gains.most_bps[at], now * factor[at]
        start = f": {size(largest[at])}"
        if uneven[at]:
            ends.append(
                f"{start}. First raise {window}, {how}. The RTT varies too much for a model."
            )
            continue
        if not (now > 0 and table["rtt_mean_s"][at] > 0):
            ends.append(f"{start}. First raise {window}, {how}.")
            continue
        start += f" in an RTT of {mean_rtt(table, at)}"
        first = loss <= link  # else the link, or neither is known
        goal, needed = (loss, by_loss[at]) if first else (link, by_link[at])
        if not math.isfinite(goal):
            ends.append(
                f"{start}. First raise {window}, {how}: "
                f"{'nothing was lost' if gains.lossless[at] else 'no model of loss applies'} "
                "and the link was never full, so twice the window gives twice the rate, "
                f"{rate(2 * now)}."
            )
        elif goal <= WORTH * now or not needed > largest[at]:
            why = (
                "loss allows no more, by PFTK"
                if first
                else f"the link carries at most {rate(link)}"
            )
            ends.append(f"{start}. A larger one alone does not raise the rate: {why}.")
        else:
            why = "loss is the limit, by PFTK" if first else "the link is full"
            end = f"{start}. First raise {window} to at least {size(needed)}, {how}: then {why}, "
            end += f"at {rate(goal)}"
            if needed > UNSCALED and scaling[at]:
                end += "; this needs window scaling, which is off"
            ends.append(end + ".")
    return ends


def slow_start(gains: Gains) -> list[str]:
    """Predict the gain of a larger initial window by the model of short transfers."""
    table = gains.table
    full = np.maximum(table["segment_bytes"], 1)
    sizes = np.maximum(np.ceil(table["unique_bytes"] / full), 1).astype(np.int64)
    windows = np.nan_to_num(table["initial_window_pkts"], nan=INITIAL_WINDOWS[0])
    most = np.maximum(gains.inputs["receiver_window_pkts"], 1.0)
    rtt = gains.inputs["rtt_s"]
    ends = []
    for at, packets in enumerate(sizes.tolist()):
        first = max(int(windows[at]), 1)
        larger = next((window for window in INITIAL_WINDOWS if window > first), first)
        before, after = (start_round_trips(packets, w, float(most[at])) for w in (first, larger))
        all_of_it = "one packet in all" if packets == 1 else f"{packets:,} packets in all"
        began = math.isfinite(table["initial_window_pkts"][at])
        end = f": {all_of_it}{f', initial window {first}' if began else ''}. "
        if after < before:
            each = f" of {mean_rtt(table, at)}" if rtt[at] > 0 else ""
            end += (
                f"First raise the initial window to {larger}: {before} round trips{each} become "
                f"{after}, by the model of short transfers; or keep"
            )
        else:
            end += "Keep"
        ends.append(end + " one connection for several transfers.")
    return ends


def congestion_window(gains: Gains) -> list[str]:
    """Predict the gains of less loss, more flows and a shorter RTT."""
    return _less_loss(gains, [""] * gains.fed.size)


def loss_recovery(gains: Gains) -> list[str]:
    """Say the same, and that SACK repairs several losses in one round trip."""
    without = gains.table["syn_captured"] & ~gains.table["sack"]
    sack = " First turn SACK on: without it a round trip repairs one loss."
    return _less_loss(gains, [sack if each else "" for each in without.tolist()])


def _less_loss(gains: Gains, before: list[str]) -> list[str]:
    """Predict the gain of less loss; ``before`` is what to change before that."""
    p, rtt = gains.inputs["loss_indication_ratio"], gains.inputs["rtt_s"]
    half = gains.loss_limited(loss_indication_ratio=p / 2)
    near = gains.loss_limited(rtt_s=rtt / 2)
    many, by_n_times = gains.several_flows(STREAMS)
    most = gains.most_bps / np.maximum(gains.table["throughput_bps"], 1e-9)
    too_much = np.fmax(np.fmax(half, near), many) > most
    gained, beyond = gains.after(half), gains.beyond_model()
    ends = []
    for at, start in enumerate(before):
        if not gains.fed[at]:
            ends.append(_no_loss(gains, at))
            continue
        every = digits(1 / p[at], 2) if p[at] > FREQUENT else f"{1 / p[at]:,.0f}"
        end = f", one loss indication per {every} packets.{start}"
        model = "CUBIC's response" if gains.cubic[at] else "PFTK"
        if gains.table["looks_like"][at] == BBR:
            end += _follows_the_path(gains, at)
        elif gained[at] < WORTH * gains.table["throughput_bps"][at]:
            full = gains.most_bps[at]
            why = f"the link, {rate(full)}," if math.isfinite(full) else "the receiver's window"
            end += f" Less loss alone does not raise the rate: {why} is the limit."
        elif beyond[at] > BEYOND:
            end += _beyond(gains, at, model, beyond[at])
        else:
            end += (
                f" {'Then' if start else 'First'} reduce loss: half the loss gives "
                f"{times(min(half[at], most[at]))} the rate by {model}, {rate(gained[at])}; half "
                f"the RTT {times(min(near[at], most[at]))}; {STREAMS} parallel flows "
                f"{times(min(many[at], most[at]))} by "
                f"{'n times PFTK' if by_n_times[at] else 'algorithm 1'}"
                f"{': the link is the limit' if too_much[at] else ''}."
            )
        ends.append(end)
    return ends


def _follows_the_path(gains: Gains, at: int) -> str:
    """Say that losses do not set BBR's rate, and how much of the link it has."""
    link = gains.most_bps[at]
    share = gains.table["throughput_bps"][at] / link
    of_it = f": it has {percent(min(share, 1.0))} of the link, {rate(link)}" if share > 0 else ""
    return f" It looks like BBR, whose rate follows the path and hardly its losses{of_it}."


def _beyond(gains: Gains, at: int, model: str, factor: float) -> str:
    """Say that a model does not describe what was measured; predict no gain by it."""
    few = gains.table["td"][at] + gains.table["to"][at] < FEW_LOSSES
    why = "so few losses" if few else "a sender that reduces its window so little (BBR?)"
    return f" The measured rate is {times(factor)} that of {model}: no model here describes {why}."


def _no_loss(gains: Gains, at: int) -> str:
    if not gains.lossless[at]:
        again = int(gains.table["retransmissions"][at])
        return (
            f". The capture has {again:,} retransmission{'' if again == 1 else 's'}, but no loss "
            "indication, RTT or window for a model. A longer capture shows more."
        )
    if gains.table["ecn_echoes"][at] > 0:
        return ". Nothing was lost, but the path marked packets (ECN). First look at its queue."
    return (
        ". Nothing was lost in the capture, so models of loss do not apply. First look at the "
        "sender: its congestion control, its pacing, or a cached ssthresh."
    )


def timeout(gains: Gains) -> list[str]:
    """Say what to change first to have fewer or shorter timeouts."""
    table = gains.table
    t0, rtt = gains.inputs["t0_s"], gains.inputs["rtt_s"]
    shorter = rtt + np.minimum(t0 - rtt, 0.2)
    quick = gains.pftk(t0_s=np.where(gains.fed, shorter, 1.0))
    none = gains.without_timeouts()
    half = gains.pftk(loss_indication_ratio=gains.inputs["loss_indication_ratio"] / 2)
    flight = table["flight_mean_bytes"] / np.maximum(table["segment_bytes"], 1)
    needless = table["spurious_dsack"] + table["spurious_eifel"]
    ends = []
    for at, count in enumerate(table["timeouts"].tolist()):
        end = f": {count:,} timeout{'' if count == 1 else 's'}"
        if table["t0_s"][at] > 0:
            end += f", T0 = {time(table['t0_s'][at])}"
        end += f", at an RTT of {mean_rtt(table, at)}. First " if rtt[at] > 0 else ". First "
        rid = _gives(gains, at, none[at], "without timeouts")
        if table["max_backoff"][at] >= OUTAGE:
            end += (
                f"find what interrupts the path: up to {table['max_backoff'][at]} consecutive "
                "timeouts are an outage, which no timer repairs"
            )
        elif needless[at] > NEEDLESS * table["retransmissions"][at]:
            end += "lengthen the RTO or use F-RTO: most retransmissions were needless" + rid
        elif table["syn_captured"][at] and not table["sack"][at]:
            end += "turn SACK on, and RACK-TLP with it: they detect losses without an RTO" + rid
        elif t0[at] > LONGEST_LEAST_RTO_S:
            end += "find out why the RTO is so long: no sender has so large a minimum RTO"
        elif quick[at] > WORTH:
            end += f"shorten the RTO: RTT + 200 ms, as in Linux, is {time(shorter[at])}"
            end += _gives(gains, at, quick[at], "then")
        elif flight[at] < FAST_RETRANSMIT_PKTS:
            end += (
                f"get more in flight than {max(flight[at], 1):.1f} packets, too few for three "
                "duplicate acks: limited transmit, early retransmit or tail loss probes" + rid
            )
        else:
            end += "reduce loss" + _gives(gains, at, half[at], "with half the loss")
        ends.append(end + ".")
    return ends


def _gives(gains: Gains, at: int, factor: float, when: str) -> str:
    """Return the gain that PFTK predicts of a change, if it is worth naming."""
    if not factor > WORTH:
        return ""
    after = min(float(gains.table["throughput_bps"][at]) * factor, float(gains.most_bps[at]))
    return f"; {when} PFTK gives {times(factor)} the rate, {rate(after)}"


def bottleneck(gains: Gains) -> list[str]:
    """Say that only a faster link raises the rate, and whether its queue is too long."""
    table, least = gains.table, gains.rtt_min_s
    seen = np.where(np.isfinite(gains.most_bps), gains.most_bps, table["throughput_bps"])
    ends = []
    for at, full in enumerate(seen.tolist()):
        end = (f" at {rate(full)}" if full > 0 else "") + ". Only a faster link raises the rate"
        mean = float(table["throughput_bps"][at])
        if mean < MOSTLY_FULL * full:
            end += f". The mean rate was {rate(mean)}: other limits account for the rest"
        queue = float(table["rtt_mean_s"][at] / least[at]) if least[at] > 0 else math.nan
        if queue >= FULL_QUEUE:
            end += (
                f". Its queue makes the mean RTT {times(queue)} the minimum, "
                f"{mean_rtt(table, at)} instead of {time(least[at])}. A smaller buffer "
                "or "
                "AQM (fq_codel) avoids that and costs hardly any rate"
            )
        ends.append(end + ".")
    return ends


def unknown(gains: Gains) -> list[str]:
    """Say which capture would show the limit."""
    table = gains.table
    ends = []
    sides, sent = table["tap_side"].tolist(), table["data_packets"].tolist()
    for at, (side, packets) in enumerate(zip(sides, sent, strict=True)):
        if packets < FEW_PACKETS:
            count = "one data packet is" if packets == 1 else f"{packets} data packets are"
            ends.append(f". {count[0].upper()}{count[1:]} too few to tell.")
        elif table["acks"][at] == 0 and table["flight_max_bytes"][at] == 0:
            again = int(table["retransmissions"][at])
            ends.append(
                f". Its acknowledgements are missing from the capture. {again:,} of {packets:,} "
                "packets are retransmissions. Capture both directions."
            )
        elif side != "sender":
            ends.append(". A capture at the sender shows what the sender waits for.")
        else:
            ends.append(". A longer capture with the handshake shows more.")
    return ends
