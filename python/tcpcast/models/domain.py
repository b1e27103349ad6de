"""Domains of formulas: checks of their arguments, and the domain in which they can be trusted.

The ``require_...`` functions check an argument; their message states its valid range.
:data:`DOMAINS` contains the domain of each formula as data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpcast.array_types import Floats
from tcpcast.process.errors import DomainError

LOSS_RATIO = "loss_ratio"
T0_RTTS = "t0_rtts"
TIMEOUT_TIME_SHARE = "timeout_time_share"
RTO_FLOW_SHARE = "waiting_share"
WINDOW_SHARE = "window_share"
EXPECTED_LOSSES = "expected_losses"
WINDOW_BDPS = "window_bdps"
SACK_LOSSES = "recoveries"
QUEUE_FILL = "queue_fill"
BURST_FILL = "burst_fill"
"""Quantities that bound a domain: p; T0 in RTTs; the share of time that PFTK (31) spends in
timeouts; the share of flows in RTO at the same time; the window relative to the receiver window;
the mean number of losses of a transfer; its largest window in bandwidth-delay products; the
losses of a transfer that are repaired by SACK; the queue that the formula assumes to fit, and the
bursts of the hosts, relative to the buffer."""

MAX_RTO_SHARE = 0.25
"""Maximum share of flows in RTO for which algorithm 1 is preferred to n times PFTK: it assumes few
such flows (Damjanovic et al., section II-A), so it underestimates the rate above. This is not the
limit of :data:`DOMAINS`, up to which the error in simulations was at most the stated error."""

_QUANTITY_TEXTS = {
    LOSS_RATIO: ("a loss of {} %", 100),
    T0_RTTS: ("a T0 of {} RTT", 1),
    TIMEOUT_TIME_SHARE: ("{} % of the time in timeouts", 100),
    RTO_FLOW_SHARE: ("{} % of the flows in RTO at the same time", 100),
    WINDOW_SHARE: ("a window of {} % of the receiver window", 100),
    EXPECTED_LOSSES: ("{} losses per transfer", 1),
    WINDOW_BDPS: ("a window of {} BDP", 1),
    SACK_LOSSES: ("{} losses per transfer with SACK", 1),
    QUEUE_FILL: ("a queue of {} % of the buffer", 100),
    BURST_FILL: ("bursts of {} % of the buffer", 100),
}


_WHOLE_TEXTS = {
    (WINDOW_SHARE,): "the window is at most the receiver window",
    (QUEUE_FILL,): "the queue fits into the buffer",
    (QUEUE_FILL, BURST_FILL): "the queue and bursts fit into the buffer",
}
"""Conditions in place of limits of 100 %."""


@dataclass(frozen=True, slots=True)
class FormulaDomain:
    """Domain in which a formula can be trusted, as data.

    Attributes
    ----------
    error
        Largest relative error in the domain against packet simulation; None if not simulated.
    source
        Source of the domain: a paper, or the check that determined it.
    limits
        Largest value of each quantity, inclusive; no value may exceed its limit.
    either
        Further largest values; at least one value must not exceed its limit.
    """

    error: float | None
    source: str
    limits: Mapping[str, float]
    any_of: Mapping[str, float] = field(default_factory=dict)

    def exceeded_bounds(self, **values: float) -> dict[str, float]:
        """Return the bounds that the values exceed, {} inside; missing values exceed none."""
        exceeded = {
            name: limits for name, limits in self.limits.items() if values.get(name, 0) > limits
        }
        if self.any_of and all(values.get(n, 0) > limits for n, limits in self.any_of.items()):
            exceeded |= self.any_of
        return exceeded


_SIMULATION_SOURCE = "benches/domains.py: rfc-newreno, independent loss per packet, T0 at least 1 s"
_DOMAIN_WITHOUT_TIMEOUTS = FormulaDomain(
    0.35, _SIMULATION_SOURCE, {TIMEOUT_TIME_SHARE: 0.2, QUEUE_FILL: 1, BURST_FILL: 1}
)
_DOMAIN_WITH_TIMEOUTS = FormulaDomain(
    0.35,
    _SIMULATION_SOURCE,
    {LOSS_RATIO: 0.1, QUEUE_FILL: 1, BURST_FILL: 1},
    {T0_RTTS: 10, TIMEOUT_TIME_SHARE: 0.35},
)

DOMAINS: Mapping[str, FormulaDomain] = MappingProxyType(
    {
        "mathis": _DOMAIN_WITHOUT_TIMEOUTS,
        "td-only": _DOMAIN_WITHOUT_TIMEOUTS,
        "pftk-approx": _DOMAIN_WITH_TIMEOUTS,
        "pftk": _DOMAIN_WITH_TIMEOUTS,
        "cubic-response": FormulaDomain(
            None,
            "same bound as the square-root law: RFC 9438, section 5, also excludes timeouts",
            {TIMEOUT_TIME_SHARE: 0.2, QUEUE_FILL: 1, BURST_FILL: 1},
        ),
        "bbr-bound": FormulaDomain(
            None,
            "simulation: within 6 % up to this loss; from a loss of 14 to 16 %, the rate falls far "
            "below the bound, although 20 % is the limit in theory",
            {LOSS_RATIO: 0.12},
        ),
        "parallel": FormulaDomain(
            0.35,
            _SIMULATION_SOURCE,
            {RTO_FLOW_SHARE: 0.35, WINDOW_SHARE: 1.0, QUEUE_FILL: 1, BURST_FILL: 1},
        ),
        "parallel-cumulative": FormulaDomain(
            0.35,
            _SIMULATION_SOURCE,
            {TIMEOUT_TIME_SHARE: 0.4, WINDOW_SHARE: 1.0, QUEUE_FILL: 1, BURST_FILL: 1},
        ),
        "engset-sizes": FormulaDomain(
            0.3,
            "tests/agreement/engset_file_sizes.csv: mean error below 3 % up to a loss of 1 %, "
            "below 10 % up to 5 %",
            {LOSS_RATIO: 0.05, WINDOW_BDPS: 1.1},
        ),
        "cardwell": FormulaDomain(
            0.35,
            _SIMULATION_SOURCE,
            {WINDOW_BDPS: 1, LOSS_RATIO: 0.1, EXPECTED_LOSSES: 0.6, T0_RTTS: 10, QUEUE_FILL: 1},
        ),
        "short": FormulaDomain(
            0.45,
            _SIMULATION_SOURCE,
            {WINDOW_BDPS: 1, LOSS_RATIO: 0.1, SACK_LOSSES: 8, QUEUE_FILL: 1},
            {LOSS_RATIO: 0.03, EXPECTED_LOSSES: 1.1},
        ),
    }
)
"""Domain of each formula, by the name of its engine; formulas without a row mark their values
themselves."""


def outside_domain_reason(formula: str, **values: float) -> str:
    """Return the reason why values are outside a formula's domain, "" if they are inside.

    Parameters
    ----------
    formula
        The name of an engine; an engine without a row in :data:`DOMAINS` has no bounds.
    **values
        The quantities that bound domains, by name; :func:`tcpcast.models.pftk.path_domain_values`
        computes those of one path.
    """
    domain = DOMAINS.get(formula)
    passed = {} if domain is None else domain.exceeded_bounds(**values)
    if domain is None or not passed:
        return ""
    actual = " and ".join(_value_text(name, values[name]) for name in passed)
    most = " or ".join(_bound_text(name, most) for name, most in passed.items())
    if domain.error is None:
        return f"{actual}, but the limit is {most}"
    return (
        f"{actual}, but the limit is {most}; up to this limit, the error is within "
        f"{100 * domain.error:g} %"
    )


def describe_domain(formula: str) -> str:
    """Return the bounds of a formula's domain as text, "" without bounds."""
    domain = DOMAINS.get(formula)
    if domain is None:
        return ""
    fills = tuple(n for n in (QUEUE_FILL, BURST_FILL) if domain.limits.get(n) == 1)
    windows = tuple(n for n in (WINDOW_SHARE,) if domain.limits.get(n) == 1)
    whole = {*windows, *fills}
    all_of = [_value_text(n, most) for n, most in domain.limits.items() if n not in whole]
    one_of = " or ".join(_value_text(name, most) for name, most in domain.any_of.items())
    if one_of:
        all_of.append(f"either {one_of}")
    bounds = _enumeration(all_of)
    error = "" if domain.error is None else f"; error within {100 * domain.error:g} %"
    fitting = f", if {_enumeration([_WHOLE_TEXTS[n] for n in (windows, fills) if n])}"
    return f"up to {bounds}{fitting if whole else ''}{error}"


