//! Congestion control by a class of Python.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use tcpcast_tcp::modern::{
    AckSample, CongestionWindow, ControlRules, ExternalControl, ExternalControlFactory,
    ExternalControlId, PhaseName,
};

/// Largest window in packets.
const MAX_WINDOW: f64 = 1e9;

/// First error of a class during a run, which ends the run.
static ERROR: Mutex<Option<PyErr>> = Mutex::new(None);

/// Takes the error that ended a run.
pub fn take_error() -> Option<PyErr> {
    ERROR.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn keep_error(error: PyErr) {
    ERROR.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// One acknowledgement: the fields of Linux's `rate_sample`, and the state of the connection.
#[pyclass(module = "tcpcast._native", frozen, get_all)]
pub struct Ack {
    /// Time of the simulation in seconds.
    now_s: f64,
    /// Packets newly delivered: acknowledged, or SACKed for the first time.
    delivered: u32,
    /// Packets newly acknowledged cumulatively.
    acked: u32,
    /// Packets newly detected as lost.
    lost: u32,
    /// Round-trip time of the packet delivered last in seconds, `None` if it is ambiguous.
    rtt_s: Option<f64>,
    /// Minimum round-trip time of the last minutes in seconds.
    min_rtt_s: Option<f64>,
    /// Smoothed round-trip time in seconds.
    srtt_s: Option<f64>,
    /// Delivery rate in bit/s of payload, `None` if the interval was too short.
    delivery_rate_bps: Option<f64>,
    /// Whether the delivery rate was limited by the application.
    is_app_limited: bool,
    /// Whether the window limited the rate.
    is_cwnd_limited: bool,
    /// Packets in flight before and after the acknowledgement.
    prior_in_flight: u32,
    in_flight: u32,
    /// Packets delivered, lost, and delivered with an ECN echo, since the start; modulo 2^32.
    total_delivered: u32,
    total_lost: u32,
    total_marked: u32,
    /// Packets delivered when the packet delivered last was sent; modulo 2^32.
    prior_delivered: Option<u32>,
    /// Whether a recovery from losses is in progress.
    in_recovery: bool,
    /// Bytes of payload of a full packet.
    mss: u32,
}

impl Ack {
    fn new(sample: &AckSample) -> Self {
        let rate = sample.rate.rate.as_ref();
        Self {
            now_s: seconds(sample.now),
            delivered: sample.delivered,
            acked: sample.acked,
            lost: sample.lost,
            rtt_s: sample.rtt.map(seconds),
            min_rtt_s: sample.min_rtt.map(seconds),
            srtt_s: sample.srtt.map(seconds),
            delivery_rate_bps: rate.map(|rate| {
                8.0 * f64::from(sample.mss) * f64::from(rate.delivered) / seconds(rate.interval)
            }),
            is_app_limited: sample.rate.app_limited,
            is_cwnd_limited: sample.cwnd_limited,
            prior_in_flight: sample.prior_in_flight,
            in_flight: sample.in_flight,
            total_delivered: sample.total_delivered,
            total_lost: sample.total_lost,
            total_marked: sample.total_delivered_ce,
            prior_delivered: sample.rate.prior_delivered,
            in_recovery: sample.phase >= PhaseName::Recovery,
            mss: sample.mss,
        }
    }
}

#[derive(Debug)]
struct PythonFactory(Py<PyAny>);

impl ExternalControlFactory for PythonFactory {
    fn create(&self, rules: &ControlRules) -> Box<dyn ExternalControl> {
        let instance = Python::attach(|py| {
            let instance = self.0.call0(py)?;
            instance.setattr(py, intern!(py, "cwnd"), f64::from(rules.initial_window))?;
            Ok(instance)
        });
        Box::new(PythonControl { instance: instance.map_err(keep_error).ok(), pacing_rate: None })
    }
}

/// Instance of the class for one connection; `None` after an error.
#[derive(Debug)]
struct PythonControl {
    instance: Option<Py<PyAny>>,
    pacing_rate: Option<u64>,
}

impl PythonControl {
    /// Calls a method, and takes window and rate from the instance.
    fn call(
        &mut self,
        window: &mut CongestionWindow,
        method: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>,
    ) {
        let Some(instance) = &self.instance else { return };
        let result = Python::attach(|py| {
            let instance = instance.bind(py);
            method(instance)?;
            let cwnd: f64 = instance.getattr(intern!(py, "cwnd"))?.extract()?;
            let rate: Option<f64> = instance.getattr(intern!(py, "pacing_rate"))?.extract()?;
            if cwnd.is_nan() || cwnd < 1.0 {
                return Err(wrong_value(instance, "cwnd", "1 packet", cwnd));
            }
            if let Some(rate) = rate.filter(|rate| rate.is_nan() || *rate < 1.0) {
                return Err(wrong_value(instance, "pacing_rate", "1 bit/s", rate));
            }
            Ok((cwnd.min(MAX_WINDOW), rate))
        });
        match result {
            Ok((cwnd, rate)) => {
                window.cwnd = cwnd as u32;
                self.pacing_rate = rate.map(|rate| (rate / 8.0).max(1.0) as u64);
            }
            Err(error) => {
                keep_error(error);
                self.instance = None;
            }
        }
    }
}

fn wrong_value(instance: &Bound<'_, PyAny>, name: &str, least: &str, value: f64) -> PyErr {
    let class = instance.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
    PyValueError::new_err(format!("{class}.{name} must be at least {least}, but is {value}"))
}

impl ExternalControl for PythonControl {
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        self.call(window, |instance| {
            let py = instance.py();
            instance.call_method1(intern!(py, "on_ack"), (Ack::new(sample),)).map(drop)
        });
    }

    fn on_loss(&mut self, window: &mut CongestionWindow, now: u64) {
        self.call(window, |instance| {
            let py = instance.py();
            instance.call_method1(intern!(py, "on_loss"), (seconds(now),)).map(drop)
        });
    }

    fn on_timeout(&mut self, window: &mut CongestionWindow, now: u64) {
        self.call(window, |instance| {
            let py = instance.py();
            instance.call_method1(intern!(py, "on_timeout"), (seconds(now),)).map(drop)
        });
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.pacing_rate
    }

    fn duplicate(&self) -> Box<dyn ExternalControl> {
        let copied = self.instance.as_ref().map(|instance| {
            Python::attach(|py| {
                let copy = py.import("copy")?.getattr("copy")?.call1((instance,))?;
                Ok(copy.unbind())
            })
        });
        let instance = copied.and_then(|copy| copy.map_err(keep_error).ok());
        Box::new(Self { instance, pacing_rate: self.pacing_rate })
    }
}

/// Register a class; return its number for the configuration of a run.
#[pyfunction]
pub fn register_control(control: Py<PyAny>) -> usize {
    ExternalControlId::register(Arc::new(PythonFactory(control))).number()
}
