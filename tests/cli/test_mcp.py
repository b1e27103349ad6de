"""``tcpcast mcp``, used by the client of the official SDK and by a client that breaks rules."""

import asyncio
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tcpcast.cli import main
from tcpcast.cli.commands import PREDICT, RUN, TRACE
from tcpcast.cli.mcp import MAX_RUNNING, MAX_WAITING, ToolCalls
from tcpcast.cli.mcp_tools import MAX_ARGUMENT_BYTES, MAX_ROWS, tools_by_name
from tcpcast.scenario import read_packaged_text

Printed = pytest.CaptureFixture[str]

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="needs mcp: the extra mcp")

CAPTURE = Path(__file__).parents[2] / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"
ENDLESS = {"scenario": "one-path", "set": ["run.duration=100000000s", "run.max_wall=unlimited"]}
STRICT = "one-path"
HAS_PROC = Path("/proc/self/task").exists()


class Session:
    """A client of the SDK, connected to a server process."""

    def __init__(self, portal: Any, client: Any) -> None:
        self._portal, self._client = portal, client

    def tools(self) -> Any:
        return self._portal.call(self._client.list_tools).tools

    def texts(self, tool: str, **arguments: Any) -> tuple[bool, list[str]]:
        """Return whether a call failed, and its texts."""
        result = self._portal.call(self._client.call_tool, tool, arguments)
        return result.is_error, [content.text for content in result.content]

    def document(self, tool: str, **arguments: Any) -> dict[str, Any]:
        failed, texts = self.texts(tool, **arguments)
        assert not failed, texts
        found: dict[str, Any] = json.loads(texts[0])
        return found

    def structured(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self._portal.call(self._client.call_tool, tool, arguments)
        assert not result.is_error, result.content
        found: dict[str, Any] = result.structured_content
        return found

    def instructions(self) -> str:
        return str(self._client.instructions)

    def resources(self) -> list[str]:
        return [str(each.uri) for each in self._portal.call(self._client.list_resources).resources]

    def read(self, uri: str) -> str:
        (content,) = self._portal.call(self._client.read_resource, uri).contents
        return str(content.text)

    def error(self, tool: str, **arguments: Any) -> str:
        failed, texts = self.texts(tool, **arguments)
        assert failed, texts
        return "".join(texts)


@contextmanager
def connected(*options: str) -> Iterator[Session]:
    # Slow imports, which only the process that runs these tests needs.
    from anyio.from_thread import start_blocking_portal  # noqa: PLC0415
    from mcp import Client  # noqa: PLC0415
    from mcp.client.stdio import StdioServerParameters  # noqa: PLC0415

    command = ["-m", "tcpcast", "mcp", *options]
    environment = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    server = StdioServerParameters(command=sys.executable, args=command, env=environment)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(server)) as client,
    ):
        yield Session(portal, client)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a capture, a scenario, and files that must not be read."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.pcap").write_bytes(gzip.decompress(CAPTURE.read_bytes()))
    folder = tmp_path_factory.mktemp("captures")
    shutil.copy(CAPTURE, folder)
    (folder / "damaged.pcap").write_bytes(gzip.decompress(CAPTURE.read_bytes())[:-7])
    (folder / "own.toml").write_text(read_packaged_text("one-path"))
    (folder / "link.pcap").symlink_to(outside / "secret.pcap")
    (folder / "linked").symlink_to(outside)
    os.mkfifo(folder / "fifo")
    return folder


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[Session]:
    with connected("--folder", str(folder)) as session:
        yield session


def printed(capsys: Printed, *words: str) -> Any:
    """Return the document that a command prints."""
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


SHORT = "run.transfers=5000"


def timeless(document: Any) -> Any:
    """Return a document without the times of its calculation."""
    if isinstance(document, list):
        return [timeless(each) for each in document]
    if not isinstance(document, dict):
        return document
    return {name: timeless(each) for name, each in document.items() if name != "wall_s"}


def check_tables(answer: dict[str, Any], full: dict[str, Any]) -> None:
    """Check that an answer lacks long tables only, and remove them from the full one."""
    for name, rows in answer.pop("omitted", {}).items():
        assert rows == len(next(iter(full["tables"].pop(name)["columns"].values()))) > MAX_ROWS


