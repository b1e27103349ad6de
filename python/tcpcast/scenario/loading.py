"""Reads a scenario from a file or by the name of a packaged scenario."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast.process.errors import ScenarioError, find_nearest_word
from tcpcast.process.protected_inputs import protect_inputs
from tcpcast.quantity import units
from tcpcast.quantity.units import NUMBER
from tcpcast.scenario.changes import apply_changes
from tcpcast.scenario.model import Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

PACKAGED = Path(__file__).parent.parent / "scenarios"
"""The folder of the packaged scenarios."""

MAX_FILE_BYTES = 16 * 2**20
_MAX_KEYS = 100_000
_LONG_DOTTED_KEY = re.compile(r"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){32}", re.ASCII)
"""A dotted key with 32 or more parts; the cost in tomllib grows with the square of the number."""
_QUOTED_DOT = re.compile(r"""["'][ \t]*+\.""")
_MAX_QUOTED_DOTS = 100
"""Maximum number of dots after quotes per line: the limit of parts for quoted keys."""
_ERROR_POSITION = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_DUPLICATE_KEY = re.compile(r"overwrite|twice|mutate")
_UNQUOTED_QUANTITY = re.compile(rf"=\s*({NUMBER}\s*[A-Za-zµ%/]+)\s*(?:[,}}#]|$)")


def load(source: str | PathLike[str], *, changes: Mapping[str, Any] | None = None) -> Scenario:
    """Read a scenario.

    Parameters
    ----------
    source
        A TOML file, or the name of a packaged scenario (see ``get_packaged_names``).
    changes
        Values that replace those of the file, by dotted key, as for ``Scenario.with_changes``.

    Returns
    -------
    Scenario

    Raises
    ------
    ScenarioError
        The file or name does not exist, the file is not TOML (with line and column), or the
        scenario has errors (one line each).

    Examples
    --------
    >>> load("web-10mbit", changes={"traffic.sources": 98}).senders
    98
    """
    path = find_scenario_file(source)
    if path.suffix.lower() == ".har":
        raise ScenarioError(f"{source}: this is a page, not a scenario; {page_advice(source)}")
    protect_inputs(path)
    folder = None if path.parent == PACKAGED else path.parent
    return parse_scenario(read_scenario_text(path), str(source), changes=changes, folder=folder)


