//! Points of time-sequence plots.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcpcast_trace::{DirectionReport, PointKind};

use super::{
    CaptureResult, DirectionRow, cause_name, clamp_i64, flatten_direction_lists, numpy_column,
};

/// Maximum number of points of time-sequence plots over all connections.
const MAX_POINTS: usize = 1 << 20;

impl CaptureResult {
    /// Omits the time-sequence plot of a direction if it would exceed [`MAX_POINTS`], and counts
    /// plots and points.
    pub(super) fn omit_plot_beyond_limit(&mut self, direction: &mut DirectionReport) {
        if self.points + direction.sequence_plot.len() > MAX_POINTS {
            direction.sequence_plot = Vec::new();
        }
        self.without_trail += u64::from(direction.sequence_plot.is_empty());
        self.points += direction.sequence_plot.len();
    }
}

/// Table of points of time-sequence plots.
pub(super) fn plot_points_table<'py>(
    py: Python<'py>,
    rows: &[DirectionRow],
) -> PyResult<Bound<'py, PyDict>> {
    let all = flatten_direction_lists(rows, |direction| &direction.sequence_plot);
    let kind = |mark| match mark {
        PointKind::Data => "data",
        PointKind::Ack => "ack",
        PointKind::Window => "window",
        // Not "sack", because `cause_name` returns it for retransmissions.
        PointKind::Sack => "sacked",
        PointKind::Retransmission(why) => cause_name(why),
    };
    let dict = PyDict::new(py);
    dict.set_item("direction", numpy_column(py, &all, |(row, _)| clamp_i64(*row as u64)))?;
    dict.set_item("time_ns", numpy_column(py, &all, |(_, point)| clamp_i64(point.time)))?;
    dict.set_item("kind", all.iter().map(|(_, point)| kind(point.mark)).collect::<Vec<_>>())?;
    dict.set_item("start_bytes", numpy_column(py, &all, |(_, point)| clamp_i64(point.start)))?;
    dict.set_item("end_bytes", numpy_column(py, &all, |(_, point)| clamp_i64(point.end)))?;
    Ok(dict)
}
