"""Reads values and ranges: ``--loss 1%``, ``--loss 0.01%..10%``, ``"10ms..200ms log 8"``."""

# ruff: noqa: PLC0415 - slow modules are imported when the command runs, not for its help
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast.process.errors import UnitError

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_POINTS = 10
SIGNIFICANT_DIGITS = 3
"""Significant digits of the values between the ends of a range."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """Type of an option or key: how it is parsed and formatted, and an example of a range.

    ``read`` raises UnitError outside the domain; ``whole`` allows only integers;
    ``has_linear_steps`` is True if the word ``lin`` after a range selects equal steps.
    """

    option: str
    read: Callable[[str], float]
    write: Callable[[float], str]
    range_example: str
    whole: bool = False
    has_linear_steps: bool = False


def expand_range(
    quantity: Quantity,
    text: str,
    points: int = DEFAULT_POINTS,
    *,
    linear: bool = False,
    exact: bool = False,
) -> list[str]:
    """Return the values of an option as strings that parse to the same values.

    Parameters
    ----------
    quantity
        Type of the option.
    text
        One value, or ``LOW..HIGH``.
    points
        Number of values of a range, at least 2. The ends are as typed. The values between them have
        equal ratios, rounded to three digits (to integers if ``quantity.whole``).
    linear
        Values have equal differences instead of equal ratios; the range may then begin at 0.
    exact
        Values have more than three digits if neighbouring values would otherwise be equal.

    Raises
    ------
    UnitError
        A value cannot be parsed, or a range lacks an end or is in descending order. The message
        begins with the option.
    """
    if ".." not in text:
        _read_end(quantity, text)
        return [text.strip()]
    (low, first), (high, last) = read_range_ends(quantity, text, linear=linear)
    shares = (i / (points - 1) for i in range(1, points - 1))
    if linear:
        between = (first + (last - first) * share for share in shares)
        step = (last - first) / (points - 1) / last
    else:
        between = (first * (last / first) ** share for share in shares)
        step = (last / first) ** (1 / (points - 1)) - 1
    digits = (
        max(SIGNIFICANT_DIGITS, 2 - math.floor(math.log10(step))) if exact else SIGNIFICANT_DIGITS
    )
    rounded = (
        (float(round(value)) if quantity.whole else float(f"{value:.{digits - 1}e}"))
        for value in between
    )
    inner = dict.fromkeys(value for value in rounded if first < value < last)
    return [low, *(quantity.write(value) for value in inner), high]


def read_range_ends(
    quantity: Quantity, text: str, *, linear: bool = False
) -> tuple[tuple[str, float], tuple[str, float]]:
    """Return both ends of a range, each as typed and as parsed.

    Raises
    ------
    UnitError
        As for :func:`expand_range`.
    """
    low, high = _split_range(quantity, text)
    first, last = _read_end(quantity, low), _read_end(quantity, high)
    _check_order(quantity, text, (low, first), (high, last), linear=linear)
    return (low, first), (high, last)


def is_range(text: str | None) -> bool:
    """Return True if the value of an option is a range."""
    return text is not None and ".." in text


def _split_range(quantity: Quantity, text: str) -> tuple[str, str]:
    from tcpcast.quantity.units import quote

    parts = [part.strip() for part in text.split("..")]
    if len(parts) != 2:
        what = "contains more than two ends"
    elif not any(parts):
        what = "has no ends"
    elif not parts[1]:
        what = "has no end"
    elif not parts[0]:
        what = "has no beginning"
    elif parts[1].endswith("%") and not parts[0].endswith("%"):
        # 0.01..10% would mean 1 % to 10 %, which is hardly ever intended.
        what = f"contains a percentage at only one end; use {parts[0]}%..{parts[1]}"
        raise UnitError(f"{quantity.option}: {quote(text)} {what}")
    else:
        return parts[0], parts[1]
    raise UnitError(f"{quantity.option}: {quote(text)} {what}; use {quantity.range_example}")


def _read_end(quantity: Quantity, text: str) -> float:
    try:
        return quantity.read(text.strip())
    except UnitError as error:
        raise UnitError(f"{quantity.option}: {error}") from None


def _check_order(
    quantity: Quantity,
    text: str,
    low: tuple[str, float],
    high: tuple[str, float],
    *,
    linear: bool,
) -> None:
    from tcpcast.quantity.units import quote

    (low_text, first), (high_text, last) = low, high
    if not math.isfinite(first) or not math.isfinite(last):
        what = f"is a range without an end; use {quantity.range_example}"
    elif first == last:
        what = f"is a range of one value; use {low_text}"
    elif first > last:
        what = f"is in descending order; use {high_text}..{low_text}"
    elif first == 0 and not linear:
        what = "begins at 0, but the values of a range have a constant ratio; use "
        start = max(round(last / 100), 1) if quantity.whole else last / 100
        advice = [f"{quantity.write(start)}..{quantity.write(last)}"] if start < last else []
        advice += ["lin for equal steps"] if quantity.has_linear_steps else []
        what += ", or ".join(advice) or quantity.range_example
    else:
        return
    raise UnitError(f"{quantity.option}: {quote(text)} {what}")
