"""Figures of the documentation: files that a command on their page writes.

A comment ``<!-- figure: FOLDER/NAME.svg -->`` before an image names the file in the
folder in which the page's blocks run. ``make docs-update`` copies it to the image.
"""

import re
from pathlib import Path

import numpy as np

FIGURE = re.compile(r"^<!-- figure: (\S+) -->\n!\[[^\]]+\]\(([^)\s]+)\)$", re.MULTILINE)
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
NAMED = re.compile(r'\b(?:id|clip-path|xlink:href)="[^"]*"')
"""Names that depend on a digest of a drawing, and images within it."""
WITHIN = 0.05
"""Maximum difference of coordinates between machines, in points."""


def figures(page: Path) -> dict[str, Path]:
    """Return the figures of a page: the file that a block writes, and the kept file."""
    text = page.read_text(encoding="utf-8")
    return {written: (page.parent / kept).resolve() for written, kept in FIGURE.findall(text)}


def images(page: Path) -> list[Path]:
    """Return the image files on a page."""
    text = page.read_text(encoding="utf-8")
    return [(page.parent / shown).resolve() for shown in IMAGE.findall(text)]


def look_alike(one: str, other: str) -> bool:
    """Return True if two SVG files are equal except for the last digits of coordinates."""
    first, second = (NAMED.sub("", svg) for svg in (one, other))
    if NUMBER.sub("", first) != NUMBER.sub("", second):
        return False
    return bool(np.allclose(_numbers(first), _numbers(second), rtol=0, atol=WITHIN))


def _numbers(svg: str) -> list[float]:
    return [float(result) for result in NUMBER.findall(svg)]
