"""Predictions and plans of one path by stack: the leading formula and the number of flows."""

import json
import re
from typing import Any

import pytest
from tcpcast.cli import main

Capture = pytest.CaptureFixture[str]
LONG_PATH = ("--rtt", "138ms", "--loss", "1e-5", "--rate", "10gbit")


def run_tcpcast(capsys: Capture, *arguments: str, code: int = 0) -> str:
    assert main(list(arguments)) == code
    return capsys.readouterr().out


def in_json(capsys: Capture, *arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run_tcpcast(capsys, *arguments, "--json"))
    plan: dict[str, Any] = document.get("plan", document)
    return plan


@pytest.mark.parametrize(
    ("stack", "words"),
    [
        ("linux-reno", r"[\d.]+ Mbit/s \(by the formula pftk\)"),
        ("linux-cubic", r"1.8\d* Gbit/s \(by the formula cubic-response\)"),
        ("linux-bbr", r"at most 9.65\d* Gbit/s \(by the formula bbr-bound\)"),
    ],
)
def test_headline_uses_formula_of_stack(stack: str, words: str, capsys: Capture) -> None:
    out = run_tcpcast(capsys, "predict", *LONG_PATH, "--flows", "16", "--stack", stack)
    assert re.search(f"The 16 flows together get {words}", " ".join(out.split()))


def test_predict_json_has_sizing_of_path(capsys: Capture) -> None:
    document = in_json(capsys, "predict", *LONG_PATH, "--flows", "16", "--stack", "linux-cubic")
    sizing = document["sizing"]
    assert sizing["bdp_bytes"] == pytest.approx(172.5e6)
    assert sizing["tcp_wmem"] == [4096, 16384, sizing["socket_buffer_bytes"]]
    assert sizing["tcp_rmem"] == [4096, 131072, 2**25]
    # 1 GB at the goodput of CUBIC's response function, and 8 rounds of slow start before it.
    assert sizing["amount_s"] == pytest.approx(8e9 / 1.802e9 + 8 * 0.138, rel=0.1)


def test_predict_reports_transfer_time_with_and_without_handshake(capsys: Capture) -> None:
    path = ("predict", "--rtt", "60ms", "--rate", "20mbit", "--size", "10MB")
    document = in_json(capsys, *path)
    (short,) = (a for a in document["answers"] if a["engine"] == "short")
    # Windows of 10, 20 and 40 packets, then 100 packets per 60 ms, and the RTT of the last one.
    expected_s = 4 * 0.06 + 0.06 + (6907 - 150 - 1) * 0.0006
    assert short["metrics"]["completion_time_s"]["value"] == pytest.approx(expected_s)
    assert short["metrics"]["total_time_s"]["value"] == pytest.approx(expected_s + 0.06)
    out = run_tcpcast(capsys, *path)
    assert "To fill the link, use" not in out  # without loss, one flow fills it


def test_hint_lists_stacks_that_formulas_support(capsys: Capture) -> None:
    path = ("predict", *LONG_PATH, "--size", "1MB")
    out = " ".join(run_tcpcast(capsys, *path).split())
    assert out.count("because they model the window of Reno, not of linux-cubic") == 1
    out = " ".join(run_tcpcast(capsys, "predict", *LONG_PATH).split())
    assert "parallel-cumulative (use --stack linux-reno or --stack pftk-reno)" in out


def test_path_without_rate_has_no_sizing(capsys: Capture) -> None:
    assert "sizing" not in in_json(capsys, "predict", "--rtt", "60ms", "--loss", "1%")


@pytest.mark.parametrize(("loss", "is_trusted"), [("10%", True), ("16%", False)])
def test_bound_of_bbr_is_not_trusted_near_its_collapse(
    loss: str, is_trusted: bool, capsys: Capture
) -> None:
    path = ("--rtt", "20ms", "--rate", "50mbit", "--loss", loss, "--stack", "linux-bbr")
    document = in_json(capsys, "predict", *path)
    bound, simulated = document["answers"]
    assert bound["metrics"]["goodput_bps"].get("trusted", True) is is_trusted
    assert simulated["engine"] == "packet"
