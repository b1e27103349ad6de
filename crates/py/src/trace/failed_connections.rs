//! Table of failed connections.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcpcast_trace::{ConnectionReport, FailureDetails, FailureKind, FailureStage};

use super::requests::{EndpointName, endpoint_names};
use super::{clamp_i64, numpy_column};

/// Maximum number of rows, because a port scan can contain millions of connections. The counters
/// include all connections.
const MAX_FAILED: usize = 1 << 14;

/// A failed connection.
struct FailedConnectionRow {
    number: u64,
    time: u64,
    ends: [EndpointName; 2],
    by_client: bool,
    fate: FailureDetails,
}

/// All failed connections.
#[derive(Default)]
pub(super) struct FailedConnections {
    rows: Vec<FailedConnectionRow>,
    counts: [u64; FAILURES.len()],
    /// Number of resets after a FIN, or after all data were acknowledged.
    without_loss: u64,
}

/// Kinds of failures, with the names of their counters.
const FAILURES: [(FailureKind, &str); 5] = [
    (FailureKind::Unanswered, "unanswered"),
    (FailureKind::Refused, "refused"),
    (FailureKind::HalfOpen, "half_open"),
    (FailureKind::Reset, "reset"),
    (FailureKind::Silent, "silent"),
];

impl FailedConnections {
    /// Counts and lists a connection if it failed.
    pub(super) fn add_if_failed(&mut self, report: &ConnectionReport) {
        let Some(fate) = report.failure_details else { return };
        let index = FAILURES.iter().position(|(failure, _)| *failure == fate.failure);
        index.into_iter().for_each(|index| self.counts[index] += 1);
        let is_over = matches!(fate.stage, FailureStage::Idle | FailureStage::AfterFin);
        self.without_loss += u64::from(fate.failure == FailureKind::Reset && is_over);
        if self.rows.len() < MAX_FAILED {
            self.rows.push(FailedConnectionRow {
                number: report.number,
                time: report.first,
                ends: endpoint_names(report),
                by_client: fate.by == report.client,
                fate,
            });
        }
    }

    /// Number of failed connections per kind.
    pub(super) fn counts_by_kind(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = FAILURES.iter().map(|(_, name)| *name);
        names.zip(self.counts).chain([("reset_without_loss", self.without_loss)])
    }

    /// Table in order of the first segments.
    pub(super) fn failures_table<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.rows.sort_unstable_by_key(|row| row.number);
        let rows = &self.rows;
        let dict = PyDict::new(py);
        dict.set_item("connection", numpy_column(py, rows, |row| clamp_i64(row.number)))?;
        dict.set_item("time_ns", numpy_column(py, rows, |row| clamp_i64(row.time)))?;
        for (index, end) in ["client", "server"].into_iter().enumerate() {
            dict.set_item(end, rows.iter().map(|row| row.ends[index].clone()).collect::<Vec<_>>())?;
        }
        let text = |name: &str, of: fn(&FailedConnectionRow) -> &'static str| {
            dict.set_item(name, rows.iter().map(of).collect::<Vec<_>>())
        };
        text("failure", |row| failure_name(row.fate.failure))?;
        text("by", |row| if row.by_client { "client" } else { "server" })?;
        text("stage", |row| stage_name(row.fate.stage))?;
        dict.set_item("tries", numpy_column(py, rows, |row| clamp_i64(row.fate.tries)))?;
        dict.set_item("waited_s", numpy_column(py, rows, |row| row.fate.waited as f64 / 1e9))?;
        Ok(dict)
    }
}

fn failure_name(failure: FailureKind) -> &'static str {
    FAILURES.iter().find(|(one, _)| *one == failure).map_or("", |(_, name)| name)
}

fn stage_name(stage: FailureStage) -> &'static str {
    match stage {
        FailureStage::Handshake => "handshake",
        FailureStage::BeforeData => "before_data",
        FailureStage::InRequest => "in_request",
        FailureStage::InResponse => "in_response",
        FailureStage::Idle => "idle",
        FailureStage::AfterFin => "after_fin",
    }
}
