"""TCP-Engset, revisited: N on/off TCP sources sharing one link (title of the paper).

``path`` and ``flights`` describe one connection on an idle path, ``shared_link`` describes N
connections on one link, ``classes`` several classes of connections, ``file_sizes`` a distribution
of sizes.
Numbers of equations, sections and tables refer to the paper.
"""

from tcpcast.models.engset.classes import (
    ClassesResult,
    EngsetClass,
    class_log_probabilities,
    engset_classes,
)
from tcpcast.models.engset.file_sizes import (
    FileSizesResult,
    engset_file_sizes,
    mean_idle_on_time_s,
)
from tcpcast.models.engset.flights import (
    Flights,
    IsolatedConnection,
    LoneQueue,
    LoneTransfer,
    flights,
    isolated_connection,
    lone_queue,
    lone_transfer,
    spurious_timeouts,
)
from tcpcast.models.engset.path import Path, Saturation, round_trip_s, window_saturation
from tcpcast.models.engset.shared_link import (
    EngsetResult,
    buffer_for_loss,
    engset,
    shared_rate_bps,
    simplified_buffer_for_loss,
    state_log_probabilities,
    time_above,
)

__all__ = [
    "ClassesResult",
    "EngsetClass",
    "EngsetResult",
    "FileSizesResult",
    "Flights",
    "IsolatedConnection",
    "LoneQueue",
    "LoneTransfer",
    "Path",
    "Saturation",
    "buffer_for_loss",
    "class_log_probabilities",
    "engset",
    "engset_classes",
    "engset_file_sizes",
    "flights",
    "isolated_connection",
    "lone_queue",
    "lone_transfer",
    "mean_idle_on_time_s",
    "round_trip_s",
    "shared_rate_bps",
    "simplified_buffer_for_loss",
    "spurious_timeouts",
    "state_log_probabilities",
    "time_above",
    "window_saturation",
]
