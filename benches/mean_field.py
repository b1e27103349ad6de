"""Engine ``mean-field`` compared with exact simulation: errors by load and population, and speed.

``python -m benches.mean_field`` prints the tables of docs/background/mean-field.md: the local loop
of INRIA report 4154, section 7, with N sources on a link with a rate such that N B = load C I.
Exact values are in ``mean_field_exact.csv``; ``--exact`` computes them again in half an hour.
``--more`` adds other loads and TCPs; ``--hops`` adds hops in series, cross traffic, and files
that are correlated with OFF times, compared with exact simulation in the same minutes.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tcpcast
from tcpcast.scenario import Scenario
from tcpcast.scenario.cross import CROSS_MODELS
from tcpcast_papers.fixed_point.settings import Length, LocalLoop, Noise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tcpcast.answer import Answer

EXACT = Path(__file__).with_name("mean_field_exact.csv")
LOADS = (0.5, 0.8, 1.0, 1.2, 2.0)
SOURCES = (10_000, 100_000)
THRESHOLD = 5000
"""Number of sources that use 100 Mbit/s: C I/B."""

LIMITS = {"connection_rate_bps": 0.05, "g95_bps": 0.10, "rtt_mean_s": 0.10}
"""Maximum relative errors."""

SHOWN = (*LIMITS, "loss_ratio")
MILLION = 1_000_000


def local_loop(sources: int, load: float, **tables: Any) -> Scenario:
    """Return the local loop with ``sources`` users at ``load`` times the capacity of its link."""
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
            "off": {"distribution": "lognormal", "mean": "30s", "sd": "30s"},
            "size": {"distribution": "lognormal", "mean": "50pkt", "sd": "50pkt"},
            "connection": "persistent",
            "start": "equilibrium",
        },
        "tcp": {"stack": "max-plus-reno", "receiver_window": 40},
        "run": {"duration": "1300s", "warmup": "300s"},
    }
    return Scenario.from_dict(scenario | tables)


def figures(answer: Answer) -> dict[str, float]:
    """Return the compared values: mean goodput, its 5th percentile over files, RTT, loss."""
    goodputs = answer.tables["file_goodput"]
    (g95,) = goodputs["goodput_bps"][goodputs["share"] == 0.95]
    result = {name: answer[name] for name in SHOWN if name != "g95_bps"}
    return result | {"g95_bps": float(g95)}


def ask(scenario: Scenario, engine: str) -> Answer:
    """Answer a scenario by one engine, on one thread."""
    (answer,) = tcpcast.run(scenario, [engine], threads=1)
    return answer


def exact_figures() -> dict[tuple[int, float], dict[str, float]]:
    """Return the exact values by sources and load."""
    result: dict[tuple[int, float], dict[str, float]] = {}
    with EXACT.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            of = result.setdefault((int(row["sources"]), float(row["load"])), {})
            of[row["metric"]] = float(row["value"])
    return result


def rows(cases: Iterable[tuple[int, float]], **tables: Any) -> Iterator[tuple[Any, ...]]:
    """Yield sources, load, metric, exact, mean field and relative error."""
    exact = exact_figures()
    for sources, load in cases:
        result = figures(ask(local_loop(sources, load, **tables), "mean-field"))
        for metric in SHOWN:
            value, truth = result[metric], exact[sources, load][metric]
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
    """Print the errors of 100,000 sources at a load of 1 by the number of simulated flows."""
    print("\nflows: errors at load 1 of N = 100,000")
    for flows in (500, 1000, 2000, 5000, 10_000):
        result = rows([(100_000, 1.0)], mean_field={"flows": flows})
        errors = "  ".join(f"{row[2]} {row[-1]:+.1%}" for row in result if row[2] in LIMITS)
        print(f"{flows:7,}  {errors}", flush=True)


def others() -> Iterator[tuple[str, Scenario]]:
    """Yield other loads, TCPs and queues than in the exact values."""
    for load in (0.9, 0.95, 1.05, 1.1):
        yield f"max-plus-reno, fair queue, load {load}, N = 10,000", local_loop(10_000, load)
    for stack, queue in (
        ("rfc-newreno", "fq"),
        ("rfc-newreno", "droptail"),
        ("max-plus-reno", "droptail"),
    ):
        for load in (0.8, 1.0, 1.2):
            tcp = {"stack": stack, "receiver_window": 40}
            scenario = local_loop(20_000, load, tcp=tcp, run=BRIEF)
            title = f"{stack}, {queue}, load {load}, N = 20,000"
            yield title, scenario.with_changes({"network.bottleneck.queue": queue})


def _print_against_exact(cases: Iterable[tuple[str, Scenario]]) -> None:
    for title, scenario in cases:
        result, exact = (figures(ask(scenario, engine)) for engine in ("mean-field", "packet"))
        errors = "  ".join(f"{name} {result[name] / exact[name] - 1:+.1%}" for name in LIMITS)
        losses = f"loss {exact['loss_ratio']:.2%}, {result['loss_ratio']:.2%}"
        print(f"{title:56} {errors}  {losses}", flush=True)


def in_series(
    sources: int, load: float, hops: Iterable[Mapping[str, Any]], **tables: Any
) -> Scenario:
    """Return the local loop with additional hops.

    Parameters
    ----------
    sources, load, tables
        As in :func:`local_loop`.
    hops
        In path order. For a hop with ``times``, rate and buffer are multiples of the loop's; its
        default queue is the loop's. A hop without a name is the loop itself.
    """
    network = local_loop(sources, load).resolved()["network"]
    loop = {"name": "loop", **network.pop("bottleneck")}
    rate_bps, buffer_pkts = 20_000 * sources / load, round(2 * sources / load)

    def hop(title: Mapping[str, Any]) -> dict[str, Any]:
        if "times" not in title:
            return {**({} if "name" in title else loop), **title}
        times = title["times"]
        size = {"rate": f"{rate_bps * times:.0f}bit", "buffer": f"{round(buffer_pkts * times)}pkt"}
        return {**loop, **size, **{key: title[key] for key in title if key != "times"}}

    way = {"network": {**network, "hop": [hop(title) for title in hops]}, "run": BRIEF}
    return local_loop(sources, load, **(way | tables))


BRIEF = {"duration": "700s", "warmup": "200s"}
NOISE = LocalLoop(1, noise=Noise(80)).scenario(Length(500, 200, 1), {}).resolved()
"""Position of the backbone in case 2 of the paper (section 7.2)."""


def behind_backbones(sources: int, load: float, **tables: Any) -> Scenario:
    """Return case 2 of the report: each source behind a backbone router with cross traffic."""
    (backbone, _), cross = NOISE["network"]["hop"], NOISE["cross"]
    result = in_series(sources, load, [backbone, {}], cross=cross, **tables)
    return result.with_changes({"network.ingress.delay": NOISE["network"]["ingress"]["delay"]})


NEAR_SATURATION = (0.8, 1.0, 1.2)

SHARE_OF_OTHERS = 0.3
"""Share of a hop's rate that cross traffic uses."""


