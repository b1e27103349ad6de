"""The forms of ``tcpcast serve``: fields from the options of commands, and answers as reports.

A form gives the words of a command line. A worker process runs them, and returns the report that
the command would write, as HTML.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tcpcast.cli.commands import CAPTURES, COMMANDS
from tcpcast.cli.options import FILE
from tcpcast.cli.plan_options import list_plan_options
from tcpcast.cli.streams import Message
from tcpcast.cli.worker import Result, file_name, run_words
from tcpcast.options.command_option import REQUIRED, Argument
from tcpcast.options.path_option_definitions import OPTIONS_BY_KEY, PATH_OPTIONS
from tcpcast.options.path_scenario import list_formulas, make_path_scenario
from tcpcast.plan.questions import QUESTIONS
from tcpcast.process import output
from tcpcast.process.errors import TcpcastError, Words, naming_options, speaking, with_names
from tcpcast.quantity.ranges import Quantity, expand_range
from tcpcast.report.document import Paragraph
from tcpcast.report.html import html_page
from tcpcast.scenario import parse_assignments
from tcpcast.scenario.changes import iter_values_by_dotted_key
from tcpcast.scenario.loading import (
    get_packaged_names,
    packaged_summaries,
    parse_scenario,
    parse_toml,
    read_packaged_text,
)
from tcpcast.scenario.queue import QUEUE_NAMES
from tcpcast.scenario.schema import iter_key_descriptions, make_scenario_schema
from tcpcast.scenario.stack_descriptions import describe_stack
from tcpcast.scenario.tcp import STACKS
from tcpcast.sweeps.axes import QUANTITY_KINDS, common_quantity_kind, value_as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from tcpcast.options.command_option import Option
    from tcpcast.scenario import Scenario

SLIDER_STEPS = 61
SLIDER_RATIO = 30
"""Ratio of the end of a slider to the value of the scenario."""
CURVE_POINTS, SIMULATED_POINTS = 13, 5
"""Number of values of a curve of formulas, and of a curve with simulations."""
MAX_POINT_WALL = "15s"
"""Time limit of each simulation of a curve, whose ends may need many packets."""
MAX_LENGTH = 200
"""Maximum length of a value in characters."""
MAX_PAGE_BYTES = 32 * 2**20
DEFAULT_SCENARIO = "office-50mbit"
DEFAULT_NETWORK = "home"
"""Scenario of plans that vary a key of a link."""
PLANS_WITHOUT_FORM = {"shaper"}
"""Plans that no packaged scenario can answer."""
COMMON_STACKS = (
    *("linux-cubic", "linux-reno", "linux-bbr", "bbr3"),
    *("rfc-newreno", "rfc-reno", "rfc-sack"),
)
"""The most common stacks, listed before the classic stacks."""
KEYS_OF_EACH_SCENARIO = (
    *("network.rtt", "network.bottleneck.rate", "network.bottleneck.buffer"),
    *("network.bottleneck.queue", "network.bottleneck.loss", "tcp.stack", "run.seed"),
)
"""Keys with a field although the scenario may use their defaults."""
INPUTS_WITHOUT_FIELD = {"context", "files", "second_capture", "packet", "changes", "seed"}
"""Inputs without a field: one capture is uploaded, a button simulates, and keys have fields."""
LINK_RATE = r"link\.[^.]+\.rate"
HIDDEN_KEYS = re.compile(r"name|probes\..*|sweep\..*|class\.[^.]+\.name|network\.hop\.[^.]+\.name")
RARE_KEYS = re.compile(
    r"run\.|(class\.[^.]+\.)?tcp\.(?!stack)|network\.(packet|ack)$|.*\.(kind|distribution|minimum)$"
)


class Field(NamedTuple):
    """An input of a form.

    ``words`` begins the words of the option, ``names`` are its names in messages, and ``unchanged``
    is the value for which the command needs no words. ``steps`` are the values of the slider, as
    typed; ``choices`` maps the values of a choice to their descriptions.
    """

    name: str
    label: str
    hint: str
    words: tuple[str, ...]
    names: tuple[str, ...]
    default: str = ""
    unchanged: str = ""
    steps: tuple[str, ...] = ()
    choices: Mapping[str, str] = {}
    more: bool = False

    def position(self, text: str) -> int | None:
        """Return the index of the step nearest to a value; None without a slider."""
        kind = common_quantity_kind([*self.steps, text]) if self.steps else None
        if kind is None:
            return None
        read = QUANTITY_KINDS[kind].read

        def distance(at: int) -> float:
            step, value = read(self.steps[at]), read(text)
            return (
                abs(math.log(step / value)) if step > 0 and value > 0 else abs(step - value) * 1e9
            )

        return min(range(len(self.steps)), key=distance)


@dataclass(frozen=True, slots=True)
class Form:
    """A command with its fields; ``by_scenario`` are the fields of each packaged scenario."""

    name: str
    title: str
    hint: str
    command: tuple[str, ...]
    fields: tuple[Field, ...]
    by_scenario: Mapping[str, tuple[Field, ...]] = field(default_factory=dict)
    takes_file: bool = False

    def describe(self) -> dict[str, Any]:
        """Return the JSON form for the page."""

        def describe(fields: Sequence[Field]) -> list[dict[str, Any]]:
            shown = ("name", "label", "default", "steps", "choices", "more", "hint")
            return [{name: getattr(each, name) for name in shown} for each in fields]

        return {
            "name": self.name,
            "title": self.title,
            "hint": self.hint,
            "fields": describe(self.fields),
            "scenarios": {name: describe(fields) for name, fields in self.by_scenario.items()},
            "file": self.takes_file,
            "curve": self.has_curve,
        }

    def request(self, values: Mapping[str, str], file: str = "") -> Request:
        """Return the request that the worker process answers.

        Parameters
        ----------
        values
            Texts by field name; also ``simulate`` ("1"), and ``across``, the field of a curve.
        file
            Name of the uploaded file.

        Raises
        ------
        TcpcastError
            A field does not exist, or a value is too long or not one of the choices.
        """
        given = dict(values)
        simulated, across = given.pop("simulate", "") == "1", given.pop("across", "")
        initial = {each.name: each.default for each in self.fields}
        scenario = given.get("file", initial.get("file", DEFAULT_SCENARIO))
        fields = {each.name: each for each in (*self.fields, *self.by_scenario.get(scenario, ()))}
        for name, text in given.items():
            if name not in fields:
                raise TcpcastError(f"{name[:MAX_LENGTH]!r} is not a field of this form")
            choices = fields[name].choices
            if len(text) > MAX_LENGTH:
                raise FieldError(name, f"must contain at most {MAX_LENGTH} characters")
            if choices and text and text not in choices:
                raise FieldError(name, f"must be one of {', '.join(choices)}")
        if across and not (self.has_curve and across in fields and fields[across].steps):
            raise TcpcastError(f"{across[:MAX_LENGTH]!r} cannot be the horizontal axis of a curve")
        typed = {name: given.get(name, each.default).strip() for name, each in fields.items()}
        if self.takes_file and not file:
            raise TcpcastError("choose a capture")
        return Request(self.command, fields, typed, across, simulated, file and file_name(file))

    @property
    def has_curve(self) -> bool:
        """True if the command can run over the values of a field."""
        return self.command[0] in {"predict", "run"}


@dataclass(frozen=True, slots=True)
class FieldWords(Words):
    """Words of a form: the label of its field instead of an option.

    Parameters
    ----------
    labels
        Labels by option.
    """

    labels: Mapping[str, str] = field(default_factory=dict, hash=False)

    def option(self, flag: str) -> str:
        """Return the label in quotation marks; an option without a field keeps its name."""
        return f'"{self.labels[flag]}"' if flag in self.labels else flag


class FieldError(TcpcastError):
    """An invalid value in ``field``."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.field = name


