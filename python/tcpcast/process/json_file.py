"""Reads the JSON files of other programs with bounded memory, and values whose type is unknown."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from typing import TYPE_CHECKING, Any

from tcpcast.process.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 1 << 26
"""Largest content, after decompression."""

MAX_VALUES = 4_000_000
"""Most values and containers: a container of two characters takes about 60 B of memory."""

TEST_ADVICE = "repeat the test with a longer sampling interval"
"""What to do about a test that is too large."""

_GZIP = b"\x1f\x8b"


def read_content(path: Path, most: int = MAX_BYTES, *, advice: str = TEST_ADVICE) -> bytes:
    """Return the content of a file, which may be compressed by gzip.

    Parameters
    ----------
    path
        The file.
    most
        Number of bytes after decompression that are read; up to :data:`MAX_BYTES`, of which a
        larger file is an error.
    advice
        What to do about a file that is too large.

    Raises
    ------
    CaptureError
        The file cannot be read, is damaged or too large.
    """
    file = str(path)
    try:
        with path.open("rb") as raw:
            compressed = raw.read(len(_GZIP)) == _GZIP
            raw.seek(0)
            with gzip.GzipFile(fileobj=raw) if compressed else raw as stream:
                data = stream.read(most + (most == MAX_BYTES))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CaptureError(f"damaged gzip data ({error}); copy the file again", file=file) from None
    except OSError as error:
        raise CaptureError(f"cannot be read ({error.strerror or error})", file=file) from None
    if len(data) > MAX_BYTES:
        raise CaptureError(
            f"the file contains more than {MAX_BYTES >> 20} MiB after decompression; {advice}",
            file=file,
        )
    return data


def read_json(path: Path, program: str, *, advice: str = TEST_ADVICE) -> dict[str, Any]:
    """Return the object in a JSON file, which may be compressed by gzip.

    Raises
    ------
    CaptureError
        The file cannot be read, is damaged or too large, or has no object.
    """
    file, data = str(path), read_content(path, advice=advice)
    if sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise CaptureError(
            f"the file contains more than {MAX_VALUES:,} values; {advice}", file=file
        )
    try:
        document = json.loads(data)
    except RecursionError:
        raise CaptureError(
            (
                f"the JSON is nested more deeply than in any file that {program} writes; use the "
                "original file"
            ),
            file=file,
        ) from None
    except ValueError as error:
        where = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise CaptureError(
            f"this is not valid JSON{where}; use a complete file of {program}", file=file
        ) from None
    if not isinstance(document, dict):
        raise CaptureError(f"the JSON contains no object; use a file of {program}", file=file)
    return document


def table(value: object) -> dict[str, Any]:
    """Return a value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def rows(value: object) -> list[Any]:
    """Return a value if it is a list, otherwise an empty one."""
    return value if isinstance(value, list) else []


def text(value: object, most: int = 200) -> str:
    """Return the printable beginning of a text, "" for other values."""
    return "".join(c for c in value[:most] if c.isprintable()) if isinstance(value, str) else ""


def number(value: object) -> float:
    """Return a number between 0 and 1e15, otherwise nan."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value) if 0 <= value <= 1e15 else math.nan
