"""Quantities as users type them: ``10mbit``, ``50ms``, ``1500B``, ``0.1%``, ``20/s``.

Parsers convert the text of a file to a number in SI units (bit/s, s, bytes, packets); formatters
return a text that parses to exactly the same number. Arithmetic is decimal, so ``50ms`` is exactly
the float 0.05.
"""

from __future__ import annotations

import json
import math
import numbers
import re
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from tcpcast.process.errors import UnitError, find_nearest_word
from tcpcast.quantity.unit_tables import BYTE_UNITS, RATE_UNITS, TIME_NAMES, TIME_UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping

NUMBER = r"[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?"
"""An unsigned decimal number, as a regular expression."""

_QUANTITY = re.compile(rf"\s*([+-]?)({NUMBER})\s*(\S.*?)?\s*", re.DOTALL)
_MAX_LENGTH = 64

_BARE_NUMBER = re.compile(rf"\s*[+-]?{NUMBER}\s*")
_MIN_RATE_IN_BITS = 100_000
"""Smallest number without a unit that is more likely a rate in bit/s than in Mbit/s."""

MAX_RATE = Decimal(10**13)
MAX_TIME = Decimal(10**8)
MAX_BYTES = Decimal(10**15)
MAX_PACKETS = Decimal(10**12)

_RATE = re.compile(r"(?i:([kmgt]?)bit(?:/s)?)|([kKmMgGtT]?)b/s")
"""Units of rates: ``Mbit``, ``Mbit/s``, or ``Mb/s`` with a lower-case b."""

_BYTE_RATE = re.compile(r"(?:([kKmMgG])(i?))?(?:B|b|[bB]yte|[bB]ytes)(?:ps|/s)")
_POSITIVE_QUANTITIES = ("rate", "frequency")
"""Quantities that must not be 0, in any unit."""

_TOO_LARGE_UNITS = re.compile(r"([pe])(i?)b", re.IGNORECASE)
_PACKET_NAMES = ("pkts", "packet", "packets", "segment", "segments", "p")


def is_bare_number(text: str) -> bool:
    """Return True if a text is a decimal number without a unit, with or without a sign."""
    return _BARE_NUMBER.fullmatch(text) is not None


def parse_rate(value: object) -> float:
    """Parse a rate: ``"10mbit"``, ``"1.5 Mbit/s"``, ``"unlimited"``.

    Parameters
    ----------
    value
        A text with one of the units bit, kbit, mbit, gbit, tbit (any case, ``/s`` optional), or
        ``b/s``, ``Mb/s`` etc.

    Returns
    -------
    float
        bit/s; ``inf`` for ``"unlimited"``.

    Raises
    ------
    UnitError
        The text has no unit, a unit of bytes or ``mbps``, or is outside 1 bit/s to 1e13 bit/s.
    """
    if value == "unlimited":
        return math.inf
    number, unit = _split_quantity(value, "rate", '"10mbit"')
    match = _RATE.fullmatch(unit)
    if match is None:
        byte = _BYTE_RATE.fullmatch(unit)
        if byte is not None and not byte[2]:
            prefix = (byte[1] or "").lower()
            if "B" in unit or "yte" in unit:
                bad_rate_text = (
                    f'{quote(value)} is in bytes; use "{decimal_text(number * 8)}{prefix}bit"'
                )
            else:
                bad_rate_text = (
                    f"{quote(value)} may mean bits or bytes; use "
                    f'"{decimal_text(number)}{prefix}bit" for bits or '
                    f'"{decimal_text(number * 8)}{prefix}bit" for bytes'
                )
        else:
            near = find_nearest_word(unit.lower(), RATE_UNITS)
            bad_rate_text = (
                f"{quote(value)} is not a rate (bit, kbit, mbit, gbit or tbit); "
                f'use "{decimal_text(number)}{near or "mbit"}"'
            )
        raise UnitError(bad_rate_text)
    rate = number * RATE_UNITS[f"{match[1] or match[2] or ''}bit".lower()]
    return _check_range(rate, value, Decimal(1), MAX_RATE, ("1bit", "10tbit"))