class Request(NamedTuple):
    """A command, the values of its fields, the field of the curve, and an uploaded file."""

    command: tuple[str, ...]
    fields: Mapping[str, Field]
    values: Mapping[str, str]
    across: str
    simulated: bool
    file: str

    def words(self, engine: str = "") -> list[str]:
        """Return the words of the command line, with one or more engines."""
        command, values = self.command, dict(self.values)
        more = ["--packet"] if self.simulated and command[0] == "predict" else []
        if self.across:
            points = SIMULATED_POINTS if self.simulated else CURVE_POINTS
            steps = [step for step in self.fields[self.across].steps if step != "0%"]
            values[self.across] = span = f"{steps[0]}..{steps[-1]}"
            more += ["--points", str(points)]
            if command[0] == "run":
                del values[self.across]
                command = ("sweep",)
                more = ["--vary", f"{self.across}={span} log {points}", "--processes", "1"]
            more += ["--set", f"run.max_wall={MAX_POINT_WALL}"] if self.simulated else []
        given = {name: text for name, text in values.items() if self.is_given(name, text)}
        more += ["--engine", engine] if engine else []
        options = [word for each in given.items() for word in self._option_words(*each)]
        return [*command, *options, *more, *(["--", self.file] if self.file else [])]

    def is_given(self, name: str, text: str) -> bool:
        """Return True if the command needs words for the value of a field."""
        return text not in {"", self.fields[name].unchanged}

    def _option_words(self, name: str, text: str) -> list[str]:
        words = list(self.fields[name].words)
        if text == "yes":
            return words
        return (
            [*words[:-1], words[-1] + text]
            if words[-1:] and words[-1][-1] == "="
            else [*words, text]
        )

    def engines(self) -> list[str]:
        """Return the engines to request: each item is an attempt, "" for those of the command."""
        if self.command[0] not in {"run", "plan"} or self.is_given("engine", self.values["engine"]):
            return [""]
        if self.command[0] == "plan":
            return [""] if self.simulated else list_formulas(self._scenario())
        names = [*list_formulas(self._scenario()), *["packet"] * self.simulated]
        return [",".join(names)] if names else []

    def options_by_key(self) -> dict[str, str]:
        """Return the options of a path by key; empty if the fields are keys of a scenario."""
        return {} if "file" in self.values else OPTIONS_BY_KEY

    def _scenario(self) -> Scenario:
        """Return the scenario whose formulas are requested."""
        given = {n: text for n, text in self.values.items() if self.is_given(n, text)}
        if "file" not in self.values:
            options = {n: text == "yes" or text for n, text in given.items() if n in PATH_OPTIONS}
            return make_path_scenario({**QUESTIONS[self.command[1]].placeholders, **options})
        changes = [
            f"{n}={text}" for n, text in given.items() if self.fields[n].words[:1] == ("--set",)
        ]
        name = given["file"]
        return parse_scenario(read_packaged_text(name), name, changes=parse_assignments(changes))


