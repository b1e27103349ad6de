"""Every bad request gets a JSON response with a helpful message, never a server error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tcpcast.web.jobs import MAX_RUNNING_JOBS

if TYPE_CHECKING:
    from web.conftest import Page

FUZZED = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize(
    ("question", "values", "field", "expected_text"),
    [
        ("path", {"rtt": "100"}, "rtt", "100ms"),
        ("path", {"rtt": "0ms"}, "rtt", "above 0"),
        ("path", {"rtt": ""}, "rtt", "missing; for example 50ms"),
        ("path", {"rtt": "10ms..1s"}, "rtt", "must be a single value, not a range"),
        ("path", {"rate": "10mbps"}, "rate", "10mbit"),
        ("path", {"loss": "100%"}, "loss", "loses every packet"),
        ("path", {"loss": "0%", "rate": "unlimited"}, "loss", "nothing limits the flow"),
        ("path", {"mss": "0"}, "mss", "is not the payload of a packet"),
        ("path", {"iw": "many"}, "iw", "not a whole number"),
        ("path", {"rwnd": "much"}, "rwnd", "window"),
        ("path", {"stack": "vegas"}, "stack", "linux-cubic"),
        ("flows", {"flows": "0"}, "flows", "0"),
        ("transfer", {"size": "100"}, "size", "unit"),
        ("users", {"sources": "1000000"}, "sources", "20000"),
        ("users", {"buffer": "0pkt"}, "buffer", "0"),
        ("winner", {"buffer": "10pkt"}, "buffer", "1bdp"),
        ("winner", {"buffer": "1e13bdp"}, "buffer", '"1e13bdp" is not above 0'),
        ("winner", {"queue": "wred"}, "queue", "codel"),
        ("winner", {"rate": "unlimited"}, "buffer", ""),
        ("buffer", {"loss": "0.5.5"}, "loss", "1%"),
        ("path", {"nothing": "1"}, "", "not a field"),
        ("path", {"rtt": 5}, "rtt", "text"),
        ("path", {"rtt": "5" * 200}, "rtt", "at most 100"),
    ],
)
def test_error_names_field_with_bad_value(
    page: Page, question: str, values: dict[str, Any], field: str, expected_text: str
) -> None:
    status, error_field, message = page.post_rejected({"question": question, "values": values})
    assert status == 400
    assert error_field == field
    assert expected_text in message
    assert "--" not in message, "options are called by the labels of their fields"


@pytest.mark.parametrize(
    ("body", "expected_text"),
    [
        ({}, "question: must be one of path"),
        ({"question": "path", "values": []}, "values: must be an object"),
        ({"question": ["path"]}, "question"),
        ([], "not an object"),
    ],
)
def test_error_for_malformed_request_names_expected_form(
    page: Page, body: Any, expected_text: str
) -> None:
    status, _, message = page.post_rejected(body)
    assert status == 400
    assert expected_text in message


def test_malformed_json_and_long_bodies_are_rejected(page: Page) -> None:
    headers = {"origin": str(page.client.base_url), "content-type": "application/json"}
    for content, status in ((b"{", 400), (b"[" * 60_000, 400), (b" " * 70_000, 413)):
        response = page.client.post("/api/evaluate", content=content, headers=headers)
        assert response.status_code == status
        assert response.json()["error"]["message"]


def test_curve_rejects_field_without_axis(page: Page) -> None:
    body = {"question": "path", "values": {}, "across": "stack"}
    assert page.post_rejected(body, "/api/curve")[0] == 400


def test_messages_contain_no_escape_characters(page: Page) -> None:
    _, _, message = page.post_rejected({"question": "path", "values": {"stack": "\x1b]0;x\x07<b>"}})
    assert "\x1b" not in message


def test_job_with_bad_value_is_rejected_before_start(page: Page) -> None:
    body = {"question": "path", "values": {"rtt": "x"}}
    assert page.post_rejected(body, "/api/jobs")[:2] == (400, "rtt")


TEXTS = st.one_of(
    st.text(max_size=20),
    st.from_regex(r"\A[-+]?[0-9]{1,12}(\.[0-9]{1,4})?(e[0-9]{1,3})?\Z"),
    st.from_regex(r"\A[0-9]{1,9}(\.[0-9])?(ms|s|us|%|mbit|gbit|kbit|KB|MB|pkt|B|bdp)\Z"),
    st.sampled_from(["unlimited", "inf", "nan", "", "linux-bbr", "dctcp", "max-plus-reno"]),
)
NAMES = {
    "path": ["rtt", "loss", "rate", "stack", "rwnd", "mss", "iw", "min-rto"],
    "flows": ["flows", "rtt", "loss", "rate", "stack", "rwnd"],
    "transfer": ["rtt", "loss", "rate", "stack", "rwnd", "iw", "mss"],
    "winner": ["rate", "buffer", "queue", "stack-a", "flows-a", "rtt-b", "loss"],
    "users": ["sources", "rate", "rtt", "size", "off", "access", "stack", "buffer"],
    "buffer": ["loss", "sources", "rate", "rtt", "size", "off", "access", "stack"],
}


@FUZZED
@given(data=st.data())
def test_random_field_values_cause_no_server_error(page: Page, data: st.DataObject) -> None:
    question = data.draw(st.sampled_from(list(NAMES)))
    values = data.draw(st.dictionaries(st.sampled_from(NAMES[question]), TEXTS, max_size=3))
    body = {"question": question, "values": values, "quick": True}
    response = page.post("/api/evaluate", body)
    assert response.status_code in {200, 400}, (body, response.text)
    if response.status_code == 400:
        assert response.json()["error"]["message"]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@FUZZED
@given(
    body=st.one_of(
        JSON,
        st.fixed_dictionaries(
            {},
            optional={
                "question": JSON,
                "values": JSON,
                "across": JSON,
                "job": JSON,
                "points": JSON,
            },
        ),
    ),
    path=st.sampled_from(["evaluate", "curve", "report", "jobs", "jobs/x", "captures", "nothing"]),
)
def test_random_bodies_cause_no_server_error(page: Page, body: Any, path: str) -> None:
    response = page.post(f"/api/{path}", body)
    if path == "captures" and response.status_code == 202:
        page.client.delete(
            f"/api/jobs/{response.json()['id']}", headers={"origin": str(page.client.base_url)}
        )
    assert response.status_code < 500, (path, json.dumps(body), response.text)


def test_number_of_jobs_is_limited(page: Page) -> None:
    body = {"question": "path", "values": {"rate": "10gbit", "loss": "0.0001%"}}
    started = [page.post("/api/jobs", body) for _ in range(MAX_RUNNING_JOBS)]
    assert [response.status_code for response in started] == [202] * MAX_RUNNING_JOBS
    try:
        status, _, message = page.post_rejected(body, "/api/jobs")
        assert status == 429
        assert "cancel one" in message
    finally:
        for response in started:
            name = response.json()["id"]
            headers = {"origin": str(page.client.base_url)}
            job = page.client.delete(f"/api/jobs/{name}", headers=headers).json()
            assert job["state"] == "cancelled"
