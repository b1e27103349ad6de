"""Numbers of a verdict that do not round a number of its findings."""

import math
import re
from collections.abc import Sequence

from tcpcast.answer.finding import Finding

_NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*\d|(?<![\w.])\d")
_FACTORS = (1.0, 1e-6, 1e-3, 1e3, 1e6, 1e9, 0.01)
"""Sizes of the units that verdicts show."""


def wrong_numbers(sentence: str, findings: Sequence[Finding]) -> list[str]:
    """Return the numbers of a verdict that are not values of the findings, or of their texts."""
    exact: list[float] = []
    known: set[str] = set()
    for finding in findings:
        value = finding.value
        exact += [v for v in (value.value, value.low, value.high, value.at_least) if v is not None]
        exact += [float(v) for _, v, _ in finding.place if isinstance(v, int | float)]
        exact += [1 + value.value]  # "2.1 times as large"
        exact += [finding.tied - 1]
        texts = (finding.subject, finding.evidence, finding.action, finding.basis)
        known.update(number for text in texts for number in _NUMBER.findall(text))
        known.update(re.findall(r"(?<=_p)\d+", finding.metric))  # "in 95 % of cases"
    exact = [abs(value) for value in exact if math.isfinite(value)]

    def is_rounded(text: str) -> bool:
        number = float(text.replace(",", ""))
        half = 0.5001 * 10.0 ** -len(text.partition(".")[2])
        return any(
            abs(number - value / factor) <= max(half if "." in text else 0.5001, 0.0051 * number)
            for value in exact
            for factor in _FACTORS
        )

    shown = {number.rstrip(".,") for number in _NUMBER.findall(sentence)} - known
    return [number for number in sorted(shown) if not is_rounded(number)]
