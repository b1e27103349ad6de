"""The report for programs: the scenario and every answer as one JSON document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tcpcast.compare import compare_all
from tcpcast.engines.stacks import omitted_models
from tcpcast.metrics import ordered
from tcpcast.report.headline import run_verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario


def document(answers: Sequence[Answer], scenario: Scenario) -> dict[str, Any]:
    """Return ``{"scenario": ..., "verdict": ..., "answers": [...]}``, the machine-readable form.

    ``omitted_models`` has the formulas that do not answer for the stack, if any. Metrics come in the
    order of :data:`tcpcast.metrics.METRICS`, tables and provenance by name, so that the same
    question and seed give the same document, ``wall_s`` apart.
    """
    verdict = run_verdict(compare_all(answers), scenario)
    found = {
        "scenario": scenario.resolved(),
        "verdict": verdict or None,
        "answers": [_ordered(a.to_json()) for a in answers],
    }
    asked = {answer.engine for answer in answers}
    left = [
        {"engine": name, "why": reason}
        for reason, names in omitted_models(scenario, suggestions=True).items()
        for name in names
        if name not in asked
    ]
    return found | ({"left_out": left} if left else {})


def json_report(answers: Sequence[Answer], scenario: Scenario) -> str:
    """Return :func:`document` as text."""
    return encode(document(answers, scenario))


def encode(value: Any, indent: int = 0) -> str:
    """Return JSON with an object's keys on lines of their own and a list of numbers on one line.

    All of it is ASCII: it is the same whatever the locale, and no name in it acts on a terminal.

    Raises
    ------
    ValueError
        A number that JSON has no form for (NaN or infinite).
    """
    pad = "  " * (indent + 1)
    if isinstance(value, dict) and value and not _flat(value):
        body = ",\n".join(
            f"{pad}{json.dumps(str(k))}: {encode(v, indent + 1)}" for k, v in value.items()
        )
        return f"{{\n{body}\n{'  ' * indent}}}"
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        body = ",\n".join(f"{pad}{encode(v, indent + 1)}" for v in value)
        return f"[\n{body}\n{'  ' * indent}]"
    return json.dumps(value, allow_nan=False)


def _flat(value: Mapping[str, Any]) -> bool:
    """Say whether an object is a figure: a few plain values that read best on one line."""
    return "value" in value and not any(isinstance(v, dict | list) for v in value.values())


def _ordered(answer: dict[str, Any]) -> dict[str, Any]:
    if "metrics" not in answer:
        return answer
    metrics = answer["metrics"]
    return {
        **answer,
        "metrics": {name: metrics[name] for name in ordered(metrics)},
        "tables": dict(sorted(answer["tables"].items())),
        "provenance": dict(sorted(answer["provenance"].items())),
    }
