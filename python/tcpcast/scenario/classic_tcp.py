"""Presets of the classic stacks: Reno's window without SACK."""

from typing import Any

from tcpcast.scenario.tcp_rules import MAX_PLUS

RFC_DEFAULTS: dict[str, Any] = {
    "initial_window": 2,
    "initial_ssthresh": "receiver-window",
    "receiver_window": "unlimited",
    "delayed_acks": False,
    "ack_timeout": "200ms",
    "min_rto": "1s",
    "initial_rto": "1s",
    "max_rto": "64s",
    "rto_granularity": "0s",
    "duplicate_threshold": 3,
    "limited_transmit": False,
    "idle_restart": "rto",
    "host_noise": "0s",
}

_NS2_2008: dict[str, Any] = {
    "limited_transmit": True,
    "min_rto": "200ms",
    "initial_rto": "3s",
    "max_rto": "60s",
    "rto_granularity": "10ms",
    "ack_timeout": "100ms",
}
"""Defaults of Agent/TCP/Newreno and of the sinks in ns-2 of 2008
(source: ns-default.tcl of version 2.34, which lists changes with dates)."""

TAHOE = "tahoe"

PRESETS: dict[str, dict[str, Any]] = {
    # Fast recovery ends at the first new ack (RFC 5681).
    "rfc-reno": RFC_DEFAULTS | {"rules": {"recovery": "reno"}},
    # The timer restarts at every retransmission in recovery. RFC 6582 section 4 calls this
    # slow-but-steady; the TCP-Engset paper calls this impatient.
    "rfc-newreno": RFC_DEFAULTS,
    # The timer starts only at the first retransmission of a recovery, so a long recovery times out.
    # The impatient variant of RFC 6582 also restarts it at the first partial ACK.
    "rfc-newreno-patient": RFC_DEFAULTS | {"rules": {"recovery": "newreno-patient"}},
    # Slow start from one packet follows the fast retransmit (Jacobson, 1988).
    TAHOE: RFC_DEFAULTS | {"rules": {"recovery": "tahoe"}},
    # Reno's window with instantaneous loss feedback: INRIA report 4154, sections 4, 5 and 7.
    MAX_PLUS: RFC_DEFAULTS | {"initial_window": 1, "initial_rto": "3s", "idle_restart": "10s"},
    # TCP-Engset report: each sent packet starts the timer, and ACKs do not restart it (section
    # 3.1). Two packets are sent at the end of recovery (figure 15).
    "engset-newreno": RFC_DEFAULTS
    | {"rules": {"timer_restart": "send", "slow_start_at_ssthresh": True}},
    # Padhye, Firoiu, Towsley and Kurose, section 2.2: Reno with delayed ACKs; consecutive timeouts
    # double up to 64 times the first.
    "pftk-reno": RFC_DEFAULTS | {"delayed_acks": True, "rules": {"recovery": "reno"}},
    # The paper on parallel flows mentions no changes of ns-2's defaults. But its window must be
    # unlimited: ns-2's 20 packets would limit every flow at low loss.
    "parallel-newreno": RFC_DEFAULTS | _NS2_2008 | {"rules": {"recovery": "newreno-patient"}},
    # Ayesta and Avrachenkov, section 4; limited transmit as in section 2.1. The ACK delay is ns-2's
    # default, because the paper states no ACK delay.
    "short-newreno": RFC_DEFAULTS
    | {
        "initial_ssthresh": 30,
        "receiver_window": 30,
        "ack_timeout": "100ms",
        "rules": {"limited_transmit_on": "second"},
    },
}
"""Default values of the classic presets."""

CLASSIC_RECOVERY = {
    "rfc-reno": "recovery (RFC 5681) ends at the first new ack",
    "rfc-newreno": (
        "recovery (RFC 6582) ends when all outstanding data are acknowledged; each retransmission "
        "restarts the timer"
    ),
    "rfc-newreno-patient": (
        "recovery as in RFC 6582, but only the first retransmission restarts the timer, so a long "
        "recovery times out, similar to RFC 6582's impatient variant"
    ),
    TAHOE: (
        "no fast recovery: the fast retransmit is followed by slow start from one packet "
        "(Jacobson 1988)"
    ),
}
"""Recovery of the classic stacks, which use Reno's congestion control without SACK."""

PAPER_BY_STACK = {
    "engset-newreno": "TCP-Engset report",
    "pftk-reno": "Padhye, Firoiu, Towsley and Kurose",
    "parallel-newreno": "parallel flows; ns-2 of 2008",
    "short-newreno": "Ayesta and Avrachenkov, section 4",
    MAX_PLUS: "Baccelli, Hong and Liu (INRIA report 4154)",
}
"""Paper by name of the stack that reproduces its experiments."""