def answer(request: Request, folder: str, limit_s: float) -> dict[str, Any]:
    """Run the command of a request in this process, and return its report.

    Parameters
    ----------
    request
        The request.
    folder
        Folder of the uploaded file; its file ``.progress`` receives the finished share.
    limit_s
        Time limit of the command.

    Returns
    -------
    dict
        ``verdict``, ``page`` (the report as a page), ``command`` and ``messages``; or ``error``
        with ``message`` and ``field``.
    """
    with open(f"{folder}/.progress", "w", encoding="ascii") as sink:

        def report_progress(share: float) -> None:
            sink.seek(0)
            sink.write(f"{share:.4f}")
            sink.flush()

        speech = FieldWords(
            labels={name: each.label for each in request.fields.values() for name in each.names}
        )
        run = partial(
            run_words,
            folder=folder,
            speech=speech,
            refusal="the page reads only packaged scenarios and uploaded captures",
            limit_s=limit_s,
            on_progress=report_progress,
        )
        figures = request.simulated or request.across or request.command[0] in {"plan", "trace"}
        found: dict[str, Any] = {
            "verdict": "No formula applies; press Simulate.",
            "page": "",
            "command": shlex.join(["tcpcast", *request.words()]),
            "messages": "",
        }
        try:
            with speaking(speech), naming_options(request.options_by_key()):
                engines = request.engines()
            for engine in engines:
                words = request.words(engine)
                result = run([words[0], *_report_words(words, figures=bool(figures))])
                if result.documents:
                    found = _report(result, words)
                    break
                error = _error_of(request, result.messages)
                if request.command[0] != "plan" or request.simulated or error["field"]:
                    return {"error": error}
        except TcpcastError as refusal:
            lines = [Message(key, text, is_error=True) for key, text in refusal.lines()]
            return {"error": _error_of(request, lines)}
    positions = {name: each.position(request.values[name]) for name, each in request.fields.items()}
    return {**found, "positions": positions}


def _report(result: Result, words: Sequence[str]) -> dict[str, str]:
    """Return the verdict, the page, the command and the messages of a result."""
    (document,) = result.documents
    page = html_page(document, output.REPORT_KIND.mark.decode())
    if len(page) > MAX_PAGE_BYTES:
        raise TcpcastError("the report is too large; use the command line")
    texts = [part for part in document.parts if isinstance(part, Paragraph) and part.text]
    first = next((part for part in texts if part.role == "heading"), texts[0] if texts else None)
    return {
        "verdict": "" if first is None else first.lead + first.text,
        "page": page,
        "command": shlex.join(["tcpcast", *words]),
        "messages": "\n".join(each.text for each in result.messages),
    }


