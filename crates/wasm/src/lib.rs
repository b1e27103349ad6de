//! The simulator as a WebAssembly module with three functions, for the playground in the
//! documentation.
//!
//! The caller writes JSON to the buffer that [`input`] returns, calls [`run`], and
//! reads JSON of the returned length at [`output`]. The request is `Request`, the answer
//! `Answer`, or `{"error": "..."}`. A run uses one thread and no clock.

use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tcpcast_sim::flows::{NetworkConfig, create_network_replications};
use tcpcast_sim::probe::{CLASS_CELLS, LINK_CELLS, TimeSeries, WindowPoint};
use tcpcast_sim::{RunControl, RunLimit};

/// Bytes of the request before a run, and of the answer after it.
static SHARED_BUFFER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Configuration of a run, as Python passes it to the native module, and the end of the run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    config: NetworkConfig,
    until_ns: u64,
}

/// Series and counters of a run, with the columns and units of the native module.
#[derive(Serialize)]
struct Answer {
    /// Names of the columns of `course` per class, after the time and the integral of the queue.
    course_cells: Vec<&'static str>,
    /// Rows of the time series, from the start of the run.
    course: Vec<Vec<u64>>,
    /// Congestion windows of the traced flows.
    windows: WindowColumns,
    /// Names of the first counters, and of the next ones per class.
    link_cells: Vec<&'static str>,
    class_cells: Vec<&'static str>,
    /// Counters at the end of the run, since the warm-up.
    counters: Vec<u64>,
}

/// One column per quantity.
#[derive(Serialize)]
struct WindowColumns {
    time_ns: Vec<u64>,
    flow: Vec<u32>,
    cwnd: Vec<u32>,
    ssthresh: Vec<u32>,
    flight: Vec<u32>,
}

impl WindowColumns {
    fn of(points: &[WindowPoint]) -> Self {
        let column = |of: fn(&WindowPoint) -> u32| points.iter().map(of).collect();
        Self {
            time_ns: points.iter().map(|point| point.time).collect(),
            flow: column(|point| point.source),
            cwnd: column(|point| point.cwnd),
            ssthresh: column(|point| point.ssthresh),
            flight: column(|point| point.flight),
        }
    }
}

/// Resizes the buffer to `length` bytes and returns its address.
#[allow(unsafe_code)] // the attribute exports the name, which no other function of the module has
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    let mut buffer = buffer();
    buffer.clear();
    buffer.resize(length, 0);
    buffer.as_mut_ptr()
}

/// Simulates the request in the buffer, and returns the length of the answer in bytes.
#[allow(unsafe_code)] // as above
#[unsafe(no_mangle)]
pub extern "C" fn run() -> usize {
    let mut buffer = buffer();
    let answer = simulate(&buffer)
        .and_then(|answer| serde_json::to_vec(&answer).map_err(|error| error.to_string()));
    *buffer = answer
        .unwrap_or_else(|error| serde_json::json!({ "error": error }).to_string().into_bytes());
    buffer.len()
}

/// Returns the address of the answer.
#[allow(unsafe_code)] // as above
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    buffer().as_ptr()
}

fn buffer() -> MutexGuard<'static, Vec<u8>> {
    SHARED_BUFFER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn simulate(request: &[u8]) -> Result<Answer, String> {
    let mut json = serde_json::Deserializer::from_slice(request);
    let Request { config, until_ns } = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| format!("{}: {}", error.path(), error.inner()))?;
    let mut runs = create_network_replications(&config, 1);
    runs.advance(RunLimit { transfers: u64::MAX, until: until_ns }, 1, &RunControl::new(1));
    let probes = runs.update_and_check_probes().map_err(|error| error.to_string())?;
    let [probes] = probes[..] else { return Err("the run was not started".to_owned()) };
    let (series, counters) = (&probes.time_series, &probes.counters);
    let rows = counters.snapshot_rows();
    Ok(Answer {
        course_cells: TimeSeries::column_names().to_vec(),
        course: series.rows().chunks(series.column_count()).map(<[u64]>::to_vec).collect(),
        windows: WindowColumns::of(probes.trace.windows.points()),
        link_cells: LINK_CELLS.to_vec(),
        class_cells: CLASS_CELLS.to_vec(),
        counters: rows[rows.len() - counters.cells_per_snapshot()..].to_vec(),
    })
}
