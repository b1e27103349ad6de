"""Notes on intervals that are withheld or need a check, and on features that the model lacks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Note
from tcpcast.engines.packet.counters import DROP_COUNTERS
from tcpcast.engines.packet.queue_config import may_mark_packets
from tcpcast.process.errors import Suggestion
from tcpcast.quantity.readable_units import rate_text, time_text
from tcpcast.quantity.units import digits
from tcpcast.scenario.modern_stacks import MODERN_STACKS
from tcpcast.scenario.modern_tcp import RATE_BASED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from tcpcast.engines.packet.counters import BatchCounters, Estimates, Snapshot
    from tcpcast.scenario import Scenario


def make_interval_notes(
    estimates: Estimates, snapshot: Snapshot, by_class: Mapping[str, NDArray[Any]]
) -> list[Note]:
    """Return notes on intervals that are withheld or need a check, and on missing metrics.

    Parameters
    ----------
    estimates, seen
        The estimates over all classes, and the counters of the run.
    by_class
        The table of the classes; empty if there is none.
    """
    known = {name: e for name, e in estimates.items() if e is not None}
    warned = {name: e for name, e in known.items() if e.interval_warning is not None}
    with_interval = sum(e.low is not None for e in known.values())
    reasons: dict[tuple[str, bool], list[str]] = {}
    for name, e in warned.items():
        reasons.setdefault((str(e.interval_warning), e.low is None), []).append(name)
    listed: list[Note] = []
    for (warning, withheld), names in reasons.items():
        if len(names) == (len(warned) + with_interval if withheld else with_interval):
            what = "no metric has an interval" if withheld else "check every interval"
            listed.append(Note(f"{warning}; {what}", kind="withheld" if withheld else "run"))
        else:
            listed.append(_make_note_on_intervals(warning, names, withheld=withheld))
    with_note = {warning for warning, _ in reasons}
    groups: dict[tuple[str, bool], tuple[dict[str, None], set[str]]] = {}
    for column in (name for name in by_class if name.endswith("_interval_warning")):
        metric = column.removesuffix("_interval_warning")
        for name, warning, low in zip(
            by_class["name"], by_class[column], by_class[f"{metric}_low"], strict=True
        ):
            if warning and warning not in with_note:
                classes, metrics = groups.setdefault((str(warning), math.isnan(low)), ({}, set()))
                classes[str(name)] = None
                metrics.add(metric)
    listed += [
        _make_note_on_intervals(
            f"class {', '.join(classes)}: {warning}", metrics, withheld=withheld
        )
        for (warning, withheld), (classes, metrics) in groups.items()
    ]
    if snapshot.loss_events is None:
        listed.append(
            Note(
                "loss_event_ratio_cumulative is omitted, because a replication has more than "
                "4,194,304 loss indications; use more but shorter replications",
                ("loss_event_ratio_cumulative",),
                kind="withheld",
            )
        )
    return listed


def _make_note_on_intervals(warning: str, metrics: Iterable[str], *, withheld: bool) -> Note:
    """Return the note that the intervals of metrics are withheld or need a check."""
    names = tuple(sorted(metrics))
    if withheld:
        return Note(f"{warning}; no interval for ", names, kind="withheld", named=True)
    return Note(f"{warning}; check the intervals of ", names, kind="check", named=True)


QUEUE_METRICS = (
    "loss_ratio",
    "queue_loss_ratio",
    "queue_mean_pkts",
    "queue_delay_mean_s",
    "queue_delay_p95_s",
    "queue_delay_p99_s",
)
"""Metrics of the bottleneck, which exclude delay and loss in a source's own links."""

MIN_RTT_INCREASE = 0.1
"""A class has a note if its RTT, without the queueing delay at the bottleneck, exceeds its base RTT
by more than this share."""


def make_model_notes(scenario: Scenario, snapshot: Snapshot) -> list[Note]:
    """Return a note for each missing feature of the model that affects a class."""
    several = len(scenario.populations) > 1
    result: dict[Note, None] = {}
    for index, group in enumerate(scenario.populations):
        name = f"class {group.name}: " if several else ""
        for note in (
            *_note_ecn_without_marks(scenario, snapshot.units, index, name),
            *_note_unvalidated_stack(group.tcp.stack),
            *_note_delays_in_own_links(scenario, snapshot.units, index, name),
        ):
            result[note] = None
    return list(result)


def _note_ecn_without_marks(
    scenario: Scenario, units: BatchCounters, index: int, name: str
) -> Iterator[Note]:
    """Yield a note if a sender with ECN receives no marks."""
    group = scenario.populations[index]
    if not group.tcp.ecn:
        return
    marking = [on for on in group.route if may_mark_packets(scenario, on.link)]
    suggestions: tuple[Suggestion, ...] = ()
    if not marking:
        why = "no queue on the path marks packets"
        suggestions = (Suggestion({"network.bottleneck.queue": "codel"}),)
    elif all(on.measured for on in marking) and (
        units.total("marked", (index,)) == 0.0 < units.total("queue_drops", (index,))
    ):
        why = "the queue dropped packets but marked none"
    else:
        return
    if group.tcp.control in ("dctcp", "prague"):
        text = f'{name}stack "{group.tcp.stack}" behaves like Reno here: {why}'
        yield Note(text, kind="model", suggestions=suggestions)
    else:
        text = f"{name}tcp.ecn has no effect: {why}"
        yield Note(text, kind="remark", suggestions=suggestions)


