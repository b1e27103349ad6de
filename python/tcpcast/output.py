"""Output files: nothing of the user's is lost to them, and none is left half written.

One rule holds for every file that is written, by a command or from Python:

- What exists stays, unless it is a file of the same kind that tcpcast wrote (a figure replaces a
  figure), or ``--force`` was written. A folder, a device, and a file that the command reads are
  never replaced.
- No symbolic link is followed: with ``--force`` the link goes, what it leads to stays.
- Whether a file can be written is checked before the work, by :func:`check_file` and
  :func:`check_folder`.
- A file is written aside, under a temporary name in its folder, and gets its own name when it is
  whole: :func:`aside`. What goes wrong on the way, a full disk or Ctrl-C, leaves nothing.
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

from tcpcast import inputs
from tcpcast.errors import MachineError, TcpcastError
from tcpcast.sanitize import escape_control_characters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

_HEAD, _TAIL = 4096, 65536
_TICK = r"$\mathdefault"
"""So begin the labels that matplotlib itself writes at logarithmic axes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of files that tcpcast writes, and the ``mark`` of bytes that it leaves in each.

    The mark is looked for in the first 4 KiB and in the last 64 KiB of a file.
    """

    name: str
    mark: bytes


FIGURES = {
    "png": Kind("figure", b"Software\0tcpcast"),
    "svg": Kind("figure", b"<dc:title>tcpcast</dc:title>"),
    "pdf": Kind("figure", b"/Creator (tcpcast)"),
}
"""Forms of figures, by what their names end in."""
PARQUET = Kind("Parquet file", b"tcpcast.table")
PAGE = Kind("page", b"<!-- written by tcpcast reproduce -->")
REPORT = Kind("report", b"<!-- written by tcpcast report -->")

_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "tcpcast"},
    "svg": {"Creator": "tcpcast", "Date": None},
    "pdf": {"Creator": "tcpcast", "CreationDate": None},
}
"""What a figure has of who drew it; matplotlib's own mark and the date would differ."""
_MOST_LINKS = 40
"""The limit of Linux."""
_MOST_POINTS = 250
"""Of one curve with marks, and twenty times as many without; more are an image within SVG."""


def check_file(path: str | Path, *, kind: Kind | None = None, force: bool = False) -> None:
    """Refuse, before the work, a file that may not or cannot be written.

    Parameters
    ----------
    path
        The file's name as typed, relative to the current folder.
    kind
        Files of this kind that tcpcast wrote may be replaced; None: no file may.
    force
        Whether any file may be replaced.

    Raises
    ------
    TcpcastError
        Something of that name exists and stays; the message says what to write instead.
    MachineError
        The folder cannot be written.
    """
    given = Path(_checked_name(path))
    _may_replace(given, kind, force)
    _check_writable(given, given.parent)


def check_folder(folder: str | Path) -> None:
    """Refuse, before the work, a folder in which no file can be made.

    Parameters
    ----------
    folder
        The folder as typed; it need not exist. A symbolic link is refused.

    Raises
    ------
    TcpcastError
        It is a symbolic link; the message names the folder that it leads to.
    MachineError
        It is a file, or it can neither be made nor written.
    """
    given = Path(_checked_name(folder))
    if given.is_symlink():
        raise TcpcastError(
            f"{given} is a symbolic link, which is not followed; write {given.resolve()}"
        )
    _check_writable(given, given)


@contextmanager
def aside(path: str | Path, *, kind: Kind | None = None, force: bool = False) -> Iterator[Path]:
    """Yield a new, empty file beside ``path``; after the block it has that name.

    Where the block fails, or the name is taken meanwhile, the new file is removed and what was
    there stays. Folders that are missing are made.

    Parameters
    ----------
    path, kind, force
        As for :func:`check_file`.

    Raises
    ------
    MachineError
        The file cannot be written, or something of that name may not be replaced.
    """
    given = Path(_checked_name(path))
    try:
        replaces = _may_replace(given, kind, force)
        given.parent.mkdir(parents=True, exist_ok=True)
        temporary = _new_file(given.parent)
    except OSError as fault:
        raise _unwritable(given, fault) from fault
    except MachineError:
        raise
    except TcpcastError as refusal:
        raise MachineError(str(refusal)) from refusal
    try:
        yield temporary
        _give_name(temporary, given, replaces=replaces)
    except OSError as fault:
        raise _unwritable(given, fault) from fault
    finally:
        temporary.unlink(missing_ok=True)


def save_figure(figure: Figure, path: Path, *, force: bool = False) -> Path:
    """Write a figure of matplotlib, over an earlier one of ours, and return where.

    Parameters
    ----------
    figure
        What is drawn.
    path
        A name that ends in one of :data:`FIGURES`, which says the form.
    force
        As for :func:`check_file`.

    Raises
    ------
    MachineError
        As for :func:`aside`.
    """
    form = path.suffix[1:]
    with aside(path, kind=FIGURES[form], force=force) as temporary:
        temporary.write_bytes(figure_bytes(figure, form, path.stem))
    return path


