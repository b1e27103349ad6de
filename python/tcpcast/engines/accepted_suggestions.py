"""Suggestions of a refusal, limited to requests that the engines accept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.errors import NotApplicable, Suggestion, TcpcastError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from tcpcast.scenario import Scenario

    Check = Callable[[str, Scenario, str], None]
    """Raises NotApplicable unless an engine accepts a scenario with a feed."""

MAX_CHANGES = 4
"""Maximum number of keys that one suggestion changes."""


def filter_accepted_suggestions(
    name: str,
    scenario: Scenario,
    candidates: Sequence[Suggestion],
    check: Check,
    requested: Collection[str] = (),
) -> tuple[Suggestion, ...]:
    """Return the suggestions of a refusal that the engines accept.

    If none is accepted, suggest the engine ``packet`` if it accepts the scenario.

    Parameters
    ----------
    name, scenario
        The engine and the request that it refused.
    candidates
        The suggestions of the refusal.
    check
        The check of an engine, without a run.
    requested
        Engines of the same request, which are not suggested.
    """
    excluded = {name, *requested}
    accepted = tuple(_iter_accepted_candidates(name, scenario, candidates, check, excluded))
    if not accepted and "packet" not in excluded:
        accepted = tuple(_find_accepting_engines([Suggestion(engine="packet")], scenario, check))
    return accepted


def changes_to_set_stack(scenario: Scenario, stack: str) -> dict[str, str]:
    """Return the changes that give a stack to all senders."""
    owners = [f"class.{entry.name}." for entry in scenario.classes if entry.tcp is not None]
    all_own = len(owners) == len(scenario.classes) > 0
    keys = [*([] if all_own else ["tcp.stack"]), *(f"{owner}tcp.stack" for owner in owners)]
    return dict.fromkeys(keys, stack)


def _iter_accepted_candidates(
    name: str,
    scenario: Scenario,
    candidates: Sequence[Suggestion],
    check: Check,
    excluded: Collection[str],
) -> Iterator[Suggestion]:
    """Yield the accepted candidates; each may need further changes that the engine suggests."""
    others = [each for each in candidates if each.engine and each.engine not in excluded]
    yield from _find_accepting_engines(others, scenario, check)
    for each in candidates:
        if (
            not each.engine
            and (completed := _complete_candidate(name, scenario, each, check)) is not None
        ):
            yield completed


def _find_accepting_engines(
    candidates: Iterable[Suggestion], scenario: Scenario, check: Check
) -> Iterator[Suggestion]:
    for each in candidates:
        try:
            check(each.engine, scenario, "")
        except TcpcastError:
            continue
        yield each


def _complete_candidate(
    name: str, scenario: Scenario, candidate: Suggestion, check: Check
) -> Suggestion | None:
    """Return a candidate with the further changes that the engine suggests, None if they fail."""
    if len(candidate.changes) > max(MAX_CHANGES, len(scenario.classes)):
        return None
    try:
        check(name, scenario.with_changes(candidate.changes), candidate.feed)
    except NotApplicable as further:
        for each in further.suggestions:
            if each.engine or each.changes.keys() & candidate.changes.keys():
                continue
            more = Suggestion(
                {**candidate.changes, **each.changes}, feed=each.feed or candidate.feed
            )
            if more != candidate and (result := _complete_candidate(name, scenario, more, check)):
                return result
        return None
    except TcpcastError:
        return None
    return candidate
