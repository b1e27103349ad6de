"""The plans: what each can be asked, and the function that solves it.

This module imports neither numpy nor the solvers, so that ``--help`` is fast.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tcpcast.command_option import REQUIRED, Option
from tcpcast.path_option_definitions import PATH_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

SEARCH_REPLICATIONS = 4
"""Minimum number of replications per population in a search for the goodput of files."""

_RECORDING_ADVICE = (
    "a plan writes no time series or captures; omit this key, or use it in a `tcpcast run` of the "
    "planned scenario"
)
LENGTH_ADVICE = (
    "the number of losses determines the duration of the simulations; omit this key, or write "
    "run.duration for a minimum duration"
)
_SSTHRESH_ADVICE = "the simulations start with the mean window of PFTK; omit this key"
SOURCES_ADVICE = "the plan solves for the number of sources; omit this key"
_FLOWS_ADVICE = "the plan solves for the number of flows; omit this key"
_FILES_ADVICE = (
    "the plan uses the goodput of complete files of all sizes; omit this key, or use it in a "
    "`tcpcast run` of the planned scenario"
)
_GOODPUT_ADVICE = "the plan solves for the loss; omit this key, and write the goodput as --goodput"

_PROBE_KEYS = {"probes.*": _RECORDING_ADVICE}
_SOURCES_KEYS = {"traffic.sources": SOURCES_ADVICE, "class.*.sources": SOURCES_ADVICE}
_KEYS_SET_BY_CHECK = {
    **dict.fromkeys(
        ("run.transfers", "run.warmup", "run.replications", "run.precision*"), LENGTH_ADVICE
    ),
    **dict.fromkeys(("tcp.initial_ssthresh", "class.*.tcp.initial_ssthresh"), _SSTHRESH_ADVICE),
    **_PROBE_KEYS,
}
"""Keys that the simulations of a path determine themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A target that a plan can meet.

    Attributes
    ----------
    module, solver
        Module of this package, and its function, which takes the scenario and, as keywords, the
        options below; those for rates and times end in ``_bps`` and ``_s``. It may also have
        parameters ``verify``, ``transfers`` and ``least_s`` for its simulations.
    required_options, further_options
        Options that state the target, and further options.
    unused_keys
        Patterns of the scenario's keys that the solver finds, determines or ignores, with advice.
    min_replications
        Minimum of ``run.replications``.
    name_in_messages
        Name of the plan with this target in messages, if not the question's.
    missing_advice
        What to write if an option of ``required_options`` is missing.
    """

    module: str
    solver: str
    required_options: tuple[Option, ...] = ()
    further_options: tuple[Option, ...] = ()
    unused_keys: Mapping[str, str]
    min_replications: int = 0
    name_in_messages: str = ""
    missing_advice: str = ""

    @property
    def options(self) -> tuple[Option, ...]:
        """All options of the target."""
        return (*self.required_options, *self.further_options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A plan, which is a command of ``tcpcast plan``.

    Attributes
    ----------
    name
        Name of the command.
    summary, about, example
        First sentence of the help, further sentences, and an example without the command's name.
    figure
        File name of the figure, without the format.
    targets
        The first target with an option is solved for; without such an option, the last one.
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
    figure: str
    targets: tuple[Target, ...]
    required_path_options: tuple[Option, ...] = ()
    further_path_options: tuple[Option, ...] = ()
    placeholders: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> tuple[Option, ...]:
        """Options of the targets and the path, in the order of the help."""
        of_targets = dict.fromkeys(row for each in self.targets for row in each.options)
        return (*of_targets, *self.path_options)

    @property
    def path_options(self) -> tuple[Option, ...]:
        """Options that describe the path."""
        return (
            (*self.required_path_options, *self.further_path_options, *_HOST_OPTIONS)
            if self.required_path_options
            else ()
        )


_HOST_OPTIONS = tuple(row for row in PATH_OPTIONS.values() if not row.example and row.name != "iw")
"""Options of the hosts; the initial window has no effect on bulk flows."""
_RTT = replace(PATH_OPTIONS["rtt"], default=None, example="100ms")
_MEAN_RATE = Option("rate", "RATE", "Minimum of the mean rate of a connection during a transfer.")
_SHARE_AND_ABOVE = (
    Option("share", "RATIO", "Share of files whose goodput must exceed --above."),
    Option("above", "RATE", "Minimum goodput of these files (see --share)."),
)
_SHARE_ADVICE = (
    "write --rate 200kbit for a mean rate, or --share 95% --above 500kbit if 95 % of the files "
    "must exceed a goodput of 500 kbit/s"
)
_ABOUT_POPULATIONS = (
    "The target is either a mean rate (--rate), or a share of files above a goodput (--share and "
    "--above). A formula solves for a mean rate, and a simulation for a share."
)
_GROWS = Option(
    "grows",
    "NAME",
    "Class whose number of senders is varied; default: all classes, in proportion.",
    "--class",
)
_OF_CLASS = Option(
    "of_class", "NAME", "Class that must reach the target; default: the slowest class.", "--class"
)
_RATE_KEYS = {
    "network.bottleneck.rate": "the plan solves for the rate of the link; omit this key, and "
    "write the rate of a user as --rate",
    **_PROBE_KEYS,
}

_ROWS = (
    Question(
        name="buffer",
        summary="Find the smallest buffer for a loss or utilisation.",
        about="Also lists rules of thumb. The answer is from a formula, or from a simulation for "
        "bulk flows, several classes or --utilisation.",
        example="web-10mbit --loss 1% --verify",
        figure="buffer",
        targets=(
            Target(
                module="buffer",
                solver="plan_buffer",
                further_options=(
                    Option("loss", "RATIO", "Maximum loss ratio at the bottleneck; default 1%."),
                    Option(
                        "utilisation",
                        "RATIO",
                        "Minimum utilisation of the link, instead of --loss.",
                    ),
                ),
                unused_keys={
                    "network.bottleneck.buffer": "the plan solves for the buffer; omit this key",
                    **_PROBE_KEYS,
                },
            ),
        ),
    ),
    Question(
        name="users",
        summary="Find the maximum number of users for a target rate.",
        about=_ABOUT_POPULATIONS,
        example="local-loop --share 95% --above 200kbit",
        figure="users",
        targets=(
            Target(
                module="capacity",
                solver="plan_users",
                required_options=(_MEAN_RATE,),
                further_options=(_GROWS,),
                unused_keys={**_SOURCES_KEYS, **_PROBE_KEYS},
            ),
            Target(
                module="quality",
                solver="plan_quality",
                required_options=_SHARE_AND_ABOVE,
                further_options=(
                    _GROWS,
                    Option(
                        "engine", "NAME", "Engine for --share: packet, fixed-point or mean-field."
                    ),
                ),
                unused_keys={
                    **_SOURCES_KEYS,
                    "probes.goodput_shares": "write the share as --share",
                    **dict.fromkeys(
                        ("probes.goodput_least", "probes.goodput_packets"), _FILES_ADVICE
                    ),
                    **dict.fromkeys(("probes.flows*", "probes.pcap*"), _RECORDING_ADVICE),
                },
                min_replications=SEARCH_REPLICATIONS,
                name_in_messages="users --share",
                missing_advice=_SHARE_ADVICE,
            ),
        ),
    ),
    Question(
        name="rate",
        summary="Find the link rate that a population needs.",
        about=_ABOUT_POPULATIONS,
        example="web-10mbit --rate 400kbit --verify",
        figure="rate",
        targets=(
            Target(
                module="capacity",
                solver="plan_rate",
                required_options=(_MEAN_RATE,),
                further_options=(_OF_CLASS,),
                unused_keys=_RATE_KEYS,
            ),
            Target(
                module="capacity",
                solver="plan_rate_quality",
                required_options=_SHARE_AND_ABOVE,
                further_options=(_OF_CLASS,),
                unused_keys=_RATE_KEYS,
                missing_advice=_SHARE_ADVICE,
            ),
        ),
    ),
    Question(
        name="streams",
        summary="Find the number of parallel flows that fill a link.",
        about="Describe the path either by --rate, --rtt and other options, or by a scenario.",
        example="--rate 1gbit --rtt 100ms --loss 0.01%",
        figure="streams",
        targets=(
            Target(
                module="streams",
                solver="plan_streams",
                unused_keys={
                    **dict.fromkeys(("traffic.flows", "class.*.flows"), _FLOWS_ADVICE),
                    **_KEYS_SET_BY_CHECK,
                },
            ),
        ),
        required_path_options=(
            Option("rate", "RATE", "Link rate to fill.", example="1gbit"),
            _RTT,
        ),
        further_path_options=(Option("loss", "RATIO", "Random loss of data packets; default 0%."),),
    ),
    Question(
        name="max-loss",
        summary="Find the maximum loss ratio for a goodput.",
        about="Also lists changes that raise this maximum. Describe the path either by --rtt and "
        "other options, or by a scenario (the loss of the scenario is ignored).",
        example="--goodput 50mbit --rtt 80ms",
        figure="loss",
        targets=(
            Target(
                module="max_loss",
                solver="plan_max_loss",
                required_options=(
                    Option("goodput", "RATE", "Total goodput of all flows.", default=REQUIRED),
                ),
                unused_keys={
                    **dict.fromkeys(
                        ("network.bottleneck.loss", "network.bottleneck.loss.*"), _GOODPUT_ADVICE
                    ),
                    **_KEYS_SET_BY_CHECK,
                },
            ),
        ),
        required_path_options=(_RTT,),
        further_path_options=(
            Option("flows", "N", "Flows that share the path; default 1."),
            Option("rate", "RATE", "Link rate; default unlimited."),
        ),
        placeholders={"loss": "1%"},
    ),
)
QUESTIONS = {row.name: row for row in _ROWS}
"""The plans by name, in the order of the help. Add a new plan here."""
