"""Output files: which files are kept or replaced, and cleanup after errors."""

import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import tcpcast
from tcpcast.cli import main
from tcpcast.process import output
from tcpcast.process.errors import MachineError, TcpcastError
from tcpcast.report import chart
from tcpcast.scenario import read_packaged_text

Text = pytest.CaptureFixture[str]

FIGURE_BYTES = output.figure_bytes
CAPTURED = [
    "run", "web-10mbit", "--engine", "packet", "--set=run.transfers=50", "--set=run.warmup=0s",
]  # fmt: skip


@pytest.fixture(autouse=True)
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def small_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace all figures by one small figure: these tests check file names only."""
    monkeypatch.setattr(output, "figure_bytes", empty_figure)


def empty_figure(_: object, form: str, name: str) -> bytes:
    return empty(form, name)


@cache
def empty(form: str, name: str) -> bytes:
    return FIGURE_BYTES(chart.new_figure((1, 1)), form, name)


def captured(file: str) -> list[str]:
    return [*CAPTURED, f'--set=probes.pcap=[{{ link = "sender", file = "{file}" }}]']


def commands(target: str) -> dict[str, list[str]]:
    """Return commands that write the file ``target``, or a figure or table of that name."""
    if not Path("in.pcap").exists():
        assert main(captured("in.pcap")) == 0
    folder, name = os.path.split(target)
    outputs = {"capture": captured(target), "scenario": ["trace", "in.pcap", "--scenario", target]}
    figure = {
        "states.png": ["run", "web-10mbit", "--engine=engset", "--plot", folder or "."],
        "goodput_bps.png": [*RANGE, "--plot", folder or "."],
        "streams.png": [
            "plan", "streams", "--rate=1gbit", "--rtt=100ms", "--loss=1%",
            "--engine=cubic-response", "--plot", folder or ".",
        ],
        "connections.parquet": ["trace", "in.pcap", "--parquet", folder or "."],
        "one-path.toml": ["new", "one-path"],
    }  # fmt: skip
    return outputs | ({name: figure[name]} if name in figure else {})


RANGE = ["predict", "--rtt=1s", "--loss=0.1%..1%", "--points=2"]
FILES = ["states.png", "goodput_bps.png", "streams.png", "connections.parquet", "one-path.toml"]


@pytest.mark.parametrize("name", FILES)
def test_existing_file_is_kept_without_force(name: str, cwd: Path, capsys: Text) -> None:
    for output_name, command in commands(name).items():
        target = cwd / name
        target.write_bytes(b"precious")
        before = sorted(cwd.iterdir())
        capsys.readouterr()
        assert main(command) == 2, output_name
        out, err = capsys.readouterr()
        assert out == ""  # rejected before running
        assert f"{name} exists and is not overwritten" in err
        assert "--force" in err
        assert target.read_bytes() == b"precious"
        assert sorted(cwd.iterdir()) == before
        assert main([*command, "--force"]) == 0, output_name
        assert target.read_bytes() != b"precious"


@pytest.mark.parametrize("name", FILES)
def test_symlink_target_is_not_overwritten(name: str, cwd: Path, capsys: Text) -> None:
    precious = cwd / "precious.txt"
    precious.write_text("precious")
    for output_name, command in commands(name).items():
        (cwd / name).unlink(missing_ok=True)
        (cwd / name).symlink_to(precious)
        assert main(command) == 2, output_name
        assert "exists and is not overwritten" in capsys.readouterr().err
        assert main([*command, "--force"]) == 0, output_name
        assert not (cwd / name).is_symlink()
        assert precious.read_text() == "precious"


@pytest.mark.parametrize("name", [*FILES[:4]])
def test_own_output_of_same_kind_is_replaced(name: str, cwd: Path) -> None:
    command = commands(name)[name]
    assert main(command) == 0
    first = (cwd / name).stat()
    assert main(command) == 0
    assert (cwd / name).stat().st_ino != first.st_ino
    assert not [path for path in cwd.iterdir() if path.name.startswith(".tcpcast")]


def test_directory_device_or_pipe_is_not_replaced(cwd: Path, capsys: Text) -> None:
    (cwd / "folder").mkdir()
    os.mkfifo(cwd / "pipe")
    for target in ("folder", "pipe", "/dev/null"):
        for more in ([], ["--force"]):
            assert main([*captured(target), *more]) == 2
            assert "cannot write" in capsys.readouterr().err


def test_symlink_as_directory_is_rejected_with_its_target(cwd: Path, capsys: Text) -> None:
    (cwd / "elsewhere").mkdir()
    (cwd / "link").symlink_to("elsewhere")
    assert main([*RANGE, "--plot", "link"]) == 2
    assert str(cwd / "elsewhere") in capsys.readouterr().err
    assert not list((cwd / "elsewhere").iterdir())


@pytest.mark.parametrize("folder", ["in.txt/below", "/proc/none", ""])
def test_unwritable_target_is_rejected_before_running(folder: str, cwd: Path, capsys: Text) -> None:
    (cwd / "in.txt").write_text("a file")
    command = ["run", "web-10mbit", "--engine=packet", "--set=run.transfers=900000000"]
    code = main([*command, "--plot", folder])
    out, err = capsys.readouterr()
    assert (code, out) == (3 if folder else 2, "")
    assert "cannot write" in err or "is not a file name" in err


def test_captures_with_same_file_are_rejected(capsys: Text) -> None:
    one = '{ link = "sender", file = "a.pcap" }'
    assert main([*CAPTURED, f"--set=probes.pcap=[{one}, {one}]"]) == 2
    assert "two captures use the file a.pcap" in capsys.readouterr().err


def test_capture_path_is_relative_to_scenario_directory(cwd: Path) -> None:
    (cwd / "scenarios").mkdir()
    assert main(["new", "web-10mbit"]) == 0
    text = (cwd / "web-10mbit.toml").read_text()
    capture = '\n[[probes.pcap]]\nlink = "sender"\nfile = "in.pcap"\n'
    (cwd / "scenarios" / "own.toml").write_text(text + capture)
    assert main([CAPTURED[0], "scenarios/own.toml", *CAPTURED[2:]]) == 0
    assert (cwd / "scenarios" / "in.pcap").is_file()
    assert not (cwd / "in.pcap").exists()


def test_failed_capture_write_keeps_answer(
    cwd: Path, capsys: Text, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    monkeypatch.setattr(os, "rename", full)
    monkeypatch.setattr(os, "replace", full)
    assert main(captured("in.pcap")) == 3
    out, err = capsys.readouterr()
    assert "connection rate" in out
    assert "cannot write in.pcap: No space left on device" in err
    assert not list(cwd.iterdir())
    assert main([*captured("in.pcap"), "--json"]) == 3
    assert '"write_errors": ["probes.pcap: cannot write in.pcap' in capsys.readouterr().out


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    mount_point = tmp_path / "disk"
    mount_point.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mount_point)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("mount is not installed")
    if done.returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    yield mount_point
    subprocess.run(["umount", str(mount_point)], check=True)


def test_full_disk_leaves_no_partial_files(
    small_disk: Path, capsys: Text, monkeypatch: pytest.MonkeyPatch
) -> None:
    (small_disk / "filled").write_bytes(bytes(64 * 1024))
    monkeypatch.chdir(small_disk)
    try:
        _check_full_disk(small_disk, capsys)
    finally:
        monkeypatch.undo()  # a current directory cannot be unmounted


def _check_full_disk(small_disk: Path, capsys: Text) -> None:
    assert main(["new", "one-path"]) == 3
    assert "No space left on device" in capsys.readouterr().err
    for command in (captured("in.pcap"), ["run", "web-10mbit", "--engine=engset", "--plot", "."]):
        assert main(command) == 3
        out, err = capsys.readouterr()
        assert "connection rate" in out
        assert "No space left on device" in err
    assert [path.name for path in small_disk.iterdir()] == ["filled"]


def test_interrupted_write_leaves_no_file(cwd: Path) -> None:
    def interrupted() -> None:
        with output.atomic_file("a.txt") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(cwd.iterdir())


def test_file_created_during_write_is_kept(cwd: Path) -> None:
    def late() -> None:
        with output.atomic_file("a.txt") as temporary:
            temporary.write_text("ours")
            (cwd / "a.txt").write_text("theirs")

    with pytest.raises(MachineError, match=r"cannot write a\.txt: File exists"):
        late()
    assert [path.read_text() for path in cwd.iterdir()] == ["theirs"]


def test_write_works_without_hard_links(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    output.write_text("a.txt", "text")
    assert [path.read_text() for path in cwd.iterdir()] == ["text"]
    with pytest.raises(MachineError, match="exists and is not overwritten"):
        output.write_text("a.txt", "other")


def test_plot_in_python_does_not_overwrite_other_files(cwd: Path) -> None:
    pytest.importorskip("matplotlib")
    (cwd / "states.png").write_text("precious")
    answers = tcpcast.run("web-10mbit", "engset")
    with pytest.raises(TcpcastError, match=r"states\.png exists and is not overwritten"):
        answers.plot(cwd)
    assert (cwd / "states.png").read_text() == "precious"
    assert cwd / "states.png" in answers.plot(cwd, force=True)
    assert answers.plot(cwd)


def test_reproduce_does_not_overwrite_other_page(cwd: Path, capsys: Text) -> None:
    (cwd / "index.md").write_text("my notes")
    assert main(["reproduce", "engset", "--quick", "--out", "."]) == 2
    assert "index.md exists" in capsys.readouterr().err
    assert (cwd / "index.md").read_text() == "my notes"


def write_capture() -> Path:
    assert main(captured("in.pcap")) == 0
    return Path("in.pcap")


@pytest.mark.parametrize(
    ("option", "ending"), [("--out", ".html"), ("--out", ".md"), ("--scenario", ".toml")]
)
def test_input_capture_is_not_overwritten(
    option: str, ending: str, cwd: Path, capsys: Text
) -> None:
    capture = write_capture()
    before = capture.read_bytes()
    capsys.readouterr()
    link = cwd / f"link{ending}"
    link.symlink_to("in.pcap")
    os.link(capture, cwd / f"same{ending}")
    for target in (str(link), f"./link{ending}", f"same{ending}"):
        for read in (["in.pcap"], [str(link)], ["in.pcap", "--second-capture", "in.pcap"]):
            assert main(["trace", *read, option, target, "--force"]) == 2
            out, err = capsys.readouterr()
            assert (out, "this file is an input of the command" in err) == ("", True)
    assert capture.read_bytes() == before
    assert link.is_symlink()


def test_file_on_standard_input_is_not_overwritten(capsys: Text) -> None:
    capture = write_capture()
    os.link(capture, "in.html")
    with capture.open("rb") as file:
        before = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            assert main(["trace", "-", "--out", "in.html", "--force"]) == 2
        finally:
            os.dup2(before, 0)
            os.close(before)
    assert "this file is an input of the command" in capsys.readouterr().err


def write_scenario(capture: str, folder: Path = Path()) -> str:
    """Write an untrusted scenario that names a capture, and return its file."""
    own = (
        read_packaged_text("web-10mbit")
        + f'\n[[probes.pcap]]\nlink = "sender"\nfile = "{capture}"\n'
    )
    folder.mkdir(exist_ok=True)
    (folder / "own.toml").write_text(own)
    return str(folder / "own.toml")


def test_input_scenario_is_not_overwritten(cwd: Path, capsys: Text) -> None:
    file = write_scenario("in.pcap")
    before = Path(file).read_bytes()
    run = ["run", file, *CAPTURED[2:]]
    for command in (
        [*run, "--out", "own.md"],
        ["report", file, "--engine=engset", "--out", "own.md"],
        ["link", file, "--out", file, "--", "true"],
    ):
        (cwd / "own.md").unlink(missing_ok=True)
        (cwd / "own.md").symlink_to(file)
        assert main([*command, "--force"]) == 2, command
        assert "this file is an input of the command" in capsys.readouterr().err
    assert main([*run, "--out", "again.html"]) == 0
    assert main([*run, "--out", "again.html"]) == 2  # the capture exists
    assert main([*run, "--out", "again.html", "--force"]) == 0
    assert Path(file).read_bytes() == before


@pytest.mark.parametrize("name", ["../in.pcap", "{here}/in.pcap", "out/in.pcap", "a/../../in.pcap"])
@pytest.mark.parametrize("engine", ["packet", "kernel"])
def test_scenario_cannot_write_capture_outside_its_directory(
    name: str, engine: str, cwd: Path, capsys: Text
) -> None:
    file = write_scenario(name.format(here=cwd), cwd / "scenarios")
    (cwd / "scenarios" / "out").symlink_to(cwd)
    changes = ["--set=traffic={kind='bulk',flows=1}", "--set=tcp={stack='linux-reno'}"]
    short = ["--set=run={duration='2s',warmup='1s'}", "--set=network.ingress.rate=unlimited"]
    assert main(["run", file, "--engine", engine, *changes, *short, "--force"]) == 2
    out, err = capsys.readouterr()
    assert "is outside the scenario's directory" in out + err
    assert not (cwd / "in.pcap").exists()


def test_force_replaces_file_named_in_scenario_only_if_capture(cwd: Path, capsys: Text) -> None:
    run = ["run", write_scenario("thesis.txt"), *CAPTURED[2:], "--out", "mine.html", "--force"]
    (cwd / "thesis.txt").write_text("precious")
    assert main(run) == 2
    assert "thesis.txt exists and is not a capture" in capsys.readouterr().err
    assert (cwd / "thesis.txt").read_text() == "precious"


def test_symlink_to_device_or_descriptor_is_not_replaced(cwd: Path, capsys: Text) -> None:
    (cwd / "null.html").symlink_to("/dev/null")
    (cwd / "out.md").symlink_to("/proc/self/fd/1")
    (cwd / "far.html").symlink_to("out.md")
    for target in ("null.html", "out.md", "far.html"):
        assert main(["run", "web-10mbit", "--engine=engset", "--out", target, "--force"]) == 2
        assert "it is a device or a pipe" in capsys.readouterr().err
    assert all((cwd / name).is_symlink() for name in ("null.html", "out.md", "far.html"))


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_invalid_file_name_is_quoted(name: str) -> None:
    expected = f'"{name}" is not a file name; use'.replace("\0", r"\x00")
    for path in (name, Path(name)) if name else (name,):
        with pytest.raises(TcpcastError, match=re.escape(expected)):
            output.check_file_is_writable(path)
