"""Simulated paths similar to the paper's, with its RTT, T0 and p, and an assumed window.

The hosts and routers of 1997 are not available, but the values in the tables can be simulated. Each
path is one Reno flow with delayed acks and the rules of its sender in Table 1, whose timeout is at
least the printed T0. All senders of Tables 2 and 3 use Reno: the hosts with Tahoe only receive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcpcast_papers.pftk.published import Trace

INDEPENDENT, TWO_STATES, REST_OF_ROUND = "independent", "two states", "rest of round"
LOSS_KINDS = (INDEPENDENT, TWO_STATES, REST_OF_ROUND)
"""Kinds of loss: independent; alternating between rare and frequent (Gilbert-Elliott, with periods
much longer than a round, so that intervals of one trace differ in p as in the paper); or
the rest of the round, as in the model."""

GOOD_PKTS, BAD_PKTS = 1000, 300
"""Mean length of the two states, in packets of the flow."""
GOOD_FACTOR, BAD_FACTOR = 0.4, 3.0
"""Loss in each state, relative to the specified rate."""
MAX_LOSS = 0.3
"""Maximum loss of a state."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A link with a drop-tail queue, shared with cross traffic or not.

    Attributes
    ----------
    rate_bps
        Rate of the link.
    buffer_pkts
        Buffer limit in packets.
    cross_sources
        Number of on/off sources, with transfers of 30 packets on average and OFF times of
        4 s. Their RTTs differ from the flow's by up to 30 ms.
    """

    rate_bps: float
    buffer_pkts: int
    cross_sources: int = 0


@dataclass(frozen=True, slots=True)
class Path:
    """One bulk flow over one path.

    Attributes
    ----------
    name
        As in the tables: ``"manic to spiff"``.
    rtt_s
        Round-trip time of the idle path.
    t0_s
        Minimum retransmission timeout.
    window_pkts
        W_max; ``inf`` for none.
    loss
        One of :data:`LOSS_KINDS`, or "" if only a queue drops packets.
    rate
        Parameter of the loss; see :func:`loss_table`.
    bottleneck
        A queue, or None.
    recovery
        Sender's recovery, a value of ``tcp.rules.recovery``.
    delayed_acks
        Whether the receiver acknowledges every second packet.
    duplicate_threshold
        Duplicate acks that indicate a loss.
    longest_backoff
        Timeouts double up to this multiple of T0 (section 2.2).
    """

    name: str
    rtt_s: float
    t0_s: float
    window_pkts: float
    loss: str = ""
    rate: float = 0.0
    bottleneck: Bottleneck | None = None
    recovery: str = "reno"
    delayed_acks: bool = True
    duplicate_threshold: int = 3
    longest_backoff: int = 64

    def with_loss_rate(self, rate: float) -> Path:
        """Return the path with another loss."""
        return replace(self, rate=rate)

    def scenario(self, *, replications: int = 1, seed: int = 1, traced: bool = False) -> Scenario:
        """Return the scenario to simulate, without a length.

        Parameters
        ----------
        replications, seed
            As in ``[run]`` of a scenario.
        traced
            Record the flow's windows and sequence numbers.
        """
        table: dict[str, Any] = {
            "name": self.name,
            "network": self._network(),
            "traffic": {"kind": "bulk"},
            "tcp": {
                "stack": "pftk-reno",
                "rules": {"recovery": self.recovery},
                "delayed_acks": self.delayed_acks,
                "receiver_window": (
                    "unlimited" if math.isinf(self.window_pkts) else round(self.window_pkts)
                ),
                "min_rto": _seconds_text(self.t0_s),
                "initial_rto": _seconds_text(self.t0_s),
                "max_rto": _seconds_text(self.longest_backoff * self.t0_s),
                "duplicate_threshold": self.duplicate_threshold,
            },
            "probes": {"flows": [0] if traced else []},
            "run": {
                "duration": "1h",
                "warmup": "0s",
                "replications": replications,
                "seed": seed,
            },
        }
        if self.bottleneck is None or not self.bottleneck.cross_sources:
            table["traffic"]["flows"] = 1
        else:
            table["class"] = self._classes(self.bottleneck)
        return Scenario.from_dict(table)

    def _network(self) -> dict[str, Any]:
        network: dict[str, Any] = {"rtt": _seconds_text(self.rtt_s), "packet": "552B"}
        if self.bottleneck is not None:
            network["bottleneck"] = {
                "rate": f"{self.bottleneck.rate_bps:.0f}bit",
                "buffer": f"{self.bottleneck.buffer_pkts}pkt",
            }
        elif self.loss:
            network["bottleneck"] = {"loss": loss_table(self.loss, self.rate)}
        return network

    def _classes(self, bottleneck: Bottleneck) -> list[dict[str, Any]]:
        sources = bottleneck.cross_sources
        shares = (sources // 2, sources - sources // 2)
        off = {"distribution": "exponential", "mean": "4s"}
        size = {"distribution": "pareto", "mean": "30pkt", "alpha": 1.5}
        cross = {"kind": "on-off", "off": off, "size": size}
        return [
            {"name": "observed", "flows": 1},
            *(
                {
                    "name": name,
                    "sources": count,
                    "rtt": _seconds_text(self.rtt_s + shift_s),
                    "traffic": cross,
                }
                for name, count, shift_s in (
                    ("near", shares[0], -0.03),
                    ("far", shares[1], 0.03),
                )
            ),
        ]


def loss_table(loss: str, rate: float) -> dict[str, Any]:
    """Return the ``loss`` of a scenario's link.

    Parameters
    ----------
    loss
        One of :data:`LOSS_KINDS`.
    rate
        Loss per packet. For ``TWO_STATES`` the loss before the factors of the states; for
        ``REST_OF_ROUND`` the loss of a packet if no earlier one of its round was lost.
    """
    if loss == TWO_STATES:
        return {
            "model": "gilbert-elliott",
            "to_bad": 1 / GOOD_PKTS,
            "to_good": 1 / BAD_PKTS,
            "loss_good": min(MAX_LOSS, GOOD_FACTOR * rate),
            "loss_bad": min(MAX_LOSS, BAD_FACTOR * rate),
        }
    model = "bernoulli" if loss == INDEPENDENT else "rest-of-round"
    return {"model": model, "rate": min(MAX_LOSS, rate)}


def path_of_printed_trace(row: Trace, loss: str, window_pkts: float) -> Path:
    """Return a path with a printed trace's RTT, T0 and sender; its p is the initial rate."""
    return Path(
        row.name,
        row.rtt_s,
        row.t0_s,
        window_pkts,
        loss,
        row.loss_indication_ratio,
        recovery=row.sender["recovery"],
        duplicate_threshold=int(row.sender["duplicate_threshold"]),
        longest_backoff=int(row.sender["longest_backoff"]),
    )


MIN_WINDOW_PKTS, DEFAULT_WINDOW_PKTS = 4.0, 32.0


def simulated_windows(fitted: Iterable[float]) -> list[float]:
    """Return the W_max of simulated paths: fitted values of at least 4, and 32 instead of inf.

    With fewer than 4 packets in flight every loss causes a timeout. 32 segments of 512 bytes are
    16 KiB, a common window of the time.
    """
    return [
        DEFAULT_WINDOW_PKTS if math.isinf(window) else max(MIN_WINDOW_PKTS, window)
        for window in map(float, fitted)
    ]


def _seconds_text(value: float) -> str:
    return f"{value:.9g}s"
