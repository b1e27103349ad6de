"""``tcpcast trace --scenario``: converts a capture to a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcpcast import output
from tcpcast.captures.capture_tables import restrict_to_directions
from tcpcast.captures.direction_selection import select_directions
from tcpcast.cli.streams import print_message
from tcpcast.errors import MachineError, TcpcastError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.captures import Capture


def check_scenario(target: str | None, files: Sequence[str], *, force: bool) -> None:
    """Raise before a capture is read if the scenario cannot be written."""
    if target is None:
        return
    if len(files) > 1:
        raise TcpcastError("--scenario requires exactly one FILE")
    if target in {"", "-"}:
        raise TcpcastError(
            f'--scenario: "{target}" is not a file name; write, for example, slow.toml '
            "(standard output is used for the report)"
        )
    if not Path(target).parent.is_dir():
        raise MachineError(
            f"cannot write {target}: the folder {Path(target).parent} does not "
            "exist; create it, or use another name"
        )
    output.check_file_is_writable(target, force=force)


def write_scenario(
    captures: Sequence[Capture], target: str | None, connection: str | None, *, force: bool
) -> None:
    """Write the scenario of a capture, and print warnings about differences.

    The scenario covers the direction with the most data or, if ``connection`` is given, all
    directions of the capture, which is already restricted.
    """
    if target is None or not captures:
        return

    (capture,) = captures
    kept = (
        capture
        if connection is not None
        else restrict_to_directions(capture, select_directions(capture))
    )
    from tcpcast.captures.replay import make_replay_scenario  # noqa: PLC0415

    written = make_replay_scenario(kept, Path(target).stem)
    output.write_text(target, written.text, force=force)
    for warning in written.warnings:
        print_message(f"{target}: {warning}")
    print_message(f"wrote {target}; try: tcpcast run {target}")
