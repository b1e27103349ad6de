"""Cross traffic: packets of other senders at a hop, which do not respond to losses."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from tcpcast.process.errors import UnitError
from tcpcast.quantity import units
from tcpcast.scenario.csv_file import data_rows, read_file_of_table, read_number_cell
from tcpcast.scenario.distributions import PlainNumber
from tcpcast.scenario.name_patterns import Name
from tcpcast.scenario.quantities import (
    Duration,
    PositiveDuration,
    integer_annotation,
    number_annotation,
)
from tcpcast.scenario.table import (
    Errors,
    Table,
    check_selecting_key,
    empty_list,
    make_error_at,
    make_key_error,
)

MAX_ROWS = 100_000
_COLUMNS = ["time_s", "bytes"]
FILE_ADVICE = 'use file = "cross.csv" (columns time_s and bytes)'


def _read_times_and_bytes(rows: Iterable[list[str]], name: str) -> tuple[list[float], list[float]]:
    times: list[float] = []
    sizes: list[float] = []
    for number, cells in data_rows(rows):
        if not times and [cell.lower() for cell in cells] == _COLUMNS:
            continue
        if len(cells) != len(_COLUMNS):
            raise UnitError(
                f"{name}, line {number}: the number of columns is {len(cells)}; use two columns: "
                "time_s and bytes"
            )
        where = f"{name}, line {number}"
        time, size = (read_number_cell(cell, where, "use seconds and bytes") for cell in cells)
        times.append(time)
        sizes.append(size)
        if len(times) > MAX_ROWS:
            raise UnitError(
                f"{name} contains more than {MAX_ROWS} rows; use one row with the total bytes of "
                "each interval of 10 ms"
            )
    if not times:
        raise UnitError(
            f'{name} contains no rows; add the header line "time_s,bytes", and rows of numbers'
        )
    return times, sizes


CROSS_MODELS = ("poisson", "fgn", "pareto", "trace")
MAX_CROSS_SOURCES = 100_000
MAX_RATE_SHARE = 100.0
"""Maximum mean rate of a stream as a multiple of the hop's rate."""

_DEFAULT_BIN_S = 0.01


@dataclass(frozen=True, slots=True)
class RateAmount:
    """A rate in bit/s, or with ``is_share`` a share of the hop's rate."""

    value: float
    is_share: bool

    def bps(self, hop_bps: float) -> float:
        """Return the rate in bit/s at a hop with the rate ``hop_bps``."""
        return self.value * hop_bps if self.is_share else self.value

    def __str__(self) -> str:
        """Format the amount as in a scenario."""
        return (units.format_ratio if self.is_share else units.format_rate)(self.value)


def _read_rate_amount(value: object) -> RateAmount:
    if isinstance(value, RateAmount):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise UnitError(
            f'{units.quote(value)} has no unit; use a share of the hop\'s rate, such as "80%", '
            'or a rate, such as "8mbit"'
        )
    if isinstance(value, str) and value.strip().endswith("%"):
        # Shares above 100 % are permitted.
        try:
            number = units.parse_packets(value.strip().removesuffix("%").strip() + "pkt")
        except UnitError:
            raise UnitError(
                f"{units.quote(value)} is not a share of the hop's rate; use "
                '"80%" or "8mbit", for example'
            ) from None
        amount = RateAmount(float(units.exact_decimal(number).scaleb(-2)), is_share=True)
    else:
        try:
            amount = RateAmount(units.parse_rate(value), is_share=False)
        except UnitError as error:
            raise UnitError(f'{error}, or "80%" of the hop\'s rate') from None
    if not amount.value > 0:
        raise UnitError(f'{units.quote(value)} must be above 0; use "80%" or "8mbit", for example')
    if math.isinf(amount.value) or (amount.is_share and amount.value > MAX_RATE_SHARE):
        raise UnitError(f'{units.quote(value)} is too large; use "80%" or "8mbit", for example')
    return amount


AmountOfRate = Annotated[
    RateAmount,
    PlainValidator(_read_rate_amount),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": rf"^\s*\+?{units.NUMBER}\s*([kKmMgG]?[bB][iI][tT](/[sS])?|%)\s*$",
            "examples": ["80%"],
        }
    ),
]
"""A rate above 0, in bit/s or as a share of the hop's rate."""


Hurst = Annotated[
    float, *number_annotation("Hurst parameter", 0, 0.9999, example=0.7, above_low=True)
]