def _report_words(words: Sequence[str], *, figures: bool) -> list[str]:
    """Return the words after the command with the option of a report before the arguments."""
    option = ["--out", "page.html" if figures else "page.md"]
    end = words.index("--") if "--" in words else len(words)
    return [*words[1:end], *option, *words[end:]]


def _error_of(request: Request, messages: Sequence[Message]) -> dict[str, str]:
    """Return the errors of a command, or else its messages, and the field of the first error."""
    errors = [each for each in messages if each.is_error] or messages
    by_name = {name: each.name for each in request.fields.values() for name in each.names}
    keys = [key for each in errors for key in _keys_above(each.key) if key in by_name]
    text = "\n".join(each.text for each in errors) or "the command printed no answer"
    return {"message": text, "field": by_name[keys[0]] if keys else ""}


def _keys_above(key: str) -> Iterator[str]:
    """Yield a dotted key and the tables above it, the longest first."""
    while key:
        yield key
        key = key.rpartition(".")[0]


def _slider(low: str, high: str, *between: str) -> tuple[str, ...]:
    """Return the values of a slider in order; empty if the ends are not quantities of one kind."""
    name = common_quantity_kind([low, high])
    if name is None:
        return ()
    kind = QUANTITY_KINDS[name]
    whole = name in {"number", "packets", "bytes"} and "." not in low
    steps = expand_range(
        Quantity("", kind.read, kind.write, "", whole), f"{low}..{high}", SLIDER_STEPS
    )
    by_value = {kind.read(text): text for text in (*steps, *between)}
    return tuple(by_value[value] for value in sorted(by_value))


def _slider_around(text: str) -> tuple[str, ...]:
    """Return the values of a slider around the value of a scenario."""
    name = common_quantity_kind([text])
    if name is None or not (value := QUANTITY_KINDS[name].read(text)):
        return ()
    write = QUANTITY_KINDS[name].write
    low, high = value / SLIDER_RATIO, value * SLIDER_RATIO
    if name in {"number", "packets", "bytes"}:
        low, high = max(1.0, float(round(low))), float(round(high))
    if name == "ratio":
        high = min(high, 0.5)
    low, high = (float(f"{each:.2g}") for each in (low, high))
    return _slider(write(low), write(high), text) if low < value < high else ()


def _stacks() -> dict[str, str]:
    first = [stack for stack in COMMON_STACKS if stack in STACKS]
    names = (*first, *(stack for stack in STACKS if stack not in first))
    return {name: describe_stack(name) for name in names}


def _label(row: Option) -> str:
    if row.form_field is not None:
        return row.form_field.label
    if row.name == "stack":
        return "TCP stack"
    return row.flag.removeprefix("--").replace("-", " ").capitalize()


def _speaking_of_fields(rows: Iterable[Option]) -> AbstractContextManager[None]:
    """Use the labels of fields in the hints of a form."""
    return speaking(FieldWords(labels={row.flag: _label(row) for row in rows}))


def _option_field(row: Option, example: str = "") -> Field:
    """Return the field of an option; its initial value is that of an example of the command."""
    page = row.form_field
    choices = dict.fromkeys(row.choices, "")
    default, label = "" if page is None else page.default, _label(row)
    if not row.metavar:
        choices = {"no": "", "yes": ""}
    if row.name == "stack":
        choices, default = _stacks(), COMMON_STACKS[0]
    words = example.split()
    default = words[words.index(row.flag) + 1] if row.flag in words[:-1] else default
    steps = _slider_around(default)
    if page is not None and page.low:
        steps = _slider(page.low, page.high, *["0%"] * page.starts_at_zero)
    return Field(
        row.name,
        label,
        row.help_text if page is None or not page.hint else page.hint,
        () if isinstance(row, Argument) else (row.flag,),
        (row.flag, *row.keys),
        default or ("no" if not row.metavar else ""),
        "no" if not row.metavar else str(row.default or ""),
        steps,
        choices,
        not (steps or default or row.default is REQUIRED) or not row.metavar,
    )


