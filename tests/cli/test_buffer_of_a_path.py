"""`tcpcast predict --buffer`: the buffer of the link and its effect on simulations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tcpcast.cli import main
from tcpcast.path import run_size
from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    Capture = pytest.CaptureFixture[str]

PATH = ("predict", "--rtt", "20ms", "--rate", "10mbit")


def text(capsys: Capture, *arguments: str) -> str:
    assert main([*PATH, *arguments]) == 0
    return " ".join(capsys.readouterr().out.split())


def document(capsys: Capture, *arguments: str) -> dict[str, Any]:
    assert main([*PATH, *arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def goodput(document: dict[str, Any]) -> float:
    (simulation,) = (a for a in document["answers"] if a["engine"] == "packet")
    return float(simulation["metrics"]["goodput_bps"]["value"])


def test_header_shows_buffer_and_marks_assumed_value(capsys: Capture) -> None:
    assert "link 10 Mbit/s, buffer 1 BDP (assumed), window" in text(capsys)
    assert "link 10 Mbit/s, buffer 64 MB, 42,666 packets, window" in text(
        capsys, "--buffer", "64MB"
    )
    assert main(["predict", "--rtt", "20ms", "--loss", "1%"]) == 0
    assert "buffer" not in capsys.readouterr().out


def test_simulation_uses_buffer_option(capsys: Capture) -> None:
    given = document(capsys, "--buffer", "4pkt", "--packet")
    assert Scenario.from_dict(given["scenario"]).buffer_pkts == 4
    assert given["buffer"] == {"packets": 4, "is_assumed": False}
    assert given["limited_by"] == "shallow buffer"
    assumed = document(capsys, "--packet")
    assert goodput(given) < 0.95 * goodput(assumed)


def test_simulation_with_assumed_buffer_is_repeated_with_others(capsys: Capture) -> None:
    result = document(capsys, "--packet")
    assert result["buffer"]["packets"] == 17
    quarter, fourfold = result["buffer"]["other"]
    assert (quarter["buffer"], fourfold["buffer"]) == ("0.25bdp", "4bdp")
    for other in (quarter, fourfold):
        explicit = document(capsys, "--packet", "--buffer", other["buffer"])
        assert other["metrics"]["goodput_bps"]["value"] == goodput(explicit)
    low, high = (f"{o['metrics']['goodput_bps']['value'] / 1e6:.3g}" for o in (quarter, fourfold))
    shown = text(capsys, "--packet")
    expected = f"with other values of --buffer: {low} Mbit/s with 0.25bdp, {high} Mbit/s with 4bdp"
    assert expected in shown


def test_transfer_time_is_shown_for_other_buffers(capsys: Capture) -> None:
    shown = text(capsys, "--packet", "--size", "1MB")
    assert " ms with 0.25bdp" in shown or " s with 0.25bdp" in shown


def test_equal_results_of_other_buffers_are_reported_as_equal(capsys: Capture) -> None:
    shown = text(capsys, "--packet", "--rwnd", "4", "--stack", "rfc-newreno")
    assert "assumed to be 1 BDP (25.5 KB); 0.25bdp and 4bdp give the same result." in shown


def test_long_simulation_is_not_repeated_with_other_buffers(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_size, "MAX_COMPARED_PKTS", 1000)
    shown = text(capsys, "--packet")
    assert "a smaller buffer may give a lower rate: try --buffer 0.25bdp..4bdp." in shown


def test_buffer_option_without_simulation_prints_note(capsys: Capture) -> None:
    assert "The formulas ignore --buffer; --packet simulates it." in text(
        capsys, "--buffer", "4pkt"
    )


def test_buffer_option_accepts_range(capsys: Capture) -> None:
    assert main([*PATH, "--buffer", "4pkt..16pkt", "--points", "3", "--csv"]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    column = rows[0].index("buffer_pkts")
    assert list(dict.fromkeys(row[column] for row in rows[1:])) == ["4", "8", "16"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--rtt", "20ms", "--loss", "1%", "--buffer", "64MB"],
            "has no queue; write --rate",
        ),
        ([*PATH[1:], "--buffer", "64"], '--buffer: "64" has no unit'),
        (
            [*PATH[1:], "--buffer", "64KB..1bdp"],
            "--buffer: the ends of the range have different units",
        ),
        ([*PATH[1:], "--buffer", "0pkt"], "--buffer: "),
        ([*PATH[1:], "--buffer", "1bdp..1bd"], "--buffer: "),
    ],
)
def test_bad_buffer_is_rejected_with_option_name(
    arguments: list[str], message: str, capsys: Capture
) -> None:
    assert main(["predict", *arguments]) == 2
    assert message in capsys.readouterr().err
