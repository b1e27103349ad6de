"""`tcpcast predict`: a run, or a sweep for ranges, of a scenario made from options."""

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from tcpcast.cli import main
from tcpcast.engines.formula import FORMULAS
from tcpcast.options import path_scenario
from tcpcast.options.path_scenario import ask_path
from tcpcast.scenario import Scenario

Capture = pytest.CaptureFixture[str]

RATES = ["mathis", "td-only", "pftk-approx", "pftk", "parallel", "parallel-cumulative"]
CLASSIC = ("--stack", "rfc-newreno")


def predict(capsys: Capture, *arguments: str, code: int = 0) -> str:
    stack = () if "--stack" in arguments else CLASSIC
    rtt = () if "--rtt" in arguments else ("--rtt", "100ms")
    assert main(["predict", *rtt, *stack, *arguments]) == code
    return capsys.readouterr().out


def document(capsys: Capture, *arguments: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(predict(capsys, *arguments, "--json"))
    return result


def answers_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {answer["engine"]: answer for answer in document["answers"]}


def value(document: dict[str, Any], engine: str, metric: str = "send_rate_pps") -> float:
    return float(answers_of(document)[engine]["metrics"][metric]["value"])


def without_times(text: str) -> str:
    """Return an output without the computing times of engines."""
    return re.sub(r'"wall_s": [^,]+,| in\s+[\d.]+\s+(ms|s|µs)\b', "", text)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--loss", "1%", "--rate", "1gbit", "--rwnd", "64KiB", "--flows", "4", "--mss", "960"),
        ("--rate", "5mbit", "--buffer", "3pkt", "--seed", "7"),
        ("--loss", "2%", "--size", "30KB", "--stack", "linux-reno"),
    ],
)
@pytest.mark.parametrize("form", ["--json", "--csv", "--explain"])
def test_predict_prints_what_run_prints(
    arguments: tuple[str, ...], form: str, capsys: Capture, tmp_path: Path
) -> None:
    file = tmp_path / "path.toml"
    file.write_text(predict(capsys, *arguments, "--print-scenario"))
    engines = ",".join(answers_of(document(capsys, *arguments)))
    predicted = predict(capsys, *arguments, form)
    assert main(["run", str(file), "--engine", engines, form]) == 0
    assert without_times(predicted) == without_times(capsys.readouterr().out)


def test_ranges_print_what_sweep_prints(capsys: Capture, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    file = tmp_path / "path.toml"
    path = ("--stack", "linux-reno", "--loss", "0.1%")
    file.write_text(predict(capsys, *path, "--print-scenario"))
    ranges = ("--loss", "0.1%..10%", "--flows", "1..2", "--points", "3")
    predicted = predict(capsys, "--stack", "linux-reno", *ranges, "--csv")
    keys = ["network.bottleneck.loss=0.1%..10% 3", "traffic.flows=1..2 3"]
    words = [word for key in keys for word in ("--vary", key)]
    rows = list(csv.DictReader(io.StringIO(predicted)))
    engines = ",".join(dict.fromkeys(row["engine"] for row in rows))
    assert main(["sweep", str(file), *words, "--engine", engines, "--csv"]) == 0
    swept = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [{**row, "wall_s": ""} for row in rows] == [{**row, "wall_s": ""} for row in swept]
    (cell,) = (
        row
        for row in rows
        if (row["engine"], row["network.bottleneck.loss"], row["traffic.flows"])
        == ("pftk", "0.01", "2")
    )
    single = document(capsys, "--stack", "linux-reno", "--loss", "1%", "--flows", "2")
    assert float(cell["send_rate_pps"]) == value(single, "pftk")


@pytest.mark.parametrize(
    ("option", "text", "expected"),
    [
        ("flows", "1..4", [1, 2, 3, 4]),
        ("rtt", "10ms..1s", [0.01, 0.1, 1]),
        ("rate", "1mbit..100mbit", [1e6, 1e7, 1e8]),
        ("buffer", "0.25bdp..4bdp", [0.25, 1, 4]),
        ("size", "10KB..1MB", [1e4, 1e5, 1e6]),
    ],
)
def test_option_accepts_a_range(
    option: str, text: str, expected: list[float], capsys: Capture
) -> None:
    pytest.importorskip("pyarrow")
    given = {"rtt": "100ms", "rate": "10mbit", "stack": "linux-reno"} | {option: text}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    points = ["--points", str(len(expected))]
    rows = csv.DictReader(io.StringIO(predict(capsys, *words, *points, "--csv")))
    varied = list(ask_path(given).varied)
    assert sorted({float(row[varied[0]]) for row in rows}) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("stack", "mss", "packet"),
    [
        ("linux-cubic", ["--mss", "1448"], 1500),
        ("linux-cubic", [], 1500),
        ("rfc-sack", ["--mss", "1448"], 1488),
        ("rfc-newreno", ["--mss", "1448B"], 1488),
    ],
)
def test_packet_size_is_payload_plus_headers_of_stack(
    capsys: Capture, stack: str, mss: list[str], packet: int
) -> None:
    result = document(capsys, "--loss", "1%", "--rate", "1mbit", "--stack", stack, *mss)
    scenario = Scenario.from_dict(result["scenario"])
    assert scenario.network.packet_bytes == packet
    assert scenario.payload_bytes == 1448


