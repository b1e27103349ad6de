"""Tests that a new congestion control must pass: the battery of RFC 9743, with ranges.

Each cell is one scenario with one value and its range. Ranges are wide: a control outside one harms
others, or fails to use a usual path. ``linux-cubic`` passes all of them.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.engines import RunOptions
from tcpcast.engines import answer as run_engines
from tcpcast.scenario import Scenario
from tcpcast.scenario.modern_stacks import MODERN_STACKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tcpcast.answer import Answer

DEFAULT_REFERENCE = "linux-cubic"

RATE_BPS, RTT = 20e6, "40ms"
"""Path of most cells."""

CELLULAR_GAPS_MS = (1, 1, 2, 4, 1, 1, 12, 2, 1, 30, 1, 3)
"""Times between opportunities of 1500 B, in ms, of the cellular cell: 2.4 Mbit/s on average, with
pauses of 30 ms."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of a scenario, and the range in which it must be.

    Attributes
    ----------
    section, name
        Group of the battery, and what is special about the scenario.
    tables
        The scenario.
    value
        Function of the scenario's answer.
    quantity, unit
        Meaning and unit of the value: ``of reference`` is the goodput relative to the reference.
    low, high
        Permissible range.
    reference
        Scenario whose value the value is divided by, if any.
    """

    section: str
    name: str
    tables: Mapping[str, Any]
    value: Callable[[Answer], float]
    quantity: str
    unit: str
    low: float
    high: float
    reference: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A cell's value; ``error`` is the reason if there is none."""

    cell: Cell
    value: float
    error: str = ""

    @property
    def passed(self) -> bool:
        """True if the value is in its permissible range."""
        return self.cell.low <= self.value <= self.cell.high

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON data."""
        cell = asdict(self.cell)
        kept = ("section", "name", "quantity", "unit", "low", "high")
        return {
            **{key: None if cell[key] in (math.inf, -math.inf) else cell[key] for key in kept},
            "value": None if math.isnan(self.value) else self.value,
            "passed": self.passed,
            "error": self.error,
        }


def _scenario(  # noqa: PLR0913 - what the cells vary
    classes: Sequence[tuple[str, int]],
    *,
    rate: Any = "20mbit",
    rtt: str = RTT,
    seconds: float = 40.0,
    warmup: float = 10.0,
    starts: Sequence[float] = (),
    tcp: Mapping[str, Any] | None = None,
    rtts: Sequence[str] = (),
    **bottleneck: Any,
) -> dict[str, Any]:
    """Return a scenario with bulk flows of several stacks on one bottleneck."""
    is_policer = isinstance(rate, dict) and rate.get("policer", False)
    link = {"rate": rate, **({} if is_policer else {"buffer": "1bdp"}), **bottleneck}
    return {
        "network": {"rtt": rtt, "bottleneck": link},
        "traffic": {"kind": "bulk"},
        "class": [
            {
                "name": f"{'ab'[at]}-{stack}",
                "flows": flows,
                "tcp": {"stack": stack, **(tcp or {})},
                **({"rtt": rtts[at]} if rtts else {}),
                **({"start": f"{starts[at]}s"} if starts else {}),
            }
            for at, (stack, flows) in enumerate(classes)
        ],
        "run": {"duration": f"{seconds}s", "warmup": f"{warmup}s", "seed": 1},
    }


def _metric(name: str) -> Callable[[Answer], float]:
    def value(answer: Answer) -> float:
        metric = answer.metrics.get(name)
        if metric is None:
            return math.nan
        return metric.value if metric.at_least is None else metric.at_least

    return value


def _fair_share(at: int) -> Callable[[Answer], float]:
    """Return a function for the goodput of a flow of a class, relative to that of all flows."""
    return lambda answer: float(answer.tables["by_class"]["fair_share"][at])


def _cells(stack: str, other: str) -> Iterator[Cell]:
    one, pair = [(stack, 1)], [(stack, 1), (other, 1)]
    utilisation = _metric("utilisation")
    for rate in ("5mbit", "50mbit"):
        for rtt in ("20ms", "100ms"):
            yield Cell(
                "alone",
                f"{rate}, {rtt}",
                _scenario(one, rate=rate, rtt=rtt),
                utilisation,
                "utilisation",
                "1",
                0.8,
                1.0,
            )
    for buffer in ("0.25bdp", "0.5bdp", "4bdp"):
        yield Cell(
            "buffer",
            buffer,
            _scenario(one, buffer=buffer),
            utilisation,
            "utilisation",
            "1",
            0.65,
            1.0,
        )
    for loss in ("0.01%", "1%"):
        for rtt in ("20ms", "100ms"):
            yield Cell(
                "random loss",
                f"{loss}, {rtt}",
                _scenario(one, rtt=rtt, loss=loss),
                _metric("goodput_bps"),
                "of reference",
                "1",
                0.5,
                math.inf,
                _scenario([(other, 1)], rtt=rtt, loss=loss),
            )
    for mine, others in ((1, 1), (2, 2), (1, 4), (4, 1)):
        for buffer in ("1bdp", "4bdp"):
            mixed = _scenario([(stack, mine), (other, others)], buffer=buffer)
            where = f"{mine} against {others}, {buffer}"
            yield Cell(
                "fairness",
                where,
                mixed,
                _fair_share(1),
                "others / fair",
                "1",
                0.3,
                math.inf,
            )
            yield Cell(
                "fairness",
                where,
                mixed,
                _fair_share(0),
                "own / fair",
                "1",
                0.2,
                math.inf,
            )
    yield Cell(
        "RTTs",
        "20 and 80 ms",
        _scenario([(stack, 1), (stack, 1)], rtts=("20ms", "80ms"), seconds=80.0),
        lambda answer: _fair_share(0)(answer) / _fair_share(1)(answer),
        "short / long",
        "1",
        0.1,
        10.0,
    )
    yield Cell(
        "convergence",
        "start 20 s later",
        _scenario([(stack, 1), (stack, 1)], starts=(0.0, 20.0), seconds=80.0),
        _metric("convergence_time_s"),
        "to 80 % of fair",
        "s",
        0.0,
        40.0,
    )
    if not MODERN_STACKS[stack].why_no_ecn:
        marking = {"kind": "codel", "ecn": True}
        yield Cell(
            "ECN",
            "CoDel that marks",
            _scenario(one, tcp={"ecn": True}, buffer="1000pkt", queue=marking),
            _metric("queue_delay_mean_s"),
            "queueing delay",
            "s",
            0.0,
            0.025,
        )
    for queue in ("fq_codel", "pie"):
        yield Cell(
            "queues",
            queue,
            _scenario(pair, buffer="1000pkt", queue=queue),
            utilisation,
            "utilisation",
            "1",
            0.8,
            1.0,
        )
    policer = {"bucket": "10mbit", "burst": "60KB", "policer": True}
    yield Cell(
        "policer",
        "10 Mbit/s, 60 KB",
        _scenario(one, rate=policer),
        _metric("goodput_bps"),
        "goodput",
        "bit/s",
        3e6,
        math.inf,
    )
    yield Cell(
        "policer",
        "10 Mbit/s, 60 KB",
        _scenario(one, rate=policer),
        _metric("loss_ratio"),
        "loss ratio",
        "1",
        0.0,
        0.25,
    )
    changes = {f"{10 * step}s": {"rate": ("20mbit", "5mbit")[step % 2]} for step in range(1, 6)}
    yield Cell(
        "rate steps",
        "20, 5 Mbit/s",
        {
            "link": {"down": {"rate": "20mbit", "buffer": "70pkt", "delay": "20ms", "at": changes}},
            "traffic": {"kind": "bulk"},
            "class": [
                {"name": "a", "flows": 1, "route": ["down"], "delay": "0s", "back_delay": "20ms"}
                | {"tcp": {"stack": stack}}
            ],
            "run": {"duration": "60s", "warmup": "0s", "seed": 1},
        },
        lambda answer: _metric("goodput_bps")(answer) * 1500 / 1448 / 12.5e6,
        "of mean rate",
        "1",
        0.6,
        1.05,
    )
    opportunities, now = [], 0
    for gap in CELLULAR_GAPS_MS * 4:
        now += gap
        opportunities.append(f"{now}")
    yield Cell(
        "cellular",
        "pauses of 30 ms",
        _scenario(one, rate={"opportunities": " ".join(opportunities)}, buffer="100pkt"),
        utilisation,
        "utilisation",
        "1",
        0.7,
        1.0,
    )


def accept(
    stack: str,
    *,
    against: str = DEFAULT_REFERENCE,
    seed: int = 1,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Outcome]:
    """Run the battery, and compare each value with its permissible range.

    Parameters
    ----------
    stack
        A modern stack, or the name of a registered congestion control.
    against
        Stack of the competing flows, and of the flow with random loss.
    seed
        Seed of all runs.
    threads, progress
        As in ``tcpcast.run``; ``progress`` gets the completed share.

    Returns
    -------
    list of Outcome
        One per cell, in the order of the battery.
    """
    cells = list(_cells(stack, against))
    answers: dict[str, Answer | str] = {}

    def answer_of(tables: Mapping[str, Any]) -> Answer | str:
        scenario = Scenario.from_dict(tables).with_changes({"run.seed": seed})
        key = scenario.digest()
        if key not in answers:
            (answer,) = run_engines(scenario, ["packet"], RunOptions(threads=threads))
            reason = answer.not_applicable
            answers[key] = answer if reason is None else str(reason)
        return answers[key]

    outcomes = []
    for at, cell in enumerate(cells):
        found = [answer_of(each) for each in (cell.tables, cell.reference) if each is not None]
        errors = [each for each in found if isinstance(each, str)]
        values = [cell.value(each) for each in found if not isinstance(each, str)]
        value = math.nan
        if not errors:
            value = values[0] / values[1] if len(values) > 1 else values[0]
        outcomes.append(Outcome(cell, value, errors[0] if errors else ""))
        if progress is not None:
            progress((at + 1) / len(cells))
    return outcomes
