"""Keys of a scenario that a plan solves for, determines itself or ignores, with reasons."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from tcpcast.errors import ScenarioError
from tcpcast.plan.population_search import SEARCHED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tcpcast.scenario import Scenario

_RECORDED = (
    "a plan writes no time series or captures; leave this key out, or use it in a `tcpcast run` "
    "of the planned scenario"
)
_LENGTH = (
    "the number of losses determines the length of the simulations; leave this key out, or write "
    "run.duration for a minimum length"
)
_SSTHRESH = "the simulations start from the mean window of PFTK; leave this key out"
_SOURCES = "the plan solves for the number of sources; leave this key out"
_FLOWS = "the plan solves for the number of flows; leave this key out"
_FILES = (
    "the plan uses the goodput of each file as a whole, whatever its size; leave this key out, or "
    "use it in a `tcpcast run` of the planned scenario"
)

_GOODPUT = "the plan solves for the loss; leave this key out, and write the goodput as --goodput"

_RECORDS = {"probes.flows*": _RECORDED, "probes.pcap*": _RECORDED}
_PROBES = {"probes.*": _RECORDED}
_OF_A_CHECK = {
    "run.transfers": _LENGTH,
    "run.warmup": _LENGTH,
    "run.replications": _LENGTH,
    "run.precision*": _LENGTH,
    "tcp.initial_ssthresh": _SSTHRESH,
    "class.*.tcp.initial_ssthresh": _SSTHRESH,
    **_PROBES,
}

UNUSED: dict[str, dict[str, str]] = {
    "buffer": {
        "network.bottleneck.buffer": "the plan solves for the buffer; leave this key out",
        **_PROBES,
    },
    "users": {"traffic.sources": _SOURCES, "class.*.sources": _SOURCES, **_PROBES},
    "rate": {
        "network.bottleneck.rate": "the plan solves for the rate; leave this key out, and write "
        "the rate of a user as --rate",
        **_PROBES,
    },
    "quality": {
        "traffic.sources": _SOURCES,
        "class.*.sources": _SOURCES,
        "probes.goodput_shares": "write the share as --share",
        "probes.goodput_least": _FILES,
        "probes.goodput_packets": _FILES,
        **_RECORDS,
    },
    "streams": {"traffic.flows": _FLOWS, "class.*.flows": _FLOWS, **_OF_A_CHECK},
    "max-loss": {
        "network.bottleneck.loss": _GOODPUT,
        "network.bottleneck.loss.*": _GOODPUT,
        **_OF_A_CHECK,
    },
}
"""Patterns of unused keys by question, with advice."""


def check_changed_keys(question: str, changes: Mapping[str, Any], scenario: Scenario) -> None:
    """Reject changes of keys that a question solves for, determines itself or ignores.

    Parameters
    ----------
    question
        One of :data:`UNUSED`.
    changes
        Values by dotted key, as ``--set`` gives them.
    scenario
        The scenario with these changes; its measured hop is the bottleneck.

    Raises
    ------
    ScenarioError
        A key is unused; the message has the first such key, and advice.
    """
    for key, value in _iter_dotted_keys(changes):
        why = _unused_key_reason(question, _convert_to_bottleneck_key(key, scenario))
        if why == _SOURCES and len(scenario.classes) > 1:
            continue  # affects the proportion of the classes, or a class that does not grow
        if why is None and question == "quality" and key == "run.replications":
            why = _too_few_replications_reason(value)
        if why is not None:
            name = "users --share" if question == "quality" else question
            raise ScenarioError(f"--set {key}: plan {name} does not use this key: {why}")


def note_unused_keys(question: str, scenario: Scenario, changes: Mapping[str, Any]) -> list[str]:
    """Return one note per reason, which lists the scenario's keys that a check does not use.

    The key that the plan solves for is not listed. Keys of ``changes`` are not listed either,
    because :func:`check_changed_keys` has rejected unused ones.
    """
    keys_by_reason: dict[str, list[str]] = {}
    for name in ("run", "probes", "tcp"):
        for key in sorted(getattr(scenario, name).model_fields_set):
            dotted = f"{name}.{key}"
            why = _LENGTH if dotted == "run.duration" else _unused_key_reason(question, dotted)
            if why is not None and dotted not in changes:
                keys_by_reason.setdefault(why, []).append(dotted)
    return [
        f"Not used: {', '.join(keys)} ({why.split(';')[0]})."
        for why, keys in keys_by_reason.items()
    ]


def _convert_to_bottleneck_key(key: str, scenario: Scenario) -> str:
    """Return the bottleneck's key for a key of the measured hop; other keys are unchanged."""
    network = scenario.network
    if not network.hops:
        return key
    at = network.measured_at
    for prefix in (f"network.hop.{at}.", f"network.hop.{network.hops[at].name}."):
        if key.startswith(prefix):
            return f"network.bottleneck.{key.removeprefix(prefix)}"
    return key


def _unused_key_reason(question: str, key: str) -> str | None:
    for pattern, why in UNUSED[question].items():
        if fnmatchcase(key, pattern):
            return why
    return None


def _too_few_replications_reason(value: Any) -> str | None:
    if not isinstance(value, int) or value >= SEARCHED:
        return None
    return f"each population is simulated at least {SEARCHED} times; write {SEARCHED} or more"


def _iter_dotted_keys(changes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys and values of changes, including those of nested tables."""
    for key, value in changes.items():
        inside = value
        if isinstance(value, list):
            inside = {str(at): each for at, each in enumerate(value) if isinstance(each, dict)}
        if isinstance(inside, dict) and inside:
            yield from _iter_dotted_keys({f"{key}.{name}": each for name, each in inside.items()})
        yield key, value
