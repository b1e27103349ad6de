"""Distributions of OFF times, start times, file sizes and message sizes.

Times are in seconds, and sizes of files in packets. EP and EE are the file-size distributions of
the TCP-Engset paper (section 3.2). They have an exponential body from the minimum f to k, and a
tail beyond k that contains the share q of all files.
"""

import math
from collections.abc import Callable, Iterable
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import Field

from tcpcast.process.errors import UnitError
from tcpcast.quantity import units
from tcpcast.scenario.byte_sizes import SizeInBytes
from tcpcast.scenario.quantities import Bytes, Ratio, Size, number_annotation
from tcpcast.scenario.table import (
    Errors,
    Table,
    make_error_at,
    make_key_error,
    make_missing_key_error,
    make_validation_error,
)

Quantity = TypeVar("Quantity", bound=float)

_ZERO: Any = 0.0

_EXAMPLES: dict[str, tuple[Any, Any, Any]] = {
    "mean": ("12pkt", "1s", "20KB"),
    "sd": ("12pkt", "1s", "20KB"),
    "minimum": ("3pkt", "0s", "200B"),
    "value": ("12pkt", "1s", "20KB"),
    "low": ("3pkt", "0s", "200B"),
    "high": ("21pkt", "2s", "40KB"),
    "values": (["3pkt", "9pkt"], ["1s", "2s"], ["200B", "20KB"]),
    "weights": ([1, 2], [1, 2], [1, 2]),
}
_WRITERS: tuple[Callable[[float], str], ...] = (
    units.format_packets,
    units.format_duration,
    lambda size: units.format_bytes(round(size)),
)
"""Examples and writers of sizes in packets, times, and sizes in bytes."""


def guess_distribution_table(typed: object) -> dict[str, Any] | None:
    """Return the table for a text such as ``2MB pareto 1.5``, as a suggestion, or None."""
    words = typed.split() if isinstance(typed, str) else []
    means = [word for word in words if word[0].isdigit() and word[-1].isalpha()]
    distributions = [word for word in words if word in {"exponential", "pareto"}]
    if len(means) != 1 or len(distributions) != 1:
        return None
    table = {"distribution": distributions[0], "mean": means[0]}
    if distributions == ["exponential"]:
        return table
    exponents = [float(word) for word in words if word.replace(".", "", 1).isdecimal()]
    return table | {"alpha": exponents[0] if exponents else 1.5}


def make_constant_table(typed: object, read: Callable[[object], float]) -> dict[str, Any] | None:
    """Return the table of a constant distribution, or None if ``read`` rejects the value."""
    try:
        read(typed)
    except UnitError:
        return None
    return {"distribution": "constant", "value": typed}


def read_any_size(typed: object) -> float:
    """Read a size in packets or bytes; bytes are converted with an arbitrary payload size."""
    return units.parse_packets(typed, payload_bytes=1)


PlainNumber = Annotated[
    float, *number_annotation("plain number", 0, 1e6, example=1.5, above_low=True)
]


