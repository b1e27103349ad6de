"""The empirical distribution: measured values with weights, from a CSV file or a list."""

import math
from collections.abc import Iterable
from itertools import accumulate
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, model_validator

from tcpcast.process.errors import UnitError
from tcpcast.scenario.csv_file import data_rows, read_file_of_table, read_number_cell
from tcpcast.scenario.distributions import Distribution, Quantity
from tcpcast.scenario.quantities import number_annotation
from tcpcast.scenario.table import (
    Errors,
    empty_list,
    make_error_at,
    make_missing_key_error,
    make_validation_error,
)

MAX_VALUES = 100_000
_NUMBER_ADVICE = "use plain numbers: seconds for times, or packets for sizes"
_WEIGHT_NAMES = ("weight", "probability")
_FILE_ADVICE = 'use file = "sizes.csv" (a column `value`, and optionally `weight`)'


Weight = Annotated[float, *number_annotation("weight", 0, 1e15, example=1)]


class Empirical(Distribution[Quantity]):
    """A list of values with weights.

    A CSV file of values has the column ``value`` and optionally ``weight`` (or ``probability``).
    Values are plain numbers: times in seconds, sizes in packets. The file name is relative to the
    scenario's folder. The resolved scenario contains the values and does not need the file.
    """

    distribution: Literal["empirical"]
    file: str | None = Field(default=None, exclude=True)
    values: list[Quantity] = Field(default_factory=empty_list, min_length=1, max_length=MAX_VALUES)
    weights: list[Weight] = Field(default_factory=empty_list, max_length=MAX_VALUES)

    @model_validator(mode="before")
    @classmethod
    def _read_file(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, dict):
            return data
        data = dict(data)
        if "file" in data:
            values, data["weights"] = read_file_of_table(
                data, ("file", "values", "weights"), info, _FILE_ADVICE, _read_values_and_weights
            )
            data["values"] = [cls.format_quantity(v) for v in values]
        elif "values" not in data:
            raise make_validation_error(
                [make_missing_key_error(f"missing; {_FILE_ADVICE}", "file")]
            )
        elif "weights" not in data and isinstance(data["values"], list):
            data["weights"] = [1.0] * len(data["values"])
        return data

    def _find_errors(self) -> Errors:
        if len(self.weights) != len(self.values):
            counts = f"{len(self.weights)} weights do not match {len(self.values)} values"
            yield make_error_at(f"{counts}; add a weight for each value", "weights")
        elif not sum(self.weights) > 0:
            yield make_error_at("all weights are 0; use at least one weight above 0", "weights")
        elif not self.mean_value() > 0:
            yield make_error_at("the mean is 0; use at least one value above 0", "values")

    def __hash__(self) -> int:
        """Return a hash of the values and weights; pydantic's own hash fails on lists."""
        return hash((tuple(self.values), tuple(self.weights)))

    def mean_value(self) -> float:
        """Return the weighted mean."""
        total = math.fsum(self.weights)
        return math.fsum(v * w for v, w in zip(self.values, self.weights, strict=True)) / total

    def share_above(self, value: float) -> float:
        """Return the weight of the values above ``value`` as a share of the total weight."""
        pairs = zip(self.values, self.weights, strict=True)
        return math.fsum(weight for v, weight in pairs if v > value) / math.fsum(self.weights)

    def is_constant(self) -> bool:
        """Return True if all values with a weight above 0 are equal."""
        pairs = zip(self.values, self.weights, strict=True)
        return len({value for value, weight in pairs if weight > 0}) == 1

    def parameters(self) -> dict[str, Any]:
        """Return the values in ascending order and their cumulative probabilities, ending at 1."""
        pairs = sorted(p for p in zip(self.values, self.weights, strict=True) if p[1] > 0)
        sums = list(accumulate(weight for _, weight in pairs))
        return {
            "distribution": self.distribution,
            "values": [float(value) for value, _ in pairs],
            "cumulative": [s / sums[-1] for s in sums],
        }


def _read_values_and_weights(
    rows: Iterable[list[str]], name: str
) -> tuple[list[float], list[float]]:
    values: list[float] = []
    weights: list[float] = []
    columns = 0
    for number, cells in data_rows(rows):
        if columns == 0:
            columns = len(cells)
            names = [cell.lower() for cell in cells]
            if names[0] == "value" and (len(names) < 2 or names[1] in _WEIGHT_NAMES):
                continue
        if len(cells) != columns or columns > 2:
            raise UnitError(
                f"{name}, line {number}: the number of columns is {len(cells)}; use one column "
                "`value`, or two columns `value,weight`"
            )
        where = f"{name}, line {number}"
        numbers = [read_number_cell(cell, where, _NUMBER_ADVICE) for cell in cells]
        values.append(numbers[0])
        weights.append(numbers[1] if columns == 2 else 1.0)
        if len(values) > MAX_VALUES:
            raise UnitError(f"{name} contains more than {MAX_VALUES} values; use a histogram")
    if not values:
        raise UnitError(
            f"{name} contains no values; add the header line `value`, and one number per line"
        )
    return values, weights
