"""Commands as rows: help and options are here, and the module of a command does the work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tcpcast.cli.options import (
    CHANGES,
    CSV,
    ENGINE,
    FEED,
    FILE,
    FORCE,
    FORM,
    HTML,
    JSON,
    MARKDOWN,
    SEED,
    THREADS,
)
from tcpcast.option import Argument, Option
from tcpcast.path.rows import PATH

END = Literal["near", "far"]
CONTEXT = Option("context", "", "")
"""Requests the context of the command line, for its own text or for the words after ``--``."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command; the module of its name has a function of its name.

    Attributes
    ----------
    name, summary, details
        Name, first paragraph and further paragraphs of the help.
    example
        Command line at the end of the help.
    options
        Its arguments and options, in the order of the help.
    has_tail
        True if the command takes words after ``--``.
    """

    name: str
    summary: str
    details: str
    example: str
    options: tuple[Option, ...] = ()
    has_tail: bool = False

    @property
    def help(self) -> str:
        """All paragraphs of the help."""
        return "\n\n".join(filter(None, (self.summary, self.details)))


RUN = Command(
    "run",
    "Answer a scenario by several engines, side by side.",
    "Without --engine: every engine that applies and is quick.",
    "tcpcast run web-10mbit --engine packet --set traffic.sources=98",
    (
        FILE,
        ENGINE,
        CHANGES,
        SEED,
        FEED,
        JSON,
        CSV,
        Option("plot", "DIR", "Write figures into a folder."),
        FORM,
        HTML,
        MARKDOWN,
        Option(
            "print_scenario",
            "",
            "Print the scenario, defaults filled in; run nothing.",
            former="--show",
        ),
        THREADS,
        Option("every", "", "Print every value and warning, not only the main ones.", "--all"),
        Option("accept_late", "", "Engine kernel: continue on a busy machine."),
        FORCE,
    ),
)
PREDICT = Command(
    "predict",
    "Predict the rate of a path, and what limits it.",
    "RTT, loss, rate, buffer, flows and size may be ranges: --loss 0.01%..10%.",
    "tcpcast predict --rtt 100ms --loss 1% --rwnd 64KiB --explain",
    (
        *PATH.values(),
        Option("packet", "", "Simulate the path as well."),
        Option("count", "N", "Values of a range; else 10.", "--points", type=int),
        Option("explain", "", "Show each quantity with its equation, and all warnings."),
        Option("plot", "DIR", "Draw rate against loss into a folder."),
        FORM,
        FORCE,
        CSV,
        JSON,
    ),
)
PLAN = Command(
    "plan",
    "Solve for a target: which buffer, users, rate, streams or loss meets it?",
    "",
    "tcpcast plan buffer web-10mbit --loss 1% --verify",
)
SWEEP = Command(
    "sweep",
    "Answer a scenario for every combination of some values.",
    "What varies is in the file's table [sweep], or in --vary. The table of the results goes to "
    "standard output, or with --out into a folder.",
    'tcpcast sweep path.toml --vary "network.rtt=10ms..200ms log 8" --out DIR',
    (
        CONTEXT,
        FILE,
        Option(
            "vary",
            "KEY=RANGE",
            "What varies: a range such as network.rtt='10ms..200ms log 8', or values separated by "
            "commas; may be repeated.",
            type=list[str],
        ),
        ENGINE,
        Option(
            "replications",
            "N",
            "How often each cell is simulated, seed by seed.",
            type=int,
            least=1,
        ),
        CHANGES,
        SEED,
        replace(FEED, default=None),
        Option("out", "DIR", "Write Parquet files into a folder; an interrupted sweep goes on."),
        Option(
            "processes",
            "N",
            "Processes of this machine; default one per core.",
            type=int,
            least=1,
        ),
        Option("dask", "ADDRESS", "Dask scheduler whose workers work: tcp://host:8786."),
        Option("plot", "DIR", "Draw one or two keys that vary: curves, or heat maps."),
        Option(
            "level",
            "METRIC=VALUE",
            "In figures: draw where a metric has this value, such as goodput_bps=50mbit; may be "
            "repeated.",
            type=list[str],
        ),
        FORM,
        HTML,
        MARKDOWN,
        FORCE,
        CSV,
        JSON,
    ),
)
QUERY = Command(
    "query",
    "Ask SQL about the results of a sweep.",
    "Keys are quoted: SELECT \"network.rtt\", goodput_bps FROM sweep WHERE engine = 'pftk'.",
    'tcpcast query DIR "SELECT engine, max(goodput_bps) FROM sweep GROUP BY engine"',
    (
        Argument(
            "folder",
            "DIR",
            "The folder of a sweep's --out.",
        ),
        Argument(
            "sql",
            "SQL",
            "A query in SQL; the table is named sweep.",
        ),
        Option(
            "max_wall", "TIME", "Stop the query after this time, such as 60s; default no limit."
        ),
        CSV,
        JSON,
    ),
)
TRACE = Command(
    "trace",
    "Analyse what TCP did in packet captures, the worst direction first.",
    "One line per direction that carries data. Captures may be compressed by gzip or zstd.",
    "tcpcast trace slow.pcap --plot figures",
    (
        Argument(
            "files",
            "FILE",
            "Captures in pcap or pcapng; - reads standard input.",
            type=list[str],
        ),
        Option(
            "second_capture",
            "FILE",
            "A capture of the same packets after the bottleneck: losses in between.",
            former="--after",
        ),
        CSV,
        JSON,
        Option(
            "table",
            "NAME",
            "Print another table as CSV, or JSON: requests, services, failed, "
            "intervals, rounds, retransmissions or loss_indications.",
        ),
        Option(
            "connection",
            "WHICH",
            'Only one: a number as --csv has it, an end, or "SOURCE > DESTINATION".',
        ),
        Option(
            "group_by",
            "WAY",
            "Flows together instead of each: all, pair (of hosts), source or destination.",
            former="--by",
        ),
        Option(
            "rtt",
            "TIME",
            "With --group-by: least time between two loss events; default the mean RTT.",
        ),
        Option("everything", "", "Print every line, not the worst 20.", "--all"),
        Option(
            "max_connections",
            "N",
            "Connections followed at once, default 65536; beyond, idle ones are evicted.",
            type=int,
            least=1,
        ),
        Option("models", "", "Print every path model for each direction."),
        Option("scenario", "OUT.toml", "Write a scenario of it, for other engines to answer."),
        HTML,
        MARKDOWN,
        Option("plot", "DIR", "Write PNG figures into a folder."),
        FORM,
        Option("parquet", "DIR", "Write Parquet files into a folder, one per table."),
        FORCE,
    ),
)
REPORT = Command(
    "report",
    "Write a report of answers, of a sweep or of captures as one file.",
    "HTML has figures and needs no network. Options of a simulation go with a scenario; answers "
    "that are saved are laid out as they are.",
    "tcpcast report captures/ --out slow.html",
    (
        Argument(
            "sources",
            "FILE|DIR|NAME",
            "A scenario, what `tcpcast run --json` printed, captures, or a folder: of captures, "
            "or of `tcpcast sweep --out`.",
            type=list[str],
        ),
        Option("out", "FILE", "Where to: .html (default NAME.html), or .md for Markdown."),
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
    "Serve a local page: sliders, every model at once, simulation, captures.",
    "Prints the address that opens it, once; Ctrl-C ends it.",
    "tcpcast serve",
    (
        Option("port", "N", "Port on 127.0.0.1; 0 takes a free one.", type=int, default=0),
        Option("no_browser", "", "Only print the address; open no browser."),
    ),
)
PAPERS = ("engset", "pftk", "parallel", "fixed-point", "short", "kernel")
"""Papers of tcpcast: a search for entry points would delay the help."""

REPRODUCE = Command(
    "reproduce",
    "Rerun a paper and compare with its printed results.",
    "Writes a page (index.md) with figures into a folder. Exit code 1 if a value differs that is "
    "not on the paper's list of known differences, or if a difference on the list is gone.",
    "tcpcast reproduce engset --quick --output engset-paper",
    (
        CONTEXT,
        Argument(
            "name",
            "PAPER",
            f"Which paper: {', '.join(PAPERS)}.",
        ),
        Option("quick", "", "Shorter runs: about a minute, wider intervals."),
        Option("output", "DIR", "Where the page and its figures go; ./PAPER-paper if not given."),
        Option(
            "measurements",
            "DIR",
            "Original files of measurements, of kernel alone; may be repeated.",
            type=list[str],
        ),
        HTML,
        JSON,
        THREADS,
        FORCE,
    ),
)
LINK = Command(
    "link",
    "Run a program over an emulated link, and print what the link counted.",
    "COMMAND is what follows --, a shell if nothing does; a single word is a shell command. It "
    "runs at the near end, 10.0.0.1; the far end is 10.128.0.1, and TCPCAST_PEER has the address "
    "of the other end, TCPCAST_PEER6 that of IPv6. Its exit status is passed on. Linux; root is "
    "not needed.",
    "tcpcast link --rtt 60ms --rate 20mbit --buffer 100pkt -- ping -c 3 10.128.0.1",
    (
        CONTEXT,
        replace(
            FILE,
            help="A scenario, of which [network] and run.seed count; options change it.",
            default=None,
            completion=None,
        ),
        replace(
            PATH["rtt"],
            help="Round-trip time of the empty link, for 1500 B and an ack.",
            default=None,
        ),
        replace(PATH["rate"], help="Rate; else unlimited."),
        Option(
            "trace",
            "FILE",
            "Packet opportunities, in place of --rate.",
            keys=("network.bottleneck.rate.trace",),
        ),
        replace(PATH["buffer"], help="Buffer, the packet in transmission included; else 1bdp."),
        replace(PATH["loss"], help="Random loss from the senders' end."),
        Option(
            "ack_loss", "RATIO", "Random loss towards the senders' end.", keys=("network.ack_loss",)
        ),
        Option(
            "queue",
            "NAME",
            "Queue discipline: droptail, fq_codel, ...",
            keys=("network.bottleneck.queue",),
        ),
        Option(
            "jitter",
            "TIME",
            "Mean of an exponential delay from the senders' end.",
            keys=("network.jitter", "network.jitter.mean"),
        ),
        Option("reorder", "", "With --jitter: packets may overtake each other."),
        Option(
            "sender",
            "near|far",
            "The senders' end, which loss and jitter count from.",
            type=END,
            default="near",
        ),
        Option(
            "server_command",
            "COMMAND",
            "A shell command to run behind the link.",
            former="--far",
        ),
        Option("pcap", "FILE", "Write a capture of the packets at one end."),
        Option("pcap_side", "near|far", "The end of --pcap.", type=END, default="near"),
        Option("statistics", "FILE", "Write the numbers as JSON, too."),
        Option(
            "device",
            "tun|veth",
            "How ends are joined to the link; else what is there.",
            type=Literal["tun", "veth"],
        ),
        Option("nat", "", "Reach this machine and beyond, behind the link; needs root."),
        CHANGES,
        SEED,
        FORCE,
    ),
    has_tail=True,
)
NEW = Command(
    "new",
    "Copy a packaged scenario, or list them.",
    "The copy is ./NAME.toml; a file of that name is not overwritten without --force.",
    "tcpcast new web-10mbit",
    (
        Argument("name", "NAME", "Which one; without it, all are listed.", default=None),
        FORCE,
    ),
)
ENGINES = Command(
    "engines",
    "List the engines by family, when each applies, and when to trust it.",
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
COMPLETION = Command(
    "completion",
    "Print the script that makes a shell complete tcpcast.",
    'For zsh: eval "$(tcpcast completion zsh)" in ~/.zshrc. For fish: into the file\n'
    "~/.config/fish/completions/tcpcast.fish.",
    "tcpcast completion bash > ~/.local/share/bash-completion/completions/tcpcast",
    (
        Argument(
            "shell",
            "SHELL",
            "bash, zsh or fish.",
            type=Literal["bash", "zsh", "fish"],
        ),
    ),
)
MAN = Command("man", "Print the manual page, for man(1).", "", "tcpcast man | man -l -")

COMMANDS = {
    each.name: each
    for each in (
        *(RUN, PREDICT, PLAN, SWEEP, QUERY, TRACE, REPORT, SERVE),
        *(REPRODUCE, LINK, NEW, ENGINES, SCHEMA, COMPLETION, MAN),
    )
}
"""The commands, in the order of ``tcpcast --help``."""
