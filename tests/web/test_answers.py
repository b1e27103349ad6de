"""Each question of the page has the answers that its command gives."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import tcpcast
from tcpcast.report.quantity import Scale, interval_text
from tcpcast.scenario.stack_facts import describe_stack
from tcpcast.scenario.tcp import STACKS
from tcpcast.web.questions.question_form import typed
from tcpcast.web.questions.winner import WINNER
from tcpcast.web.simulation import simulate

if TYPE_CHECKING:
    from pathlib import Path

    from web.conftest import Page

QUESTIONS = ("path", "flows", "transfer", "winner", "users", "buffer")


def test_the_questions_are_offered_with_fields_and_sliders(page: Page) -> None:
    offered = page.client.get("/api/questions").json()["questions"]
    assert tuple(each["name"] for each in offered) == QUESTIONS
    fields = {field["name"]: field for field in offered[0]["fields"]}
    assert fields["rtt"]["steps"][0] == "1ms"
    assert fields["loss"]["steps"][0] == "0%"
    assert next(iter(fields["stack"]["choices"])) == "linux-cubic"
    assert fields["stack"]["choices"] == {stack: describe_stack(stack) for stack in STACKS}
    assert fields["rwnd"]["more"] is True


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_as_it_stands(page: Page, question: str) -> None:
    told = page.evaluate(question)
    given = [answer for answer in told["answers"] if answer["value"] is not None]
    assert given
    assert told["verdict"]
    assert all(answer["text"] and answer["what"] for answer in given)
    refused = [answer for answer in told["answers"] if answer["value"] is None]
    assert all(answer["not_applicable"] for answer in refused)


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q != "transfer"])
def test_a_curve_goes_through_the_answer(page: Page, question: str) -> None:
    told = page.evaluate(question)
    response = page.post("/api/curve", {"question": question, "values": {}})
    assert response.status_code == 200, response.text
    curve = response.json()
    assert curve["x"] == sorted(curve["x"])
    here = curve["x"].index(curve["here"])
    drawn = {each["name"]: each["values"][here] for each in curve["series"]}
    answers = {a["name"]: a["value"] for a in told["answers"] if a["value"] is not None}
    assert drawn == pytest.approx(answers)


def test_an_answer_outside_its_domain_is_marked(page: Page) -> None:
    told = page.evaluate("path", loss="30%", stack="linux-reno", rate="unlimited")
    by_name = {answer["name"]: answer for answer in told["answers"]}
    assert by_name["pftk"]["trusted"] is False
    assert by_name["pftk"]["regime"] == "timeouts"


def test_a_transfer_that_no_formula_times_takes_what_its_goodput_does(page: Page) -> None:
    told = page.evaluate("transfer", size="500GB", loss="0.1%")
    rate, (time,) = told["verdict"], told["sentences"]
    assert rate.startswith("About 8.96 Mbit/s; limited by loss")
    assert time.startswith("500 GB takes ")
    assert time.endswith("days) at this goodput, including slow start from 10 packets.")


def test_slow_formulas_can_be_left_for_later(page: Page) -> None:
    asked = {"question": "transfer", "values": {"size": "20KB"}}
    quick = page.post("/api/evaluate", {**asked, "quick": True}).json()
    assert quick["left_out"] == ["short"]
    assert [answer["name"] for answer in quick["answers"]] == ["cardwell"]
    whole = page.post("/api/evaluate", asked).json()
    assert {answer["name"] for answer in whole["answers"]} == {"cardwell", "short"}


def test_sliders_stand_where_the_values_are(page: Page) -> None:
    offered = page.client.get("/api/questions").json()["questions"][0]
    steps = {field["name"]: field["steps"] for field in offered["fields"]}
    positions = page.evaluate("path", rtt="0.2s", loss="0", rate="20mbit")["positions"]
    assert steps["rtt"][positions["rtt"]] in {"200ms", "0.2s"}
    assert positions["loss"] == 0
    assert positions["stack"] is None


ASKED: dict[str, dict[str, str]] = {
    "path": {"loss": "1%", "stack": "linux-reno", "rwnd": "64KiB"},
    "flows": {"flows": "3"},
    "transfer": {"size": "12KB"},
    "users": {"sources": "40", "stack": "rfc-reno"},
}


def values_of(answers: list[dict[str, Any]], metric: str) -> dict[str, float]:
    return {
        answer["engine"]: answer["metrics"][metric]["value"]
        for answer in answers
        if metric in answer.get("metrics", {})
    }


def run_shell(command: str, folder: Path) -> str:
    """Run what was copied as a shell would, with the tcpcast of these tests."""
    prelude = f'tcpcast() {{ {sys.executable} -m tcpcast "$@"; }}\n'
    done = subprocess.run(
        ["sh", "-c", prelude + command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("question", ASKED)
def test_copies_give_the_answer_again(page: Page, question: str, tmp_path: Path) -> None:
    told = page.evaluate(question, **ASKED[question])
    metric = told["metric"]["name"]
    shown = {a["engine"]: a["value"] for a in told["answers"] if a["value"] is not None}
    command = json.loads(run_shell(f"{told['copy']['command']} --json", tmp_path))
    assert values_of(command["answers"], metric) == shown

    space: dict[str, Any] = {}
    exec(told["copy"]["python"], space)
    program = {a.engine: a[metric] for a in space["answers"] if metric in a.metrics}
    assert program == shown

    file = tmp_path / "copied.toml"
    file.write_text(told["copy"]["scenario"], encoding="utf-8")
    again = tcpcast.run(file, list(shown))
    assert {a.engine: a[metric] for a in again} == shown


def test_copies_of_a_buffer_give_the_plan_again(page: Page, tmp_path: Path) -> None:
    told = page.evaluate("buffer", loss="2%", sources="60")
    command = json.loads(run_shell(f"{told['copy']['command']} --json", tmp_path))
    packets = command["plan"]["value"]
    start = f"The smallest buffer for a loss of 2% is {packets:,.0f} packets"
    assert told["verdict"].startswith(start)
    space: dict[str, Any] = {}
    exec(told["copy"]["python"], space)
    assert space["plan"].value == packets
    assert f'buffer = "{packets:.0f}pkt"' in told["copy"]["scenario"]


def test_copies_of_who_wins_write_the_scenario_that_is_simulated(
    page: Page, tmp_path: Path
) -> None:
    told = page.evaluate("winner", **{"rate": "5mbit", "stack-b": "linux-reno"})
    short = told["copy"]["command"].replace('duration = "80s"', 'duration = "5s"')
    found = json.loads(run_shell(f"{short} --json", tmp_path))
    names = found["answers"][0]["tables"]["by_class"]["columns"]["name"]
    assert names == ["a", "b"]
    assert tcpcast.load(tmp_path / "who-wins.toml").populations[1].tcp.stack == "linux-reno"
    told_again = page.evaluate("winner", **{"rate": "5mbit", "stack-b": "linux-reno"})
    assert told_again["copy"] == told["copy"]


def test_deep_buffers_are_simulated_for_longer(page: Page) -> None:
    """The share of BBR takes minutes to settle in 16 BDP; 60 s gave 2.4 instead of 7.6 Mbit/s."""
    deep = page.evaluate("winner", buffer="16bdp")["copy"]["command"]
    assert 'duration = "640s"' in deep
    assert 'duration = "80s"' in page.evaluate("winner")["copy"]["command"]


def test_shares_that_drift_have_no_interval_on_the_page() -> None:
    values = {field.name: field.default for field in WINNER.fields} | {"buffer": "16bdp"}
    tables = typed(dict(WINNER.tables(values)))
    tables["run"]["duration"] = "60s"
    (answer,) = tcpcast.run(tcpcast.Scenario.from_dict(tables), ["packet"])
    shares = WINNER.simulated(values, answer)
    assert list(shares) == ["A: linux-cubic", "B: linux-bbr"]
    shown = {interval_text(metric, Scale(1e6, "Mbit/s")) for metric in shares.values()}
    assert shown <= {"still drifting", "the run is too short"}


def test_copies_simulate_once_the_page_has(page: Page) -> None:
    def copied(question: str) -> str:
        body = {"question": question, "values": {}, "simulated": True, "quick": True}
        command: str = page.post("/api/evaluate", body).json()["copy"]["command"]
        return command

    assert copied("path").endswith(" --packet")
    assert copied("users").endswith(",packet")
    assert copied("buffer").endswith(" --verify")


def test_warnings_are_sorted_and_name_their_models(page: Page) -> None:
    told = page.evaluate("path", loss="2%", stack="pftk-reno", rwnd="4pkt", iw="10")
    about_scenario = [text for text in told["warnings"] if "tcp.initial_window is above" in text]
    assert len(about_scenario) == 1
    told = page.evaluate("path", loss="30%", stack="linux-reno")
    outside = ["outside its domain" in text for text in told["warnings"]]
    assert any(outside)
    assert outside == sorted(outside, reverse=True)
    assert any(text.startswith("mathis, td-only: ") for text in told["warnings"])
    assert len(set(told["warnings"])) == len(told["warnings"])


def test_warnings_are_about_models_with_a_value(page: Page) -> None:
    told = page.evaluate("users", sources="200", off="100ms")
    names = {answer["name"] for answer in told["answers"] if answer["value"] is not None}
    assert told["warnings"]
    for text in told["warnings"]:
        assert set(text.partition(":")[0].split(", ")) <= names


def test_a_suggestion_names_the_fields_of_the_page(page: Page) -> None:
    told = page.evaluate("users", sources="20", stack="max-plus-reno")
    by_name = {answer["name"]: answer["not_applicable"] for answer in told["answers"]}
    assert by_name["engset"].endswith('; write engset-newreno for "TCP stack"')


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("users", {"sources": "200", "stack": "linux-reno"}),
        ("users", {"sources": "200", "off": "100ms"}),
        ("path", {"stack": "dctcp"}),
        ("path", {"loss": "0%", "stack": "rfc-newreno"}),
        ("transfer", {"loss": "60%", "stack": "linux-bbr"}),
        ("buffer", {"loss": "0.001%", "sources": "1000"}),
    ],
)
def test_no_text_of_the_page_names_an_option(
    page: Page, question: str, values: dict[str, str]
) -> None:
    told = page.evaluate(question, **values)
    reasons = [answer["not_applicable"] or "" for answer in told["answers"]]
    texts = [told["verdict"], *told["sentences"], *told["warnings"], *reasons]
    assert [text for text in texts if "--" in text] == []


@pytest.mark.parametrize(
    ("values", "field", "message"),
    [
        (
            {"loss": "0%", "rate": "unlimited"},
            "loss",
            'write 1% for "Random loss", or write 100mbit for "Rate of the link", '
            'or write 64KiB for "Receiver window"',
        ),
        (
            {"rate": "unlimited", "buffer": "3bdp"},
            "buffer",
            'Buffer: a link without a rate has no queue; write 100mbit for "Rate of the link"',
        ),
    ],
)
def test_an_error_suggests_values_of_fields(
    page: Page, values: dict[str, str], field: str, message: str
) -> None:
    status, named, told = page.refused({"question": "path", "values": values})
    assert (status, named) == (400, field)
    assert told.endswith(message)


def test_a_formula_is_named_before_a_simulation(page: Page) -> None:
    assert "(by the formula cubic-response)" in page.evaluate("path")["verdict"]
    assert "(by the formula pftk)" in page.evaluate("path", stack="rfc-newreno")["verdict"]
    assert page.evaluate("path", stack="linux-bbr")["verdict"].startswith("The flow gets at most ")


def test_the_verdict_after_a_simulation_is_that_of_the_command(page: Page, tmp_path: Path) -> None:
    values = {"rate": "1mbit", "loss": "5%", "rtt": "20ms"}
    told = page.evaluate("path", **values)
    sent: list[dict[str, Any]] = []
    simulate({"question": "path", "values": values}, sent.append)
    first, *others = [message["point"] for message in sent if "point" in message]
    (tmp_path / "copied.toml").write_text(told["copy"]["scenario"], encoding="utf-8")
    command = "tcpcast run copied.toml --engine cubic-response,packet --json"
    assert first["heading"]["verdict"] == json.loads(run_shell(command, tmp_path))["verdict"]
    assert all("heading" not in point for point in others)
    labels = [chart["label"] for chart in first["over_time"]]
    assert labels == ["Congestion window", "Goodput"]
    for chart in first["over_time"]:
        (line,) = chart["lines"]
        assert len(line["values"]) == len(chart["x"]) == len(line["low"])
        assert all(value is None or value >= 0 for value in line["values"])
