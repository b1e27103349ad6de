"""Wording of suggestions on the page: labels of fields, and the button for a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.errors import Suggestion, SuggestionSyntax

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SIMULATION = "packet"


class PageSuggestionSyntax(SuggestionSyntax):
    """Wording of suggestions on the page.

    Parameters
    ----------
    labels
        Labels of a question's fields by scenario key.
    """

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels

    def engine(self, name: str) -> str:
        """Return the text of the action that starts the simulation."""
        return "press Simulate" if name == SIMULATION else super().engine(name)

    def key(self, key: str) -> str:
        """Return the label of the field for a key."""
        return f'"{self._labels[key]}"'

    def assignment(self, key: str, value: Any) -> str:
        """Return the label of the field for a key, with a value."""
        return f"{value} for {self.key(key)}"

    def text(self, suggestions: Iterable[Suggestion]) -> str:
        """Return the suggestions that the user can follow on the page, as text."""
        return super().text(each for each in suggestions if self._has_controls(each))

    def _has_controls(self, suggestion: Suggestion) -> bool:
        if suggestion.feed or suggestion.engine not in {"", SIMULATION}:
            return False
        return suggestion.changes.keys() <= self._labels.keys()
