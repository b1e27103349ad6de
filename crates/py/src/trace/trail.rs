//! Points of time-sequence plots.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcpcast_trace::{DirectionReport, Mark};

use super::{CaptureResult, Row, cause, column, each, signed};

/// Maximum number of points of time-sequence plots over all connections.
const MAX_POINTS: usize = 1 << 20;

impl CaptureResult {
    /// Omits the time-sequence plot of a direction if the limit is exceeded.
    pub(super) fn limit_trail(&mut self, direction: &mut DirectionReport) {
        if self.points + direction.sequence_plot.len() > MAX_POINTS {
            direction.sequence_plot = Vec::new();
        }
        self.without_trail += u64::from(direction.sequence_plot.is_empty());
        self.points += direction.sequence_plot.len();
    }
}

/// Table of points of time-sequence plots.
pub(super) fn trail<'py>(py: Python<'py>, rows: &[Row]) -> PyResult<Bound<'py, PyDict>> {
    let all = each(rows, |direction| &direction.sequence_plot);
    let kind = |mark| match mark {
        Mark::Data => "data",
        Mark::Ack => "ack",
        Mark::Window => "window",
        // "sack" is the name of a cause.
        Mark::Sack => "sacked",
        Mark::Retransmission(why) => cause(why),
    };
    let dict = PyDict::new(py);
    dict.set_item("direction", column(py, &all, |(row, _)| signed(*row as u64)))?;
    dict.set_item("time_ns", column(py, &all, |(_, point)| signed(point.time)))?;
    dict.set_item("kind", all.iter().map(|(_, point)| kind(point.mark)).collect::<Vec<_>>())?;
    dict.set_item("start_bytes", column(py, &all, |(_, point)| signed(point.start)))?;
    dict.set_item("end_bytes", column(py, &all, |(_, point)| signed(point.end)))?;
    Ok(dict)
}
