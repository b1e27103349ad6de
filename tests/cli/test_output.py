"""Output files: what stays, what is replaced, and what a failure leaves behind."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tcpcast
from tcpcast import output
from tcpcast.cli import main
from tcpcast.errors import MachineError, TcpcastError
from tcpcast.report import chart
from tcpcast.scenario import read_packaged_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    Text = pytest.CaptureFixture[str]

FIGURE_BYTES = output.figure_bytes
CAPTURED = [
    "run", "web-10mbit", "--engine", "packet", "--set=run.transfers=50", "--set=run.warmup=0s",
]  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def small_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where figures go is looked at here, and not what is in them: they are all the same one."""
    monkeypatch.setattr(output, "figure_bytes", empty_figure)


def empty_figure(_: object, form: str, name: str) -> bytes:
    return empty(form, name)


@cache
def empty(form: str, name: str) -> bytes:
    return FIGURE_BYTES(chart.figure_class()(figsize=(1, 1)), form, name)


def captured(file: str) -> list[str]:
    return [*CAPTURED, f'--set=probes.pcap=[{{ link = "sender", file = "{file}" }}]']


def commands(target: str) -> dict[str, list[str]]:
    """Commands that write the file ``target``, or for figures one of that name."""
    if not Path("in.pcap").exists():
        assert main(captured("in.pcap")) == 0
    folder, name = os.path.split(target)
    told = {
        "capture": captured(target),
        "scenario": ["trace", "in.pcap", "--scenario", target],
    }
    figure = {
        "states.png": ["run", "web-10mbit", "--engine=engset", "--plot", folder or "."],
        "rate-loss.png": ["predict", "--rtt=1s", "--loss=1%", "--plot", folder or "."],
        "streams.png": [
            "plan", "streams", "--rate=1gbit", "--rtt=100ms", "--loss=1%", "--plot", folder or ".",
        ],
        "connections.parquet": ["trace", "in.pcap", "--parquet", folder or "."],
        "one-path.toml": ["new", "one-path"],
    }  # fmt: skip
    return told | ({name: figure[name]} if name in figure else {})


FILES = ["states.png", "rate-loss.png", "streams.png", "connections.parquet", "one-path.toml"]


@pytest.mark.parametrize("name", FILES)
def test_what_is_there_stays_unless_forced(name: str, here: Path, capsys: Text) -> None:
    for which, command in commands(name).items():
        target = here / name
        target.write_bytes(b"precious")
        before = sorted(here.iterdir())
        capsys.readouterr()
        assert main(command) == 2, which
        out, err = capsys.readouterr()
        assert out == ""  # refused before the work
        assert f"{name} exists and is not overwritten" in err
        assert "--force" in err
        assert target.read_bytes() == b"precious"
        assert sorted(here.iterdir()) == before
        assert main([*command, "--force"]) == 0, which
        assert target.read_bytes() != b"precious"


@pytest.mark.parametrize("name", FILES)
def test_no_link_is_followed(name: str, here: Path, capsys: Text) -> None:
    precious = here / "precious.txt"
    precious.write_text("precious")
    for which, command in commands(name).items():
        (here / name).unlink(missing_ok=True)
        (here / name).symlink_to(precious)
        assert main(command) == 2, which
        assert "exists and is not overwritten" in capsys.readouterr().err
        assert main([*command, "--force"]) == 0, which
        assert not (here / name).is_symlink()
        assert precious.read_text() == "precious"


@pytest.mark.parametrize("name", [*FILES[:4]])
def test_our_own_of_the_same_kind_is_replaced(name: str, here: Path) -> None:
    command = commands(name)[name]
    assert main(command) == 0
    first = (here / name).stat()
    assert main(command) == 0
    assert (here / name).stat().st_ino != first.st_ino
    assert not [path for path in here.iterdir() if path.name.startswith(".tcpcast")]


def test_a_folder_a_device_or_a_pipe_is_never_replaced(here: Path, capsys: Text) -> None:
    (here / "folder").mkdir()
    os.mkfifo(here / "pipe")
    for target in ("folder", "pipe", "/dev/null"):
        for more in ([], ["--force"]):
            assert main([*captured(target), *more]) == 2
            assert "cannot write" in capsys.readouterr().err


def test_a_folder_that_is_a_link_is_refused_with_where_it_leads(here: Path, capsys: Text) -> None:
    (here / "elsewhere").mkdir()
    (here / "link").symlink_to("elsewhere")
    assert main(["predict", "--rtt=1s", "--loss=1%", "--plot", "link"]) == 2
    assert str(here / "elsewhere") in capsys.readouterr().err
    assert not list((here / "elsewhere").iterdir())


