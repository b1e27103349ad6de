"""``--group-by`` of ``tcpcast trace``: groups of flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.captures.groups import GROUPINGS
from tcpcast.cli.options import read_positive_duration
from tcpcast.errors import TcpcastError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.captures import Capture, Table


def make_grouping(
    group_by: str | None, rtt: str | None, table: str | None
) -> Callable[[Capture], Table] | None:
    """Return a function that groups the flows of a capture; None without ``--group-by``.

    Raises before a capture is read if the options are invalid.
    """
    if group_by is None:
        if rtt is not None:
            raise TcpcastError(
                "--rtt sets the minimum time between loss events of a group, so it requires "
                "--group-by; add --group-by"
            )
        return None
    if table is not None:
        raise TcpcastError("--group-by and --table cannot be combined; omit one of them")

    if group_by not in GROUPINGS:
        raise TcpcastError(
            f"--group-by {group_by}: must be {', '.join(GROUPINGS[:-1])} or {GROUPINGS[-1]}"
        )
    apart = None if rtt is None else read_positive_duration("--rtt", rtt, "60ms")
    return lambda capture: capture.groups(group_by, rtt_s=apart)
