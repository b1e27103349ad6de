//! The Python module `tcpcast._native`, which converts arguments, arrays and exceptions without
//! arithmetic.

mod allocator;
mod bbr_states;
mod control;
mod distributions;
mod emulation;
mod python_config;
mod trace;
mod transfers;

use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyFixedUnicode, ToPyArray};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use python_config::ConfigFromPython;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tcpcast_fixed_point::{
    FixedPointConfig, RoadConfig, STEP_CELLS, create_replications, estimate_bytes,
};
use tcpcast_sim::flows::{NetworkConfig, create_network_replications, estimate_network_bytes};
use tcpcast_sim::probe::{
    BUCKETS_PER_OCTAVE, BucketCount, CLASS_CELLS, GOODPUT_KINDS, LINK_CELLS, LINK_CLASS_CELLS,
    LINK_TOTAL_CELLS, LogHistogram, OCTAVES, Probes, RATE_UNITS, ReplicationTotals, SIZE_CELLS,
    SequenceEvent, StreamCounters, TIME_KINDS, TIMEOUT_KINDS, TimeSeries, time_bucket_limits,
};
use tcpcast_sim::{Replication, Replications, RunControl, RunLimit, StopReason};

#[global_allocator]
static ALLOCATOR: allocator::ExitOnFailureAllocator = allocator::ExitOnFailureAllocator;

/// Interval between checks of signals, the time limit and the progress bar during a run.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Replications of one packet-level run, which can be advanced repeatedly.
#[pyclass(module = "tcpcast._native")]
struct Simulation {
    runs: Replications,
    class_count: usize,
    /// Pairs of link and class of a network of links.
    link_classes: Vec<(usize, usize)>,
    /// Configuration of the network; `None` for a fixed point, which writes no captures.
    network: Option<Box<NetworkConfig>>,
}

/// Packets and ON times per source.
type SourceColumns<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

/// The number of slots, followed by one array per column: slot, group, bucket, and count.
type SlotColumns<'py> = (
    usize,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
);

/// Reason for the end of a wait for the replications.
enum WaitEndReason {
    Done,
    Interrupted,
    OutOfTime,
}

#[pymethods]
impl Simulation {
    /// Create `replications` runs of a configuration, given as plain data.
    #[new]
    fn new(
        py: Python<'_>,
        config: ConfigFromPython<NetworkConfig>,
        replications: u32,
    ) -> PyResult<Self> {
        import_numpy(py)?;
        let ConfigFromPython(config) = config;
        Ok(Self {
            class_count: config.classes.len(),
            link_classes: config.link_classes(),
            runs: create_network_replications(&config, replications),
            network: Some(Box::new(config)),
        })
    }

    /// Create `replications` fixed points of a configuration. `config` and `spec` are plain data.
    #[classmethod]
    fn fixed_point(
        _class: &Bound<'_, PyType>,
        config: ConfigFromPython<RoadConfig>,
        spec: ConfigFromPython<FixedPointConfig>,
        replications: u32,
    ) -> Self {
        let (ConfigFromPython(config), ConfigFromPython(spec)) = (config, spec);
        Self {
            class_count: config.classes.len(),
            link_classes: Vec::new(),
            runs: create_replications(&config, &spec, replications),
            network: None,
        }
    }

