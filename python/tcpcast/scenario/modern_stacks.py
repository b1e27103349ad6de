"""The modern stacks, one row each: default values, rules, and limits of support."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

CLASSIC_ONLY: dict[str, Any] = {"initial_ssthresh": "unlimited"}
"""Keys that only classic stacks have, with placeholder values."""

MULTCP, TFRC = "multcp", "tfrc"

KEYS_OF_ONE_STACK = {"virtual_flows": MULTCP, "ecn_fallback": "prague"}
"""Keys that only one stack has."""

NEWEST_MEASURED_KERNEL = "6.18"
"""Release of Linux that the stacks have by default: the newest with which they were compared."""

_MIB = 2**20
RECEIVE_BUFFERS: dict[str, tuple[int, float]] = {
    "4.14": (6 * _MIB, 1 / 2),
    "5.4": (6 * _MIB, 1 / 2),
    "5.15": (6 * _MIB, 1 / 2),
    "6.1": (6 * _MIB, 1 / 2),
    "6.12": (6 * _MIB, 5 / 8),
    "6.18": (32 * _MIB, 5 / 8),
    "7.0": (32 * _MIB, 5 / 8),
}
"""Third value of ``tcp_rmem`` in bytes, and the share that is advertised, by release of Linux."""


def rules_of(version: str) -> str:
    """Return the newest value of ``tcp.kernel`` that is not newer than a version of Linux.

    That is the oldest one for versions before it.

    Examples
    --------
    >>> rules_of("5.10.31-prague-37"), rules_of("4.4"), rules_of("7.1")
    ('5.4', '4.14', '7.0')
    """
    older = [each for each in RECEIVE_BUFFERS if _numbers(each) <= _numbers(version)]
    return older[-1] if older else next(iter(RECEIVE_BUFFERS))


def _numbers(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int(number) for number in re.findall(r"\d{1,4}", version, re.ASCII)[:2])


_LINUX: dict[str, Any] = {
    **CLASSIC_ONLY,
    "initial_window": 10,
    "receiver_window": "unlimited",
    "delayed_acks": True,
    "ack_timeout": "40ms",
    "min_rto": "200ms",
    "initial_rto": "1s",
    "max_rto": "120s",
    "rto_granularity": "4ms",
    "duplicate_threshold": 3,
    "limited_transmit": True,
    "idle_restart": "rto",
    "kernel": NEWEST_MEASURED_KERNEL,
    "timestamps": True,
    "handshake": "tcp",
    "fast_open": False,
    "ecn": False,
    "pacing": "internal",
    "socket_buffers": "unlimited",
    "nodelay": False,
    "notsent_lowat": "unlimited",
    "tso": "off",
    "gro": True,
    "host_noise": "0.1ms",
}
"""Default values of Linux 6."""

_BBR_RULE = "BBR's rule"

EXTERNAL_BASE = "linux-reno"
"""Stack whose rules, except congestion control, a registered control has."""


class ModernStack(NamedTuple):
    """A stack with its congestion control; the default values of the fields describe Linux.

    Attributes
    ----------
    control
        Congestion control, by its name in Linux if Linux has it.
    control_text, loss_detection, window_reduction, timeout
        Rules, as texts for the documentation, the JSON Schema and the page.
    keys
        Default values of the keys.
    is_rate_based
        True if the control follows the delivery rate, so that losses do not limit its window.
    why_no_ecn
        Why ``ecn = true`` is refused; "" if it is supported.
    why_not_in_linux
        Why the kernel engine refuses the stack; "" if Linux has it.
    unvalidated_source
        Source of a control that was never compared with a kernel; "" if it was.
    external
        Number of a registered congestion control, such as a class of Python.
    """

    control: str
    control_text: str
    loss_detection: str = "RACK-TLP (RFC 8985)"
    window_reduction: str = "PRR (RFC 9937)"
    timeout: str = "srtt + 200 ms"
    keys: dict[str, Any] = _LINUX
    is_rate_based: bool = False
    why_no_ecn: str = ""
    why_not_in_linux: str = ""
    unvalidated_source: str = ""
    external: int | None = None


_PRAGUE = ModernStack(
    "prague",
    "TCP Prague of June 2021 (version 0.6) for L4S, with ECT(1)",
    window_reduction="half the mean share of marked packets",
    keys=_LINUX | {"ecn": True, "ecn_fallback": False},
    why_not_in_linux="the mainline kernel does not contain TCP Prague",
    unvalidated_source="draft-briscoe-iccrg-prague-congestion-control",
)

MODERN_STACKS = {
    "linux-cubic": ModernStack(
        "cubic",
        "CUBIC (RFC 9438) with HyStart and fast convergence",
    ),
    "linux-reno": ModernStack("reno", "Reno (RFC 5681)"),
    "linux-bbr": ModernStack(
        "bbr",
        "BBR, version 1, paced by TCP itself",
        window_reduction=_BBR_RULE,
        is_rate_based=True,
    ),
    # Without SACK, DSACK, RACK, TLP and F-RTO; the reordering degree is fixed at 3.
    "linux-reno-classic": ModernStack(
        "reno", "Reno", loss_detection="duplicate acks, without SACK"
    ),
    # RFC 6675 over RFC 5681 and RFC 6298.
    "rfc-sack": ModernStack(
        "reno",
        "Reno",
        loss_detection="SACK (RFC 6675) with rescue retransmissions",
        window_reduction="immediate",
        timeout="RFC 6298, at least 1 s",
        keys={key: value for key, value in _LINUX.items() if key != "kernel"}
        | {
            "ack_timeout": "200ms",
            "min_rto": "1s",
            "max_rto": "60s",
            "rto_granularity": "0s",
            "timestamps": False,
            "handshake": "none",
            "host_noise": "0s",
        },
        why_not_in_linux="Linux always uses RACK together with SACK",
    ),
    "bbr3": ModernStack(
        "bbr3",
        "BBR, version 3 (draft-ietf-ccwg-bbr-06)",
        window_reduction=_BBR_RULE,
        is_rate_based=True,
        why_not_in_linux="the bbr of Linux is version 1",
        unvalidated_source="draft-ietf-ccwg-bbr-06",
    ),
    # Losses without marks halve the window as in Reno.
    "dctcp": ModernStack("dctcp", "DCTCP (RFC 8257)", keys=_LINUX | {"ecn": True}),
    MULTCP: ModernStack(
        "multcp",
        "MulTCP (Crowcroft and Oechslin, 1998): one connection sends like N Reno flows",
        keys=_LINUX | {"virtual_flows": 2},
        why_not_in_linux="Linux does not contain MulTCP",
        unvalidated_source="Crowcroft and Oechslin (1998)",
    ),
    # 3 packets per RTT at first (RFC 5348, section 4.2).
    TFRC: ModernStack(
        "tfrc",
        "TFRC (RFC 5348): packets are paced at the rate of the throughput equation",
        window_reduction="TFRC's equation",
        keys=_LINUX | {"initial_window": 3},
        why_no_ecn="tfrc counts only lost packets as loss events",
        why_not_in_linux="Linux does not contain TFRC for TCP",
        unvalidated_source="RFC 5348",
    ),
    "prague": _PRAGUE,
    # Without the rule for round-trip times below 25 ms.
    "prague-2020": _PRAGUE._replace(
        control_text="TCP Prague of August 2020, without the rule that makes the rate independent "
        "of RTTs below 25 ms",
        keys=_LINUX | {"ecn": True},
    ),
    "prague-2024": _PRAGUE._replace(
        control_text="TCP Prague of 2024 (version 0.7, and its draft), with fractional windows and "
        "rates down to 100 kbit/s",
        keys=_LINUX | {"ecn": True},
    ),
}
"""All modern stacks, in the order of documents and messages. Append new rows: the order determines
the colours of figures."""
