"""Forms: their fields are those of the commands, and their answers the reports of the commands."""

import re
import shlex
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest
from tcpcast.cli import main
from tcpcast.cli.commands import COMMANDS, RUN, Command
from tcpcast.cli.options import JSON
from tcpcast.cli.page import PLANS_WITHOUT_FORM, make_forms
from tcpcast.options.command_option import FormField, Option
from tcpcast.options.path_option_definitions import PATH_OPTIONS
from tcpcast.plan.questions import QUESTIONS
from tcpcast.scenario import parse_assignments
from tcpcast.scenario.loading import get_packaged_names, load
from tcpcast.scenario.rate import TokenBucket
from tcpcast.scenario.traffic import Messages

from web.conftest import Page

FORMS = make_forms()
SMALL = {"rate": "2mbit", "loss": "2%", "rtt": "20ms"}
WEB = {"file": "web-10mbit", "run.transfers": "5000", "run.warmup": "5s"}


class Elements(HTMLParser):
    """Collects the elements of an HTML document, and its references to other resources."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [name for name, _ in attrs if name in {"src", "href", "action"}]


def test_each_command_has_one_form() -> None:
    assert list(FORMS) == [
        "predict",
        "run",
        "home",
        "trace",
        *(f"plan-{name}" for name in QUESTIONS if name not in PLANS_WITHOUT_FORM),
    ]
    fields = {each.name: each for each in FORMS["predict"].fields}
    assert set(PATH_OPTIONS) <= fields.keys()
    assert fields["stack"].default == "linux-cubic"
    assert set(FORMS["run"].by_scenario) == set(get_packaged_names())


def test_only_the_plan_of_a_shaper_has_no_form_because_no_packaged_scenario_has_a_shaper() -> None:
    assert list(PLANS_WITHOUT_FORM) == ["shaper"]
    links = [link for name in get_packaged_names() for link in load(name).links.values()]
    assert links
    for link in links:
        assert getattr(link.queue, "shaper", None) is None
        assert not isinstance(link.varying, TokenBucket)


def test_a_row_in_the_table_of_commands_is_a_form_and_a_row_in_its_inputs_a_field(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made_up = Option("made_up_rtt", "TIME", "Help of the option.", form_field=FormField("Own RTT"))
    monkeypatch.setitem(COMMANDS, "run", replace(RUN, inputs=(*RUN.inputs, made_up)))
    command = Command("engines", "Summary.", "", "", (made_up,), (JSON,), "Engines")
    monkeypatch.setitem(COMMANDS, "engines", command)
    forms = make_forms()
    for form in (forms["run"], forms["engines"]):
        own = form.fields[-1]
        assert (own.label, own.hint) == ("Own RTT", "Help of the option.")
        request = form.request({"made_up_rtt": "5ms"})
        assert request.words()[-2:] == ["--made-up-rtt", "5ms"]
    assert [each.name for each in forms["engines"].fields] == ["made_up_rtt"]
    assert request.engines() == [""]


def test_titles_keep_the_capitals_of_abbreviations(monkeypatch: pytest.MonkeyPatch) -> None:
    question = replace(QUESTIONS["buffer"], text="largest base RTT")
    monkeypatch.setitem(QUESTIONS, "buffer", question)
    assert make_forms()["plan-buffer"].title == "Largest base RTT"


def test_the_fields_of_a_scenario_set_its_keys() -> None:
    """Each initial value is that of the file, and setting it changes nothing."""
    for name, fields in FORMS["run"].by_scenario.items():
        assert FORMS["run"].request({"file": name}).words() == ["run", name]
        typed = parse_assignments(f"{each.name}={each.default}" for each in fields if each.default)
        assert load(name, changes=typed).resolved() == load(name).resolved()


def test_hints_of_keys_are_the_descriptions_of_the_schema() -> None:
    hints = {
        name: {each.name: each.hint for each in fields}
        for name, fields in FORMS["run"].by_scenario.items()
    }
    description = Messages.model_fields["size"].description
    assert description
    assert hints["two-classes"]["network.rtt"].startswith("Idle RTT of a packet and its ack")
    assert hints["home"]["link.down.rate"].startswith("Rate in IP bytes")
    # The description of messages, not of files.
    assert hints["home"]["class.call.traffic.size"].rstrip(".").lower() == description.lower()
    without = {key for of_file in hints.values() for key, hint in of_file.items() if not hint}
    assert all("host_rtt." in key for key in without)  # names of hosts


@pytest.mark.parametrize("form", [*FORMS])
def test_sliders_are_ascending_and_contain_the_initial_value(form: str) -> None:
    fields = [*FORMS[form].fields, *FORMS[form].by_scenario.get("office-50mbit", ())]
    for field in fields:
        positions = [field.position(step) for step in field.steps]
        assert positions == list(range(len(field.steps))), field.name
        if field.default and field.steps:
            near = field.steps[field.position(field.default) or 0]
            assert field.position(near) == field.position(field.default)


def test_a_typed_value_moves_the_slider_to_the_nearest_step(page: Page) -> None:
    positions = page.answer("predict", **SMALL)["positions"]
    steps = {each.name: each.steps for each in FORMS["predict"].fields}
    assert steps["rtt"][positions["rtt"]] == "19.9ms" or steps["rtt"][positions["rtt"]] == "20ms"
    assert positions["stack"] is None


def test_the_command_of_an_answer_prints_the_same_verdict(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    for form, values in (
        ("predict", SMALL),
        ("run", {"file": "web-10mbit", "network.rtt": "20ms"}),
        ("plan-max-loss", {"goodput": "20mbit"}),
    ):
        answer = page.answer(form, **values)
        words = shlex.split(answer["command"])[1:]
        assert main(words) == 0
        assert answer["verdict"] in re.sub(r"\s+", " ", capsys.readouterr().out)


def test_formulas_answer_without_figures_and_a_simulation_with_them(page: Page) -> None:
    quick = page.answer("run", **WEB)
    assert "<svg" not in quick["page"]
    assert "(by the formula engset)" in quick["verdict"]
    lines = page.lines("run", simulate="1", **WEB)
    simulated = lines[-1]
    assert [*lines[0]] == ["progress"]
    assert "<svg" in simulated["page"]
    assert re.search(r"\((± )?\d", simulated["verdict"]), "an interval"


def test_a_curve_is_a_sweep_over_one_field(page: Page) -> None:
    curve = page.answer("predict", across="loss", **SMALL)
    assert "0.0001%..20%" in curve["command"]
    assert curve["page"].count("<svg") >= 1
    request = FORMS["run"].request({"across": "traffic.sources", "simulate": "1", **WEB})
    assert request.engines() == ["engset,packet"]
    words = request.words()
    assert words[0] == "sweep"
    assert "traffic.sources=4..4000 log 5" in words


def test_a_scenario_without_a_formula_asks_for_a_simulation(page: Page) -> None:
    answer = page.answer("run", file="office-50mbit")
    assert (answer["verdict"], answer["page"]) == ("No formula applies; press Simulate.", "")


def test_report_needs_no_other_resource(page: Page) -> None:
    document = Elements(page.answer("predict", across="loss", **SMALL)["page"])
    assert document.references == []
    assert "script" not in document.tags


BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("predict", {"rtt": "100"}, "rtt", "100ms"),
    ("predict", {"rtt": "0ms"}, "rtt", "above 0"),
    ("predict", {"rate": "10mbps"}, "rate", "10mbit"),
    ("predict", {"loss": "100%"}, "loss", "loses every packet"),
    ("predict", {"mss": "0"}, "mss", "is not the payload of a packet"),
    ("predict", {"stack": "vegas"}, "stack", "linux-cubic"),
    ("predict", {"flows": "0"}, "flows", "0"),
    ("predict", {"size": "100"}, "size", "unit"),
    ("predict", {"rtt": "5" * 300}, "rtt", "at most 200"),
    ("predict", {"count": "x"}, "count", "valid integer"),
    ("predict", {"nothing": "1"}, "", "not a field"),
    ("predict", {"across": "stack"}, "", "cannot be the horizontal axis"),
    ("run", WEB | {"network.rtt": "0ms"}, "network.rtt", "above 0"),
    ("run", {"file": "web-10mbit", "traffic.sources": "-1"}, "traffic.sources", ""),
    ("run", {"file": "/etc/passwd"}, "file", "must be one of"),
    ("plan-buffer", {"loss": "0.5.5", "file": "web-10mbit"}, "loss", "1%"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "values", "field", "text"), BAD)
def test_error_names_field_with_bad_value(
    page: Page, form: str, values: dict[str, str], field: str, text: str
) -> None:
    response = page.post(form, **values)
    found, message = page.error(form, **values)
    assert response.status_code in {200, 400}
    assert found == field
    assert text in message
    assert "--" not in message, "options are called by the labels of their fields"


@pytest.mark.parametrize(
    "value", ["{ trace = '/etc/passwd' }", "{ trace = '../../../../etc/passwd' }"]
)
def test_no_value_reads_a_file_of_the_machine(page: Page, value: str) -> None:
    values = {"file": "web-10mbit", "network.bottleneck.rate": value, "simulate": "1"}
    _, message = page.error("run", **values)
    assert "the page reads only packaged scenarios and uploaded captures" in message


def test_messages_contain_no_escape_characters(page: Page) -> None:
    _, message = page.error("predict", rtt="\x1b]0;x\x07<b>")
    assert "\x1b" not in message


def test_notes_name_the_labels_of_fields(page: Page) -> None:
    """Regression: notes named keys of a scenario, which the form does not have."""
    text = unescape(page.answer("predict", rtt="60ms", loss="5%", rate="2mbit", rwnd="4KB")["page"])
    assert '"Initial window" is above "Receiver window", which therefore limits' in text


@pytest.mark.parametrize(
    ("form", "values", "field"),
    [
        ("predict", {"rtt": ""}, "rtt"),
        ("plan-streams", {"rate": "", "rtt": "50ms"}, "rate"),
        ("plan-max-loss", {"goodput": "", "rtt": "50ms"}, "goodput"),
    ],
)
def test_an_empty_required_field_is_marked(
    page: Page, form: str, values: dict[str, str], field: str
) -> None:
    """Regression: the message of a missing option names no field of the page."""
    found, message = page.error(form, **values)
    assert found == field
    assert "missing" in message