    /// Advance all replications. Return "done", "interrupted", "out-of-time" or "crowded".
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
        let control = RunControl::new(self.runs.len());
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
                    if end.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
                        break Ok(WaitEndReason::Done);
                    }
                    match check_signals_and_time(control, limit, progress.as_ref()) {
                        Ok(WaitEndReason::Done) => {}
                        ended => break ended,
                    }
                };
                control.request_stop();
                (worker.join(), waited)
            })
        });
        let stop = stop.map_err(|_| PyRuntimeError::new_err("the simulator panicked"))?;
        if let Some(error) = control::take_error() {
            return Err(error);
        }
        Ok(match (waited?, stop) {
            (_, StopReason::Done) => "done",
            (_, StopReason::TooManyTransfers) => "crowded",
            (WaitEndReason::OutOfTime, _) => "out-of-time",
            _ => "interrupted",
        })
    }

    /// Return the virtual time of each replication in nanoseconds, and whether its warm-up has
    /// ended.
    fn clocks(&self) -> Vec<(u64, bool)> {
        self.runs.created_replications().map(|run| (run.now(), run.is_measuring())).collect()
    }

    /// Return the cumulative counters of each replication, `[rows, cells]`: a row of zeros, then
    /// one row per slot, then the current values.
    fn counters<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray2<u64>>>> {
        let probes = self.runs.update_and_check_probes().map_err(conservation_error)?;
        probes.into_iter().map(|probes| counter_snapshot_rows(py, probes)).collect()
    }

    /// Return the counters of the cross flows of fixed points, as of the last call of `counters`.
    fn cross_flow_counters<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<Bound<'py, PyArray2<u64>>>> {
        let runs = self.runs.created_replications();
        runs.filter_map(|run| Some(counter_snapshot_rows(py, run.cross_flow_probes()?))).collect()
    }

    /// Return the results of the steps of each fixed point, `[rows, cells]` with the cells of
    /// `STEP_CELLS`.
    fn steps<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray2<f64>>>> {
        let steps = self.runs.created_replications().filter_map(|run| run.step_results());
        steps.map(|cells| reshape_to_rows(py, &cells, STEP_CELLS.len())).collect()
    }

    /// Return histograms and counts, summed over all replications.
    fn totals<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let probes = self.runs.update_and_check_probes().map_err(conservation_error)?;
        let totals = ReplicationTotals::sum_replications(&probes);
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
            let waits = (counters.waits, counters.waited);
            (counters.offered, counters.carried, counters.dropped, sums, fluid, waits)
        };
        dict.set_item("cross", totals.cross.streams().iter().map(of_stream).collect::<Vec<_>>())?;
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
        let column = |of: fn(&tcpcast_sim::probe::SequenceNumberCounters) -> u64| {
            numbers.iter().map(of).collect::<Vec<u64>>().to_pyarray(py)
        };
        dict.set_item("number_packets", column(|n| n.packets))?;
        dict.set_item("number_drops", column(|n| n.drops))?;
        let levels = [0.5, 0.95, 0.99];
        let of_class = |each: &LogHistogram| transfers::histogram_quantiles(each, levels);
        let of_classes = |all: &[LogHistogram]| all.iter().map(of_class).collect::<Vec<_>>();
        dict.set_item("on_time_percentiles", of_classes(&totals.on_times))?;
        dict.set_item("rate_percentiles", of_classes(&totals.rates))?;
        // None if queueing times are not recorded.
        dict.set_item("wait_percentiles", levels.map(|q| totals.waits.quantile(q)))?;
        transfers::put_transfer_statistics(&dict, &totals.transfers)?;
        let goodputs = totals.goodputs_by_size.iter().enumerate();
        let medians = goodputs.filter_map(|(row, goodputs)| Some((row, goodputs.quantile(0.5)?)));
        dict.set_item("goodput_medians", medians.collect::<Vec<_>>())?;
        Ok(dict)
    }

    /// Return the times of the loss events of each replication, in nanoseconds since the warm-up. A
    /// loss event is a loss indication of any flow at least `apart_ns` after the last loss event.
    /// Return None if some indications were not recorded.
    fn loss_events<'py>(
        &self,
        py: Python<'py>,
        apart_ns: u64,
    ) -> Option<Vec<Bound<'py, PyArray1<i64>>>> {
        let events = self.runs.created_replications().map(|run| {
            let indications = &run.probes().indications;
            (!indications.exceeded_limit())
                .then(|| indications.loss_events(apart_ns).to_pyarray(py))
        });
        events.collect()
    }

    /// Return the histograms of file goodputs of each replication, per slot.
    fn file_goodputs<'py>(&self, py: Python<'py>) -> Vec<SlotColumns<'py>> {
        self.slots_by_replication(py, |probes| probes.goodput.counts.counts_by_slot())
    }

    /// Return the pairs of link and class of a network of links, in the order of the counters.
    fn link_classes(&self) -> Vec<(usize, usize)> {
        self.link_classes.clone()
    }

    /// Return the histograms of the times of each class on a network of links, per replication and
    /// slot. The group is the class times the number of `TIME_KINDS`, plus the kind.
    fn class_times<'py>(&self, py: Python<'py>) -> Vec<SlotColumns<'py>> {
        self.slots_by_replication(py, |probes| probes.class_times.counts_by_slot())
    }

    /// Return the histograms of queueing delays on each link of a network, per replication and slot.
    /// The group is the link.
    fn link_waits<'py>(&self, py: Python<'py>) -> Vec<SlotColumns<'py>> {
        self.slots_by_replication(py, |probes| probes.link_waits.counts_by_slot())
    }

    /// Return the stage of each source of each replication: 0 before the first loss, 1 before the
    /// end of the first fast recovery, 2 afterwards.
    fn stages<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<u8>>> {
        let columns = self.runs.created_replications().map(|run| {
            run.records().map(|record| record.stage as u8).collect::<Vec<u8>>().to_pyarray(py)
        });
        columns.collect()
    }

    /// Return the number of transfers in progress and the sum of their ages in nanoseconds, per
    /// replication and class. An endless flow counts as one transfer.
    fn unfinished(&self) -> Vec<Vec<(u64, u64)>> {
        let of_run = |run: &dyn Replication| {
            let mut sums = vec![(0, 0); self.class_count];
            for record in run.records() {
                if let Some(age) = record.transfer_age(run.now()) {
                    let (count, ages) = &mut sums[record.class()];
                    *count += 1;
                    *ages += age;
                }
            }
            sums
        };
        self.runs.created_replications().map(of_run).collect()
    }

    /// Return the number of packets delivered in order per replication, source and configured time,
    /// for times that have passed. The list of a source without transfers is empty.
    fn delivered(&mut self) -> PyResult<Vec<Vec<Vec<u32>>>> {
        self.runs.update_and_check_probes().map_err(conservation_error)?;
        let of_run = |run: &dyn Replication| {
            let counters = &run.probes().delivered;
            (0..run.records().count())
                .map(|flow| counters.deliveries_of_flow(flow).to_vec())
                .collect()
        };
        Ok(self.runs.created_replications().map(of_run).collect())
    }

    /// Return the packets and the ON time in nanoseconds of each source, per replication.
    fn sources<'py>(&self, py: Python<'py>) -> Vec<SourceColumns<'py>> {
        let columns = self.runs.created_replications().map(|run| {
            let packets: Vec<u64> = run.records().map(|record| record.packets).collect();
            let on_times: Vec<u64> = run.records().map(|record| record.on_time).collect();
            (packets.to_pyarray(py), on_times.to_pyarray(py))
        });
        columns.collect()
    }

    /// Return the time series of each replication: one row for the start and one per slot end.
    /// Columns are the time, the time integral of the queue length, and the cells of
    /// `TIME_SERIES_CELLS` per class.
    fn time_series<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray2<u64>>>> {
        let probes = self.runs.update_and_check_probes().map_err(conservation_error)?;
        let series = probes.into_iter().map(|probes| &probes.time_series);
        series.map(|series| reshape_to_rows(py, &series.rows(), series.column_count())).collect()
    }

    /// Return the histograms of transfer times of each replication: per size interval, or over all
    /// files including those of on/off sources if `together` is true.
    fn time_counts<'py>(
        &self,
        py: Python<'py>,
        together: bool,
    ) -> Vec<transfers::TimeHistogramColumns<'py>> {
        let columns = self.runs.created_replications().map(|run| {
            let probes = run.probes();
            if together {
                let total = LogHistogram::sum_of(&probes.on_times);
                return transfers::time_histogram_columns(py, [&total].into_iter());
            }
            transfers::time_histogram_columns(
                py,
                probes.transfers.rows.iter().map(|row| &row.completions),
            )
        });
        columns.collect()
    }

    /// Return the windows and sequence numbers of the traced sources in the first replication.
    fn traces<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let probes = self.runs.update_and_check_probes().map_err(conservation_error)?;
        let dict = PyDict::new(py);
        let Some(first) = probes.first() else {
            return Ok(dict);
        };
        let windows = first.trace.windows.points();
        let column = |of: fn(&tcpcast_sim::probe::WindowPoint) -> u64| {
            windows.iter().map(of).collect::<Vec<u64>>().to_pyarray(py)
        };
        dict.set_item("window_time_ns", column(|w| w.time))?;
        dict.set_item("window_flow", column(|w| u64::from(w.source)))?;
        dict.set_item("cwnd", column(|w| u64::from(w.cwnd)))?;
        dict.set_item("ssthresh", column(|w| u64::from(w.ssthresh)))?;
        dict.set_item("flight", column(|w| u64::from(w.flight)))?;
        dict.set_item("window_bin_ns", first.trace.windows.bin_width())?;
        dict.set_item("bbr", bbr_states::bbr_columns(py, first.trace.bbr.points())?)?;
        dict.set_item("bbr_bin_ns", first.trace.bbr.bin_width())?;
        let marks = first.trace.numbers.points();
        let column = |of: fn(&tcpcast_sim::probe::SequencePoint) -> u64| {
            marks.iter().map(of).collect::<Vec<u64>>().to_pyarray(py)
        };
        let names: Vec<_> = marks.iter().map(|m| sequence_event_name(m.mark)).collect();
        dict.set_item("mark_time_ns", column(|m| m.time))?;
        dict.set_item("mark_flow", column(|m| u64::from(m.source)))?;
        dict.set_item("mark_number", column(|m| u64::from(m.number)))?;
        dict.set_item("mark", names.to_pyarray(py))?;
        dict.set_item("mark_bin_ns", first.trace.numbers.bin_width())?;
        Ok(dict)
    }

    /// Start to write capture number `index` of the first replication to the file `path`.
    fn begin_capture(&mut self, index: usize, path: PathBuf) -> PyResult<()> {
        let file = BufWriter::new(File::create(path)?);
        let capture = self.runs.capture_mut(index).ok_or_else(missing_capture_error)?;
        let network = self.network.as_ref().ok_or_else(missing_capture_error)?;
        let connection_properties = network.connection_properties(capture.tap());
        Ok(capture.start_writing_to(Box::new(file), connection_properties)?)
    }

    /// Write the remaining packets of capture number `index`. Return True if packets were omitted
    /// because of the limit.
    fn end_capture(&mut self, index: usize) -> PyResult<bool> {
        Ok(self.runs.capture_mut(index).ok_or_else(missing_capture_error)?.finish_writing()?)
    }
}

