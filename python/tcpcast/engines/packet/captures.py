"""Captures that a simulation writes while it runs."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tcpcast.errors import EnvironmentFault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from tcpcast import _native
    from tcpcast.scenario import Scenario


class Captures:
    """The files of ``probes.pcap``: written beside their places, and put there at the end.

    A context: what is not put in its place before its end is removed.

    Raises
    ------
    EnvironmentFault
        A file cannot be written; before the run, where its folder does not allow it.
    """

    def __init__(self, scenario: Scenario, run: _native.Simulation) -> None:
        """Open a file for each capture that the scenario asks for."""
        self._wanted = scenario.probes.pcap
        self._run = run
        self._written: list[Path] = []
        with contextlib.ExitStack() as undo:
            undo.callback(self._remove)
            for index, wanted in enumerate(self._wanted):
                with _told(wanted.file):
                    self._written.append(_beside(Path(wanted.file)))
                    run.begin_capture(index, self._written[index])
            undo.pop_all()

    def __enter__(self) -> Captures:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove what was not put in its place."""
        self._remove()

    def put(self) -> list[str]:
        """Write what is left, put the files in their places, and warn of those that were cut."""
        warnings = []
        for index, wanted in enumerate(self._wanted):
            with _told(wanted.file):
                cut = self._run.end_capture(index)
                self._written[index].replace(wanted.file)
            if cut:
                warnings.append(
                    f"capture {wanted.file} holds the first {wanted.packets} packets; "
                    "raise probes.pcap.packets for more"
                )
        return warnings

    def _remove(self) -> None:
        for path in self._written:
            path.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """Make an empty file in the folder of another, with the rights of a new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    mask = os.umask(0)
    os.umask(mask)
    Path(name).chmod(0o666 & ~mask)
    return Path(name)


@contextlib.contextmanager
def _told(file: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentFault(
            f"probes.pcap: cannot write {file}: {error.strerror}; name another file"
        ) from error
