"""Mark values outside the domain of a formula as untrusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.answer import Note
from tcpcast.models.domain import outside_domain_reason

if TYPE_CHECKING:
    from tcpcast.answer import Answer


def mark_values_outside_domain(answer: Answer) -> None:
    """Mark the values of an answer that are outside the domain of its formula, with a warning.

    ``answer.domain`` contains the quantities that bound the domain, by name.
    """
    why = outside_domain_reason(answer.engine, **answer.domain)
    if why:
        answer.mark_untrusted()
        answer.notes.insert(0, Note(f"outside the domain of the model: {why}", kind="outside"))
