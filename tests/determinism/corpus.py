"""Commands that cover every key, stack, queue, distribution, engine and paper.

``answers.py`` records their output and files, and compares them after a change. Each case is
a few commands in a separate folder. A case takes at most a second, except for reproductions.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tcpcast.scenario.modern_tcp import MODERN_PRESETS
from tcpcast.scenario.toml import write_toml

sys.path.append(str(Path(__file__).parents[1] / "properties"))

from generated_scenarios import Generator, scenarios_with_each_example

Changes = dict[str, Any]
Commands = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Case:
    """Commands that run sequentially in one folder.

    Attributes
    ----------
    name
        Name of the folder in a recording.
    commands
        Arguments of ``tcpcast``; the output and the exit code of each are recorded.
    files
        Text files to create first.
    slow
        Whether it takes minutes.
    calls
        Functions of ``answers.CALLS`` with their arguments; their results are recorded.
    """

    name: str
    commands: Commands
    files: Mapping[str, str] | None = None
    slow: bool = False
    calls: tuple[tuple[str, Any], ...] = ()


WEB: Changes = {"run.transfers": 1500, "run.warmup": "5s", "run.replications": 2}
LOOP: Changes = {
    "traffic.sources": 300,
    "network.bottleneck.rate": "3mbit",
    "network.bottleneck.buffer": "300pkt",
    "run.duration": "150s",
    "run.warmup": "40s",
}
BULK: Changes = {"run.duration": "40s", "run.warmup": "10s", "run.replications": 2}
NARROW: Changes = {
    **BULK,
    "network.bottleneck.rate": "20mbit",
    "network.bottleneck.buffer": "60pkt",
    "network.bottleneck.loss": "0%",
}
SHORT: Changes = {"traffic.count": 300}
ARRIVING: Changes = {
    "traffic": {
        "kind": "transfers",
        "size": ["3pkt", "20pkt", "90pkt"],
        "arrivals": {"distribution": "poisson", "rate": "60/s"},
    },
    "network.bottleneck.rate": "40mbit",
    "network.bottleneck.buffer": "80pkt",
    "network.bottleneck.loss": "2%",
    "run.transfers": 1500,
    "run.warmup": "2s",
}
TRAFFIC: dict[str, tuple[str, Changes]] = {
    "web": ("web-10mbit", WEB),
    "bulk": ("lossy-path", BULK),
    "narrow": ("lossy-path", NARROW),
    "short": ("short-transfers", SHORT),
    "arriving": ("short-transfers", ARRIVING),
    "loop": ("local-loop", LOOP),
    "classes": ("two-classes", WEB),
}

QUEUES: dict[str, Any] = {
    "droptail": "droptail",
    "red": "red",
    "red-chosen": {
        "kind": "red",
        "min_threshold": "10pkt",
        "max_threshold": "40pkt",
        "max_probability": "5%",
        "weight": 0.01,
        "gentle": False,
    },
    "fq": "fq",
    "fq-arriving": {"kind": "fq", "drop": "arriving"},
    "fq-longest": {"kind": "fq", "drop": "longest"},
    "fq-longest-head": {"kind": "fq", "drop": "longest-head"},
    "fq-random": {"kind": "fq", "drop": "longest", "ties": "random"},
    "fq-own": {"kind": "fq", "buffers": "individual"},
    "drr": {"kind": "fq", "scheduler": "drr"},
    "drr-quantum": {"kind": "fq", "scheduler": "drr", "quantum": "4500B", "drop": "longest-head"},
}
DISTRIBUTIONS: dict[str, Any] = {
    "exponential": {"distribution": "exponential", "mean": "{m}", "minimum": "{n}"},
    "ep": {"distribution": "ep", "mean": "{m}", "minimum": "{n}", "alpha": 1.7, "tail": "20%"},
    "ee": {"distribution": "ee", "mean": "{m}", "minimum": "{n}", "c": 2, "tail": "20%"},
    "lognormal": {"distribution": "lognormal", "mean": "{m}", "sd": "{m}"},
    "pareto": {"distribution": "pareto", "mean": "{m}", "alpha": 2.2},
    "constant": {"distribution": "constant", "value": "{m}"},
    "uniform": {"distribution": "uniform", "low": "{n}", "high": "{m}"},
    "empirical": {"distribution": "empirical", "values": ["{n}", "{m}"], "weights": [1, 3]},
}
COMBINED = 200
STACKS = ("rfc-reno", "rfc-newreno", "rfc-newreno-patient", "max-plus-reno")
TODAYS = tuple(MODERN_PRESETS)
TCP: dict[str, Changes] = {
    "iw10": {"tcp.initial_window": 10},
    "ssthresh": {"tcp.initial_ssthresh": 8},
    "at-ssthresh": {"tcp.rules.slow_start_at_ssthresh": True},
    "bytes": {"tcp.rules.window_unit": "bytes"},
    "delayed": {"tcp.delayed_acks": True},
    "delayed-50ms": {"tcp.delayed_acks": True, "tcp.ack_timeout": "50ms"},
    "min-rto": {"tcp.min_rto": "200ms"},
    "max-rto": {"tcp.max_rto": "4s"},
    "initial-rto": {"tcp.initial_rto": "3s"},
    "granular": {"tcp.rto_granularity": "100ms"},
    "restart-send": {"tcp.rules.timer_restart": "send"},
    "backoff-ack": {"tcp.rules.backoff_until": "ack"},
    "threshold-1": {"tcp.duplicate_threshold": 1},
    "threshold-5": {"tcp.duplicate_threshold": 5},
    "last-packets": {"tcp.rules.last_packets_threshold": 1, "tcp.limited_transmit": True},
    "limited": {"tcp.limited_transmit": True},
    "on-second": {"tcp.limited_transmit": True, "tcp.rules.limited_transmit_on": "second"},
    "small-window": {"tcp.receiver_window": 6},
}
FORMULAS: dict[str, tuple[str, ...]] = {
    "web": ("engset",),
    "bulk": (
        "mathis", "td-only", "pftk-approx", "pftk", "cubic-response", "bbr-bound", "parallel",
        "parallel-cumulative",
    ),
    "narrow": ("mathis", "pftk", "parallel", "parallel-cumulative"),
    "short": ("cardwell", "short"),
    "loop": ("restart-sqrt", "fair-share", "overload-bound"),
}  # fmt: skip


def cases() -> Iterator[Case]:
    """Return all cases, the slow ones last."""
    yield from _packet()
    yield from _generated()
    yield from _engines()
    yield from _commands()
    yield from _captures()
    yield from _sweeps()
    yield from _called()
    yield from _refused()
    yield from _papers()


def settings(changes: Changes) -> tuple[str, ...]:
    """Return ``--set`` options; keys with value None are left out."""
    given = {key: value for key, value in changes.items() if value is not None}
    return tuple(
        f"--set={key}={value if isinstance(value, str) else inline(value)}"
        for key, value in given.items()
    )


def inline(value: Any) -> str:
    """Return a value in TOML on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {inline(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


def _run(name: str, traffic: str, changes: Changes, engine: str = "packet", *more: str) -> Case:
    scenario, base = TRAFFIC[traffic]
    options = settings({**base, **changes})
    return Case(name, (("run", scenario, f"--engine={engine}", "--json", *options, *more),))


def _packet() -> Iterator[Case]:
    for traffic in TRAFFIC:
        yield _run(f"packet-{traffic}", traffic, {})
    for stack in STACKS:
        for traffic in ("web", "bulk", "narrow", "short", "arriving", "loop"):
            yield _run(f"stack-{stack}-{traffic}", traffic, {"tcp.stack": stack})
    yield from _todays()
    yield from _managed()
    yield from _tables()
    yield from _rules()


MANAGED: dict[str, Any] = {
    "codel": "codel",
    "codel-drops": {"kind": "codel", "target": "10ms", "interval": "200ms", "ecn": False},
    "codel-threshold": {"kind": "codel", "ce_threshold": "1ms", "rules": "linux"},
    "fq_codel": "fq_codel",
    "fq_codel-few": {"kind": "fq_codel", "flows": 4, "quantum": "300B", "rules": "linux"},
    "pie": "pie",
    "pie-linux": {"kind": "pie", "target": "20ms", "rules": "linux"},
    "head-drop": "head-drop",
    "dualpi2": {"kind": "dualpi2", "classify": "any_ect"},
}


def _managed() -> Iterator[Case]:
    """Active queue management with stacks that respond to marks in different ways."""
    for name, queue in MANAGED.items():
        for stack in ("rfc-newreno", "linux-cubic", "linux-bbr", "dctcp"):
            ecn = {} if stack == "rfc-newreno" else {"tcp.ecn": True}
            changes = {"network.bottleneck.queue": queue, "tcp": {"stack": stack}} | ecn
            yield _run(f"managed-{name}-{stack}", "narrow", changes)


def _todays() -> Iterator[Case]:
    """Modern stacks, and classes of them that start and stop."""
    for stack in TODAYS:
        for traffic in ("web", "narrow", "short", "arriving"):
            yield _run(f"todays-{stack}-{traffic}", traffic, {"tcp": {"stack": stack}})
    times = [{"start": "2s"}, {"stop": "5s"}, {"start": "3s", "stop": "6s"}]
    guests = ("linux-cubic", "linux-bbr", "rfc-newreno")
    classes = [
        {"name": name, "flows": 2, "tcp": {"stack": name}} | span
        for name, span in zip(guests, times, strict=True)
    ]
    yield _run("todays-start-and-stop", "narrow", {"traffic.flows": None, "class": classes})


def _tables() -> Iterator[Case]:
    for queue, table in QUEUES.items():
        for traffic in ("web", "narrow", "loop"):
            yield _run(f"queue-{queue}-{traffic}", traffic, {"network.bottleneck.queue": table})
    for distribution in DISTRIBUTIONS:
        for key, maximum, minimum in (("off", "1s", "200ms"), ("size", "12pkt", "3pkt")):
            yield _run(
                f"distribution-{key}-{distribution}",
                "web",
                {f"traffic.{key}": filled(distribution, maximum, minimum)},
            )


def _rules() -> Iterator[Case]:
    for rule, changes in TCP.items():
        for traffic in ("web", "bulk", "short"):
            yield _run(f"tcp-{rule}-{traffic}", traffic, changes)


def filled(distribution: str, maximum: str, minimum: str) -> Any:
    """Return the table of a distribution with values for its quantities."""
    return json.loads(
        json.dumps(DISTRIBUTIONS[distribution]).replace("{m}", maximum).replace("{n}", minimum)
    )


def _generated() -> Iterator[Case]:
    """Each example of each key, and random combinations, because features may fail only together.

    A comparison reads these scenarios from the recording, so that new keys do not change them.
    """
    for name, tables in scenarios_with_each_example():
        yield _file(f"key-{name}", tables)
    for number in range(COMBINED):
        tables = Generator(Random(f"corpus {number}")).combination("10min")
        yield _file(f"combined-{number:03}", tables)


def _file(name: str, tables: Changes) -> Case:
    command = ("run", "scenario.toml", "--engine=packet", "--json")
    return Case(name, (command,), {"scenario.toml": write_toml(tables)})


def _engines() -> Iterator[Case]:
    for traffic, formulas in FORMULAS.items():
        for feed in ("scenario", "measured"):
            engines = ",".join(formulas)
            yield _run(f"formula-{traffic}-{feed}", traffic, {}, engines, f"--feed={feed}")
    for n, share in ((5, "20"), (60, "134"), (170, "300")):
        yield _run(f"engset-{n}", "web", {"traffic.sources": int(share)}, "engset,packet")
    for traffic in ("web", "loop"):
        yield _run(f"default-engines-{traffic}", traffic, {}, "packet,mean-field")
        for sources in (2000, 20_000):
            changes = {"traffic.sources": sources, "mean_field.flows": 200}
            yield _run(f"mean-field-{traffic}-{sources}", traffic, changes, "mean-field")
    for queue in ("droptail", "fq"):
        shared: Changes = {"network.bottleneck.queue": queue, "mean_field.flows": 100}
        yield _run(f"mean-field-{queue}", "loop", shared, "mean-field")
    for scheme in (0, 1, 2):
        for conditional in (False, True):
            yield _fixed_point(f"{scheme}-{conditional}", scheme, {}, conditional=conditional)


def _fixed_point(name: str, scheme: int, changes: Changes, **more: Any) -> Case:
    table: Changes = {"scheme": scheme, "steps": 8, "step": "60s", "references": 20, **more}
    given = {"fixed_point": table, "traffic.sources": 250, "run.duration": "1500s"}
    return _run(f"fixed-point-{name}", "loop", given | changes, "fixed-point")


def _commands() -> Iterator[Case]:
    path = ("--rtt=80ms", "--loss=0.5%")
    yield Case("text-web", (("run", "web-10mbit", "--engine=engset,packet", *settings(WEB)),))
    yield Case("text-classes", (("run", "two-classes", "--engine=packet", *settings(WEB)),))
    yield Case("text-short", (("run", "short-transfers", *settings(SHORT)),))
    yield Case("text-bulk", (("run", "lossy-path", *settings(BULK)),))
    yield Case("engines", (("engines",), ("engines", "--json"), ("new",)))
    yield Case("schema", (("schema",),))
    shown = tuple(
        ("run", name, "--print-scenario") for name in sorted({s for s, _ in TRAFFIC.values()})
    )
    yield Case("show", shown)
    for name, more in PREDICTED.items():
        named = name in {"stack", "default", "default-size"}
        command = ("predict", *path, *(() if named else (CLASSIC,)), *more)
        printed = (command, (*command, "--json"), (*command, "--csv"))
        yield Case(f"predict-{name}", printed)
    for name, plan in PLANS.items():
        yield Case(f"plan-{name}", (plan, (*plan, "--json")))


CLASSIC = "--stack=rfc-newreno"
PREDICTED: dict[str, tuple[str, ...]] = {
    "default": ("--rate=100mbit",),
    "default-size": ("--rate=100mbit", "--size=100KB"),
    "plain": (),
    "explain": ("--explain",),
    "rate": ("--rate=100mbit",),
    "window": ("--rwnd=64KiB", "--delayed-acks"),
    "flows": ("--flows=8", "--rate=50mbit"),
    "range": ("--flows=1..16", "--points=4"),
    "size": ("--size=100KB", "--iw=10"),
    "sizes": ("--size=2pkt..200pkt", "--points=3"),
    "stack": ("--stack=rfc-reno", "--min-rto=200ms"),
    "packet": ("--packet", "--rwnd=40pkt"),
}
PLANS: dict[str, tuple[str, ...]] = {
    "buffer": ("plan", "buffer", "web-10mbit", "--loss=2%", "--engine=engset"),
    "buffer-packet": ("plan", "buffer", "web-10mbit", "--loss=2%", *settings(WEB)),
    "users": ("plan", "users", "web-10mbit", "--rate=200kbit", "--engine=engset"),
    "users-packet": ("plan", "users", "web-10mbit", "--rate=200kbit", *settings(WEB)),
    "rate": ("plan", "rate", "web-10mbit", "--rate=400kbit", "--engine=engset"),
    "streams": (
        "plan", "streams", CLASSIC, "--rate=100mbit", "--rtt=60ms", "--loss=0.1%", "--engine=pftk",
    ),
    "streams-packet": ("plan", "streams", CLASSIC, "--rate=20mbit", "--rtt=40ms", "--loss=0.5%"),
    "loss": ("plan", "max-loss", CLASSIC, "--goodput=20mbit", "--rtt=60ms", "--engine=pftk"),
    "loss-packet": ("plan", "max-loss", CLASSIC, "--goodput=3mbit", "--rtt=60ms"),
    "streams-default": ("plan", "streams", "--rate=20mbit", "--rtt=60ms", "--loss=0.5%"),
    "loss-default": ("plan", "max-loss", "--goodput=3mbit", "--rtt=60ms"),
    "users-default": (
        "plan", "users", "office-50mbit", "--rate=4mbit", "--set=run.duration=30s",
    ),
}  # fmt: skip
TAPS = ("sender", "bottleneck-in", "bottleneck-out", "receiver")
TRACED = (
    ("--json",),
    ("--csv",),
    (),
    ("--table=intervals",),
    ("--table=rounds",),
    ("--table=retransmissions",),
    ("--table=loss_indications",),
    ("--group-by=all", "--json"),
    ("--models", "--json"),
)


def _captures() -> Iterator[Case]:
    for traffic in ("web", "bulk", "narrow", "arriving"):
        scenario, base = TRAFFIC[traffic]
        taps = [{"link": tap, "file": f"{tap}.pcap", "packets": 20_000} for tap in TAPS]
        changes = {**base, "run.replications": 1, "probes.pcap": taps}
        if traffic != "arriving":
            changes["probes.flows"] = [0, 1]
        simulate = ("run", scenario, "--engine=packet", "--json", *settings(changes))
        read = tuple(
            ("trace", f"{tap}.pcap", *how) for tap in ("sender", "receiver") for how in TRACED
        )
        between = ("trace", "bottleneck-in.pcap", "--second-capture=bottleneck-out.pcap", "--json")
        replay = ("trace", "sender.pcap", "--connection=all", "--scenario=again.toml")
        yield Case(f"capture-{traffic}", (simulate, *read, between, replay))


def _sweeps() -> Iterator[Case]:
    for traffic, key, values in (
        ("web", "traffic.sources", "100,134"),
        ("narrow", "network.rtt", "20ms,60ms"),
        ("classes", "network.bottleneck.rate", "5mbit,10mbit"),
    ):
        scenario, base = TRAFFIC[traffic]
        command = ("sweep", scenario, f"--vary={key}={values}", "--engine=packet", *settings(base))
        written = ("--out=page.html", "--out=page.md", "--plot=figures", "--format=svg")
        yield Case(
            f"sweep-{traffic}", ((*command, *written), (*command, "--csv"), (*command, "--json"))
        )


EMULATED: dict[str, Changes] = {
    "droptail": {"queue": "droptail", "buffer": "40pkt"},
    "codel": {"queue": "codel", "buffer": "1000pkt", "loss": "1%"},
    "fq-codel": {"queue": "fq_codel", "buffer": "1000pkt"},
    "behind": {"buffer": "1bdp", "loss": "1%", "loss_at": "behind"},
}


def _called() -> Iterator[Case]:
    for name, bottleneck in EMULATED.items():
        scenario = {
            "network": {"rtt": "40ms", "bottleneck": {"rate": "10mbit", **bottleneck}},
            "traffic": {"kind": "bulk", "flows": 2},
            "run": {"duration": "20s", "warmup": "5s"},
        }
        yield Case(f"emulated-{name}", (), calls=(("kernel", scenario), ("link", scenario)))


def _refused() -> Iterator[Case]:
    wrong: dict[str, Changes] = {
        "unknown-key": {"network.bottleneck.rat": "1mbit"},
        "unit": {"network.bottleneck.rate": "10mbps"},
        "stack": {"tcp.stack": "rfc-newren"},
        "queue": {"network.bottleneck.queue": "fifo"},
        "distribution": {"traffic.off": {"distribution": "expo", "mean": "1s"}},
        "negative": {"traffic.sources": -1},
        "later": {"network.jitter": "1ms"},
        "two-losses": {"network.bottleneck.loss": "120%"},
    }
    for name, changes in wrong.items():
        command = ("run", "web-10mbit", "--engine=packet", *settings(changes))
        yield Case(f"refused-{name}", (command,))
    yield Case("refused-engine", (("run", "web-10mbit", "--engine=pftk"),))
    yield Case("refused-no-engine", (("run", "web-10mbit", "--engine=paket"),))


def _papers() -> Iterator[Case]:
    for paper in ("engset", "pftk", "parallel", "short", "fixed-point"):
        command = ("reproduce", paper, "--quick", "--json", "--out=page")
        yield Case(f"paper-{paper}", (command,), slow=True)
