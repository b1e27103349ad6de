"""Latency of a transfer without loss: rounds, full rounds and the delayed-ACK timer."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.models.short.window_growth import ShortTransfer, WindowGrowth, file_sizes


def lossless_latency_s(transfer: ShortTransfer, size_pkts: ArrayLike) -> Floats:
    """Return L_0, the time from sending the first packet to receiving the last ACK, without loss.

    Parameters
    ----------
    transfer
        Sender and path; the handshake is not counted.
    size_pkts
        File sizes in packets, at least 1; any shape.

    Returns
    -------
    ndarray
        Seconds, of the shape of ``size_pkts``. Without ``whole_rounds``, a fraction of a round
        takes a fraction of an RTT. For b = 1 this is exact at the ends of rounds and too low
        between them. With a delayed-ACK timer, ACKs wait while the window is below b. The last ACK
        also waits unless b divides the number of remaining packets. No other waits are counted.

    Raises
    ------
    DomainError
        A size below 1.
    """
    sizes = file_sizes(size_pkts)
    latency = _fluid_latency_s(transfer, sizes) + full_rounds_excess_s(transfer, sizes)
    return np.asarray(latency + _lossless_ack_wait_s(transfer, sizes))


def _fluid_latency_s(transfer: ShortTransfer, sizes: Floats) -> Floats:
    grown = WindowGrowth.from_transfer(
        transfer, transfer.initial_window_pkts, transfer.initial_ssthresh_pkts
    )
    return np.asarray(transfer.rtt_s * grown.rounds_to_send(sizes, grown.window_after(sizes)))


def full_rounds_excess_s(transfer: ShortTransfer, sizes: Floats) -> Floats:
    """Return the additional time of full rounds over fractional ones; 0 without ``whole_rounds``.

    With full rounds, the latency is one RTT for each round of slow start before the last one, the
    transmission of the remaining packets on the link, and one RTT for the last packet. The link is
    always busy once the window reaches a bandwidth-delay product.
    """
    if not transfer.whole_rounds or not sizes.size:
        return np.zeros_like(sizes)
    max_window, rtt = transfer.max_window_pkts, transfer.rtt_s
    window = min(float(transfer.initial_window_pkts), max_window)
    left, before = np.array(sizes), np.zeros_like(sizes)
    while window < max_window and np.any(left > window):
        on = left > window
        left, before = np.where(on, left - window, left), before + np.where(on, rtt, 0.0)
        window = min(2 * window, max_window)
    if max_window < transfer.link_pps * rtt:  # window-limited: one round per window
        before, left = before + rtt * (np.ceil(left / max_window) - 1), (left - 1) % max_window + 1
    return before + rtt + (left - 1) / transfer.link_pps - _fluid_latency_s(transfer, sizes)


def lossless_rest_latency_s(transfer: ShortTransfer, left: Floats, grown: WindowGrowth) -> Floats:
    """Return L_0 of the remaining packets after a loss.

    The last ACK waits for the timer unless b divides the number of remaining packets: it waits with
    probability (b - 1)/b. If only the retransmission remains, it fills a gap and is acknowledged
    immediately.
    """
    latency = transfer.rtt_s * grown.rounds_to_send(left, grown.window_after(left))
    if transfer.delayed_ack_timer_s is None:
        return latency
    b = transfer.acked_packets
    return latency + np.where(left > 1, transfer.delayed_ack_timer_s * (b - 1) / b, 0.0)


def after_timeout_latency_s(transfer: ShortTransfer, left: Floats, half_window: Floats) -> Floats:
    """Return L_0 of the remaining packets after a timeout, from a window of 1 with W_SS given."""
    grown = WindowGrowth.from_transfer(transfer, np.ones_like(left), np.maximum(half_window, 2.0))
    return lossless_rest_latency_s(transfer, left, grown)


def _timer_delayed_first_acks(transfer: ShortTransfer, max_window: float) -> list[int]:
    """Return the total acknowledged packets at each of the first ACKs, which wait for the timer.

    ACKs wait while the window is below b, because no ACK covers b packets.
    """
    acks: list[int] = []
    window, total = int(transfer.initial_window_pkts), 0
    while (
        window < min(transfer.acked_packets, transfer.receiver_window_pkts) and total < max_window
    ):
        acks.append(total := total + window)
        window += 1
    return acks


def _lossless_ack_wait_s(transfer: ShortTransfer, size: Floats) -> Floats:
    """Return the time that ACKs wait for the timer in a transfer without a loss."""
    if transfer.delayed_ack_timer_s is None or transfer.acked_packets == 1 or not size.size:
        return np.zeros_like(size)
    packets, b = np.ceil(size), transfer.acked_packets
    waits, paired = np.zeros_like(size), np.zeros_like(size)
    for acked in _timer_delayed_first_acks(transfer, float(size.max())):
        waits += packets >= acked
        paired = np.where(packets >= acked, acked, paired)
    return np.asarray(transfer.delayed_ack_timer_s * (waits + ((packets - paired) % b > 0)))


def first_stage_ack_wait_s(transfer: ShortTransfer, size: Floats, losses: int) -> Floats:
    """Return the time that ACKs wait before the first loss and after a loss of the last packet.

    The first ACKs wait if their packets arrive. The very last packet, retransmitted after an RTO,
    fills no gap, so its ACK waits unless b = 1.
    """
    timer, b = transfer.delayed_ack_timer_s, transfer.acked_packets
    wait = np.zeros_like(size)
    if timer is None or b == 1:
        return wait
    for acked in _timer_delayed_first_acks(transfer, float(size.max())):
        wait += np.maximum(1 - acked / size, 0.0) ** losses
    return np.asarray(timer * (wait + np.minimum(1 / size, 1.0) ** losses))
