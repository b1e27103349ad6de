"""The plans as data: the varied key of each question, its targets, and its options.

This module imports neither numpy nor the solver, so that ``--help`` is fast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tcpcast.options.command_option import KeyOption, Option
from tcpcast.options.path_option_definitions import PATH_OPTIONS
from tcpcast.process.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

TIME_PER_FILE = "time per file"
"""Stands for the metric of the time per file, which depends on the traffic and the handshake."""

FILE_GOODPUT = "file goodput"
"""Stands for the goodput that a share of the files exceeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A target of a question.

    Attributes
    ----------
    options
        The options that state the target; all are required, and the last one has the target value.
    metric
        Name of the metric that meets the target, :data:`TIME_PER_FILE` or :data:`FILE_GOODPUT`.
    rises
        Whether the metric rises with the varied quantity; otherwise it falls.
    text
        The target in a sentence; the values of the options are inserted.
    default
        Value of the last option if no option states a target; NaN for none.
    """

    options: tuple[Option, ...]
    metric: str
    rises: bool
    text: str
    default: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A plan, which is a command of ``tcpcast plan``.

    Attributes
    ----------
    name, summary, about, example
        Name of the command, first sentence of its help, further sentences, and an example without
        the command's name.
    text
        The answer in a sentence: "smallest buffer".
    key
        The varied key of the scenario; the kind of traffic determines the keys of users and flows.
    column, unit, axis
        Column of the varied quantity in tables, its unit, and its label in figures.
    integer
        Whether the varied quantity is a whole number.
    smallest
        Whether to find the smallest value that meets the target; otherwise the largest.
    power
        Approximate exponent of the varied quantity in the metric.
    targets
        The targets; options of one of them are given. The first one may have a default.
    class_option
        Option that selects a class, or None.
    link_option
        Option that selects the link of the varied key, or None.
    required_path_options, further_path_options
        Required and further options that describe the path instead of a scenario; the options of
        the hosts are added. Without required options, the plan needs a scenario.
    placeholders
        Values of the options of a path that the plan solves for: a scenario needs some value.
    """

    name: str
    summary: str
    about: str
    example: str
    text: str
    key: str
    column: str
    unit: str
    axis: str
    integer: bool = True
    smallest: bool = True
    power: float = 1.0
    targets: tuple[Target, ...]
    class_option: Option | None = None
    link_option: KeyOption | None = None
    required_path_options: tuple[Option, ...] = ()
    further_path_options: tuple[Option, ...] = ()
    placeholders: Mapping[str, str] = field(default_factory=dict)

    def choose_target(self, given: Collection[str], name_of: Callable[[Option], str]) -> Target:
        """Return the target whose options were given; ``name_of`` names options in messages.

        Raises
        ------
        DomainError
            The options of no target, of more than one, or only a part of them are given.
        """
        for target in self.targets:
            if {row.name for row in target.options} == set(given):
                return target
        if not given and math.isfinite(self.targets[0].default):
            return self.targets[0]
        names = [" and ".join(map(name_of, target.options)) for target in self.targets]
        examples = (
            " ".join(f"{name_of(row)} {row.example}" for row in target.options)
            for target in self.targets
        )
        chosen = [row for each in self.targets for row in each.options if row.name in given]
        if not given or len(self.targets) == 1:
            raise DomainError(f"missing target; use {', or '.join(examples)}")
        raise DomainError(
            f"{' and '.join(map(name_of, chosen))}: exactly one target is required; use "
            f"{', or '.join(names)}"
        )

    @property
    def target_options(self) -> tuple[Option, ...]:
        """Options of all targets and of the class, in the order of the help."""
        stated = dict.fromkeys(row for target in self.targets for row in target.options)
        return (*stated, *filter(None, [self.class_option, self.link_option]), ENGINE)

    @property
    def options(self) -> tuple[Option, ...]:
        """Options of the targets and the path, in the order of the help."""
        return (*self.target_options, *self.path_options)

    @property
    def path_options(self) -> tuple[Option, ...]:
        """Options that describe the path."""
        return (
            (*self.required_path_options, *self.further_path_options, *_HOST_OPTIONS)
            if self.required_path_options
            else ()
        )


