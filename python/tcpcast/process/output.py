"""Writes output files without damage to existing files, and without incomplete files.

The same rules hold for every file that a command or a Python function writes:

- Existing files are kept, unless tcpcast wrote a file of the same kind (a plot overwrites a plot)
  or ``--force`` is given. Directories, devices, and input files of the command are never
  overwritten.
- Symbolic links are not followed: ``--force`` replaces the link, not its target.
- :func:`check_file_is_writable` and :func:`check_folder_is_writable` check before the computation
  whether a file can be written.
- A file is written under a temporary name in its directory and renamed when it is complete
  (:func:`atomic_file`). An error, such as a full disk or Ctrl-C, leaves no file.
"""

from __future__ import annotations

import io
import os
import stat
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast.process import protected_inputs
from tcpcast.process.errors import MachineError, TcpcastError
from tcpcast.process.sanitize import escape_control_characters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

TEMPORARY_PREFIX = ".tcpcast-"
"""Prefix of the names of files that are being written, or that only test whether one can be."""
_HEAD_BYTES, _TAIL_BYTES = 4096, 65536
_TICK_LABEL_PREFIX = r"$\mathdefault"
"""Prefix of tick labels that matplotlib writes on logarithmic axes."""


@dataclass(frozen=True, slots=True)
class OutputKind:
    """A kind of files that tcpcast writes; each contains the bytes ``mark``.

    The mark is searched in the first 4 KiB and the last 64 KiB of a file.
    """

    name: str
    mark: bytes


FIGURE_KINDS = {
    "png": OutputKind("figure", b"Software\0tcpcast"),
    "svg": OutputKind("figure", b"<dc:title>tcpcast</dc:title>"),
    "pdf": OutputKind("figure", b"/Creator (tcpcast)"),
}
"""Formats of plots by suffix."""
PARQUET_KIND = OutputKind("Parquet file", b"tcpcast.table")
PAGE_KIND = OutputKind("page", b"<!-- written by tcpcast reproduce -->")
REPORT_KIND = OutputKind("report", b"<!-- written by tcpcast report -->")

_FIGURE_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "tcpcast"},
    "svg": {"Creator": "tcpcast", "Date": None},
    "pdf": {"Creator": "tcpcast", "CreationDate": None},
}
"""Metadata of plots; matplotlib's own metadata and the date would differ between runs."""
_MAX_LINKS = 40
"""Maximum number of symbolic links in a path, as in Linux."""
_MAX_POINTS = 250
"""Maximum number of points of a curve with markers (20 times as many without markers). In SVG, a
curve with more points becomes an image."""


def check_file_is_writable(
    path: str | Path, *, kind: OutputKind | None = None, force: bool = False
) -> None:
    """Raise an error, before the computation, if a file cannot be written.

    Parameters
    ----------
    path
        The file's name as typed, relative to the current directory.
    kind
        Kind of existing files that may be overwritten if tcpcast wrote them; None for no files.
    force
        Whether any file may be overwritten.

    Raises
    ------
    TcpcastError
        A file of that name exists and is kept; the message suggests alternatives.
    MachineError
        The directory is not writable.
    """
    given = Path(_require_valid_file_name(path))
    _may_replace(given, kind, force)
    _check_writable(given, given.parent)


def check_folder_is_writable(folder: str | Path) -> None:
    """Raise an error, before the computation, if no file can be created in a directory.

    Parameters
    ----------
    folder
        The directory as typed; it need not exist. A symbolic link is refused.

    Raises
    ------
    TcpcastError
        The directory is a symbolic link; the message contains its target.
    MachineError
        The path is a file, or the directory cannot be created or written.
    """
    given = Path(_require_valid_file_name(folder))
    if given.is_symlink():
        raise TcpcastError(
            f"{given} is a symbolic link, and symbolic links are not followed; use "
            f"{given.resolve()}"
        )
    _check_writable(given, given)