def _enumeration(parts: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def is_in_domain(formula: str, **values: ArrayLike) -> NDArray[np.bool_]:
    """Return whether values are in the domain of a formula, in their broadcast shape.

    The parameters are the same as for :func:`outside_domain_reason`, but arrays.
    """
    arrays = np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in values.values()))
    domain = DOMAINS.get(formula)
    rows = zip(*(array.ravel().tolist() for array in arrays), strict=True)
    inside = [
        domain is None or not domain.exceeded_bounds(**dict(zip(values, r, strict=True)))
        for r in rows
    ]
    return np.array(inside, dtype=np.bool_).reshape(arrays[0].shape)


def _value_text(quantity: str, value: float) -> str:
    words, factor = _QUANTITY_TEXTS[quantity]
    return words.format(f"{factor * value:.3g}")


def _bound_text(quantity: str, most: float) -> str:
    words, factor = _QUANTITY_TEXTS[quantity]
    unit = words.partition("{}")[2].split()
    return f"{factor * most:.3g}" + (
        f" {unit[0]}" if unit and unit[0] in {"%", "RTT", "BDP"} else ""
    )


def require_positive(name: str, value: float) -> None:
    """Raise DomainError unless ``value`` is above 0 and finite."""
    if not (value > 0 and math.isfinite(value)):
        raise DomainError(f"{name} must be above 0 and finite, not {value!r}")


def require_not_negative(name: str, value: float) -> None:
    """Raise DomainError unless ``value`` is at least 0 and finite."""
    if not (value >= 0 and math.isfinite(value)):
        raise DomainError(f"{name} must be at least 0 and finite, not {value!r}")


