"""Text from outside, file names and values, as it may be shown: nothing in it acts on a terminal.

Escape sequences move a cursor, set titles and clipboards; characters of direction (U+202E) show a
name other than it is. All that is printed passes through :func:`visible`, figures too.
"""

from __future__ import annotations

import re

# Control characters but for tab and newline; marks of direction, joiners and other characters of
# format (Cf), line and paragraph separators, and the halves of characters that stand for bytes
# that are no UTF-8.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_BYTES = range(0xDC80, 0xDD00)


def escape_control_characters(text: str) -> str:
    r"""Return a text with characters that are not shown written out, such as ``\x1b``.

    A byte of a file name that is no UTF-8 is written as that byte, ``\xff``.
    """
    return _HIDDEN.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code in _BYTES:
        code -= 0xDC00
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