def figure_bytes(figure: Figure, form: str, name: str) -> bytes:
    """Return a figure as a file of a form; ``name`` tells what SVG defines from other figures.

    Texts of SVG stay texts, and a curve of very many points is an image in it.
    """
    from matplotlib import rc_context  # noqa: PLC0415 - optional, and slow to import

    _show_as_it_is(figure)
    written = io.BytesIO()
    with rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}), warnings.catch_warnings():
        # A name may have characters that the font has not: a box stands for each.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        if form == "svg":
            _draw_many_as_image(figure)
        figure.savefig(written, format=form, metadata=_METADATA[form])
    return written.getvalue()


def _draw_many_as_image(figure: Figure) -> None:
    from matplotlib.collections import Collection  # noqa: PLC0415 - optional, and slow to import
    from matplotlib.lines import Line2D  # noqa: PLC0415

    for drawn in figure.findobj(lambda found: isinstance(found, Line2D | Collection)):
        if isinstance(drawn, Collection):
            points = len(drawn.get_paths())
        elif isinstance(drawn, Line2D):
            points = len(drawn.get_path())
            if drawn.get_marker() in {"None", "", " ", None}:
                points //= 20
        drawn.set_rasterized(points > _MOST_POINTS)


def _show_as_it_is(figure: Figure) -> None:
    """Have names in a figure show what is hidden in them, and no dollar begin a formula."""
    from matplotlib.text import Text  # noqa: PLC0415 - optional, and slow to import

    for found in figure.findobj(Text):
        if isinstance(found, Text) and not found.get_text().startswith(_TICK):
            found.set_text(escape_control_characters(found.get_text()))
            found.set_parse_math("$" not in found.get_text())


def write_text(
    path: str | Path, text: str, *, kind: Kind | None = None, force: bool = False
) -> None:
    """Write a text file in UTF-8; names that are no UTF-8 lose the bytes that are none.

    Raises
    ------
    MachineError
        As for :func:`aside`.
    """
    with aside(path, kind=kind, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def _checked_name(path: str | Path) -> str | Path:
    if not isinstance(path, str | PathLike) or str(path) == "" or "\0" in str(path):
        raise TcpcastError(f"{path!r} is no file name; write one, such as figures")
    return path


def _may_replace(path: Path, kind: Kind | None, force: bool) -> bool:
    """Say whether there is something to replace; raise where it may not be."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    except OSError as fault:
        raise _unwritable(path, fault) from fault
    if stat.S_ISDIR(mode):
        raise TcpcastError(f"cannot write {path}: it is a folder; write the name of a file")
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) or _leads_to_device(path):
        raise TcpcastError(
            f"cannot write {path}: it is a device or a pipe; write the name of a file"
        )
    if inputs.is_protected(path):
        raise TcpcastError(
            f"cannot write {path}: the command reads that file; write the name of another file"
        )
    if force or (kind is not None and stat.S_ISREG(mode) and _bears(path, kind.mark)):
        return True
    raise TcpcastError(
        f"{path} is already here and is not overwritten; move it away, write another name, or "
        "--force to replace it"
    )


def is_of_kind(path: Path, kind: Kind) -> bool:
    """Return True if a file bears the mark of a kind, or if there is no file."""
    return not os.path.lexists(path) or _bears(path, kind.mark)


def _leads_to_device(path: Path) -> bool:
    """Return True for a link to a device, a pipe, or a descriptor such as ``/dev/stdout``.

    A descriptor may be a regular file, so the names of the links also count.
    """
    step = path.absolute()
    for _ in range(_MOST_LINKS):
        if not step.is_symlink():
            break
        step = Path(os.path.normpath(step.parent.resolve() / os.readlink(step)))
        if step.is_relative_to("/proc") or step.is_relative_to("/dev/fd"):
            return True
    else:
        return False
    return step.exists() and not (step.is_file() or step.is_dir())


def _bears(path: Path, mark: bytes) -> bool:
    """Say whether a file bears the mark of a kind; one that cannot be read does not."""
    try:
        # The file may have become a pipe or a link since it was looked at.
        unblocked = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with open(os.open(path, unblocked), "rb") as file:
            head = file.read(_HEAD)
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return mark in head or mark in file.read(_TAIL)
    except OSError:
        return False


def _check_writable(wanted: Path, folder: Path) -> None:
    """Make a file in a folder and remove it again; where there is no folder, in the next above."""
    there = folder
    while not os.path.lexists(there) and there.parent != there:
        there = there.parent
    if not there.is_dir():
        what = "it is" if there == wanted else f"{there} is"
        raise MachineError(f"cannot write {wanted}: {what} a file, not a folder")
    try:
        _new_file(there).unlink()
    except OSError as fault:
        raise _unwritable(wanted, fault) from fault


def _new_file(folder: Path) -> Path:
    """Make an empty file of a name of its own, with the rights that any new file gets."""
    import secrets  # noqa: PLC0415 - takes longer than all else that a help text needs

    path = folder / f".tcpcast-{secrets.token_hex(8)}"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    return path


def _give_name(temporary: Path, path: Path, *, replaces: bool) -> None:
    """Give a file that is whole its name, over what is there only if that is to be replaced."""
    if replaces:
        os.replace(temporary, path)
        return
    try:
        os.link(temporary, path)  # unlike a rename, this replaces nothing
    except FileExistsError:
        raise
    except OSError:  # a file system without links, such as FAT
        if os.path.lexists(path):
            raise
        os.rename(temporary, path)


def _unwritable(path: Path, fault: OSError) -> MachineError:
    return MachineError(f"cannot write {path}: {fault.strerror or fault}")