def require_count(name: str, value: float) -> int:
    """Return a count as an integer; raise DomainError unless it is whole and at least 1."""
    if not (value >= 1 and math.isfinite(value) and value == int(value)):
        raise DomainError(f"{name} must be a whole number, at least 1, not {value!r}")
    return int(value)


def require_file_size(name: str, value: float) -> None:
    """Raise DomainError unless ``value`` is a file size: at least 1 packet and finite."""
    if not (value >= 1 and math.isfinite(value)):
        raise DomainError(f"{name} must be at least 1 packet and finite, not {value!r}")


def require_window(name: str, value: float) -> None:
    """Raise DomainError unless ``value`` is a window: at least 1 packet, or ``inf``."""
    if not value >= 1:
        raise DomainError(f"{name} must be at least 1 packet, not {value!r}")


def to_positive_array(name: str, values: ArrayLike) -> Floats:
    """Return ``values`` as an array; raise DomainError unless all are above 0 and finite."""
    array = np.asarray(values, dtype=np.float64)
    for bound in _min_and_max(array):
        require_positive(name, bound)
    return array


def _min_and_max(array: Floats) -> tuple[float, ...]:
    """Return the smallest and the largest value, both nan if one is nan; empty for no values.

    A scalar is returned without a search, because a sweep checks many scalars.
    """
    if array.ndim == 0:
        return (float(array),)
    return (float(array.min()), float(array.max())) if array.size else ()


def to_loss_ratio_array(name: str, values: ArrayLike) -> Floats:
    """Return ``values`` as an array; raise DomainError unless all are above 0 and below 1."""
    array = np.asarray(values, dtype=np.float64)
    ends = _min_and_max(array)
    if ends:
        least, greatest = ends[0], ends[-1]
        if least == 0:
            raise DomainError(
                f"{name} must be above 0: without loss, the window or the link limits the rate, "
                "so no loss model applies"
            )
        require_not_negative(name, least)
        if not greatest < 1:
            raise DomainError(f"{name} is a ratio and must be below 1, not {greatest!r}")
    return array


def to_ratio_array(name: str, values: ArrayLike) -> Floats:
    """Return ``values`` as an array; raise DomainError unless all are at least 0 and below 1."""
    array = np.asarray(values, dtype=np.float64)
    ends = _min_and_max(array)
    if ends:
        require_not_negative(name, ends[0])
        if not ends[-1] < 1:
            raise DomainError(f"{name} is a ratio and must be below 1, not {ends[-1]!r}")
    return array


def to_share_array(name: str, values: ArrayLike) -> Floats:
    """Return ``values`` as an array; raise DomainError unless all are from 0 to 1."""
    array = np.asarray(values, dtype=np.float64)
    for bound in _min_and_max(array):
        if not 0 <= bound <= 1:
            raise DomainError(f"{name} must be between 0 and 1, not {bound!r}")
    return array


def to_window_array(name: str, values: ArrayLike) -> Floats:
    """Return ``values`` as an array; raise DomainError unless all are windows, >= 1 packet."""
    array = np.asarray(values, dtype=np.float64)
    for bound in _min_and_max(array)[:1]:
        require_window(name, bound)
    return array


def to_packets_per_ack_array(name: str, values: ArrayLike) -> Floats:
    """Return packets per ACK, b, as an array; raise DomainError unless all are at least 1."""
    array = to_positive_array(name, values)
    for least in _min_and_max(array)[:1]:
        if least < 1:
            raise DomainError(f"{name} must be at least 1, not {least!r}")
    return array


def to_count_array(name: str, values: ArrayLike) -> Floats:
    """Return counts as an array; raise DomainError unless all are integers of at least 1."""
    array = to_positive_array(name, values)
    wrong = array[(array < 1) | (array != np.floor(array))]
    if wrong.size:
        raise DomainError(f"{name} must be a whole number, at least 1, not {float(wrong[0])!r}")
    return array


_CHECKS = {
    "flows": to_count_array,
    "packets_per_ack": to_packets_per_ack_array,
    "timeout_share": to_share_array,
    **dict.fromkeys(
        ("loss_ratio", "loss_indication_ratio", "loss_event_ratio", "loss_event_ratio_cumulative"),
        to_loss_ratio_array,
    ),
    **dict.fromkeys(("size_pkts", "initial_window_pkts", "receiver_window_pkts"), to_window_array),
}
"""Checks of the arguments of path formulas by name; other arguments are above 0 and finite."""


def broadcast_arrays(**arrays: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the arrays by name in their broadcast shape."""
    return dict(zip(arrays, np.broadcast_arrays(*arrays.values()), strict=True))


def to_checked_arrays(**arguments: ArrayLike) -> list[Floats]:
    """Return arguments of formulas as arrays, in the given order, each checked by its name.

    Raises
    ------
    DomainError
        An argument is outside its domain; the message contains its name and domain.
    """
    return [_CHECKS.get(name, to_positive_array)(name, each) for name, each in arguments.items()]
