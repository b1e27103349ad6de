"""The paper's senders and its path (section 4), as inputs of models and as scenarios."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcpcast.models.short import ShortTransfer
from tcpcast.scenario import Scenario

from tcpcast_papers.short.published import HEADER_BYTES, LOSS, MSS_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

RTT_S = 0.1
"""Twice the propagation delay of 50 ms."""

RATE_MBIT = 100
SHARED_RATE_MBIT = 4
"""Rate of the link that users share in :meth:`Setting.shared_network`."""

ACK_TIMER_S = 0.1
"""Default ack delay of ns-2; the paper gives no value."""

SIZES = tuple(range(1, 31))
"""The sizes of Figures 4 and 6 to 10, packets."""

LIMITED_TRANSMIT_ON = {None: "second", 1: "each", 2: "second"}
"""``tcp.rules.limited_transmit_on`` by dup_LT: as in the paper, two new packets on the second
duplicate ack (2), or a new packet on each duplicate ack (1)."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A sender on the paper's path.

    Parameters
    ----------
    name
        Figure that shows it: ``"figure 6"``.
    sender
        Name of its sender: ``"NewReno"``.
    transfer
        Inputs of the model, with d = 1 as in the text: one RTT for the duplicate acks.
    jitter_s
        Mean of an exponential delay behind the link, which reorders packets; the paper has none.
    """

    name: str
    sender: str
    transfer: ShortTransfer
    jitter_s: float = 0.0

    @property
    def description(self) -> str:
        """The sender, b and W_0."""
        sender = self.transfer
        return f"{self.sender}, b = {sender.acked_packets}, W0 = {sender.initial_window_pkts:g}"

    @property
    def as_printed(self) -> ShortTransfer:
        """The model that resumes immediately after a fast retransmit: d = 0."""
        return replace(self.transfer, as_printed=True)

    @property
    def refined(self) -> ShortTransfer:
        """The extended model, with shared recovery, backoff and the ack timer."""
        timer = ACK_TIMER_S if self.transfer.acked_packets > 1 else None
        return replace(self.transfer, shared_recovery=True, backoff=True, delayed_ack_timer_s=timer)

    def scenario(
        self,
        sizes_pkts: Sequence[int],
        *,
        transfers: int,
        seed: int,
        loss: float = LOSS,
        rules: Sequence[tuple[str, str]] = (),
    ) -> Scenario:
        """Return the equivalent packet-level scenario.

        Parameters
        ----------
        sizes_pkts
            File sizes in packets.
        transfers
            Transfers per size.
        seed
            Seed of the random streams.
        loss
            p of each packet.
        rules
            Further keys of ``tcp.rules``.
        """
        traffic = {
            "kind": "transfers",
            "size": [f"{size}pkt" for size in sizes_pkts],
            "count": transfers,
        }
        document = self._scenario_tables(loss) | {"traffic": traffic, "run": {"seed": seed}}
        document["tcp"]["rules"] |= dict(rules)
        return Scenario.model_validate(document)

    def long_flow(self, *, seconds: float, replications: int, seed: int, loss: float) -> Scenario:
        """Return the scenario of a flow without end, with a warm-up of a tenth of the time."""
        run = {
            "duration": f"{seconds:g}s",
            "warmup": f"{seconds / 10:g}s",
            "replications": replications,
            "seed": seed,
        }
        traffic = {"kind": "bulk", "flows": 1}
        return Scenario.model_validate(
            self._scenario_tables(loss) | {"traffic": traffic, "run": run}
        )

    def shared_network(self, users: int, *, transfers: int, seed: int) -> Scenario:
        """Return the scenario of users with short files on one link, which cause all losses."""
        tables = self._scenario_tables(0.0)
        tables["network"]["bottleneck"] = {"rate": f"{SHARED_RATE_MBIT}mbit", "buffer": "50pkt"}
        tables["traffic"] = {
            "kind": "on-off",
            "sources": users,
            "off": {"distribution": "exponential", "mean": "1s"},
            "size": {"distribution": "uniform", "low": "2pkt", "high": "20pkt"},
        }
        tables["run"] = {"transfers": transfers, "warmup": "50s", "seed": seed}
        return Scenario.model_validate(tables)

    def _scenario_tables(self, loss: float) -> dict[str, Any]:
        link: dict[str, Any] = {"rate": f"{RATE_MBIT}mbit", "buffer": "unlimited"}
        network: dict[str, Any] = {
            "rtt": f"{RTT_S}s",
            "packet": f"{MSS_BYTES + HEADER_BYTES}B",
            "bottleneck": link | ({"loss": f"{100 * loss:g}%"} if loss else {}),
        }
        if self.jitter_s:
            mean = {"distribution": "exponential", "mean": f"{1e6 * self.jitter_s:g}us"}
            network["jitter"] = mean | {"reorder": True}
        sender = self.transfer
        return {
            "network": network,
            "tcp": {
                "stack": "short-newreno",
                "initial_window": int(sender.initial_window_pkts),
                "initial_ssthresh": int(sender.initial_ssthresh_pkts),
                "receiver_window": int(sender.receiver_window_pkts),
                "delayed_acks": sender.acked_packets > 1,
                "min_rto": f"{sender.min_rto_s}s",
                "duplicate_threshold": sender.duplicate_threshold,
                "limited_transmit": sender.limited_transmit is not None,
            }
            | {"rules": self._tcp_rule_table()},
        }

    def _tcp_rule_table(self) -> dict[str, Any]:
        sender = self.transfer
        return {
            "limited_transmit_on": LIMITED_TRANSMIT_ON[sender.limited_transmit],
            "last_packets_threshold": sender.unprotected_pkts,
        }


_NEWRENO = ShortTransfer(rtt_s=RTT_S, initial_ssthresh_pkts=30, receiver_window_pkts=30)

NEWRENO = Setting("figure 6", "NewReno", _NEWRENO)
LIMITED_TRANSMIT = Setting("figure 7", "limited transmit", replace(_NEWRENO, limited_transmit=2))
PROPOSAL = Setting(
    "figure 8",
    "the proposal",
    replace(_NEWRENO, limited_transmit=1, protects_last_packets=True),
)
NEWRENO_DELAYED_ACKS = Setting("figure 4", "NewReno", replace(_NEWRENO, acked_packets=2))
FIGURE_SETTINGS = (NEWRENO_DELAYED_ACKS, NEWRENO, LIMITED_TRANSMIT, PROPOSAL)
"""The settings of Figures 4, 6, 7 and 8."""

BY_NAME = {setting.name: setting for setting in FIGURE_SETTINGS}

RFC_3042 = Setting(
    "rfc 3042", "limited transmit by RFC 3042", replace(_NEWRENO, limited_transmit=1)
)
"""One new packet on each of the first two duplicate acks."""


def _with_window(b: int, window: int) -> Setting:
    transfer = replace(_NEWRENO, acked_packets=b, initial_window_pkts=window)
    return Setting(f"b = {b}, W0 = {window}", "NewReno", transfer)


NEWRENO_W3, NEWRENO_W4 = _with_window(1, 3), _with_window(1, 4)

OTHER_WINDOWS = tuple(_with_window(b, window) for b in (1, 2) for window in (1, 4))
"""Section 4.1: smaller and larger initial windows, which have no figure."""

ALL_SETTINGS = (*FIGURE_SETTINGS, *OTHER_WINDOWS)