@pytest.mark.parametrize("folder", ["in.txt/below", "/proc/none", ""])
def test_what_cannot_be_written_is_told_before_the_work(
    folder: str, here: Path, capsys: Text
) -> None:
    (here / "in.txt").write_text("a file")
    command = ["run", "web-10mbit", "--engine=packet", "--set=run.transfers=900000000"]
    code = main([*command, "--plot", folder])
    out, err = capsys.readouterr()
    assert (code, out) == (3 if folder else 2, "")
    assert "cannot write" in err or "is not a file name" in err


def test_two_captures_have_two_files(capsys: Text) -> None:
    one = '{ link = "sender", file = "a.pcap" }'
    assert main([*CAPTURED, f"--set=probes.pcap=[{one}, {one}]"]) == 2
    assert "two captures use the file a.pcap" in capsys.readouterr().err


def test_a_capture_is_relative_to_the_folder_of_the_scenario(here: Path) -> None:
    (here / "scenarios").mkdir()
    assert main(["new", "web-10mbit"]) == 0
    text = (here / "web-10mbit.toml").read_text()
    capture = '\n[[probes.pcap]]\nlink = "sender"\nfile = "in.pcap"\n'
    (here / "scenarios" / "own.toml").write_text(text + capture)
    assert main([CAPTURED[0], "scenarios/own.toml", *CAPTURED[2:]]) == 0
    assert (here / "scenarios" / "in.pcap").is_file()
    assert not (here / "in.pcap").exists()


def test_a_capture_that_fails_does_not_cost_the_answer(
    here: Path, capsys: Text, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output, "_rename_to_final_name", full)
    assert main(captured("in.pcap")) == 3
    out, err = capsys.readouterr()
    assert "connection rate" in out
    assert "cannot write in.pcap: No space left on device" in err
    assert not list(here.iterdir())
    assert main([*captured("in.pcap"), "--json"]) == 3
    assert '"write_errors": ["probes.pcap: cannot write in.pcap' in capsys.readouterr().out


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("mount is not there")
    if done.returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_leaves_nothing_behind(
    small_disk: Path, capsys: Text, monkeypatch: pytest.MonkeyPatch
) -> None:
    (small_disk / "filled").write_bytes(bytes(64 * 1024))
    monkeypatch.chdir(small_disk)
    try:
        _fill(small_disk, capsys)
    finally:
        monkeypatch.undo()  # a folder that somebody is in cannot be unmounted


def _fill(small_disk: Path, capsys: Text) -> None:
    assert main(["new", "one-path"]) == 3
    assert "No space left on device" in capsys.readouterr().err
    for command in (captured("in.pcap"), ["run", "web-10mbit", "--engine=engset", "--plot", "."]):
        assert main(command) == 3
        out, err = capsys.readouterr()
        assert "connection rate" in out
        assert "No space left on device" in err
    assert [path.name for path in small_disk.iterdir()] == ["filled"]


def test_a_block_that_fails_leaves_nothing(here: Path) -> None:
    def interrupted() -> None:
        with output.atomic_file("a.txt") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(here.iterdir())


def test_a_name_that_is_taken_meanwhile_stays(here: Path) -> None:
    def late() -> None:
        with output.atomic_file("a.txt") as temporary:
            temporary.write_text("ours")
            (here / "a.txt").write_text("theirs")

    with pytest.raises(MachineError, match=r"cannot write a\.txt: File exists"):
        late()
    assert [path.read_text() for path in here.iterdir()] == ["theirs"]


