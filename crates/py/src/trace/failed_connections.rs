//! Table of failed connections.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcpcast_trace::{ConnectionReport, FailureDetails, FailureKind};

use super::requests::{EndpointName, endpoint_names};
use super::{clamp_i64, numpy_column};

/// Maximum number of rows per kind, because a port scan can contain millions of connections, and
/// must not hide failures of other kinds. The counters include all connections.
const MAX_FAILED_PER_KIND: u64 = 1 << 14;

/// A failed connection.
struct FailedConnectionRow {
    number: u64,
    time: u64,
    ends: [EndpointName; 2],
    client: usize,
    fate: FailureDetails,
}

/// All failed connections.
#[derive(Default)]
pub(super) struct FailedConnections {
    rows: Vec<FailedConnectionRow>,
    counts: [u64; FailureKind::ALL.len()],
    /// Number of resets that lost no data for which an end waited.
    without_loss: u64,
}

impl FailedConnections {
    /// Counts and lists a connection if it failed.
    pub(super) fn add_if_failed(&mut self, report: &ConnectionReport) {
        let Some(fate) = report.failure_details else { return };
        let count = &mut self.counts[fate.failure as usize];
        *count += 1;
        self.without_loss += u64::from(fate.failure == FailureKind::Reset && fate.harmless);
        if *count <= MAX_FAILED_PER_KIND {
            self.rows.push(FailedConnectionRow {
                number: report.number,
                time: report.first,
                ends: endpoint_names(report),
                client: report.client,
                fate,
            });
        }
    }

    /// Number of failed connections per kind.
    pub(super) fn counts_by_kind(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = FailureKind::ALL.into_iter().map(FailureKind::name);
        names.zip(self.counts).chain([("reset_without_loss", self.without_loss)])
    }

    /// Number of failed connections that the table omits.
    pub(super) fn omitted(&self) -> u64 {
        self.counts.iter().map(|count| count.saturating_sub(MAX_FAILED_PER_KIND)).sum()
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
        text("failure", |row| row.fate.failure.name())?;
        text("by", |row| if row.fate.by == row.client { "client" } else { "server" })?;
        text("stage", |row| row.fate.stage.name())?;
        dict.set_item("tries", numpy_column(py, rows, |row| clamp_i64(row.fate.tries)))?;
        dict.set_item("waited_s", numpy_column(py, rows, |row| row.fate.waited as f64 / 1e9))?;
        let lost = |row: &FailedConnectionRow| clamp_i64(row.fate.lost_bytes.iter().sum());
        dict.set_item("lost_bytes", numpy_column(py, rows, lost))?;
        let upload = |row: &FailedConnectionRow| clamp_i64(row.fate.lost_bytes[row.client]);
        dict.set_item("lost_upload_bytes", numpy_column(py, rows, upload))?;
        dict.set_item("harmless", numpy_column(py, rows, |row| row.fate.harmless))?;
        let seconds = |row: &FailedConnectionRow| row.fate.silence as f64 / 1e9;
        dict.set_item("silence_s", numpy_column(py, rows, seconds))?;
        for (index, name) in ["window_max_bytes", "window_last_bytes"].into_iter().enumerate() {
            let window = |row: &FailedConnectionRow| clamp_i64(row.fate.windows[index]);
            dict.set_item(name, numpy_column(py, rows, window))?;
        }
        let unscaled = |row: &FailedConnectionRow| row.fate.windows_unscaled;
        dict.set_item("window_unscaled", numpy_column(py, rows, unscaled))?;
        Ok(dict)
    }
}
