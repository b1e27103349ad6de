"""Descriptions of the stacks for the JSON Schema, the web page and the documentation."""

from __future__ import annotations

from typing import NamedTuple


class StackFacts(NamedTuple):
    """Rules of a modern stack."""

    control: str
    loss_detection: str
    window_reduction: str
    timeout: str


_LINUX_TIMEOUT = "srtt + 200 ms"
_BBR_RULE = "BBR's rule"
_RACK_TLP = "RACK-TLP"

MODERN_FACTS = {
    "linux-cubic": StackFacts(
        "CUBIC (RFC 9438) with HyStart and fast convergence",
        "RACK-TLP (RFC 8985), adaptive reordering",
        "PRR (RFC 9937)",
        _LINUX_TIMEOUT,
    ),
    "linux-reno": StackFacts("Reno (RFC 5681)", _RACK_TLP, "PRR", _LINUX_TIMEOUT),
    "linux-bbr": StackFacts(
        "BBR, version 1, paced by TCP itself", _RACK_TLP, _BBR_RULE, _LINUX_TIMEOUT
    ),
    "linux-reno-classic": StackFacts("Reno", "duplicate acks, without SACK", "PRR", _LINUX_TIMEOUT),
    "rfc-sack": StackFacts(
        "Reno",
        "SACK (RFC 6675) with rescue retransmissions",
        "immediate",
        "RFC 6298, at least 1 s",
    ),
    "bbr3": StackFacts(
        "BBR, version 3 (draft-ietf-ccwg-bbr-06)", _RACK_TLP, _BBR_RULE, _LINUX_TIMEOUT
    ),
    "dctcp": StackFacts("DCTCP (RFC 8257)", _RACK_TLP, "PRR", _LINUX_TIMEOUT),
    "multcp": StackFacts(
        "MulTCP (Crowcroft and Oechslin, 1998): one connection like N Reno flows",
        _RACK_TLP,
        "PRR",
        _LINUX_TIMEOUT,
    ),
    "tfrc": StackFacts(
        "TFRC (RFC 5348): packets are paced at the rate of the throughput equation",
        _RACK_TLP,
        "TFRC's equation",
        _LINUX_TIMEOUT,
    ),
}
"""Rules of the modern stacks, in the order of the documentation."""

CLASSIC_RECOVERY = {
    "rfc-reno": "RFC 5681: ends at the first new ack",
    "rfc-newreno": (
        "RFC 6582: ends when all outstanding data are acknowledged; each retransmission restarts "
        "the timer"
    ),
    "rfc-newreno-patient": (
        "RFC 6582, but only the first retransmission sets the timer, so that a long recovery "
        "times out"
    ),
    "tahoe": (
        "Jacobson (1988): no fast recovery; slow start from one packet follows the fast retransmit"
    ),
}
"""Recovery of the classic stacks, which use Reno's congestion control without SACK."""

PAPER_BY_STACK = {
    "engset-newreno": "TCP-Engset report",
    "pftk-reno": "Padhye, Firoiu, Towsley and Kurose",
    "parallel-newreno": "parallel flows; ns-2 of 2008",
    "short-newreno": "Ayesta and Avrachenkov, section 4",
    "max-plus-reno": "Baccelli, Hong and Liu (INRIA report 4154)",
}
"""Paper by name of the stack that reproduces its experiments."""


def describe_stack(name: str) -> str:
    """Return one line that describes a stack.

    Raises
    ------
    KeyError
        The stack has no description.
    """
    if name in MODERN_FACTS:
        facts = MODERN_FACTS[name]
        return f"{facts.control}; loss detection: {facts.loss_detection}"
    if name in CLASSIC_RECOVERY:
        return f"Reno without SACK; recovery by {CLASSIC_RECOVERY[name]}"
    return f"Reno's window as in a paper: {PAPER_BY_STACK[name]}"