def parse_scenario(
    text: str,
    where: str,
    *,
    changes: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> Scenario:
    """Read a scenario from the text of a TOML document.

    Parameters
    ----------
    text
        The document.
    where
        Its name, for messages.
    changes
        As for :func:`load`.
    folder
        Base folder of relative file names; None for the current folder.

    Raises
    ------
    ScenarioError
        As for :func:`load`.
    """
    if len(text) > MAX_FILE_BYTES:
        raise ScenarioError(
            f"{where}: the scenario is larger than 16 MiB; move values to a CSV file"
        )
    tables = parse_toml(text, where)
    return Scenario.from_dict(apply_changes(tables, changes) if changes else tables, folder=folder)


def page_advice(file: str | PathLike[str]) -> str:
    """Return how to use a HAR file."""
    return (
        "to simulate loading this page over LTE, use "
        f"tcpcast run page-lte --set class.web.traffic.objects={file}"
    )


def get_packaged_names() -> list[str]:
    """Return the names of the packaged scenarios, sorted."""
    return sorted(path.stem for path in PACKAGED.glob("*.toml"))


def packaged_summaries() -> dict[str, str]:
    """Return the first line of each packaged scenario, without its comment sign, by name."""
    first = {name: read_packaged_text(name).splitlines()[0] for name in get_packaged_names()}
    return {name: line.removeprefix("#").strip() for name, line in first.items()}


def read_packaged_text(name: str) -> str:
    """Return the text of a packaged scenario, including comments.

    Raises
    ------
    ScenarioError
        There is no packaged scenario with this name.
    """
    if name not in get_packaged_names():
        raise ScenarioError(f"{name} is not a packaged scenario{_suggest_packaged_names(name)}")
    return read_scenario_text(PACKAGED / f"{name}.toml")


def find_scenario_file(source: str | PathLike[str]) -> Path:
    """Return the file of a path, or of the name of a packaged scenario.

    Raises
    ------
    ScenarioError
        There is no such file and no such packaged scenario.
    """
    try:
        path = Path(source)
    except TypeError:
        raise ScenarioError(
            f"{source!r} is neither a file nor a packaged scenario{_suggest_packaged_names('')}"
        ) from None
    protect_inputs(path)
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        mode = 0
    except OSError as error:
        raise ScenarioError(f"{source} cannot be read ({error}); use a file name") from None
    if stat.S_ISREG(mode):
        return path
    name = str(source).removesuffix(".toml")
    if name in get_packaged_names():
        return PACKAGED / f"{name}.toml"
    what = "a pipe or a device, not a scenario file" if mode else "no such file"
    if stat.S_ISDIR(mode):
        what = "a folder, not a scenario file" if name else "no name"
    shown = str(source) or units.quote(name)
    raise ScenarioError(
        f"{shown}: {what}, and no packaged scenario{_suggest_packaged_names(path.stem)}"
    )


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Read a TOML document.

    Parameters
    ----------
    text
        The document.
    where
        Name of its file, for messages.

    Raises
    ------
    ScenarioError
        The text is not TOML. The message has file, line, column and, for common mistakes, advice.
    """
    # Reject documents that would take minutes and gigabytes to parse.
    if text.count("=") > _MAX_KEYS:
        raise ScenarioError(
            f"{where}: the scenario contains more than {_MAX_KEYS:,} keys; use fewer keys, or move "
            "values to a CSV file"
        )
    quoted = max((len(_QUOTED_DOT.findall(line)) for line in text.split("\n")), default=0)
    if quoted > _MAX_QUOTED_DOTS or _LONG_DOTTED_KEY.search(text):
        raise ScenarioError(f"{where}: a dotted key has too many parts; use fewer levels")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        lines = text.splitlines() or [""]
        position = _ERROR_POSITION.search(message)
        number = int(position[1]) if position and position[1] else len(lines)
        column = int(position[2]) if position and position[2] else len(lines[-1]) + 1
        what = _ERROR_POSITION.sub("", message)
        line = lines[number - 1] if number <= len(lines) else ""
        unquoted = _UNQUOTED_QUANTITY.search(line)
        remedy = 'use key = value, with texts in quotes: rtt = "50ms"'
        if unquoted:
            remedy = f'use quantities with a unit in quotes, "{unquoted[1].strip()}"'
        if _DUPLICATE_KEY.search(what):
            remedy = "use each key and table once; use one [[class]] table per class"
        raise ScenarioError(f"{where}:{number}:{column}: not TOML: {what}; {remedy}") from None
    except RecursionError:
        raise ScenarioError(f"{where}: tables are nested too deeply; use fewer levels") from None
    except ValueError as error:
        raise ScenarioError(
            f"{where}: a value is outside the range of TOML ({error}); use a smaller value"
        ) from None


def read_scenario_text(path: Path) -> str:
    """Read a scenario file without conversion of line ends.

    Raises
    ------
    ScenarioError
        The file cannot be read, is not a text, or is larger than 16 MiB.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ScenarioError(
                f"{path}: the scenario is larger than 16 MiB; move values to a CSV file"
            )
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError(f"{path} is not a text file; check the file name") from None
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read ({error.strerror}); check the file") from None


def _suggest_packaged_names(name: str) -> str:
    names = get_packaged_names()
    near = find_nearest_word(name, names)
    meant = f' (did you mean "{near}"?)' if near else ""
    return f"{meant}; use the name of a file, or one of {', '.join(names)}"
