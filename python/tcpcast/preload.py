"""Imports of worker processes, done once in the forkserver from which all workers are forked.

Only the forkserver imports this module. Otherwise, each worker would need half a second to start.
"""

from __future__ import annotations

import gc
import os
from contextlib import suppress

gc.disable()  # all objects created here are permanent: see __main__
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from tcpcast.errors import MachineError  # noqa: E402
from tcpcast.scenario import Scenario  # noqa: E402
from tcpcast.sweeps import prepare_sweep  # noqa: E402
from tcpcast.sweeps.worker import answer_batch  # noqa: E402

_MINIMAL_SCENARIO = {
    "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "50pkt", "loss": "1%"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "run": {"duration": "2s", "warmup": "1s"},
}
with suppress(MachineError, MemoryError):  # the sweep reports these errors
    # The first use fills many caches.
    plan = prepare_sweep(
        Scenario.from_dict(_MINIMAL_SCENARIO), {"network.rtt": ["20ms"]}, engines="packet"
    )
    answer_batch(plan.spec, plan.variants_of_batch(0))

gc.freeze()  # so that garbage collection in workers does not copy shared pages
gc.enable()