def test_five_tools_have_valid_schemas_and_no_argument_that_writes(session: Session) -> None:
    listed = {tool.name: tool for tool in session.tools()}
    assert list(listed) == ["trace", "predict", "run", "plan", "captures"]
    for tool in listed.values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        properties = tool.input_schema["properties"]
        assert all(value.get("description") for name, value in properties.items())
        assert not properties.keys() & {"plot", "html", "markdown", "parquet", "force", "out"}
        assert tool.annotations.read_only_hint
        assert "warnings" in tool.description
    assert listed["run"].input_schema["required"] == ["scenario"]
    assert listed["plan"].input_schema["properties"]["question"]["enum"][0] == "buffer"
    assert "web-10mbit" in listed["run"].input_schema["properties"]["scenario"]["description"]


def test_the_arguments_of_a_tool_are_the_inputs_of_its_command() -> None:
    own = {"capture", "scenario", "tables", "context", "files", "file"}
    for command in (PREDICT, RUN, TRACE):
        rows = {row.flag.removeprefix("--").replace("-", "_") for row in command.inputs}
        arguments = tools_by_name()[command.name].schema()["properties"].keys()
        assert arguments - own == rows - own


def test_an_agent_can_list_its_folder(session: Session, folder: Path) -> None:
    found = session.structured("captures")
    assert found["captures"] == [
        {"file": name, "bytes": (folder / name).stat().st_size}
        for name in ("damaged.pcap", CAPTURE.name)
    ]
    assert [each["file"] for each in found["scenarios"]] == ["own.toml"]
    assert (found["omitted"], found["complete"]) == (0, True)
    with connected() as other:
        assert "--folder DIR" in other.error("captures")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("trace", {"capture": CAPTURE.name}),
        ("predict", {"rtt": "50ms", "loss": "1%"}),
        ("run", {"scenario": "one-path", "engine": "mathis,engset"}),
        ("plan", {"question": "buffer", "scenario": "web-10mbit", "engine": "engset"}),
        ("captures", {}),
    ],
)
def test_results_are_structured_as_the_schema_says(
    session: Session, tool: str, arguments: dict[str, Any]
) -> None:
    found = session.structured(tool, **arguments)
    assert timeless(found) == timeless(session.document(tool, **arguments))
    schema = next(each for each in session.tools() if each.name == tool).output_schema
    jsonschema.validate(found, schema)
    assert set(schema["required"]) <= found.keys()


def test_engines_and_schema_are_resources_and_the_server_has_instructions(
    session: Session,
) -> None:
    assert "`captures` first" in session.instructions()
    assert session.resources() == ["tcpcast://engines", "tcpcast://schema"]
    # In processes of their own: other tests register further stacks in this one.
    for name, words in (("engines", ["engines", "--json"]), ("schema", ["schema"])):
        command = [sys.executable, "-m", "tcpcast", *words]
        printed_by_command = subprocess.run(command, capture_output=True, check=True).stdout
        assert json.loads(session.read(f"tcpcast://{name}")) == json.loads(printed_by_command)
    with pytest.raises(Exception, match="the resources are tcpcast://engines"):
        session.read("tcpcast://other")


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        ({"network.rtt": "51ms", "traffic.flows": 2}, ["network.rtt=51ms", "traffic.flows=2"]),
        (
            {"network.bottleneck.loss": {"model": "bernoulli", "rate": "1%"}, "tcp.ecn": True},
            ['network.bottleneck.loss={model = "bernoulli", rate = "1%"}', "tcp.ecn=true"],
        ),
        ({"run.report_at": ["1s", "2s"]}, ['run.report_at=["1s", "2s"]']),
    ],
)
def test_set_accepts_a_table_as_well_as_texts(
    session: Session, table: dict[str, Any], changes: list[str]
) -> None:
    both = [
        session.texts("run", scenario="one-path", engine="mathis", set=each)
        for each in (table, changes)
    ]
    failed, texts = zip(*both, strict=True)
    assert failed[0] == failed[1]
    if failed[0]:
        assert texts[0] == texts[1]
    else:
        one, other = (timeless(json.loads(each[0])) for each in texts)
        assert one == other
    assert "network.rtt is null" in session.error(
        "run", scenario="one-path", set={"network.rtt": None}
    )


