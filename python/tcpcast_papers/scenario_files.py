"""Scenario files of a reproduction, and an index of the rows whose values each file repeats.

``tcpcast run`` on a written file repeats a simulation of the reproduction with its seed, and gives
the same numbers. A row belongs to a run if its value is computed from the run's answer, or if it
is a number of this answer in the unit of the row.
"""

from __future__ import annotations

import csv
import io
import math
import re
import shlex
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpcast.process import output
from tcpcast.process.errors import MachineError
from tcpcast.scenario.changes import iter_values_by_dotted_key
from tcpcast.scenario.toml import write_toml

from tcpcast_papers.claims import BETWEEN_LABELS
from tcpcast_papers.reproduction import section_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tcpcast_papers.reproduction import Row, Section
    from tcpcast_papers.simulations import RecordedRun, ResultReaders, RowPlace

INDEX_NAME = "index.csv"
COLUMNS = ("file", "engine", "section", "row", "unit", "published", "own", "metric", "value")
INDEX_KIND = output.OutputKind("table", ",".join(COLUMNS).encode())
SCENARIO_KIND = output.OutputKind("scenario", b"# written by tcpcast reproduce")

_UNIT_FACTORS = (1.0, 100.0, 1e3, 1e-3, 1e-6)
"""Factors from the units of an answer to those of rows: %, ms, kbit/s and Mbit/s."""
_MAX_NAME_CHARS = 80
_MIN_DISTINCTIVE_DIGITS = 4
_HEADLINE_METRICS = ("connection_rate_bps", "completion_time_s", "send_rate_pps")
"""The index shows the first present metric of these if no number of the run equals the value of the
row, or the run has no row; otherwise, the run's first metric."""


@dataclass(frozen=True, slots=True)
class _ReportedValue:
    """One of tcpcast's values of a row: its own value, a further value, or the value of a cause."""

    section: Section
    row: Row
    label: tuple[str, ...]
    own: float


_Match = tuple[_ReportedValue, str, float]
"""A value of a row, and name and value of the equal number in the answer of a run; "" and nan if
the value combines several numbers."""


@dataclass(slots=True)
class _ScenarioFile:
    """A run to write as a file, and the values of the report that the run repeats."""

    run: RecordedRun
    sections: dict[int, Section] = field(default_factory=dict)
    rows: set[RowPlace] = field(default_factory=set)
    matches: list[_Match] = field(default_factory=list)

    @property
    def titles(self) -> list[str]:
        """Titles of the sections."""
        return [section.title for section in self.sections.values()]


def check_folder(folder: Path, *, force: bool = False) -> None:
    """Check before the simulations that scenario files can be written to a folder.

    Raises
    ------
    TcpcastError
        The folder contains another ``index.csv`` or scenario, and ``force`` is not set.
    MachineError
        The folder cannot be written.
    """
    output.check_folder_is_writable(folder)
    output.check_file_is_writable(folder / INDEX_NAME, kind=INDEX_KIND, force=force)
    for scenario in folder.glob("*.toml"):
        output.check_file_is_writable(scenario, kind=SCENARIO_KIND, force=force)


def write(
    runs: Iterable[tuple[RecordedRun, ResultReaders]],
    folder: Path,
    errors: list[str],
    *,
    force: bool = False,
) -> list[str]:
    """Write a scenario file for each run, and ``index.csv``.

    Parameters
    ----------
    runs
        The runs with the readers of their results.
    folder
        Folder of the files; created if necessary. Files of an earlier reproduction are overwritten.
    errors
        Receives a message for each file that cannot be written.
    force
        Whether to overwrite any file.

    Returns
    -------
    list of str
        The command that repeats each simulation.
    """
    commands: list[str] = []
    lines: list[tuple[str, ...]] = []
    for path, file in _assign_file_names(_files_of_runs(runs)).items():
        try:
            titles = "; ".join(file.titles) or "no section"
            tables, _ = file.run.scenario.source_tables()
            run = "tcpcast run {} --engine " + file.run.engine
            named = {"name": path.removesuffix(".toml")} | tables
            mark = SCENARIO_KIND.mark.decode()
            text = f"# {titles}\n{mark}: {run.format(path)}\n{write_toml(named)}"
            output.write_text(folder / path, text, kind=SCENARIO_KIND, force=force)
        except MachineError as error:
            errors.append(str(error))
        else:
            lines += _index_lines(path, file)
            commands.append(run.format(shlex.quote(str(folder / path))))
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([COLUMNS, *lines])
    try:
        output.write_text(folder / INDEX_NAME, stream.getvalue(), kind=INDEX_KIND, force=force)
    except MachineError as error:
        errors.append(str(error))
    return commands


def _files_of_runs(runs: Iterable[tuple[RecordedRun, ResultReaders]]) -> list[_ScenarioFile]:
    """Return the files with their matches; equal scenarios have one file."""
    files: dict[tuple[str, str], _ScenarioFile] = {}
    values: dict[int, list[_ReportedValue]] = {}
    for run, readers in runs:
        file = files.setdefault((run.scenario.digest(), run.engine), _ScenarioFile(run))
        file.rows |= readers.rows
        for section in readers.sections:
            file.sections[id(section)] = section
            values.setdefault(id(section), _values_of_section(section))
    for file in files.values():
        file.matches = [
            match for at in file.sections for match in _iter_matching_values(file, values[at])
        ]
    return list(files.values())


