"""Predictions and plans of one path by stack: the leading formula and the number of flows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tcpcast.cli import main

Capture = pytest.CaptureFixture[str]
LONG_PATH = ("--rtt", "138ms", "--loss", "1e-5", "--rate", "10gbit")
AMOUNT_PATH = ("--rtt", "80ms", "--loss", "1e-5", "--rate", "10gbit")
STREAMS = [
    "plan",
    "streams",
    "--rate",
    "1gbit",
    "--rtt",
    "100ms",
    "--loss",
    "1%",
    "--engine",
    "cubic-response",
]


def run_tcpcast(capsys: Capture, *arguments: str, code: int = 0) -> str:
    assert main(list(arguments)) == code
    return capsys.readouterr().out


def in_json(capsys: Capture, *arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run_tcpcast(capsys, *arguments, "--json"))
    plan: dict[str, Any] = document.get("plan", document)
    return plan


@pytest.mark.parametrize(
    ("stack", "headline"),
    [
        ("linux-reno", "About 32.5 Mbit/s per flow, 520 Mbit/s in total; limited by loss (triple"),
        ("linux-cubic", "About 113 Mbit/s per flow, 1.8 Gbit/s in total; limited by loss (CUBIC"),
        ("linux-bbr", "At most 603 Mbit/s per flow, 9.65 Gbit/s in total; limited by the link"),
        ("dctcp", "No formula is reliable for this path; add --packet."),
    ],
)
def test_headline_uses_formula_of_stack(stack: str, headline: str, capsys: Capture) -> None:
    out = run_tcpcast(capsys, "predict", *LONG_PATH, "--flows", "16", "--stack", stack)
    assert headline in out


def test_leading_formula_is_first_in_table(capsys: Capture) -> None:
    out = run_tcpcast(capsys, "predict", *LONG_PATH, "--stack", "linux-bbr")
    assert out.index(" bbr-bound ") < out.index(" cubic-response ")


def test_predict_json_has_sizing_of_path(capsys: Capture) -> None:
    document = in_json(capsys, "predict", *LONG_PATH, "--flows", "16", "--stack", "linux-cubic")
    sizing = document["sizing"]
    assert sizing["bdp_bytes"] == pytest.approx(172.5e6)
    assert sizing["tcp_wmem"] == [4096, 16384, sizing["socket_buffer_bytes"]]
    assert sizing["tcp_rmem"] == [4096, 131072, 2**25]
    # 1 GB at the goodput of CUBIC's response function, and 8 rounds of slow start before it.
    assert sizing["amount_s"] == pytest.approx(8e9 / 1.802e9 + 8 * 0.138, rel=0.1)


def test_predict_reports_transfer_time_with_and_without_handshake(
    capsys: Capture,
) -> None:
    path = ("predict", "--rtt", "60ms", "--rate", "20mbit", "--size", "10MB")
    document = in_json(capsys, *path)
    (short,) = (a for a in document["answers"] if a["engine"] == "short")
    # Windows of 10, 20 and 40 packets, then 100 packets per 60 ms, and the RTT of the last one.
    expected_s = 4 * 0.06 + 0.06 + (6907 - 150 - 1) * 0.0006
    assert short["metrics"]["completion_time_s"]["value"] == pytest.approx(expected_s)
    assert short["metrics"]["total_time_s"]["value"] == pytest.approx(expected_s + 0.06)
    out = run_tcpcast(capsys, *path)
    total_s = expected_s + 0.06
    assert f"transfer of this size takes about {expected_s:.3g} s ({total_s:.3g} s from the" in out
    assert "To fill the link, use" not in out  # without loss, one flow fills it


def test_transfer_time_from_goodput_includes_slow_start(
    capsys: Capture,
) -> None:
    path = ("--rtt", "60ms", "--rate", "20mbit", "--loss", "1%", "--size", "10MB")
    out = run_tcpcast(capsys, "predict", *path)
    assert out.splitlines()[4].startswith("10 MB takes ")
    assert "at this goodput, including slow start from 10 packets." in out
    assert "No formula for the transfer time is reliable" not in out
    assert "short does not apply: " in out
    assert (
        "69.1 packets on average, but the model of short transfers supports at most 30 losses"
        in " ".join(out.split())
    )


def test_very_large_transfer_has_time(capsys: Capture) -> None:
    out = run_tcpcast(capsys, "predict", *AMOUNT_PATH, "--size", "2TB")
    assert "\n2 TB takes 123,957 s (34.4 h) at this goodput, including slow start" in out
    assert in_json(capsys, "predict", *AMOUNT_PATH, "--size", "2TB")["sizing"]["amount_s"] > 1e5
    table = run_tcpcast(capsys, "predict", *AMOUNT_PATH, "--size", "1MB..4TB", "--points", "2")
    assert [line.split()[-3] for line in table.splitlines() if "B  " in line] == ["–", "247,913"]


def test_transfer_time_states_number_of_flows(capsys: Capture) -> None:
    flows = ("predict", *AMOUNT_PATH, "--flows", "16", "--size")
    assert "500 GB over 16 flows takes 1,937 s at this" in run_tcpcast(capsys, *flows, "500GB")
    assert "A single transfer of this size takes about 1.41 s" in run_tcpcast(
        capsys, *flows, "100MB"
    )


def test_transfer_too_long_to_simulate_uses_goodput(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcpcast.path.prediction.MAX_SIMULATED_PKTS", 100)
    path = ("--rtt", "60ms", "--rate", "20mbit", "--size", "1MB", "--packet")
    out = run_tcpcast(capsys, "predict", *path)
    assert "1 MB takes " not in out  # the formula gives the time
    out = run_tcpcast(capsys, "predict", *path, "--loss", "20%")
    assert "by simulation" in out
    assert "The transfer has too many packets" in " ".join(out.split())


def test_hint_lists_stacks_that_formulas_support(capsys: Capture) -> None:
    out = " ".join(run_tcpcast(capsys, "predict", *AMOUNT_PATH).split())
    assert "(use --stack linux-reno or --stack pftk-reno)" in out


def test_negligible_handshake_time_is_not_shown(capsys: Capture) -> None:
    path = ("--rtt", "20ms", "--rate", "1mbit", "--size", "10MB")
    assert "from the SYN" not in run_tcpcast(capsys, "predict", *path)


def test_default_stack_is_linux_cubic(capsys: Capture) -> None:
    for command in (("predict", *LONG_PATH), STREAMS):
        assert run_tcpcast(capsys, *command) == run_tcpcast(
            capsys, *command, "--stack", "linux-cubic"
        )


def test_left_out_models_are_listed_once_with_option(
    capsys: Capture,
) -> None:
    out = " ".join(run_tcpcast(capsys, "predict", *LONG_PATH, "--size", "1MB").split())
    assert out.count("because they model the window of Reno, not of linux-cubic") == 1
    assert "parallel-cumulative (use --stack linux-reno or" in out
    assert "left out" not in run_tcpcast(capsys, "predict", *LONG_PATH, "--stack", "linux-reno")


def test_path_without_rate_has_no_sizing(capsys: Capture) -> None:
    assert "sizing" not in in_json(capsys, "predict", "--rtt", "60ms", "--loss", "1%")


@pytest.mark.parametrize(("loss", "verdict"), [("10%", "At most 43.4 "), ("16%", "No formula is")])
def test_bound_of_bbr_is_not_trusted_near_its_collapse(
    loss: str, verdict: str, capsys: Capture
) -> None:
    path = ("--rtt", "20ms", "--rate", "50mbit", "--loss", loss, "--stack", "linux-bbr")
    assert verdict in run_tcpcast(capsys, "predict", *path)
