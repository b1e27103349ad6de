"""Descriptions of the stacks for the JSON Schema and the web page."""

from tcpcast.scenario.classic_tcp import CLASSIC_RECOVERY, PAPER_BY_STACK
from tcpcast.scenario.modern_stacks import MODERN_STACKS
from tcpcast.scenario.quic import QUIC_STACKS


def describe_stack(name: str) -> str:
    """Return one line that describes a stack.

    Raises
    ------
    KeyError
        The stack has no description.
    """
    if name in MODERN_STACKS:
        stack = MODERN_STACKS[name]
        return f"{stack.control_text}; loss detection: {stack.loss_detection}"
    if name in QUIC_STACKS:
        return f"QUIC; rules: {QUIC_STACKS[name].source}"
    if name in CLASSIC_RECOVERY:
        return f"Reno without SACK; {CLASSIC_RECOVERY[name]}"
    return f"Reno as in the experiments of a paper: {PAPER_BY_STACK[name]}"
