"""Which values of a formula are to be trusted: those inside its domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.answer import Note
from tcpcast.models.domain import outside

if TYPE_CHECKING:
    from tcpcast.answer import Answer


def mark_outside(answer: Answer) -> None:
    """Mark the values of an answer that its formula's domain does not cover, with a warning.

    ``answer.domain`` has the quantities that bound the domain, by name.
    """
    why = outside(answer.engine, **answer.domain)
    if why:
        answer.mark_untrusted()
        answer.notes.insert(0, Note(f"outside its domain: {why}", kind="outside"))
