"""Common parts of plans for a single path: inputs of the models, and length of a check."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast import units
from tcpcast.engines.formula.collect_inputs import collect_path_inputs, require_one_class
from tcpcast.engines.registry import FORMULA_BY_CONTROL, warn_about_varying_path
from tcpcast.errors import NotApplicable
from tcpcast.models.domain import MAX_RTO_SHARE
from tcpcast.models.parallel import parallel_throughput
from tcpcast.models.pftk import throughput
from tcpcast.plan.verification import PlanSimulations, verify_by_simulation
from tcpcast.readable_units import rate_text, time_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.engines import RunOptions
    from tcpcast.plan.inverse_question import InverseQuestion
    from tcpcast.plan.result import Plan
    from tcpcast.plan.search import SearchResult
    from tcpcast.scenario import Scenario

MAX_PACKETS = 5e8
"""Maximum number of simulated packets of a check, about one minute."""

MIN_LOSSES = 400
MIN_LOSSES_PER_FLOW = 10
"""Minimum number of losses in a simulation, in total and per flow."""

MAX_EXTENSION_FACTOR = 6
MAX_EXTENDED_PACKETS = 5e7
"""Simulations are extended up to this number of packets, for narrower intervals."""

WARM_UP_LOSSES_PER_FLOW = 5
WARM_UP_RTTS, SLOW_WARM_UP_RTTS = 20, 500
"""Minimum warm-up in RTTs; the second value is for BBR, and without random loss. If losses exceed
what BBR's probes recover, its rate estimate falls only by a few per cent per cycle of eight RTTs.
Without random loss, flows need many RTTs to recover from the overshoot of slow start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPath:
    """Inputs of the models of loss for a path.

    ``control`` is the congestion control; ``classic`` is True for stacks without SACK.
    ``receiver_window_pkts``, ``own_link_pps`` (slowest link of a single flow, with the key
    ``own_link_key`` within ``network``) and ``link_pps`` (slowest shared link) are inf if
    unlimited.
    """

    flows: int
    loss_ratio: float
    rtt_s: float
    t0_s: float
    packets_per_ack: int
    receiver_window_pkts: float
    own_link_pps: float
    link_pps: float
    packet_bytes: int
    payload_bytes: int
    own_link_key: str = ""
    control: str = "reno"
    classic: bool = True
    warnings: tuple[str, ...] = ()

    @property
    def window_pkts(self) -> float:
        """Maximum number of packets of a flow per RTT, limited by its window or its own links."""
        return max(1.0, min(self.receiver_window_pkts, self.own_link_pps * self.rtt_s))

    @property
    def is_window_below_own_link(self) -> bool:
        """True if the receiver window, not a link of its own, limits a flow."""
        return self.receiver_window_pkts <= self.own_link_pps * self.rtt_s

    @property
    def window_name(self) -> str:
        """Description of the limit ``window_pkts``."""
        if self.is_window_below_own_link:
            return f"a window of {self.receiver_window_pkts:,.0f} packets"
        rate = rate_text(self.own_link_pps * 8 * self.packet_bytes)
        return f"the link network.{self.own_link_key} of {rate} per flow"

    def model_inputs(self) -> dict[str, Any]:
        """Return RTT, T0 and b as arguments of the models."""
        return {
            "rtt_s": self.rtt_s,
            "t0_s": self.t0_s,
            "packets_per_ack": self.packets_per_ack,
        }

    def link_bps(self, rate_pps: Any) -> Any:
        """Convert packets/s to bit/s of IP packets."""
        return rate_pps * (8 * self.packet_bytes)

    def goodput_bps(self, rate_pps: Any, loss_ratio: Any) -> Any:
        """Return the goodput of a send rate in bit/s: the payload of (1 - p) of its packets."""
        return rate_pps * (1 - loss_ratio) * (8 * self.payload_bytes)

    def note(self, *, with_loss: bool) -> str:
        """Return a note with the inputs of the models."""
        window = self.receiver_window_pkts
        limit = "unlimited" if math.isinf(window) else f"{window:,.0f} packets"
        loss = f"p {percent_text(self.loss_ratio)}, " if with_loss else ""
        return (
            f"Inputs of the models: {loss}RTT {time_text(self.rtt_s)}, T0 "
            f"{time_text(self.t0_s)}, b {self.packets_per_ack}, W_max {limit}; "
            f"packets of {self.packet_bytes} B with {self.payload_bytes} B of payload."
        )


def make_planned_path(
    model: str, scenario: Scenario, *, accepts_no_loss: bool = False
) -> PlannedPath:
    """Return the inputs of the models for a scenario with bulk flows.

    Parameters
    ----------
    model
        Name of the formula in messages.
    scenario
        One class of bulk flows and a random loss.
    accepts_no_loss
        True: the loss may be 0.

    Raises
    ------
    NotApplicable
        The scenario has several classes, other traffic, no loss, or a congestion control without
        a formula.
    """
    fed = collect_path_inputs(model, scenario, None, accepts_no_loss=accepts_no_loss)
    tcp = scenario.populations[0].tcp
    if tcp.control not in {"reno", *FORMULA_BY_CONTROL}:
        raise NotApplicable(
            f'{model} has no formula for {tcp.stack}; write tcp.stack = "linux-reno", '
            '"linux-cubic" or "linux-bbr"'
        )
    people, network = require_one_class(model, scenario, "bulk"), scenario.network
    bits, links = 8 * network.packet_bytes, people.links(network)
    own = min((on for on in links if not on.shared), key=lambda on: on.link.rate_bps)
    return PlannedPath(
        flows=fed.flows,
        loss_ratio=fed.loss,
        rtt_s=fed.rtt_s,
        t0_s=fed.t0_s,
        packets_per_ack=int(fed.packets_per_ack),
        receiver_window_pkts=fed.window_pkts,
        own_link_pps=own.link.rate_bps / bits,
        own_link_key=own.key,
        link_pps=min(on.link.rate_bps for on in links if on.shared) / bits,
        packet_bytes=network.packet_bytes,
        payload_bytes=scenario.payload_bytes,
        control=tcp.control,
        classic=not tcp.is_modern,
        warnings=(*fed.warnings, *warn_about_varying_path(scenario, accepts_measured=False)),
    )


