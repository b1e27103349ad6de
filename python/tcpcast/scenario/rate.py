"""The rate of a link: constant, a token bucket, packet opportunities of a trace, or Wi-Fi."""

import functools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

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

from tcpcast.process.errors import UnitError
from tcpcast.quantity import units
from tcpcast.scenario.csv_file import read_file_of_table
from tcpcast.scenario.quantities import (
    Bytes,
    PositiveDuration,
    PositiveRate,
    Rate,
    Ratio,
    integer_annotation,
)
from tcpcast.scenario.table import (
    Errors,
    Table,
    make_error_at,
    make_key_error,
    unknown_word_message,
)

OPPORTUNITY_BYTES = 1500
"""Bytes of one packet opportunity (a line of a trace), including the IP header."""

MAX_OPPORTUNITIES = 2_000_000
_MAX_MS = 2**32 - 1
_MAX_BURST = 10**12
MAX_OVERHEAD_BYTES = 256
MAX_WIFI_FRAMES = 256
MAX_WIFI_ERROR = 0.5
MAX_WIFI_AIRTIME_S = 5.484e-3
"""``aPPDUMaxTime`` of IEEE Std 802.11-2020."""
_FRAME_BYTES = 58
_WIFI_ACCESS_S = (43 + 7.5 * 9 + 40 + 16 + 32) * 1e-6
"""Bytes of a frame besides its packet, and mean time between the frames of two aggregates; as in
``crates/link/src/transmit/wifi.rs``."""
_FILE_ADVICE = 'use trace = "cellular.trace" (a time in ms on each line, one packet of 1500 B each)'
_SELECTOR_KEYS = ("bucket", "trace", "wifi")
_INLINE_ENTRY = "entry"


class _VaryingRate(Table):
    @property
    def mean_bps(self) -> float:
        """The rate over a long time, bit/s."""
        raise NotImplementedError

    @property
    def mean_text(self) -> str:
        """Long-term rate as a text with four digits and a unit."""
        return units.format_rate(float(f"{self.mean_bps:.4g}"))


class TokenBucket(_VaryingRate):
    """A token bucket, filled at ``bucket`` bit/s up to ``burst`` bytes.

    Packets leave immediately if the bucket has enough tokens. Otherwise a shaper queues them, and
    a policer drops them.
    """

    bucket: Rate = Field(examples=["10mbit"], description="rate of tokens")
    burst: Bytes = Field(examples=["15KB"], description="depth of the bucket")
    overhead: Annotated[int, *integer_annotation(0, MAX_OVERHEAD_BYTES)] = Field(
        default=0,
        examples=[14],
        description="bytes that the bucket adds to each packet; HTB and TBF of Linux add 14",
    )
    policer: StrictBool = Field(
        default=False,
        examples=[True],
        description="drop packets without enough tokens instead of queueing them",
    )

    def _find_errors(self) -> Errors:
        if not 1 <= self.bucket < math.inf:
            yield make_error_at('a bucket requires a rate; use "10mbit", for example', "bucket")
        if not 1 <= self.burst <= _MAX_BURST:
            yield make_error_at('out of range; use "15KB", for example', "burst")

    @property
    def mean_bps(self) -> float:
        """The rate over a long time, bit/s."""
        return self.bucket

    @property
    def kind(self) -> str:
        """Name in messages."""
        return "policer" if self.policer else "token bucket"


@dataclass(frozen=True, slots=True)
class PacketOpportunities:
    """Pairs of a time in whole milliseconds and the number of packets that can leave then.

    ``pairs`` is not empty and sorted by time. The sequence repeats with the last time as period.
    """

    pairs: tuple[tuple[int, int], ...]

    @property
    def mean_bps(self) -> float:
        """Mean rate over a period, bit/s."""
        count = sum(count for _, count in self.pairs)
        return count * 8 * OPPORTUNITY_BYTES * 1000 / self.pairs[-1][0]

    def __str__(self) -> str:
        """Return the text that ``parse_opportunities`` reads."""
        return " ".join(f"{ms}" if count == 1 else f"{ms}x{count}" for ms, count in self.pairs)