impl Simulation {
    /// Columns of the counts per slot of each replication.
    fn slots_by_replication<'py>(
        &self,
        py: Python<'py>,
        counts_by_slot: fn(&Probes) -> Vec<Vec<BucketCount>>,
    ) -> Vec<SlotColumns<'py>> {
        let runs = self.runs.created_replications();
        runs.map(|run| slot_columns(py, &counts_by_slot(run.probes()))).collect()
    }
}

/// Converts counts per slot to columns: slot, group, bucket, and count.
fn slot_columns<'py>(py: Python<'py>, slots: &[Vec<BucketCount>]) -> SlotColumns<'py> {
    let mut columns = [const { Vec::new() }; 4];
    for (index, slot) in slots.iter().enumerate() {
        for BucketCount { group, bucket, count } in slot {
            let row = [index as u64, u64::from(*group), u64::from(*bucket), *count];
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
    }
    let [slot, group, bucket, count] = columns.map(|column| column.to_pyarray(py));
    (slots.len(), slot, group, bucket, count)
}

/// Converts the concatenated rows of a table.
fn reshape_to_rows<'py, T: Element + Copy>(
    py: Python<'py>,
    cells: &[T],
    width: usize,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    PyArray1::from_slice(py, cells).reshape([cells.len() / width, width])
}

