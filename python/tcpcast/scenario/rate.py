"""The rate of a link: constant, a token bucket's, or the packet opportunities of a trace."""

import functools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from tcpcast import units
from tcpcast.errors import UnitError
from tcpcast.scenario.csv_file import read_csv
from tcpcast.scenario.quantities import Bytes, Rate
from tcpcast.scenario.table import Table, fault, faults, not_a_word, reading

OPPORTUNITY_BYTES = 1500
"""What one line of a trace lets pass, IP header included."""

MOST_OPPORTUNITIES = 2_000_000
_MOST_MS = 2**32 - 1
_MOST_BURST = 10**12
_NEEDS = 'write trace = "cellular.trace" (a time in ms on each line, one packet of 1500 B each)'
_KEYS = ("bucket", "trace")
_WRITTEN = "entry"


class _Varying(Table):
    @property
    def mean_bps(self) -> float:
        """The rate over a long time, bit/s."""
        raise NotImplementedError

    @property
    def mean_text(self) -> str:
        """The same in four digits, as people type it."""
        return units.format_rate(float(f"{self.mean_bps:.4g}"))


class TokenBucket(_Varying):
    """Tokens for so many bits come in a second, and the bucket holds those of a burst.

    A shaper queues a packet that finds no tokens, a policer drops it. What finds tokens leaves at
    once.
    """

    bucket: Rate = Field(examples=["10mbit"], description="rate of tokens")
    burst: Bytes = Field(examples=["15KB"], description="depth of the bucket")
    policer: StrictBool = Field(
        default=False,
        examples=[True],
        description="drop packets without tokens instead of queueing them",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not 1 <= self.bucket < math.inf:
            raise faults([fault('a bucket needs a rate; write "10mbit"', "bucket")])
        if not 1 <= self.burst <= _MOST_BURST:
            raise faults([fault('out of range; write "15KB"', "burst")])
        return self

    @property
    def mean_bps(self) -> float:
        """The rate over a long time, bit/s."""
        return self.bucket

    @property
    def kind(self) -> str:
        """What to call it."""
        return "policer" if self.policer else "token bucket"


@dataclass(frozen=True, slots=True)
class Opportunities:
    """Times in whole milliseconds at which packets can leave, and how many at each.

    ``pairs`` are rising; after the last time, the period, they begin again. At least one.
    """

    pairs: tuple[tuple[int, int], ...]

    @property
    def mean_bps(self) -> float:
        """The rate over a period, bit/s."""
        count = sum(count for _, count in self.pairs)
        return count * 8 * OPPORTUNITY_BYTES * 1000 / self.pairs[-1][0]

    def __str__(self) -> str:
        """Write them as ``parse_opportunities`` reads them."""
        return " ".join(f"{ms}" if count == 1 else f"{ms}x{count}" for ms, count in self.pairs)


@functools.lru_cache(maxsize=4)
def parse_opportunities(text: str) -> Opportunities:
    """Read opportunities that are written out: ``"1 1 5"``, or ``"1x2 5"``.

    Raises
    ------
    UnitError
        A word that is no time in milliseconds, a time before the one above it, too many, none.
    """
    return _gathered(text.split(), _WRITTEN)


def read_opportunities(name: object, folder: Path | None) -> Opportunities:
    """Read a trace of packet opportunities, the format of mahimahi and other emulators.

    A line is a time in whole milliseconds at which one packet can leave; empty lines count for
    nothing.

    Parameters
    ----------
    name
        The file's name as typed.
    folder
        Where a relative name starts; None for the current folder.

    Raises
    ------
    UnitError
        No such file; a line that is no time, or before the one above it; more than 2,000,000;
        none, or all at 0 ms. The message says which line.
    """
    return read_csv(name, folder, _NEEDS, _read_rows)


def _read_rows(rows: Iterable[list[str]], name: str) -> Opportunities:
    return _gathered((",".join(row).strip() for row in rows), f"{name}, line")


def _gathered(words: Iterable[str], where: str) -> Opportunities:
    counts: dict[int, int] = {}
    last = total = 0
    for number, word in enumerate(words, start=1):
        if not word:
            continue
        try:
            ms, count = _opportunity(word, written=where == _WRITTEN)
        except UnitError as error:
            raise UnitError(f"{where} {number}: {error}") from None
        if ms < last:
            raise UnitError(f"{where} {number}: {ms} ms is before {last} ms; sort the times")
        counts[ms] = counts.get(ms, 0) + count
        last, total = ms, total + count
        if total > MOST_OPPORTUNITIES:
            most = f"{MOST_OPPORTUNITIES:,}"
            raise UnitError(f"{where} {number}: more than {most} opportunities; write a part of it")
    if not last:
        raise UnitError(
            f"{where.removesuffix(', line')} has no time above 0 ms; write when packets can leave, "
            "and last when the trace begins again"
        )
    return Opportunities(tuple(counts.items()))


def _opportunity(word: str, *, written: bool) -> tuple[int, int]:
    """Read a time, and in what is written out how many packets can leave then."""
    found = re.fullmatch(r"(\d{1,10})(x[1-9]\d{0,6})?", word, re.ASCII)
    if found is None or int(found[1]) > _MOST_MS or (found[2] and not written):
        raise UnitError(f"{units.show(word)} is not a whole number of milliseconds; write 12")
    return int(found[1]), int(found[2][1:]) if found[2] else 1


def _opportunities(value: object) -> Opportunities:
    if isinstance(value, Opportunities):
        return value
    if not isinstance(value, str):
        raise UnitError(f'{units.show(value)} is not a text; write "1 1 5", milliseconds')
    return parse_opportunities(value)


def _without_default(schema: dict[str, Any]) -> None:
    """Leave out of the JSON Schema what only stands where a trace is typed."""
    schema.pop("default", None)


class OpportunityRate(_Varying):
    """Packets of 1500 bytes leave at the times of a trace, which repeats.

    The resolved scenario holds the opportunities themselves, so it no longer needs the file.
    """

    trace: str | None = Field(
        default=None,
        exclude=True,
        examples=["cellular.trace"],
        description="file with one time in ms per line, for 1500 B each",
    )
    opportunities: Annotated[
        Opportunities,
        PlainValidator(_opportunities),
        PlainSerializer(str, return_type=str),
        WithJsonSchema({"type": "string", "pattern": r"^\s*\d+(x\d+)?(\s+\d+(x\d+)?)*\s*$"}),
    ] = Field(
        default=Opportunities(()),
        examples=["1x2 5"],
        description="times in ms, with x2 for two at a time",
        json_schema_extra=_without_default,
    )

    @model_validator(mode="before")
    @classmethod
    def _read_file(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, Mapping) or "trace" not in data:
            return data
        if "opportunities" in data:
            raise faults([fault("both trace and opportunities are given; write one", "trace")])
        try:
            found = read_opportunities(data["trace"], reading(info).folder)
        except UnitError as error:
            raise faults([fault(str(error), "trace", value=data["trace"])]) from None
        return {**data, "opportunities": found}

    @property
    def mean_bps(self) -> float:
        """The rate over a long time, bit/s."""
        return self.opportunities.mean_bps

    @property
    def kind(self) -> str:
        """What to call it."""
        return "trace of packet opportunities"


VaryingRate = TokenBucket | OpportunityRate
"""A rate that is not constant."""


def _kind_of_rate(value: object) -> str:
    if isinstance(value, TokenBucket) or (isinstance(value, Mapping) and "bucket" in value):
        return "a-bucket"
    return "a-trace" if isinstance(value, OpportunityRate | Mapping) else "a-rate"


def _read_rate(value: object) -> object:
    if not isinstance(value, Mapping) or {"bucket", "trace", "opportunities"} & set(value):
        return value
    if {"burst", "policer"} & set(value):
        raise faults([fault('missing; write bucket = "10mbit"', "bucket")])
    if not value:
        raise faults([fault('missing; write bucket = "10mbit", and burst = "15KB"', "bucket")])
    key = next(iter(value))
    raise faults([fault(not_a_word("kind of rate", key, _KEYS), str(key))])


LinkRate = Annotated[
    Annotated[Rate, Tag("a-rate")]
    | Annotated[TokenBucket, Tag("a-bucket")]
    | Annotated[OpportunityRate, Tag("a-trace")],
    Discriminator(_kind_of_rate),
    BeforeValidator(_read_rate),
]
"""bit/s (inf for an unlimited link), a token bucket, or packet opportunities."""


def mean_bps(rate: float | VaryingRate) -> float:
    """Return a rate over a long time in bit/s, inf for an unlimited link."""
    return rate if isinstance(rate, float | int) else rate.mean_bps
