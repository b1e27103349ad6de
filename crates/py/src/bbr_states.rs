//! States of BBR as columns of a table.

use numpy::{PyFixedUnicode, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcpcast_sim::probe::BbrPoint;
use tcpcast_tcp::modern::cc::path_model::BbrState;

/// Number of characters of the longest name of a phase.
const NAME_LENGTH: usize = 12;

/// Value of a point in a column.
type Value<'a> = dyn Fn(&BbrPoint) -> f64 + 'a;

/// Converts points to columns: bit/s of payload, seconds and packets; infinity for no bound.
pub(crate) fn bbr_columns<'py>(
    py: Python<'py>,
    points: &[BbrPoint],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let names: Vec<_> = points.iter().map(|point| fixed_name(point.state.phase.name())).collect();
    dict.set_item("time_ns", column(points, |point| point.time).to_pyarray(py))?;
    dict.set_item("flow", column(points, |point| u64::from(point.source)).to_pyarray(py))?;
    dict.set_item("phase", names.to_pyarray(py))?;
    let rate = |point: &BbrPoint, bandwidth| BbrState::bits_per_second(bandwidth, point.mss);
    let floats: [(&str, &Value<'_>); 12] = [
        ("pacing_gain", &|point| BbrState::gain(point.state.pacing_gain)),
        ("cwnd_gain", &|point| BbrState::gain(point.state.cwnd_gain)),
        ("bw_bps", &|point| rate(point, point.state.bandwidth)),
        ("max_bw_bps", &|point| rate(point, point.state.max_bandwidth)),
        ("bw_shortterm_bps", &|point| {
            point.state.short_term_bandwidth.map_or(f64::INFINITY, |bw| rate(point, bw))
        }),
        ("pacing_rate_bps", &|point| 8.0 * point.state.pacing_rate as f64),
        ("min_rtt_s", &|point| point.state.min_rtt.map_or(f64::INFINITY, |rtt| rtt as f64 * 1e-9)),
        ("inflight_longterm_pkts", &|point| bound(point.state.long_term_inflight)),
        ("inflight_shortterm_pkts", &|point| bound(point.state.short_term_inflight)),
        ("target_inflight_pkts", &|point| f64::from(point.state.target_inflight)),
        ("extra_acked_pkts", &|point| f64::from(point.state.extra_acked)),
        ("full_bw_count", &|point| f64::from(point.state.full_rounds)),
    ];
    for (name, value) in floats {
        dict.set_item(name, column(points, value).to_pyarray(py))?;
    }
    dict.set_item("round_count", column(points, |point| point.state.round).to_pyarray(py))?;
    dict.set_item("full_bw_reached", column(points, |point| point.state.was_full).to_pyarray(py))?;
    let restarts = column(points, |point| point.state.restarts_from_idle);
    dict.set_item("idle_restart", restarts.to_pyarray(py))?;
    Ok(dict)
}

fn column<T>(points: &[BbrPoint], value: impl Fn(&BbrPoint) -> T) -> Vec<T> {
    points.iter().map(value).collect()
}

fn bound(packets: Option<u32>) -> f64 {
    packets.map_or(f64::INFINITY, f64::from)
}

/// Returns a name as an element of an array of NumPy.
fn fixed_name(name: &str) -> PyFixedUnicode<NAME_LENGTH> {
    let mut letters = [0; NAME_LENGTH];
    letters.iter_mut().zip(name.bytes()).for_each(|(letter, byte)| *letter = u32::from(byte));
    letters.into()
}