class CrossStream(Table):
    """A stream of cross packets at one hop; each packet has ``network.packet`` bytes."""

    model: str
    name: Name | None = Field(
        default=None,
        examples=["backbone"],
        description="name in table `cross` and in --set cross.NAME",
    )
    hop: Name | None = Field(
        default=None, examples=["bottleneck"], description="name of the hop; default: bottleneck"
    )
    bin: PositiveDuration | None = Field(
        default=None,
        examples=["10ms"],
        description=("interval of constant cross-traffic rate, for hops with shared = false"),
    )

    def mean_bps(self, hop_bps: float) -> float:
        """Return the long-term offered rate in bit/s, without the cut of negative rates."""
        raise NotImplementedError

    @property
    def relative_amount_key(self) -> str | None:
        """The key whose value is given as a share of the hop's rate, or None."""
        for key in ("mean", "sd"):
            amount = getattr(self, key, None)
            if isinstance(amount, RateAmount) and amount.is_share:
                return key
        return None

    @property
    def has_bin(self) -> bool:
        """True if the length of a bin is given."""
        return self.bin is not None

    @property
    def bin_s(self) -> float:
        """Length of a bin in seconds; the default is 10 ms."""
        return _DEFAULT_BIN_S if self.bin is None else self.bin

    @property
    def is_noise(self) -> bool:
        """True if the rate is random noise, drawn per bin."""
        return False

    def _find_errors(self) -> Errors:
        if not 1e-6 <= self.bin_s <= 3600:
            given = units.format_duration(self.bin_s)
            message = f'{given} is outside 1us to 1h; use "10ms", for example'
            yield make_error_at(message, "bin")


class _MeanRateCross(CrossStream):
    """A stream with a given mean rate."""

    mean: AmountOfRate = Field(examples=["80%"], description=("mean rate"))

    def mean_bps(self, hop_bps: float) -> float:
        """Return the mean in bit/s."""
        return self.mean.bps(hop_bps)


_KEYS_BY_MODEL = {
    "fgn": ("sd", "hurst"),
    "pareto": ("sources", "on", "off", "alpha"),
    "trace": ("file", "times", "bytes", "period", "offset"),
}
"""Keys of each model that no other model has."""


def _find_keys_of_other_models(model: str) -> dict[str, str]:
    """Return messages by key, for the keys that belong to other models."""
    return {
        key: f'requires model = "{other}", not "{model}"; remove this key'
        for other, keys in _KEYS_BY_MODEL.items()
        for key in keys
        if other != model
    }


class PoissonCross(_MeanRateCross):
    """A Poisson process: packets arrive independently of one another."""

    elsewhere: ClassVar[Mapping[str, str]] = _find_keys_of_other_models("poisson")

    model: Literal["poisson"]


class FgnCross(_MeanRateCross):
    """Fractional Gaussian noise: a rate per bin, with negative rates cut to 0.

    The noise is exact, by circulant embedding (Davies and Harte 1987). ``mean`` and ``sd`` apply
    before negative rates are cut; the table ``cross`` of the results has the resulting values.
    """

    elsewhere: ClassVar[Mapping[str, str]] = _find_keys_of_other_models("fgn")

    model: Literal["fgn"]
    sd: AmountOfRate = Field(
        examples=["40%"],
        description="standard deviation of the rate over bins",
    )
    hurst: Hurst = Field(
        examples=[0.7], description=("Hurst parameter; above 0.5 for long-range dependence")
    )
    bin: PositiveDuration | None = Field(
        default=_DEFAULT_BIN_S,
        examples=["10ms"],
        description="length of each interval of constant rate",
    )

    @property
    def is_noise(self) -> bool:
        """True."""
        return True

    def truncation_effect(self, hop_bps: float) -> tuple[float, float]:
        """Return the share of negative rates, and the mean after the cut divided by ``mean``."""
        deviations = self.mean.bps(hop_bps) / self.sd.bps(hop_bps)
        below = math.erfc(deviations / math.sqrt(2)) / 2
        density = math.exp(-deviations * deviations / 2) / math.sqrt(2 * math.pi)
        return below, 1 - below + density / deviations


