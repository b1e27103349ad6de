//! Results of a second tap, per direction and for both captures.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;
use tcpcast_trace::{DirectionBetweenTaps, ReadSummary};

use super::{CaptureResult, DirectionRow, NamedColumn, clamp_i64, numpy_column};

/// Results of the capture of a second tap.
pub(super) struct SecondTapResults {
    pub(super) summary: ReadSummary,
    pub(super) between: tcpcast_trace::Comparison,
}

impl CaptureResult {
    /// Adds the results of a second tap to the rows of the directions.
    pub(super) fn add_second_tap(&mut self, second_tap: SecondTapResults) {
        let passages = &second_tap.between.passages;
        let known: HashMap<_, _> =
            passages.iter().map(|one| ((one.connection, one.source), *one)).collect();
        for row in &mut self.rows {
            row.passage = known.get(&(row.number, row.direction.source)).copied();
        }
        self.second_tap = Some(second_tap);
    }
}

/// Counters of a second tap per direction.
const PASSAGE_COUNTERS: &[NamedColumn<DirectionBetweenTaps, u64>] = &[
    ("packets_seen_before", |passage| passage.seen_before),
    ("packets_seen_after", |passage| passage.seen_after),
    ("lost_between", |passage| passage.lost),
    ("under_way", |passage| passage.in_flight),
    ("seen_at_both", |passage| passage.matched),
    ("seen_apart", |passage| passage.not_covered),
];

/// Columns for the table of directions, and values for both captures.
pub(super) fn second_tap_columns<'py>(
    py: Python<'py>,
    rows: &[DirectionRow],
    second_tap: &SecondTapResults,
) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (name, of) in PASSAGE_COUNTERS {
        columns.set_item(
            name,
            numpy_column(py, rows, |row| row.passage.map_or(0, |p| clamp_i64(of(&p)))),
        )?;
    }
    for (index, name) in ["transit_min_s", "transit_mean_s", "transit_max_s"].iter().enumerate() {
        let of = |row: &DirectionRow| {
            let transit = row.passage.and_then(|passage| passage.transit_s);
            transit.map_or(f64::NAN, |transit| transit[index])
        };
        columns.set_item(name, numpy_column(py, rows, of))?;
    }
    let forward = |row: &DirectionRow| row.passage.is_none_or(|passage| passage.forward);
    columns.set_item("forward", numpy_column(py, rows, forward))?;
    let result = &second_tap.between;
    let dict = PyDict::new(py);
    dict.set_item("columns", columns)?;
    dict.set_item("only_after", result.only_after)?;
    dict.set_item("forgotten", result.forgotten)?;
    dict.set_item("dropped", result.dropped)?;
    dict.set_item("clock_least_s", result.clocks.min_s)?;
    dict.set_item("clock_most_s", result.clocks.max_s)?;
    dict.set_item("warnings", second_tap.summary.warnings())?;
    dict.set_item("damaged", second_tap.summary.is_damaged())?;
    dict.set_item("segments", second_tap.summary.segments)?;
    Ok(dict)
}
