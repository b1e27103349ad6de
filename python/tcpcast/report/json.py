"""The machine-readable report: the scenario and all answers as one JSON document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tcpcast.answer.metrics import sort_metrics
from tcpcast.comparison.verdict import run_findings
from tcpcast.engines.stack_support import find_omitted_formulas
from tcpcast.report.path_advice import path_sizing
from tcpcast.report.verdict import verdict_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.comparison.compare import ComparedAnswers
    from tcpcast.scenario import Scenario


def answers_document(
    compared: ComparedAnswers, scenario: Scenario, amount_bytes: float | None = None
) -> dict[str, Any]:
    """Return the machine-readable report: ``scenario``, ``verdict``, ``findings`` and ``answers``.

    ``sizing`` has the values that fill the link of a single path, and the time for
    ``amount_bytes``. ``left_out`` lists formulas that do not support the stack, if any. Metrics are
    in the order of :data:`tcpcast.answer.metrics.METRICS`, tables and provenance in alphabetical
    order.
    The same scenario and seed give the same document, except for ``wall_s``.
    """
    findings = run_findings(compared, scenario)
    report = {
        "scenario": scenario.resolved(),
        "verdict": verdict_text(findings) or None,
        "findings": [finding.to_json() for finding in findings],
        "answers": [_order_metrics_and_tables(a.to_json()) for a in compared.answers],
        **path_sizing(compared, scenario, amount_bytes),
    }
    engines = {answer.engine for answer in compared.answers}
    left = [
        {"engine": name, "why": reason}
        for reason, names in find_omitted_formulas(scenario).items()
        for name in names
        if name not in engines
    ]
    return report | ({"left_out": left} if left else {})


def encode(value: Any, indent: int = 0) -> str:
    """Return JSON with one line per key, and lists of numbers on one line.

    The output is ASCII, so that it does not depend on the locale, and escapes control characters.

    Raises
    ------
    ValueError
        A number is NaN or infinite, which JSON cannot represent.
    """
    pad = "  " * (indent + 1)
    if isinstance(value, dict) and value and not _fits_on_one_line(value):
        body = ",\n".join(
            f"{pad}{json.dumps(str(k))}: {encode(v, indent + 1)}" for k, v in value.items()
        )
        return f"{{\n{body}\n{'  ' * indent}}}"
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        body = ",\n".join(f"{pad}{encode(v, indent + 1)}" for v in value)
        return f"[\n{body}\n{'  ' * indent}]"
    return json.dumps(value, allow_nan=False)


def _fits_on_one_line(value: Mapping[str, Any]) -> bool:
    """Return True for the object of a metric, which is short enough for one line."""
    return "value" in value and not any(isinstance(v, dict | list) for v in value.values())


def _order_metrics_and_tables(answer: dict[str, Any]) -> dict[str, Any]:
    if "metrics" not in answer:
        return answer
    metrics = answer["metrics"]
    return {
        **answer,
        "metrics": {name: metrics[name] for name in sort_metrics(metrics)},
        "tables": dict(sorted(answer["tables"].items())),
        "provenance": dict(sorted(answer["provenance"].items())),
    }
