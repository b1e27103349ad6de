"""``tcpcast schema``: the JSON Schema of scenarios."""

from __future__ import annotations

from tcpcast.report.json import encode
from tcpcast.scenario import make_scenario_schema


def schema() -> None:
    """Print the schema."""
    print(encode(make_scenario_schema()))
