"""``tcpcast schema``: what a scenario may say, as JSON Schema."""

from __future__ import annotations

from tcpcast.report.json import encode
from tcpcast.scenario import scenario_schema


def schema() -> None:
    """Print the schema."""
    print(encode(scenario_schema()))
