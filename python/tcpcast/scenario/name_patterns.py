"""Names in scenarios: permitted characters, and their description in messages."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

MAX_TITLE_LENGTH = 200
"""Maximum length of a scenario's name in characters."""
MAX_NAME_LENGTH = 60
"""Maximum length of the name of a class, hop or cross-traffic stream in characters."""

_TITLE = r"^[^\x00-\x1f\x7f]+$"
_NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"

PATTERN_TEXTS = {
    _TITLE: "a name (any characters except line breaks and other control characters)",
    _NAME: "a name (a letter, then letters without accents, digits, - and _)",
}
"""Description of each pattern for messages."""

Title = Annotated[str, Field(pattern=_TITLE, max_length=MAX_TITLE_LENGTH)]
"""Name of a scenario."""

Name = Annotated[str, Field(pattern=_NAME, max_length=MAX_NAME_LENGTH)]
"""Name of a class, hop or cross-traffic stream, used in keys and tables."""
