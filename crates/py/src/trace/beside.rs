//! A second tap: what it says of directions, and of the captures as a whole.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;
use tcpcast_trace::{Passage, Summary};

use super::{Column, Found, Row, column, signed};

/// What the capture of a second tap says beyond the directions.
pub(super) struct Beside {
    pub(super) summary: Summary,
    pub(super) between: tcpcast_trace::Comparison,
}

impl Found {
    /// Lays what was found at a second tap beside the directions.
    pub(super) fn compare(&mut self, beside: Beside) {
        let passages = &beside.between.passages;
        let known: HashMap<_, _> =
            passages.iter().map(|one| ((one.connection, one.source), *one)).collect();
        for row in &mut self.rows {
            row.passage = known.get(&(row.number, row.direction.source)).copied();
        }
        self.beside = Some(beside);
    }
}

/// What a second tap adds to a direction.
const PASSAGE_COUNTS: &[Column<Passage, u64>] = &[
    ("packets_seen_before", |passage| passage.seen_before),
    ("packets_seen_after", |passage| passage.seen_after),
    ("lost_between", |passage| passage.lost),
    ("under_way", |passage| passage.in_flight),
    ("seen_at_both", |passage| passage.matched),
    ("seen_apart", |passage| passage.not_covered),
];

/// A second tap: columns beside the directions, and what is said of the captures as a whole.
pub(super) fn between<'py>(
    py: Python<'py>,
    rows: &[Row],
    beside: &Beside,
) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (name, of) in PASSAGE_COUNTS {
        columns
            .set_item(name, column(py, rows, |row| row.passage.map_or(0, |p| signed(of(&p)))))?;
    }
    for (place, name) in ["transit_min_s", "transit_mean_s", "transit_max_s"].iter().enumerate() {
        let of = |row: &Row| {
            let transit = row.passage.and_then(|passage| passage.transit_s);
            transit.map_or(f64::NAN, |transit| transit[place])
        };
        columns.set_item(name, column(py, rows, of))?;
    }
    let forward = |row: &Row| row.passage.is_none_or(|passage| passage.forward);
    columns.set_item("forward", column(py, rows, forward))?;
    let found = &beside.between;
    let dict = PyDict::new(py);
    dict.set_item("columns", columns)?;
    dict.set_item("only_after", found.only_after)?;
    dict.set_item("forgotten", found.forgotten)?;
    dict.set_item("dropped", found.dropped)?;
    dict.set_item("clock_least_s", found.clocks.min_s)?;
    dict.set_item("clock_most_s", found.clocks.max_s)?;
    dict.set_item("warnings", beside.summary.warnings())?;
    dict.set_item("damaged", beside.summary.is_damaged())?;
    dict.set_item("segments", beside.summary.segments)?;
    Ok(dict)
}
