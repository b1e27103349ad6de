"""Captures of services with a known cause: the verdict names it at each tap.

The captures are made by ``servers/make.py`` from ``servers/services-held-out.toml``.
"""

from pathlib import Path

import pytest
from tcpcast.captures import trace
from verdicts import Verdict, verdicts

FOLDER = Path(__file__).parent / "services/held-out"


@pytest.fixture(scope="module")
def all_verdicts() -> list[Verdict]:
    return verdicts(FOLDER)


@pytest.mark.parametrize("tap", ["snd", "mid", "rcv"])
def test_every_tap_identifies_the_cause_of_a_service(all_verdicts: list[Verdict], tap: str) -> None:
    at_tap = [verdict for verdict in all_verdicts if verdict.tap == tap]
    assert len(at_tap) == 20
    wrong = {verdict.scenario: verdict.found for verdict in at_tap if not verdict.right}
    assert not wrong


@pytest.mark.parametrize("name", ["outage-short", "outage-long"])
def test_interruption_has_the_time_and_length_of_the_outage(name: str) -> None:
    start, length = {"outage-short": (2.4, 2.6), "outage-long": (3.0, 7.0)}[name]
    table = trace(FOLDER / f"{name}-snd.pcap.gz").interruptions
    assert table["start_s"].size == 1
    # The outage begins some time after the server is ready; the last copy follows its end.
    assert abs(table["start_s"][0] - start) < 1
    assert length <= table["duration_s"][0] < 2 * length
