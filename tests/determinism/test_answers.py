"""The comparison of recorded answers finds all differences, and only these."""

import json

import answers
import pytest
from corpus import Case, cases

PREDICT = Case("one", (("predict", "--rtt=50ms", "--loss=1%", "--json"),))


def test_corpus_has_hundreds_of_unique_names() -> None:
    names = [case.name for case in cases()]
    assert len(names) == len(set(names)) >= 300


def test_repeated_recordings_are_equal() -> None:
    assert list(answers.differences(answers.recorded(PREDICT), answers.recorded(PREDICT))) == []


def test_differing_numbers_lines_and_files_are_found() -> None:
    before = {"00-run": '"value": 1.25,\n"unit": "s"', "file-in.pcap": "24 abc"}
    assert list(answers.differences(before, {"00-run": '"value": 1.26,\n"unit": "s"'})) == [
        '00-run:1: "value": 1.25, -> "value": 1.26,',
        "file-in.pcap: only before",
    ]
    shorter = {**before, "00-run": '"value": 1.25,'}
    assert list(answers.differences(before, shorter)) == ["00-run: 2 lines before, 1 now"]


def test_renamed_key_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    before, now = {"00-run": '"again": 3, again_s'}, {"00-run": '"retrans": 3, again_s'}
    assert len(list(answers.differences(before, now))) == 1
    monkeypatch.setitem(answers.RENAMED, "again", "retrans")
    assert list(answers.differences(before, now)) == []


def test_removed_key_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {"00-run": ' "scheme": 2,\n "extra": "old",\n "steps": 8'}
    now = {"00-run": ' "scheme": 2,\n "steps": 8'}
    assert len(list(answers.differences(before, now))) == 2
    monkeypatch.setattr(answers, "REMOVED", frozenset({"extra"}))
    assert list(answers.differences(before, now)) == []


def test_words_are_not_structure() -> None:
    before = '{\n "reason": "write 3 packets",\n "value": 1.25\n}\nsome 4 words,\nmore'
    after = '{\n "reason": "packets: 3",\n "value": 1.25\n}\nsome\nother words: 4'
    assert answers.without_words(before) == answers.without_words(after)
    for changed in ('"value": 1.26', '"amount": 1.25', '"value": [\n1.25\n]'):
        other = after.replace('"value": 1.25', changed)
        assert answers.without_words(other) != answers.without_words(before)


def test_wall_times_and_digests_are_left_out() -> None:
    text = '{"answers": [{"wall_s": 1.5, "provenance": {"scenario": "sha256:0123456789abcdef"}}]}'
    assert answers.without_moment(json.loads(text)) == {"answers": [{"provenance": {}}]}
