//! The Python module `tcpcast._native`: arguments, arrays, exceptions; no arithmetic.

mod allocator;
mod config;
mod emulation;
mod runs;
mod trace;
mod transfers;

use config::Plain;
use numpy::{PyArray1, PyArray2, PyArrayMethods, ToPyArray};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use runs::Runs;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tcpcast_fixed_point::{FixedPointConfig, Iterated, STEP_CELLS, StepRow};
use tcpcast_sim::probe::{
    BUCKETS_PER_OCTAVE, CLASS_CELLS, GoodputCount, LINK_CELLS, LogHistogram, Mark, OCTAVES, PIECES,
    RATE_UNITS, SIZE_CELLS, StreamCounters, TIMEOUT_KINDS, TimeSeries, Totals,
};
use tcpcast_sim::{Control, Replication, RunConfig, RunLimit, StopReason};

#[global_allocator]
static ALLOCATOR: allocator::OrExit = allocator::OrExit;

/// How often a run looks at signals, its time limit and the progress bar.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Replications of one packet-level run, which can be advanced again and again.
#[pyclass(module = "tcpcast._native")]
struct Simulation {
    runs: Runs,
    config: RunConfig,
}

/// Packets and ON times, one a source.
type SourceColumns<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

/// Slots, and in columns the slot, class times kinds and kind, bucket and number of goodputs.
type GoodputColumns<'py> = (
    usize,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
);

/// Why a wait for the replications ended.
enum Waited {
    Done,
    Interrupted,
    OutOfTime,
}

#[pymethods]
impl Simulation {
    /// Set up `replications` runs of a configuration of plain numbers.
    #[new]
    fn new(py: Python<'_>, config: Plain<RunConfig>, replications: u32) -> PyResult<Self> {
        find_numpy(py)?;
        let Plain(config) = config;
        Ok(Self { runs: Runs::packet(&config, replications), config })
    }

    /// Set up `replications` fixed points of a configuration, `asked` in plain numbers, too.
    #[classmethod]
    fn fixed_point(
        _class: &Bound<'_, PyType>,
        config: Plain<RunConfig>,
        asked: Plain<FixedPointConfig>,
        replications: u32,
    ) -> Self {
        let (Plain(config), Plain(asked)) = (config, asked);
        Self { runs: Runs::fixed_point(&config, &asked, replications), config }
    }

