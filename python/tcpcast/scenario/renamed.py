"""Keys of earlier versions and their names now: refused by name, rewritten by ``migrate``."""

from __future__ import annotations

MOVED_IN_TCP: dict[str, tuple[str, ...]] = {
    key: ("rules", key)
    for key in (
        "slow_start_at_ssthresh",
        "window_unit",
        "timer_restart",
        "backoff_until",
        "last_packets_threshold",
        "max_plus",
    )
}
"""Keys of ``[tcp]`` in earlier versions, and their places in it now."""

ON_SECOND = "on-second"
"""A value of ``tcp.limited_transmit`` that is a rule now."""

INSTEAD_OF_ON_SECOND: dict[tuple[str, ...], bool | str] = {
    ("limited_transmit",): True,
    ("rules", "limited_transmit_on"): "second",
}
"""What is written in ``[tcp]`` in its place."""

HOW_TO_MIGRATE = "or rewrite the file: tcpcast migrate FILE"
