"""``tcpcast migrate``: what it rewrites, what it leaves alone, what it refuses."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tcpcast.cli import main
from tcpcast.errors import ScenarioError
from tcpcast.scenario import load, packaged_names, packaged_text
from tcpcast.scenario.migration import migrated

if TYPE_CHECKING:
    from pathlib import Path

REST = """
[network]
rtt = "50ms"
bottleneck = { rate = "10mbit" }

[traffic]
kind = "bulk"
flows = 1

[run]
duration = "60s"
"""
OLD = f"""# an old file
[tcp] # of a paper
stack = "rfc-newreno"
# the timer is set on each packet sent
timer_restart   = "send" # section 3.1

limited_transmit = "on-second"  # two
min_rto = "1s"
{REST}"""
NEW = f"""# an old file
[tcp] # of a paper
stack = "rfc-newreno"
# the timer is set on each packet sent
rules.timer_restart   = "send" # section 3.1

limited_transmit = true  # two
rules.limited_transmit_on = "second"
min_rto = "1s"
{REST}"""


def written(folder: Path, text: str) -> Path:
    path = folder / "old.toml"
    path.write_bytes(text.encode())
    return path


def test_keys_are_moved_where_they_stand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, OLD)
    path.chmod(0o640)
    assert main(["run", str(path), "--show"]) == 2
    assert "tcpcast migrate FILE" in capsys.readouterr().err
    assert main(["migrate", str(path)]) == 0
    assert path.read_text() == NEW
    assert path.stat().st_mode & 0o777 == 0o640
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "tcp.timer_restart is now tcp.rules.timer_restart",
        'tcp.limited_transmit = "on-second" is now tcp.limited_transmit = true and '
        'tcp.rules.limited_transmit_on = "second"',
    ]
    assert told.err == f"tcpcast: wrote {path}; try: tcpcast run {path} --show\n"
    rules = load(path).tcp.rules
    assert (rules.timer_restart, rules.limited_transmit_on) == ("send", "second")
    assert [entry.name for entry in tmp_path.iterdir()] == ["old.toml"]


def test_a_second_time_there_is_nothing_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, NEW)
    before = path.stat().st_mtime_ns, path.stat().st_ino
    assert main(["migrate", str(path)]) == 0
    assert main(["migrate", "--check", str(path)]) == 0
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before
    told = capsys.readouterr()
    assert told.out == ""
    assert "needs nothing" in told.err


def test_check_tells_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, OLD)
    assert main(["migrate", "--check", str(path)]) == 1
    assert path.read_text() == OLD
    assert "tcp.timer_restart is now" in capsys.readouterr().out


LAYOUTS = {
    'tcp = { window_unit = "bytes", min_rto = "1s" } # all': (
        'tcp = { rules.window_unit = "bytes", min_rto = "1s" } # all'
    ),
    'tcp = { limited_transmit = "on-second", min_rto = "1s" }': (
        'tcp = { limited_transmit = true, rules.limited_transmit_on = "second", min_rto = "1s" }'
    ),
    'tcp.timer_restart = "send"\ntcp.min_rto = "1s"': (
        'tcp.rules.timer_restart = "send"\ntcp.min_rto = "1s"'
    ),
    '[tcp]\r\nlimited_transmit = "on-second"\r\n': (
        '[tcp]\r\nlimited_transmit = true\r\nrules.limited_transmit_on = "second"\r\n'
    ),
    '[tcp]\nlimited_transmit = "on-second"': (
        '[tcp]\nlimited_transmit = true\nrules.limited_transmit_on = "second"'
    ),
    '[tcp]\nmin_rto = "2s"\n\n[tcp.max_plus] # C\ngrowth = "every-ack"\n\n[run]\n': (
        '[tcp]\nmin_rto = "2s"\n\n[tcp.rules.max_plus] # C\ngrowth = "every-ack"\n\n[run]\n'
    ),
    '[tcp]\nmax_plus.timeout = false\nmax_plus.growth = "every-ack"\n': (
        '[tcp]\nrules.max_plus.timeout = false\nrules.max_plus.growth = "every-ack"\n'
    ),
    '[tcp]\nrules.recovery = "reno"\n"window_unit" = "bytes"\n': (
        '[tcp]\nrules.recovery = "reno"\nrules."window_unit" = "bytes"\n'
    ),
    '[[class]]\nname = "a"\ntcp = { backoff_until = "ack" }\n[[class]]\nname = "b"\n': (
        '[[class]]\nname = "a"\ntcp = { rules.backoff_until = "ack" }\n[[class]]\nname = "b"\n'
    ),
    '[[class]]\nname = "a"\n[class.tcp]\nlast_packets_threshold = 1\n': (
        '[[class]]\nname = "a"\n[class.tcp]\nrules.last_packets_threshold = 1\n'
    ),
    'class = [{ name = "a", tcp = { window_unit = "bytes" } }]': (
        'class = [{ name = "a", tcp = { rules.window_unit = "bytes" } }]'
    ),
}


@pytest.mark.parametrize("old", LAYOUTS)
def test_every_way_to_write_a_table(old: str) -> None:
    new, changes = migrated(old, "x.toml")
    assert new == LAYOUTS[old]
    assert changes
    assert migrated(new, "x.toml") == (new, [])


def test_a_layout_that_cannot_be_kept_is_refused_with_what_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '[tcp]\ntimer_restart = "send"\n[tcp.rules]\nwindow_unit = "bytes"\n'
    path = written(tmp_path, text)
    assert main(["migrate", str(path)]) == 2
    assert path.read_text() == text
    told = capsys.readouterr()
    assert "write by hand: tcp.timer_restart is now tcp.rules.timer_restart" in told.err
    assert told.out == ""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[tcp\n", "not TOML"),
        ("\x00", "not TOML"),
        ("tcp = 3\nclass = [3]\n", "needs nothing"),
        ('[tcp]\nrules = 3\nwindow_unit = "bytes"\n', "needs nothing"),
    ],
)
def test_what_is_no_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: str
) -> None:
    path = written(tmp_path, text)
    assert main(["migrate", str(path)]) == (0 if line == "needs nothing" else 2)
    assert line in capsys.readouterr().err
    assert path.read_text() == text


def test_links_folders_and_names_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, OLD)
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    assert main(["migrate", str(link)]) == 2
    assert f"is a symbolic link, which is not followed; write {path}" in capsys.readouterr().err
    assert path.read_text() == OLD
    assert link.is_symlink()
    for name in (str(tmp_path), "web-10mbit", "", "a\0b"):
        assert main(["migrate", name]) == 2
        assert "no such file" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    path = written(tmp_path, OLD)
    tmp_path.chmod(0o500)
    assert main(["migrate", str(path)]) == 3
    tmp_path.chmod(0o700)
    assert path.read_text() == OLD


@pytest.mark.parametrize("name", packaged_names())
def test_packaged_scenarios_need_nothing(name: str) -> None:
    text = packaged_text(name)
    assert migrated(text, name) == (text, [])


def test_a_text_that_is_not_toml_is_told_with_its_place() -> None:
    with pytest.raises(ScenarioError, match=r"x\.toml:2:"):
        migrated("[tcp]\nwindow_unit = bytes\n", "x.toml")
