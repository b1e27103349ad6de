"""The answers to one scenario, as :func:`tcpcast.run` returns them, with methods to show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from tcpcast.answer import Answer
from tcpcast.comparison.compare import compare_all
from tcpcast.process.errors import UnknownEngine
from tcpcast.process.extras import import_dataframe_package
from tcpcast.report.html import html_elements
from tcpcast.report.metric_rows import COLUMN_NAMES, answer_rows
from tcpcast.report.run import run_parts
from tcpcast.report.text import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tcpcast.report.figures import Figures
    from tcpcast.scenario import Scenario

_FLOAT_COLUMNS = {"value": "float64", "low": "float64", "high": "float64"}


class Answers(list[Answer]):
    """A list of answers that can also be indexed by the name of an engine.

    ``print(answers)`` shows the table of ``tcpcast run``, a notebook shows it as HTML.
    """

    def __init__(self, answers: Iterable[Answer], scenario: Scenario) -> None:
        super().__init__(answers)
        self.scenario = scenario

    @overload
    def __getitem__(self, key: SupportsIndex) -> Answer: ...
    @overload
    def __getitem__(self, key: str) -> Answer: ...
    @overload
    def __getitem__(self, key: slice) -> list[Answer]: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> Answer | list[Answer]:
        """Return an answer by position or by engine: ``answers["packet"]``.

        Raises
        ------
        UnknownEngine
            The list has no answer by that engine; the message lists the engines. The exception is
            also a KeyError.
        """
        if not isinstance(key, str):
            return super().__getitem__(key)
        for answer in self:
            if answer.engine == key:
                return answer
        raise UnknownEngine(
            f"there is no answer by '{key}'; there are answers by "
            f"{', '.join(a.engine for a in self)}"
        )

    def __repr__(self) -> str:
        return f"<Answers to {self.scenario.name}: {', '.join(a.engine for a in self)}>"

    def __str__(self) -> str:
        return plain_text(run_parts(compare_all(self), self.scenario))

    def _repr_html_(self) -> str:
        return html_elements(run_parts(compare_all(self), self.scenario, show_all=True))

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``tcpcast run --json`` as a dictionary."""
        from tcpcast.report.json import answers_document  # noqa: PLC0415 - rarely needed

        return answers_document(compare_all(self), self.scenario)

    def to_pandas(self) -> Any:
        """Return the output of ``tcpcast run --csv`` as a ``pandas.DataFrame``, one row per metric.

        The columns are engine, class (empty for the total of all sources), metric, value, low,
        high, unit and trusted.

        Raises
        ------
        MachineError
            pandas is not installed.
        """
        pandas = import_dataframe_package("pandas")
        return pandas.DataFrame(answer_rows(self), columns=list(COLUMN_NAMES)).astype(
            _FLOAT_COLUMNS
        )

    def to_polars(self) -> Any:
        """Return the rows and columns of :meth:`to_pandas` as a ``polars.DataFrame``.

        Raises
        ------
        MachineError
            polars is not installed.
        """
        polars = import_dataframe_package("polars")
        kinds = dict.fromkeys(_FLOAT_COLUMNS, polars.Float64)
        rows = answer_rows(self)
        return polars.DataFrame(rows, list(COLUMN_NAMES), schema_overrides=kinds, orient="row")

    @overload
    def plot(self, folder: None = None) -> Figures: ...
    @overload
    def plot(self, folder: str | Path, *, force: bool = False, form: str = "png") -> list[Path]: ...
    def plot(
        self, folder: str | Path | None = None, *, force: bool = False, form: str = "png"
    ) -> Figures | list[Path]:
        """Draw a figure of each table in the answers; requires the extra ``plot``.

        Parameters
        ----------
        folder
            Folder for the files. Figures of earlier runs are overwritten, other files only with
            ``force``. If None, the figures are returned instead of written; a notebook shows them.
        force
            Overwrite files that are not figures of tcpcast.
        form
            ``"png"``, ``"svg"`` or ``"pdf"``.

        Returns
        -------
        Figures or list of Path
            A list of :class:`matplotlib.figure.Figure`, or the paths of the files.

        Raises
        ------
        MachineError
            matplotlib is missing, or the folder cannot be written.
        """
        # matplotlib is slow to import
        from tcpcast.report import figures  # noqa: PLC0415

        drawn = figures.iter_figures(self, self.scenario)
        if folder is None:
            return figures.Figures(drawn)
        return figures.write_figures(drawn, folder, force=force, form=form)