def parse_duration(value: object, *, example: str = "50ms") -> float:
    """Parse a time: ``"50ms"``, ``"1s"``, ``"2min"``.

    Parameters
    ----------
    value
        A text with one of the units ns, us, ms, s, min, h; optional for 0.
    example
        The time that an error suggests; for a number without a unit, the error suggests its unit.

    Returns
    -------
    float
        Seconds, from 0 to 1e8.

    Raises
    ------
    UnitError
        The text has no or an unknown unit, or the time is negative or above 1e8 s.
    """
    number, unit = _split_quantity(value, "time", f'"{example}"', zero_needs_no_unit=True)
    if unit and unit not in TIME_UNITS:
        if any(c.isdigit() for c in unit):
            written = 'one number and one unit, such as "90s"'
        elif unit in ("m", "M"):
            text = decimal_text(number)
            written = f'"{text}min" for minutes or "{text}ms" for milliseconds'
        else:
            near = TIME_NAMES.get(unit.lower()) or find_nearest_word(unit, TIME_UNITS)
            written = f'"{decimal_text(number)}{near or "ms"}"'
        raise UnitError(f"{quote(value)} is not a time (ns, us, ms, s, min or h); use {written}")
    seconds = number * TIME_UNITS[unit or "s"]
    return _check_range(seconds, value, Decimal(0), MAX_TIME, ("0s", "100000000s"))


def parse_bytes(value: object) -> int:
    """Parse a size in bytes: ``"1500B"``, ``"64KiB"``, ``"200KB"``.

    Parameters
    ----------
    value
        A text in B, kB, KB, MB, GB, TB (powers of ten), or KiB, MiB, GiB, TiB (powers of two).

    Returns
    -------
    int
        Bytes, from 0 to 1e15.

    Raises
    ------
    UnitError
        The text has no unit or a unit of bits, or the size is negative or not a whole number of
        bytes.
    """
    number, unit = _split_quantity(value, "size in bytes", '"1500B"')
    if unit not in BYTE_UNITS:
        raise UnitError(_bad_size_text(value, number, unit, BYTE_UNITS))
    size = number * BYTE_UNITS[unit]
    if size != size.to_integral_value():
        raise UnitError(f"{quote(value)} is not a whole number of bytes; use whole bytes")
    return int(_check_range(size, value, Decimal(0), MAX_BYTES, ("0B", "1000000GB")))


def parse_packets(value: object, *, payload_bytes: int | None = None) -> float:
    """Parse a size in packets: ``12``, ``"12pkt"``, or bytes if the payload is known.

    Parameters
    ----------
    value
        A number (packets), or a text in pkt or in a unit of bytes.
    payload_bytes
        Application bytes per packet; if None, a size in bytes is an error.

    Returns
    -------
    float
        Packets, from 0 to 1e12, not rounded.

    Raises
    ------
    UnitError
        The unit is unknown, the size is negative, or ``payload_bytes`` is missing for a size in
        bytes.
    """
    number, unit = _split_quantity(value, "size", '"12pkt"', bare=True)
    if unit in ("", "pkt"):
        return _check_range(number, value, Decimal(0), MAX_PACKETS, ("0pkt", "1000000000000pkt"))
    if unit not in BYTE_UNITS:
        raise UnitError(_bad_size_text(value, number, unit, {"pkt": Decimal(1), **BYTE_UNITS}))
    if payload_bytes is None:
        raise UnitError(
            f"{quote(value)} is in bytes, but the packet size is not known; use packets"
        )
    return parse_bytes(value) / payload_bytes


def parse_ratio(value: object) -> float:
    """Parse a ratio: ``"1%"``, ``"0.01"`` or the number 0.01.

    Parameters
    ----------
    value
        A percentage from 0 to 100, or a number from 0 to 1.

    Returns
    -------
    float
        Ratio from 0 to 1.

    Raises
    ------
    UnitError
        The ratio is outside 0 to 1, or has a unit other than ``%``.
    """
    number, unit = _split_quantity(value, "ratio", '"1%"', bare=True)
    if unit not in ("", "%"):
        raise UnitError(f'{quote(value)} is not a ratio; use "1%" or 0.01, for example')
    if unit == "" and 1 < number <= 100:
        raise UnitError(
            f'{quote(value)} is above 1; use "{decimal_text(number)}%" for a percentage'
        )
    ratio = number / 100 if unit == "%" else number
    return _check_range(ratio, value, Decimal(0), Decimal(1), ("0%", "100%"))