    /// Advance all replications; "done", "interrupted", "out-of-time" or "crowded".
    #[pyo3(signature = (*, transfers, until_ns, threads, max_wall_s=None, progress=None))]
    fn advance(
        &mut self,
        py: Python<'_>,
        transfers: Option<u64>,
        until_ns: u64,
        threads: usize,
        max_wall_s: Option<f64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<&'static str> {
        let goal = RunLimit { transfers: transfers.unwrap_or(u64::MAX), until: until_ns };
        let limit = max_wall_s
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .and_then(|limit| Instant::now().checked_add(limit));
        let control = Control::new(self.runs.len());
        let runs = &mut self.runs;
        let (stop, waited) = py.detach(|| {
            std::thread::scope(|scope| {
                let (ended, end) = channel::<()>();
                let control = &control;
                let worker = scope.spawn(move || {
                    let stop = runs.advance(goal, threads, control);
                    drop(ended);
                    stop
                });
                let waited = loop {
                    if end.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Disconnected) {
                        break Ok(Waited::Done);
                    }
                    match look(control, limit, progress.as_ref()) {
                        Ok(Waited::Done) => {}
                        ended => break ended,
                    }
                };
                control.stop();
                (worker.join(), waited)
            })
        });
        let stop = stop.map_err(|_| PyRuntimeError::new_err("the simulator panicked"))?;
        Ok(match (waited?, stop) {
            (_, StopReason::Done) => "done",
            (_, StopReason::TooManyTransfers) => "crowded",
            (Waited::OutOfTime, _) => "out-of-time",
            _ => "interrupted",
        })
    }

    /// Virtual time of each replication, and whether its warm-up is over.
    fn clocks(&self) -> Vec<(u64, bool)> {
        self.runs.runs().into_iter().map(|run| (run.now(), run.is_measuring())).collect()
    }

    /// The cumulative cells of each replication: rows are slots, zeros first, the end last.
    fn counters<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray2<u64>>>> {
        let probes = self.runs.flush().map_err(conservation)?;
        probes
            .iter()
            .map(|probe| {
                let rows = probe.counters.rows();
                let width = probe.counters.width();
                PyArray1::from_slice(py, &rows).reshape([rows.len() / width, width])
            })
            .collect()
    }

    /// The same of the cross flows of fixed points, as of the last call of `counters`.
    fn cross_flow_counters<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<Bound<'py, PyArray2<u64>>>> {
        let cells = |run: &dyn Iterated| {
            let counters = &run.cross_probes().counters;
            let (rows, width) = (counters.rows(), counters.width());
            PyArray1::from_slice(py, &rows).reshape([rows.len() / width, width])
        };
        self.runs.fixed_points().into_iter().map(cells).collect()
    }

    /// What each step of each fixed point found, `[rows, cells]` with the cells of `STEP_CELLS`.
    fn steps<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray2<f64>>>> {
        let cells = |run: &dyn Iterated| {
            let rows = run.rows();
            let cells: Vec<f64> = rows.iter().flat_map(StepRow::cells).collect();
            PyArray1::from_slice(py, &cells).reshape([rows.len(), STEP_CELLS.len()])
        };
        self.runs.fixed_points().into_iter().map(cells).collect()
    }

    /// Histograms and counts of all replications together.
    fn totals<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let probes = self.runs.flush().map_err(conservation)?;
        let totals = Totals::of(&probes);
        let dict = PyDict::new(py);
        dict.set_item("queue_time_ns", totals.queue_time.to_pyarray(py))?;
        dict.set_item("queue_seen", totals.queue_seen.to_pyarray(py))?;
        dict.set_item("averages_seen", totals.early.arrivals)?;
        dict.set_item("average_sum", totals.early.averages)?;
        dict.set_item("early_drops", totals.early.drops)?;
        let of_stream = |counters: &StreamCounters| {
            let rates = &counters.rates;
            let sums = (rates.bins, rates.cut, rates.sum, rates.squares);
            let fluid = (counters.fluid.series, counters.fluid.load, counters.fluid.lost);
            (counters.offered, counters.carried, counters.dropped, sums, fluid)
        };
        dict.set_item("cross", totals.cross.streams().iter().map(of_stream).collect::<Vec<_>>())?;
        let hops = totals.hops.iter().map(|hop| {
            let load = (hop.carried, hop.capacity);
            (hop.arrived, hop.queue_drops, hop.random_drops, hop.busy, hop.held, hop.longest, load)
        });
        dict.set_item("hops", hops.collect::<Vec<_>>())?;
        dict.set_item("states_time_ns", totals.states_time.to_pyarray(py))?;
        dict.set_item("births", totals.births.to_pyarray(py))?;
        dict.set_item("deaths", totals.deaths.to_pyarray(py))?;
        let recovery = &totals.recovery;
        dict.set_item("timeouts", recovery.timeouts.to_pyarray(py))?;
        dict.set_item("stalled_ns", recovery.stalled.to_pyarray(py))?;
        dict.set_item("timeouts_by_window", recovery.by_window.to_pyarray(py))?;
        dict.set_item("recoveries", recovery.recoveries)?;
        dict.set_item("recovery_ns", recovery.duration)?;
        dict.set_item("recovery_sent", recovery.sent)?;
        dict.set_item("by_retransmissions", recovery.by_retransmissions.to_pyarray(py))?;
        dict.set_item("by_burst", recovery.by_burst.to_pyarray(py))?;
        let numbers = &totals.by_number;
        let column = |of: fn(&tcpcast_sim::probe::NumberRecord) -> u64| {
            numbers.iter().map(of).collect::<Vec<u64>>().to_pyarray(py)
        };
        dict.set_item("number_packets", column(|n| n.packets))?;
        dict.set_item("number_drops", column(|n| n.drops))?;
        let of_all = [0.5, 0.95, 0.99];
        let of_class = |each: &LogHistogram| transfers::quantiles(each, of_all);
        let of_classes = |all: &[LogHistogram]| all.iter().map(of_class).collect::<Vec<_>>();
        dict.set_item("on_time_percentiles", of_classes(&totals.on_times))?;
        dict.set_item("rate_percentiles", of_classes(&totals.rates))?;
        // None where no waits are kept.
        dict.set_item("wait_percentiles", of_all.map(|q| totals.waits.quantile(q)))?;
        transfers::put(&dict, &totals.transfers)?;
        let goodputs = totals.goodputs_by_size.iter().enumerate();
        let medians = goodputs.filter_map(|(row, told)| Some((row, told.quantile(0.5)?)));
        dict.set_item("goodput_medians", medians.collect::<Vec<_>>())?;
        Ok(dict)
    }

    /// The times of each replication's loss events, in nanoseconds since the warm-up: indications
    /// of any flow, none within `apart_ns` of the last one that counts. None where not all are
    /// kept.
    fn loss_events<'py>(
        &self,
        py: Python<'py>,
        apart_ns: u64,
    ) -> Option<Vec<Bound<'py, PyArray1<i64>>>> {
        let events = self.runs.runs().into_iter().map(|run| {
            let indications = &run.probes().indications;
            (!indications.is_cut()).then(|| indications.events(apart_ns).to_pyarray(py))
        });
        events.collect()
    }

    /// The goodputs of files in each replication, counted in each slot of its counters.
    fn file_goodputs<'py>(&self, py: Python<'py>) -> Vec<GoodputColumns<'py>> {
        let columns = self.runs.runs().into_iter().map(|run| {
            let slots = run.probes().goodput.slots();
            let all = || {
                slots.iter().enumerate().flat_map(|(at, slot)| slot.iter().map(move |c| (at, c)))
            };
            let column = |of: fn((usize, &GoodputCount)) -> u64| {
                all().map(of).collect::<Vec<u64>>().to_pyarray(py)
            };
            (
                slots.len(),
                column(|(at, _)| at as u64),
                column(|(_, found)| u64::from(found.group)),
                column(|(_, found)| u64::from(found.bucket)),
                column(|(_, found)| found.count),
            )
        });
        columns.collect()
    }

    /// How far the flows of each replication have come since they began, by source: 0 no loss
    /// found, 1 the first fast recovery not over, 2 beyond.
    fn stages<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<u8>>> {
        let columns = self.runs.runs().into_iter().map(|run| {
            run.records().map(|record| record.stage as u8).collect::<Vec<u8>>().to_pyarray(py)
        });
        columns.collect()
    }

    /// Number of transfers in progress and the sum of their ages in nanoseconds, of each class in
    /// each replication; an endless flow counts as a transfer.
    fn unfinished(&self) -> Vec<Vec<(u64, u64)>> {
        let of_run = |run: &dyn Replication| {
            let mut sums = vec![(0, 0); self.config.classes.len()];
            for record in run.records() {
                if let Some(age) = record.age(run.now()) {
                    let (count, ages) = &mut sums[record.class()];
                    *count += 1;
                    *ages += age;
                }
            }
            sums
        };
        self.runs.runs().into_iter().map(of_run).collect()
    }

    /// Packets that each source of each replication had delivered in order by those of the times
    /// asked for that are over; empty for one that began nothing.
    fn delivered(&mut self) -> PyResult<Vec<Vec<Vec<u32>>>> {
        self.runs.flush().map_err(conservation)?;
        let of_run = |run: &dyn Replication| {
            let counters = &run.probes().delivered;
            (0..run.records().count()).map(|flow| counters.flow(flow).to_vec()).collect()
        };
        Ok(self.runs.runs().into_iter().map(of_run).collect())
    }

    /// Each source's packets and ON time in nanoseconds in each replication.
    fn sources<'py>(&self, py: Python<'py>) -> Vec<SourceColumns<'py>> {
        let columns = self.runs.runs().into_iter().map(|run| {
            let packets: Vec<u64> = run.records().map(|record| record.packets).collect();
            let on_times: Vec<u64> = run.records().map(|record| record.on_time).collect();
            (packets.to_pyarray(py), on_times.to_pyarray(py))
        });
        columns.collect()
    }

    /// Each replication over time: the beginning, then the ends of slots; columns are the time,
    /// queue length times time, and the cells of `COURSE_CELLS` of each class.
    fn courses<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray2<u64>>>> {
        let probes = self.runs.flush().map_err(conservation)?;
        let rows = probes.iter().map(|probe| {
            let (rows, width) = (probe.time_series.rows(), probe.time_series.width());
            PyArray1::from_slice(py, &rows).reshape([rows.len() / width, width])
        });
        rows.collect()
    }

    /// How many transfers of each size interval took how long in each replication; of all files
    /// together where `together`, those of on/off sources too.
    fn time_counts<'py>(
        &self,
        py: Python<'py>,
        together: bool,
    ) -> Vec<transfers::TimeColumns<'py>> {
        let columns = self.runs.runs().into_iter().map(|run| {
            let probes = run.probes();
            if together {
                let whole = LogHistogram::sum(&probes.on_times);
                return transfers::time_counts(py, [&whole].into_iter());
            }
            transfers::time_counts(py, probes.transfers.rows.iter().map(|row| &row.completions))
        });
        columns.collect()
    }

    /// Windows and sequence numbers of the traced sources, in the first replication.
    fn traces<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let probes = self.runs.flush().map_err(conservation)?;
        let dict = PyDict::new(py);
        let Some(first) = probes.first() else {
            return Ok(dict);
        };
        let windows = first.trace.windows.points();
        let column = |of: fn(&tcpcast_sim::probe::TracePoint) -> u64| {
            windows.iter().map(of).collect::<Vec<u64>>().to_pyarray(py)
        };
        dict.set_item("window_time_ns", column(|w| w.time))?;
        dict.set_item("window_flow", column(|w| u64::from(w.source)))?;
        dict.set_item("cwnd", column(|w| u64::from(w.cwnd)))?;
        dict.set_item("ssthresh", column(|w| u64::from(w.ssthresh)))?;
        dict.set_item("flight", column(|w| u64::from(w.flight)))?;
        dict.set_item("window_bin_ns", first.trace.windows.bin())?;
        let marks = first.trace.numbers.points();
        let column = |of: fn(&tcpcast_sim::probe::MarkPoint) -> u64| {
            marks.iter().map(of).collect::<Vec<u64>>().to_pyarray(py)
        };
        let names: Vec<&str> = marks.iter().map(|m| mark_name(m.mark)).collect();
        dict.set_item("mark_time_ns", column(|m| m.time))?;
        dict.set_item("mark_flow", column(|m| u64::from(m.source)))?;
        dict.set_item("mark_number", column(|m| u64::from(m.number)))?;
        dict.set_item("mark", names)?;
        dict.set_item("mark_bin_ns", first.trace.numbers.bin())?;
        Ok(dict)
    }

    /// Write the n-th capture to an open file's path from now on, as the first replication goes on.
    fn begin_capture(&mut self, index: usize, path: PathBuf) -> PyResult<()> {
        let file = BufWriter::new(File::create(path)?);
        let capture = self.runs.capture_mut(index).ok_or_else(no_capture)?;
        let connection_properties = self.config.connection_properties(capture.tap());
        Ok(capture.write_to(Box::new(file), connection_properties)?)
    }

    /// Write what is left of the n-th capture; says whether more packets passed than it keeps.
    fn end_capture(&mut self, index: usize) -> PyResult<bool> {
        Ok(self.runs.capture_mut(index).ok_or_else(no_capture)?.end()?)
    }
}

