"""Docs, messages and comments use the terms of the field."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCOPE = ("README.md", "docs/**/*.md", "python/**/*.py", "crates/*/src/**/*.rs")

INSTEAD = {
    "sent again": "retransmitted",
    "sends? again": "retransmit",
    "behind a timeout": "after an RTO",
    "waits? for timers": "in RTO",
    "waiting for timers": "in RTO",
    "way there": "forward path",
    "way back": "return path",
    "traffic of others": "cross traffic",
    "others' packets": "cross packets",
    "without repetition": "goodput",
    "of files exceed": "percentile of file goodput",
    "falls? silent": "OFF time, think time, idle",
    "the click": "request",
    "what is out": "in flight",
    "under way": "in flight",
    "tell of all": "scale to the population",
    "hears? (?:of )?(?:its )?loss(?:es)?": "instantaneous loss feedback",
    "how far off": "relative error against exact simulation",
    "says? too (?:little|much)": "underestimates, overestimates",
    "held it for": "limited by",
    "lose less": "reduce loss",
    "packet by itself": "independent loss per packet",
    "asked for or measured": "specified or measured",
    "turn the question round": "solve for a target",
}
"""Regular expressions of terms to avoid, and the terms to use."""

BEGINS = re.compile(r"\b")

EXCEPT: dict[str, set[str]] = {}
"""Files that may contain an entry of :data:`INSTEAD`, by entry."""


@cache
def texts() -> dict[str, str]:
    """Return the checked texts in lower case, by file name in the repository."""
    files = sorted({path for pattern in SCOPE for path in ROOT.glob(pattern)})
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").lower() for path in files}


def places(phrase: str) -> list[str]:
    """Return the places of a phrase, including phrases over two lines."""
    # Check the start of a word afterwards: a pattern that starts with letters is much faster.
    words = re.compile(rf"{phrase}\b".replace(" ", r"[\s/#!]+"))
    places = []
    for name, text in texts().items():
        if name in EXCEPT.get(phrase, set()):
            continue
        places += [
            f"{name}:{text.count(chr(10), 0, at.start()) + 1}"
            for at in words.finditer(text)
            if BEGINS.match(text, at.start())
        ]
    return places


def test_a_phrase_is_found_as_whole_words_over_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "A text\n    /// Sent\n    /// again, resent again.".lower()
    monkeypatch.setitem(globals(), "texts", lambda: {"a.rs": text})
    assert places("sent again") == ["a.rs:2"]


def test_checked_texts_include_code_and_docs() -> None:
    names = texts().keys()
    assert names >= {"README.md", "docs/tutorial.md", "python/tcpcast/compare.py"}
    assert "crates/trace/src/lib.rs" in names


@pytest.mark.parametrize("phrase", INSTEAD)
def test_terms_of_the_field_are_used(phrase: str) -> None:
    assert places(phrase) == [], f"write: {INSTEAD[phrase]}"


def test_every_exception_is_needed() -> None:
    assert EXCEPT.keys() <= INSTEAD.keys()
    for phrase, names in EXCEPT.items():
        for name in names:
            text = (ROOT / name).read_text(encoding="utf-8")
            words = rf"\b{phrase}\b".replace(" ", r"[\s/#!]+")
            assert re.search(words, text, re.IGNORECASE), f"{name}: {phrase}"