/// Snapshots of the counters.
fn counter_snapshot_rows<'py>(
    py: Python<'py>,
    probes: &Probes,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    reshape_to_rows(py, &probes.counters.snapshot_rows(), probes.counters.cells_per_snapshot())
}

/// Loads the functions of NumPy. Otherwise, the first array loads them, and panics if a signal is
/// pending, for example after a long run.
fn import_numpy(py: Python<'_>) -> PyResult<()> {
    py.check_signals()?;
    PyArray1::<u8>::zeros(py, 0, false);
    Ok(())
}

fn missing_capture_error() -> PyErr {
    PyRuntimeError::new_err("no such capture")
}

/// Checks signals and the time limit, and updates the progress bar. `Done` means that the run
/// continues.
fn check_signals_and_time(
    control: &RunControl,
    limit: Option<Instant>,
    progress: Option<&Py<PyAny>>,
) -> PyResult<WaitEndReason> {
    Python::attach(|py| {
        if py.check_signals().is_err() {
            return Ok(WaitEndReason::Interrupted);
        }
        if limit.is_some_and(|limit| Instant::now() >= limit) {
            return Ok(WaitEndReason::OutOfTime);
        }
        if let Some(progress) = progress {
            progress.call1(py, (control.progress(),))?;
        }
        Ok(WaitEndReason::Done)
    })
}

