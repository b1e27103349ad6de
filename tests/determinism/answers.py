"""Record the answers of the corpus, and compare a later tree with the recording.

``python tests/determinism/answers.py record DIR`` before a change, ``compare DIR`` after it:
every number and every structure byte for byte, with one map of renamed keys and columns. Wall
times and digests are left out. With ``--numbers``, numbers and structure must be equal, and
differences of words are listed separately without failing. ``--slow`` includes the papers,
``--only TEXT`` selects cases by name.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from corpus import Case, cases
from tcpcast.cli import main as tcpcast
from tcpcast.engines.kernel.config import run_arguments as kernel_arguments
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.scenario import Scenario

RENAMED: dict[str, str] = {}
"""Keys of JSON and columns of CSV in the recording, and their present names."""

REMOVED = frozenset({"departures"})
"""Removed keys of JSON in the recording."""

LEFT_OUT = frozenset({"wall_s", "digest", "host", "date"})
"""Keys with values that depend on time or machine."""

CALLS: dict[str, Callable[[Any], Any]] = {
    "kernel": lambda scenario: kernel_arguments(Scenario.from_dict(scenario), 0),
    "link": lambda scenario: make_configuration(Scenario.from_dict(scenario), 0.0),
}
"""Functions that a case can call with a JSON document, by name."""

NUMBER = re.compile(r"(?<![\w.])[-\u2212]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?")
KEY = re.compile(r' *"([^"]+)": (.*)')

TEXTS = frozenset({".csv", ".json", ".md", ".toml", ".txt"})
MAX_SHOWN = 8


def recorded(case: Case) -> dict[str, str]:
    """Run a case and return its output and files, one text for each command and file."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for file, text in (case.files or {}).items():
            Path(file).write_text(text)
        result = {}
        for number, command in enumerate(case.commands):
            result[f"{number:02}-{'-'.join(command[:1])}"] = printed(command)
        for number, (function, argument) in enumerate(case.calls):
            document = CALLS[function](json.loads(json.dumps(argument)))
            text = json.dumps(without_moment(document), indent=1, default=repr)
            result[f"{number:02}-{function}"] = text
        result.update(files_of(Path()))
    return result


def printed(command: tuple[str, ...]) -> str:
    """Return the exit code, standard output and standard error of a command."""
    out, words = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(words):
        code = tcpcast(list(command))
    return f"{code}\n{canonical(out.getvalue())}\n{canonical(words.getvalue())}"


