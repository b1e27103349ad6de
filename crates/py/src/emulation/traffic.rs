//! A scenario's flows over a link, sent by the kernel's own TCP.

use super::directions::both;
use super::files::{Alone, Source, files};
use super::linux::{pipe, side};
use crate::config::Plain;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use tcpcast_emu::sandbox;
use tcpcast_emu::traffic::{FlowConfig, Schedule, TrafficCommand};
use tcpcast_sim::RunConfig;

/// What one flow is beside its path and its traffic, which are those of its class. Of the class it
/// is the one at `place`; streams of random numbers are those of source `source` in the simulator.
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

/// How long the run is: so long, or until so many files have ended after a warm-up. Transfers that
/// are each alone are so many of each size, with pauses between them.
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
pub(super) struct TrafficDict {
    config: Plain<RunConfig>,
    flows: Vec<FlowDict>,
    far_sysctls: Vec<(String, String)>,
    schedule: ScheduleDict,
    /// Seed and replication of what is drawn for the flows.
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
        let (forward, back, first) = both(config, false)?;
        let ScheduleDict { until_ns, wanted, slot_ns, pause_ns, count } = self.schedule;
        let alone = Alone { pause: pause_ns, count };
        let mut flows = Vec::new();
        for flow in self.flows {
            let Some(class) = classes.get(flow.class) else {
                return Err(PyValueError::new_err(format!("there is no class {}", flow.class)));
            };
            let source = Source { class: flow.class as u32, place: flow.place, index: flow.source };
            let mtu = class.packet_bytes.unwrap_or(packet_bytes);
            let payload = NonZeroU32::new(flow.payload).unwrap_or(NonZeroU32::MIN);
            let (files, session, stop) =
                files(&class.traffic, source, self.draws, (payload, alone));
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
        let schedule = Schedule {
            until: until_ns.map(Duration::from_nanos),
            wanted: wanted.map(|(warm_up, files)| (Duration::from_nanos(warm_up), files)),
            slot: slot_ns.map(|slot| Duration::from_nanos(slot.max(1))),
        };
        let capture = match self.capture {
            Some((at, path)) => Some((side(&at)?, File::create(path)?)),
            None => None,
        };
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

pub(super) fn run(
    py: Python<'_>,
    traffic: TrafficDict,
    lifeline: i32,
    answer: i32,
) -> PyResult<i32> {
    let lifeline = OwnedFd::from(pipe(lifeline, OpenOptions::new().read(true))?);
    let answer = pipe(answer, OpenOptions::new().write(true))?;
    let command = traffic.into_command()?;
    Ok(py.detach(|| told(command, &lifeline, answer)))
}

fn told(command: TrafficCommand, lifeline: &OwnedFd, mut answer: File) -> i32 {
    let Ok(mut inside) = answer.try_clone() else { return 3 };
    let ran = sandbox::run(move || match command.run(lifeline, &mut inside) {
        Ok(()) => 0,
        Err(fault) => {
            // Whoever reads it may have gone; then nobody reads the status either.
            let _ = writeln!(inside, "fault {fault}");
            fault.status()
        }
    });
    ran.unwrap_or_else(|fault| {
        let _ = writeln!(answer, "fault {fault}");
        3
    })
}
