"""``tcpcast home``: what the people of a home notice with each queue, as a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.cli.scenario_args import read_engine_option
from tcpcast.options.home_scenario import HOME_OPTIONS, QUEUE_KEY, make_home_scenario
from tcpcast.scenario import parse_assignments

if TYPE_CHECKING:
    import typer

MEASUREMENT = "kernel"
MEASURED_RUN = {"run.duration": "24s", "run.warmup": "4s"}
"""Engine that runs in real time, and the length of each of its runs if none is given."""


def home(
    *,
    context: typer.Context,
    engine: list[str] | None,
    changes: list[str] | None,
    print_scenario: bool,
    **how: Any,
) -> None:
    """Sweep the queues of a home's line, or print the scenario with the first."""
    values = {name: how.pop(name) for name in HOME_OPTIONS}
    changed = parse_assignments(changes or ())
    engines = read_engine_option(engine) or ["packet"]
    if MEASUREMENT in engines:
        # Several measurements at once would delay each other's packets.
        how["processes"] = 1
        changed = MEASURED_RUN | changed
    scenario, queues = make_home_scenario(values, changed)
    if print_scenario:
        print(scenario.to_toml().rstrip("\n"))
        return

    from tcpcast.cli.sweep import sweep_scenario  # noqa: PLC0415 - imports pyarrow

    sweep_scenario(scenario, {QUEUE_KEY: queues}, engines, context=context, **how)
