"""A scenario in one sentence, and the warnings about an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.answer import Note, texts_to_notes
from tcpcast.comparison.compare import packets_text
from tcpcast.quantity import units
from tcpcast.quantity.readable_units import count_text
from tcpcast.report.quantity import amount_text, three_digit_text
from tcpcast.scenario.cross_checks import find_stream_hop, get_stream_hops
from tcpcast.scenario.file_sizes import exact_size_text, transfer_size_text
from tcpcast.scenario.rate import TokenBucket
from tcpcast.scenario.return_path import RETURN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario, Transfers
    from tcpcast.scenario.network import Network
    from tcpcast.scenario.rate import VaryingRate

MAX_WARNINGS = 3
"""Maximum number of warnings in a report, unless all are requested."""

MAX_CROSS_TRAFFIC_LINKS = 2
"""Maximum number of links with cross traffic in a sentence."""


def describe_scenario(scenario: Scenario) -> str:
    """Return traffic, path and TCP stack in one sentence."""
    people = scenario.populations
    parts = [
        (
            _transfers_text(p.traffic)
            if p.traffic.kind == "transfers"
            else count_text(p.users, _SENDER_NOUNS[p.traffic.kind])
        )
        + (f" ({p.name})" if len(people) > 1 else "")
        for p in people
    ]
    if len(people) > 2:
        parts = [f"{sum(p.count for p in people):,} senders in {len(people)} classes"]
    round_trips = sorted(p.rtt_s for p in people)
    rtt = amount_text(round_trips[0], "s")
    if round_trips[-1] > round_trips[0]:
        rtt += f" to {amount_text(round_trips[-1], 's')}"
    if scenario.links:
        stacks = dict.fromkeys(people.tcp.stack for people in people)
        links = count_text(len(scenario.links), "link")
        ends = dict.fromkeys(three_digit_text(s, "s") for s in (round_trips[0], round_trips[-1]))
        rtt = " to ".join(ends)
        return ", ".join([*parts, f"{links}, RTT {rtt}", " and ".join(stacks)])
    link = scenario.bottleneck
    rate = f"bottleneck {amount_text(link.rate_bps, 'bit/s')}"
    if link.varying is not None:
        rate += f" ({_varying_rate_text(link.varying)})"
    if len(scenario.network.hops) > 1:
        measured = scenario.network.hops[scenario.network.measured_index]
        rate += f" ({measured.name}, one of {len(scenario.network.hops)} hops)"
    parts += [f"RTT {rtt}", rate, *([] if link.is_policer else [buffer_text(scenario)])]
    if link.queue != "droptail":
        parts.append(link.queue.label)
    if link.loss is not None:
        kinds = {"bernoulli": "random", "gilbert-elliott": "bursty"}
        kind = kinds.get(link.loss.model, link.loss.model)
        place = " behind the queue" if link.loss_at == "behind" else ""
        parts.append(f"{kind} loss {100 * link.loss.mean_ratio():.4g} %{place}")
    parts += [*_cross_traffic_rates(scenario), *_jitter_and_return_path_texts(scenario.network)]
    stacks = dict.fromkeys(people.tcp.stack for people in scenario.populations)
    return ", ".join([*parts, " and ".join(stacks)])


def caveats_of_scenario_and_answers(
    answers: Iterable[Answer], scenario: Scenario | None
) -> list[tuple[Answer | None, Note]]:
    """Return pairs of answers and their caveats, preceded by caveats about the scenario.

    Each caveat about the scenario occurs once, with None instead of an answer. These caveats are
    computed from the scenario, because saved answers may lack them.
    """
    about = [] if scenario is None else texts_to_notes(scenario.warnings(), "scenario")
    pairs: list[tuple[Answer | None, Note]] = []
    for answer in answers:
        own = caveats_of_answer(answer)
        about += [note for note in own if note.kind == "scenario"]
        pairs += [(answer, note) for note in own if note not in about]
    return [*((None, note) for note in dict.fromkeys(about)), *pairs]


def caveats_of_answer(answer: Answer) -> list[Note]:
    """Return the notes on an answer: why it is incomplete, its warnings, and its write errors."""
    partial = (
        []
        if answer.incomplete_reason is None
        else texts_to_notes([answer.incomplete_reason], "incomplete")
    )
    others = (note for note in answer.notes if str(note) != answer.incomplete_reason)
    return [*partial, *others, *texts_to_notes(answer.write_errors, "file")]


def _cross_traffic_rates(scenario: Scenario) -> Iterator[str]:
    """Yield the mean rate of cross traffic per link, bottleneck first, or the number of links."""
    network = scenario.network
    bottleneck = get_stream_hops(network)[network.measured_index].name
    rates: dict[str, float] = {}
    for stream in scenario.cross:
        if (place := find_stream_hop(network, stream)) is not None:
            mean = stream.mean_bps(place.link.rate)
            rates[place.name] = rates.get(place.name, 0.0) + mean
    if len(rates) > MAX_CROSS_TRAFFIC_LINKS:
        yield f"cross traffic at {len(rates)} hops"
        return
    for name in sorted(rates, key=lambda name: name != bottleneck):
        where = "" if name == bottleneck else f" at {name}"
        where = " on the return link" if name == RETURN else where
        yield f"cross traffic {amount_text(float(f'{rates[name]:.4g}'), 'bit/s')}{where}"


def _jitter_and_return_path_texts(network: Network) -> Iterator[str]:
    """Yield texts on jitter, return link and ACK loss of a path."""
    if network.jitter is not None:
        mean = amount_text(network.jitter.distribution.mean_value(), "s")
        yield f"jitter {mean}{' with reordering' if network.jitter.reorder else ''}"
    if network.return_link is not None:
        yield f"return link {amount_text(network.return_link.rate_bps, 'bit/s')}"
    if network.ack_loss is not None:
        yield f"ack loss {100 * network.ack_loss.mean_ratio():.4g} %"


_SENDER_NOUNS = {
    "on-off": "on/off source",
    "bulk": "bulk flow",
    "requests": "request flow",
    "messages": "message flow",
    "ping": "ping",
    "stream": "stream",
    "page": "browser",
}


def _transfers_text(traffic: Transfers) -> str:
    what = transfer_size_text(traffic)
    if traffic.arrivals is not None:
        return f"transfers {what} at {units.format_per_second(traffic.arrivals.rate)}"
    if traffic.total == 1:
        return f"1 transfer {what}"
    return f"{traffic.total:,} transfers {what}, one at a time"


def _varying_rate_text(rate: VaryingRate) -> str:
    if isinstance(rate, TokenBucket):
        return f"{rate.kind}, burst {exact_size_text(rate.burst)}"
    return f"mean of a {rate.kind}"


def buffer_text(scenario: Scenario) -> str:
    """Return the buffer of the bottleneck as typed."""
    buffer = scenario.bottleneck.buffer
    if buffer.unit == "unlimited":
        return "unlimited buffer"
    if buffer.unit in {"seconds", "bytes"}:
        typed = exact_size_text(int(buffer.amount)) if buffer.unit == "bytes" else None
        most = "at most " if typed and scenario.packet_size_classes else ""
        packets = f"{most}{packets_text(scenario.buffer_pkts)}"
        return f"buffer {typed or amount_text(buffer.amount, 's')}, {packets}"
    unit = {"bdp": "BDP", "packets": "packets"}[buffer.unit]
    if buffer.unit == "packets" and buffer.amount == 1:
        unit = "packet"
    return f"buffer {units.digits(buffer.amount, 6)} {unit}"