class Distribution(Table, Generic[Quantity]):
    """A distribution of a positive quantity: seconds for times, packets for sizes.

    Drawn sizes are rounded to the nearest packet, with a minimum of one packet. Modern stacks
    send sizes that were given in bytes as whole bytes.
    """

    distribution: str
    simulator_parameters: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """Return the name in the JSON Schema, such as ExponentialTime."""
        kind = "Size" if params[0] is Size else "Bytes" if params[0] is Bytes else "Time"
        return f"{cls.__name__}{kind}"

    @classmethod
    def example(cls, key: str) -> Any:
        """Return an example in the unit of the distribution."""
        examples = _EXAMPLES.get(key)
        return super().example(key) if examples is None else examples[cls._unit_index()]

    @classmethod
    def _unit_index(cls) -> int:
        """Return 0 for sizes in packets, 1 for times in seconds, 2 for sizes in bytes."""
        (unit,) = cls.__pydantic_generic_metadata__["args"] or (None,)
        return 0 if unit is Size else 2 if unit is Bytes else 1

    @classmethod
    def format_quantity(cls, number: float) -> str:
        """Format a number with the unit of this distribution."""
        return _WRITERS[cls._unit_index()](number)

    @property
    def is_in_bytes(self) -> bool:
        """True if a parameter is given in bytes; drawn sizes are then whole bytes."""
        given = [getattr(self, name) for name in type(self).model_fields]
        lists = [value if isinstance(value, list) else [value] for value in given]
        return any(isinstance(size, SizeInBytes) for sizes in lists for size in sizes)

    def mean_value(self) -> float:
        """Return the mean of the continuous variable, in seconds or packets."""
        raise NotImplementedError

    def share_above(self, value: float) -> float:
        """Return P(X > value); ``value`` is in seconds or packets and at least 0."""
        raise NotImplementedError

    def shares_above(self, values: Iterable[float]) -> list[float]:
        """Return P(X > value) for each value."""
        return [self.share_above(value) for value in values]

    def has_finite_variance(self) -> bool:
        """Return True if the variance is finite."""
        return True

    def is_constant(self) -> bool:
        """Return True if all draws have the same value."""
        return False

    def parameters(self) -> dict[str, Any]:
        """Return the parameters for the simulator: the name, and numbers in seconds or packets."""
        numbers = {name: getattr(self, name) for name in self.simulator_parameters}
        return {"distribution": self.distribution, **numbers}

    def _with_unit(self, number: float) -> str:
        """Format a quantity of this distribution for messages."""
        return self.format_quantity(float(f"{number:.6g}"))

    def _check_mean(self, mean: float, minimum: float = 0.0) -> None:
        if mean <= 0:
            raise make_key_error("must be above 0; use a larger mean", "mean")
        if minimum >= mean:
            raise make_key_error(
                f"{self._with_unit(minimum)} is not below the mean, {self._with_unit(mean)}; "
                "use a smaller minimum or a larger mean",
                "minimum",
            )


def _check_tail(tail: float) -> None:
    if not 0 < tail < 1:
        raise make_key_error('must be above 0% and below 100%; use "10%", for example', "tail")


def _check_alpha(alpha: float) -> None:
    if alpha <= 1:
        raise make_key_error(
            f"{alpha:g} gives a distribution without a mean; use an alpha above 1", "alpha"
        )


class Exponential(Distribution[Quantity]):
    """``minimum`` plus an exponential variable; ``mean`` is the mean of the sum."""

    distribution: Literal["exponential"]
    mean: Quantity
    minimum: Quantity = _ZERO

    def _find_errors(self) -> Errors:
        self._check_mean(self.mean, self.minimum)
        return iter(())

    def mean_value(self) -> float:
        """Return the mean."""
        return float(self.mean)

    def share_above(self, value: float) -> float:
        """Return P(X > value)."""
        beyond = max(0.0, value - self.minimum)
        return math.exp(-beyond / (self.mean - self.minimum))

    def parameters(self) -> dict[str, Any]:
        """Return the minimum, and the mean minus the minimum."""
        return {
            "distribution": self.distribution,
            "minimum": self.minimum,
            "scale": self.mean - self.minimum,
        }


