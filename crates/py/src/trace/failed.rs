//! Connections that failed, a row each.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcpcast_trace::{ConnectionReport, Failure, FailureDetails, Stage};

use super::requests::{Named, named};
use super::{column, signed};

/// More are counted, but have no row: a scan may have millions.
const MOST_FAILED: usize = 1 << 14;

/// A connection that failed.
struct Row {
    number: u64,
    time: u64,
    ends: [Named; 2],
    by_client: bool,
    fate: FailureDetails,
}

/// All that failed.
#[derive(Default)]
pub(super) struct Failed {
    rows: Vec<Row>,
    counts: [u64; FAILURES.len()],
    /// Resets after all data were acknowledged, or after a FIN.
    without_loss: u64,
}

/// The ways in which connections fail, and the name of the number of such connections.
const FAILURES: [(Failure, &str); 5] = [
    (Failure::Unanswered, "unanswered"),
    (Failure::Refused, "refused"),
    (Failure::HalfOpen, "half_open"),
    (Failure::Reset, "reset"),
    (Failure::Silent, "silent"),
];

impl Failed {
    /// Counts a connection, and keeps it if it failed.
    pub(super) fn take(&mut self, report: &ConnectionReport) {
        let Some(fate) = report.failure_details else { return };
        let place = FAILURES.iter().position(|(failure, _)| *failure == fate.failure);
        place.into_iter().for_each(|place| self.counts[place] += 1);
        let over = matches!(fate.stage, Stage::Idle | Stage::AfterFin);
        self.without_loss += u64::from(fate.failure == Failure::Reset && over);
        if self.rows.len() < MOST_FAILED {
            self.rows.push(Row {
                number: report.number,
                time: report.first,
                ends: named(report),
                by_client: fate.by == report.client,
                fate,
            });
        }
    }

    /// The number of connections of each kind.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = FAILURES.iter().map(|(_, name)| *name);
        names.zip(self.counts).chain([("reset_without_loss", self.without_loss)])
    }

    /// A row for each, in the order of their first segments.
    pub(super) fn table<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.rows.sort_unstable_by_key(|row| row.number);
        let rows = &self.rows;
        let dict = PyDict::new(py);
        dict.set_item("connection", column(py, rows, |row| signed(row.number)))?;
        dict.set_item("time_ns", column(py, rows, |row| signed(row.time)))?;
        for (place, end) in ["client", "server"].into_iter().enumerate() {
            dict.set_item(end, rows.iter().map(|row| row.ends[place].clone()).collect::<Vec<_>>())?;
        }
        let text = |name: &str, of: fn(&Row) -> &'static str| {
            dict.set_item(name, rows.iter().map(of).collect::<Vec<_>>())
        };
        text("failure", |row| failure(row.fate.failure))?;
        text("by", |row| if row.by_client { "client" } else { "server" })?;
        text("stage", |row| stage(row.fate.stage))?;
        dict.set_item("tries", column(py, rows, |row| signed(row.fate.tries)))?;
        dict.set_item("waited_s", column(py, rows, |row| row.fate.waited as f64 / 1e9))?;
        Ok(dict)
    }
}

fn failure(failure: Failure) -> &'static str {
    FAILURES.iter().find(|(one, _)| *one == failure).map_or("", |(_, name)| name)
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Handshake => "handshake",
        Stage::BeforeData => "before_data",
        Stage::InRequest => "in_request",
        Stage::InResponse => "in_response",
        Stage::Idle => "idle",
        Stage::AfterFin => "after_fin",
    }
}