def _key_field(key: str, values: Mapping[str, Any]) -> Field:
    """Return the field of a key of a scenario; ``values`` are its present values, or None."""
    value = values[key]
    text = "" if value is None else value_as_text(value)
    choices: dict[str, str] = {}
    if key.endswith("tcp.stack"):
        choices, text = _stacks(), text or COMMON_STACKS[0]
    elif key.endswith(".queue") and (value is None or value in QUEUE_NAMES):
        choices, text = dict.fromkeys(QUEUE_NAMES, ""), text or QUEUE_NAMES[0]
    return Field(
        key,
        key,
        _key_hint(key, values),
        ("--set", f"{key}="),
        (key,),
        text,
        text,
        () if choices else _slider_around(text),
        choices,
        bool(RARE_KEYS.match(key)),
    )


@cache
def _scenario_schema() -> dict[str, Any]:
    return make_scenario_schema()


def _key_hint(key: str, values: Mapping[str, Any]) -> str:
    """Return the description of a key in the schema as a sentence, or ""."""
    schema, names = _scenario_schema(), key.split(".")
    text = next(iter_key_descriptions(schema, schema["$defs"], names, values), "")
    return text and f"{text[0].upper()}{text[1:]}."


def _fields_of_scenario(name: str) -> tuple[Field, ...]:
    values = dict(_iter_values(parse_toml(read_packaged_text(name), name)))
    has_links = any(key.startswith("link.") for key in values)
    common = [k for k in KEYS_OF_EACH_SCENARIO if not (has_links and k.startswith("network."))]
    queues = [f"{k.rpartition('.')[0]}.queue" for k in values if re.fullmatch(LINK_RATE, k)]
    values = dict.fromkeys([*common, *queues]) | values
    replaced = tuple(
        key.split(".", 3 if key.startswith("network.") else 2)[-1]
        for key in values
        if key.startswith(("class.", "network.hop."))
    )  # the keys of classes and hops replace those of the whole network

    def is_shown(key: str) -> bool:
        return not HIDDEN_KEYS.fullmatch(key) and (
            values[key] is not None
            or not (key.endswith(replaced) or any(each.startswith(f"{key}.") for each in values))
        )

    return tuple(_key_field(key, values) for key in values if is_shown(key))


def _iter_values(tables: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a scenario by dotted key, those of named tables by their name."""
    for key, value in iter_values_by_dotted_key(tables, above=above):
        tables_of = value if isinstance(value, list) and value else ()
        if tables_of and all(isinstance(each, dict) for each in tables_of):
            for at, each in enumerate(tables_of):
                yield from _iter_values(each, f"{key}.{each.get('name', at)}.")
        else:
            yield key, value


def make_forms() -> dict[str, Form]:
    """Return the forms by name, in the order of the page."""
    by_scenario = {name: _fields_of_scenario(name) for name in get_packaged_names()}
    scenario = Field("file", "Scenario", "", (), (), DEFAULT_SCENARIO, choices=packaged_summaries())
    forms = []
    for command in COMMANDS.values():
        if not command.form_title:
            continue
        rows = [row for row in command.inputs if row.name not in INPUTS_WITHOUT_FIELD]
        with _speaking_of_fields(rows):
            fields = [scenario if row is FILE else _option_field(row) for row in rows]
        forms.append(
            Form(
                command.name,
                command.form_title,
                command.summary,
                (command.name,),
                tuple(fields),
                by_scenario if scenario in fields else {},
                CAPTURES in command.inputs,
            )
        )
    for name, question in QUESTIONS.items():
        if name in PLANS_WITHOUT_FORM:
            continue
        rows = [row for row in list_plan_options(question) if not isinstance(row, Argument)]
        with _speaking_of_fields(rows):
            fields = [_option_field(row, question.example) for row in rows]
            about = with_names(f"{question.summary} {question.about}")
        keys: dict[str, tuple[Field, ...]] = {}
        if not question.required_path_options:  # the path is a scenario
            varies_link = question.key.startswith("link.")
            fields.append(scenario._replace(default=DEFAULT_NETWORK) if varies_link else scenario)
            solved = {question.key, f"traffic.{question.key}"}
            keys = {
                file: tuple(each for each in of_file if each.name not in solved)
                for file, of_file in by_scenario.items()
            }
        forms.append(
            Form(
                f"plan-{name}",
                question.text[0].upper() + question.text[1:],
                about,
                ("plan", name),
                tuple(fields),
                keys,
            )
        )
    return {each.name: each for each in forms}
