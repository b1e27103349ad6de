"""Errors of the fixed point's schemes for the local loop against exact simulation.

``python -m benches.fixed_point [SOURCES ...] [--seed SEED] [--scheme SCHEME]`` takes some minutes.
The network is described in section 7 of INRIA report 4154 (Baccelli, Hong and Liu), with the rules
of ``max-plus-reno``.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import tcpcast
from tcpcast_papers.fixed_point.settings import Length, LocalLoop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario

SOURCES = (2500, 5000, 7500, 10_000)

SCHEMES: dict[str, dict[str, Any]] = {
    "0": {"scheme": 0},
    "0, conditional": {"scheme": 0, "conditional": True},
    "1": {"scheme": 1},
    "1, conditional": {"scheme": 1, "conditional": True},
    "2": {"scheme": 2},
    "2, conditional": {"scheme": 2, "conditional": True},
}

ITERATIONS: dict[str, Any] = {"steps": 16, "step": "30s", "references": 250}
MEASURED_S = 480.0
WARMUP_S = 480.0
"""Warm-up as long as the iterations, so that both measurements cover the same time."""


def local_loop(sources: int, fixed_point: dict[str, Any] | None = None, seed: int = 1) -> Scenario:
    """Build the local loop with this number of sources."""
    tables = {} if fixed_point is None else {"fixed_point": {**ITERATIONS, **fixed_point}}
    loop = LocalLoop(sources).scenario(Length(MEASURED_S, WARMUP_S, 1), tables)
    return loop.with_changes({"run.seed": seed})


def figures(answer: Answer) -> dict[str, float]:
    """Return the values of an answer, or of the reference flows if it has none."""
    table = answer.tables.get("reference_flows")
    if table is None:
        result = {name: metric.value for name, metric in answer.metrics.items()}
    else:
        result = dict(zip(table["metric"].tolist(), table["value"].tolist(), strict=True))
    goodput = answer.tables.get("file_goodput")
    if goodput is not None:
        for share, rate in zip(goodput["share"], goodput["goodput_bps"], strict=True):
            result[f"g_{100 * share:g}"] = float(rate)
    return result


def row(name: str, result: dict[str, float], exact: dict[str, float], converged: str) -> str:
    """Format a row of the table: each value and its relative error."""
    cells = [name]
    for metric, scale, digits in (
        ("connection_rate_bps", 1e-3, 1),
        ("g_95", 1e-3, 1),
        ("loss_ratio", 100, 2),
        ("timeout_ratio", 100, 3),
        ("rtt_mean_s", 1, 3),
    ):
        if metric not in exact:
            continue
        text = f"{scale * result[metric]:.{digits}f}"
        if result is not exact and exact[metric]:
            text += f" ({100 * (result[metric] / exact[metric] - 1):+.1f} %)"
        cells.append(text)
    return "| " + " | ".join([*cells, converged]) + " |"


def errors(sources: int, schemes: list[str], seed: int) -> Iterator[str]:
    """Yield the rows of one number of sources."""
    (answer,) = tcpcast.run(local_loop(sources, seed=seed), ["packet"])
    exact = figures(answer)
    yield row(f"**{sources}, exact**", exact, exact, "")
    for name in schemes:
        (answer,) = tcpcast.run(local_loop(sources, SCHEMES[name], seed), ["fixed-point"])
        tests = answer.tables["convergence"]
        failed = tests["what"][~tests["passed"]].tolist()
        yield row(name, figures(answer), exact, ", ".join(failed) or "none")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", type=int, nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scheme", action="append", choices=SCHEMES, help="all by default")
    options = parser.parse_args()
    print("| scheme | goodput, kbit/s | g_95, kbit/s | loss, % | timeouts, % | RTT, s | fails |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for sources in options.sources or SOURCES:
        for line in errors(sources, options.scheme or list(SCHEMES), options.seed):
            print(line, flush=True)


if __name__ == "__main__":
    main()