def argument_name(option: Option) -> str:
    """Return the argument of :func:`.solver.solve` for an option of a target."""
    return option.name + {"RATE": "_bps", "TIME": "_s"}.get(option.metavar, "")


ENGINE = Option(
    "engine", "NAME", "Engine that computes the metric, such as engset.", default="packet"
)
_HOST_OPTIONS = tuple(row for row in PATH_OPTIONS.values() if not row.example and row.name != "iw")
"""Options of the hosts; the initial window has no effect on bulk flows."""
_RTT = replace(PATH_OPTIONS["rtt"], default=None, example="100ms")
_MEAN_RATE = Option(
    "rate", "RATE", "Minimum mean rate of a user during a transfer.", example="200kbit"
)
_SHARE = Option(
    "share", "RATIO", "Share of files whose goodput must exceed {--above}.", example="95%"
)
_ABOVE = Option(
    "above", "RATE", "Minimum goodput of these files (see {--share}).", example="500kbit"
)
_TIME = Option("time", "TIME", "Maximum mean time per file.", example="2s")
_DELAY = Option(
    "delay",
    "TIME",
    "Maximum delay of 95 % of the packets of messages or pings.",
    example="30ms",
)
_DELAYED_CLASS = Option(
    "class_name",
    "NAME",
    "Class whose delay must meet the target; default: the class with the longest delay.",
    "--class",
)
_VARIED_CLASS = Option(
    "class_name",
    "NAME",
    "Class whose number of senders the plan varies; default: all classes, in proportion.",
    "--class",
)
_DELAY_LINK = KeyOption(
    "link",
    "NAME",
    "Link with the shaper or queue; default: the link with the highest utilisation.",
    keys=("probes.link",),
)
_DELAY_TARGET = Target(
    options=(_DELAY,), metric="delay_p95_s", rises=True, text="for a delay of {} (p95)"
)
_UTILISATION = Option("utilisation", "RATIO", "Minimum utilisation of the link.", example="95%")
_ABOUT_POPULATIONS = "The target is {--rate}, {--time}, or {--share} with {--above}."


def _population_targets(*, rises: bool) -> tuple[Target, ...]:
    """Return the targets of users, whose rates rise or fall with the varied quantity."""
    return (
        Target(
            options=(_MEAN_RATE,),
            metric="connection_rate_bps",
            rises=rises,
            text="with a mean rate of {}",
        ),
        Target(
            options=(_SHARE, _ABOVE),
            metric=FILE_GOODPUT,
            rises=rises,
            text="with {} of files above {}",
        ),
        Target(
            options=(_TIME,),
            metric=TIME_PER_FILE,
            rises=not rises,
            text="with a mean time per file of {}",
        ),
    )