@functools.lru_cache(maxsize=4)
def parse_opportunities(text: str) -> PacketOpportunities:
    """Read a text of opportunities: times in ms, such as ``"1 1 5"`` or, shorter, ``"1x2 5"``.

    Raises
    ------
    UnitError
        A word is not a time in milliseconds, times are not in order, or the text has no or too many
        opportunities.
    """
    return _count_opportunities(text.split(), _INLINE_ENTRY)


def _count_opportunities(words: Iterable[str], where: str) -> PacketOpportunities:
    counts: dict[int, int] = {}
    last = total = 0
    for number, word in enumerate(words, start=1):
        if not word:
            continue
        try:
            written = where == _INLINE_ENTRY
            match = re.fullmatch(r"(\d{1,30})(x[1-9]\d{0,6})?", word, re.ASCII)
            if match is None or (match[2] and not written):
                raise UnitError(
                    f"{units.quote(word)} is not a whole number of milliseconds; "
                    "use 12, for example"
                )
            if int(match[1]) > _MAX_MS:
                raise UnitError(
                    f"{units.quote(word)} is above the maximum, {_MAX_MS:,} ms; use a smaller time"
                )
            ms, count = int(match[1]), int(match[2][1:]) if match[2] else 1
        except UnitError as error:
            raise UnitError(f"{where} {number}: {error}") from None
        if ms < last:
            raise UnitError(f"{where} {number}: {ms} ms is before {last} ms; sort the times")
        counts[ms] = counts.get(ms, 0) + count
        last, total = ms, total + count
        if total > MAX_OPPORTUNITIES:
            limit = f"{MAX_OPPORTUNITIES:,}"
            raise UnitError(f"{where} {number}: more than {limit} packets; use a shorter trace")
    if not last:
        trace = "the trace" if where == _INLINE_ENTRY else where.removesuffix(", line")
        raise UnitError(
            f"{trace} repeats after its last time, which must be above 0 ms; list the times at "
            "which packets can leave"
        )
    return PacketOpportunities(tuple(counts.items()))


def _validate_opportunities(value: object) -> PacketOpportunities:
    if isinstance(value, PacketOpportunities):
        return value
    if not isinstance(value, str):
        raise UnitError(
            f'{units.quote(value)} is not a string; use times in milliseconds, such as "1 1 5"'
        )
    return parse_opportunities(value)


def _remove_default_from_schema(schema: dict[str, Any]) -> None:
    """Remove the default of the trace, which is a placeholder, from the JSON Schema."""
    schema.pop("default", None)


class OpportunityRate(_VaryingRate):
    """Packets of 1500 bytes leave at the times of a trace, which repeats.

    The resolved scenario contains the opportunities, so that it does not need the file.
    """

    trace: str | None = Field(
        default=None,
        exclude=True,
        examples=["cellular.trace"],
        description="file with one line per transmission of 1500 B: its time in ms",
    )
    opportunities: Annotated[
        PacketOpportunities,
        PlainValidator(_validate_opportunities),
        PlainSerializer(str, return_type=str),
        WithJsonSchema({"type": "string", "pattern": r"^\s*\d+(x\d+)?(\s+\d+(x\d+)?)*\s*$"}),
    ] = Field(
        default=PacketOpportunities(()),
        examples=["1x2 5"],
        description="times in ms; 5x2 stands for two packets at 5 ms",
        json_schema_extra=_remove_default_from_schema,
    )

    @model_validator(mode="before")
    @classmethod
    def _read_file(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, Mapping) or "trace" not in data:
            return data
        opportunities = read_file_of_table(
            data,
            ("trace", "opportunities"),
            info,
            _FILE_ADVICE,
            lambda rows, name: _count_opportunities(
                (",".join(row).strip() for row in rows), f"{name}, line"
            ),
        )
        return {**data, "opportunities": opportunities}

    @property
    def mean_bps(self) -> float:
        """The rate over a long time, bit/s."""
        return self.opportunities.mean_bps

    @property
    def kind(self) -> str:
        """Name in messages."""
        return "trace of transmission opportunities"


