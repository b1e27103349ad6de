"""Captures of a simulation: the files of ``[[probes.pcap]]``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tcpcast import output
from tcpcast.errors import EnvironmentFault, TcpcastError

if TYPE_CHECKING:
    from tcpcast import _native
    from tcpcast.answer import Answer
    from tcpcast.engines import RunOptions
    from tcpcast.scenario import Scenario


def check_captures(scenario: Scenario, options: RunOptions) -> None:
    """Refuse, before the simulation, files that may not or cannot be written.

    Raises
    ------
    TcpcastError
        A file of that name exists, and ``options.force`` is not set; or two captures have one
        file.
    EnvironmentFault
        A folder cannot be written.
    """
    seen: set[str] = set()
    for wanted in scenario.probes.pcap:
        output.check_file(wanted.file, force=options.force)
        place = os.path.abspath(wanted.file)
        if place in seen:
            raise TcpcastError(
                f"probes.pcap: two captures have the file {wanted.file}; name another for one"
            )
        seen.add(place)


def write_captures(
    answer: Answer, scenario: Scenario, run: _native.Simulation, options: RunOptions
) -> None:
    """Write the captures, and note in the answer what became of each.

    A file that cannot be written is no reason to lose the answer: ``answer.unwritten`` says why.
    """
    for index, wanted in enumerate(scenario.probes.pcap):
        content, cut = run.capture(index)
        try:
            with output.aside(wanted.file, force=options.force) as temporary:
                temporary.write_bytes(content)
        except EnvironmentFault as fault:
            answer.unwritten.append(f"probes.pcap: {fault}")
            continue
        if cut:
            answer.warnings.append(
                f"capture {wanted.file} holds the first {wanted.packets} packets; "
                "raise probes.pcap.packets for more"
            )
