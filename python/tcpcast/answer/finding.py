"""Findings: the results that a verdict states, as data.

Functions that choose the findings return them in the order of a sentence, and
:func:`tcpcast.report.verdict.verdict_text` renders them for every front end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tcpcast.answer import Metric, finite_or_none, unit_of_metric

if TYPE_CHECKING:
    from tcpcast.answer import Kind

Claim = Literal["value", "largest", "smallest", "difference", "alike", "untested", "error", "text"]
"""What a finding states: ``value``, the value of its subject; ``largest`` and ``smallest``, an
extreme of a comparison; ``difference``, by how much ``metric`` changes with what ``subject`` says;
``alike``, no significant difference in ``metric`` (in no other metric, if
it is ""); ``untested``, a difference that cannot be tested without intervals; ``error``, the
relative difference of a formula (``subject``) from the basis; ``text``, only ``subject``."""

NO_INTERVAL = "no interval"
"""Reason in place of the interval of a simulated value, if its engine gives no reason."""

NO_VALUE = Metric(math.nan)
"""Value of a finding without a number."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A result with its uncertainty, its limit, and the engine that it is based on.

    Parameters
    ----------
    subject
        What has the value, as a noun phrase in lower case: ``the 2 flows together``, ``smallest
        buffer for a loss of at most 1 %``. For data sent in a capture, a clause: ``10.0.0.1 sends
        12 MB to 10.0.0.2``.
    metric
        Name of a metric, or of the key that a plan solves for.
    value
        The value with its interval. A value of NaN with an interval is only bracketed, one without
        is unknown. ``value.unit`` is the unit if ``metric`` is not a metric; for counts, it is the
        noun (``packet``, ``flow``).
    claim
        What the finding states.
    basis, kind
        The engine of the value, and whether it calculates, simulates or measures. "" for a basis
        that the reader knows, such as a capture.
    bound
        ``at most`` or ``at least`` if the value is only a bound.
    limit
        What limits the value: a key of :data:`tcpcast.answer.limit_names.LIMIT_NAMES`, or "".
    place
        Values of varied keys to which the value belongs: key, value and unit.
    tied
        Number of places whose values do not differ significantly from an extreme, with its own.
    count
        Number of senders in ``subject``, which determines the form of the verb.
    evidence
        A fact that supports the finding, appended as it is: " (buffer 1 BDP)", or "". For
        ``alike``, what the value is, if it can be negative: "B - A".
    action
        What to change first, as a clause in lower case, or "".
    """

    subject: str = ""
    metric: str = ""
    value: Metric = NO_VALUE
    claim: Claim = "value"
    basis: str = ""
    kind: Kind = "simulation"
    bound: Literal["", "at most", "at least"] = ""
    limit: str = ""
    place: tuple[tuple[str, Any, str], ...] = ()
    tied: int = 1
    count: int = 1
    evidence: str = ""
    action: str = ""

    @property
    def unit(self) -> str:
        """Unit of the value."""
        return unit_of_metric(self.metric, self.value)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are not empty; NaN and infinity become null."""
        value = self.value
        numbers = (
            {}
            if self.claim == "text"
            else {
                **{name: finite_or_none(getattr(value, name)) for name in ("value", "low", "high")},
                "unit": self.unit,
                "trusted": value.trusted,
            }
        )
        texts = {
            name: getattr(self, name)
            for name in ("subject", "metric", "basis", "bound", "limit", "evidence", "action")
        }
        kind = {"kind": self.kind} if self.basis else {}
        place = {"place": {key: value for key, value, _ in self.place}} if self.place else {}
        tied = {"tied": self.tied} if self.tied > 1 else {}
        given = {name: text for name, text in texts.items() if text}
        return {"claim": self.claim} | given | kind | place | tied | numbers
