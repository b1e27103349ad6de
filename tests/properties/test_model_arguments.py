"""Every public function of the models refuses arguments outside its domain by DomainError."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
import warnings
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tcpcast import models
from tcpcast.models.engset import EngsetClass, Path, engset_classes
from tcpcast.models.short import ShortTransfer
from tcpcast.process.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATH = Path(rtt0_s=0.1, packet_bytes=1500, bottleneck_bps=10e6, ingress_bps=2e6)
CLASS: dict[str, Any] = {"path": PATH, "sources": 3, "mean_off_s": 1.0, "mean_size_pkts": 12.0}
VALID: dict[str, Any] = {
    **CLASS,
    "ack_bytes": 40.0,
    "active": 2,
    "beta": 3.0,
    "bottleneck_bps": 10e6,
    "bottleneck_pps": 1000.0,
    "bottleneck_rate_pps": 1000.0,
    "buffer_pkts": 20.0,
    "classes": [EngsetClass(**CLASS, receiver_window_pkts=12.0)],
    "delayed_ack_s": 0.1,
    "duplicate_threshold": 3,
    "egress_bps": 1e7,
    "flows": 4,
    "idle_restart_ratio": 0.1,
    "ingress_bps": 1e7,
    "initial_rto_s": 1.0,
    "isolated_on_time_s": 1.0,
    "largest_pkts": 40,
    "link_bps": 1e7,
    "link_pps": 1000.0,
    "load": 0.5,
    "losses": 1,
    "max_losses": 2,
    "min_rto_s": 1.0,
    "peak_bps": 1e6,
    "propagation_s": 0.1,
    "queue_mean_pkts": 3.0,
    "queue_pkts": 3.0,
    "rate_pps": 50.0,
    "rates_bps": [1e6, 1e7],
    "receiver_window_pkts": 12.0,
    "rtt_s": 0.1,
    "rtt0_s": 0.1,
    "packet_bytes": 1500.0,
    "packets_per_ack": 2,
    "send_rate_pps": 50.0,
    "servers": 2.5,
    "share_at_least": [1.0, 1.0, 0.4],
    "size_pkts": 12,
    "slowest_beta": 3.0,
    "syn_timeout_s": 1.0,
    "t0_s": 1.0,
    "timeout_share": 0.5,
    "transfer": ShortTransfer(rtt_s=0.1),
    "utilisation": 0.5,
    "window_pkts": 8.0,
}
"""A valid value of each argument; of others, the default or, for ratios, 0.05."""

WRONG = (math.nan, math.inf, -math.inf, -1, 0, 0.5)
"""Values outside most domains."""

INPUTS = (Path, ShortTransfer)
"""Types that check their values; the other types are results, or are checked by the functions."""

UNCHECKED = ("tcpcast.models.domain", "tcpcast.models.bisection")
"""Modules that check arguments, and helpers without a domain."""


def public_functions() -> Iterator[Callable[..., Any]]:
    """Yield the public functions and input types of the modules of the models."""
    for module in pkgutil.iter_modules(models.__path__, "tcpcast.models."):
        listed = importlib.import_module(module.name)
        names = getattr(listed, "__all__", [n for n in vars(listed) if not n.startswith("_")])
        for item in (getattr(listed, name) for name in names):
            own = getattr(item, "__module__", "").startswith(module.name)
            if own and callable(item) and module.name not in UNCHECKED:
                yield from [item] if not is_dataclass(item) or item in INPUTS else []


def valid_arguments(function: Callable[..., Any]) -> dict[str, Any]:
    rows = inspect.signature(function).parameters.values()
    given = {row.name: 0.05 if row.default is row.empty else row.default for row in rows}
    lists = [row.name for row in rows if "Sequence[float]" in str(row.annotation)]
    valid = {n: v if isinstance(v, tuple) else VALID.get(n, v) for n, v in given.items()}
    return {n: [v] if n in lists and isinstance(v, float) else v for n, v in valid.items()}


FUNCTIONS = sorted(public_functions(), key=lambda each: f"{each.__module__}.{each.__name__}")


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_wrong_arguments_raise_domain_errors(function: Callable[..., Any]) -> None:
    """`engset(sources=nan)` raised TypeError, `lone_queue(size_pkts=nan)` ValueError."""
    valid = valid_arguments(function)
    function(**valid)
    numbers = [n for n, v in valid.items() if isinstance(v, int | float | list) and n != "classes"]
    numbers = [name for name in numbers if not isinstance(valid[name], bool)]
    assert numbers or set(valid) <= {"transfer", "classes"}
    for name in numbers:
        for wrong in WRONG:
            is_refused = False
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(**valid | {name: [wrong] if isinstance(valid[name], list) else wrong})
            except DomainError:
                is_refused = True
            assert is_refused or not math.isnan(wrong), f"{name} = {wrong}"


@pytest.mark.parametrize("wrong", [math.nan, math.inf, 0, -1, 2.5])
def test_wrong_number_of_sources_of_a_class_raises_domain_error(wrong: float) -> None:
    sources: Any = wrong
    of_class = EngsetClass(**CLASS | {"sources": sources}, receiver_window_pkts=12.0)
    with pytest.raises(DomainError, match="sources must be a whole number"):
        engset_classes([of_class])
