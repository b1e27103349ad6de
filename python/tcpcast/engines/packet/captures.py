"""Captures of a simulation, written while it runs: the files of ``[[probes.pcap]]``."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from tcpcast import output
from tcpcast.errors import MachineError, ScenarioError, TcpcastError
from tcpcast.output import Kind

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tcpcast import _native
    from tcpcast.answer import Answer
    from tcpcast.engines import RunOptions
    from tcpcast.scenario import Scenario

_CAPTURE = Kind("capture", bytes.fromhex("4d3cb2a1"))
"""The first bytes of a capture that tcpcast wrote: pcap with nanoseconds."""


def check_captures(scenario: Scenario, options: RunOptions) -> None:
    """Refuse, before the simulation, files that may not or cannot be written.

    Raises
    ------
    TcpcastError
        A file of that name exists, and ``options.force`` is not set; or two captures have one
        file.
    MachineError
        A folder cannot be written.
    """
    seen: set[str] = set()
    for wanted in scenario.probes.pcap:
        file = capture_file(scenario, wanted.file)
        check_capture(scenario, file, force=options.force)
        place = os.path.abspath(file)
        if place in seen:
            raise TcpcastError(
                f"probes.pcap: two captures have the file {file}; name another for one"
            )
        seen.add(place)


def capture_file(scenario: Scenario, name: str) -> Path:
    """Return the path of a capture, for a scenario file always below the folder of that file.

    The user who runs a scenario file may not have read it. Scripts may name any path.

    Raises
    ------
    ScenarioError
        A scenario file names a path outside its folder.
    """
    file = scenario.resolve_path(name)
    _, folder = scenario.source_tables()
    if folder is not None and not file.parent.resolve().is_relative_to(folder):
        raise ScenarioError(
            f"probes.pcap: {name} is outside the scenario's folder {folder}; write a name such as "
            '"out.pcap"'
        )
    return file


def check_capture(scenario: Scenario, file: Path, *, force: bool) -> None:
    """Refuse, before the work, a capture that may not or cannot be written.

    With ``force``, a scenario file may replace captures and no other files: the command does not
    name them.

    Raises
    ------
    TcpcastError, MachineError
        As for :func:`tcpcast.output.check_file`.
    """
    _, folder = scenario.source_tables()
    if force and folder is not None and not output.is_of_kind(file, _CAPTURE):
        raise TcpcastError(
            f"{file} is already here and is no capture: --force replaces only captures where a "
            "scenario names the file; move it away or write another name in probes.pcap"
        )
    output.check_file(file, force=force)


class Captures:
    """The files of ``probes.pcap``: written aside while a simulation runs, put there at its end.

    A context: what is not put in its place before an error ends it is removed.

    Raises
    ------
    MachineError
        A file cannot be made; before the run.
    """

    def __init__(self, scenario: Scenario, run: _native.Simulation, options: RunOptions) -> None:
        """Open a file for each capture that the scenario asks for."""
        self._places = [
            (wanted, capture_file(scenario, wanted.file)) for wanted in scenario.probes.pcap
        ]
        self._run = run
        self._files: list[contextlib.ExitStack] = []
        with contextlib.ExitStack() as made:
            for index, (_, place) in enumerate(self._places):
                file = made.enter_context(contextlib.ExitStack())
                aside = file.enter_context(output.aside(place, force=options.force))
                try:
                    run.begin_capture(index, aside)
                except OSError as error:
                    raise MachineError(
                        f"probes.pcap: cannot write {place}: {error.strerror}"
                    ) from error
                self._files.append(file)
            made.pop_all()

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
        for file in self._files:
            file.__exit__(kind, error, trace)

    def put(self, answer: Answer) -> None:
        """Write what is left, put the files in their places, and warn of those that were cut.

        A file that cannot be written is no reason to lose the answer: ``answer.write_errors`` says
        why.
        """
        files, self._files = self._files, []
        for index, ((wanted, place), file) in enumerate(zip(self._places, files, strict=True)):
            try:
                with file:
                    cut = self._run.end_capture(index)
            except (MachineError, OSError) as fault:
                answer.write_errors.append(f"probes.pcap: {fault}")
                continue
            if cut:
                said = f"capture {place} holds the first {wanted.packets} packets"
                said += "; raise probes.pcap.packets for more"
                answer.warn(said, kind="remark")