@pytest.mark.parametrize("stack", ["linux-cubic", "linux-reno"])
def test_lossless_rate_is_that_of_window_or_link(stack: str, capsys: Capture) -> None:
    formula = {"linux-cubic": "cubic-response", "linux-reno": "pftk"}[stack]
    path = ("--stack", stack, "--rate", "10gbit", "--rtt", "150ms")
    assert value(document(capsys, *path), formula) == pytest.approx(1e10 / 12e3)
    window = document(capsys, *path, "--rwnd", "1000", "--flows", "3")
    assert value(window, formula) == pytest.approx(3 * 1000 / 0.15)


@pytest.mark.parametrize(
    ("arguments", "engines"),
    [
        # The formula for the stack is reliable.
        (["--rate", "100mbit", "--loss", "0.1%"], ["cubic-response"]),
        (["--rate", "100mbit", "--size", "10MB"], ["short"]),
        # A bound is no estimate, and no formula covers the time with BBR.
        (["--rate", "10mbit", "--stack", "linux-bbr"], ["bbr-bound", "packet"]),
        (["--rate", "10mbit", "--stack", "linux-bbr", "--size", "1MB"], ["packet"]),
        # Not validated for this stack.
        (["--rate", "10mbit", "--stack", "rfc-sack", "--size", "10KB"], ["short", "packet"]),
        # Outside the domain: mostly timeouts.
        (["--rate", "10mbit", "--loss", "20%"], ["cubic-response", "packet"]),
        # Many timeouts, where the error of formulas grows.
        (["--rate", "10mbit", "--loss", "4%"], ["cubic-response", "packet"]),
        (["--rate", "10mbit", "--loss", "9%", "--stack", "linux-reno"], [*RATES, "packet"]),
        (
            ["--rate", "1gbit", "--rtt", "10ms", "--loss", "0.001%", "--buffer", "0.1bdp"],
            ["cubic-response", "packet"],
        ),
        # The queue of slow start, or of the sawtooth, exceeds the buffer.
        (["--rate", "100mbit", "--size", "10MB", "--buffer", "20pkt"], ["short", "packet"]),
        (["--rate", "10mbit", "--buffer", "3pkt"], ["cubic-response", "packet"]),
        # Random losses spread the times.
        (["--rate", "100mbit", "--size", "30KB", "--loss", "1%"], ["short", "packet"]),
    ],
)
def test_simulation_runs_if_no_formula_is_reliable(
    arguments: list[str], engines: list[str]
) -> None:
    values = dict(zip((a.removeprefix("--") for a in arguments[::2]), arguments[1::2], strict=True))
    question = ask_path({"rtt": "50ms", **values})
    assert (question.engines, question.refused) == (engines, [])
    asked = ask_path({"rtt": "50ms", **values}, packet=True)
    assert asked.engines == [*engines[: len(engines) - ("packet" in engines)], "packet"]


def test_shallow_buffer_is_simulated(capsys: Capture) -> None:
    """The formula gives 1.1 s, because it ignores the losses of slow start."""
    path = ("--rtt", "50ms", "--rate", "100mbit", "--stack", "linux-cubic", "--size", "10MB")
    result = document(capsys, *path, "--buffer", "20pkt")
    assert value(result, "packet", "completion_time_s") == pytest.approx(4.67, rel=0.1)
    assert answers_of(result)["short"]["metrics"]["completion_time_s"]["trusted"] is False
    assert result["findings"][0]["basis"] == "packet"
    deep = document(capsys, *path, "--packet")
    times = [value(deep, name, "completion_time_s") for name in ("short", "packet")]
    assert times[0] == pytest.approx(times[1], rel=0.05)


def test_long_simulation_is_offered_instead_of_run(capsys: Capture) -> None:
    path = ("--rate", "40gbit", "--buffer", "100pkt", "--stack", "linux-cubic")
    out = " ".join(predict(capsys, *path).split())
    assert "packet does not apply: a simulation takes about" in out
    assert "runs it only with --packet" in out
    assert "outside the domain of the model: a queue of" in out
    assert "No engine gives a trusted value; a simulation takes about" in out


def test_times_under_loss_have_percentiles(capsys: Capture) -> None:
    path = ("--loss", "3%", "--size", "30KB", "--stack", "linux-cubic")
    tables = answers_of(document(capsys, *path))["packet"]["tables"]
    (p50,), (p95,), (p99,) = (tables["by_size"]["columns"][p] for p in ("p50", "p95", "p99"))
    assert p50 < p95 < p99
    assert "p50" in predict(capsys, *path)