def choose_run_length(
    path: PlannedPath, *, flows: int, rate_pps: float, total_pps: float
) -> tuple[float, float]:
    """Return the duration of each run of a check, and its warm-up, in seconds.

    Parameters
    ----------
    path
        The loss and the round-trip time.
    flows, rate_pps
        Number of flows and total send rate in the run with the fewest losses.
    total_pps
        Total send rate of all runs of the check.
    """
    loss_s = 1 / (path.loss_ratio * rate_pps) if path.loss_ratio > 0 else 0.0
    slow = path.control == "bbr" or path.loss_ratio == 0
    rtts = SLOW_WARM_UP_RTTS if slow else WARM_UP_RTTS
    warm_up = max(WARM_UP_LOSSES_PER_FLOW * flows * loss_s, rtts * path.rtt_s)
    least = max(MIN_LOSSES_PER_FLOW * flows * loss_s, MIN_LOSSES * loss_s, warm_up)
    cheap = MAX_EXTENDED_PACKETS / total_pps - warm_up
    measured = max(least, min(MAX_EXTENSION_FACTOR * least, cheap))
    return math.ceil(warm_up + measured), math.ceil(warm_up)


def changes_for_runs(path: PlannedPath, duration_s: float, warm_up_s: float) -> dict[str, Any]:
    """Return the changes of a scenario for the runs of a check.

    With classic stacks, slow start ends at PFTK's mean window, because the models do not include
    the recovery from the overshoot of slow start. Modern stacks recover quickly with SACK.
    """
    changes = {
        "run.duration": units.format_duration(duration_s),
        "run.warmup": units.format_duration(warm_up_s),
        "run.replications": 1,
        "run.precision": None,
    }
    if not path.classic or (path.loss_ratio == 0 and math.isinf(path.window_pkts)):
        return changes
    if path.loss_ratio == 0:
        return {"tcp.initial_ssthresh": max(2, round(path.window_pkts)), **changes}
    window = throughput(
        loss_indication_ratio=path.loss_ratio,
        receiver_window_pkts=path.window_pkts,
        **path.model_inputs(),
    ).window_pkts
    return {"tcp.initial_ssthresh": max(2, round(float(window))), **changes}


def share_of_flows_in_rto(path: PlannedPath, *, flows: int, loss_ratio: float) -> float:
    """Return the share of flows in RTO according to algorithm 1, E[nTO]/n (24)."""
    found = parallel_throughput(flows=flows, loss_event_ratio=loss_ratio, **path.model_inputs())
    return float(found.flows_in_timeout) / flows


def warn_if_pftk_replaces_algorithm_1(
    path: PlannedPath, *, flows: int, loss_ratio: float
) -> list[str]:
    """Return a warning if n times PFTK is used, because algorithm 1 has flows in RTO."""
    share = share_of_flows_in_rto(path, flows=flows, loss_ratio=loss_ratio)
    if share <= MAX_RTO_SHARE:
        return []
    return [
        "algorithm 1 assumes that few flows are in RTO at the same time, but here it predicts "
        f"that {100 * share:.0f} % of the flows are in RTO (T0 {time_text(path.t0_s)}, RTT "
        f"{time_text(path.rtt_s)}), and underestimates the rate. The plan uses n times PFTK instead"
    ]


def can_afford_simulation(plan: Plan, packets: float, instead: str) -> bool:
    """Return True if a check is short enough to simulate; otherwise add a warning to the plan."""
    if packets <= MAX_PACKETS:
        return True
    plan.warnings.append(
        f"not checked by simulation: the check would take {packets / 1e6:,.0f} million packets, "
        f"but at most {MAX_PACKETS / 1e6:,.0f} million are simulated; {instead}"
    )
    return False


def verify_path_by_simulation(  # noqa: PLR0913 - the runs, and what limits them
    plan: Plan,
    question: InverseQuestion,
    scenario: Scenario,
    path: PlannedPath,
    search: Callable[[PlanSimulations], SearchResult | None],
    *,
    flows: int,
    rate_pps: float,
    total_pps: float,
    least_s: float,
    options: RunOptions | None,
    instead: str,
    note: str = "",
) -> PlanSimulations | None:
    """Search by simulation as :func:`verify_by_simulation`, in runs with enough losses.

    See :func:`choose_run_length` for ``path`` and the rates; each run takes ``least_s`` or longer.
    ``note`` is added to the note about the length. Returns None, and adds a warning with the advice
    ``instead`` to the plan, if the runs take too many packets.
    """
    duration, warm_up = choose_run_length(path, flows=flows, rate_pps=rate_pps, total_pps=total_pps)
    duration = max(duration, least_s)
    if not can_afford_simulation(plan, duration * total_pps, instead):
        return None
    runs = PlanSimulations(
        scenario.with_changes(changes_for_runs(path, duration, warm_up)), question, options
    )
    verify_by_simulation(plan, runs, lambda: search(runs))
    plan.notes.append(
        f"Each simulation lasts {duration:,.0f} s; the first {warm_up:,.0f} s are not counted."
        f"{note}"
    )
    return runs


def percent_text(ratio: float) -> str:
    """Format a ratio as a percentage with four digits."""
    return f"{100 * ratio:.4g} %"