def files_of(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts, or digests, of all files below a folder; figures only in SVG."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.suffix in {".png", ".pdf"}:
            continue
        data = path.read_bytes()
        if path.suffix in TEXTS:
            yield f"file-{path}", canonical(data.decode())
        else:
            yield f"file-{path}", f"{len(data)} {hashlib.sha256(data).hexdigest()}"


def canonical(text: str) -> str:
    """Return JSON without time-dependent values, one value per line; other text unchanged."""
    if not text.startswith(("{", "[")):
        return re.sub(r"\b(in|after) [0-9.]+ ([uµ]s|ms|s|min)\b", r"\1 ...", text)
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        return text
    return json.dumps(without_moment(document), indent=1)


def without_moment(value: Any) -> Any:
    """Return a document without wall times and digests."""
    if isinstance(value, dict):
        return {
            key: without_moment(item)
            for key, item in value.items()
            if key not in LEFT_OUT and not (key == "scenario" and is_digest(item))
        }
    if isinstance(value, list):
        return [without_moment(item) for item in value]
    return value


def is_digest(value: Any) -> bool:
    """Whether a value is the digest of a scenario."""
    return isinstance(value, str) and re.fullmatch(r"(sha256:?)?[0-9a-f]{16,64}", value) is not None


def write(case: Case, folder: Path) -> str:
    """Record a case into its folder, and return its name."""
    result = recorded(case)
    directory = folder / case.name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name, text in result.items():
        (directory / name.replace(os.sep, "+")).write_text(text)
    return case.name


def renamed(text: str) -> str:
    """Return a recorded text with the present names, without the lines of removed keys."""
    if REMOVED:
        gone = "|".join(map(re.escape, sorted(REMOVED)))
        text = re.sub(rf'^ *"({gone})": .*,\n', "", text, flags=re.MULTILINE)
    if not RENAMED:
        return text
    names = "|".join(map(re.escape, sorted(RENAMED, key=len, reverse=True)))
    return re.sub(rf"(?<![\w.-])({names})(?![\w.-])", lambda result: RENAMED[result[1]], text)


def differences(before: dict[str, str], now: dict[str, str]) -> Iterator[str]:
    """Yield a line for each difference between two recordings of a case."""
    for name in sorted({*before, *now}):
        if name not in before or name not in now:
            yield f"{name}: only {'now' if name in now else 'before'}"
            continue
        old, new = renamed(before[name]).splitlines(), now[name].splitlines()
        if len(old) != len(new):
            yield f"{name}: {len(old)} lines before, {len(new)} now"
        for line, (was, is_now) in enumerate(zip(old, new, strict=False), 1):
            if was != is_now:
                yield f"{name}:{line}: {was.strip()} -> {is_now.strip()}"


def without_words(text: str) -> str:
    """Return the numbers and the structure of a text: a line for each number, key and bracket.

    Lines of JSON keep their key, other lines only their numbers, so that the wording and wrapping
    of paragraphs may differ.
    """
    structure: list[str] = []
    for line in text.splitlines():
        key = KEY.match(line)
        if key:
            structure.append(key[1])
        elif re.fullmatch(r"[\s{}\[\],]+", line):
            structure.append(line.strip())
        structure.extend(result[0] for result in NUMBER.finditer(key[2] if key else line))
    return "\n".join(structure)


def compared(case: Case, folder: Path, *, numbers: bool = False) -> tuple[list[str], list[str]]:
    """Return the differences of a case from its recording; with ``numbers`` also those in words."""
    directory = folder / case.name
    if not directory.is_dir():
        return ["not recorded"], []
    before = {path.name: path.read_text() for path in directory.iterdir()}
    files = {name: before.get(f"file-{name}", text) for name, text in (case.files or {}).items()}
    case = replace(case, files=files)
    now = {name.replace(os.sep, "+"): text for name, text in recorded(case).items()}
    every = list(differences(before, now))
    if not numbers:
        return every, []
    skeletons = [
        {name: without_words(text) for name, text in recorded_texts.items()}
        for recorded_texts in (before, now)
    ]
    differing = list(differences(*skeletons))
    return differing, [] if differing else every


def select_cases(only: str, slow: bool) -> list[Case]:
    """Return the cases whose name contains a text."""
    return [case for case in cases() if only in case.name and (slow or not case.slow)]


def record_all(cases_to_run: list[Case], folder: Path, processes: int) -> int:
    """Record cases and return the exit code."""
    with ProcessPoolExecutor(processes) as pool:
        names = list(pool.map(partial(write, folder=folder), cases_to_run, chunksize=4))
    print(f"{len(names)} cases recorded in {folder}")
    return 0


def compare_all(cases_to_run: list[Case], folder: Path, processes: int, *, numbers: bool) -> int:
    """Print the differences from a recording; return the exit code, 1 if there are any."""
    compare = partial(compared, folder=folder, numbers=numbers)
    with ProcessPoolExecutor(processes) as pool:
        result = list(zip(cases_to_run, pool.map(compare, cases_to_run, chunksize=4), strict=True))
    differing = list(report((case, lines) for case, (lines, _) in result))
    if numbers:
        print("Words that differ:")
        worded = list(report((case, words) for case, (_, words) in result))
        print(f"{len(worded)} cases differ in words")
    print(f"{len(cases_to_run)} cases compared, {len(differing)} differ")
    return 1 if differing else 0


def report(result: Iterable[tuple[Case, list[str]]]) -> Iterator[str]:
    """Print the differences of each case, and yield the names of those that differ."""
    for case, lines in result:
        if lines:
            print(f"{case.name}: {len(lines)} differences", *lines[:MAX_SHOWN], sep="\n  ")
            yield case.name


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="only cases whose name contains this text")
    parser.add_argument("--slow", action="store_true", help="also the papers")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--numbers", action="store_true", help="words may differ")
    options = parser.parse_args()
    cases_to_run, folder = select_cases(options.only, options.slow), options.folder.resolve()
    if options.what == "record":
        return record_all(cases_to_run, folder, options.processes)
    return compare_all(cases_to_run, folder, options.processes, numbers=options.numbers)


if __name__ == "__main__":
    sys.exit(main())
