"""Pages: objects in tables, CSV and HAR files, packaged profiles, and their messages."""

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from tcpcast import trace
from tcpcast.process.errors import CaptureError, ScenarioError, TcpcastError
from tcpcast.report.load_answers import read_saved_answers
from tcpcast.scenario import Scenario
from tcpcast.scenario.har import read_har
from tcpcast.scenario.loading import load as load_scenario
from tcpcast.scenario.loading import parse_scenario
from tcpcast.scenario.pages import list_profiles, sort_objects
from tcpcast.scenario.traffic import Pages

TCP = {"stack": "linux-cubic", "handshake": "tls13"}


def load(folder: Path, page: Any, **traffic: Any) -> Scenario:
    (folder / "s.toml").write_text(
        '[network]\nrtt = "40ms"\nbottleneck = { rate = "10mbit", buffer = "50pkt" }\n'
        + '[traffic]\nkind = "page"\nsources = 1\nobjects = '
        + json.dumps(page)
        + "\n"
        + "".join(f"{key} = {value}\n" for key, value in traffic.items())
        + '[tcp]\nstack = "linux-cubic"\nhandshake = "tls13"\n[run]\nduration = "10s"\n'
    )
    return load_scenario(folder / "s.toml")


def pages(scenario: Scenario) -> Pages:
    assert isinstance(scenario.traffic, Pages)
    return scenario.traffic


def make_entry(url: str, begins_ms: int, **keys: Any) -> dict[str, Any]:
    timings = {"blocked": 1, "connect": -1, "ssl": -1, "wait": 50, "receive": 10}
    timings |= keys.pop("timings", {})
    return {
        "startedDateTime": f"2026-01-01T00:00:{begins_ms // 1000:02}.{begins_ms % 1000:03}Z",
        "time": sum(time for name, time in timings.items() if time > 0 and name != "ssl"),
        "request": {"url": url, "headersSize": 350},
        "response": {"status": 200, "bodySize": 9_700, "headersSize": 300},
        "timings": timings,
        **keys,
    }


def write_har(path: Path, *entries: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    return path


def test_records_are_at_most_those_of_tls(tmp_path: Path) -> None:
    assert pages(load(tmp_path, "text", record='"1400B"')).record == 1400
    for record in ("0B", "16385B"):
        with pytest.raises(ScenarioError, match="record: must be between 1B and 16384B"):
            load(tmp_path, "text", record=f'"{record}"')


def test_profiles_are_complete() -> None:
    assert list_profiles() == ["chain", "median", "text"]
    tables = {
        "network": {"rtt": "40ms", "bottleneck": {"rate": "10mbit", "buffer": "50pkt"}},
        "traffic": {"kind": "page", "sources": 3, "objects": "median"},
        "tcp": TCP,
        "run": {"duration": "10s"},
    }
    scenario = Scenario.from_dict(tables)
    traffic = pages(scenario)
    # The sums that docs/reference/scenario.md states for this profile.
    assert (len(traffic.objects), sum(item.size for item in traffic.objects)) == (71, 2_652_000)
    assert traffic.hosts == ["origin", "static", "third-party"]
    assert (traffic.connections, traffic.count, scenario.populations[0].users) == (3, 9, 3)
    assert Scenario.from_dict(scenario.resolved()) == scenario
    assert parse_scenario(scenario.to_toml(), "text").resolved() == scenario.resolved()


def test_objects_follow_their_parents(tmp_path: Path) -> None:
    (tmp_path / "page.csv").write_text(
        "# a comment\nname,size,parent,priority\nindex,10kB,,\nlate,1kB,early,5\nearly,2kB,,0\n"
    )
    ordered = sort_objects(pages(load(tmp_path, "page.csv")).objects)
    assert [(item.name, parent) for item, parent in ordered] == [
        ("index", None),
        ("early", 0),
        ("late", 1),
    ]


def test_har_gives_parents_delays_and_server_times(tmp_path: Path) -> None:
    entries = [
        make_entry("https://a.example/", 0, timings={"connect": 60, "ssl": 30, "wait": 80}),
        # Found when half of the document had arrived: it ended after 151 ms.
        make_entry("https://a.example/x.css", 146, _priority="VeryHigh"),
        make_entry("https://b.example/y.js", 300, _initiator={"url": "https://a.example/"}),
        make_entry(
            "https://b.example/z.js",
            500,
            _initiator={"stack": {"callFrames": [{"url": "https://b.example/y.js"}]}},
            response={"status": 200, "_transferSize": 4_321, "bodySize": 1},
        ),
        make_entry("data:image/png;base64,xx", 510),
        make_entry("https://a.example/cached.css", 520, _fromCache="disk"),
    ]
    path = write_har(tmp_path / "page.har", *entries)
    found = read_har(path)
    assert [item["name"] for item in found] == ["1 /", "2 x.css", "3 y.js", "4 z.js"]
    assert [item.get("parent") for item in found] == [None, "1 /", "1 /", "3 y.js"]
    assert [item["size"] for item in found] == ["10000B", "10000B", "10000B", "4321B"]
    assert found[1]["found"] == pytest.approx(0.5)
    assert [item.get("delay") for item in found] == [None, None, "149ms", "139ms"]
    # A round trip of 30 ms to a.example, and of 50 ms, the smallest wait, to b.example.
    assert [item["server_time"] for item in found] == ["50ms", "20ms", "0s", "0s"]
    assert [item["priority"] for item in found] == [3, 0, 3, 3]
    traffic = pages(load(tmp_path, "page.har"))
    assert traffic.hosts == ["a.example", "b.example"]
    (tmp_path / "packed.har").write_bytes(gzip.compress(path.read_bytes()))
    assert pages(load(tmp_path, "packed.har")).objects == traffic.objects


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not valid JSON in line 1; use a complete file of a browser's HAR export"),
        ('{"log": {"entries": [', "not valid JSON in line 1"),
        ("[]", "the JSON contains no object"),
        ("[" * 100_000, "nested more deeply"),
        ('{"log": 3}', "contains no requests; use a complete HAR export"),
        ('{"log": {"entries": [{"request": {"url": 5}}, 7, null]}}', "contains no requests over"),
        ('{"a": [' + "1," * 4_000_001 + "1]}", "more than 4,000,000 values; export a single page"),
    ],
)
def test_damaged_har_files_are_one_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "page.har").write_text(content)
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, "page.har")
    (line,) = str(caught.value).splitlines()
    assert "traffic.objects" in line
    assert message in line


