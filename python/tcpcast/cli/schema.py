"""``tcpcast schema``: what a scenario may say, as JSON Schema."""

from __future__ import annotations


def schema() -> None:
    """Print the schema."""
    from tcpcast.report.json import encode  # noqa: PLC0415 - not for the help
    from tcpcast.scenario import scenario_schema  # noqa: PLC0415

    print(encode(scenario_schema()))
