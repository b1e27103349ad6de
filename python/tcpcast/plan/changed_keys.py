"""Keys of a scenario that a plan solves for, determines itself or ignores, with reasons."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from tcpcast.errors import ScenarioError
from tcpcast.plan.population_search import SEARCH_REPLICATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tcpcast.scenario import Scenario

_RECORDING_ADVICE = (
    "a plan writes no time series or captures; leave this key out, or use it in a `tcpcast run` "
    "of the planned scenario"
)
_LENGTH_ADVICE = (
    "the number of losses determines the length of the simulations; leave this key out, or write "
    "run.duration for a minimum length"
)
_SSTHRESH_ADVICE = "the simulations start from the mean window of PFTK; leave this key out"
_SOURCES_ADVICE = "the plan solves for the number of sources; leave this key out"
_FLOWS_ADVICE = "the plan solves for the number of flows; leave this key out"
_FILES_ADVICE = (
    "the plan uses the goodput of complete files of all sizes; leave this key out, or use it in a "
    "`tcpcast run` of the planned scenario"
)

_GOODPUT_ADVICE = (
    "the plan solves for the loss; leave this key out, and write the goodput as --goodput"
)

_RECORDING_KEYS = {"probes.flows*": _RECORDING_ADVICE, "probes.pcap*": _RECORDING_ADVICE}
_PROBE_KEYS = {"probes.*": _RECORDING_ADVICE}
_KEYS_SET_BY_CHECK = {
    "run.transfers": _LENGTH_ADVICE,
    "run.warmup": _LENGTH_ADVICE,
    "run.replications": _LENGTH_ADVICE,
    "run.precision*": _LENGTH_ADVICE,
    "tcp.initial_ssthresh": _SSTHRESH_ADVICE,
    "class.*.tcp.initial_ssthresh": _SSTHRESH_ADVICE,
    **_PROBE_KEYS,
}

UNUSED_KEYS: dict[str, dict[str, str]] = {
    "buffer": {
        "network.bottleneck.buffer": "the plan solves for the buffer; leave this key out",
        **_PROBE_KEYS,
    },
    "users": {
        "traffic.sources": _SOURCES_ADVICE,
        "class.*.sources": _SOURCES_ADVICE,
        **_PROBE_KEYS,
    },
    "rate": {
        "network.bottleneck.rate": "the plan solves for the rate; leave this key out, and write "
        "the rate of a user as --rate",
        **_PROBE_KEYS,
    },
    "quality": {
        "traffic.sources": _SOURCES_ADVICE,
        "class.*.sources": _SOURCES_ADVICE,
        "probes.goodput_shares": "write the share as --share",
        "probes.goodput_least": _FILES_ADVICE,
        "probes.goodput_packets": _FILES_ADVICE,
        **_RECORDING_KEYS,
    },
    "streams": {
        "traffic.flows": _FLOWS_ADVICE,
        "class.*.flows": _FLOWS_ADVICE,
        **_KEYS_SET_BY_CHECK,
    },
    "max-loss": {
        "network.bottleneck.loss": _GOODPUT_ADVICE,
        "network.bottleneck.loss.*": _GOODPUT_ADVICE,
        **_KEYS_SET_BY_CHECK,
    },
}
"""Patterns of unused keys by question, with advice."""


def check_changed_keys(question: str, changes: Mapping[str, Any], scenario: Scenario) -> None:
    """Reject changes of keys that a question solves for, determines itself or ignores.

    Parameters
    ----------
    question
        One of :data:`UNUSED_KEYS`.
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
        if why == _SOURCES_ADVICE and len(scenario.classes) > 1:
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
            why = (
                _LENGTH_ADVICE if dotted == "run.duration" else _unused_key_reason(question, dotted)
            )
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
    at = network.measured_index
    for prefix in (f"network.hop.{at}.", f"network.hop.{network.hops[at].name}."):
        if key.startswith(prefix):
            return f"network.bottleneck.{key.removeprefix(prefix)}"
    return key


def _unused_key_reason(question: str, key: str) -> str | None:
    for pattern, why in UNUSED_KEYS[question].items():
        if fnmatchcase(key, pattern):
            return why
    return None


def _too_few_replications_reason(value: Any) -> str | None:
    if not isinstance(value, int) or value >= SEARCH_REPLICATIONS:
        return None
    least = SEARCH_REPLICATIONS
    return f"each population is simulated at least {least} times; write {least} or more"


def _iter_dotted_keys(changes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys and values of changes, including those of nested tables."""
    for key, value in changes.items():
        inside = value
        if isinstance(value, list):
            inside = {str(at): each for at, each in enumerate(value) if isinstance(each, dict)}
        if isinstance(inside, dict) and inside:
            yield from _iter_dotted_keys({f"{key}.{name}": each for name, each in inside.items()})
        yield key, value