_ROWS = (
    Question(
        name="buffer",
        summary="Find the smallest buffer that meets a target for loss or utilisation.",
        about="Also prints the buffers of common sizing rules. For a policer, the plan finds the "
        "burst size.",
        example="web-10mbit --loss 1%",
        text="smallest buffer",
        key="network.bottleneck.buffer",
        column="buffer_pkts",
        unit="packet",
        axis="buffer (packets)",
        targets=(
            Target(
                options=(
                    Option(
                        "loss",
                        "RATIO",
                        "Maximum loss ratio at the bottleneck; default: 1%.",
                        example="1%",
                    ),
                ),
                metric="loss_ratio",
                rises=False,
                text="for a loss of {}",
                default=0.01,
            ),
            Target(
                options=(_UTILISATION,),
                metric="utilisation",
                rises=True,
                text="for a utilisation of {}",
            ),
        ),
    ),
    Question(
        name="users",
        summary="Find the maximum number of users for a target rate.",
        about=f"{_ABOUT_POPULATIONS} If transfers arrive at random, the plan finds their "
        "arrival rate.",
        example="local-loop --share 95% --above 200kbit",
        text="largest population",
        key="sources",
        column="sources",
        unit="sources",
        axis="users",
        smallest=False,
        targets=_population_targets(rises=False),
        class_option=_VARIED_CLASS,
    ),
    Question(
        name="rate",
        summary="Find the link rate that a population needs.",
        about=_ABOUT_POPULATIONS,
        example="web-10mbit --rate 400kbit",
        text="smallest link rate",
        key="network.bottleneck.rate",
        column="bottleneck_bps",
        unit="bit/s",
        axis="rate of the link",
        integer=False,
        targets=_population_targets(rises=True),
        class_option=Option(
            "class_name",
            "NAME",
            "Class that must meet the target; default: the slowest class.",
            "--class",
        ),
    ),
    Question(
        name="streams",
        summary="Find the number of parallel flows that fill a link.",
        about="Describe the path by {--rate}, {--rtt} and other options, or by a scenario.",
        example="--rate 100mbit --rtt 100ms --loss 0.1%",
        text="smallest number of parallel flows",
        key="flows",
        column="flows",
        unit="flows",
        axis="parallel flows",
        targets=(
            Target(
                options=(
                    replace(
                        _UTILISATION,
                        help="Minimum utilisation of the link; default: 95%.",
                    ),
                ),
                metric="utilisation",
                rises=True,
                text="that keep the link busy for {} of the time",
                default=0.95,
            ),
        ),
        class_option=_VARIED_CLASS,
        required_path_options=(
            Option("rate", "RATE", "Link rate to fill.", example="1gbit"),
            _RTT,
        ),
        further_path_options=(
            Option("loss", "RATIO", "Random loss of data packets; default: 0%."),
        ),
    ),
    Question(
        name="max-loss",
        summary="Find the maximum loss ratio that still allows a goodput.",
        about="Describe the path by {--rtt} and other options, or by a scenario, whose bottleneck "
        "loss is ignored.",
        example="--goodput 50mbit --rtt 80ms",
        text="largest loss",
        key="network.bottleneck.loss",
        column="loss_ratio",
        unit="1",
        axis="loss",
        integer=False,
        smallest=False,
        power=2.5,
        targets=(
            Target(
                options=(
                    Option("goodput", "RATE", "Total goodput of all flows.", example="50mbit"),
                ),
                metric="goodput_bps",
                rises=False,
                text="for a goodput of {}",
            ),
            Target(
                options=(_TIME,),
                metric=TIME_PER_FILE,
                rises=True,
                text="for a mean time per file of {}",
            ),
        ),
        required_path_options=(_RTT,),
        further_path_options=(
            Option("flows", "N", "Flows that share the path; default: 1."),
            Option("rate", "RATE", "Link rate; default: unlimited."),
        ),
        placeholders={"loss": "1%"},
    ),
    Question(
        name="shaper",
        summary="Find the highest shaper rate that keeps the delay of a call below a maximum.",
        about="Varies the rate of CAKE or of a token bucket in front of the bottleneck.",
        example="shaped-home.toml --link router --delay 15ms",
        text="fastest shaper",
        key="link.*.queue.rate",
        column="shaper_bps",
        unit="bit/s",
        axis="rate of the shaper",
        integer=False,
        smallest=False,
        targets=(_DELAY_TARGET,),
        class_option=_DELAYED_CLASS,
        link_option=_DELAY_LINK,
    ),
    Question(
        name="aqm",
        summary="Find the largest AQM target that keeps the delay of a call below a maximum.",
        about="Varies the target of CoDel, FQ-CoDel, PIE or DualPI2.",
        example="home.toml --link up --set link.*.queue=codel --delay 40ms",
        text="largest target of the AQM",
        key="link.*.queue.target",
        column="target_s",
        unit="s",
        axis="target of the AQM",
        integer=False,
        smallest=False,
        targets=(_DELAY_TARGET,),
        class_option=_DELAYED_CLASS,
        link_option=_DELAY_LINK,
    ),
)
QUESTIONS = {row.name: row for row in _ROWS}
"""The plans by name, in the order of the help. Add a new plan here."""
