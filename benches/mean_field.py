"""The engine ``mean-field`` beside exact simulation: errors by load and population, and speed.

``python -m benches.mean_field`` prints what docs/background/mean-field.md shows: the local loop of
INRIA report 4154, section 7, with N sources on a link of such a rate that N B = load C I. Exact
figures are in ``mean_field_exact.csv``; ``--exact`` makes them again, which takes an hour.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tcpcast
from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tcpcast.answer import Answer

EXACT = Path(__file__).with_name("mean_field_exact.csv")
LOADS = (0.5, 0.8, 1.0, 1.2, 2.0)
SOURCES = (10_000, 100_000)
THRESHOLD = 5000
"""Sources that 100 Mbit/s carry: C I/B."""

LIMITS = {"connection_rate_bps": 0.05, "g95_bps": 0.10, "rtt_mean_s": 0.10}
"""Largest relative errors that are allowed."""

SHOWN = (*LIMITS, "loss_ratio")
MILLION = 1_000_000


def local_loop(sources: int, load: float, **tables: Any) -> Scenario:
    """Return the local loop of ``sources`` users, ``load`` times as many as its link carries."""
    times = sources / THRESHOLD / load
    scenario = {
        "network": {
            "ingress": {"rate": "10mbit", "delay": "30ms"},
            "bottleneck": {
                "rate": f"{100 * times:.9g}mbit",
                "delay": "10ms",
                "buffer": f"{round(10_000 * times)}pkt",
                "queue": {"kind": "fq", "drop": "longest"},
            },
            "egress": {"rate": "10mbit", "delay": "10ms"},
        },
        "traffic": {
            "kind": "on-off",
            "sources": sources,
            "off": {"law": "lognormal", "mean": "30s", "sd": "30s"},
            "size": {"law": "lognormal", "mean": "50pkt", "sd": "50pkt"},
            "connection": "persistent",
            "start": "equilibrium",
        },
        "tcp": {"stack": "max-plus-reno", "receiver_window": 40},
        "run": {"duration": "1300s", "warmup": "300s"},
    }
    return Scenario.from_dict(scenario | tables)


def figures(answer: Answer) -> dict[str, float]:
    """Return what is compared: mean goodput, what 95 % of files exceed, RTT, loss."""
    goodputs = answer.tables["file_goodput"]
    (g95,) = goodputs["goodput_bps"][goodputs["share"] == 0.95]
    found = {name: answer[name] for name in SHOWN if name != "g95_bps"}
    return found | {"g95_bps": float(g95)}


def ask(scenario: Scenario, engine: str) -> Answer:
    """Answer a scenario by one engine, on one thread."""
    (answer,) = tcpcast.run(scenario, [engine], threads=1)
    return answer


def exact_figures() -> dict[tuple[int, float], dict[str, float]]:
    """Return the exact figures by sources and load."""
    found: dict[tuple[int, float], dict[str, float]] = {}
    with EXACT.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            of = found.setdefault((int(row["sources"]), float(row["load"])), {})
            of[row["metric"]] = float(row["value"])
    return found


def rows(cases: Iterable[tuple[int, float]], **tables: Any) -> Iterator[tuple[Any, ...]]:
    """Yield sources, load, metric, exact, mean field and relative error."""
    exact = exact_figures()
    for sources, load in cases:
        found = figures(ask(local_loop(sources, load, **tables), "mean-field"))
        for metric in SHOWN:
            value, truth = found[metric], exact[sources, load][metric]
            error = value / truth - 1 if truth else 0.0
            yield sources, load, metric, truth, value, error


def _print_errors() -> None:
    print(f"{'N':>9} {'load':>5}  {'metric':22} {'exact':>11} {'mean field':>11} {'error':>8}")
    cases = [(sources, load) for sources in SOURCES for load in LOADS]
    for sources, load, metric, truth, value, error in rows(cases):
        limit = LIMITS.get(metric)
        mark = "" if limit is None or abs(error) <= limit else "  above the limit"
        print(
            f"{sources:9,} {load:5}  {metric:22} {truth:11.6g} {value:11.6g} {error:+8.1%}{mark}",
            flush=True,
        )


def _print_flows() -> None:
    """Print the errors of 100,000 sources at a load of 1 by the number that is simulated."""
    print("\nflows: errors at load 1 of N = 100,000")
    for flows in (500, 1000, 2000, 5000, 10_000):
        found = rows([(100_000, 1.0)], mean_field={"flows": flows})
        errors = "  ".join(f"{row[2]} {row[-1]:+.1%}" for row in found if row[2] in LIMITS)
        print(f"{flows:7,}  {errors}", flush=True)


def others() -> Iterator[tuple[str, Scenario]]:
    """Yield other loads, TCPs and queues than those of the exact figures."""
    for load in (0.9, 0.95, 1.05, 1.1):
        yield f"max-plus-reno, fair queue, load {load}, N = 10,000", local_loop(10_000, load)
    run = {"duration": "700s", "warmup": "200s"}
    for stack, queue in (
        ("rfc-newreno", "fq"),
        ("rfc-newreno", "droptail"),
        ("max-plus-reno", "droptail"),
    ):
        for load in (0.8, 1.0, 1.2):
            tcp = {"stack": stack, "receiver_window": 40}
            scenario = local_loop(20_000, load, tcp=tcp, run=run)
            told = f"{stack}, {queue}, load {load}, N = 20,000"
            yield told, scenario.with_changes({"network.bottleneck.queue": queue})


def _print_others() -> None:
    print("\nothers: errors beside exact simulation now")
    for told, scenario in others():
        found, exact = (figures(ask(scenario, engine)) for engine in ("mean-field", "packet"))
        errors = "  ".join(f"{name} {found[name] / exact[name] - 1:+.1%}" for name in LIMITS)
        print(f"{told:48} {errors}", flush=True)


def _seconds(scenario: Scenario, engine: str) -> float:
    """Return the processor time of one run."""
    started = time.process_time()
    ask(scenario, engine)
    return time.process_time() - started


def speed(load: float = 1.0, runs: int = 3) -> dict[str, float]:
    """Return processor seconds of exact simulation and the mean field for 300 simulated seconds."""
    run = {"run": {"duration": "300s", "warmup": "60s"}}
    asked = {
        "exact 10,000": ("packet", 10_000),
        "mean field 10,000": ("mean-field", 10_000),
        "mean field 1,000,000": ("mean-field", MILLION),
    }
    found = dict.fromkeys(asked, float("inf"))
    for _ in range(runs):
        for name, (engine, sources) in asked.items():
            seconds = _seconds(local_loop(sources, load, **run), engine)
            found[name] = min(found[name], seconds)
    return found


def _print_speed() -> None:
    for load in (1.0, 2.0):
        found = speed(load)
        exact, few, many = found.values()
        print(f"\nload {load}, processor time for 300 simulated seconds, least of 3 runs")
        for name, seconds in found.items():
            print(f"{name:>22} {seconds:7.3f} s")
        extrapolated = exact * MILLION / 10_000
        print(
            f"1,000,000 sources cost {many / few:.2f} times what 10,000 do; exact simulation of "
            f"them, {extrapolated:.0f} s by the source, {extrapolated / many:.0f} times as much"
        )


def _write_exact(sources: Iterable[int]) -> None:
    """Simulate everything exactly and write the figures."""
    lines = [("sources", "load", "metric", "value", "simulated_s")]
    for count in sources:
        replications = 4 if count <= 10_000 else 2
        run = {"duration": "3300s" if count <= 10_000 else "1300s", "warmup": "300s"}
        for load in LOADS:
            asked = {"run": run | {"replications": replications}}
            found = figures(ask(local_loop(count, load, **asked), "packet"))
            measured = replications * (3000 if count <= 10_000 else 1000)
            lines += [
                (str(count), str(load), metric, f"{found[metric]:.6g}", str(measured))
                for metric in SHOWN
            ]
    with EXACT.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)


def main() -> None:
    """Print errors and speed, or make the exact figures again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--exact", action="store_true", help="simulate exactly; takes an hour")
    parser.add_argument("--speed", action="store_true", help="speed alone")
    parser.add_argument("--more", action="store_true", help="by flows, TCP and queue too")
    chosen = parser.parse_args()
    if chosen.exact:
        _write_exact(SOURCES)
    if not chosen.speed:
        _print_errors()
    if chosen.more:
        _print_flows()
        _print_others()
    _print_speed()


if __name__ == "__main__":
    main()