@contextmanager
def atomic_file(
    path: str | Path, *, kind: OutputKind | None = None, force: bool = False
) -> Iterator[Path]:
    """Yield a new, empty file in the directory of ``path``; rename it to ``path`` after the block.

    If the block fails, or a file of this name is created meanwhile, the new file is removed and the
    existing file is kept. Missing directories are created.

    Parameters
    ----------
    path, kind, force
        As for :func:`check_file_is_writable`.

    Raises
    ------
    MachineError
        The file cannot be written, or an existing file may not be overwritten.
    """
    given = Path(_require_valid_file_name(path))
    try:
        replaces = _may_replace(given, kind, force)
        given.parent.mkdir(parents=True, exist_ok=True)
        temporary = _create_temporary_file(given.parent)
    except OSError as error:
        raise _unwritable_error(given, error) from error
    except MachineError:
        raise
    except TcpcastError as refusal:
        raise MachineError(str(refusal)) from refusal
    try:
        yield temporary
        if replaces:
            os.replace(temporary, given)
        else:
            try:
                os.link(temporary, given)  # unlike a rename, a link never replaces a file
            except FileExistsError:
                raise
            except OSError:  # a file system without hard links, such as FAT
                if os.path.lexists(given):
                    raise
                os.rename(temporary, given)
    except OSError as error:
        raise _unwritable_error(given, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def save_figure(figure: Figure, path: Path, *, force: bool = False) -> Path:
    """Write a figure of matplotlib and return its path; an earlier plot of tcpcast is overwritten.

    Parameters
    ----------
    figure
        The figure.
    path
        A name whose suffix is one of :data:`FIGURE_KINDS`, which determines the format.
    force
        As for :func:`check_file_is_writable`.

    Raises
    ------
    MachineError
        As for :func:`atomic_file`.
    """
    format_name = path.suffix[1:]
    with atomic_file(path, kind=FIGURE_KINDS[format_name], force=force) as temporary:
        temporary.write_bytes(figure_bytes(figure, format_name, path.stem))
    return path


def figure_bytes(figure: Figure, format_name: str, name: str) -> bytes:
    """Return a figure as the contents of a file; ``name`` makes identifiers in SVG unique.

    In SVG, text remains text, and curves with very many points become images.
    """
    from matplotlib import rc_context  # noqa: PLC0415 - optional, and slow to import
    from matplotlib.text import Text  # noqa: PLC0415 - optional, and slow to import

    for text in figure.findobj(Text):
        if isinstance(text, Text) and not text.get_text().startswith(_TICK_LABEL_PREFIX):
            text.set_text(escape_control_characters(text.get_text()))
            text.set_parse_math("$" not in text.get_text())
    written = io.BytesIO()
    with rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}), warnings.catch_warnings():
        # About characters that are missing in the font, and panels without space for all labels.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        if format_name == "svg":
            from matplotlib.collections import Collection  # noqa: PLC0415 - optional, and slow to import
            from matplotlib.lines import Line2D  # noqa: PLC0415

            for drawn in figure.findobj(lambda artist: isinstance(artist, Line2D | Collection)):
                if isinstance(drawn, Collection):
                    points = len(drawn.get_paths())
                elif isinstance(drawn, Line2D):
                    points = len(drawn.get_path())
                    if drawn.get_marker() in {"None", "", " ", None}:
                        points //= 20
                drawn.set_rasterized(points > _MAX_POINTS)
        figure.savefig(written, format=format_name, metadata=_FIGURE_METADATA[format_name])
    return written.getvalue()


def write_text(
    path: str | Path, text: str, *, kind: OutputKind | None = None, force: bool = False
) -> None:
    """Write a text file in UTF-8; bytes of file names that are not UTF-8 are replaced.

    Raises
    ------
    MachineError
        As for :func:`atomic_file`.
    """
    with atomic_file(path, kind=kind, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def _require_valid_file_name(path: str | Path) -> str | Path:
    if not isinstance(path, str | PathLike) or str(path) == "" or "\0" in str(path):
        raise TcpcastError(
            f'"{escape_control_characters(str(path))}" is not a file name; use a name that is not '
            "empty and has no NUL character"
        )
    return path


def _may_replace(path: Path, kind: OutputKind | None, force: bool) -> bool:
    """Return True if there is a file to overwrite; raise an error if it may not be overwritten."""
    if not protected_inputs.may_write():
        raise TcpcastError(
            f"cannot write {path}: this server does not write files; omit the output option"
        )
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unwritable_error(path, error) from error
    if stat.S_ISDIR(mode):
        raise TcpcastError(f"cannot write {path}: it is a directory; use the name of a file")
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) or _leads_to_device(path):
        raise TcpcastError(f"cannot write {path}: it is a device or a pipe; use the name of a file")
    if protected_inputs.is_protected_input(path):
        raise TcpcastError(
            f"cannot write {path}: this file is an input of the command; use another name"
        )
    if force or (kind is not None and stat.S_ISREG(mode) and _contains_mark(path, kind.mark)):
        return True
    raise TcpcastError(
        f"{path} exists and is not overwritten; move it, use another name, or use --force to "
        "overwrite it"
    )


def is_of_kind_or_absent(path: Path, kind: OutputKind) -> bool:
    """Return True if a file contains the mark of a kind, or if there is no file."""
    return not os.path.lexists(path) or _contains_mark(path, kind.mark)


def _leads_to_device(path: Path) -> bool:
    """Return True for a link to a device, a pipe, or a descriptor such as ``/dev/stdout``.

    A descriptor may be a regular file; therefore the names in the chain of links are also checked.
    """
    step = path.absolute()
    for _ in range(_MAX_LINKS):
        if not step.is_symlink():
            break
        step = Path(os.path.normpath(step.parent.resolve() / os.readlink(step)))
        if step.is_relative_to("/proc") or step.is_relative_to("/dev/fd"):
            return True
    else:
        return False
    return step.exists() and not (step.is_file() or step.is_dir())


def _contains_mark(path: Path, mark: bytes) -> bool:
    """Return True if a file contains the mark of a kind; False if it cannot be read."""
    try:
        # The file may have been replaced by a pipe or a link since the check.
        unblocked = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with open(os.open(path, unblocked), "rb") as file:
            head = file.read(_HEAD_BYTES)
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            return mark in head or mark in file.read(_TAIL_BYTES)
    except OSError:
        return False


def _check_writable(wanted: Path, folder: Path) -> None:
    """Create and remove a file in a directory, or in the nearest existing parent directory."""
    there = folder
    while not os.path.lexists(there) and there.parent != there:
        there = there.parent
    if not there.is_dir():
        what = "it is" if there == wanted else f"{there} is"
        raise MachineError(f"cannot write {wanted}: {what} a file, not a directory")
    try:
        _create_temporary_file(there).unlink(missing_ok=True)  # a sweep there may remove it first
    except OSError as error:
        raise _unwritable_error(wanted, error) from error


def _create_temporary_file(folder: Path) -> Path:
    """Create an empty file with a unique name and the default permissions."""
    import secrets  # noqa: PLC0415 - slower than all other imports of a help text

    path = folder / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    return path


def _unwritable_error(path: Path, error: OSError) -> MachineError:
    return MachineError(f"cannot write {path}: {error.strerror or error}")