class ExponentialPareto(Distribution[Quantity]):
    """EP: exponential body up to k, Pareto tail of exponent ``alpha`` beyond.

    Let f = ``minimum``, q = ``tail``, and theta the scale of the body. P(X > x) is exp(-(x - f) /
    theta) in the body and q (k/x)^alpha in the tail. Both expressions are q at x = k, so theta = (k
    - f) / ln(1/q). Then mean = f + theta (1 - q) + q k / (alpha - 1) determines k. For example,
    mean 12, f = 3, alpha = 1.5 and q = 10 % give k = 17.2.
    """

    simulator_parameters = ("minimum", "k", "theta", "alpha", "tail")
    distribution: Literal["ep"]
    mean: Quantity
    minimum: Quantity
    alpha: PlainNumber = Field(
        default=1.5, examples=[1.5], description="exponent of the tail, above 1"
    )
    tail: Ratio = Field(
        default=0.1, examples=["10%"], description="share of values that lie in the tail"
    )

    def _find_errors(self) -> Errors:
        _check_tail(self.tail)
        _check_alpha(self.alpha)
        self._check_mean(self.mean, self.minimum)
        if self.k <= self.minimum:
            least = self.minimum * (1 + self.tail / (self.alpha - 1))
            yield make_error_at(
                f"{self._with_unit(self.mean)} is too small for the exponential body of the "
                f"distribution; use a mean above {self._with_unit(least)}",
                "mean",
            )

    @property
    def k(self) -> float:
        """Value at which the tail begins."""
        share = (1 - self.tail) / math.log(1 / self.tail)
        above = self.mean - self.minimum + share * self.minimum
        return above / (share + self.tail / (self.alpha - 1))

    @property
    def theta(self) -> float:
        """Mean of the exponential body, were it not cut at k."""
        return (self.k - self.minimum) / math.log(1 / self.tail)

    def mean_value(self) -> float:
        """Return the mean."""
        return float(self.mean)

    def share_above(self, value: float) -> float:
        """Return P(X > value)."""
        if value > self.k:
            return self.tail * math.exp(-self.alpha * math.log(value / self.k))
        return math.exp(-max(0.0, value - self.minimum) / self.theta)

    def has_finite_variance(self) -> bool:
        """Only with alpha above 2."""
        return self.alpha > 2


class TwoExponentials(Distribution[Quantity]):
    """EE(c): exponential body up to k = f + (mean - f) / c, exponential tail beyond.

    Let f = ``minimum``, q = ``tail``, theta1 the scale of the body, and theta2 the scale of the
    tail. P(X > k) = q gives theta1 = (k - f) / ln(1/q). Then mean = f + theta1 (1 - q) + q theta2
    determines theta2, the mean excess of the tail over k. The paper uses c = 7 for a mean of 12
    packets (k = 4.286, theta2 = 84.97), and c = 3.9 for 5.
    """

    simulator_parameters = ("minimum", "k", "theta1", "theta2", "tail")
    distribution: Literal["ee"]
    mean: Quantity
    minimum: Quantity
    c: PlainNumber = Field(
        examples=[7], description="the tail begins at minimum + (mean - minimum) / c"
    )
    tail: Ratio = Field(
        default=0.1, examples=["10%"], description="share of values that lie in the tail"
    )

    def _find_errors(self) -> Errors:
        _check_tail(self.tail)
        self._check_mean(self.mean, self.minimum)
        if self.theta2 <= 0:
            least = (1 - self.tail) / math.log(1 / self.tail)
            yield make_error_at(
                f"with c = {self.c:g}, the mean of the tail is below the beginning of the tail; "
                f"use a c above {least:.4g}",
                "c",
            )

    @property
    def k(self) -> float:
        """Value at which the tail begins."""
        return self.minimum + (self.mean - self.minimum) / self.c

    @property
    def theta1(self) -> float:
        """Mean of the exponential body, were it not cut at k."""
        return (self.k - self.minimum) / math.log(1 / self.tail)

    @property
    def theta2(self) -> float:
        """Scale of the exponential tail."""
        body = self.theta1 * (1 - self.tail)
        return (self.mean - self.minimum - body) / self.tail

    def mean_value(self) -> float:
        """Return the mean."""
        return float(self.mean)

    def share_above(self, value: float) -> float:
        """Return P(X > value)."""
        if value > self.k:
            return self.tail * math.exp(-(value - self.k) / self.theta2)
        return math.exp(-max(0.0, value - self.minimum) / self.theta1)


