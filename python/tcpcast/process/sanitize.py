"""Escapes control characters in external text (file names, values) to protect the terminal.

Escape sequences can move the cursor and set titles and clipboards; direction marks (U+202E) can
hide the real name of a file. :func:`escape_control_characters` is applied to all printed text and
to plots.
"""

from __future__ import annotations

import re

# Control characters except for tab and newline; direction marks, joiners and other format
# characters (Cf); line and paragraph separators; surrogates, which stand for bytes that are not
# UTF-8.
_INVISIBLE_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_ESCAPED_BYTES = range(0xDC80, 0xDD00)


def escape_control_characters(text: str) -> str:
    r"""Return a text in which invisible characters are escaped, for example as ``\x1b``.

    Bytes of a file name that are not UTF-8 are written as ``\xff``.
    """
    return _INVISIBLE_CHARACTERS.sub(_escape_character, text)


def _escape_character(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code in _ESCAPED_BYTES:
        code -= 0xDC00
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
