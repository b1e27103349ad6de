"""Checks the keys of a scenario that a plan solves for, determines itself or ignores."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from tcpcast.errors import ScenarioError
from tcpcast.plan.questions import LENGTH_ADVICE, SOURCES_ADVICE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tcpcast.plan.questions import Target
    from tcpcast.scenario import Scenario


def check_changed_keys(
    plan: str, target: Target, changes: Mapping[str, Any], scenario: Scenario
) -> None:
    """Reject changes of keys that a plan solves for, determines itself or ignores.

    Parameters
    ----------
    plan, target
        Name of the plan in the message, and its target, which lists the keys.
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
        why = _unused_key_reason(target, _convert_to_bottleneck_key(key, scenario))
        if why == SOURCES_ADVICE and len(scenario.classes) > 1:
            continue  # affects the proportion of the classes, or a class that does not grow
        least = target.min_replications
        if key == "run.replications" and isinstance(value, int) and value < least:
            why = f"each population must be simulated at least {least} times; write {least} or more"
        if why is not None:
            raise ScenarioError(f"--set {key}: plan {plan} does not use this key: {why}")


def note_unused_keys(target: Target, scenario: Scenario, changes: Mapping[str, Any]) -> list[str]:
    """Return one note per reason, which lists the scenario's keys that a check does not use.

    The key that the plan solves for is not listed. Keys of ``changes`` are not listed either,
    because :func:`check_changed_keys` has rejected unused ones.
    """
    keys_by_reason: dict[str, list[str]] = {}
    for name in ("run", "probes", "tcp"):
        for key in sorted(getattr(scenario, name).model_fields_set):
            dotted = f"{name}.{key}"
            why = LENGTH_ADVICE if dotted == "run.duration" else _unused_key_reason(target, dotted)
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


def _unused_key_reason(target: Target, key: str) -> str | None:
    for pattern, why in target.unused_keys.items():
        if fnmatchcase(key, pattern):
            return why
    return None


def _iter_dotted_keys(changes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys and values of changes, including those of nested tables."""
    for key, value in changes.items():
        inside = value
        if isinstance(value, list):
            inside = {str(at): each for at, each in enumerate(value) if isinstance(each, dict)}
        if isinstance(inside, dict) and inside:
            yield from _iter_dotted_keys({f"{key}.{name}": each for name, each in inside.items()})
        yield key, value
