"""Documents that would take minutes and gigabytes to parse are rejected immediately."""

import time

import pytest
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario.loading import get_packaged_names, parse_toml, read_packaged_text

LARGE = {
    "bare": ".".join(["a"] * 20_000) + " = 1",
    "header": "[" + " . ".join(["a"] * 20_000) + "]",
    "quoted": ".".join(["'='"] * 20_000) + " = 1",
    "mixed": "x = { " + ".".join(["a", '"b"'] * 10_000) + " = 1 }",
    "keys": "".join(f"k{number} = 1\n" for number in range(200_000)),
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.timed
def test_too_large_document_is_rejected_quickly(name: str) -> None:
    begin = time.monotonic()
    with pytest.raises(
        ScenarioError, match=r"in\.toml: (a dotted key has too|the scenario contains more)"
    ):
        parse_toml(LARGE[name], "in.toml")
    assert time.monotonic() - begin < 2


def test_usual_documents_are_read() -> None:
    for name in get_packaged_names():
        assert parse_toml(read_packaged_text(name), name)
    numbers = ", ".join(["0.25"] * 50_000)
    assert len(parse_toml(f"values = [{numbers}]", "in.toml")["values"]) == 50_000