def test_requests_of_a_har_file_follow_their_causes(tmp_path: Path) -> None:
    root = make_entry("https://a.example/", 0)
    one = make_entry("https://a.example/1", 100, _initiator={"url": "https://a.example/2"})
    two = make_entry("https://a.example/2#x", 200, _initiator={"url": "https://a.example/1#y"})
    three = make_entry("https://a.example/3", 300, _initiator={"url": "https://a.example/3"})
    found = read_har(write_har(tmp_path / "page.har", three, two, one, root))
    # Requests 1 and 2 name each other: only 1 can have caused 2.
    assert [item.get("parent") for item in found] == [None, "1 /", "2 1", "1 /"]
    assert len(pages(load(tmp_path, "page.har")).objects) == 4


def test_redirects_in_a_har_file_are_parents(tmp_path: Path) -> None:
    def redirect(target: str) -> dict[str, Any]:
        return {"status": 302, "bodySize": 0, "headersSize": 200, "redirectURL": target}

    by_document = {"url": "https://www.a.example/"}
    entries = [
        make_entry("https://a.example/", 0, response=redirect("https://www.a.example/")),
        make_entry("https://www.a.example/", 70),
        make_entry("https://www.a.example/old.js", 200, response=redirect("/new.js#top")),
        make_entry("https://www.a.example/new.js", 270, _initiator=by_document),
        make_entry("https://www.a.example/odd.js", 280, response=redirect("http://[::1")),
        make_entry("https://www.a.example/new.js", 900, _initiator=by_document),
    ]
    found = read_har(write_har(tmp_path / "page.har", *entries))
    assert [item.get("parent") for item in found] == [
        None, "1 /", "1 /", "3 old.js", "1 /", "2 /",
    ]  # fmt: skip
    # The redirect itself has 200 B, and ends 61 ms after its request.
    assert (found[0]["size"], found[1]["delay"], found[3]["delay"]) == ("200B", "9ms", "9ms")