def test_messages_name_arguments_and_arguments_are_checked(session: Session) -> None:
    share = session.error("plan", question="users", scenario="web-10mbit", share="95%")
    assert share == "share: exactly one target is required; use rate, or share and above, or time"
    assert session.error("predict", rtt="5", loss="1%") == 'rtt: "5" has no unit; use "5ms"'
    document = session.document("predict", rtt="60ms", loss="5%", rate="2mbit", rwnd="4KB")
    warnings = document["answers"][0]["warnings"]
    assert "iw is above rwnd, which therefore limits the initial window" in warnings
    assert "rtt: missing" in session.error("plan", question="streams", rate="1gbit")


def test_trace_returns_the_document_of_the_command(session: Session, capsys: Printed) -> None:
    found = session.document("trace", capture=CAPTURE.name)
    ((capture,), (expected,)) = (
        found["captures"],
        printed(capsys, "trace", str(CAPTURE))["captures"],
    )
    lists = "services", "failed", "interruptions", "connections"
    assert capture.pop("omitted") == dict.fromkeys(lists, 0)
    assert capture == expected | {"file": CAPTURE.name}


def test_a_damaged_capture_has_its_document_and_the_message(session: Session) -> None:
    failed, (document, message) = session.texts("trace", capture="damaged.pcap")
    assert not failed
    assert json.loads(document)["captures"][0]["connections"]
    assert "damaged" in message


@pytest.mark.parametrize(
    ("tool", "arguments", "command"),
    [
        (
            "predict",
            {"rtt": "50ms", "loss": "0.1%", "flows": 2, "delayed_acks": True},
            "predict --rtt=50ms --loss=0.1% --flows=2 --delayed-acks",
        ),
        (
            "plan",
            {"question": "users", "scenario": "web-10mbit", "rate": "400kbit", "set": [SHORT]},
            f"plan users web-10mbit --rate=400kbit --set={SHORT}",
        ),
        ("run", {"scenario": "own.toml", "engine": "mathis"}, "run one-path --engine mathis"),
    ],
)
def test_tool_returns_the_document_of_the_command(
    session: Session, capsys: Printed, tool: str, arguments: dict[str, Any], command: str
) -> None:
    found = session.document(tool, **arguments)
    expected = printed(capsys, *command.split())
    for document in (found, expected):  # its suggestions are arguments or options
        document.pop("left_out", None)
    assert timeless(found) == timeless(expected)
    assert next(iter(found)) == "verdict"


@pytest.mark.parametrize("is_text", [False, True])
def test_run_returns_the_document_of_the_command_without_long_tables(
    session: Session, capsys: Printed, is_text: bool
) -> None:
    scenario = read_packaged_text(STRICT) if is_text else STRICT
    changes = ["run.duration=60s", "run.seed=3"]
    found = session.document(
        "run", scenario=scenario, engine=["packet", "pftk"], set=changes, tables=["recovery_sent"]
    )
    words = ["run", STRICT, "--engine=packet,pftk", *(f"--set={change}" for change in changes)]
    expected = printed(capsys, *words)
    assert next(iter(found)) == "verdict"
    for answer, full in zip(found["answers"], expected["answers"], strict=True):
        check_tables(answer, full)
    assert timeless(found) == timeless(expected)


def test_a_requested_table_is_returned(session: Session) -> None:
    found = session.document(
        "run",
        scenario=STRICT,
        engine="packet",
        set="run.duration=60s",
        tables=["drops_by_sequence"],
    )
    (answer,) = found["answers"]
    assert len(answer["tables"]["drops_by_sequence"]["columns"]["drops"]) > MAX_ROWS
    assert "drops_by_sequence" not in answer.get("omitted", {})


