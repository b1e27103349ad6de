"""Results as HTML in notebooks, and as Arrow streams for other packages."""

import sys
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import polars
import pyarrow
import pytest
import tcpcast
from tcpcast.plan import solve
from tcpcast.report import notebook
from tcpcast.scenario import Scenario

TRANSFER = Path(__file__).parents[2] / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"
PATH: dict[str, Any] = {
    "network": {"rtt": "50ms", "bottleneck": {"rate": "100mbit", "buffer": "1bdp", "loss": "0.1%"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "rfc-newreno"},
    "run": {"duration": "60s"},
}


def capture() -> Any:
    return tcpcast.trace(TRANSFER)


def plan() -> Any:
    return solve("streams", Scenario.from_dict(PATH), engine="pftk")


def sweep() -> Any:
    vary = {"network.rtt": "10ms..200ms log 30"}
    return tcpcast.sweep(Scenario.from_dict(PATH), vary, engines="pftk", processes=1)


RESULTS = {"capture": capture, "plan": plan, "sweep": sweep}


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_notebook_shows_small_html(make: Callable[[], Any]) -> None:
    result = make()
    html = result._repr_html_()
    assert "<table" in html
    assert "<html" not in html
    assert html.count("<tr") <= 2 * (notebook.MAX_ROWS + 2)
    assert len(html) < 100_000


def test_notebook_shows_verdict_and_number_of_remaining_rows() -> None:
    assert capture().verdict() in unescape(capture()._repr_html_())
    assert "and 10 more rows; .to_pandas() has all rows" in sweep()._repr_html_()
    assert plan().question in plan()._repr_html_()


def test_markup_in_names_is_escaped() -> None:
    bad = "<script>alert(1)</script>"
    named = replace(capture(), file=bad)
    asked = plan()
    asked.recommendation, asked.question = bad, bad
    for result in (named, asked):
        assert "<script>" not in result._repr_html_()
        assert "&lt;script&gt;" in result._repr_html_()


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_arrow_stream_has_the_main_table(make: Callable[[], Any]) -> None:
    result = make()
    table = pyarrow.table(result)
    frame = polars.DataFrame(result)
    assert frame.columns == table.column_names
    assert frame.height == table.num_rows > 0


def test_arrow_stream_of_each_result_has_its_values() -> None:
    traced, found, swept = capture(), plan(), sweep()
    assert pyarrow.table(traced)["bytes"].to_pylist() == traced.connections["bytes"].tolist()
    assert pyarrow.table(traced)["file"].to_pylist() == [str(TRANSFER)]
    assert pyarrow.table(found).column_names == list(found.tables["values"])
    assert pyarrow.table(swept).equals(swept.to_arrow())


def test_missing_pyarrow_is_reported_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(tcpcast.TcpcastError, match=r"Arrow tables .* 'tcpcast\[parquet\]'"):
        capture().__arrow_c_stream__()