/// Looks NumPy's functions up. The first array does so, and panics where a signal comes amid it:
/// after a long run one may be waiting.
fn find_numpy(py: Python<'_>) -> PyResult<()> {
    py.check_signals()?;
    PyArray1::<u8>::zeros(py, 0, false);
    Ok(())
}

fn no_capture() -> PyErr {
    PyRuntimeError::new_err("no such capture")
}

/// Looks at signals, the clock and the progress bar; `Done` here means: go on.
fn look(
    control: &Control,
    limit: Option<Instant>,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Waited> {
    Python::attach(|py| {
        if py.check_signals().is_err() {
            return Ok(Waited::Interrupted);
        }
        if limit.is_some_and(|limit| Instant::now() >= limit) {
            return Ok(Waited::OutOfTime);
        }
        if let Some(progress) = progress {
            progress.call1(py, (control.progress(),))?;
        }
        Ok(Waited::Done)
    })
}

fn mark_name(mark: Mark) -> &'static str {
    match mark {
        Mark::Sent => "sent",
        Mark::Retransmitted => "retransmitted",
        Mark::Dropped => "dropped",
        Mark::Timeout => "timeout",
    }
}

fn conservation(error: tcpcast_sim::Unbalanced) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// About how many bytes so many replications of a configuration take.
#[pyfunction]
fn run_bytes(config: Plain<RunConfig>, replications: u32) -> u64 {
    tcpcast_sim::run_bytes(&config.0, replications)
}

/// The compiled half of tcpcast.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("LINK_CELLS", LINK_CELLS.to_vec())?;
    module.add("CLASS_CELLS", CLASS_CELLS.to_vec())?;
    module.add("SIZE_CELLS", SIZE_CELLS.to_vec())?;
    module.add("COURSE_CELLS", TimeSeries::cells().to_vec())?;
    module.add("STEP_CELLS", STEP_CELLS.to_vec())?;
    module.add("RATE_UNITS", RATE_UNITS)?;
    module.add("GOODPUT_PIECES", PIECES.to_vec())?;
    module.add("GOODPUT_BUCKETS", (OCTAVES, BUCKETS_PER_OCTAVE))?;
    module.add("TIMEOUT_KINDS", TIMEOUT_KINDS.to_vec())?;
    module.add_function(wrap_pyfunction!(run_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(trace::read_trace, module)?)?;
    module.add_function(wrap_pyfunction!(emulation::run_link, module)?)?;
    module.add_function(wrap_pyfunction!(emulation::run_traffic, module)?)?;
    module.add_class::<Simulation>()
}