class ParetoCross(_MeanRateCross):
    """On/off sources with a constant rate while on, and Pareto ON and OFF times.

    The mean rate of a source is ``mean`` / ``sources``; while on, it sends at ``(on + off) / on``
    times this rate. All sources start in equilibrium. On long time scales, the total rate has a
    Hurst exponent of (3 - alpha) / 2.
    """

    elsewhere: ClassVar[Mapping[str, str]] = _find_keys_of_other_models("pareto")

    model: Literal["pareto"]
    sources: Annotated[int, *integer_annotation(1, MAX_CROSS_SOURCES)] = Field(
        examples=[50], description="number of on/off sources"
    )
    on: PositiveDuration = Field(examples=["100ms"], description="mean ON time")
    off: PositiveDuration = Field(examples=["200ms"], description="mean OFF time")
    alpha: PlainNumber = Field(
        default=1.5, examples=[1.5], description="tail exponent of ON and OFF times"
    )

    def _find_errors(self) -> Errors:
        yield from super()._find_errors()
        if self.alpha <= 1:
            message = f"{self.alpha:g} gives times with an infinite mean; use an alpha above 1"
            yield make_error_at(message, "alpha")


class TraceCross(CrossStream):
    """Replay of a recording of times and bytes, repeated until the run ends.

    The file has the columns ``time_s`` and ``bytes`` with ascending times; its name is relative
    to the scenario's folder. The resolved scenario contains the rows and does not need the file.
    """

    elsewhere: ClassVar[Mapping[str, str]] = {
        **_find_keys_of_other_models("trace"),
        "mean": "the file contains the times; remove this key",
        "sd": "the file contains the bytes; remove this key",
    }

    model: Literal["trace"]
    file: str | None = Field(default=None, exclude=True, examples=["cross.csv"])
    times: list[Annotated[float, *number_annotation("time in seconds", 0, 1e6, example=0.1)]] = (
        Field(default_factory=empty_list, min_length=1, max_length=MAX_ROWS, examples=[[0, 0.1]])
    )
    sizes: list[Annotated[float, *number_annotation("count of bytes", 0, 1e12, example=1500)]] = (
        Field(
            default_factory=empty_list, alias="bytes", max_length=MAX_ROWS, examples=[[3000, 1500]]
        )
    )
    period: PositiveDuration | None = Field(
        default=None,
        examples=["60s"],
        description="length of a repetition; default: from the first to the last time, plus the "
        "mean gap",
    )
    offset: Duration | None = Field(
        default=None,
        examples=["0s"],
        description="start position in the recording; default: random in each replication",
    )

    @model_validator(mode="before")
    @classmethod
    def _read_file(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, Mapping):
            return data
        data = dict(data)
        if "file" in data:
            data["times"], data["bytes"] = read_file_of_table(
                data, ("file", "times", "bytes"), info, FILE_ADVICE, _read_times_and_bytes
            )
        elif "times" not in data:
            raise make_key_error(f"missing; {FILE_ADVICE}", "file")
        return data

    def _find_errors(self) -> Errors:
        yield from super()._find_errors()
        if len(self.sizes) != len(self.times):
            counts = f"{len(self.sizes)} sizes do not match {len(self.times)} times"
            yield make_error_at(f"{counts}; use one size per time", "bytes")
        elif any(later < time for time, later in zip(self.times, self.times[1:], strict=False)):
            message = "the times are not in ascending order; sort them by time"
            yield make_error_at(message, "times")
        elif not sum(self.sizes) > 0:
            yield make_error_at("all sizes are 0; use at least one size above 0", "bytes")
        elif self.period is None and not self.times[-1] > self.times[0]:
            message = (
                'missing, and cannot be derived, because all times are equal; use period = "60s"'
            )
            yield make_error_at(message, "period")
        elif self.period is not None and self.period <= self.times[-1]:
            last = units.format_duration(self.times[-1])
            message = f"must be longer than the last time, {last}; use a longer period"
            yield make_error_at(message, "period")

    @property
    def period_s(self) -> float:
        """End of the first repetition in seconds; by default, the last time plus one mean gap."""
        if self.period is not None:
            return self.period
        first, last = self.times[0], self.times[-1]
        return last + (last - first) / (len(self.times) - 1)

    @property
    def start_s(self) -> float:
        """Start of the repeated period in seconds: the first time, or 0 if the period is given."""
        return 0.0 if self.period is not None else self.times[0]

    def mean_bps(self, hop_bps: float) -> float:  # noqa: ARG002 - used if the mean is a share
        """Return the bits of the recording divided by the length of one repetition."""
        return 8 * math.fsum(self.sizes) / (self.period_s - self.start_s)


CrossTraffic = Annotated[
    PoissonCross | FgnCross | ParetoCross | TraceCross,
    Field(discriminator="model"),
    BeforeValidator(
        partial(check_selecting_key, key="model", what="model of cross traffic", words=CROSS_MODELS)
    ),
]
"""A ``[[cross]]`` table."""
