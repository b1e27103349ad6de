"""``tcpcast home``: what the people of a home notice with each queue, as a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.home_scenario import HOME_OPTIONS, QUEUE_KEY, make_home_scenario
from tcpcast.scenario import parse_assignments

if TYPE_CHECKING:
    import typer


def home(
    *,
    context: typer.Context,
    changes: list[str] | None,
    print_scenario: bool,
    **how: Any,
) -> None:
    """Sweep the queues of a home's line, or print the scenario with the first."""
    values = {name: how.pop(name) for name in HOME_OPTIONS}
    scenario, queues = make_home_scenario(values, parse_assignments(changes or ()))
    if print_scenario:
        print(scenario.to_toml().rstrip("\n"))
        return

    from tcpcast.cli.sweep import sweep_scenario  # noqa: PLC0415 - imports pyarrow

    sweep_scenario(scenario, {QUEUE_KEY: queues}, ["packet"], context=context, **how)