@pytest.mark.parametrize(
    ("response", "keys", "size"),
    [
        ({"status": 304, "_transferSize": 180, "content": {"size": 90_000}}, {}, 180),
        ({"status": 304, "bodySize": 0, "content": {"size": 90_000}}, {}, 300),
        ({"status": 304, "bodySize": -1, "headersSize": 90, "content": {"size": 90_000}}, {}, 90),
        ({"status": 200, "bodySize": -1, "headersSize": -1, "content": {"size": 900}}, {}, 1_200),
        ({"status": 204, "bodySize": 0, "headersSize": 120, "content": {"size": 0}}, {}, 120),
        ({"status": 200, "_transferSize": -1, "bodySize": 700, "headersSize": 90}, {}, 790),
        # Not transferred: by a service worker, from caches, failed, and a WebSocket.
        ({"status": 200, "_transferSize": 0, "content": {"size": 900}}, {}, None),
        ({"status": 200, "bodySize": 0, "content": {"size": 900}}, {}, None),
        ({"status": 200, "bodySize": 900}, {"_fromCache": "memory"}, None),
        ({"status": 0, "bodySize": -1}, {}, None),
        ({"status": -1}, {}, None),
        ({"status": None}, {}, None),
        ({"status": 101, "_transferSize": 200}, {}, None),
    ],
)
def test_har_counts_what_crossed_the_network(
    tmp_path: Path, response: dict[str, Any], keys: dict[str, Any], size: int | None
) -> None:
    entry = make_entry("https://a.example/x", 100, response=response, **keys)
    found = read_har(write_har(tmp_path / "page.har", make_entry("https://a.example/", 0), entry))
    assert [item["size"] for item in found[1:]] == ([] if size is None else [f"{size}B"])


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("HTTPS://A.Example:443/q", "a.example"),
        ("https://user:secret@a.example:8443/q", "a.example:8443"),
        ("http://[::1]:80/q", "[::1]"),
        ("https://a.example:99999/q", None),
        ("https://[::1/q", None),
        ("https:///q", None),
        ("wss://a.example/q", None),
        ("blob:https://a.example/1", None),
        ("chrome-extension://abc/q.js", None),
        ("file:///q", None),
    ],
)
def test_har_has_hosts_of_http(tmp_path: Path, url: str, host: str | None) -> None:
    path = write_har(
        tmp_path / "page.har", make_entry("https://z.example/", 0), make_entry(url, 100)
    )
    assert [item["host"] for item in read_har(path)[1:]] == ([] if host is None else [host])


def test_har_begins_with_the_document_of_the_first_page_with_requests(tmp_path: Path) -> None:
    entries = [
        make_entry("https://a.example/beacon", 5, pageref="two", _resourceType="ping"),
        make_entry(
            "https://a.example/x.js", 99, pageref="two", _initiator={"url": "https://a.example/"}
        ),
        make_entry(
            "https://a.example/",
            10,
            pageref="two",
            _resourceType="document",
            _initiator={"type": "other"},
        ),
        make_entry("https://b.example/", 500, pageref="three"),
    ]
    ids = [{"id": "one"}, {"id": "two"}, {"id": "three"}]
    path = tmp_path / "page.har"
    path.write_text(json.dumps({"log": {"pages": ids, "entries": entries}}))
    assert [item["name"] for item in read_har(path)] == ["1 /", "2 x.js"]
    # Without a known page, all requests count.
    path.write_text(json.dumps({"log": {"pages": [3, {"id": "none"}], "entries": entries}}))
    assert len(read_har(path)) == 3


def test_har_of_hours_and_without_transfers_are_refused(tmp_path: Path) -> None:
    root, late = make_entry("https://a.example/", 0), make_entry("https://a.example/poll", 0)
    late["startedDateTime"] = "2026-01-01T02:00:00Z"
    write_har(tmp_path / "page.har", root, late)
    message = r"poll begins 7200 s after the document, but a page lasts at most 3600 s; export a"
    with pytest.raises(ScenarioError, match=message):
        load(tmp_path, "page.har")
    write_har(tmp_path / "page.har", make_entry("https://a.example/", 0, _fromCache="disk"))
    with pytest.raises(ScenarioError, match="crossed the network; export a page that was loaded w"):
        load(tmp_path, "page.har")


@pytest.mark.parametrize("size", [1e14, 1e300, math.inf, 10**400])
@pytest.mark.parametrize("key", ["_transferSize", "bodySize", "headersSize"])
def test_sizes_of_damaged_har_files_are_one_error(tmp_path: Path, key: str, size: float) -> None:
    root, script = make_entry("https://a.example/", 0), make_entry("https://a.example/x.js", 1)
    script["response"][key] = size
    write_har(tmp_path / "page.har", root, script)
    message = r"page.har: x.js contains (inf|1e\+14) B, but the maximum for an object is 1e\+10 B; "
    with pytest.raises(ScenarioError, match=message):
        load(tmp_path, "page.har")
    del script["response"][key]
    script["request"]["headersSize"] = size
    write_har(tmp_path / "page.har", root, script)
    with pytest.raises(ScenarioError, match=message):
        load(tmp_path, "page.har")


