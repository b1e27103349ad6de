"""The verdict on a capture states only values and causes of its tables, in every output."""

import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest
from capture_files import CAPTURES, TRANSFER, read
from tcpcast.captures import Capture, iter_plain_rows, trace
from tcpcast.captures.advice import cause_or_limit_keys
from tcpcast.captures.quantity_text import (
    format_digits,
    format_percent,
    format_rate,
    format_size_rounded_up,
    format_time,
    format_volume,
)
from tcpcast.captures.subject import capture_subject
from tcpcast.captures.verdict import capture_findings, captures_findings
from tcpcast.report.full_report import captures_document
from tcpcast.report.html import html_page
from tcpcast.report.markdown import markdown_page
from tcpcast.report.text import plain_text
from tcpcast.report.trace import capture_parts, json_lines
from tcpcast.report.verdict import verdict_text

NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*\d|(?<![\w.])\d")
ENDS = ("src", "dst", "client", "server")
NAMES = re.compile(r"T0")
BOUND = "95 % of cases"
"""The quantile of the stated latency, which is part of its name."""


def numbers(sentence: str) -> set[str]:
    """Return the numbers of a text, without zeros at their ends."""
    found = {number.rstrip(".,") for number in NUMBER.findall(sentence)}
    return {number.rstrip("0").rstrip(".") if "." in number else number for number in found}


def addresses(capture: Capture) -> set[str]:
    tables = (capture.connections, capture.services, capture.failed, capture.interruptions)
    return {end for table in tables for name in ENDS for end in table.get(name, [])}


def shown_values(document: dict[str, Any]) -> Iterator[str]:
    """Yield the numbers of a JSON document in the units of sentences."""
    for name, value in document.items():
        if isinstance(value, dict):
            yield from shown_values(value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{len(value):,}"
            for row in value:
                yield from shown_values(row)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            continue
        elif name.endswith("_bps"):
            yield format_rate(value)
        elif name.endswith("_s"):
            yield format_time(value)
        elif "bytes" in name:
            yield from (format_volume(value), format_size_rounded_up(value), f"{value:,.0f}")
        elif isinstance(value, float):
            yield from (format_percent(value), format_digits(100 * value), format_digits(value, 2))
        else:
            yield f"{value:,}"


def seen_numbers(capture: Capture) -> set[str]:
    """Return the numbers of the report and the JSON document, without the verdict."""
    (document,) = capture.to_json()["captures"]
    del document["findings"]
    advised = [row["advice"] for row in document["connections"]]
    report = plain_text(capture_parts(capture, verdict=False), 10_000)
    return numbers("\n".join([report, *advised, *shown_values(document)]))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_every_number_of_the_verdict_is_in_the_report(path: Path) -> None:
    capture = read(path)
    sentence = capture.verdict()
    assert sentence.endswith(".")
    assert " nan" not in sentence
    assert "  " not in sentence
    bare = NAMES.sub("", sentence).replace(BOUND, "")
    for end in sorted(addresses(capture), key=len, reverse=True):
        bare = bare.replace(str(end), "")
    assert numbers(bare) <= seen_numbers(capture), sentence


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_an_unknown_limit_is_not_named(path: Path) -> None:
    capture = read(path)
    table = capture.connections
    if (
        capture_subject(capture).kind == "failures"
        or not table["src"].size
        or capture.services["server"].size
    ):
        return
    sentence = capture.verdict()
    known = [name for name in cause_or_limit_keys(table).tolist() if name != "unknown"]
    assert ("limited by" in sentence) <= bool(known)
    if len(table["src"]) == 1:
        assert ("limited by" in sentence) == bool(known)
        assert ("does not show what limits" in sentence) != bool(known)


def test_every_output_begins_with_the_verdict() -> None:
    capture = trace(TRANSFER)
    verdict = capture.verdict()
    assert verdict.startswith(
        "10.99.0.1:47174 sends 192 KiB to 10.99.0.2:5001 at 424 kbit/s "
        "(including retransmissions), limited by the congestion window (71 % of the time; "
        "loss recovery 25 %)"
    )
    assert plain_text(capture_parts(capture), 10_000).splitlines()[0] == verdict
    document = captures_document([capture], "tcpcast report transfer.pcap.gz")
    assert markdown_page(document, "mark").count(verdict.replace("<", "&lt;")) == 1
    assert escape(verdict) in html_page(document, "mark")
    found = json.loads("\n".join(json_lines([capture])))
    assert found["verdict"] == found["captures"][0]["verdict"] == verdict
    assert capture.to_json()["verdict"] == capture.verdict() == verdict


@pytest.mark.parametrize("by", ["all", "pair", "source", "destination"])
def test_a_group_is_the_subject_if_flows_are_grouped(by: str) -> None:
    capture = trace(TRANSFER)
    groups = capture.groups(by)
    sentence = verdict_text(capture_findings(capture, groups))
    (group,) = iter_plain_rows(groups)
    ends = {"src": " from 10.99.0.1", "dst": " to 10.99.0.2"}
    for name, words in ends.items():
        assert (words in sentence) == (group[name] != "*")
    sent = (
        f"sends {format_volume(group['bytes'])} at {format_rate(group['throughput_bps'])}, "
        "limited by the"
    )
    assert sent in sentence


def test_the_loss_between_two_taps_is_named_unless_packets_cannot_be_matched() -> None:
    capture = trace(TRANSFER, after=TRANSFER)
    assert capture.verdict().endswith("no packet was lost between the taps.")
    capture.between["lost_between"][0], capture.between["loss_ratio_between"][0] = 3, 0.01234
    assert capture.verdict().endswith("between the taps, 3 packets were lost (1.23 %).")
    capture.between["loss_ratio_between"][0] = float("nan")
    assert capture.verdict().endswith("because most packets cannot be matched.")


def test_the_capture_with_the_most_data_is_named() -> None:
    one, two = trace(TRANSFER), trace(TRANSFER.with_suffix(".zst"))
    two.connections["bytes"] = two.connections["bytes"] * 2
    sentence = verdict_text(captures_findings([one, two]))
    assert sentence == f"Most data are in {two.file}: {two.verdict()}"
    one.rest["refused"] = 1
    assert verdict_text(captures_findings([one, two])).endswith(
        "; connections of 1 other capture failed."
    )
