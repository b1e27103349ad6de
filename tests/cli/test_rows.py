"""Answers as rows: CSV, pandas and polars."""

import csv

import polars as pl
import pytest
import tcpcast
from tcpcast.report.metric_rows import COLUMN_NAMES, csv_text

pandas = pytest.importorskip("pandas")

ANSWERS = tcpcast.run(
    tcpcast.load("two-classes", changes={"run.duration": "30s", "run.warmup": "5s"}),
    ["engset", "packet"],
)


def test_csv_pandas_and_polars_have_same_values() -> None:
    rows = list(csv.DictReader(csv_text(ANSWERS).splitlines()))
    frame, other = ANSWERS.to_pandas(), ANSWERS.to_polars()
    assert isinstance(frame, pandas.DataFrame)
    assert isinstance(other, pl.DataFrame)
    assert list(frame.columns) == other.columns == list(COLUMN_NAMES)
    assert len(frame) == len(other) == len(rows)
    assert frame["value"].tolist() == other["value"].to_list() == [float(r["value"]) for r in rows]
    assert frame["low"].isna().sum() == other["low"].null_count() > 0


def test_classes_have_separate_rows() -> None:
    frame = ANSWERS.to_pandas()
    goodput = frame[(frame["engine"] == "packet") & (frame["metric"] == "goodput_bps")]
    by_class = goodput.set_index("class")["value"]
    assert set(by_class.index) == {"", "near", "far"}
    assert by_class["near"] + by_class["far"] == pytest.approx(by_class[""])
    assert (goodput["low"] <= goodput["value"]).all()
    assert (goodput["unit"] == "bit/s").all()