def crossed(model: str, sources: int, load: float, queue: str, **tables: Any) -> Scenario:
    """Return the local loop with cross traffic, and a rate increased by the part it uses.

    In a fair queue the cross traffic, as one flow, gets the rest; in a drop-tail queue its share.
    """
    times = 1.0 if queue == "fq" else 1 / (1 - SHARE_OF_OTHERS)
    share = f"{SHARE_OF_OTHERS:.0%}"
    others: dict[str, dict[str, Any]] = {
        "poisson": {"mean": share},
        "fgn": {"mean": share, "sd": f"{SHARE_OF_OTHERS / 2:.0%}", "hurst": 0.7, "bin": "100ms"},
        "pareto": {"mean": share, "sources": sources // 100, "on": "100ms", "off": "200ms"},
        "trace": _recording(20_000 * sources / load * times * SHARE_OF_OTHERS),
    }
    hop = {"times": times, "name": "loop"} | ({} if queue == "fq" else {"queue": queue})
    return in_series(
        sources,
        load,
        [hop],
        cross=[{"model": model, **others[model]}],
        **tables,
    )


def _recording(mean_bps: float) -> dict[str, Any]:
    """Return 20 s of traffic in lognormal amounts, one every 10 ms."""
    normal = statistics.NormalDist()
    golden = (math.sqrt(5) - 1) / 2
    shares = [math.exp(normal.inv_cdf(((n + 1) * golden) % 1)) for n in range(2000)]
    scale = mean_bps / 8 * 20 / math.fsum(shares)
    sizes = [float(round(share * scale)) for share in shares]
    return {"times": [n / 100 for n in range(2000)], "bytes": sizes, "period": "20s"}


def of_hops() -> Iterator[tuple[str, Scenario]]:
    """Yield scenarios with hops in series, cross traffic and correlated files."""
    for sources, flows in ((10_000, 5000), (20_000, 5000), (10_000, 2500)):
        for load in LOADS if flows == 5000 else [1.0]:
            title = f"backbones, load {load}, N = {sources:,}, {flows} flows"
            yield title, behind_backbones(sources, load, mean_field={"flows": flows})
    for load in LOADS:
        hops = [{"name": "first", "times": 1.05}, {}]
        yield f"two shared hops, load {load}, N = 20,000", in_series(20_000, load, hops)
    for correlation in (-0.5, 0.5):
        for load in NEAR_SATURATION:
            title = f"correlation {correlation}, load {load}, N = 20,000"
            scenario = local_loop(20_000, load, run=BRIEF)
            yield title, scenario.with_changes({"traffic.correlation": correlation})


def of_cross_traffic() -> Iterator[tuple[str, Scenario]]:
    """Yield scenarios with cross traffic at the loop."""
    cases = [(model, "droptail", load) for model in CROSS_MODELS for load in (1.0, 1.2)]
    cases += [("fgn", "droptail", 0.8), ("poisson", "fq", 1.0)]
    cases += [("fgn", "fq", load) for load in NEAR_SATURATION]
    for model, queue, load in cases:
        title = f"{model}, {queue}, load {load}, N = 40,000, 10,000 flows"
        yield title, crossed(model, 40_000, load, queue, mean_field={"flows": 10_000})
    for model in ("fgn", "pareto"):
        yield (
            f"{model}, droptail, load 1.0, N = 40,000",
            crossed(model, 40_000, 1.0, "droptail"),
        )
    for model in CROSS_MODELS:
        title = f"{model}, droptail, load 2.0, N = 40,000, 10,000 flows"
        yield title, crossed(model, 40_000, 2.0, "droptail", mean_field={"flows": 10_000})


def _seconds(scenario: Scenario, engine: str) -> float:
    """Return the processor time of one run."""
    started = time.process_time()
    ask(scenario, engine)
    return time.process_time() - started


def speed(load: float = 1.0, runs: int = 3) -> dict[str, float]:
    """Return processor seconds of exact simulation and the mean field for 300 simulated seconds."""
    run = {"run": {"duration": "300s", "warmup": "60s"}}
    options = {
        "exact 10,000": ("packet", 10_000),
        "mean field 10,000": ("mean-field", 10_000),
        "mean field 1,000,000": ("mean-field", MILLION),
    }
    result = dict.fromkeys(options, float("inf"))
    for _ in range(runs):
        for name, (engine, sources) in options.items():
            seconds = _seconds(local_loop(sources, load, **run), engine)
            result[name] = min(result[name], seconds)
    return result


def _print_speed() -> None:
    for load in (1.0, 2.0):
        result = speed(load)
        exact, few, many = result.values()
        print(f"\nload {load}, processor time for 300 simulated seconds, minimum of 3 runs")
        for name, seconds in result.items():
            print(f"{name:>22} {seconds:7.3f} s")
        extrapolated = exact * MILLION / 10_000
        print(
            f"1,000,000 sources cost {many / few:.2f} times as much as 10,000; exact simulation "
            f"would take {extrapolated:.0f} s (extrapolated), {extrapolated / many:.0f} times as "
            "much"
        )


def _write_exact(sources: Iterable[int]) -> None:
    """Simulate everything exactly and write the values."""
    lines = [("sources", "load", "metric", "value", "simulated_s")]
    for count in sources:
        replications = 4 if count <= 10_000 else 2
        run = {"duration": "3300s" if count <= 10_000 else "1300s", "warmup": "300s"}
        for load in LOADS:
            options = {"run": run | {"replications": replications}}
            result = figures(ask(local_loop(count, load, **options), "packet"))
            measured = replications * (3000 if count <= 10_000 else 1000)
            lines += [
                (str(count), str(load), metric, f"{result[metric]:.6g}", str(measured))
                for metric in SHOWN
            ]
    with EXACT.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)


def main() -> None:
    """Print errors and speed, or compute the exact values again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--exact", action="store_true", help="simulate exactly; takes half an hour")
    parser.add_argument("--speed", action="store_true", help="speed alone")
    parser.add_argument("--more", action="store_true", help="also other flows, TCPs and queues")
    parser.add_argument("--hops", action="store_true", help="hops and cross traffic only")
    chosen = parser.parse_args()
    if chosen.exact:
        _write_exact(SOURCES)
    if not chosen.speed and not chosen.hops:
        _print_errors()
    if chosen.more:
        _print_flows()
        print("\nothers: errors against exact simulation in this run")
        _print_against_exact(others())
    if chosen.more or chosen.hops:
        print("\nhops: errors against exact simulation in this run")
        _print_against_exact(of_hops())
        _print_against_exact(of_cross_traffic())
    if not chosen.hops:
        _print_speed()


if __name__ == "__main__":
    main()
