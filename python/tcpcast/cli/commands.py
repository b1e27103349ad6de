"""Tables of commands with help and options; each command is implemented in a separate module."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tcpcast.cli.complete import complete_paper
from tcpcast.cli.options import (
    CHANGES,
    CSV,
    ENGINE,
    FEED,
    FIGURE_FORMAT,
    FILE,
    FORCE,
    JSON,
    OUT,
    SEED,
    THREADS,
)
from tcpcast.options.command_option import Argument, FormField, KeyOption, Option
from tcpcast.options.home_scenario import HOME_OPTIONS
from tcpcast.options.path_option_definitions import PATH_OPTIONS

LinkEnd = Literal["near", "far"]
CONTEXT_OPTION = Option("context", "", "")
"""Marks a command whose function takes the context of the command line as an argument. The context
contains the text of the command line and the words after ``--``."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command; the module of its name has a function of its name.

    Attributes
    ----------
    name, summary, details
        Name of the command, and first and further paragraphs of its help.
    example
        Example command line at the end of the help.
    inputs
        Arguments and options that determine the answer; the page and the tools for agents have
        them as well.
    outputs
        Options about output, files and this machine, which only the command line has.
    form_title
        Title of the form on the page; "" without a form.
    has_program
        True if the command takes words after ``--``.
    """

    name: str
    summary: str
    details: str
    example: str
    inputs: tuple[Option, ...] = ()
    outputs: tuple[Option, ...] = ()
    form_title: str = ""
    has_program: bool = False

    @property
    def help(self) -> str:
        """All paragraphs of the help."""
        return "\n\n".join(filter(None, (self.summary, self.details)))

    @property
    def options(self) -> tuple[Option, ...]:
        """Arguments and options, in the order of the help."""
        return (*self.inputs, *self.outputs)


_ANSWER_INPUTS = (ENGINE, CHANGES, SEED, FEED)
_ANSWER_OUTPUTS = (
    JSON,
    CSV,
    Option("plot", "DIR", "Write figures into a folder."),
    FIGURE_FORMAT,
    replace(
        OUT,
        help="Write a report (.html or .md), or the flows listed in probes.flows as qlog "
        "(.qlog); repeatable.",
    ),
    Option("print_scenario", "", "Print the scenario with all defaults and exit."),
    THREADS,
    Option("every", "", "Print all values and warnings.", "--all"),
    Option("explain", "", "Print all values, and the equations of formulas."),
    Option(
        "accept_late", "", "Accept results of the kernel engine even if the machine was too busy."
    ),
    FORCE,
)
"""Options about the output of the commands that answer one scenario."""

RUN = Command(
    "run",
    "Run a scenario with several engines and compare the answers.",
    "Without --engine, every quick engine that applies to the scenario runs.",
    "tcpcast run web-10mbit --engine packet --set traffic.sources=98",
    (
        FILE,
        *_ANSWER_INPUTS,
        KeyOption(
            "link",
            "NAME",
            "In a network, the link that the bottleneck metrics describe.",
            keys=("probes.link",),
        ),
    ),
    _ANSWER_OUTPUTS,
    "A scenario",
)
PREDICT = Command(
    "predict",
    "Predict TCP's rate on a path, and what limits it.",
    "Without --packet, it simulates only if no formula is reliable and the simulation is quick. "
    "RTT, loss, rate, buffer, flows and size accept ranges: --loss 0.01%..10%.",
    "tcpcast predict --rtt 100ms --loss 1% --rwnd 64KiB --explain",
    (
        CONTEXT_OPTION,
        *PATH_OPTIONS.values(),
        Option("packet", "", "Also simulate the path."),
        Option(
            "count",
            "N",
            "Number of values in a range; default: 10.",
            "--points",
            type=int,
        ),
        *_ANSWER_INPUTS,
    ),
    _ANSWER_OUTPUTS,
    "One path",
)
HOME = Command(
    "home",
    "Find the queue that keeps a call usable during an upload.",
    "Simulates the line and what people do at the same time, once for each queue. p95 is the delay "
    "that 95 % of the packets of a call do not exceed.",
    "tcpcast home --down 100mbit --up 20mbit --uses call,upload",
    (
        CONTEXT_OPTION,
        *HOME_OPTIONS.values(),
        replace(
            ENGINE,
            help="Engines: packet (default), or kernel, which measures each queue for 24 s.",
        ),
        CHANGES,
        SEED,
    ),
    (
        Option("print_scenario", "", "Print the scenario with the first queue and exit."),
        JSON,
        CSV,
        Option("plot", "DIR", "Write figures into a folder."),
        FIGURE_FORMAT,
        replace(OUT, metavar="DIR|FILE", help="Write a report (.html or .md); repeatable."),
        FORCE,
    ),
    "A home line",
)
COMPARE = Command(
    "compare",
    "Compare two scenarios, or a measurement and a simulation.",
    "Two scenarios run in pairs with the same random numbers; each pair varies the RTTs by up to "
    "10 % (run.rtt_spread). The verdict states how many users an A/B test needs to detect the "
    "difference. From a file of flent, `iperf3 -J` or `crusader export`, tcpcast reads rates, RTT "
    "and the settings of tc, simulates the same test, and prints measured beside simulated values. "
    "Options such as --down supply values that the file does not contain.",
    "tcpcast compare page-load tcp.initial_window=32 --metric page_time_p95_s",
    (
        Argument(
            "program",
            "A|PROGRAM",
            "Scenario A, or the program that wrote the file: flent, iperf3 or crusader.",
        ),
        Argument(
            "file",
            "B|FILE",
            "Scenario B, changes from A to B such as 'tcp.initial_window=32 tcp.pacing=fq', or the "
            "file, which may be compressed.",
        ),
        Option("metric", "METRIC", "Metric by which the verdict compares two scenarios."),
        Option(
            "replications",
            "N",
            "Number of pairs of runs; default: 20, or run.replications of A.",
            type=int,
            minimum=3,
        ),
        *(
            replace(HOME_OPTIONS[name], default=None, keys=(), form_field=None, help=text)
            for name, text in (
                ("down", "Rate of the line from the internet."),
                ("up", "Rate of the line to the internet."),
                ("rtt", "RTT of the idle line; default: the smallest ping RTT in the file."),
                ("buffer", "Buffer of the line in each direction."),
            )
        ),
        Option("queue", "NAME", "Queue discipline of the line, such as fq_codel."),
        CHANGES,
        SEED,
    ),
    (
        Option("print_scenario", "", "Print the scenario of the test and exit."),
        JSON,
        CSV,
        Option("plot", "DIR", "Write the figure of both distributions into a folder."),
        FIGURE_FORMAT,
        FORCE,
        THREADS,
    ),
)
PLAN = Command(
    "plan",
    "Find the buffer, rate or number of users that meets a target.",
    "",
    "tcpcast plan buffer web-10mbit --loss 1%",
)
VARY = Option(
    "vary",
    "KEY=RANGE",
    "Vary a key over a range, such as network.rtt='10ms..200ms log 8', or over A,B,C; repeatable.",
    type=list[str],
)
SWEEP = Command(
    "sweep",
    "Run a scenario with every combination of varied values.",
    "The varied keys and their values come from the table [sweep] of the file, or from --vary.",
    'tcpcast sweep path.toml --vary "network.rtt=10ms..200ms log 8" --out DIR',
    (
        CONTEXT_OPTION,
        FILE,
        VARY,
        ENGINE,
        Option(
            "replications",
            "N",
            "Simulations per combination of values, with different seeds.",
            type=int,
            minimum=1,
        ),
        CHANGES,
        SEED,
        replace(FEED, default=None),
        replace(
            OUT,
            metavar="DIR|FILE",
            help="Write the results into a folder, and reuse the answers in it; or write a report "
            "(.html or .md); repeatable.",
        ),
        Option(
            "processes",
            "N",
            "Number of local processes; default: one per core.",
            type=int,
            minimum=1,
        ),
        Option(
            "dask", "ADDRESS", "Run on the workers of a Dask scheduler, such as tcp://host:8786."
        ),
        Option(
            "plot",
            "DIR",
            "Plot the metrics against one or two varied keys into a folder.",
        ),
        Option(
            "level",
            "METRIC=VALUE",
            "Draw a contour line at a value, such as goodput_bps=50mbit; repeatable.",
            type=list[str],
        ),
        FIGURE_FORMAT,
        FORCE,
        CSV,
        JSON,
    ),
)
QUERY = Command(
    "query",
    "Query the results of a sweep with SQL.",
    'Write keys in double quotes: SELECT "network.rtt", goodput_bps FROM sweep WHERE '
    "engine = 'pftk'.",
    'tcpcast query DIR "SELECT engine, max(goodput_bps) FROM sweep GROUP BY engine"',
    (
        Argument(
            "folder",
            "DIR",
            "Output folder of a sweep.",
        ),
        Argument(
            "sql",
            "SQL",
            "SQL query; the table `sweep` contains the results.",
        ),
        CSV,
        JSON,
    ),
)
CAPTURES = Argument(
    "files",
    "FILE",
    "pcap or pcapng captures, or output of iperf3 -J or ss -tin; - is standard input, and "
    "sample is a packaged capture.",
    type=list[str],
)
TRACE = Command(
    "trace",
    "Analyse TCP in captures and logs, worst direction first.",
    "Prints one line per direction with data. Captures may be compressed by gzip or zstd.",
    "tcpcast trace sample --plot figures",
    (
        CONTEXT_OPTION,
        CAPTURES,
        Option(
            "second_capture",
            "FILE",
            "Capture at a second tap, behind the bottleneck, to find the losses between both taps.",
        ),
        Option(
            "connection",
            "WHICH",
            'Select a direction: its number in --csv, an address, or "SOURCE > DESTINATION".',
            form_field=FormField(
                "Connection",
                'Direction to show: a connection number, an address, or "SOURCE > DESTINATION".',
            ),
        ),
        Option(
            "group_by",
            "WAY",
            "Combine flows: all, or those with the same pair (of hosts), source or destination.",
        ),
        Option(
            "rtt",
            "TIME",
            "With --group-by: count losses of a group within this time as one loss event; default: "
            "the mean RTT.",
            form_field=FormField(
                "RTT",
                'Losses of a group ("Group by") within this time count as one loss event; if '
                "empty, the mean RTT.",
            ),
        ),
        Option(
            "worst",
            "N",
            "Print only the worst N directions, worst first, also in CSV and JSON.",
            type=int,
            minimum=1,
            form_field=FormField("Worst", "Show only this number of directions, worst first."),
        ),
        Option(
            "models",
            "",
            "Compare the predictions of all path models with the rate of each direction.",
        ),
    ),
    (
        CSV,
        JSON,
        Option(
            "table",
            "NAME",
            "Print a table as CSV or JSON: requests, services, failed, interruptions, intervals, "
            "rounds, retransmissions or loss_indications.",
        ),
        Option("everything", "", "Print all lines, not only the worst 20.", "--all"),
        Option(
            "max_connections",
            "N",
            "Maximum number of connections in memory; above it, tcpcast evicts idle "
            "connections; default: 65536.",
            type=int,
            minimum=1,
        ),
        Option("scenario", "OUT.toml", "Write a scenario with the measured values."),
        OUT,
        Option("plot", "DIR", "Write figures into a folder."),
        FIGURE_FORMAT,
        Option("parquet", "DIR", "Write all tables as Parquet into a folder."),
        FORCE,
    ),
    "A capture",
)
REPORT = Command(
    "report",
    "Write a report on answers, a sweep or captures into one file.",
    "--engine, --set, --seed, --feed and --threads apply only if FILE is a scenario.",
    "tcpcast report captures/ --out slow.html",
    (
        Argument(
            "sources",
            "FILE|DIR|NAME",
            "Scenario, output of `tcpcast run --json`, captures, or folder of captures or of a "
            "sweep.",
            type=list[str],
        ),
        replace(OUT, help="Output file, .html or .md; default: NAME.html; repeatable."),
        ENGINE,
        CHANGES,
        SEED,
        FEED,
        THREADS,
        FORCE,
    ),
)
SERVE = Command(
    "serve",
    "Serve a local page with models, simulation and captures.",
    "Prints the address of the page at the start. Press Ctrl-C to stop the server.",
    "tcpcast serve",
    (
        Option("port", "N", "Port on 127.0.0.1; 0 selects a free one.", type=int, default=0),
        Option("no_browser", "", "Do not open a browser."),
    ),
)
MCP = Command(
    "mcp",
    "Serve predictions and captures as tools for AI agents.",
    "A client, such as an editor, starts this command and speaks the Model Context Protocol over "
    "standard input and output. The server writes no files.",
    "tcpcast mcp --folder captures",
    (
        Option(
            "folder",
            "DIR",
            "Folder whose captures and scenarios may be read; default: none.",
        ),
        Option("max_wall", "TIME", "Time limit of a call.", default="30s"),
    ),
)


def _list_papers() -> str:
    """Return the help of the argument that names a paper, which imports the packages of papers."""
    from tcpcast.papers import find_paper_packages  # noqa: PLC0415 - searches entry points

    return f"One of {', '.join(find_paper_packages())}."


REPRODUCE = Command(
    "reproduce",
    "Reproduce a paper and compare with its printed results.",
    "Writes a page (index.md) with figures into a folder. The exit code is 1 if a difference is "
    "new, or if a known difference no longer occurs.",
    "tcpcast reproduce engset --quick --out engset-paper",
    (
        CONTEXT_OPTION,
        Argument(
            "name",
            "PAPER",
            _list_papers,
            completion=complete_paper,
        ),
        Option("quick", "", "Use shorter runs, with wider intervals."),
        Option(
            "cell",
            "NAME",
            "Compute only the rows with this name, such as 'Table 6, N = 82, rate'.",
            default="",
        ),
        replace(
            OUT,
            metavar="DIR|FILE",
            help="Output folder; default: ./PAPER-paper; or an HTML report (.html); repeatable.",
        ),
        Option("scenarios", "DIR", "Write each simulation as a scenario file, and an index.csv."),
        Option(
            "measurements",
            "DIR",
            "Folder with measurements of a kernel; repeatable.",
            type=list[str],
        ),
        JSON,
        THREADS,
        FORCE,
    ),
)
LINK = Command(
    "link",
    "Run a program over an emulated link; print the link's counters.",
    "COMMAND runs at the near end, 10.0.0.1. If COMMAND is a single argument, such as 'a | b', "
    "a shell runs it. Without COMMAND, a shell starts. The far end is 10.128.0.1. TCPCAST_PEER and "
    "TCPCAST_PEER6 contain the address of the other end. Requires Linux; only --nat requires root.",
    "tcpcast link --rtt 60ms --rate 20mbit --buffer 100pkt -- ping -c 3 10.128.0.1",
    (
        CONTEXT_OPTION,
        replace(
            FILE,
            help="Scenario with the path; options override its keys.",
            default=None,
            completion=None,
        ),
        replace(
            PATH_OPTIONS["rtt"],
            help="RTT of the idle link.",
            default=None,
        ),
        PATH_OPTIONS["rate"],
        Option(
            "trace",
            "FILE",
            "File of delivery times (Mahimahi format), instead of --rate.",
            keys=("network.bottleneck.rate.trace",),
        ),
        PATH_OPTIONS["buffer"],
        replace(PATH_OPTIONS["loss"], help="Random loss on the forward path."),
        Option("ack_loss", "RATIO", "Random loss on the return path.", keys=("network.ack_loss",)),
        Option(
            "queue",
            "NAME",
            "Queue discipline: droptail, fq_codel, ...",
            keys=("network.bottleneck.queue",),
        ),
        Option(
            "jitter",
            "TIME",
            "Mean of a random exponential delay on the forward path.",
            keys=("network.jitter", "network.jitter.mean"),
        ),
        Option("reorder", "", "Let packets with a shorter --jitter delay overtake others."),
        Option(
            "sender",
            "near|far",
            "End that sends the data; default: near. In a network, the end at which the server "
            "is; default: far.",
            type=LinkEnd,
        ),
        Option(
            "server_command",
            "COMMAND",
            "Shell command at the far end.",
        ),
        Option("pcap", "FILE", "Write a capture of the packets at one end."),
        Option(
            "pcap_side", "near|far", "End at which --pcap captures.", type=LinkEnd, default="near"
        ),
        Option(
            "expect",
            "BOUND",
            "Exit with 1 unless the program meets this bound, such as 'rate >= 80% of linux-cubic' "
            "or 'delay <= 20ms'; repeatable.",
            type=list[str],
        ),
        replace(VARY, help="Run once per combination of values: KEY=RANGE or KEY=A,B; repeatable."),
        Option(
            "out",
            "FILE",
            "Write counters and checks as JSON, a table (.md) or a JUnit report (.xml); "
            "repeatable.",
            type=list[str],
        ),
        Option(
            "device",
            "tun|veth",
            "Device type; default: tun if available.",
            type=Literal["tun", "veth"],
        ),
        Option("nat", "", "Let both ends access the networks of this machine; requires root."),
        CHANGES,
        SEED,
        FORCE,
    ),
    has_program=True,
)
ACCEPT = Command(
    "accept",
    "Test a congestion control against the criteria of RFC 9743.",
    "Runs a stack, or the Python class in a file, in about 35 simulations: alone, with random "
    "loss, against other flows, with other RTTs, ECN, AQM, a policer, and changing rates. tcpcast "
    "executes the Python file, so use only files that you trust. The exit code is 1 if a value is "
    "outside its permissible range.",
    "tcpcast accept my_control.py --against linux-bbr",
    (
        CONTEXT_OPTION,
        Argument(
            "stack",
            "STACK|FILE.py",
            "Modern stack, or Python file with a subclass of CongestionControl.",
        ),
        Option("against", "STACK", "Stack of the other flows.", default="linux-cubic"),
        Option("seed", "N", "Seed of all simulations.", type=int, default=1),
    ),
    (JSON, OUT, THREADS, FORCE),
)
NEW = Command(
    "new",
    "Copy a packaged scenario, or list all packaged scenarios.",
    "Writes ./NAME.toml.",
    "tcpcast new web-10mbit",
    (
        Argument(
            "name",
            "NAME",
            "Packaged scenario; without NAME, the command lists all of them.",
            default=None,
        ),
        FORCE,
    ),
)
ENGINES = Command(
    "engines",
    "List the engines, when each applies, and when to trust it.",
    "",
    "tcpcast engines",
    (JSON,),
)
SCHEMA = Command(
    "schema",
    "Print the JSON Schema of scenario files.",
    "",
    "tcpcast schema > scenario.schema.json",
)
COMMANDS = {
    each.name: each
    for each in (
        *(PREDICT, RUN, HOME, COMPARE, PLAN, SWEEP, QUERY, TRACE, REPORT, SERVE, MCP),
        *(REPRODUCE, LINK, ACCEPT, NEW, ENGINES, SCHEMA),
    )
}
"""The commands, in the order of ``tcpcast --help``."""
