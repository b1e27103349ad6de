"""Errors of tcpcast, one class per kind; messages state the place, the error and the remedy."""

from __future__ import annotations

import difflib
import json
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class TcpcastError(Exception):
    """Base class of all errors that tcpcast raises intentionally."""

    exit_code = 2

    def lines(self) -> list[tuple[str, str]]:
        """Return the key or option of each error ("" without one), and its line of the message."""
        return [("", line) for line in str(self).splitlines()]


class UnitError(TcpcastError, ValueError):
    """A quantity that cannot be read, such as a bare ``10mbps``."""


class InputError(NamedTuple):
    """One error of the input: the dotted key or the option ("" without one), and the message."""

    key: str
    message: str

    def __str__(self) -> str:
        """Return the line of a message, with the front end's word for the key."""
        return f"{name_of(self.key)}: {self.message}" if self.key else self.message


class ScenarioError(TcpcastError, ValueError):
    """A scenario that cannot be answered: an unknown key, a value out of range, a contradiction.

    Parameters
    ----------
    *errors
        Errors, each with one line of the message; a text is an error without a key.
    key
        Key of the errors without a key, whose text already names it.
    """

    def __init__(self, *errors: InputError | str, key: str = "") -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = [f if isinstance(f, InputError) else InputError("", f) for f in errors]
        self._lines = [(each.key or key, str(each)) for each in self.errors]

    def lines(self) -> list[tuple[str, str]]:
        """Return the key of each error, and its line in the words of the front end."""
        return self._lines


class ControlError(TcpcastError, ValueError):
    """A class that cannot be used as congestion control."""


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


class OptionError(DomainError):
    """A value of an option that cannot be used.

    Parameters
    ----------
    option
        The option, such as ``--rtt``.
    message
        The error and its correction.
    """

    def __init__(self, option: str, message: str) -> None:
        super().__init__(option, message)
        self.option, self.message = option, message

    def __str__(self) -> str:
        """Return the message with the front end's word for the option."""
        return str(InputError(self.option, self.message))

    def lines(self) -> list[tuple[str, str]]:
        """Return the option and the line."""
        return [(self.option, str(self))]


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


@dataclass(frozen=True, slots=True)
class Words:
    """Names of keys, options and engines in texts: those of the terminal and of scenario files.

    Each front end has a subclass, so that no front end reads or replaces words of a text.

    Parameters
    ----------
    options
        Options by the key of a scenario that they set.
    """

    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    def option(self, flag: str) -> str:
        """Return the name of an option, which is given as typed on the command line."""
        return flag

    def key(self, key: str) -> str:
        """Return the name of a key."""
        return self.option(self.options[key]) if key in self.options else key

    def assignment(self, key: str, value: Any) -> str:
        """Return the assignment of a key."""
        if key in self.options:
            return f"{self.options[key]} {value}"
        written = f"{key}={value}" if self.options else f"{key} = {json.dumps(value)}"
        return f"--set {written}" if self.options else written

    def suggestions(self, suggestions: Iterable[Suggestion]) -> str:
        """Return suggestions as the end of a sentence; "" without suggestions."""
        return ", or ".join(dict.fromkeys(" and ".join(self._parts(each)) for each in suggestions))

    def _parts(self, suggestion: Suggestion) -> Iterator[str]:
        if suggestion.engine:
            yield f"use the {suggestion.engine} engine"
        if suggestion.feed:
            yield f"use {self.option('--feed')} {suggestion.feed}"
        changes = suggestion.changes.items()
        if written := [self.assignment(*each) for each in changes if each[1] is not None]:
            yield f"use {' and '.join(written)}"
        if omitted := [self.key(key) for key, value in changes if value is None]:
            yield f"remove {' and '.join(omitted)}"


_TERMINAL = Words()
_words: ContextVar[Words] = ContextVar("_words", default=_TERMINAL)


@contextmanager
def speaking(words: Words) -> Iterator[None]:
    """Use the words of a front end in all texts that are made meanwhile."""
    token = _words.set(words)
    try:
        yield
    finally:
        _words.reset(token)


@contextmanager
def naming_options(options: Mapping[str, str]) -> Iterator[None]:
    """Name options instead of the keys that they set, in the words of the present front end."""
    with speaking(replace(_words.get(), options=options)):
        yield


def name_of(name: str) -> str:
    """Return the front end's word for a dotted key, or for an option such as ``--rtt``."""
    words = _words.get()
    return words.option(name) if name.startswith("--") else words.key(name)


def assignment_of(key: str, value: Any) -> str:
    """Return the assignment of a key in the words of the front end."""
    return _words.get().assignment(key, value)


def with_names(text: str) -> str:
    """Return a text whose options in braces, such as ``{--rtt}``, have the front end's words."""
    first, *parts = text.split("{--")
    return first + "".join(
        name_of(f"--{flag}") + rest for flag, _, rest in (part.partition("}") for part in parts)
    )


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


def refusal_text(reason: str, suggestions: Iterable[Suggestion]) -> str:
    """Return a reason with its suggestions in the words of the front end."""
    return "; ".join(filter(None, (reason, _words.get().suggestions(suggestions))))


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


def did_you_mean_text(word: object, known: Iterable[str]) -> str:
    """Return `` (did you mean "..."?)`` with the nearest known word, or an empty text."""
    near = find_nearest_word(word, known)
    return f' (did you mean "{near}"?)' if near else ""


def find_nearest_word(word: object, known: Iterable[str]) -> str | None:
    """Return the known word most similar to the typed word, or None."""
    names = {name.lower(): name for name in known}
    typed = str(word).lower()
    matches = difflib.get_close_matches(typed, names, n=1, cutoff=0.6)
    if not matches:
        matches = [n for n in names if len(typed) > 2 and (n.startswith(typed) or typed in n)][:1]
    return names[matches[0]] if matches else None
