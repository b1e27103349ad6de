"""Errors of tcpcast, one class per kind; messages state the place, the error and the remedy."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class TcpcastError(Exception):
    """Base class of all errors that tcpcast raises intentionally."""

    exit_code = 2


class UnitError(TcpcastError, ValueError):
    """A quantity that cannot be read, such as a bare ``10mbps``."""


class InputError(NamedTuple):
    """One error of a scenario: the dotted key ("" without a key), and the message."""

    key: str
    message: str

    def __str__(self) -> str:
        """Return the line of a message."""
        return f"{self.key}: {self.message}" if self.key else self.message


class ScenarioError(TcpcastError, ValueError):
    """A scenario that cannot be answered: an unknown key, a value out of range, a contradiction.

    Parameters
    ----------
    *faults
        Errors, each with one line of the message; a text is an error without a key.
    """

    def __init__(self, *errors: InputError | str) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = [f if isinstance(f, InputError) else InputError("", f) for f in errors]

    def renamed(self, names: Mapping[str, str]) -> ScenarioError:
        """Return the error with keys replaced, for example by option names."""
        return ScenarioError(*(f._replace(key=names.get(f.key, f.key)) for f in self.errors))


class CaptureError(TcpcastError, ValueError):
    """A file that cannot be read, or is not a packet capture.

    Parameters
    ----------
    reason
        The error.
    file
        The name of the file, at the beginning of the message; "" if the reason contains it.
    """

    def __init__(self, reason: str, *, file: str = "") -> None:
        super().__init__(f"{file}: {reason}" if file else reason)
        self.reason, self.file = reason, file


class DomainError(TcpcastError, ValueError):
    """An argument of a model outside its domain; the message names the argument and the reason."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A changed request that an engine may accept, although it refused the original request.

    Parameters
    ----------
    changes
        New values by dotted key, as ``Scenario.with_changes`` takes them; None removes the key.
    engine
        Another engine; "" for the same engine.
    feed
        Another ``feed``; "" for the same ``feed``.
    """

    changes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    engine: str = ""
    feed: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are not empty."""
        fields = {"engine": self.engine, "feed": self.feed, "changes": self.changes}
        return {name: value for name, value in fields.items() if value}


class SuggestionSyntax:
    """Syntax of suggestions in a scenario file and in Python; front ends have subclasses."""

    def engine(self, name: str) -> str:
        """Return the request for an engine."""
        return f"use engine {name}"

    def feed(self, name: str) -> str:
        """Return the request for a feed."""
        return f"use --feed {name}"

    def key(self, key: str) -> str:
        """Return the name of a key."""
        return key

    def assignment(self, key: str, value: Any) -> str:
        """Return the assignment of a key."""
        return f"{self.key(key)} = {json.dumps(value)}"

    def text(self, suggestions: Iterable[Suggestion]) -> str:
        """Return suggestions as the end of a sentence; "" without suggestions."""
        return ", or ".join(dict.fromkeys(" and ".join(self._parts(each)) for each in suggestions))

    def _parts(self, suggestion: Suggestion) -> Iterator[str]:
        if suggestion.engine:
            yield self.engine(suggestion.engine)
        if suggestion.feed:
            yield self.feed(suggestion.feed)
        changes = suggestion.changes.items()
        if written := [self.assignment(*each) for each in changes if each[1] is not None]:
            yield f"write {' and '.join(written)}"
        if omitted := [self.key(key) for key, value in changes if value is None]:
            yield f"leave {' and '.join(omitted)} out"


class NotApplicable(TcpcastError):  # noqa: N818 - an answer of its own kind rather than a fault
    """An engine that exists but cannot answer this scenario.

    Parameters
    ----------
    reason
        The reason.
    *suggestions
        Requests that avoid this reason; another reason may remain.
    """

    def __init__(self, reason: str, *suggestions: Suggestion) -> None:
        super().__init__(reason, *suggestions)
        self.reason, self.suggestions = reason, suggestions

    def __str__(self) -> str:
        """Return the reason and the suggestions."""
        return refusal_text(self.reason, self.suggestions)


def refusal_text(
    reason: str, suggestions: Iterable[Suggestion], names: SuggestionSyntax | None = None
) -> str:
    """Return a reason with its suggestions in the syntax of a front end."""
    return "; ".join(filter(None, (reason, (names or SuggestionSyntax()).text(suggestions))))


class _UnknownName(TcpcastError, KeyError):  # noqa: N818 - as below
    def __str__(self) -> str:
        return Exception.__str__(self)  # KeyError.__str__ would quote the message


class UnknownEngine(_UnknownName):
    """An engine name that is not in the registry, or without an answer in a list of answers."""


class UnknownMetric(_UnknownName):
    """A metric that an answer does not have; the message contains similar names or all names."""


class WorkerDied(TcpcastError):  # noqa: N818 - says what happened
    """A process ended without a result, or had an internal error."""

    exit_code = 3


class MachineError(TcpcastError):
    """A requirement that the machine lacks: an optional package, a writable directory."""

    exit_code = 3