def test_size_with_flows_is_the_total(capsys: Capture, tmp_path: Path) -> None:
    path = ("--rtt", "80ms", "--loss", "1e-5", "--rate", "10gbit", "--stack", "linux-cubic")
    for size, seconds in (("500GB", "1,937 s"), ("1GB", "4.4 s")):
        out = predict(capsys, *path, "--flows", "16", "--size", size)
        amount = size.replace("GB", " GB")
        assert f"{amount} over 16 flows takes {seconds} at this goodput" in " ".join(out.split())
    report = tmp_path / "path.md"
    predict(capsys, *path, "--flows", "16", "--size", "500GB", "--out", str(report))
    assert "500 GB over 16 flows takes 1,937 s" in " ".join(report.read_text().split())
    sizing = document(capsys, *path, "--flows", "16", "--size", "500GB")["sizing"]
    assert (sizing["amount_bytes"], round(sizing["amount_s"])) == (5e11, 1937)


def test_packet_is_added_to_named_engines(capsys: Capture) -> None:
    path = ("--rate", "2mbit", "--loss", "1%", "--engine", "td-only", "--packet")
    answers = document(capsys, *path)["answers"]
    assert [answer["engine"] for answer in answers] == ["td-only", "packet"]


@pytest.mark.parametrize("loss", ["1%", "0%"])
def test_very_long_transfer_has_time_from_rate(loss: str, capsys: Capture) -> None:
    path = ("--rate", "10gbit", "--loss", loss, "--stack", "linux-cubic", "--size", "2TB")
    out = predict(capsys, *path)
    assert re.search(r"2 TB takes [\d,]+ s( \([\d.]+ days\))? at this\s+goodput", out)


def test_explain_shows_equations(capsys: Capture) -> None:
    out = predict(capsys, "--loss", "1%", "--explain")
    _, _, explained = out.partition("pftk: PFTK (31)")
    steps = [line.split() for line in explained.split("\n\n")[0].splitlines()[1:]]
    by_symbol = {step[0]: step[1:] for step in steps}
    assert by_symbol["p"] == ["0.01", "network.bottleneck.loss"]
    assert by_symbol["T0"][:2] == ["1", "s"]
    assert by_symbol["E[W_u]"] == ["17.2788", "packet", "(30)"]
    assert by_symbol["B(p)"] == ["98.8291", "packet/s", "(31)"]
    for name in RATES:
        assert f"\n{name}: {FORMULAS[name].source}" in out


def test_run_is_long_enough_for_losses_and_cycles() -> None:
    """400 losses, or 24 cycles of 104 windows with an RTT of 200 ms at a full buffer."""
    path = {"rtt": "80ms", "stack": "linux-reno"}
    rare = ask_path({**path, "loss": "0.01%"}, packet=True).scenario
    seconds = rare.run.duration_s or 0.0
    assert seconds * math.sqrt(1.5 / 1e-4) / 0.08 * 1e-4 == pytest.approx(400, rel=1e-2)
    full = {"rtt": "100ms", "rate": "50mbit", "buffer": "417pkt", "stack": "linux-reno"}
    cycles = ask_path({**full, "flows": "4"}, packet=True).scenario
    assert cycles.run.duration_s == pytest.approx(24 * 104 * 0.2, rel=0.01)
    rarer = ask_path({**path, "loss": "1e-6"}, packet=True).scenario.run.duration_s or 0.0
    assert rarer * math.sqrt(1.5 / 1e-6) / 0.08 <= 1.01 * path_scenario.MAX_PACKETS
    quick = ask_path({"rtt": "50ms", "rate": "1gbit", "stack": "linux-bbr"}).scenario
    assert (quick.run.duration_s or 0.0) * 1e9 / 12e3 <= 1.01 * path_scenario.MAX_QUICK_PKTS
    given = ask_path({**path, "loss": "1%"}, changes={"run.duration": "9s"}, packet=True)
    assert given.scenario.run.duration_s == 9


def test_transfers_with_tls_are_simulated_and_judged_by_their_total_time(capsys: Capture) -> None:
    """The formula has no time for TLS, so it led with the time after the handshake."""
    tls = ("--set", "tcp.handshake=tls13", "--stack", "linux-cubic")
    path = ("--rate", "100mbit", "--size", "100KB", *tls)
    assert "on average from the SYN; the formula short agrees within 1 %" in " ".join(
        predict(capsys, *path).split()
    )
    out = predict(capsys, *path, "--rtt", "10ms..40ms", "--points", "2")
    assert out.startswith("The total time is largest with round-trip time 40 ms: ")
    assert "total time" in out.partition("\n\n")[2]


def test_requested_engines_run_without_the_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer_nothing(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(path_scenario, "answer", answer_nothing)
    path = {"rtt": "1ms", "rate": "1gbit", "stack": "linux-cubic"}
    question = ask_path(path, engines=["bbr-bound"])
    assert (question.engines, question.refused) == (["bbr-bound"], [])
    assert ask_path(path, engines=["pftk"], packet=True).engines == ["pftk", "packet"]


def test_notes_name_options_instead_of_keys(capsys: Capture) -> None:
    """Regression: the notes named tcp.initial_window, which the user did not write."""
    path = ("--rtt", "60ms", "--loss", "5%", "--rate", "2mbit", "--rwnd", "4KB", "--all")
    out = " ".join(predict(capsys, *path, "--stack", "linux-cubic").split())
    assert "--iw is above --rwnd, which therefore limits the initial window" in out
    assert "use --stack linux-reno" in out