RATES = 'network.bottleneck.rate = {{ trace = "{}" }}'
OUTSIDE = [
    "link.pcap",
    "linked/secret.pcap",
    "../outside0/secret.pcap",
    "/etc/passwd",
    "/proc/self/environ",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_files_outside_the_folder_are_refused(session: Session, folder: Path, path: str) -> None:
    place = f"this file is outside the folder {folder} of tcpcast mcp"
    expected = f"{path}: {place}; name a file in this folder"
    assert session.error("trace", capture=path) == expected


def test_all_ways_to_name_a_file_are_refused(session: Session) -> None:
    outside = "outside the folder"
    assert outside in session.error("trace", capture=CAPTURE.name, second_capture="link.pcap")
    assert outside in session.error("run", scenario="/etc/no-such-file")  # exists or not
    assert outside in session.error("run", scenario=STRICT, set=[RATES.format("/etc/passwd")])
    assert outside in session.error("plan", question="buffer", scenario="linked/secret.pcap")


def test_pipes_and_devices_are_refused(session: Session) -> None:
    errors = session.error("trace", capture="fifo"), session.error("run", scenario="fifo")
    for error in errors:
        assert error == "fifo is a pipe or a device; use the name of a file"
    assert "standard input cannot be read here" in session.error("trace", capture="-")


def test_nothing_is_written(session: Session, folder: Path) -> None:
    before = sorted(folder.iterdir())
    pcap = 'probes.pcap=[{ link = "sender", file = "out.pcap" }]'
    error = session.error("run", scenario="own.toml", set=[pcap, "network.bottleneck.rate=5mbit"])
    assert "this server does not write files" in error
    assert sorted(folder.iterdir()) == before


def test_an_invalid_scenario_has_the_error_of_the_command(
    session: Session, capsys: Printed
) -> None:
    assert main(["run", STRICT, "--set=network.rtt=100"]) == 2
    error = session.error("run", scenario=STRICT, set=["network.rtt=100"])
    assert f"tcpcast: {error}" == capsys.readouterr().err.strip()
    assert "standard input:1:9: not TOML" in session.error("run", scenario="rtt = 50ms\n")


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("run", {}, "scenario: missing"),
        ("run", {"scenario": "--help"}, "--help: no such file"),
        ("run", {"scenario": STRICT, "plot": "figures"}, "plot: no such argument"),
        ("run", {"scenario": STRICT, "set": [["x"]]}, "set: must be a string or a number"),
        ("predict", {"rtt": "50ms", "packet": "yes"}, "packet: must be true or false"),
        ("trace", {"capture": "x", "worst": 0}, "worst: must be an integer, at least 1"),
        ("run", {"scenario": STRICT, "seed": "x"}, "seed: must be an integer, at least 0"),
        ("predict", {"rtt": True}, "rtt: must be a string or a number"),
        ("plan", {"question": ["users"]}, "question: must be one of buffer, users"),
        ("plan", {"question": "buffer", "share": "95%"}, "share: no such argument"),
        ("report", {}, "there is no tool report"),
        (
            "run",
            {"scenario": "#" * MAX_ARGUMENT_BYTES},
            "the arguments contain more than 1,048,576",
        ),
        (
            "predict",
            {"rtt": "1ms..1s", "loss": "0.1%..5%", "points": 30},
            "or fewer values per range",
        ),
    ],
)
def test_other_arguments_are_refused(
    session: Session, tool: str, arguments: dict[str, Any], said: str
) -> None:
    error = session.error(tool, **arguments)
    assert said in error
    assert "Traceback" not in error


@pytest.mark.skipif(sys.platform != "linux", reason="the memory limit needs Linux")
def test_memory_is_limited(session: Session) -> None:
    found = session.document(
        "run", scenario="web-10mbit", engine="packet", set="traffic.sources=10000000"
    )
    assert re.search(r"but only (1\.\d+|2) GiB are free", found["answers"][0]["not_applicable"])


def test_without_a_folder_no_file_is_read_and_long_calls_end_with_what_is_finished(
    folder: Path,
) -> None:
    with connected("--max-wall", "2s") as session:
        error = session.error("trace", capture=str(folder / CAPTURE.name))
        assert error.endswith("this server may not read files; start tcpcast mcp with --folder DIR")
        failed, (*documents, message) = session.texts("run", **ENDLESS)
        assert "the time limit of 2 s was reached" in message
        # On a very busy machine, the limit can be reached before there is a result.
        assert failed == (not documents)
        for document in documents:
            packet = json.loads(document)["answers"][-1]
            assert packet["metrics"]["goodput_bps"]["value"] > 1e6
            assert packet["incomplete_reason"]


