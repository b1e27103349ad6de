"""Independent runs of one setting: rows whose tolerance is the paper's own sampling error.

Each value of the paper is from one run. Its sampling error equals that of a tcpcast run of the same
length, which is estimated from the scatter of independent runs. A value agrees if a run of this
length gives it with a probability of 99 %; at 95 %, about ten of two hundred cells would differ by
chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as students_t

from tcpcast_papers.reproduction import Cause, Row, Tolerance, Verdict, choose_cause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray
    from tcpcast.answer import Answer

    from tcpcast_papers.reproduction import Printed

    Read = Callable[[Answer], float]

CONFIDENCE = 0.99
"""Probability that a run of the paper's length gives a value within the tolerance."""

MIN_RUNS = 3
"""Smallest number of runs with a value from which a scatter is calculated."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Answers of independent runs.

    Parameters
    ----------
    answers
        Returns the answers, one per run.
    share
        Length of each run, as a share of the paper's.
    includes_mean_error
        Whether the tolerance includes the error of the mean over the runs. Otherwise a value that
        is outside by less than this error can be unsettled.
    base
        Runs of another setting. The values are then changes relative to these, in %.
    make_row
        Returns the row with a label, as :meth:`.Simulations.row`.
    """

    answers: Callable[[], Sequence[Answer]]
    share: float
    includes_mean_error: bool
    base: Sample | None = None
    make_row: Callable[[tuple[str, ...], Callable[[], Row]], list[Row]] = lambda _, row: [row()]

    def paired(self, base: Sample) -> Sample:
        """Return a sample of the changes compared with the runs of another setting."""
        return replace(self, base=base)

    def values(self, read: Read) -> NDArray[np.float64]:
        """Return the value of each run that has one."""
        every = np.array([read(answer) for answer in self.answers()], dtype=np.float64)
        if self.base is not None:
            every = 100 * (every / np.array([read(each) for each in self.base.answers()]) - 1)
        return every[np.isfinite(every)]

    def rows(self, label: tuple[str, ...], *given: Any, **more: Any) -> list[Row]:
        """Return the row that :meth:`row` returns for these arguments, if it is selected."""
        return self.make_row(label, partial(self.row, label, *given, **more))

    def row(  # noqa: PLR0913 - the parts of a row
        self,
        label: tuple[str, ...],
        unit: str,
        published: Printed | None,
        read: Read,
        *,
        between: Iterable[float] = (),
        note: str = "",
        causes: Iterable[tuple[str, Sample, Read | None]] = (),
    ) -> Row:
        """Return the row of a value, with its mean, interval and tolerance.

        Parameters
        ----------
        label, unit, published, note
            As in :class:`~tcpcast_papers.reproduction.Row`.
        read
            Reads the value from an answer, in the unit of the row.
        between
            All values that the paper prints for this quantity, if there are several.
        causes
            Possible reasons for a difference: each has a name, the runs after one change, and a
            function that reads their value (None: ``read``). The row states the first reason that
            explains the difference.
        """
        values = self.values(read)
        if values.size < MIN_RUNS:
            text = "; ".join(filter(None, (note, "too few such files in these runs")))
            judged = None if published is None else Verdict.UNSETTLED
            return Row(label, unit, published, None, note=text, fixed_verdict=judged)
        own, scatter = float(values.mean()), float(values.std(ddof=1))
        half = scatter * _student_quantile(0.95, values.size) / values.size**0.5
        errors = self.share + (1 / values.size if self.includes_mean_error else 0)
        ends = tuple(between)
        tolerance = Tolerance(
            absolute=scatter * _student_quantile(CONFIDENCE, values.size) * errors**0.5,
            printed_digits=True,
            between=(min(ends), max(ends)) if ends else None,
        )
        row = Row(label, unit, published, own, own - half, own + half, tolerance, note=note)
        if published is None:
            return row
        reach = tolerance.agreeing_range(published)
        tried = (Cause(why, other.mean(how or read)) for why, other, how in causes)
        return replace(row, explained_by=choose_cause(tried, own, reach))

    def mean(self, read: Read) -> float:
        """Return the mean over the runs, nan if none has a value."""
        values = self.values(read)
        return float(values.mean()) if values.size else float("nan")


def _student_quantile(confidence: float, count: int) -> float:
    return float(students_t.ppf((1 + confidence) / 2, count - 1))


def metric_reader(name: str, scale: float = 1.0) -> Read:
    """Return a function that reads a metric, times ``scale``."""
    return lambda answer: scale * answer[name]


def interval_reader(low_pkts: int, column: str, scale: float = 1.0) -> Read:
    """Return a function that reads a column of a size interval, times ``scale``.

    The value is nan if the run has no file of that size.
    """

    def read(answer: Answer) -> float:
        table = answer.tables["by_size"]
        cells = table[column][table["low_pkts"] == low_pkts]
        return scale * float(cells[0]) if cells.size else float("nan")

    return read


def recovery_reader(name: str, scale: float = 1.0) -> Read:
    """Return a function that reads a quantity of the table ``loss_recovery``, times ``scale``."""

    def read(answer: Answer) -> float:
        table = answer.tables["loss_recovery"]
        return scale * float(table["value"][table["quantity"] == name][0])

    return read
