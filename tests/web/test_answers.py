"""Each question of the page returns the same answers as its command."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import tcpcast
from tcpcast.report.quantity import Scale, interval_text
from tcpcast.scenario.stack_descriptions import describe_stack
from tcpcast.scenario.tcp import STACKS
from tcpcast.web.questions.competing_stacks import WINNER
from tcpcast.web.questions.question_form import remove_omitted_keys
from tcpcast.web.simulation import simulate

if TYPE_CHECKING:
    from pathlib import Path

    from web.conftest import Page

QUESTIONS = ("path", "flows", "transfer", "winner", "users", "buffer")


def test_questions_list_fields_and_slider_steps(page: Page) -> None:
    offered = page.client.get("/api/questions").json()["questions"]
    assert tuple(question["name"] for question in offered) == QUESTIONS
    fields = {field["name"]: field for field in offered[0]["fields"]}
    assert fields["rtt"]["steps"][0] == "1ms"
    assert fields["loss"]["steps"][0] == "0%"
    assert next(iter(fields["stack"]["choices"])) == "linux-cubic"
    assert fields["stack"]["choices"] == {stack: describe_stack(stack) for stack in STACKS}
    assert fields["rwnd"]["more"] is True


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_has_answers_for_default_values(page: Page, question: str) -> None:
    evaluation = page.evaluate(question)
    given = [answer for answer in evaluation["answers"] if answer["value"] is not None]
    assert given
    assert evaluation["verdict"]
    assert all(answer["text"] and answer["what"] for answer in given)
    refused = [answer for answer in evaluation["answers"] if answer["value"] is None]
    assert all(answer["not_applicable"] for answer in refused)


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q != "transfer"])
def test_curve_contains_the_answers(page: Page, question: str) -> None:
    evaluation = page.evaluate(question)
    response = page.post("/api/curve", {"question": question, "values": {}})
    assert response.status_code == 200, response.text
    curve = response.json()
    assert curve["x"] == sorted(curve["x"])
    here = curve["x"].index(curve["here"])
    curve_values = {
        series_item["name"]: series_item["values"][here] for series_item in curve["series"]
    }
    answers = {a["name"]: a["value"] for a in evaluation["answers"] if a["value"] is not None}
    assert curve_values == pytest.approx(answers)


def test_answer_outside_domain_is_marked_untrusted(page: Page) -> None:
    evaluation = page.evaluate("path", loss="30%", stack="linux-reno", rate="unlimited")
    by_name = {answer["name"]: answer for answer in evaluation["answers"]}
    assert by_name["pftk"]["trusted"] is False
    assert by_name["pftk"]["regime"] == "timeouts"


def test_transfer_time_follows_goodput_without_transfer_formula(page: Page) -> None:
    evaluation = page.evaluate("transfer", size="500GB", loss="0.1%")
    rate, (time,) = evaluation["verdict"], evaluation["sentences"]
    assert rate.startswith("About 8.96 Mbit/s; limited by loss")
    assert time.startswith("500 GB takes ")
    assert time.endswith("days) at this goodput, including slow start from 10 packets.")


def test_quick_evaluation_leaves_out_slow_formulas(page: Page) -> None:
    body = {"question": "transfer", "values": {"size": "20KB"}}
    quick = page.post("/api/evaluate", {**body, "quick": True}).json()
    assert quick["left_out"] == ["short"]
    assert [answer["name"] for answer in quick["answers"]] == ["cardwell"]
    complete = page.post("/api/evaluate", body).json()
    assert {answer["name"] for answer in complete["answers"]} == {"cardwell", "short"}


def test_slider_positions_match_values(page: Page) -> None:
    offered = page.client.get("/api/questions").json()["questions"][0]
    steps = {field["name"]: field["steps"] for field in offered["fields"]}
    positions = page.evaluate("path", rtt="0.2s", loss="0", rate="20mbit")["positions"]
    assert steps["rtt"][positions["rtt"]] in {"200ms", "0.2s"}
    assert positions["loss"] == 0
    assert positions["stack"] is None


EXAMPLE_VALUES: dict[str, dict[str, str]] = {
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
    """Run a copied command in a shell, with the tcpcast of these tests."""
    prelude = f'tcpcast() {{ {sys.executable} -m tcpcast "$@"; }}\n'
    done = subprocess.run(
        ["sh", "-c", prelude + command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("question", EXAMPLE_VALUES)
def test_copied_command_python_and_scenario_give_same_answers(
    page: Page, question: str, tmp_path: Path
) -> None:
    evaluation = page.evaluate(question, **EXAMPLE_VALUES[question])
    metric = evaluation["metric"]["name"]
    shown = {a["engine"]: a["value"] for a in evaluation["answers"] if a["value"] is not None}
    command = json.loads(run_shell(f"{evaluation['copy']['command']} --json", tmp_path))
    assert values_of(command["answers"], metric) == shown

    namespace: dict[str, Any] = {}
    exec(evaluation["copy"]["python"], namespace)
    program = {a.engine: a[metric] for a in namespace["answers"] if metric in a.metrics}
    assert program == shown

    file = tmp_path / "copied.toml"
    file.write_text(evaluation["copy"]["scenario"], encoding="utf-8")
    rerun = tcpcast.run(file, list(shown))
    assert {a.engine: a[metric] for a in rerun} == shown


def test_copied_command_and_python_give_same_buffer_plan(page: Page, tmp_path: Path) -> None:
    evaluation = page.evaluate("buffer", loss="1%", sources="60")
    command = json.loads(run_shell(f"{evaluation['copy']['command']} --json", tmp_path))
    packets = command["plan"]["value"]
    start = f"The smallest buffer for a loss of 1 % is {packets:,.0f} packets"
    assert evaluation["verdict"].startswith(start)
    namespace: dict[str, Any] = {}
    exec(evaluation["copy"]["python"], namespace)
    assert namespace["plan"].value == packets
    assert f'buffer = "{packets:.0f}pkt"' in evaluation["copy"]["scenario"]


def test_copied_winner_command_writes_simulated_scenario(page: Page, tmp_path: Path) -> None:
    evaluation = page.evaluate("winner", **{"rate": "5mbit", "stack-b": "linux-reno"})
    short = evaluation["copy"]["command"].replace('duration = "80s"', 'duration = "5s"')
    document = json.loads(run_shell(f"{short} --json", tmp_path))
    names = document["answers"][0]["tables"]["by_class"]["columns"]["name"]
    assert names == ["A", "B"]
    assert tcpcast.load(tmp_path / "who-wins.toml").populations[1].tcp.stack == "linux-reno"
    repeated = page.evaluate("winner", **{"rate": "5mbit", "stack-b": "linux-reno"})
    assert repeated["copy"] == evaluation["copy"]


def test_winner_simulates_deep_buffers_longer(page: Page) -> None:
    """The share of BBR takes minutes to settle in 16 BDP; 60 s gave 2.4 instead of 7.6 Mbit/s."""
    deep = page.evaluate("winner", buffer="16bdp")["copy"]["command"]
    assert 'duration = "640s"' in deep
    assert 'duration = "80s"' in page.evaluate("winner")["copy"]["command"]


def test_drifting_shares_have_no_interval() -> None:
    values = {field.name: field.default for field in WINNER.fields} | {"buffer": "16bdp"}
    tables = remove_omitted_keys(dict(WINNER.tables(values)))
    tables["run"]["duration"] = "60s"
    (answer,) = tcpcast.run(tcpcast.Scenario.from_dict(tables), ["packet"])
    shares = WINNER.simulated_metrics(values, answer)
    assert list(shares) == ["A (linux-cubic)", "B (linux-bbr)"]
    shown = {interval_text(metric, Scale(1e6, "Mbit/s")) for metric in shares.values()}
    assert shown <= {"still drifting", "the run is too short"}


def test_copied_commands_simulate_after_page_simulation(page: Page) -> None:
    def copied_command(question: str) -> str:
        body = {"question": question, "values": {}, "simulated": True, "quick": True}
        command: str = page.post("/api/evaluate", body).json()["copy"]["command"]
        return command

    assert copied_command("path").endswith(" --packet")
    assert copied_command("users").endswith(",packet")
    assert "--engine" not in copied_command("buffer")


def test_warnings_are_sorted_and_name_their_models(page: Page) -> None:
    evaluation = page.evaluate("path", loss="2%", stack="pftk-reno", rwnd="4pkt", iw="10")
    about_scenario = [
        text for text in evaluation["warnings"] if "tcp.initial_window is above" in text
    ]
    assert len(about_scenario) == 1
    evaluation = page.evaluate("path", loss="30%", stack="linux-reno")
    outside = ["outside the domain of the model" in text for text in evaluation["warnings"]]
    assert any(outside)
    assert outside == sorted(outside, reverse=True)
    assert any(text.startswith("mathis, td-only: ") for text in evaluation["warnings"])
    assert len(set(evaluation["warnings"])) == len(evaluation["warnings"])


def test_warnings_are_about_models_with_a_value(page: Page) -> None:
    evaluation = page.evaluate("users", sources="200", off="100ms")
    names = {answer["name"] for answer in evaluation["answers"] if answer["value"] is not None}
    assert evaluation["warnings"]
    for text in evaluation["warnings"]:
        assert set(text.partition(":")[0].split(", ")) <= names


def test_suggestion_names_field_of_page(page: Page) -> None:
    evaluation = page.evaluate("users", sources="20", stack="max-plus-reno")
    by_name = {answer["name"]: answer["not_applicable"] for answer in evaluation["answers"]}
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
def test_page_texts_name_no_command_option(
    page: Page, question: str, values: dict[str, str]
) -> None:
    evaluation = page.evaluate(question, **values)
    reasons = [answer["not_applicable"] or "" for answer in evaluation["answers"]]
    texts = [evaluation["verdict"], *evaluation["sentences"], *evaluation["warnings"], *reasons]
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
def test_error_suggests_values_of_fields(
    page: Page, values: dict[str, str], field: str, message: str
) -> None:
    status, named, evaluation = page.post_rejected({"question": "path", "values": values})
    assert (status, named) == (400, field)
    assert evaluation.endswith(message)


def test_verdict_names_formula_before_simulation(page: Page) -> None:
    assert "(by the formula cubic-response)" in page.evaluate("path")["verdict"]
    assert "(by the formula pftk)" in page.evaluate("path", stack="rfc-newreno")["verdict"]
    assert page.evaluate("path", stack="linux-bbr")["verdict"].startswith("The flow gets at most ")


def test_verdict_after_simulation_equals_command(page: Page, tmp_path: Path) -> None:
    values = {"rate": "1mbit", "loss": "5%", "rtt": "20ms"}
    evaluation = page.evaluate("path", **values)
    sent: list[dict[str, Any]] = []
    simulate({"question": "path", "values": values}, sent.append)
    first, *others = [message["point"] for message in sent if "point" in message]
    (tmp_path / "copied.toml").write_text(evaluation["copy"]["scenario"], encoding="utf-8")
    command = "tcpcast run copied.toml --engine cubic-response,packet --json"
    assert first["heading"]["verdict"] == json.loads(run_shell(command, tmp_path))["verdict"]
    assert all("heading" not in point for point in others)
    labels = [chart["label"] for chart in first["over_time"]]
    assert labels == ["Congestion window", "Goodput"]
    for chart in first["over_time"]:
        (line,) = chart["lines"]
        assert len(line["values"]) == len(chart["x"]) == len(line["low"])
        assert all(value is None or value >= 0 for value in line["values"])
