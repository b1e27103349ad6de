"""`tcpcast trace` as text: limiting factors, advice, groups of flows, the worst 20."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.answer.limit_names import LIMIT_NAMES, limit_name_with_article
from tcpcast.captures import Capture, iter_plain_rows
from tcpcast.captures.advice import REMEDIES_BY_CAUSE, REMEDIES_BY_LIMIT, advise_each_direction
from tcpcast.captures.cause_rules import STATES_BY_CAUSE
from tcpcast.captures.groups import GROUPINGS
from tcpcast.captures.subject import bytes_by_limit
from tcpcast.cli import main
from tcpcast.report import text as on_terminal
from tcpcast.report.trace import capture_parts, worst_first_order
from tcpcast.report.trace_cells import rate_scale

Output = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[2]
TRANSFER = ROOT / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"


def capture_with_limits(*shares: dict[str, float]) -> Capture:
    """Return a capture with one copy of the transfer per argument, as separate connections."""
    capture = tcpcast.trace(TRANSFER)
    table = {name: np.repeat(column, len(shares)) for name, column in capture.connections.items()}
    table["connection"] = np.arange(len(shares))
    table["src"] = np.array([f"10.0.0.{index}:4000" for index in range(len(shares))])
    for limit in REMEDIES_BY_LIMIT:
        table[f"share_{limit}"] = np.array(
            [direction_shares.get(limit, 0.0) for direction_shares in shares]
        )
    table["limited_by"] = np.array(
        [
            max(direction_shares, key=lambda name: direction_shares[name])
            for direction_shares in shares
        ]
    )
    for name, value in {"window_reduction": 0.5, "bottleneck_rate_bps": np.nan}.items():
        table[name] = np.full(len(shares), value)
    capture.connections = table
    capture.connection_count = len(shares)
    return capture


def text(capture: Capture, width: int, **more: Any) -> list[str]:
    return on_terminal.plain_text(capture_parts(capture, **more), width).splitlines()


def trace(*arguments: object) -> int:
    return main(["trace", *map(str, arguments)])


@pytest.mark.parametrize("limit", REMEDIES_BY_LIMIT)
def test_limit_has_one_name_in_all_places(limit: str) -> None:
    capture = capture_with_limits({limit: 1.0})
    name = LIMIT_NAMES[limit]
    verdict, *lines = text(capture, 10_000)
    row = next(line for line in lines if line.startswith(" 10.0.0.0:4000 > "))
    share = "" if limit == "unknown" else " 100%"
    assert row.endswith(f"  {name}{share}")
    assert any(re.match(rf" limited by +{name} +100 %", line) for line in lines)
    phrase = f"imited by {limit_name_with_article(limit)}"
    is_unknown = limit == "unknown"
    expected = "Limit unknown." if is_unknown else f"L{phrase}"
    assert advise_each_direction(capture.connections)[0].startswith(expected)
    assert phrase in verdict or is_unknown
    (summed,) = iter_plain_rows(bytes_by_limit(capture.connections))
    assert summed["limit"] == limit


def test_causes_and_states_have_names() -> None:
    assert {*REMEDIES_BY_LIMIT, *REMEDIES_BY_CAUSE} <= LIMIT_NAMES.keys()
    for cause in ("receiver", "link"):
        assert LIMIT_NAMES[cause] == LIMIT_NAMES[STATES_BY_CAUSE[cause][0]]


def test_narrow_table_omits_model_column_first() -> None:
    capture = capture_with_limits({"loss_recovery": 0.62, "timeout": 0.38}, {"receiver_window": 1})
    capture.connections["dst"] = np.repeat("100.200.100.200:40000", 2)
    for width, shown in [(72, False), (100, True)]:
        heads = "\n".join(text(capture, width, verdict=False)[2:5])
        assert ("PFTK" in heads) is shown
        assert "limited" in heads


def test_three_worst_directions_have_advice() -> None:
    capture = capture_with_limits(*({"timeout": 0.7, "application": 0.3} for _ in range(5)))
    capture.connections["timeouts"] = np.array([0, 9, 1, 8, 7])
    lines = text(capture, 10_000)
    titles = [index for index, line in enumerate(lines) if re.fullmatch(r"\S+ > \S+", line)]
    assert [lines[index].split(":")[0] for index in titles] == ["10.0.0.1", "10.0.0.3", "10.0.0.4"]
    advice_texts = advise_each_direction(capture.connections)[
        worst_first_order(capture.connections)
    ]
    assert [lines[index + 1].strip() for index in titles] == advice_texts[:3].tolist()
    assert "Limited by timeouts (70 % of the time; application 30 %)" in advice_texts[0]


def test_single_connection_is_shown_in_detail() -> None:
    capture = capture_with_limits(
        {"congestion_window": 0.5, "loss_recovery": 0.375, "unknown": 0.125}
    )
    lines = text(capture, 80)
    assert max(map(len, lines[1:])) <= 80
    report = "\n".join(lines)
    row = {name: column[0] for name, column in capture.connections.items()}
    assert f"handshake {1e3 * row['handshake_rtt_s']:.0f}" in report
    assert f"window scale {row['window_scale']:.0f}, " in report
    assert f"{row['retransmissions']}: " in report
    assert f"{row['td']} TD, {row['to']} TO" in report
    assert f"initial {row['initial_window_pkts']:.0f} packets" in report
    bars = re.findall(r"(\w[a-z ]+?) +(\d+) %  (█+\S?)$", report, re.MULTILINE)
    assert bars == [
        ("limited by   congestion window", "50", "█" * 16),
        ("loss recovery", "38", "█" * 12),
        ("unknown", "12", "█" * 4),
    ]
    flat = re.sub(r"\s+", " ", report)
    assert advise_each_direction(capture.connections)[0] in flat


def test_small_reverse_direction_is_not_shown_in_detail() -> None:
    capture = capture_with_limits({"application": 1}, {"application": 1})
    capture.connection_count = 1
    assert sum(line.startswith(" tap ") for line in text(capture, 80)) == 2
    capture.connections["bytes"] = capture.connections["bytes"] // np.array([1, 100])
    assert sum(line.startswith(" tap ") for line in text(capture, 80)) == 1


def test_trace_prints_worst_twenty_or_all(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = capture_with_limits(*({"application": 1.0} for _ in range(30)))
    monkeypatch.setattr("tcpcast.cli.trace.read", lambda *_, **__: capture)
    assert trace(TRANSFER) == 0
    out = capsys.readouterr().out
    assert len(re.findall(r"^ 10\.0\.0\.\d+:4000 > ", out, re.MULTILINE)) == 20
    assert "… and 10 more; --all prints all" in out
    assert trace(TRANSFER, "--all") == 0
    out = capsys.readouterr().out
    assert len(re.findall(r"^ 10\.0\.0\.\d+:4000 > ", out, re.MULTILINE)) == 30
    assert "more" not in out


@pytest.mark.parametrize("by", GROUPINGS)
def test_group_by_prints_groups(by: str, capsys: Output) -> None:
    assert trace(TRANSFER, "--group-by", by) == 0
    out = capsys.readouterr().out
    assert "p_e" in out
    ends = {"all": ["all"], "pair": ["10.99.0.1 >", "10.99.0.2"], "source": ["10.99.0.1 >", "all"]}
    for end in ends.get(by, ["all >", "10.99.0.2"]):
        assert re.search(rf"^ {re.escape(end)}( |$)", out, re.MULTILINE)
    assert trace(TRANSFER, "--group-by", by, "--json") == 0
    (capture,) = json.loads(capsys.readouterr().out)["captures"]
    (group,) = capture["groups"]
    assert group["flows"] == 1
    assert group["packets_sent"] == capture["connections"][0]["data_packets"]
    assert trace(TRANSFER, "--group-by", by, "--csv") == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert list(row) == ["file", *tcpcast.trace(TRANSFER).groups(by)]
    assert row["loss_events"] == str(group["loss_events"])


def test_rtt_option_separates_loss_events(capsys: Output) -> None:
    counts = []
    for rtt in ("1us", "100s"):
        assert trace(TRANSFER, "--group-by", "all", "--rtt", rtt, "--json") == 0
        (capture,) = json.loads(capsys.readouterr().out)["captures"]
        counts.append(capture["groups"][0]["loss_events"])
    (row,) = capture["connections"]
    assert counts == [row["td"] + row["to"], 1]


def test_every_group_column_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    section = page.partition("\n### Flows together\n")[2].partition("\n## ")[0]
    section = section.partition("\n### ")[0]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^- .*?:", section, re.MULTILINE))))
    assert named == tcpcast.trace(TRANSFER).groups("all").keys()


def test_rate_unit_suits_median_rate() -> None:
    assert rate_scale(np.array([300.0, 551.0, np.nan])).unit == "bit/s"
    assert rate_scale(np.array([19.0, 551.0, 10_225_183.0])).unit == "kbit/s"
    assert rate_scale(np.array([1.0, 1.0, 1e15])).unit == "Gbit/s"
