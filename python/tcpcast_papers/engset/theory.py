"""Results of the model for a setting, and the number of sources for a load."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from tcpcast.engines.formula.engset import engset_inputs

if TYPE_CHECKING:
    from tcpcast.models.engset import EngsetResult

    from tcpcast_papers.engset.settings import Setting


@cache
def solve_model(each: Setting) -> EngsetResult:
    """Return the model's answer to a setting with RTT0, as engine ``engset`` computes it."""
    rtt = {} if each.rtt_ms is None else {"network.rtt": f"{each.rtt_ms:g}ms"}
    return engset_inputs(each.scenario().with_changes(rtt)).solve()


def with_load(each: Setting, load: float) -> Setting:
    """Return the setting with the number of sources nearest to an open-loop load.

    The paper uses the nearest populations: 80 % of F12-10M2M-R50 is 66 sources (80.5 %), 100 %
    is 82 (100.1 %), 120 % is 98 (119.6 %). The load (eq. 5) is proportional to N.
    """
    result = solve_model(each)
    return replace(
        each, sources=max(1, math.floor(load * each.sources / result.offered_load + 0.5))
    )
