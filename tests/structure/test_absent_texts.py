"""Texts that tests expect not to see still occur in the sources.

If a message is reworded, a test that the old words are absent can never fail.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
OTHER_SOURCES = ("crates/**/src/**/*.rs", "python/**/*.js", "python/**/*.html", "docs/**/*.js")
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
MIN_LETTERS = 4
MIN_SHARE = 0.6
"""Fewer letters, or a smaller share of the text, do not show that a template produces it."""
FOREIGN = {
    "MathJax": "a library that no page may load",
    "Traceback": "Python",
    "url(": "style sheets of any origin",
    "url(http": "style sheets of any origin",
    "packet,packet": "two values that the shell completion joins",
}
"""Texts that others would write."""

Template = tuple[str, ...]
"""A text with gaps: its pieces in order, with any text between two of them."""


def spaced(text: str) -> str:
    """Return the text with single spaces; names are printed with spaces instead of underscores."""
    return re.sub(r"[\s_]+", " ", text)


def template_of(node: ast.expr) -> Template | None:
    """Return the template of a string literal, or None for other expressions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return tuple(PLACEHOLDER.split(spaced(node.value)))
    if not isinstance(node, ast.JoinedStr):
        return None
    parts = [
        part.value if isinstance(part, ast.Constant) else "\0"  # no literal contains it
        for part in node.values
    ]
    return tuple(spaced("".join(map(str, parts))).split("\0"))


@cache
def templates() -> set[Template]:
    """Return the templates of all string literals in the sources."""
    found: set[Template] = set()
    for path in (ROOT / "python").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.expr) and (template := template_of(node)):
                found.add(template)
    for pattern in OTHER_SOURCES:
        for path in ROOT.glob(pattern):
            text = re.sub(r"\\\n\s*", "", path.read_text(encoding="utf-8"))
            found.add(tuple(re.split(r"\$?\{[^{}]*\}|\"", spaced(text))))
    return found


@cache
def plain_text() -> str:
    return "\0".join(piece for template in templates() for piece in template)


def count_letters(text: str) -> int:
    return sum(character.isalpha() for character in text)


def can_produce(template: Template, text: str) -> bool:
    """Return True if the text may be a part of the template with its gaps filled."""
    for index, piece in enumerate(template):
        gap_before, gap_after = index > 0, index + 1 < len(template)
        for length in range(min(len(piece), len(text)), 0, -1):
            is_end = gap_before and text.endswith(piece[:length])
            is_begin = gap_after and text.startswith(piece[-length:])
            is_within = gap_before and gap_after and length == len(piece) and piece in text
            if is_end or is_begin or is_within:
                letters = count_letters(piece[:length] if is_end else piece[-length:])
                if letters >= MIN_LETTERS and letters > MIN_SHARE * count_letters(text):
                    return True
                break
    return False


def occurs(text: str) -> bool:
    text = spaced(text)
    return text in plain_text() or any(can_produce(template, text) for template in templates())


def absent_texts(tree: ast.Module) -> Iterator[tuple[int, ast.expr]]:
    """Yield line and text of each ``"text" not in ...`` and ``not ... "text" in ...``."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assert):
            continue
        negated = [
            inner
            for outer in ast.walk(node.test)
            if isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not)
            for inner in ast.walk(outer)
        ]
        for compared in ast.walk(node.test):
            if isinstance(compared, ast.Compare) and (
                isinstance(compared.ops[0], ast.NotIn)
                or (isinstance(compared.ops[0], ast.In) and compared in negated)
            ):
                yield node.lineno, compared.left


def outdated_texts(source: str) -> list[tuple[int, str]]:
    """Return line and text of each expected absence that no source can cause."""
    tree = ast.parse(source)
    absent = list(absent_texts(tree))
    skipped = {id(node) for _, node in absent}
    elsewhere = [
        spaced(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in skipped
    ]
    found = []
    for line, node in absent:
        for piece in template_of(node) or ():
            # Control characters, and texts that the test uses elsewhere, come from its input.
            known = piece in FOREIGN or any(piece in text for text in elsewhere)
            if piece.isprintable() and count_letters(piece) and not (known or occurs(piece)):
                found.append((line, piece))
    return found


def test_templates_produce_parts_of_their_texts() -> None:
    template = ("A ", " of this size takes about ", ": ", ".")
    for text in ("size takes about 3 s", "1 of this size takes about 2: b"):
        assert can_produce(template, text), text
    for text in ("size takes roughly", "no takes about"):
        assert not can_produce(template, text), text
    assert not can_produce(("", " from the SYN"), "from the SYN on")


def test_a_reworded_text_is_found() -> None:
    code = 'def test_a():\n    assert "words that nothing prints" not in out\n'
    assert outdated_texts(code) == [(2, "words that nothing prints")]


def test_absent_texts_occur_in_the_sources() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}": text
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for line, text in outdated_texts(path.read_text(encoding="utf-8"))
    }
    assert not found