def parse_per_second(value: object) -> float:
    """Parse a frequency: ``"20/s"``, ``"3/min"``.

    Parameters
    ----------
    value
        A text: a number, a slash and a unit of time.

    Returns
    -------
    float
        Events per second, above 0.

    Raises
    ------
    UnitError
        The text lacks the slash or the unit, or the frequency is not positive.
    """
    number, unit = _split_quantity(value, "frequency", '"20/s"')
    period = unit.removeprefix("/").strip()
    if not unit.startswith("/") or period not in TIME_UNITS:
        raise UnitError(f'{quote(value)} is not a frequency; use "{decimal_text(number)}/s"')
    return _check_range(
        number / TIME_UNITS[period], value, Decimal("1e-9"), Decimal("1e12"), ("1e-9/s", "1e12/s")
    )


def parse_count(value: object, *, minimum: int, maximum: int) -> int:
    """Parse a count: 134, or a float without a fraction, such as 2e5.

    Parameters
    ----------
    value
        A number without unit.
    minimum, maximum
        Smallest and largest permitted count.

    Returns
    -------
    int
        The count.

    Raises
    ------
    UnitError
        The value is not a number, not an integer, or out of range.
    """
    if isinstance(value, str):
        if not value.isdecimal():
            raise UnitError(f"{quote(value)} is not a whole number; use 1, for example")
        if len(value) > len(str(maximum)):
            raise UnitError(f"{quote(value)} is too large; use at most {maximum}")
        raise UnitError(f"{quote(value)} must be a whole number without quotes")
    number, _ = _split_quantity(value, "count", "134", bare=True, negative=True)
    if number != number.to_integral_value():
        raise UnitError(f"{quote(value)} is not a whole number; use {max(minimum, int(number))}")
    if number < minimum:
        raise UnitError(f"{quote(value)} is too small; use at least {minimum}")
    if number > maximum:
        raise UnitError(f"{quote(value)} is too large; use at most {maximum}")
    return int(number)


def check_leading_digit(text: str, what: str, example: str, *, bare: bool) -> None:
    """Raise if a text such as ``.5ms`` is only wrong because no digit precedes the point.

    Such numbers are rejected, because ``0.1%...5%`` would otherwise be a range that ends at 0.5 %.

    Raises
    ------
    UnitError
        The message has the same number with a digit.
    """
    complete = f"0{text.strip()}"
    if complete.startswith("0.") and _QUANTITY.fullmatch(complete):
        _split_quantity(complete, what, example, bare=bare)
        raise UnitError(f'{quote(text)} has no digit before the point; use "{complete}"')


def format_rate(rate_bps: float) -> str:
    """Format a rate in bit/s for ``parse_rate``."""
    if math.isinf(rate_bps):
        return "unlimited"
    return _format_in_unit(rate_bps, {u: RATE_UNITS[u] for u in ("gbit", "mbit", "kbit", "bit")})


def format_duration(seconds: float) -> str:
    """Format a time in seconds for ``parse_duration``."""
    if seconds == 0:
        return "0s"
    return _format_in_unit(seconds, {u: TIME_UNITS[u] for u in ("s", "ms", "us", "ns")})


def format_bytes(size: int) -> str:
    """Format a size in bytes for ``parse_bytes``."""
    return f"{size}B"


def format_packets(packets: float) -> str:
    """Format a size in packets for ``parse_packets``."""
    return "unlimited" if math.isinf(packets) else f"{decimal_text(exact_decimal(packets))}pkt"


def format_ratio(ratio: float) -> str:
    """Format a ratio as a percentage for ``parse_ratio``."""
    return f"{decimal_text(exact_decimal(ratio).scaleb(2))}%"


def format_per_second(rate: float) -> str:
    """Format a frequency for ``parse_per_second``."""
    return f"{decimal_text(exact_decimal(rate))}/s"


_MIN_WITH_EXPONENT = 10**15


def digits(value: float, count: int = 4) -> str:
    """Format a number for users: with ``count`` significant digits, or all integer digits.

    Digits are in groups of three. From 10^15, an exponent is used.
    """
    if math.isfinite(value) and 10**count <= abs(round(value)) < _MIN_WITH_EXPONENT:
        return f"{value:,.0f}"
    return f"{value:,.{count}g}"


def exact_decimal(number: float) -> Decimal:
    """Return the shortest decimal that rounds to a float: 0.1 instead of 0.1000000000000000055."""
    return Decimal(repr(float(number)))


def exact_fraction(number: float) -> Fraction:
    """Return the shortest decimal of a float as a fraction, for exact rounding."""
    return Fraction(exact_decimal(number))


