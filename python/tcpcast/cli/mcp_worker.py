"""What a worker process of ``tcpcast mcp`` does: run a command, or list files."""

from __future__ import annotations

import gzip
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast.cli.worker import run_words
from tcpcast.process.errors import TcpcastError, Words
from tcpcast.process.interrupts import INTERRUPTED_EXIT_CODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_RESULT_BYTES = 256 * 2**10
MAX_REQUESTED_ROWS = 5_000
"""Maximum number of rows of a requested table."""

MAX_LISTED, MAX_VISITED = 500, 20_000
"""Maximum number of listed files, and of files that a listing looks at."""
MAX_DEPTH = 8
"""Maximum depth of listed folders below the folder of the server."""
CAPTURE_MAGIC = frozenset(
    bytes.fromhex(text) for text in ("d4c3b2a1", "a1b2c3d4", "4d3cb2a1", "a1b23c4d", "0a0d0d0a")
)
"""First bytes of a pcap file in both byte orders and units of time, and of a pcapng file."""
GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class ToolWords(Words):
    """Words for agents: an option is an argument of a tool, a key is one of ``set``."""

    def option(self, flag: str) -> str:
        """Return the name of the argument."""
        return flag.removeprefix("--").replace("-", "_")

    def assignment(self, key: str, value: Any) -> str:
        """Return an argument with its value."""
        if key in self.options:
            return f"{self.key(key)} = {json.dumps(value)}"
        return f"set = {json.dumps({key: value})}"


def run_command(request: Mapping[str, Any]) -> dict[str, str]:
    """Run a command, and return its document as text and its messages.

    Parameters
    ----------
    request
        ``words`` of the command line, ``text`` of standard input, ``folder`` (None for no files),
        ``limit_s`` (time limit), ``rows`` (maximum rows of a table) and ``tables`` (names of tables
        with more rows).

    Raises
    ------
    TcpcastError
        The command printed no document; the error contains the messages of the command.
    """
    folder, limit_s = request["folder"], request["limit_s"]
    refusal = "this server may not read files; start tcpcast mcp with --folder DIR"
    if folder is not None:
        refusal = (
            f"this file is outside the folder {folder} of tcpcast mcp; name a file in this folder"
        )
    code, output, collected, _ = run_words(
        request["words"],
        folder=folder,
        refusal=refusal,
        limit_s=limit_s,
        speech=ToolWords(),
        text=request["text"],
    )
    messages = "\n".join(each.text for each in collected)
    if code == INTERRUPTED_EXIT_CODE:
        kind = "incomplete" if output else "no"
        messages = f"{kind} answer: {interruption_reason(limit_s)}"
    if not output:
        raise TcpcastError(messages)
    found = shorten_document_tables(json.loads(output), request["rows"], request["tables"])
    document = json.dumps(found, allow_nan=False)
    if len(document) > MAX_RESULT_BYTES:
        raise TcpcastError(
            f"the answer contains {len(document):,} bytes, more than {MAX_RESULT_BYTES:,}; "
            "request fewer rows, fewer tables, or fewer values per range"
        )
    return {"document": document, "messages": messages if code else ""}


def list_files(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the captures and the scenarios below the folder of the server.

    Captures are recognised by their content, those in zstd by their name. Symbolic links, pipes and
    devices are not listed, because they are not read either.

    Parameters
    ----------
    request
        ``folder``, None for no files.

    Raises
    ------
    TcpcastError
        There is no folder, or it cannot be read.
    """
    folder = request["folder"]
    if folder is None:
        raise TcpcastError("this server may not read files; start tcpcast mcp with --folder DIR")
    found: dict[str, list[dict[str, Any]]] = {"captures": [], "scenarios": []}
    visited, omitted = 0, 0
    for path in _regular_files(Path(folder)):
        visited += 1
        if visited > MAX_VISITED:
            break
        kind = _kind_of_file(path)
        if kind is None:
            continue
        if len(found[kind]) >= MAX_LISTED:
            omitted += 1
            continue
        entry = {"file": path.relative_to(folder).as_posix(), "bytes": path.stat().st_size}
        found[kind].append(entry)
    document = {**found, "omitted": omitted, "complete": visited <= MAX_VISITED and not omitted}
    return {"document": json.dumps(document), "messages": ""}


def _regular_files(folder: Path) -> Iterator[Path]:
    """Yield the regular files below a folder in the order of their names."""
    for root, folders, files in os.walk(folder):
        depth = len(Path(root).relative_to(folder).parts)
        folders[:] = sorted(folders) if depth < MAX_DEPTH else []
        for name in sorted(files):
            path = Path(root, name)
            try:
                is_regular = stat.S_ISREG(path.lstat().st_mode)
                name.encode()
            except (OSError, UnicodeEncodeError):
                continue
            if is_regular:
                yield path


def _kind_of_file(path: Path) -> str | None:
    """Return the list to which a file belongs; None for another file."""
    if path.suffix == ".toml":
        return "scenarios"
    try:
        with path.open("rb") as stream:
            first = stream.read(4)
        if first.startswith(GZIP_MAGIC):
            with gzip.open(path) as stream:
                first = stream.read(4)
    except (OSError, EOFError):
        return None
    is_zstd = first == ZSTD_MAGIC and any("cap" in suffix for suffix in path.suffixes)
    return "captures" if first in CAPTURE_MAGIC or is_zstd else None


def interruption_reason(limit_s: float) -> str:
    """Return the reason why a command was interrupted or killed."""
    return (
        f"the time limit of {limit_s:g} s was reached; request shorter runs or fewer values per "
        "range, or raise --max-wall"
    )


def shorten_document_tables(
    document: dict[str, Any], rows: int, wanted: list[str]
) -> dict[str, Any]:
    """Return a document with the verdict first and without long tables.

    Each answer or plan gets a key ``omitted`` with the number of rows of each omitted table.
    """
    first = {"verdict": document["verdict"]} if "verdict" in document else {}
    found: dict[str, Any] = _without_long_tables(first | document, rows, wanted)
    return found


def _without_long_tables(value: Any, rows: int, wanted: list[str]) -> Any:
    """Return a value of a document without the long tables of answers and plans."""
    if isinstance(value, list):
        return [_without_long_tables(each, rows, wanted) for each in value]
    if not isinstance(value, dict):
        return value
    tables = value.get("tables", {})
    lengths = {name: len(next(iter(each["columns"].values()), ())) for name, each in tables.items()}
    most = {name: MAX_REQUESTED_ROWS if name in wanted else rows for name in lengths}
    omitted = {name: length for name, length in lengths.items() if length > most[name]}
    if omitted:
        kept = {name: each for name, each in tables.items() if name not in omitted}
        value = value | {"tables": kept}
    found = {name: _without_long_tables(each, rows, wanted) for name, each in value.items()}
    return found | ({"omitted": omitted} if omitted else {})
