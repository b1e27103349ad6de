"""`tcpcast predict`: models at one point and over ranges, figures, simulations and bad input."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import TYPE_CHECKING, Any

import pytest
from tcpcast.answer import Answer, Status
from tcpcast.cli import main
from tcpcast.engines import answer
from tcpcast.engines.formula import FORMULAS
from tcpcast.path import run_size
from tcpcast.path.options import CURVE_POINTS, PathOptions, expand_points, make_loss_curve_points
from tcpcast.path.prediction import select_path_formulas
from tcpcast.report.document import Column, Paragraph, Table
from tcpcast.report.text import plain_text
from tcpcast.scenario import Scenario
from tcpcast.scenario.traffic import TRAFFIC_KINDS

if TYPE_CHECKING:
    from pathlib import Path

    Capture = pytest.CaptureFixture[str]

RATES = ["mathis", "td-only", "pftk-approx", "pftk", "cubic-response", "parallel"]
needs_transfers = pytest.mark.skipif(
    "transfers" not in TRAFFIC_KINDS, reason="no traffic of transfers"
)

# (31) for RTT 100 ms, T0 1 s, b 1, p 1 %: (23) by hand gives Q = 0.2105 at E[W] = 17.279.
AT_ONE_PERCENT = 98.829


CLASSIC = ("--stack", "rfc-newreno")


def predict(capsys: Capture, *arguments: str) -> str:
    stack = () if "--stack" in arguments else CLASSIC
    assert main(["predict", "--rtt", "100ms", *stack, *arguments]) == 0
    return capsys.readouterr().out


def document(capsys: Capture, *arguments: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(predict(capsys, *arguments, "--json"))
    return result


def rates_of(document: dict[str, Any]) -> dict[str, float]:
    return {
        a["engine"]: a["metrics"]["send_rate_pps"]["value"]
        for a in document["answers"]
        if "send_rate_pps" in a.get("metrics", {})
    }


def test_predict_equals_run_of_printed_scenario(capsys: Capture, tmp_path: Path) -> None:
    args = ("--loss", "1%", "--rate", "1gbit", "--rwnd", "64KiB", "--flows", "4", "--mss", "960")
    predicted = document(capsys, *args)
    scenario = Scenario.from_dict(predicted["scenario"])
    assert scenario.network.packet_bytes == 1000
    assert scenario.tcp.receiver_window == 64 * 1024 // 960
    assert scenario.senders == 4
    assert scenario.network.bottleneck.rate_bps == 1e9
    file = tmp_path / "path.toml"
    file.write_text(scenario.to_toml())
    assert main(["run", str(file), "--engine", ",".join(RATES), "--json"]) == 0
    run = json.loads(capsys.readouterr().out)
    assert set(RATES) <= rates_of(predicted).keys()
    assert rates_of(run) == {name: rates_of(predicted)[name] for name in RATES}


@pytest.mark.parametrize(
    ("stack", "mss", "packet"),
    [
        ("linux-cubic", ["--mss", "1448"], 1500),
        ("linux-cubic", [], 1500),
        ("rfc-sack", ["--mss", "1448"], 1488),
        ("rfc-newreno", ["--mss", "1448"], 1488),
    ],
)
def test_packet_size_is_payload_plus_headers_of_stack(
    capsys: Capture, stack: str, mss: list[str], packet: int
) -> None:
    result = document(capsys, "--loss", "1%", "--stack", stack, *mss)
    scenario = Scenario.from_dict(result["scenario"])
    assert scenario.network.packet_bytes == packet
    assert scenario.payload_bytes == 1448


def test_predicted_rates_equal_formulas(capsys: Capture) -> None:
    rates = rates_of(document(capsys, "--loss", "1%"))
    assert rates["pftk"] == pytest.approx(AT_ONE_PERCENT, abs=5e-4)
    assert rates["mathis"] == pytest.approx(math.sqrt(1.5 / 0.01) / 0.1)
    delayed = rates_of(document(capsys, "--loss", "1%", "--delayed-acks"))
    assert delayed["mathis"] == pytest.approx(math.sqrt(0.75 / 0.01) / 0.1)
    quick_timer = rates_of(document(capsys, "--loss", "1%", "--min-rto", "200ms"))
    assert quick_timer["pftk"] > rates["pftk"]


@pytest.mark.parametrize(
    ("arguments", "limit", "words"),
    [
        (["--loss", "1%"], "triple duplicates", "limited by loss (triple duplicates)."),
        (
            ["--loss", "1%", "--rate", "1gbit", "--rwnd", "64KiB"],
            "triple duplicates",
            "limited by loss (triple duplicates), not the receiver window or the link.",
        ),
        (["--loss", "9%"], "timeouts", "limited by timeouts."),
        (
            ["--loss", "0.001%", "--rwnd", "64KiB"],
            "window",
            "limited by the receiver window (44 packets per round trip), not loss.",
        ),
        (
            ["--loss", "0.01%", "--rate", "1mbit"],
            "bottleneck",
            "limited by the link, not loss.",
        ),
        (["--rwnd", "44"], "window", "(44 packets per round trip)."),
        (["--rwnd", "1"], "window", "(1 packet per round trip)."),
        (
            ["--loss", "0%", "--rate", "10mbit"],
            "bottleneck",
            "About 9.73 Mbit/s; limited by the link.",
        ),
        (
            ["--loss", "0%", "--rate", "10mbit", "--rwnd", "44"],
            "window",
            "About 5.14 Mbit/s; limited by the receiver window",
        ),
    ],
)
def test_headline_names_limiting_factor(
    arguments: list[str], limit: str, words: str, capsys: Capture
) -> None:
    out = " ".join(predict(capsys, *arguments).split())
    assert words in out
    assert document(capsys, *arguments)["limited_by"] == limit


def test_document_has_limits_of_window_and_link(capsys: Capture) -> None:
    result = document(capsys, "--rate", "12mbit", "--rwnd", "44", "--flows", "3")
    assert result["limits"] == {"window_pps": pytest.approx(1320), "link_pps": pytest.approx(1000)}
    assert result["limited_by"] == "bottleneck"
    assert "not_applicable" in next(a for a in result["answers"] if a["engine"] == "pftk")
    assert document(capsys, "--loss", "1%")["limits"] == {"window_pps": None, "link_pps": None}


def test_headline_shows_rate_per_flow_and_total(capsys: Capture) -> None:
    out = predict(capsys, "--loss", "1%", "--flows", "4")
    assert "About 1.14 Mbit/s per flow, 4.57 Mbit/s in total;" in out


def test_leading_model_is_first_and_models_without_timeouts_named(
    capsys: Capture,
) -> None:
    out = predict(capsys, "--loss", "1%")
    _, _, rows = out.partition("─\n")
    assert rows.split()[0] == "pftk"
    assert "mathis and td-only ignore timeouts" in " ".join(out.split())
    assert "ignore timeouts" not in predict(capsys, "--loss", "0.01%")


def test_headline_omits_formulas_outside_domain(capsys: Capture) -> None:
    for loss in ("20%", "30%", "50%"):
        out = " ".join(predict(capsys, "--loss", loss).split())
        assert "No formula is reliable for this path; add --packet." in out
        assert "About" not in out
        assert (
            f"outside the domain of the model: a loss of {loss.rstrip('%')} %, but the limit is "
            "10 %" in out
        )
        result = document(capsys, "--loss", loss)
        assert result["limited_by"] is None
        for row in result["answers"]:
            if "metrics" in row:
                assert all(metric["trusted"] is False for metric in row["metrics"].values())
    inside = document(capsys, "--loss", "1%")
    pftk = next(row for row in inside["answers"] if row["engine"] == "pftk")
    assert all("trusted" not in metric for metric in pftk["metrics"].values())


@pytest.mark.parametrize(
    "arguments", [["--loss", "1%"], ["--loss", "30%"], ["--size", "1MB", "--rate", "10mbit"]]
)
def test_verdict_in_json_is_the_first_sentence(arguments: list[str], capsys: Capture) -> None:
    verdict = document(capsys, *arguments)["verdict"]
    out = " ".join(predict(capsys, *arguments).split())
    assert verdict.partition("; use")[0] in out
    assert verdict.split()[0] in {"About", "No", "A"}


def test_headline_prefers_simulation(capsys: Capture) -> None:
    result = document(capsys, "--loss", "30%", "--packet")
    rate = next(a for a in result["answers"] if a["engine"] == "packet")["metrics"]["goodput_bps"]
    out = " ".join(predict(capsys, "--loss", "30%", "--packet").split())
    assert f"About {rate['value'] / 1e3:.3g} kbit/s by simulation; limited by timeouts" in out
    assert "against the simulation" not in out  # untrusted values are not compared
    assert result["limited_by"] == "timeouts"


def test_range_table_and_csv_mark_untrusted_values(capsys: Capture) -> None:
    out = predict(capsys, "--loss", "1%..30%", "--points", "2")
    rows = [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()]
    low, high = [row for row in rows if row[0] in {"1%", "30%"}][:2]
    assert not low[3].endswith("†")
    assert high[1] == "–"
    assert high[2].endswith("†")
    cells = csv.DictReader(
        io.StringIO(predict(capsys, "--loss", "1%..30%", "--points", "2", "--csv"))
    )
    trusted = {(row["engine"], row["loss_ratio"]): row["trusted"] for row in cells}
    assert trusted["pftk", "0.01"] == "true"
    assert trusted["pftk", "0.3"] == "false"


@needs_transfers
def test_headline_omits_transfer_time_outside_domain(capsys: Capture) -> None:
    out = " ".join(predict(capsys, "--loss", "40%", "--size", "100KB").split())
    assert "No formula for the transfer time is reliable" in out
    out = " ".join(predict(capsys, "--loss", "40%", "--size", "10KB", "--packet").split())
    assert "by simulation" in out.partition("on average")[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rtt", "138ms", "--loss", "1e-5", "--rate", "10gbit", "--flows", "16"], ""),
        (["--rtt", "100ms", "--loss", "1e-9", "--rate", "1gbit"], "the flow is"),
    ],
)
def test_simulation_without_steady_state_is_not_shown(
    arguments: list[str], words: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(run_size, "DEFAULT_DURATION_S", 20.0)
    monkeypatch.setattr(run_size, "MIN_DURATION_RTTS", 1.0)
    monkeypatch.setattr(run_size, "MIN_LOSSES", 1.0)
    assert main(["predict", *arguments, *CLASSIC, "--packet"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert f"packet: no steady state: {words}" in out
    assert "by simulation" not in out
    assert "against the simulation" not in out


@needs_transfers
def test_lossless_transfer_is_limited_by_size(capsys: Capture) -> None:
    arguments = ("--size", "10KB", "--iw", "10")
    result = document(capsys, *arguments)
    (short,) = [a for a in result["answers"] if "completion_time_s" in a.get("metrics", {})]
    assert short["engine"] == "short"
    assert short["metrics"]["completion_time_s"]["value"] == pytest.approx(0.1)
    out = predict(capsys, *arguments)
    assert "A transfer of this size takes about 100 ms: 818 kbit/s on average." in out
    assert "About" not in out
    with_packet = document(capsys, *arguments, "--packet")
    given = [a for a in with_packet["answers"] if "metrics" in a]
    times = {a["engine"]: a["metrics"]["completion_time_s"] for a in given}
    assert times["packet"]["value"] == pytest.approx(0.1)


def test_document_has_goodput_of_formulas(capsys: Capture) -> None:
    result = document(capsys, "--loss", "1%", "--rate", "1gbit")
    for row in result["answers"]:
        if "send_rate_pps" in row.get("metrics", {}):
            sent = row["metrics"]["send_rate_pps"]["value"]
            goodput = row["metrics"]["goodput_bps"]["value"]
            assert goodput == pytest.approx(0.99 * sent * 8 * 1460)


def test_explain_shows_equations_and_options(capsys: Capture) -> None:
    out = predict(capsys, "--loss", "1%", "--explain")
    _, _, explained = out.partition("pftk: PFTK (31)")
    steps = [line.split() for line in explained.split("\n\n")[0].splitlines()[1:]]
    by_symbol = {step[0]: step[1:] for step in steps}
    assert by_symbol["p"] == ["0.01", "--loss"]
    assert by_symbol["T0"][:2] == ["1", "s"]
    assert by_symbol["E[W_u]"] == ["17.2788", "packet", "(30)"]
    assert by_symbol["B(p)"] == ["98.8291", "packet/s", "(31)"]
    assert "network." not in out
    for name in RATES:
        assert f"\n{name}: {FORMULAS[name].source}" in out


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    "arguments",
    [
        ["--loss", "3%", "--rate", "1gbit", "--rwnd", "64KiB", "--flows", "4", "--explain"],
        ["--loss", "0.01%..10%", "--rwnd", "64KiB"],
        ["--loss", "0%", "--rwnd", "64KiB"],
        ["--loss", "3%", "--rate", "20mbit", "--packet"],
    ],
)
def test_output_fits_terminal_width(
    arguments: list[str], width: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = predict(capsys, *arguments)
    assert max(map(len, out.splitlines())) <= width
    assert "\033" not in out


def test_simulation_has_interval_and_error_of_formula(capsys: Capture) -> None:
    arguments = ("--loss", "1%", "--rate", "100mbit", "--packet")
    result = document(capsys, *arguments)
    packet = next(a for a in result["answers"] if a["engine"] == "packet")
    rate = packet["metrics"]["send_rate_pps"]
    assert rate["low"] < rate["value"] < rate["high"]
    relative_error = rates_of(result)["pftk"] / rate["value"] - 1
    out = predict(capsys, *arguments)
    assert f"pftk has a relative error of {relative_error:+.0%} against the simulation" in out
    assert "rest of a round" not in out


def test_error_of_a_formula_without_loss_is_not_explained_by_few_losses(capsys: Capture) -> None:
    out = predict(capsys, "--rate", "20mbit", "--stack", "linux-bbr", "--packet")
    assert re.search(r"bbr-bound has a relative error of \S+ against the\s+simulation\.", out)
    assert "too few losses" not in out


def test_range_has_row_per_point_including_ends(capsys: Capture) -> None:
    out = predict(capsys, "--loss", "0.01%..10%", "--rwnd", "64KiB")
    rows = [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()[2:]]
    limits = {row[0]: row[1] for row in rows if row[0].endswith("%")}
    assert limits == {
        "0.01%": "receiver window",
        "0.0215%": "receiver window",
        "0.0464%": "receiver window",
        "0.1%": "receiver window",
        "0.215%": "loss (triple duplicates)",
        "0.464%": "loss (triple duplicates)",
        "1%": "loss (triple duplicates)",
        "2.15%": "loss (triple duplicates)",
        "4.64%": "timeouts",
        "10%": "timeouts",
    }


def test_point_of_range_equals_single_prediction(capsys: Capture) -> None:
    result = document(capsys, "--loss", "0.1%..10%", "--points", "4", "--flows", "2")
    losses = [p["scenario"]["network"]["bottleneck"]["loss"] for p in result["points"]]
    assert losses == ["0.1%", "0.464%", "2.15%", "10%"]
    single = document(capsys, "--loss", "2.15%", "--flows", "2")
    assert single["scenario"] == result["points"][2]["scenario"]
    assert rates_of(single) == rates_of(result["points"][2])


def test_csv_has_row_per_point_and_model(capsys: Capture) -> None:
    arguments = ("--loss", "0.1%..10%", "--flows", "1..2", "--points", "3")
    rows = list(csv.DictReader(io.StringIO(predict(capsys, *arguments, "--csv"))))
    models = len({row["engine"] for row in rows})
    assert len(rows) == 3 * 2 * models
    by_point = {(r["loss_ratio"], r["flows"]): r for r in rows if r["engine"] == "pftk"}
    assert list(by_point) == [(p, n) for p in ("0.001", "0.01", "0.1") for n in ("1", "2")]
    cell = by_point["0.01", "2"]
    assert float(cell["send_rate_pps"]) == pytest.approx(2 * AT_ONE_PERCENT, abs=1e-3)
    delivered = float(cell["send_rate_pps"]) * 0.99 * 1460 * 8
    assert float(cell["goodput_bps"]) == pytest.approx(delivered)
    assert (cell["rtt_s"], cell["rate_bps"], cell["regime"]) == ("0.1", "", "triple duplicates")
    assert cell["completion_time_s"] == ""


@pytest.mark.parametrize(
    ("option", "text", "count", "expected"),
    [
        ("flows", "1..4", None, ["1", "2", "3", "4"]),
        ("flows", "1..100", 3, ["1", "10", "100"]),
        ("rtt", "10ms..1s", 3, ["10ms", "100ms", "1s"]),
        ("rate", "1mbit..1gbit", 4, ["1mbit", "10mbit", "100mbit", "1gbit"]),
        ("size", "10KB..1MB", 3, ["10KB", "100KB", "1MB"]),
        ("size", "10pkt..1MB", 3, ["10pkt", "83pkt", "1MB"]),
        ("loss", "1%..2%", 2, ["1%", "2%"]),
        ("loss", "0.001..0.1", 3, ["0.001", "1%", "0.1"]),
    ],
)
def test_ranges_give_round_values(
    option: str, text: str, count: int | None, expected: list[str]
) -> None:
    given: dict[str, Any] = {"rtt": "100ms", "loss": "1%", option: text}
    assert [point[option] for point in expand_points(PathOptions(**given), count)] == expected


def test_curve_covers_requested_losses() -> None:
    options = PathOptions(rtt="100ms", loss="1%")
    ratios = [float(p["loss"].rstrip("%")) / 100 for p in make_loss_curve_points(options, [0.01])]
    assert len(ratios) == CURVE_POINTS
    assert ratios == sorted(ratios)
    assert [ratios[0], ratios[-1]] == pytest.approx([0.01 / 30, 0.3], rel=1e-9)
    over = [
        float(p["loss"].rstrip("%")) / 100
        for p in make_loss_curve_points(options, [0.001, 0.03, 0.1])
    ]
    assert [over[0], over[-1]] == pytest.approx([0.001, 0.1])
    assert make_loss_curve_points(options, [0.4])[-1]["loss"] == "50%"
    assert float(make_loss_curve_points(options, [0.0])[0]["loss"].rstrip("%")) > 0


@pytest.mark.parametrize(
    "arguments",
    [["--loss", "1%", "--rwnd", "64KiB"], ["--loss", "0.001%..20%"], ["--rate", "10mbit"]],
)
def test_rate_loss_figure_shades_regimes(
    arguments: list[str], tmp_path: Path, capsys: Capture
) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "made" / "here"
    assert main(["predict", "--rtt", "100ms", *arguments, "--plot", str(folder)]) == 0
    assert f"wrote {folder / 'rate-loss.png'}" in capsys.readouterr().err
    pixels = _colours(folder / "rate-loss.png")
    assert len(pixels) > 100
    assert (folder / "rate-loss.png").read_bytes().startswith(b"\x89PNG")


def _colours(path: Path) -> set[tuple[int, ...]]:
    from matplotlib.image import imread  # noqa: PLC0415 - optional

    image = (imread(path) * 255).round().astype(int)
    return {tuple(pixel) for row in image[::3, ::3] for pixel in row}


def test_predict_uses_every_formula_of_paths() -> None:
    used = [*select_path_formulas("bulk"), *select_path_formulas("transfers")]
    assert sorted(used) == sorted(
        name
        for name, row in FORMULAS.items()
        if row.accepts_measured and "on/off" not in row.applies
    )


@needs_transfers
def test_size_adds_transfer_time_to_rate(capsys: Capture) -> None:
    result = document(capsys, "--loss", "1%", "--size", "100KB")
    by_engine = {a["engine"]: a for a in result["answers"]}
    took = by_engine["short"]["metrics"]["completion_time_s"]["value"]
    assert result["transfer"]["traffic"]["kind"] == "transfers"
    transfer_scenario = Scenario.from_dict(result["transfer"])
    assert took == answer(transfer_scenario, ["short"])[0]["completion_time_s"]
    assert rates_of(result)["pftk"] == pytest.approx(AT_ONE_PERCENT, abs=5e-4)
    out = " ".join(predict(capsys, "--loss", "1%", "--size", "100KB").split())
    assert "A transfer of this size takes about" in out
    assert "1.14 Mbit/s in the long run" in out


@needs_transfers
def test_range_of_sizes_has_times_and_mean_rates(capsys: Capture) -> None:
    arguments = ("--loss", "1%", "--size", "10KB..200KB", "--points", "3")
    rows = list(csv.DictReader(io.StringIO(predict(capsys, *arguments, "--csv"))))
    times = [float(r["completion_time_s"]) for r in rows if r["engine"] == "short"]
    assert len(times) == 3
    assert times == sorted(times)
    assert [r["size_pkts"] for r in rows if r["engine"] == "short"] == ["7", "31", "137"]
    assert "long-term" in predict(capsys, *arguments)


@needs_transfers
def test_lossless_transfer_needs_no_other_limit(capsys: Capture) -> None:
    result = document(capsys, "--rwnd", "64KiB", "--size", "100KB")
    assert any("completion_time_s" in a.get("metrics", {}) for a in result["answers"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--loss", "0%"], ["--loss", "0% means no loss", "nothing limits", "--rwnd"]),
        ([], ["--loss", "nothing limits the flow", "--rate"]),
        (["--loss", "1e-300"], ["--loss", "1e-300 means no loss", "nothing limits"]),
        (["--loss", "100%"], ["--loss", "loses every packet"]),
        (["--loss", "1"], ["--loss", "loses every packet", "1%"]),
        (["--loss", "120%"], ["--loss", "too large", "100%"]),
        (["--loss", "1.2"], ["--loss", "above 1", "1.2%"]),
        (["--loss", "-1%"], ["--loss", "negative"]),
        (["--loss", "nan"], ["--loss", "not a ratio"]),
        (["--loss", "1%", "--rtt", "0ms"], ["--rtt", "must be above 0"]),
        (["--loss", "1%", "--rtt", "0"], ["--rtt", "must be above 0"]),
        (["--loss", "1%", "--rtt", "100"], ["--rtt", "has no unit", "100ms"]),
        (["--loss", "1%", "--rtt", "1us", "--rate", "1mbit"], ["--rtt", "12.32ms"]),
        (["--loss", "1%", "--size", "0pkt"], ["--size", "an empty transfer"]),
        (["--loss", "1%", "--size", "100"], ["--size", "no unit", "100pkt or 100B"]),
        (["--loss", "1%", "--size", "1e6"], ["--size", "no unit", "1000000pkt or 1000000B"]),
        (["--loss", "1%", "--size", "+1_000"], ["--size", "no unit", "1000pkt or 1000B"]),
        (["--loss", "1%", "--size", "0"], ["--size", "an empty transfer"]),
        (["--loss", "1%", "--size", "10..1MB"], ["--size", "no unit", "10pkt or 10B"]),
        (["--loss", "1%", "--rate", "0"], ["--rate", "above 0", "10mbit"]),
        (["--loss", "1%", "--size", "0KB"], ["--size", "an empty transfer"]),
        (["--loss", "1%", "--size", "100kbit"], ["--size", "not a size"]),
        (["--loss", "1%", "--rwnd", "0"], ["--rwnd", "is less than one packet"]),
        (["--loss", "1%", "--rwnd", "0KiB"], ["--rwnd", "is less than one packet"]),
        (["--loss", "1%", "--rwnd", "100B"], ["--rwnd", "is less than one packet"]),
        (["--loss", "1%", "--flows", "0"], ["--flows", "at least 1"]),
        (["--loss", "1%", "--flows", "1.5"], ["--flows", "not a whole number"]),
        (["--loss", "1%", "--flows", "9" * 30], ["--flows", "too large"]),
        (["--loss", "1%", "--mss", "0"], ["--mss", "payload"]),
        (["--loss", "1%", "--mss", "65496"], ["--mss", "65495B"]),
        (["--loss", "1%", "--mss", "10mbit"], ["--mss", "not a size"]),
        (["--loss", "1%", "--rate", "10mbps"], ["--rate", "10mbit"]),
        (["--loss", "1%", "--iw", "0"], ["--iw", "at least 1"]),
        (["--loss", "1%", "--iw", "ten"], ["--iw", "not a whole number"]),
        (["--loss", "1%", "--min-rto", "0s"], ["--min-rto", "above 0"]),
        (["--loss", "1%", "--stack", "nosuch"], ["--stack", "rfc-newreno"]),
        (["--loss", "0.01%.."], ["--loss", "has no end", "0.01%..10%"]),
        (["--loss", "..1%"], ["--loss", "has no beginning"]),
        (["--loss", ".."], ["--loss", "has no ends"]),
        (["--loss", "10%..1%"], ["--loss", "descending order", "1%..10%"]),
        (["--loss", "1%..1%"], ["--loss", "one value"]),
        (["--loss", "0%..1%"], ["--loss", "begins at 0", "write 0.01%..1%"]),
        (["--loss", "0.01..10%"], ["--loss", "only one end", "0.01%..10%"]),
        (["--loss", "1%..2%..3%"], ["--loss", "more than two ends"]),
        (["--loss", "1%..100%"], ["--loss", "loses every packet"]),
        (["--loss", "1%..120%"], ["--loss", "too large"]),
        (["--loss", "1%", "--rtt", "0ms..10ms"], ["--rtt", "above 0"]),
        (["--loss", "1%", "--rtt", "10ms.."], ["--rtt", "has no end"]),
        (["--loss", "1%", "--flows", "1.."], ["--flows", "has no end"]),
        (["--loss", "1%", "--size", "1KB.."], ["--size", "has no end"]),
        (["--loss", "1%", "--rate", "1mbit..unlimited"], ["--rate", "without an end"]),
        (["--loss", "1%", "--points", "5"], ["--points", "no option is a range"]),
        (["--loss", "1%..2%", "--points", "1"], ["--points", "write 2 to 1000"]),
        (["--loss", "1%..2%", "--points", "1001"], ["--points", "write 2 to 1000"]),
        (
            ["--loss", "1%..2%", "--flows", "1..100", "--points", "50"],
            ["1700 combinations", "--points 31"],
        ),
        (["--loss", "1%", "--csv", "--json"], ["--csv", "--json"]),
        (["--loss", "1%..2%", "--explain"], ["--explain", "--loss is a range"]),
        (["--loss", "1%", "--explain", "--json"], ["--explain", "provenance"]),
        (["--loss", "1%", "--rtt", "1ms..2ms", "--plot", "x"], ["--plot", "one value for --rtt"]),
    ],
)
def test_bad_input_is_rejected_with_option_name(
    arguments: list[str], words: list[str], capsys: Capture
) -> None:
    rtt = [] if "--rtt" in arguments else ["--rtt", "100ms"]
    assert main(["predict", *rtt, *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    for word in words:
        assert word in err


def test_warnings_with_csv_name_options(capsys: Capture) -> None:
    assert main(["predict", "--rtt", "100ms", "--loss", "1%", "--csv"]) == 0
    err = capsys.readouterr().err
    assert "write --rate 10mbit" in err
    assert "network." not in err


def interrupt_at(monkeypatch: pytest.MonkeyPatch, point: int) -> None:
    """Interrupt the command while a point, counted from 0, is computed."""
    counter = iter(range(1000))

    def answer_or_interrupt(*given: Any) -> Any:
        if next(counter) == point:
            raise KeyboardInterrupt
        return answer(*given)

    monkeypatch.setattr("tcpcast.path.prediction.answer", answer_or_interrupt)


@pytest.mark.parametrize("form", ["--json", "--csv"])
def test_interrupted_range_prints_completed_points(
    form: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    interrupt_at(monkeypatch, 2)
    arguments = ["predict", "--rtt", "100ms", "--loss", "1%..5%", "--points", "4", form]
    assert main([*arguments, "--plot", str(tmp_path / "none")]) == 130
    out, err = capsys.readouterr()
    if form == "--json":
        assert len(json.loads(out)["points"]) == 2
    else:
        assert len({row["loss_ratio"] for row in csv.DictReader(io.StringIO(out))}) == 2
    assert "interrupted after 2 of 4 predictions" in err
    assert not (tmp_path / "none").exists()


def test_interrupt_before_first_point_prints_message(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_at(monkeypatch, 0)
    assert main(["predict", "--rtt", "100ms", "--loss", "1%..5%"]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert "interrupted" in err


@needs_transfers
def test_no_simulation_starts_after_interrupt(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[list[str]] = []

    def interrupted(scenario: Scenario, engines: list[str], options: Any) -> list[Answer]:
        requested.append(list(engines))
        answers = answer(scenario, [name for name in engines if name != "packet"], options)
        return (
            [*answers, Answer("packet", status=Status.INTERRUPTED)]
            if "packet" in engines
            else answers
        )

    monkeypatch.setattr("tcpcast.path.prediction.answer", interrupted)
    arguments = ("--rtt", "1s", "--loss", "1%", "--size", "9pkt", *CLASSIC, "--packet")
    assert main(["predict", *arguments]) == 130
    steady, transfer = requested
    assert "packet" in steady
    assert "packet" not in transfer
    assert "cardwell" in capsys.readouterr().out


def test_unwritable_plot_directory_exits_3(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "file").write_text("")
    folder = str(tmp_path / "file" / "below")
    assert main(["predict", "--rtt", "100ms", "--loss", "1%", "--plot", folder]) == 3
    assert "cannot write" in capsys.readouterr().err


def test_text_aligns_columns_and_indents_paragraphs() -> None:
    models = Column("a\nmodel", ["x", "long one"], right=False)
    assert plain_text([Table([models, Column("rate", ["1", "22"])])]).splitlines() == [
        " a",
        " model     rate",
        "────────────────",
        " x            1",
        " long one    22",
    ]
    wrapped = plain_text([Paragraph("one two three four five six seven", mark=" ! ")], 20)
    assert wrapped.splitlines() == [" ! one two three", "   four five six", "   seven"]
