"""Commands with closed or full standard streams, broken pipes, signals and control characters.

Most tests run a separate process, for streams closed before its start, signals and file names.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import started
import tcpcast
from tcpcast.cli import main
from tcpcast.process.sanitize import escape_control_characters

TCPCAST = f"'{sys.executable}' -m tcpcast"
FULL = "/dev/full"
COMMANDS = [
    "run web-10mbit --engine engset",
    "run web-10mbit --engine engset --json",
    "run web-10mbit --print-scenario",
    "predict --rtt 100ms --loss 1% --print-scenario",
    "predict --rtt 100ms --loss 1%..2% --points 2 --csv",
    "plan buffer web-10mbit --engine engset",
    "plan streams --rate 1gbit --rtt 100ms --loss 0.01% --engine cubic-response --json",
    "trace made.pcap",
    "trace made.pcap --csv",
    "new",
    "engines",
    "schema",
    "--help",
    "run --help",
    "--version",
]
HIDDEN = "a\x1b[31mb\x1b]0;title\x07c\u202ed\x9be"


def shell(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    variables = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | environment
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, capture_output=True, check=False, env=variables
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a capture."""
    folder = tmp_path_factory.mktemp("streams")
    capture = {"link": "sender", "file": str(folder / "made.pcap")}
    changes = {"run.transfers": 50, "run.warmup": "0s", "probes.pcap": [capture]}
    tcpcast.run(tcpcast.load("web-10mbit", changes=changes), "packet")
    return folder


class RedirectedRun:
    """A command with its output redirected to files; None stands for a closed stream."""

    def __init__(
        self, command: str, folder: Path, *, out: Path | None, err: Path | None, **variables: str
    ) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | variables
        self.returncode = started.tcpcast(
            command.split(), folder=folder, environment=environment, out=out, err=err
        )
        self.stdout, self.stderr = (
            file.read_bytes() if file is not None and file.is_file() else b"" for file in (out, err)
        )


@pytest.mark.parametrize("command", COMMANDS)
def test_closed_or_full_output_exits_3(command: str, folder: Path, tmp_path: Path) -> None:
    normal = RedirectedRun(command, folder, out=tmp_path / "out", err=tmp_path / "err")
    assert normal.returncode == 0
    silent = RedirectedRun(command, folder, out=tmp_path / "silent", err=None)
    assert silent.returncode == 0
    if "engset" not in command:  # its output has the elapsed time
        assert silent.stdout == normal.stdout
    closed = RedirectedRun(command, folder, out=None, err=tmp_path / "closed")
    assert closed.returncode == 3
    assert closed.stderr.endswith(b"tcpcast: cannot write to standard output: it is closed\n")
    if os.path.exists(FULL):
        full = RedirectedRun(command, folder, out=Path(FULL), err=tmp_path / "full")
        assert full.returncode == 3
        assert b"standard output: No space left on device" in full.stderr
        assert b"Traceback" not in full.stderr


def test_closed_or_full_output_has_no_traceback(folder: Path) -> None:
    """A separate process also covers start and end of the interpreter, equal for all commands."""
    command = "trace made.pcap --csv"
    normal = shell(f"{TCPCAST} {command}", folder)
    assert normal.returncode == 0
    silent = shell(f"{TCPCAST} {command} 2>&-", folder)
    assert silent.returncode == 0
    assert silent.stdout == normal.stdout
    closed = shell(f"{TCPCAST} {command} >&-", folder)
    assert closed.returncode == 3
    assert closed.stderr.endswith(b"tcpcast: cannot write to standard output: it is closed\n")
    if os.path.exists(FULL):
        full = shell(f"{TCPCAST} {command} > {FULL}", folder)
        assert full.returncode == 3
        assert b"standard output: No space left on device" in full.stderr
        assert b"Traceback" not in full.stderr


def test_closed_streams_and_full_stderr_keep_exit_code(folder: Path, tmp_path: Path) -> None:
    assert shell(f"{TCPCAST} run nosuch >&- 2>&-", folder).returncode == 2
    assert RedirectedRun("schema", folder, out=None, err=None).returncode == 3
    if os.path.exists(FULL):
        assert shell(f"{TCPCAST} run nosuch 2> {FULL}", folder).returncode == 2
        quiet = RedirectedRun("--version", folder, out=tmp_path / "out", err=Path(FULL))
        assert quiet.returncode == 0


def test_command_without_output_works_with_closed_stdout(tmp_path: Path) -> None:
    assert shell(f"{TCPCAST} new one-path >&-", tmp_path).returncode == 0
    assert (tmp_path / "one-path.toml").is_file()


def first_line(pipe: Path) -> bytes:
    """Read one line and close the pipe, as ``head -1`` does."""
    with pipe.open("rb", buffering=0) as reader:
        return reader.readline()


