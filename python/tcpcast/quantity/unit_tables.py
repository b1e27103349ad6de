"""Units of rates, times and sizes, in bit/s, seconds and bytes."""

from decimal import Decimal

RATE_UNITS = {
    "bit": Decimal(1),
    "kbit": Decimal(10**3),
    "mbit": Decimal(10**6),
    "gbit": Decimal(10**9),
    "tbit": Decimal(10**12),
}
TIME_UNITS = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "μs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "min": Decimal(60),
    "h": Decimal(3600),
}
BYTE_UNITS = {
    "B": Decimal(1),
    "kB": Decimal(10**3),
    "KB": Decimal(10**3),
    "MB": Decimal(10**6),
    "GB": Decimal(10**9),
    "TB": Decimal(10**12),
    "KiB": Decimal(2**10),
    "MiB": Decimal(2**20),
    "GiB": Decimal(2**30),
    "TiB": Decimal(2**40),
}

TIME_NAMES = {
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "msec": "ms",
    "millisecond": "ms",
    "milliseconds": "ms",
    "usec": "us",
    "microseconds": "us",
    "nsec": "ns",
    "minute": "min",
    "minutes": "min",
    "hour": "h",
    "hours": "h",
    "hr": "h",
}
"""Other names of units of time, with the unit that an error suggests."""
