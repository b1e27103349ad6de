"""Loading of files and packaged names, and errors."""

from pathlib import Path

import pytest
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import find_scenario_file, get_packaged_names, load, read_packaged_text
from tcpcast.scenario.loading import parse_toml

GOOD = """
[network]
rtt = "50ms"
bottleneck = { rate = "10mbit" }
[traffic]
kind = "bulk"
flows = 1
[run]
duration = "60s"
"""


def refused(source: str | Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        load(source)
    message = str(caught.value)
    assert "; use" in message or "; move" in message or "; check" in message
    assert "\n" not in message
    return message


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "own.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_packaged_scenarios_load_with_their_names() -> None:
    assert set(get_packaged_names()) >= {
        "local-loop",
        "lossy-path",
        "office-50mbit",
        "one-path",
        "special-128k",
        "two-classes",
        "web-10mbit",
    }
    for name in get_packaged_names():
        assert load(name).name == name
        assert load(name) == load(f"{name}.toml") == load(find_scenario_file(name))
        assert load(name).warnings() == []
        assert read_packaged_text(name).startswith("# ")


def test_file_takes_precedence_over_packaged_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web-10mbit").mkdir()
    assert load("web-10mbit").senders == 134
    (tmp_path / "web-10mbit.toml").write_text(GOOD, encoding="utf-8")
    assert load("web-10mbit.toml").senders == 1


def test_scenario_file_loads_by_path_object_and_by_string(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff" + GOOD)
    assert load(path).senders == load(str(path)).senders == 1


def test_changes_apply_before_validation(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.replace("50ms", "50"))
    assert load(path, changes={"network.rtt": "50ms"}).rtt_s == 0.05


def test_csv_names_are_relative_to_scenario_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "starts.csv").write_text("value\n1\n2\n", encoding="utf-8")
    path = written(tmp_path, GOOD)
    monkeypatch.chdir("/")
    s = load(path, changes={"traffic.start": {"distribution": "empirical", "file": "starts.csv"}})
    assert s.with_changes({"run.seed": 2}).resolved()["traffic"]["start"]["values"] == ["1s", "2s"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web-10mbits", 'did you mean "web-10mbit"?'),
        ("web", 'did you mean "web-10mbit"?'),
        ("scenarios/lossypath.toml", 'did you mean "lossy-path"?'),
        ("nothing-like-it", "use the name of a file, or one of bufferbloat, cubic-and-bbr, "),
        ("/", "a folder, not a scenario file"),
        ("/dev/null", "a pipe or a device, not a scenario file"),
        ("", '"": no name, and no packaged scenario'),
        ("a\0b", "no such file"),
        ("x" * 5000, "cannot be read"),
    ],
)
def test_missing_files_are_rejected(name: str, expected: str) -> None:
    assert expected in refused(name)


def test_unknown_packaged_names_are_rejected() -> None:
    with pytest.raises(ScenarioError, match=r'did you mean "one-path"\?'):
        read_packaged_text("one-pth")


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        (
            'a = "b"\nrtt = 50ms\n',
            ":2:9: not TOML: ",
            'use quantities with a unit in quotes, "50ms"',
        ),
        ("x = { loss = 1% }", ":1:15: not TOML: ", 'in quotes, "1%"'),
        ("[network\nrtt = 1", ":1:9: not TOML: ", "use key = value"),
        ('a = "b', ":1:7: not TOML: ", "use key = value"),
        ("a = 1\n\na = 2", ":3:6: not TOML: ", "Cannot overwrite a value"),
        ("just words", ":1:6: not TOML: ", "use key = value"),
    ],
)
def test_invalid_toml_is_rejected(tmp_path: Path, text: str, position: str, expected: str) -> None:
    path = written(tmp_path, text)
    message = refused(path)
    assert message.startswith(f"{path}{position}")
    assert expected in message


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x7fELF\x02\x01\x01\x00\xff\xfe", "not a text file"),
        (b"\x00\x01", "not TOML"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"a = " + b"9" * 5000, "a value is outside the range of TOML"),
        (b"#" * (16 * 2**20 + 1), "larger than 16 MiB"),
    ],
    ids=["binary", "zeros", "deep", "long number", "large"],
)
def test_files_without_scenario_are_rejected(tmp_path: Path, content: bytes, expected: str) -> None:
    assert expected in refused(written(tmp_path, content))


def test_empty_file_lists_missing_tables(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(written(tmp_path, b""))
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "network",
        "traffic",
        "run",
    ]


@pytest.mark.parametrize("text", ["a = 1\na = 2", '[class]\nname = "a"\n[class]\nname = "b"'])
def test_duplicate_keys_are_rejected(text: str) -> None:
    with pytest.raises(ScenarioError, match="use each key and table once"):
        parse_toml(text, "twice.toml")