class WifiRate(_VaryingRate):
    """A Wi-Fi station or access point that shares its channel with nobody.

    It sends the packets that wait as one aggregate of frames. Frames with errors are repeated in
    the next aggregate, and the frames behind them wait at the receiver. Times are those of
    best-effort frames of 802.11ac with one spatial stream.
    """

    wifi: PositiveRate = Field(examples=["390mbit"], description="rate of the modulation")
    error: Ratio = Field(
        default=0.0,
        examples=["10%"],
        description="share of the frames that must be transmitted again",
    )
    frames: Annotated[int, *integer_annotation(1, MAX_WIFI_FRAMES)] = Field(
        default=64, examples=[32], description="maximum number of frames of an aggregate"
    )
    airtime: PositiveDuration = Field(
        default=0.004, examples=["2.5ms"], description="maximum transmission time of an aggregate"
    )

    def _find_errors(self) -> Errors:
        if self.error > MAX_WIFI_ERROR:
            yield make_error_at('must be at most 50%; use "10%", for example', "error")
        if self.airtime > MAX_WIFI_AIRTIME_S:
            yield make_error_at('must be at most 5.484ms (IEEE 802.11); use "4ms"', "airtime")

    @property
    def mean_bps(self) -> float:
        """The rate at which packets of 1500 bytes leave that always wait, bit/s."""
        airtime_s = 8 * (OPPORTUNITY_BYTES + _FRAME_BYTES) / self.wifi
        frames = max(1, min(self.frames, int(self.airtime / airtime_s)))
        cycle_s = _WIFI_ACCESS_S + frames * airtime_s
        return 8 * OPPORTUNITY_BYTES * frames * (1 - self.error) / cycle_s

    @property
    def kind(self) -> str:
        """Name in messages."""
        return "Wi-Fi link"


VaryingRate = TokenBucket | OpportunityRate | WifiRate
"""A rate that is not constant."""


def _get_rate_kind(value: object) -> str:
    if isinstance(value, TokenBucket) or (isinstance(value, Mapping) and "bucket" in value):
        return "a-bucket"
    if isinstance(value, WifiRate) or (isinstance(value, Mapping) and "wifi" in value):
        return "a-wifi"
    return "a-trace" if isinstance(value, OpportunityRate | Mapping) else "a-rate"


def _read_rate(value: object) -> object:
    if not isinstance(value, Mapping) or {"bucket", "trace", "opportunities", "wifi"} & set(value):
        return value
    if {"burst", "overhead", "policer"} & set(value):
        raise make_key_error('missing; add bucket = "10mbit"', "bucket")
    if not value:
        raise make_key_error('missing; add bucket = "10mbit", and burst = "15KB"', "bucket")
    key = next(iter(value))
    raise make_key_error(unknown_word_message("kind of rate", key, _SELECTOR_KEYS), str(key))


LinkRate = Annotated[
    Annotated[Rate, Tag("a-rate")]
    | Annotated[TokenBucket, Tag("a-bucket")]
    | Annotated[OpportunityRate, Tag("a-trace")]
    | Annotated[WifiRate, Tag("a-wifi")],
    Discriminator(_get_rate_kind),
    BeforeValidator(_read_rate),
]
"""A rate in bit/s (inf for an unlimited link), a token bucket, packet opportunities, or Wi-Fi."""


def compute_mean_bps(rate: float | VaryingRate) -> float:
    """Return the long-term rate in bit/s; inf for an unlimited link."""
    return rate if isinstance(rate, float | int) else rate.mean_bps