def decimal_text(number: Decimal) -> str:
    """Format a decimal without trailing zeros, and without exponent unless it is very small."""
    text = f"{number:f}"
    if len(text) > 40:
        return f"{number.normalize():E}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def quote(value: object) -> str:
    """Format a value for a message, shortened to fit in a line."""
    if isinstance(value, int) and abs(value) >= 10**_MAX_LENGTH:
        return "a number of more than 64 digits"
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=not value.isprintable())
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, numbers.Integral):
        text = str(int(value))
    else:
        text = str(float(value)) if isinstance(value, float) else repr(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 3]}..."


def _split_quantity(  # noqa: PLR0913 - one parser for every quantity, for uniform messages
    value: object,
    what: str,
    example: str,
    *,
    bare: bool = False,
    zero_needs_no_unit: bool = False,
    negative: bool = False,
) -> tuple[Decimal, str]:
    """Split a quantity into number and unit; raise UnitError if a required unit is missing."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        needs = f"use {example}, for example"
        if isinstance(value, numbers.Integral):
            whole = int(value)
            if abs(whole) >= 10**_MAX_LENGTH:
                raise UnitError(f"{quote(whole)} is too large for a {what}; {needs}")
            text = str(whole)
        else:
            if not math.isfinite(value):
                raise UnitError(f"{quote(value)} is not a {what}; {needs}")
            text = repr(float(value))
    else:
        raise UnitError(f"{quote(value)} is not a {what}; use {example}, for example")
    match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        check_leading_digit(text, what, example, bare=bare)
        words, needs = str(value).strip().lower(), f"use {example}, for example"
        if words in ("inf", "infinity", "infinite", "none", "unlimited"):
            not_a_number_text = f"{quote(value)} is not a {what} here; {needs}, or remove this key"
        else:
            not_a_number_text = f"{quote(value)} is not a {what}; {needs}"
        raise UnitError(not_a_number_text)
    sign, digits, unit = match[1], match[2], match[3] or ""
    number = Decimal(digits.replace("_", ""))
    if sign == "-" and number != 0:
        if not negative:
            written = quote(f"{digits}{unit}") if unit else digits
            raise UnitError(f"{quote(value)} is negative; use {written}")
        number = -number
    if number == 0 and what in _POSITIVE_QUANTITIES:
        raise UnitError(f"{quote(value)} must be above 0; use {example}, for example")
    if not unit and not bare and not (zero_needs_no_unit and number == 0):
        written = f"{decimal_text(number)}{_likely_unit(number, what, example)}"
        raise UnitError(f'{quote(value)} has no unit; use "{written}"')
    return number, unit


def _likely_unit(number: Decimal, what: str, example: str) -> str:
    """Return the unit that a number without a unit most likely has."""
    if what == "rate" and number >= _MIN_RATE_IN_BITS:
        return "bit"
    if what == "time" and number < 1:
        return "s"
    return example.strip('"').lstrip("0123456789.")


def _bad_size_text(value: object, number: Decimal, unit: str, known: Mapping[str, Decimal]) -> str:
    if "pkt" in known and unit.lower() in _PACKET_NAMES:
        near: str | None = "pkt"
    elif unit.lower() in ("b", "byte", "bytes"):
        near = "B"
    elif larger := _TOO_LARGE_UNITS.fullmatch(unit):
        step = 1024 if larger[2] else 1000
        number *= step if larger[1].lower() == "p" else step**2
        near = "TiB" if larger[2] else "TB"
    else:
        near = find_nearest_word(unit, known)
    written = f'"{decimal_text(number)}{near or next(iter(known))}"'
    return f"{quote(value)} is not a size ({', '.join(known)}); use {written}"


def _check_range(
    number: Decimal, value: object, minimum: Decimal, maximum: Decimal, written: tuple[str, str]
) -> float:
    if number < minimum:
        raise UnitError(f'{quote(value)} is too small; use at least "{written[0]}"')
    if number > maximum:
        raise UnitError(f'{quote(value)} is too large; use at most "{written[1]}"')
    return float(number)


def _format_in_unit(number: float, units: Mapping[str, Decimal]) -> str:
    """Format a number in the largest unit that is at most the number; units are descending."""
    decimal = exact_decimal(number)
    for unit, scale in units.items():
        if abs(decimal) >= scale:
            return f"{decimal_text(decimal / scale)}{unit}"
    unit, scale = list(units.items())[-1]
    return f"{decimal_text(decimal / scale)}{unit}"
