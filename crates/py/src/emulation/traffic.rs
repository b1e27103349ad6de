//! Flows of a scenario over an emulated link, sent by the TCP of the kernel.

use super::directions::link_directions;
use super::files::{IsolatedTransfers, SimulatedSourceId, file_generator};
use super::sandboxed_run::{create_capture_file, run_in_sandbox};
use crate::python_config::ConfigFromPython;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use tcpcast_emu::traffic::{FlowConfig, RunSchedule, TrafficCommand};
use tcpcast_sim::RunConfig;

/// One flow. The path and traffic are defined by its class; `place` is the index of the flow in the
/// class, and `source` is the index of the simulated source with the same random streams.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct FlowDict {
    class: usize,
    place: usize,
    source: u32,
    control: String,
    sysctls: Vec<(String, String)>,
    initial_window: u32,
    least_rto_ms: u32,
    receiver_window_bytes: Option<u32>,
    payload: u32,
}

/// Duration of the run: a time, or a number of files after a warm-up. Isolated transfers use
/// `count` transfers per size, with pauses between them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ScheduleDict {
    until_ns: Option<u64>,
    wanted: Option<(u64, u64)>,
    slot_ns: Option<u64>,
    pause_ns: u64,
    count: u64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TrafficDict {
    config: ConfigFromPython<RunConfig>,
    flows: Vec<FlowDict>,
    far_sysctls: Vec<(String, String)>,
    schedule: ScheduleDict,
    /// Seed and replication of the random streams of the flows.
    draws: (u64, u32),
    capture: Option<(String, PathBuf)>,
    most_bytes: usize,
}

impl TrafficDict {
    fn into_command(self) -> PyResult<TrafficCommand> {
        let config = self.config.0;
        let packet_bytes = config.packet_bytes;
        let classes = config.classes.clone();
        let paths: Vec<_> = classes.iter().map(|c| (c.forward, c.back)).collect();
        let (forward, back, first) = link_directions(config, false)?;
        let ScheduleDict { until_ns, wanted, slot_ns, pause_ns, count } = self.schedule;
        let isolated = IsolatedTransfers { pause: pause_ns, count };
        let mut flows = Vec::new();
        for flow in self.flows {
            let Some(class) = classes.get(flow.class) else {
                return Err(PyValueError::new_err(format!("there is no class {}", flow.class)));
            };
            let source = SimulatedSourceId {
                class: flow.class as u32,
                class_index: flow.place,
                index: flow.source,
            };
            let mtu = class.packet_bytes.unwrap_or(packet_bytes);
            let payload = NonZeroU32::new(flow.payload).unwrap_or(NonZeroU32::MIN);
            let (files, session, stop) =
                file_generator(&class.traffic, source, self.draws, (payload, isolated));
            flows.push(FlowConfig {
                delays: paths.get(flow.class).copied().unwrap_or(first),
                control: flow.control,
                sysctls: flow.sysctls,
                initial_window: flow.initial_window,
                min_rto_ms: flow.least_rto_ms,
                receiver_window: flow.receiver_window_bytes,
                mtu,
                files,
                session,
                stop,
            });
        }
        let schedule = RunSchedule {
            until: until_ns.map(Duration::from_nanos),
            wanted: wanted.map(|(warm_up, files)| (Duration::from_nanos(warm_up), files)),
            slot: slot_ns.map(|slot| Duration::from_nanos(slot.max(1))),
        };
        let capture = create_capture_file(self.capture)?;
        Ok(TrafficCommand {
            forward,
            back,
            flows,
            far_sysctls: self.far_sysctls,
            schedule,
            mtu: packet_bytes,
            device: None,
            capture,
            memory: self.most_bytes,
        })
    }
}

pub(super) fn run_traffic_dict(
    py: Python<'_>,
    traffic: &Bound<'_, PyAny>,
    lifeline: i32,
    answer: i32,
) -> PyResult<i32> {
    let command = traffic.extract::<TrafficDict>()?.into_command()?;
    run_in_sandbox(py, lifeline, answer, |lifeline, answer| {
        command.run_flows(lifeline, answer).map(|()| 0)
    })
}
