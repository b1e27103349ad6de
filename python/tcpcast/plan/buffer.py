"""The smallest buffer for a loss: the TCP-Engset rule beside the rules of thumb (section 5.4.1)."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import units
from tcpcast.engines.formula.engset import EngsetInputs, engset_inputs, engset_warnings
from tcpcast.engines.formula.sizing import bytes_text
from tcpcast.errors import DomainError, NotApplicable
from tcpcast.models.engset import buffer_for_loss_plain, connection_alone
from tcpcast.plan.curve import between, curve_of, whole
from tcpcast.plan.nearest import model_notes, nearest
from tcpcast.plan.result import Plan
from tcpcast.plan.search import Goal, solve
from tcpcast.plan.trust import disowned
from tcpcast.plan.verification import VERIFY_CONNECTIONS, Simulations, verify_by_simulation
from tcpcast.scenario.traffic import MOST_SOURCES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpcast.engines import RunOptions
    from tcpcast.plan.result import Table
    from tcpcast.scenario import Scenario

GRID_SIZES_PKTS = (5, 12, 22, 36, 80, 120, 500, 1000)
GRID_RTTS_S = (0.05, 0.3)
GRID_WINDOW_PKTS = 44
"""The grid of section 5.4.1, over which the paper takes the largest buffer."""

QUEUEING_DELAY_S = 0.6
"""The 600 ms rule: with a timeout of 1 s it leaves 400 ms for the round trip."""

BDP_RTT_S = 0.3
"""The round trip that the bandwidth-delay rule is usually given."""

RULE_LOAD = 1.1
"""The open-loop load from which the rule is warned of; the paper applies it at 1."""

ROUNDING = 1e-9

_NOTE_ON_GRID = (
    "The grid is that of section 5.4.1: this link alone, a receiver window of 44 packets, as "
    "many sources as make an open-loop load of 100 %. The paper does not state how it rounds "
    "their number, so all three ways are shown. Its 202 packets for 10 Mbit/s are B = Q ln(U/L) "
    "for files of 500 packets, 50 ms and 3.04 sources rounded up to 4 (eq. 13 itself gives "
    "229.5); its 417 for 50 Mbit/s do not follow from these formulas, which give 307 to 351 for "
    "the same files."
)


_NOTE_ON_ROOT = (
    "BDP/sqrt(n) (Appenzeller, Keslassy and McKeown 2004) is for n long flows that are not in "
    "step; here n is the number of sources."
)


def plan_buffer(
    scenario: Scenario,
    *,
    loss: float = 0.01,
    verify: bool = False,
    connections: int = VERIFY_CONNECTIONS,
    options: RunOptions | None = None,
) -> Plan:
    """Return the smallest bottleneck buffer that keeps the loss at a target.

    Parameters
    ----------
    scenario
        On/off sources, as the ``engset`` engine takes them; its own buffer plays no part.
    loss
        The loss ratio, above 0 and below 1. The authors trust their rule up to 1 %.
    verify
        Also search the buffer by simulation, from the rule's, and simulate the one that is found;
        with today's TCP, which the rule does not have, in any case.
    connections
        Transfers that each of these simulations counts at most.
    options
        Threads and progress of the simulations.

    Returns
    -------
    Plan
        Whole packets, the one in transmission included: eq. 13 rounded up, at least 1. Tables:
        ``rules`` (rule, buffer_pkts, size_bytes, delay_s), with the 600 ms and bandwidth-delay
        rules beside it, and BDP/sqrt(n) of Appenzeller, Keslassy and McKeown (2004); ``grid``, the
        rule over the file sizes and round trips of section 5.4.1, with a column for each way to
        round the number of sources; ``simulated`` (buffer_pkts, loss_ratio, low, high); ``curve``
        (buffer_pkts, loss_ratio), the model's, for a figure.

    Raises
    ------
    NotApplicable
        The model, or the simulation, does not cover the scenario.
    DomainError
        A loss that is not above 0 and below 1.
    """
    if all(group.traffic.kind == "bulk" for group in scenario.populations):
        raise NotApplicable(
            "this plan is for on/off users, and bulk flows fill any buffer; compare several: "
            "tcpcast sweep FILE --vary network.bottleneck.buffer=0.5bdp,1bdp,2bdp"
        )
    if not 0 < loss < 1:
        written = units.format_ratio(loss)
        raise DomainError(f"loss: {written} is no target; write one above 0% and below 100%")
    modelled, nearby = nearest(scenario)
    inputs = engset_inputs(modelled)
    result = inputs.solve()
    exact = result.buffer_for_loss(loss)
    value = max(_whole(exact), 1)
    grid = _rule_grid(inputs, loss)
    there = replace(inputs, buffer_pkts=float(value)).solve()
    overload = _load_warnings(result.offered_load)
    key = "network.bottleneck.buffer"
    plan = Plan(
        question=f"smallest buffer for a loss of {units.format_ratio(loss)}",
        value=value,
        unit="packet",
        tables={"rules": _rules(inputs, exact, grid), "grid": grid},
        recommendation=_size_text(inputs, value),
        notes=[_NOTE_ON_ROOT, _NOTE_ON_GRID],
        warnings=[*model_notes([*engset_warnings(modelled, there), *overload], leads=not nearby)],
        untrusted=nearby or _doubts(scenario, overload, {key: f"{value}pkt"}),
        target=("loss_ratio", loss),
    )
    if verify or nearby:
        runs = Simulations(scenario, key, "{:.0f}pkt".format, "loss_ratio", connections, options)
        goal = Goal(target=loss, smallest=True, most=1024 * value)
        verify_by_simulation(plan, runs, lambda: solve(runs, goal, value), "buffer_pkts")
        if nearby and plan.simulated is not None:
            plan.recommendation = _size_text(inputs, round(plan.simulated))
    simulated = plan.tables.get("simulated", {}).get("buffer_pkts", ())
    plan.tables["curve"] = curve_of(
        "buffer_pkts",
        whole(between(value, simulated)),
        "loss_ratio",
        lambda pkts: replace(inputs, buffer_pkts=float(pkts)).solve().loss_ratio,
    )
    return plan


def _doubts(scenario: Scenario, overload: list[str], changes: dict[str, Any]) -> str:
    if overload:
        return "outside the load of the paper's rule"
    return disowned("engset", scenario, changes)


def _size_text(inputs: EngsetInputs, value: int) -> str:
    """Return the answer in bytes and in milliseconds, beside the BDP and BDP/sqrt(n)."""
    path = inputs.path
    counted = f"{value:,} packet{'' if value == 1 else 's'}"
    size, time = bytes_text(value * path.packet_bits / 8), 1e3 * value * path.delta_s
    root = path.beta / math.sqrt(inputs.sources)
    return (
        f"{counted} are {size}, and {units.digits(time)} ms at the link's rate. The BDP is "
        f"{units.digits(path.beta)} packets, BDP/sqrt(n) {units.digits(root)}."
    )


def _load_warnings(load: float) -> list[str]:
    if load <= RULE_LOAD:
        return []
    return [
        f"the open-loop load is {load:.0%}; the paper's rule is for 100 %. Above that eq. 13 "
        "overestimates the buffer by far: in its Table 10, at 164 %, 300 packets lose 23.7 % by "
        "the model and 0.2 % in simulation"
    ]


def _rules(inputs: EngsetInputs, exact: float, grid: Table) -> Table:
    """Lay the rules side by side: buffer, and the delay it can add."""
    path = inputs.path
    rules = {
        "TCP-Engset, this scenario (eq. 13)": exact,
        "TCP-Engset, largest of the grid, N rounded up": _most(grid["buffer_ceil_pkts"]),
        "the same as B = Q ln(U/L)": _most(grid["plain_ceil_pkts"]),
        "600 ms of the link": QUEUEING_DELAY_S / path.delta_s,
        "bandwidth x 300 ms": BDP_RTT_S / path.delta_s,
        "bandwidth x this round trip": path.beta,
        "the same by the root of the sources": path.beta / math.sqrt(inputs.sources),
    }
    buffers = np.array(
        [_whole(pkts) if math.isfinite(pkts) else math.nan for pkts in rules.values()]
    )
    return {
        "rule": np.array(list(rules)),
        "buffer_pkts": buffers,
        "size_bytes": buffers * (path.packet_bits / 8),
        "delay_s": buffers * path.delta_s,
    }


def _rule_grid(inputs: EngsetInputs, loss: float) -> Table:
    """Evaluate the rule over the grid of section 5.4.1, N rounded in three ways."""
    rows = []
    for size, rtt in itertools.product(GRID_SIZES_PKTS, GRID_RTTS_S):
        if rtt < inputs.path.delta_s:
            continue  # the packet alone takes longer
        path = replace(inputs.path, rtt0_s=rtt, ingress_bps=math.inf, egress_bps=math.inf)
        alone = connection_alone(path=path, size_pkts=size, receiver_window_pkts=GRID_WINDOW_PKTS)
        files_per_s = path.bottleneck_bps / (size * path.packet_bits)
        exact = (inputs.mean_off_s + alone.on_time_s) * files_per_s
        row = {"mean_size_pkts": float(size), "rtt_s": rtt, "sources_exact": exact}
        rounded = {"floor": math.floor(exact), "round": round(exact), "ceil": math.ceil(exact)}
        for how, sources in rounded.items():
            row[f"sources_{how}"] = sources
            row[f"buffer_{how}_pkts"], plain = _grid_buffers(
                replace(
                    inputs,
                    path=path,
                    sources=sources,
                    mean_size_pkts=float(size),
                    receiver_window_pkts=GRID_WINDOW_PKTS,
                    initial_window_pkts=2,
                ),
                loss,
            )
        row["plain_ceil_pkts"] = plain
        rows.append(row)
    return {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())}


def _grid_buffers(inputs: EngsetInputs, loss: float) -> tuple[float, float]:
    """Return the buffer by eq. 13, and as B = Q ln(U/L); NaN for no sources, or too many."""
    if not 1 <= inputs.sources <= MOST_SOURCES:
        return math.nan, math.nan
    result = inputs.solve()
    plain = buffer_for_loss_plain(
        loss_ratio=loss, queue_mean_pkts=result.queue_mean_pkts, utilisation=result.utilisation
    )
    return result.buffer_for_loss(loss), float(plain)


def _whole(pkts: float) -> int:
    return math.ceil(pkts - ROUNDING)


def _most(column: NDArray[Any]) -> float:
    finite = column[np.isfinite(column)]
    return float(finite.max()) if finite.size else math.nan