def _note_unvalidated_stack(stack: str) -> Iterator[Note]:
    if stack in MODERN_STACKS and (source := MODERN_STACKS[stack].unvalidated_source):
        text = f'stack "{stack}" follows {source}, but was never compared with a kernel'
        yield Note(text, kind="model")


def _note_delays_in_own_links(
    scenario: Scenario, units: BatchCounters, index: int, name: str
) -> Iterator[Note]:
    """Yield a note if metrics of the queue omit delay and loss in a source's own links."""
    group = scenario.populations[index]
    own_links = [on.link for on in group.route if not (on.shared or on.measured)]
    samples = units.total("rtt_samples", (index,))
    if (
        scenario.links  # table `by_link` has the delays of all links
        or all(link.rate_bps == float("inf") for link in own_links)
        or samples == 0.0
    ):
        return
    rtt_s = 1e-9 * float(units.total("rtt_sum_ns", (index,)) / samples)
    passed = units.total("passed", (index,))  # 0 if waiting times are not kept
    queue_s = 1e-9 * units.total("waited_ns", (index,)) / passed if passed else rtt_s
    topology = scenario.topology
    own = [name for name, link in topology.links.items() if link.each and name != topology.headline]
    places = [list(topology.links).index(name) for name in own]
    pairs = [n for n, (at, of) in enumerate(units.link_classes) if at in places and of == index]
    dropped = sum(float(units.on_link(name, pairs).sum()) for name in DROP_COUNTERS)
    network = scenario.network
    longer = (
        len(network.hops) <= 1 and network.jitter is None and network.return_link is None
    ) and rtt_s - queue_s > (1.0 + MIN_RTT_INCREASE) * group.rtt_s
    if not (longer or dropped):
        return
    lost = f", which dropped {dropped:,.0f} packet{'' if dropped == 1 else 's'}" if dropped else ""
    delay = f"the queueing delay of the per-source links{lost}"
    rtt, base = (digits(1e3 * seconds, 3) for seconds in (rtt_s, group.rtt_s))
    yield Note(
        f"{name}the RTT (mean {rtt} ms, base {base} ms) includes {delay}. The metrics of loss, "
        "queue and queueing delay describe only the bottleneck, not these links",
        QUEUE_METRICS,
        kind="model",
    )


BURST_S, MAX_BURST_BITS = 1e-3, 8 * 65_536
"""Paced data of a burst, and its maximum (``tcp_tso_autosize``)."""

_MIN_SHARE = 0.95


def max_paced_bps(rate_bps: float, noise_s: float) -> float:
    """Return the rate of a flow that is paced at ``rate_bps``.

    Linux credits a late timer to the next burst, for at most half of its time
    (``tcp_update_skb_after_send``), so that bursts are at least half of their time and the mean
    noise apart.

    Parameters
    ----------
    rate_bps
        Pacing rate, bit/s, above 0.
    noise_s
        Mean delay of a timer, s, at least 0.

    Examples
    --------
    >>> f"{max_paced_bps(10e9, 100e-6) / 1e9:.1f} {max_paced_bps(1e9, 100e-6) / 1e9:.1f}"
    '4.2 1.0'
    """
    burst_bits = min(BURST_S * rate_bps, MAX_BURST_BITS)
    return min(rate_bps, burst_bits / (burst_bits / (2 * rate_bps) + noise_s))


def noise_warnings(scenario: Scenario) -> Iterator[str]:
    """Yield a warning for each class whose rate may be limited by its host noise."""
    for group in scenario.populations:
        # The lowest rate of the links of a class, shared links divided by all flows. The number
        # of concurrent transfers that arrive is unknown; one of them may have the whole link.
        rates = [
            on.link.rate / (max(1, scenario.senders) if on.shared else 1)
            for on in group.route
            if math.isfinite(on.link.rate)
        ]
        share = min([*rates, group.tcp.max_rate_bps])
        tcp = group.tcp
        paced = tcp.is_modern and (
            tcp.control in RATE_BASED if tcp.pacing == "internal" else tcp.pacing != "off"
        )
        if not (paced and math.isfinite(share)):
            continue
        noise_s = group.tcp.host_noise_s
        rate = float(f"{max_paced_bps(share, noise_s):.2g}")
        if rate < _MIN_SHARE * share:
            where = f"class {group.name}: " if len(scenario.populations) > 1 else ""
            yield (
                f"{where}host noise of {time_text(noise_s)} delays each paced burst, so that one "
                f"flow sends at most about {rate_text(rate)}; for a faster host, set "
                "tcp.host_noise = 10us, for example"
            )