def test_har_file_as_scenario_says_how_to_use_it(tmp_path: Path) -> None:
    path = write_har(tmp_path / "page.har", make_entry("https://a.example/", 0))
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert str(caught.value) == (
        f"{path}: this is a page, not a scenario; to simulate loading this page over LTE, use "
        f"tcpcast run page-lte --set class.web.traffic.objects={path}"
    )
    with pytest.raises(CaptureError) as caught_by_trace:
        trace(path)
    assert str(caught_by_trace.value) == str(caught.value).replace("a scenario", "a capture")
    with pytest.raises(
        TcpcastError, match="this file contains a page, but no answers; to simulate loading"
    ):
        read_saved_answers(path)
    changes = {"class.web.traffic.objects": str(path)}
    (web,) = load_scenario("page-lte", changes=changes).populations
    assert isinstance(web.traffic, Pages)
    assert len(web.traffic.objects) == 1


def test_large_har_files_are_refused(tmp_path: Path) -> None:
    many = [make_entry(f"https://a.example/{n}", n % 60_000) for n in range(2_001)]
    write_har(tmp_path / "page.har", *many)
    with pytest.raises(ScenarioError, match="more than 2,000 requests; export a single page"):
        load(tmp_path, "page.har")
    (tmp_path / "page.har").write_bytes(gzip.compress(b" " * ((1 << 26) + 1)))
    with pytest.raises(ScenarioError, match="more than 64 MiB after decompression; export a"):
        load(tmp_path, "page.har")


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("mediam", 'is not a page (did you mean "median"?); use chain, median, text, or'),
        ("missing.har", "missing.har does not exist; use the name of a .har or .csv file"),
        ([], "is not a page; use a packaged page"),
        ([{"name": "a", "size": "0B"}], 'size: must be at least "1B"'),
        ([{"name": "a", "size": "1kB", "prio": 1}], "objects.0.prio: unknown key"),
        ([{"name": "a", "size": "1kB", "parent": "a"}], '"a" is the document; remove its parent'),
        ([{"name": "a", "size": "1kB"}] * 2, '"a" is listed twice; use different names'),
        (
            [{"name": "a", "size": "1kB"}, {"name": "b", "size": "1kB", "parent": "c"}],
            'there is no object "c", the parent of b',
        ),
        (
            [{"name": "a", "size": "1kB"}]
            + [{"name": n, "size": "1kB", "parent": p} for n, p in ("bc", "cb")],
            "the parents of objects form a cycle: ",
        ),
        ([{"name": str(n), "size": "1kB"} for n in range(2_001)], "more than 2,000 objects"),
        (
            [{"name": str(n), "size": "1kB", "host": f"h{n}"} for n in range(201)],
            "201 hosts; use at most 200",
        ),
    ],
)
def test_wrong_pages_are_one_line(page: Any, message: str) -> None:
    tables = {
        "network": {"rtt": "40ms", "bottleneck": {"rate": "10mbit", "buffer": "50pkt"}},
        "traffic": {"kind": "page", "sources": 1, "objects": page},
        "tcp": TCP,
        "run": {"duration": "10s"},
    }
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(tables)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "contains no objects"),
        ("size,nam\n", "the columns must be name, size, and any of parent"),
        ("name,size\na\n", "line 2: the number of cells is 1; use 2, one per column"),
        ("name,size\na,1pkt\n", "traffic.objects"),
        ("name,size,priority\na,1kB,x\n", "traffic.objects"),
    ],
)
def test_wrong_csv_files_are_one_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "page.csv").write_text(content)
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, "page.csv")
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("traffic", "tcp", "message"),
    [
        ({"http": "3"}, {}, 'http = "3" does not run over linux-cubic; use tcp.stack = "quic", or'),
        ({}, {"stack": "quic"}, 'http = "2" does not run over quic; use tcp.stack = "linux-cubic"'),
        ({}, {"stack": "rfc-newreno", "handshake": None}, "does not run over rfc-newreno"),
        ({"http": 4}, {}, '"4" is not a version of HTTP; use "1.1", "2" or "3"'),
        ({"host_rtt": {"cdn": "10ms"}}, {}, 'the page has no host "cdn"'),
        ({"host_rtt": {"origin": "10ms"}}, {"handshake": "none"}, "requires a handshake"),
        ({"flows": 3}, {}, "use sources = 10 for ten browsers"),
        ({"http": "1.1"}, {"notsent_lowat": "16KB"}, 'or a page with http = "2"'),
    ],
)
def test_contradictions_name_what_to_use(
    traffic: dict[str, Any], tcp: dict[str, Any], message: str
) -> None:
    tables = {
        "network": {"rtt": "40ms", "bottleneck": {"rate": "10mbit", "buffer": "50pkt"}},
        "traffic": {"kind": "page", "sources": 1, "objects": "text", **traffic},
        "tcp": {key: value for key, value in {**TCP, **tcp}.items() if value is not None},
        "run": {"duration": "10s"},
    }
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(tables)
    assert message in str(caught.value)
