"""Commands that cover every stack, queue, distribution, loss model, hop, engine and paper.

``answers.py`` records their output and files, and compares them after a change. Each case is
a few commands in a separate folder. A case takes at most a second, except for reproductions.
"""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tcpcast.scenario.modern_tcp import MODERN_PRESETS

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
LOSSES: dict[str, Any] = {
    "none": "0%",
    "independent": "3%",
    "bursts": {"model": "gilbert-elliott", "to_bad": "0.5%", "to_good": "20%"},
    "bursts-partial": {
        "model": "gilbert-elliott",
        "to_bad": "1%",
        "to_good": "10%",
        "loss_good": "0.1%",
        "loss_bad": "60%",
    },
    "round": {"model": "rest-of-round", "rate": "2%"},
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
MIXED = 60
STACKS = ("rfc-reno", "rfc-newreno", "rfc-newreno-patient", "max-plus-reno")
TODAYS = tuple(MODERN_PRESETS)
TODAYS_TCP: dict[str, Changes] = {
    "iw4": {"tcp.initial_window": 4},
    "each-ack": {"tcp.delayed_acks": False},
    "no-timestamps": {"tcp.timestamps": False},
    "exact-timers": {"tcp.rto_granularity": "0s", "tcp.min_rto": "1s"},
    "threshold-6": {"tcp.duplicate_threshold": 6},
    "small-window": {"tcp.receiver_window": 6},
    "red": {"network.bottleneck.queue": "red"},
    "fq": {"network.bottleneck.queue": "fq"},
    "bursts": {"network.bottleneck.loss": LOSSES["bursts"]},
    "cross": {"cross": [{"model": "poisson", "mean": "30%"}]},
}
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
MAX_PLUS: dict[str, Changes] = {
    "every-ack": {"tcp.rules.max_plus": {"growth": "every-ack"}},
    "fractions": {"tcp.rules.max_plus": {"whole_halves": False}},
    "once": {"tcp.rules.max_plus": {"halve_once": True}},
    "no-timeout": {"tcp.rules.max_plus": {"timeout": False}},
    "rto-idle": {"tcp.idle_restart": "rto"},
    "never-idle": {"tcp.idle_restart": "never"},
    "loss": {"network.bottleneck.loss": "1%"},
}
SOURCES: dict[str, Changes] = {
    "persistent": {"traffic.connection": "persistent"},
    "persistent-never": {"traffic.connection": "persistent", "tcp.idle_restart": "never"},
    "persistent-2s": {"traffic.connection": "persistent", "tcp.idle_restart": "2s"},
    "equilibrium": {"traffic.start": "equilibrium"},
    "persistent-equilibrium": {"traffic.connection": "persistent", "traffic.start": "equilibrium"},
    "down": {"traffic.size_rounding": "down"},
    "correlated": {"traffic.correlation": -0.6},
    "correlated-up": {"traffic.correlation": 0.4, "traffic.connection": "persistent"},
    "packet-576": {"network.packet": "576B"},
    "return-delay": {"network.return_delay": "40ms"},
    "delays": {
        "network": {
            "ingress": {"rate": "100mbit", "delay": "3ms"},
            "bottleneck": {"rate": "10mbit", "buffer": "150pkt", "delay": "12ms"},
            "egress": {"rate": "2mbit", "delay": "5ms"},
        }
    },
    "access-loss": {"network.ingress.loss": "1%", "network.egress.loss": "0.5%"},
    "access-buffers": {"network.ingress.buffer": "5pkt", "network.egress.buffer": "6pkt"},
    "bytes-buffer": {"network.bottleneck.buffer": "64KiB"},
    "bdp-buffer": {"network.bottleneck.buffer": "1bdp"},
    "no-buffer-limit": {"network.bottleneck.buffer": "unlimited"},
    "goodput-blocks": {"probes.goodput_packets": 5, "probes.goodput_shares": ["99%", "50%"]},
    "goodput-least": {"probes.goodput_least": "20pkt"},
    "mser": {"run.warmup": None},
    "precision": {"run.precision": "5%", "run.replications": 1},
    "four": {"run.replications": 4},
    "duration": {"run.transfers": None, "run.duration": "60s"},
    "seed": {"run.seed": 77},
}
HOPS: dict[str, list[Changes]] = {
    "shared": [
        {"name": "core", "rate": "40mbit", "delay": "5ms"},
        {"name": "access", "rate": "10mbit", "buffer": "80pkt", "delay": "5ms"},
    ],
    "shared-behind": [
        {"name": "access", "rate": "10mbit", "buffer": "60pkt", "delay": "5ms"},
        {"name": "core", "rate": "12mbit", "buffer": "20pkt", "delay": "2ms"},
    ],
    "three": [
        {"name": "a", "rate": "12mbit", "buffer": "40pkt", "delay": "2ms", "loss": "0.2%"},
        {"name": "b", "rate": "10mbit", "buffer": "40pkt", "delay": "2ms", "queue": "fq"},
        {"name": "c", "rate": "11mbit", "buffer": "40pkt", "delay": "2ms", "queue": "red"},
    ],
    "own": [
        {"name": "router", "shared": False, "rate": "3mbit", "buffer": "20pkt", "delay": "1ms"},
        {"name": "access", "rate": "10mbit", "buffer": "80pkt", "delay": "5ms"},
    ],
    "own-behind": [
        {"name": "access", "rate": "10mbit", "buffer": "80pkt", "delay": "5ms"},
        {"name": "line", "shared": False, "rate": "1500kbit", "buffer": "9pkt", "delay": "4ms"},
    ],
    "measured": [
        {"name": "first", "rate": "15mbit", "buffer": "30pkt", "delay": "5ms", "measured": True},
        {"name": "access", "rate": "10mbit", "buffer": "60pkt", "delay": "5ms"},
    ],
}
CROSS: dict[str, Changes] = {
    "poisson": {"model": "poisson", "mean": "40%"},
    "fgn": {"model": "fgn", "mean": "40%", "sd": "15%", "hurst": 0.8},
    "pareto": {"model": "pareto", "mean": "40%", "sources": 20, "on": "100ms", "off": "200ms"},
    "trace": {"model": "trace", "times": [0, 0.1, 0.25], "bytes": [30000, 60000, 9000]},
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


UNCONGESTED: Changes = {
    "traffic.sources": 600,
    "network.bottleneck.rate": "40mbit",
    "network.bottleneck.buffer": "2000pkt",
}
FIXED_POINTS: dict[str, Changes] = {
    "light": UNCONGESTED,
    "light-replications": {
        **UNCONGESTED,
        "run.duration": "700s",
        "run.replications": 2,
        "probes.goodput_packets": 10,
    },
    "light-red": {**UNCONGESTED, "network.bottleneck.queue": "red"},
    "droptail": {"network.bottleneck.queue": "droptail"},
    "arriving": {"network.bottleneck.queue": {"kind": "fq", "drop": "arriving"}},
    "random": {"network.bottleneck.queue": {"kind": "fq", "drop": "longest", "ties": "random"}},
    "hops": {
        "network": {
            "hop": [
                {
                    "name": "line",
                    "shared": False,
                    "rate": "1mbit",
                    "buffer": "15pkt",
                    "delay": "4ms",
                },
                {
                    "name": "loop",
                    "rate": "3mbit",
                    "buffer": "300pkt",
                    "delay": "5ms",
                    "queue": {"kind": "fq", "drop": "longest"},
                },
                {
                    "name": "behind",
                    "shared": False,
                    "rate": "2mbit",
                    "buffer": "9pkt",
                    "delay": "1ms",
                },
            ]
        },
        "network.bottleneck.rate": None,
        "network.bottleneck.buffer": None,
        "cross": [
            {
                "hop": "line",
                "model": "fgn",
                "mean": "50%",
                "sd": "25%",
                "hurst": 0.7,
                "bin": "100ms",
            }
        ],
    },
    "bulk": {
        "traffic": {
            "kind": "bulk",
            "flows": 24,
            "start": {"distribution": "uniform", "low": "0s", "high": "10s"},
        },
        "traffic.sources": None,
        "network.bottleneck.buffer": "10pkt",
        "network.bottleneck.queue": {"kind": "fq", "buffers": "individual"},
    },
}
"""Fixed points that partly have an answer: with few users, or with individual buffers."""


def cases() -> Iterator[Case]:
    """Return all cases, the slow ones last."""
    yield from _packet()
    yield from _paths()
    yield from _mixed()
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
    yield from _sources()


MANAGED: dict[str, Any] = {
    "codel": "codel",
    "codel-drops": {"kind": "codel", "target": "10ms", "interval": "200ms", "ecn": False},
    "codel-threshold": {"kind": "codel", "ce_threshold": "1ms", "rules": "linux"},
    "fq_codel": "fq_codel",
    "fq_codel-few": {"kind": "fq_codel", "flows": 4, "quantum": "300B", "rules": "linux"},
    "pie": "pie",
    "pie-linux": {"kind": "pie", "target": "20ms", "rules": "linux"},
    "head-drop": "head-drop",
}


def _managed() -> Iterator[Case]:
    """Active queue management with classic and modern stacks, marks, a hop and cross traffic."""
    for name, queue in MANAGED.items():
        for stack in ("rfc-newreno", "linux-cubic", "linux-bbr", "bbr3", "dctcp"):
            ecn = {} if stack == "rfc-newreno" else {"tcp.ecn": True}
            changes = {"network.bottleneck.queue": queue, "tcp": {"stack": stack}} | ecn
            yield _run(f"managed-{name}-{stack}", "narrow", changes)
        changes = {"network.bottleneck.queue": queue, "tcp": {"stack": "linux-cubic", "ecn": True}}
        yield _run(f"managed-{name}-web", "web", changes)
        yield _run(f"managed-{name}-short", "short", changes)
    marking = {"network.bottleneck.queue": "red", "tcp": {"stack": "linux-reno", "ecn": True}}
    yield _run("managed-red-marks", "narrow", marking)
    distribution = {"model": "poisson", "mean": "30%"}
    crossed = {"network.bottleneck.queue": "fq_codel", "cross": [distribution]}
    yield _run("managed-crossed", "narrow", crossed)
    hops = [
        {"name": "near", "rate": "30mbit", "buffer": "60pkt", "queue": "head-drop"},
        {"name": "far", "rate": "20mbit", "buffer": "60pkt", "queue": "codel"},
    ]
    yield _run("managed-hops", "narrow", {"network.bottleneck": None, "network.hop": hops})


def _todays() -> Iterator[Case]:
    """Modern stacks, alone and together with classic ones."""
    for stack in TODAYS:
        for traffic in ("web", "narrow", "short", "arriving"):
            yield _run(f"todays-{stack}-{traffic}", traffic, {"tcp": {"stack": stack}})
    for name, changes in TODAYS_TCP.items():
        yield _run(f"todays-{name}", "narrow", {"tcp": {"stack": "linux-cubic"}} | changes)
    persistent = {"tcp": {"stack": "linux-reno"}, "traffic.connection": "persistent"}
    yield _run("todays-persistent", "web", persistent)
    for handshake in ("none", "tls13", "tls12"):
        tcp = {"tcp": {"stack": "linux-cubic", "handshake": handshake}}
        for traffic in ("web", "narrow", "short", "arriving"):
            yield _run(f"todays-{handshake}-{traffic}", traffic, tcp)
    times = [{"start": "2s"}, {"stop": "5s"}, {"start": "3s", "stop": "6s"}]
    guests = ("linux-cubic", "linux-bbr", "rfc-newreno")
    classes = [
        {"name": name, "flows": 2, "tcp": {"stack": name}} | span
        for name, span in zip(guests, times, strict=True)
    ]
    yield _run("todays-start-and-stop", "narrow", {"traffic.flows": None, "class": classes})
    stacks = ("rfc-newreno", "linux-bbr", "linux-cubic", "rfc-sack")
    classes = [{"name": name, "flows": 2, "tcp": {"stack": name}} for name in stacks]
    yield _run("todays-beside-classic", "narrow", {"traffic.flows": None, "class": classes})


def _tables() -> Iterator[Case]:
    for queue, table in QUEUES.items():
        for traffic in ("web", "narrow", "loop"):
            yield _run(f"queue-{queue}-{traffic}", traffic, {"network.bottleneck.queue": table})
    for loss, table in LOSSES.items():
        for traffic in ("web", "bulk", "arriving"):
            yield _run(f"loss-{loss}-{traffic}", traffic, {"network.bottleneck.loss": table})
    for distribution in DISTRIBUTIONS:
        for key, maximum, minimum in (("off", "1s", "200ms"), ("size", "12pkt", "3pkt")):
            yield _run(
                f"distribution-{key}-{distribution}",
                "web",
                {f"traffic.{key}": filled(distribution, maximum, minimum)},
            )


def _sources() -> Iterator[Case]:
    for rule, changes in TCP.items():
        for traffic in ("web", "bulk", "short"):
            yield _run(f"tcp-{rule}-{traffic}", traffic, changes)
    for rule, changes in MAX_PLUS.items():
        yield _run(f"max-plus-{rule}", "loop", changes)
    for name, changes in SOURCES.items():
        yield _run(f"sources-{name}", "web", changes)


def filled(distribution: str, maximum: str, minimum: str) -> Any:
    """Return the table of a distribution with values for its quantities."""
    return json.loads(
        json.dumps(DISTRIBUTIONS[distribution]).replace("{m}", maximum).replace("{n}", minimum)
    )


def _paths() -> Iterator[Case]:
    for hops, tables in HOPS.items():
        for traffic in ("web", "narrow", "classes"):
            yield _hops(f"hops-{hops}-{traffic}", traffic, tables, [])
    for distribution, table in CROSS.items():
        for queue in ("droptail", "fq", "red"):
            yield _run(
                f"cross-{distribution}-{queue}",
                "web",
                {"network.bottleneck.queue": queue, "cross": [table]},
            )
        router = {"hop": "router", **({} if distribution == "fgn" else {"bin": "10ms"}), **table}
        yield _hops(f"cross-{distribution}-own", "web", HOPS["own"], [router])
        yield _hops(f"cross-{distribution}-core", "web", HOPS["shared"], [{"hop": "core", **table}])


def _mixed() -> Iterator[Case]:
    """Random combinations, because features may fail only together."""
    draw = random.Random(20261122)
    for number in range(MIXED):
        traffic = draw.choice(["web", "bulk", "narrow", "short", "arriving", "classes"])
        changes = dict(draw.choice(list(TCP.values())))
        changes |= draw.choice(list(TCP.values()))
        changes["tcp.stack"] = draw.choice(STACKS[:3])
        changes["network.bottleneck.loss"] = draw.choice(list(LOSSES.values()))
        if traffic != "short":
            changes["network.bottleneck.queue"] = draw.choice(list(QUEUES.values()))
            changes["cross"] = [draw.choice(list(CROSS.values()))] if draw.random() < 0.4 else []
        if traffic == "web":
            changes |= draw.choice(list(SOURCES.values()))
            changes["traffic.size"] = filled(draw.choice(list(DISTRIBUTIONS)), "15pkt", "2pkt")
        changes["run.seed"] = number
        yield _run(f"mixed-{number:02}-{traffic}", traffic, changes)


def _hops(name: str, traffic: str, hops: list[Changes], cross: list[Changes]) -> Case:
    scenario, base = TRAFFIC[traffic]
    removed = {key: value for key, value in base.items() if "bottleneck" not in key}
    changes = {**removed, "network": {"hop": hops}, "cross": cross}
    return Case(name, (("run", scenario, "--engine=packet", "--json", *settings(changes)),))


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
        for name, changes in FIXED_POINTS.items():
            yield _fixed_point(f"{name}-{scheme}", scheme, changes)


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