def _iter_matching_values(
    file: _ScenarioFile, values: Iterable[_ReportedValue]
) -> Iterator[_Match]:
    """Yield the values that equal a number of the run in some unit, or depend on the run."""
    numbers = {
        _rounded_text(scale * number): (metric, number)
        for metric, number in reversed(list(file.run.numbers.items()))
        for scale in reversed(_UNIT_FACTORS)
        if not _is_coincidental(scale * number)
    }
    for value in values:
        if (found := numbers.get(_rounded_text(value.own))) is not None:
            yield (value, *found)
        elif (value.section.title, value.label) in file.rows:
            yield value, "", math.nan


def _values_of_section(section: Section) -> list[_ReportedValue]:
    result = []
    for row in section.rows:
        further = zip(section.others, row.others, strict=False)
        values = [(row.label, row.own), *(((*row.label, head), own) for head, own in further)]
        if (cause := row.explained_by) is not None:
            values.append(((*row.label, cause.reason), cause.own))
        result += [
            _ReportedValue(section, row, label, own)
            for label, own in values
            if own is not None and math.isfinite(own)
        ]
    return result


def _is_coincidental(value: float) -> bool:
    """Return whether a value has so few digits that unrelated numbers are often equal."""
    return float(f"{value:.{_MIN_DISTINCTIVE_DIGITS - 1}e}") == float(_rounded_text(value))


def _rounded_text(value: float) -> str:
    return f"{value:.9e}"


def _assign_file_names(files: Sequence[_ScenarioFile]) -> dict[str, _ScenarioFile]:
    """Return the files by unique names: section, row, and keys that differ between its runs."""
    groups: defaultdict[str, list[_ScenarioFile]] = defaultdict(list)
    for file in files:
        words = [section_name(title) for title in file.titles[:1]]
        if file.matches:
            section = file.matches[0][0].section
            labels = [value.label for value, *_ in file.matches if value.section is section]
            words = [section_name(section.title)]
            words += [cell for cell in labels[0] if all(cell in label for label in labels)]
        groups[
            _file_name_of_words(words + [file.run.engine] * (file.run.engine != "packet"))
        ].append(file)
    result: dict[str, _ScenarioFile] = {}
    for place, group in groups.items():
        tables = [
            dict(iter_values_by_dotted_key(file.run.scenario.source_tables()[0])) for file in group
        ]
        keys = _distinguishing_keys(tables)
        for file, table in zip(group, tables, strict=True):
            stem = unique = _file_name_of_words([place, *_key_values_text(table, keys)])
            number = 1
            while f"{unique}.toml" in result:
                number += 1
                unique = f"{stem}-run{number}"
            result[f"{unique}.toml"] = file
    return result


def _distinguishing_keys(tables: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a few keys whose values distinguish the scenarios."""
    keys = dict.fromkeys(key for table in tables for key in table)
    chosen: list[str] = []
    distinct = 1
    for key in sorted(keys, key=lambda key: not key.startswith(("name", "network.bottleneck"))):
        wanted = [*chosen, key]
        count = len({tuple(str(table.get(each)) for each in wanted) for table in tables})
        if count > distinct:
            chosen, distinct = wanted, count
    return chosen


def _key_values_text(table: Mapping[str, Any], keys: Iterable[str]) -> Iterator[str]:
    for key in keys:
        if key == "name":
            yield table[key]
        elif value := table.get(key):
            shown = f"{len(value)}" if isinstance(value, list) else f"{value}"
            yield f"{key.rpartition('.')[2]} {shown}"


def _file_name_of_words(words: Iterable[str]) -> str:
    """Return words as the safe name of a file: small letters, digits, dots and hyphens."""
    text = " ".join(words).lower().replace("%", " percent")
    slug = re.sub(r"[^a-z0-9.]+", "-", text).strip("-.")
    if len(slug) > _MAX_NAME_CHARS:
        slug = slug[:_MAX_NAME_CHARS].rpartition("-")[0]
    return slug or "run"


def _index_lines(path: str, file: _ScenarioFile) -> Iterator[tuple[str, ...]]:
    numbers = file.run.numbers
    headline = next((each for each in (*_HEADLINE_METRICS, *numbers) if each in numbers), "")
    first = (headline, _number_text(numbers.get(headline, math.nan)))
    if not file.matches:
        titles = "; ".join(map(section_name, file.titles))
        yield (path, file.run.engine, titles, "", "", "", "", *first)
    for value, metric, number in file.matches:
        row = value.row
        published = "" if row.published is None else row.published.text
        cells = (
            section_name(value.section.title),
            BETWEEN_LABELS.join(value.label),
            row.unit,
            published,
        )
        own = _number_text(value.own)
        of_run = (metric, _number_text(number)) if metric else first
        yield (path, file.run.engine, *cells, own, *of_run)


def _number_text(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.9g}"
