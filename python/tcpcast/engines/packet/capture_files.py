"""Capture files of a simulation (``[[probes.pcap]]``), written during the run."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tcpcast.process import output
from tcpcast.process.errors import MachineError, ScenarioError, TcpcastError
from tcpcast.process.output import OutputKind

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tcpcast import _native
    from tcpcast.answer import Answer
    from tcpcast.engines.options import RunOptions
    from tcpcast.scenario import Scenario

_CAPTURE_KIND = OutputKind("capture", bytes.fromhex("4d3cb2a1"))
"""First bytes of capture files that tcpcast writes: pcap with nanoseconds."""


def check_all_capture_files(scenario: Scenario, options: RunOptions) -> None:
    """Raise an error, before the simulation, for capture files that cannot be written.

    Raises
    ------
    TcpcastError
        A file of that name exists, and ``options.force`` is not set.
    MachineError
        A directory is not writable.
    """
    for wanted in scenario.probes.pcap:
        file = resolve_capture_path(scenario, wanted.file)
        check_capture_file(scenario, file, force=options.force)


def resolve_capture_path(scenario: Scenario, name: str) -> Path:
    """Return the path of a capture; in a scenario file it must be below the file's directory.

    The user who runs a scenario file may not have read it. Scripts may use any path.

    Raises
    ------
    ScenarioError
        A scenario file names a path outside its directory.
    """
    file = scenario.resolve_path(name)
    _, folder = scenario.source_tables()
    if folder is not None and not file.parent.resolve().is_relative_to(folder):
        raise ScenarioError(
            f"probes.pcap: {name} is outside the scenario's directory {folder}; use a name such as "
            '"out.pcap"'
        )
    return file


def check_capture_file(scenario: Scenario, file: Path, *, force: bool) -> None:
    """Raise an error, before the simulation, if a capture cannot be written.

    With ``force``, a scenario file may overwrite captures but no other files, because the user did
    not name the files on the command line.

    Raises
    ------
    TcpcastError, MachineError
        As for :func:`tcpcast.process.output.check_file_is_writable`.
    """
    _, folder = scenario.source_tables()
    if force and folder is not None and not output.is_of_kind_or_absent(file, _CAPTURE_KIND):
        raise TcpcastError(
            f"{file} exists and is not a capture. --force overwrites only captures; move the "
            "file, or use another name in probes.pcap"
        )
    output.check_file_is_writable(file, force=force)


class CaptureFiles:
    """Context manager for the files of ``probes.pcap``.

    The files have temporary names during the simulation. They are renamed at its end, and removed
    if an error occurs before.

    Raises
    ------
    MachineError
        A file cannot be created; raised before the run.
    """

    def __init__(self, scenario: Scenario, run: _native.Simulation, options: RunOptions) -> None:
        """Create one file per capture of the scenario."""
        self._places = [
            (wanted, resolve_capture_path(scenario, wanted.file)) for wanted in scenario.probes.pcap
        ]
        self._run = run
        self._files: list[contextlib.ExitStack] = []
        with contextlib.ExitStack() as made:
            for index, (_, path) in enumerate(self._places):
                file = made.enter_context(contextlib.ExitStack())
                temporary = file.enter_context(output.atomic_file(path, force=options.force))
                try:
                    run.begin_capture(index, temporary)
                except OSError as error:
                    raise MachineError(
                        f"probes.pcap: cannot write {path}: {error.strerror}"
                    ) from error
                self._files.append(file)
            made.pop_all()

    def __enter__(self) -> CaptureFiles:
        """Return this object."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove files that were not renamed."""
        for file in self._files:
            file.__exit__(kind, error, trace)

    def complete_and_rename(self, answer: Answer) -> None:
        """Write the remaining packets, rename the files, and warn about truncated captures.

        If a file cannot be written, the answer is kept, and ``answer.write_errors`` contains the
        reason.
        """
        files, self._files = self._files, []
        for index, ((wanted, path), file) in enumerate(zip(self._places, files, strict=True)):
            try:
                with file:
                    cut = self._run.end_capture(index)
            except (MachineError, OSError) as error:
                answer.write_errors.append(f"probes.pcap: {error}")
                continue
            if cut:
                message = f"capture {path} contains only the first {wanted.packets} packets"
                message += "; raise probes.pcap.packets for more"
                answer.warn(message, kind="remark")