@pytest.mark.parametrize(
    ("command", "figures"),
    [
        ("run web-10mbit --engine engset", ["queue.png", "sharing.png", "states.png"]),
        ("predict --rtt 1s --loss 0.1%..1%", ["goodput_bps.png", "send_rate_pps.png"]),
        (
            "plan streams --rate 1gbit --rtt 100ms --loss 1% --engine cubic-response",
            ["streams.png"],
        ),
    ],
)
def test_figures_are_written_despite_broken_pipe(
    command: str, figures: list[str], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    pipe, errors = tmp_path / "pipe", tmp_path / "errors"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        first = reader.submit(first_line, pipe)
        done = RedirectedRun(f"{command} --plot left", tmp_path, out=pipe, err=errors)
        assert first.result()
    assert b"Traceback" not in done.stderr
    assert sorted(path.name for path in (tmp_path / "left").iterdir()) == figures
    # The test above covers a full device for each command; here, one command suffices.
    if os.path.exists(FULL) and command.startswith("predict"):
        err = tmp_path / "err"
        full = RedirectedRun(f"{command} --plot full", tmp_path, out=Path(FULL), err=err)
        assert full.returncode == 3
        assert sorted(path.name for path in (tmp_path / "full").iterdir()) == figures


@pytest.mark.parametrize(
    "command",
    [
        "run {}",
        "run {}.toml",
        "run web-10mbit --engine {}",
        "run web-10mbit --set {}=1",
        "run web-10mbit --set name={}",
        "run web-10mbit --{}",
        "run web-10mbit --feed {}",
        "predict --rtt {}",
        "predict --rtt 1s --stack {}",
        "plan users web-10mbit --rate {}",
        "trace {}",
        "trace {}.toml",
        "trace {}.pcap",
        "trace {}.pcap --csv",
        "trace {}.pcap --json",
        "trace {}.pcap --group-by {}",
        "trace {}.pcap --table {}",
        "trace {}.pcap --connection {}",
        "trace {}.pcap --scenario {}.toml",
        "trace {}.pcap --plot {}.pcap",
        "reproduce {}",
        "new {}",
        "{}",
    ],
)
@pytest.mark.parametrize("name", [HIDDEN, "x\udcff$y_{z"], ids=["escapes", "no UTF-8"])
def test_control_characters_in_names_are_escaped(
    command: str,
    name: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    (folder / f"{name}.pcap").write_bytes((folder / "made.pcap").read_bytes())
    (folder / f"{name}.toml").write_text("no scenario")
    code = main([part.replace("{}", name) for part in command.split()])
    for stream in capsys.readouterr():
        assert stream == escape_control_characters(stream)
    assert code in {0, 2, 3}


def test_control_characters_are_escaped_in_figures(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    capture = tmp_path / "n\udcff$y_{z\x1b[31m.pcap"
    capture.write_bytes((folder / "made.pcap").read_bytes())
    command = f"trace {capture.name} --connection 0 --plot d\udcff"
    done = RedirectedRun(command, tmp_path, out=tmp_path / "out", err=tmp_path / "err")
    assert done.returncode == 0
    assert b"wrote d\\xff/" in done.stderr
    assert b"glyph" not in done.stderr


def test_invisible_characters_are_escaped() -> None:
    assert escape_control_characters("a\x1b[1mb\r\n\tc\x7f\u202e\udcff\U000e0041é±–") == (
        "a\\x1b[1mb\\x0d\n\tc\\x7f\\u202e\\xff\\U000e0041é±–"
    )


def test_json_is_ascii_in_every_locale(folder: Path) -> None:
    def read(command: str, **variables: str) -> object:
        out = shell(f"{TCPCAST} {command}", folder, **variables).stdout
        return json.loads(out.decode("ascii"))

    ascii_only = {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}
    first = read("schema", **ascii_only)
    assert first == read("schema", LC_ALL="C.UTF-8")
    assert "µ" in json.dumps(first, ensure_ascii=False)
    assert read("run web-10mbit --engine engset --json", **ascii_only)


ENDLESS = "run web-10mbit --engine packet --set run.transfers=900000000"


@pytest.mark.parametrize(
    ("number", "after_s"), [(signal.SIGINT, 0.1), (signal.SIGTERM, 0.4), (signal.SIGINT, 0.8)]
)
def test_signal_ends_command_without_traceback(number: int, after_s: float) -> None:
    # Until tcpcast installs its handler, Python's own handler prints a traceback: wait for it.
    begun = "import tcpcast.process.interrupts as i; i.exit_on_interrupt(); print('on', flush=True)"
    code = f"{begun}; from tcpcast.__main__ import main; import sys; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", code, *ENDLESS.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"on\n"
        time.sleep(after_s)
        run.send_signal(number)
        out, err = run.communicate(timeout=120)
    assert run.returncode == 130
    assert b"Traceback" not in err
    assert b"ignored" not in err
    assert b"interrupted" in out + err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_wait_for_writer_of_named_pipe(number: int, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = (
        "import tcpcast.process.interrupts as i; i.exit_on_interrupt()\n"
        "from tcpcast.__main__ import main; import sys\n"
        "print('on', flush=True); sys.exit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "trace", str(pipe)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"on\n"
        time.sleep(0.4)
        run.send_signal(number)
        out, err = run.communicate(timeout=120)
    assert run.returncode == 130, (out, err)
    assert b"Traceback" not in err


def test_trace_reads_capture_from_named_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    capture = Path(__file__).parents[2] / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"
    assert main(["trace", str(capture), "--json"]) in (0, 1)
    from_file = json.loads(capsys.readouterr().out)
    writer = threading.Thread(target=lambda: pipe.write_bytes(capture.read_bytes()))
    writer.start()
    assert main(["trace", str(pipe), "--json"]) in (0, 1)
    writer.join()
    through_pipe = json.loads(capsys.readouterr().out)
    (read,), (expected,) = through_pipe["captures"], from_file["captures"]
    assert read["connections"] == expected["connections"]
