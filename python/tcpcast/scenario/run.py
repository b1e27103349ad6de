"""Table ``[run]``: length, replications and seed."""

import itertools
import math
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from tcpcast.answer.metrics import HEADLINE_METRICS, METRICS
from tcpcast.process.errors import did_you_mean_text
from tcpcast.quantity import units
from tcpcast.scenario.quantities import (
    RATIO_SCHEMA,
    TIME_SCHEMA,
    PositiveDuration,
    Ratio,
    RunTime,
    TimeLimit,
    integer_annotation,
    words_annotation,
)
from tcpcast.scenario.table import (
    Table,
    get_validation_context,
    make_error_at,
    make_key_error,
    make_validation_error,
)

PRECISION_METRICS = tuple(name for name, row in METRICS.items() if row.has_precision)
"""Metrics with a confidence interval, for which a precision can be requested."""

MAX_TRANSFERS = 10**12
MAX_SEED = 2**63 - 1
MIN_PRECISION = 2.0**-52
"""Minimum relative width of an interval: the relative resolution of floating-point numbers."""


def _read_precision(value: object, info: ValidationInfo) -> object:
    """Convert a text such as ``"1%"`` to a precision of the scenario's main metric."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return {get_validation_context(info).precision_metric: _read_relative_width(value)}
    if not value:
        raise ValueError('contains no metric; use "1%", or { loss_ratio = "5%" }')
    errors = [
        make_error_at(
            f"{units.quote(name)} is not a metric with a precision"
            f"{did_you_mean_text(name, PRECISION_METRICS)}; use "
            f"{', '.join(units.quote(n) for n in HEADLINE_METRICS if n in PRECISION_METRICS)} or "
            "another metric that "
            "`tcpcast schema` lists",
            str(name),
        )
        for name in value
        if name not in PRECISION_METRICS
    ]
    if errors:
        raise make_validation_error(errors)
    return dict(value)


def _read_relative_width(value: object) -> float:
    ratio = units.parse_ratio(value)
    if ratio < MIN_PRECISION:
        raise ValueError(
            f"{units.quote(value)} is below the precision of floating-point numbers (16 digits); "
            'use "1%", for example'
        )
    return ratio


def _exclude_both_lengths_in_schema(schema: dict[str, Any]) -> None:
    schema["not"] = {"required": ["transfers", "duration"]}


WarmUp = Annotated[
    float | Literal["mser-5"],
    *words_annotation(
        partial(units.parse_duration, example="10s"),
        units.format_duration,
        {"anyOf": [TIME_SCHEMA, {"const": 0}]},
        "mser-5",
    ),
]

Precision = Annotated[
    dict[str, Annotated[Ratio, BeforeValidator(_read_relative_width)]] | None,
    BeforeValidator(_read_precision),
    WithJsonSchema(
        {
            "anyOf": [
                RATIO_SCHEMA,
                {
                    "type": "object",
                    "propertyNames": {"enum": list(PRECISION_METRICS)},
                    "additionalProperties": RATIO_SCHEMA,
                    "minProperties": 1,
                },
            ]
        }
    ),
]


def _check_ascending_times(times: list[float]) -> list[float]:
    if any(later <= time for time, later in itertools.pairwise(times)):
        raise ValueError(
            'the times are not in ascending order; list each time once, such as ["100ms", "200ms"]'
        )
    return times


ReportTimes = Annotated[
    list[PositiveDuration],
    Field(min_length=1, max_length=1000),
    AfterValidator(_check_ascending_times),
]


class Run(Table):
    """Length and number of replications, and the seed.

    Both lengths are per replication: ``transfers`` is the number of transfers completed after the
    warm-up, and ``duration`` is the simulated time including the warm-up. Isolated transfers need
    no length, because the traffic gives their number.
    """

    model_config = ConfigDict(json_schema_extra=_exclude_both_lengths_in_schema)

    elsewhere: ClassVar[Mapping[str, str]] = {"connections": "unknown key; use run.transfers"}

    transfers: Annotated[int, *integer_annotation(1, MAX_TRANSFERS)] | None = Field(
        default=None,
        examples=[200000],
        description="transfers per replication, after the warm-up",
    )
    duration: RunTime | None = Field(
        default=None,
        examples=["300s"],
        description="simulated time per replication, with the warm-up",
    )
    warmup: WarmUp = Field(
        default="mser-5",
        examples=["20s"],
        description=("end of the warm-up; mser-5 detects it from the queue"),
    )
    replications: Annotated[int, *integer_annotation(1, 100_000)] = Field(
        default=1,
        examples=[4],
        description=("number of independent runs; with a single run, intervals use batch means"),
    )
    seed: Annotated[int, *integer_annotation(0, MAX_SEED)] = Field(default=1, examples=[1])
    rtt_spread: Ratio | None = Field(
        default=None,
        examples=["10%"],
        description=(
            "each replication multiplies its propagation delays by a random factor of 1 - "
            "rtt_spread to 1 + rtt_spread; avoids results that depend on one exact RTT"
        ),
    )
    precision: Precision = Field(
        default=None,
        examples=["1%"],
        description=(
            "extend the run until the half width of 95 % intervals is at most this share of the "
            "value"
        ),
    )
    max_wall: TimeLimit = Field(
        default=math.inf,
        examples=["60s"],
        description="wall-clock limit per engine, or for a complete plan",
    )

    report_at: ReportTimes | None = Field(
        default=None,
        examples=[["100ms", "1s"]],
        description=("times after the start of each bulk flow that the table `delivered` contains"),
    )

    @property
    def duration_s(self) -> float | None:
        """Simulated time of a replication in seconds, including warm-up; None for ``transfers``."""
        return self.duration

    @property
    def warmup_s(self) -> float | None:
        """Duration of the warm-up in seconds; None if MSER-5 determines it from a run."""
        return None if isinstance(self.warmup, str) else self.warmup

    @property
    def max_wall_s(self) -> float | None:
        """Limit of the computing time in seconds; None for no limit."""
        return None if math.isinf(self.max_wall) else self.max_wall

    @model_validator(mode="before")
    @classmethod
    def _set_default_warmup(cls, data: Any, info: ValidationInfo) -> Any:
        if isinstance(data, Mapping) and get_validation_context(info).ends_by_itself:
            return {"warmup": "0s", **data}
        return data

    @model_validator(mode="after")
    def _check_run_length(self, info: ValidationInfo) -> Self:
        if get_validation_context(info).ends_by_itself:
            ends = "traffic.count sets the number of isolated transfers"
            errors = [
                make_error_at(f"{ends}; remove run.{name}, or add traffic.arrivals", name)
                for name in ("transfers", "duration")
                if getattr(self, name) is not None
            ]
            if self.warmup_s != 0:
                message = "isolated transfers have no warm-up; remove this key"
                errors.append(make_error_at(message, "warmup"))
            if errors:
                raise make_validation_error(errors)
            return self
        if self.transfers is None and self.duration is None:
            message = 'missing; add duration = "300s", or transfers = 200000'
            raise make_key_error(message, "duration")
        if self.transfers is not None and self.duration is not None:
            message = "transfers and duration are mutually exclusive; use one"
            raise make_key_error(message, "duration")
        if self.duration is not None and (self.warmup_s or 0) >= self.duration:
            message = (
                f"{units.format_duration(self.warmup_s or 0)} is not below the duration, "
                f"{units.format_duration(self.duration)}; use a shorter warmup"
            )
            raise make_key_error(message, "warmup")
        return self
