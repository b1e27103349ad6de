//! Points of time-sequence plots.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcpcast_trace::{DirectionReport, Mark};

use super::{Found, Row, cause, column, each, signed};

/// Points of time-sequence plots kept, of all connections together.
const MOST_POINTS: usize = 1 << 20;

impl Found {
    /// Lets go of a trail for which there is no room.
    pub(super) fn take_trail(&mut self, direction: &mut DirectionReport) {
        if self.points + direction.sequence_plot.len() > MOST_POINTS {
            direction.sequence_plot = Vec::new();
        }
        self.trailless += u64::from(direction.sequence_plot.is_empty());
        self.points += direction.sequence_plot.len();
    }
}

/// Each point of a time-sequence plot.
pub(super) fn trail<'py>(py: Python<'py>, rows: &[Row]) -> PyResult<Bound<'py, PyDict>> {
    let all = each(rows, |direction| &direction.sequence_plot);
    let kind = |mark| match mark {
        Mark::Data => "data",
        Mark::Ack => "ack",
        Mark::Window => "window",
        // "sack" is a cause.
        Mark::Sack => "sacked",
        Mark::Retransmission(why) => cause(why),
    };
    let dict = PyDict::new(py);
    dict.set_item("direction", column(py, &all, |(at, _)| signed(*at as u64)))?;
    dict.set_item("time_ns", column(py, &all, |(_, point)| signed(point.time)))?;
    dict.set_item("kind", all.iter().map(|(_, point)| kind(point.mark)).collect::<Vec<_>>())?;
    dict.set_item("start_bytes", column(py, &all, |(_, point)| signed(point.start)))?;
    dict.set_item("end_bytes", column(py, &all, |(_, point)| signed(point.end)))?;
    Ok(dict)
}