def test_a_file_system_without_hard_links(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    output.write_text("a.txt", "text")
    assert [path.read_text() for path in here.iterdir()] == ["text"]
    with pytest.raises(MachineError, match="exists and is not overwritten"):
        output.write_text("a.txt", "other")


def test_python_has_the_same_rule(here: Path) -> None:
    pytest.importorskip("matplotlib")
    (here / "states.png").write_text("precious")
    answers = tcpcast.run("web-10mbit", "engset")
    with pytest.raises(TcpcastError, match=r"states\.png exists and is not overwritten"):
        answers.plot(here)
    assert (here / "states.png").read_text() == "precious"
    assert here / "states.png" in answers.plot(here, force=True)
    assert answers.plot(here)


def test_a_page_that_is_not_a_reproductions_stays(here: Path, capsys: Text) -> None:
    (here / "index.md").write_text("my notes")
    assert main(["reproduce", "engset", "--quick", "--output", "."]) == 2
    assert "index.md exists" in capsys.readouterr().err
    assert (here / "index.md").read_text() == "my notes"


def made_capture() -> Path:
    assert main(captured("in.pcap")) == 0
    return Path("in.pcap")


@pytest.mark.parametrize("option", ["--html", "--markdown", "--scenario"])
def test_the_capture_that_is_read_is_never_replaced(option: str, here: Path, capsys: Text) -> None:
    capture = made_capture()
    before = capture.read_bytes()
    capsys.readouterr()
    (here / "link").symlink_to("in.pcap")
    os.link(capture, here / "same.toml")
    for target in ("in.pcap", "./in.pcap", "link", "same.toml"):
        for read in (["in.pcap"], [str(here / "link")], ["in.pcap", "--second-capture", "in.pcap"]):
            assert main(["trace", *read, option, target, "--force"]) == 2
            out, err = capsys.readouterr()
            assert (out, "the command reads that file" in err) == ("", True)
    assert capture.read_bytes() == before
    assert (here / "link").is_symlink()


def test_standard_input_is_never_replaced(capsys: Text) -> None:
    capture = made_capture()
    with capture.open("rb") as file:
        before = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            assert main(["trace", "-", "--html", "in.pcap", "--force"]) == 2
        finally:
            os.dup2(before, 0)
            os.close(before)
    assert "the command reads that file" in capsys.readouterr().err


def own_scenario(capture: str, folder: Path = Path()) -> str:
    """Write a scenario of a stranger that names a capture, and return its file."""
    own = (
        read_packaged_text("web-10mbit")
        + f'\n[[probes.pcap]]\nlink = "sender"\nfile = "{capture}"\n'
    )
    folder.mkdir(exist_ok=True)
    (folder / "own.toml").write_text(own)
    return str(folder / "own.toml")


def test_the_scenario_that_is_read_is_never_replaced(here: Path, capsys: Text) -> None:
    file = own_scenario("in.pcap")
    before = Path(file).read_bytes()
    run = ["run", file, *CAPTURED[2:]]
    for command in (
        [*run, "--html", file],
        ["report", file, "--engine=engset", "--out", "own.md"],
        ["link", file, "--statistics", file, "--", "true"],
    ):
        (here / "own.md").unlink(missing_ok=True)
        (here / "own.md").symlink_to(file)
        assert main([*command, "--force"]) == 2, command
        assert "the command reads that file" in capsys.readouterr().err
    assert main([*run, "--html", "again.html"]) == 0
    assert main([*run, "--html", "again.html"]) == 2  # the capture, not the report, is in the way
    assert main([*run, "--html", "again.html", "--force"]) == 0
    assert Path(file).read_bytes() == before


@pytest.mark.parametrize("name", ["../in.pcap", "{here}/in.pcap", "out/in.pcap", "a/../../in.pcap"])
@pytest.mark.parametrize("engine", ["packet", "kernel"])
def test_a_scenario_writes_no_capture_outside_its_folder(
    name: str, engine: str, here: Path, capsys: Text
) -> None:
    file = own_scenario(name.format(here=here), here / "scenarios")
    (here / "scenarios" / "out").symlink_to(here)
    changes = ["--set=traffic={kind='bulk',flows=1}", "--set=tcp={stack='linux-reno'}"]
    short = ["--set=run={duration='2s',warmup='1s'}", "--set=network.ingress.rate=unlimited"]
    assert main(["run", file, "--engine", engine, *changes, *short, "--force"]) == 2
    out, err = capsys.readouterr()
    assert "is outside the scenario's directory" in out + err
    assert not (here / "in.pcap").exists()


def test_force_replaces_no_file_that_a_scenario_names_unless_it_is_a_capture(
    here: Path, capsys: Text
) -> None:
    run = ["run", own_scenario("thesis.txt"), *CAPTURED[2:], "--html", "mine.html", "--force"]
    (here / "thesis.txt").write_text("precious")
    assert main(run) == 2
    assert "thesis.txt exists and is not a capture" in capsys.readouterr().err
    assert (here / "thesis.txt").read_text() == "precious"


def test_a_link_to_a_device_or_a_descriptor_stays(here: Path, capsys: Text) -> None:
    (here / "null").symlink_to("/dev/null")
    (here / "out").symlink_to("/proc/self/fd/1")
    (here / "far").symlink_to("out")
    for target in ("null", "out", "far", "/dev/stdout"):
        assert main(["run", "web-10mbit", "--engine=engset", "--html", target, "--force"]) == 2
        assert "it is a device or a pipe" in capsys.readouterr().err
    assert all((here / name).is_symlink() for name in ("null", "out", "far"))