class Lognormal(Distribution[Quantity]):
    """``minimum`` plus a lognormal variable; ``mean`` and ``sd`` describe the sum."""

    simulator_parameters = ("mu", "sigma", "minimum")
    distribution: Literal["lognormal"]
    mean: Quantity
    sd: Quantity
    minimum: Quantity = _ZERO

    def _find_errors(self) -> Errors:
        self._check_mean(self.mean, self.minimum)
        if self.sd <= 0:
            yield make_error_at(
                'must be above 0; use a larger sd, or distribution = "constant"', "sd"
            )

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm."""
        return math.sqrt(math.log1p((self.sd / (self.mean - self.minimum)) ** 2))

    @property
    def mu(self) -> float:
        """Mean of the logarithm."""
        return math.log(self.mean - self.minimum) - self.sigma**2 / 2

    def mean_value(self) -> float:
        """Return the mean."""
        return float(self.mean)

    def share_above(self, value: float) -> float:
        """Return P(X > value)."""
        if value <= self.minimum:
            return 1.0
        standard = (math.log(value - self.minimum) - self.mu) / self.sigma
        return math.erfc(standard / math.sqrt(2)) / 2


class Pareto(Distribution[Quantity]):
    """P(X > x) = (minimum / x)^alpha, given by ``alpha`` and either ``mean`` or ``minimum``."""

    distribution: Literal["pareto"]
    alpha: PlainNumber = Field(examples=[1.5], description="exponent of the tail, above 1")
    mean: Quantity | None = None
    minimum: Quantity | None = None

    def _find_errors(self) -> Errors:
        _check_alpha(self.alpha)
        if (self.mean is None) == (self.minimum is None):
            either = "use alpha and either mean or minimum"
            if self.mean is None:
                raise make_validation_error([make_missing_key_error(f"missing; {either}", "mean")])
            raise make_key_error(f"both mean and minimum are given; {either}", "mean")
        if self.lowest_value <= 0:
            key = "minimum" if self.mean is None else "mean"
            yield make_error_at(f"must be above 0; use a larger {key}", key)

    @property
    def lowest_value(self) -> float:
        """The smallest value."""
        if self.minimum is not None:
            return float(self.minimum)
        return float(self.mean or 0) * (self.alpha - 1) / self.alpha

    def mean_value(self) -> float:
        """Return the mean, alpha minimum / (alpha - 1)."""
        if self.mean is not None:
            return float(self.mean)
        return self.alpha * self.lowest_value / (self.alpha - 1)

    def share_above(self, value: float) -> float:
        """Return P(X > value)."""
        if value <= self.lowest_value:
            return 1.0
        return math.exp(-self.alpha * math.log(value / self.lowest_value))

    def has_finite_variance(self) -> bool:
        """Only with alpha above 2."""
        return self.alpha > 2

    def parameters(self) -> dict[str, Any]:
        """Return minimum and alpha."""
        return {
            "distribution": self.distribution,
            "minimum": self.lowest_value,
            "alpha": self.alpha,
        }


class Constant(Distribution[Quantity]):
    """A constant."""

    simulator_parameters = ("value",)
    distribution: Literal["constant"]
    value: Quantity

    def mean_value(self) -> float:
        """Return the value."""
        return float(self.value)

    def share_above(self, value: float) -> float:
        """Return P(X > value)."""
        return float(self.value > value)

    def is_constant(self) -> bool:
        """Return True."""
        return True


class Uniform(Distribution[Quantity]):
    """Uniform from ``low`` to ``high``."""

    simulator_parameters = ("low", "high")
    distribution: Literal["uniform"]
    low: Quantity
    high: Quantity

    def _find_errors(self) -> Errors:
        if self.low >= self.high:
            high, low = self._with_unit(self.high), self._with_unit(self.low)
            yield make_error_at(f"{high} must be above low ({low}); use a larger high", "high")

    def mean_value(self) -> float:
        """Return the mean, (low + high) / 2."""
        return (self.low + self.high) / 2

    def share_above(self, value: float) -> float:
        """Return P(X > value)."""
        return min(1.0, max(0.0, (self.high - value) / (self.high - self.low)))