class Raw:
    """A client that writes lines."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "tcpcast", "mcp", *options]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        about = {"protocolVersion": "2025-06-18", "capabilities": {}}
        self.send("initialize", {**about, "clientInfo": {"name": "test", "version": "1"}}, 0)
        assert self.receive()["result"]["serverInfo"]["name"] == "tcpcast"
        self.send("notifications/initialized")

    def send(self, method: str, params: Any = None, number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        message |= ({} if params is None else {"params": params}) | (
            {} if number is None else {"id": number}
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, number: int, tool: str, **arguments: Any) -> None:
        self.send("tools/call", {"name": tool, "arguments": arguments}, number)

    def receive(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def worker(self) -> int:
        """Return the process of the running call, once it has started."""
        for _ in range(600):
            tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
            if found := [child for task in tasks for child in task.read_text().split()]:
                return int(found[0])
            time.sleep(0.05)
        raise AssertionError("no worker")


def ends(process: int) -> bool:
    """Return True if a process ends soon."""
    for _ in range(2400):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(not HAS_PROC, reason="reads /proc")
@pytest.mark.parametrize("way", ["closed input", "SIGTERM", "SIGKILL"])
def test_the_end_of_the_server_ends_its_workers(way: str) -> None:
    client = Raw()
    client.call(1, "run", **ENDLESS)
    worker = client.worker()
    time.sleep(0.5)  # usually, the simulation has begun
    if way == "closed input":
        assert client.process.stdin is not None
        client.process.stdin.close()
    else:
        client.process.send_signal(getattr(signal, way))
    code = client.process.wait(120)
    assert code == (-signal.SIGKILL if way == "SIGKILL" else 0)
    assert ends(worker)


@pytest.mark.skipif(not HAS_PROC, reason="reads /proc")
def test_a_cancelled_call_ends_its_worker_and_the_next_one_is_answered() -> None:
    client = Raw()
    client.call(1, "run", **ENDLESS)
    worker = client.worker()
    while "_native" not in Path(f"/proc/{worker}/maps").read_text():  # until the command has begun
        time.sleep(0.05)
    client.send("notifications/cancelled", {"requestId": 1})
    assert ends(worker)
    client.call(2, "predict", rtt="50ms", loss="1%")
    assert client.receive()["id"] == 2
    assert client.process.stdin is not None
    out, err = client.process.communicate(timeout=120)
    assert (client.process.returncode, out, err) == (0, b"", b"")


def test_an_invalid_message_does_not_end_the_server() -> None:
    client = Raw()
    assert client.process.stdin is not None
    client.process.stdin.write(b"not JSON\n" * 50 + b"[" * 100_000 + b"\n")
    client.call(2, "predict", rtt="50ms", loss="1%")
    while (reply := client.receive()).get("id") != 2:
        pass
    assert "result" in reply
    client.process.communicate(timeout=120)
    assert client.process.returncode == 0


def test_further_calls_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server runs and keeps a bounded number of calls."""
    running = 0
    most = 0

    async def run(_self: ToolCalls, _request: dict[str, Any]) -> dict[str, str]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return {"document": "{}", "messages": ""}

    monkeypatch.setattr(ToolCalls, "_run_in_worker", run)

    async def ask() -> list[Any]:
        calls = ToolCalls(None, 1.0)
        params = type("Params", (), {"name": "predict", "arguments": {"rtt": "50ms"}})
        return await asyncio.gather(*(calls.answer(None, params) for _ in range(50)))  # type: ignore[arg-type]

    results = asyncio.run(ask())
    assert sum(not result.is_error for result in results) == MAX_RUNNING + MAX_WAITING
    assert "call again later" in results[-1].content[0].text
    assert most == MAX_RUNNING


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max-wall", "30"], "--max-wall"),
        (["--max-wall", "0s"], "--max-wall: must be above 0"),
        (["--folder", "/no/such"], "--folder: /no/such is not a folder"),
    ],
)
def test_wrong_options_are_rejected_with_a_message(
    options: list[str], said: str, capsys: Printed
) -> None:
    assert main(["mcp", *options]) == 2
    assert said in capsys.readouterr().err
