"""Tools for agents: commands whose arguments derive from the options of the command line."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tcpcast.cli.commands import CAPTURES, CONTEXT_OPTION, PREDICT, RUN, TRACE
from tcpcast.cli.mcp_worker import MAX_REQUESTED_ROWS
from tcpcast.cli.options import CHANGES, FILE, SEED
from tcpcast.cli.plan_options import list_plan_options
from tcpcast.cli.scenario_args import STANDARD_INPUT
from tcpcast.options.command_option import REQUIRED, Argument, Option
from tcpcast.plan.questions import QUESTIONS
from tcpcast.process.errors import TcpcastError
from tcpcast.scenario.loading import packaged_summaries, read_packaged_text
from tcpcast.scenario.toml import write_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_ARGUMENT_BYTES = 2**20
"""Maximum size of the arguments of a call, as JSON text."""
MAX_ROWS = 20
"""Default maximum number of rows of a table, and of directions of a capture."""
QUESTION, SCENARIO = "question", "scenario"
EXAMPLE_SCENARIO = "office-50mbit"
"""Packaged scenario that is the example of the syntax."""
UNITS_HELP = "Quantities are strings with a unit: 50ms, 10mbit, 64KiB, 100pkt, 1bdp, 0.1%."
TRUST_HELP = (
    "A metric has a value and a 95 % interval (low, high). Formulas have no interval (null). Do "
    "not call one result better than another if their intervals overlap. Do not quote a metric "
    "with "
    '"trusted": false as a result, and mention the warnings that concern the value you quote.'
)
TABLES_OPTION = Option(
    "tables",
    "NAME",
    f"Names of the tables to return, each with up to {MAX_REQUESTED_ROWS:,} rows. Other tables "
    f"are omitted if they have more than {MAX_ROWS} rows.",
    type=list[str],
)
"""Argument of tools that selects the returned tables; the commands have no such option."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool and the command that it runs.

    Attributes
    ----------
    name
        Name of the tool and of the command.
    description
        When to use it, and how to read its result.
    questions
        Options by argument name, for each subcommand. A command without subcommands has the single
        key "".
    defaults
        Values of omitted arguments that differ from those of the command.
    output
        Properties of the structured result, as JSON Schema.
    action
        Request to the worker process.
    """

    name: str
    description: str
    questions: Mapping[str, Mapping[str, Option]]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    output: Mapping[str, Any] = field(default_factory=dict)
    action: str = "run_command"

    def output_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the structured result."""
        messages = {
            "type": "array",
            "items": {"type": "string"},
            "description": "Why the result is incomplete, for example a time limit.",
        }
        return {
            "type": "object",
            "properties": {**self.output, "messages": messages},
            "required": list(self.output),
        }

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        properties: dict[str, Any] = {}
        if "" not in self.questions:
            about = " ".join(f"{name}: {QUESTIONS[name].summary}" for name in self.questions)
            kinds = list(self.questions)
            properties[QUESTION] = {"type": "string", "enum": kinds, "description": about}
        for name in dict.fromkeys(name for rows in self.questions.values() for name in rows):
            using = {q: rows[name] for q, rows in self.questions.items() if name in rows}
            properties[name] = _value_schema(next(iter(using.values())))
            properties[name]["description"] = _argument_help(using, len(self.questions))
            if name in self.defaults:
                properties[name]["default"] = self.defaults[name]
        needed = [
            name
            for name in properties
            if all(
                rows.get(name, TABLES_OPTION).default is REQUIRED
                for rows in self.questions.values()
            )
        ]
        return {
            "type": "object",
            "properties": properties,
            "required": [name for name in properties if name in {*needed, QUESTION}],
            "additionalProperties": False,
        }

    def request(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ``words`` of the command line, the ``text`` of standard input, and ``tables``.

        Raises
        ------
        TcpcastError
            An argument is missing or unknown, or its value has a wrong type. The command checks the
            values.
        """
        given = {**self.defaults, **arguments}
        question = "" if "" in self.questions else given.pop(QUESTION, None)
        if not isinstance(question, str) or question not in self.questions:
            raise TcpcastError(f"{QUESTION}: must be one of {', '.join(self.questions)}")
        rows = self.questions[question]
        for name in given.keys() - rows.keys():
            raise TcpcastError(f"{name}: no such argument; the arguments are {', '.join(rows)}")
        values = {
            name: list(_option_values(name, given.get(name), row)) for name, row in rows.items()
        }
        for name, row in rows.items():
            if row.default is REQUIRED and not values[name]:
                raise TcpcastError(f"{name}: missing; this argument is required")
        tables, text = values.pop(TABLES_OPTION.name, []), ""
        for scenario in values.get(SCENARIO, ()):
            if "\n" in scenario or "=" in scenario:
                values[SCENARIO], text = [STANDARD_INPUT], scenario
        options = [
            f"{rows[name].flag}={value}" if rows[name].metavar else rows[name].flag
            for name in values
            if not isinstance(rows[name], Argument)
            for value in values[name]
        ]
        files = [v for name in values if isinstance(rows[name], Argument) for v in values[name]]
        words = [self.name, *filter(None, [question]), *options, "--json", "--", *files]
        return {"words": words, "text": text, "tables": tables}


def _value_schema(row: Option) -> dict[str, Any]:
    """Return the JSON Schema of an option's values."""
    if not row.metavar:
        return {"type": "boolean"}
    if row.type == list[str] and not isinstance(row, Argument):
        texts = {"type": "array", "items": {"type": "string"}}
        return {"anyOf": [{"type": "object"}, texts]} if _is_changes(row) else texts
    if row.type is int:
        return {"type": "integer"} | ({} if row.minimum is None else {"minimum": row.minimum})
    return {"type": "string"} | ({"enum": list(row.choices)} if row.choices else {})


def _is_changes(row: Option) -> bool:
    return row.flag == CHANGES.flag


def _changes_of_table(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the changes of a table as ``KEY=VALUE``."""
    for key, value in table.items():
        if not key or "=" in key:
            raise TcpcastError(
                f"set: {key!r} is not a key of a scenario; use network.rtt, for example"
            )
        try:
            yield f"{key}={write_value(value)}"
        except TypeError:
            text = f"set: {key} is null; remove this key, or use a value"
            raise TcpcastError(text) from None


def _argument_help(using: Mapping[str, Option], questions: int) -> str:
    """Return the help of an argument.

    A text that applies to only some subcommands begins with their names.
    """
    asking: dict[str, list[str]] = {}
    for question, row in using.items():
        text = f"{row.metavar}: {row.help_text}" if row.metavar else row.help_text
        asking.setdefault(text, []).append(question)
    if len(asking) == 1 and len(using) == questions:
        return next(iter(asking))
    return " ".join(f"For {', '.join(names)}: {text}" for text, names in asking.items())


def _option_values(name: str, value: Any, row: Option) -> Iterator[str]:
    """Convert the value of an argument to the values of the option on the command line.

    Yields one text per use of the option: "" for a flag, no text if the argument is omitted.
    """
    if isinstance(value, dict) and _is_changes(row):
        yield from _changes_of_table(value)
    elif isinstance(value, bool) or value is None:
        if value and row.metavar:
            raise TcpcastError(f"{name}: must be a string or a number, not true")
        yield from [""] if value else []
    elif not row.metavar:
        raise TcpcastError(f"{name}: must be true or false")
    elif row.type is int:
        if not re.fullmatch("[0-9]{1,18}", str(value)) or int(value) < (row.minimum or 0):
            raise TcpcastError(f"{name}: must be an integer, at least {row.minimum or 0}")
        yield str(value)
    elif isinstance(value, str | int | float):
        yield str(value)
    elif isinstance(value, list) and row.type == list[str] and not isinstance(row, Argument):
        for each in value:
            yield from _option_values(name, each, replace(row, type=str))
    else:
        raise TcpcastError(f"{name}: must be a string or a number, not a list or an object")


def _options_by_argument(rows: Iterable[Option]) -> dict[str, Option]:
    """Return options by the names of their arguments; positional arguments are left out."""
    return {
        row.flag.removeprefix("--").replace("-", "_"): replace(row, help=lambda: CHANGES_HELP)
        if _is_changes(row)
        else row
        for row in rows
        if row is not CONTEXT_OPTION and not isinstance(row, Argument)
    }


@functools.cache
def tools_by_name() -> dict[str, Tool]:
    """Return the tools by name."""
    about = "; ".join(f"{name} ({summary})" for name, summary in packaged_summaries().items())
    scenario_help = (
        f"Scenario: a packaged one, a file, or TOML text. Packaged: {about}. Syntax of TOML text, "
        f"as in {EXAMPLE_SCENARIO}:\n{read_packaged_text(EXAMPLE_SCENARIO)}"
    )

    def scenario(row: Option) -> dict[str, Option]:
        return {SCENARIO: replace(row, help=lambda: scenario_help)}

    def planned(file: Option, *rows: Option) -> dict[str, Option]:
        more = CHANGES, SEED, TABLES_OPTION
        return scenario(file) | _options_by_argument((*rows, *more))

    capture = replace(CAPTURES, help="pcap or pcapng file below the folder of the server.")
    return {
        tool.name: tool
        for tool in (
            Tool(
                "trace",
                TRACE_DESCRIPTION,
                {"": {"capture": capture, **_options_by_argument(TRACE.inputs)}},
                {"worst": MAX_ROWS},
                {"captures": CAPTURES_OUTPUT},
            ),
            Tool(
                "predict",
                PREDICT_DESCRIPTION,
                {"": _options_by_argument([*PREDICT.inputs, TABLES_OPTION])},
                output={"answers": ANSWERS_OUTPUT},
            ),
            Tool(
                "run",
                RUN_DESCRIPTION,
                {"": {**scenario(FILE), **_options_by_argument([*RUN.inputs, TABLES_OPTION])}},
                output={"scenario": {"type": "object"}, "answers": ANSWERS_OUTPUT},
            ),
            Tool(
                "plan",
                PLAN_DESCRIPTION,
                {name: planned(*list_plan_options(each)) for name, each in QUESTIONS.items()},
                output={"scenario": {"type": "object"}, "plan": PLAN_OUTPUT},
            ),
            Tool(
                "captures",
                CAPTURES_DESCRIPTION,
                {"": {}},
                output={
                    "captures": FILES_OUTPUT,
                    "scenarios": FILES_OUTPUT,
                    "omitted": {"type": "integer"},
                    "complete": {"type": "boolean"},
                },
                action="list_files",
            ),
        )
    }


CHANGES_HELP = (
    "Keys of the scenario to change: a table such as "
    '{"network.rtt": "50ms", "traffic.sources": 80}, or a list of KEY=VALUE. Keys are dotted. A '
    "value that is a table replaces the whole table at its key."
)
INSTRUCTIONS = (
    "tcpcast shows how TCP behaves on a network. It analyses captures, predicts the rate of a "
    "path, simulates scenarios, and computes the buffer, rate or number of users that meets a "
    "target. Call `captures` first to see which files exist, then `trace` for each. The resource "
    "tcpcast://schema is the JSON Schema of a scenario, and tcpcast://engines lists the engines "
    "with their domains. " + UNITS_HELP + " " + TRUST_HELP
)
"""Instructions of the server, which a client shows to its agent."""

_NUMBER = {"type": ["number", "null"]}
METRIC_OUTPUT = {
    "type": "object",
    "properties": {
        "value": _NUMBER,
        "low": _NUMBER,
        "high": _NUMBER,
        "unit": {"type": "string"},
        "trusted": {"type": "boolean"},
    },
    "required": ["value", "low", "high", "unit"],
}
ANSWERS_OUTPUT = {
    "type": "array",
    "description": "One answer per engine.",
    "items": {
        "type": "object",
        "properties": {
            "engine": {"type": "string"},
            "not_applicable": {"type": "string"},
            "warnings": {"type": "array"},
            "metrics": {"type": "object", "additionalProperties": METRIC_OUTPUT},
            "tables": {"type": "object"},
        },
        "required": ["engine"],
    },
}
PLAN_OUTPUT = {
    "type": "object",
    "properties": {
        "question": {"type": "string"},
        "value": _NUMBER,
        "low": _NUMBER,
        "high": _NUMBER,
        "unit": {"type": "string"},
        "trusted": {"type": "boolean"},
        "undecided": {"type": "boolean"},
        "interrupted": {"type": "boolean"},
        "incomplete": {"type": "boolean"},
        "bracket": {
            "type": ["object", "null"],
            "description": "The closest computed values on both sides of the answer; null if "
            "there is no such value.",
            "properties": {"low": _NUMBER, "high": _NUMBER},
        },
    },
    "required": ["question", "value", "low", "high", "unit", "interrupted", "bracket"],
}
CAPTURES_OUTPUT = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "file": {"type": "string"},
            "verdict": {"type": ["string", "null"]},
            "warnings": {"type": "array"},
            "connections": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["file", "warnings", "connections"],
    },
}
FILES_OUTPUT = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"file": {"type": "string"}, "bytes": {"type": "integer"}},
        "required": ["file", "bytes"],
    },
}
CAPTURES_DESCRIPTION = (
    "Lists the captures and the scenarios in the folder of the server, with their sizes. Use the "
    "name `file` as the argument `capture` of trace, or `scenario` of run and plan. The answer "
    "contains no warnings. `complete` is false if the folder contains more files than are listed."
)
TRACE_DESCRIPTION = (
    "Measures why TCP transfers in a packet capture were slow. The answer has one row per "
    f"direction with data, the worst first (at most {MAX_ROWS} rows without the argument "
    "`worst`). First read the columns `advice` and `limited_by`. The columns `share_...` are "
    "shares of the time. Values are measurements at one tap; null means unknown. Mention the "
    "warnings of the "
    "capture. The key `omitted` contains the number of omitted rows. To get one of these rows, "
    "set `connection` to "
    "SOURCE > DESTINATION."
)
PREDICT_DESCRIPTION = (
    "Predicts the rate of a path, or the time of a transfer, from its RTT, loss, rate and buffer. "
    "It uses formulas, or a simulation if no formula is reliable. The argument `packet` always "
    "adds a simulation. The verdict states the result. "
    f"{TRUST_HELP} {UNITS_HELP}"
)
RUN_DESCRIPTION = (
    "Answers a scenario (network, users or flows, TCP) by simulation and formulas, for example "
    f"the goodput of each of 60 users of a link. The verdict states the result. {TRUST_HELP} "
    f"{UNITS_HELP}"
)
PLAN_DESCRIPTION = (
    "Solves for the buffer, the number of users, the link rate, the number of parallel streams, "
    "or the loss that meets a target. The verdict states the result. The answer is simulated, "
    "unless `engine` names a formula such as engset. The questions `users` and `rate` require "
    "one of three targets: a mean rate (argument `rate`), a share of files above a goodput "
    f"(arguments `share` and `above`), or a mean time per file (argument `time`). {TRUST_HELP} "
    f"{UNITS_HELP}"
)