/// Returns the name as an element of an array, because a list of as many texts as there are events
/// takes longer to convert than the run may last beyond its limit.
fn sequence_event_name(mark: SequenceEvent) -> PyFixedUnicode<13> {
    let name = match mark {
        SequenceEvent::Sent => "sent",
        SequenceEvent::Retransmitted => "retransmitted",
        SequenceEvent::Dropped => "dropped",
        SequenceEvent::Timeout => "timeout",
    };
    let mut letters = [0; 13];
    letters.iter_mut().zip(name.bytes()).for_each(|(letter, byte)| *letter = u32::from(byte));
    letters.into()
}

fn conservation_error(error: tcpcast_sim::ConservationError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Return the approximate memory of `replications` replications of a configuration in bytes.
#[pyfunction]
fn run_bytes(config: ConfigFromPython<NetworkConfig>, replications: u32) -> u64 {
    estimate_network_bytes(&config.0, replications)
}

/// Return the approximate memory of `replications` fixed points of a configuration in bytes.
#[pyfunction]
fn fixed_point_bytes(config: ConfigFromPython<RoadConfig>, replications: u32) -> u64 {
    estimate_bytes(&config.0, replications)
}

/// The compiled part of tcpcast.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("LINK_CELLS", LINK_CELLS.to_vec())?;
    module.add("CLASS_CELLS", CLASS_CELLS.to_vec())?;
    module.add("SIZE_CELLS", SIZE_CELLS.to_vec())?;
    module.add("LINK_TOTAL_CELLS", LINK_TOTAL_CELLS.to_vec())?;
    module.add("LINK_CLASS_CELLS", LINK_CLASS_CELLS.to_vec())?;
    module.add("TIME_KINDS", TIME_KINDS.to_vec())?;
    module.add("TIME_BUCKET_LIMITS_NS", time_bucket_limits())?;
    module.add("TIME_SERIES_CELLS", TimeSeries::column_names().to_vec())?;
    module.add("STEP_CELLS", STEP_CELLS.to_vec())?;
    module.add("RATE_UNITS", RATE_UNITS)?;
    module.add("MIN_RTT_S", tcpcast_trace::MIN_RTT_S)?;
    module.add("GOODPUT_KINDS", GOODPUT_KINDS.to_vec())?;
    module.add("GOODPUT_BUCKETS", (OCTAVES, BUCKETS_PER_OCTAVE))?;
    module.add("TIMEOUT_KINDS", TIMEOUT_KINDS.to_vec())?;
    module.add_function(wrap_pyfunction!(run_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(fixed_point_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(distributions::student_quantile, module)?)?;
    module.add_function(wrap_pyfunction!(distributions::student_tail_probability, module)?)?;
    module.add_function(wrap_pyfunction!(distributions::gamma_quantile, module)?)?;
    module.add_function(wrap_pyfunction!(trace::read_trace, module)?)?;
    module.add_function(wrap_pyfunction!(control::register_control, module)?)?;
    module.add_function(wrap_pyfunction!(emulation::run_link, module)?)?;
    module.add_function(wrap_pyfunction!(emulation::run_traffic, module)?)?;
    module.add_class::<control::Ack>()?;
    module.add_class::<Simulation>()
}
