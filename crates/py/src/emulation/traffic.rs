//! A scenario's flows over a link, sent by the kernel's own TCP.

use super::directions::both;
use super::linux::{pipe, side};
use crate::config::Plain;
use pyo3::prelude::*;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use tcpcast_emu::sandbox;
use tcpcast_emu::traffic::{FlowConfig, TrafficCommand, Work};
use tcpcast_sim::RunConfig;

/// What one flow is beside its path, which is that of its class.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct FlowDict {
    class: usize,
    control: String,
    sysctls: Vec<(String, String)>,
    initial_window: u32,
    least_rto_ms: u32,
    start_ns: u64,
}

/// What flows do: `sizes` in bytes, or else bulk.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct WorkDict {
    sizes: Option<Vec<u64>>,
    pause_ns: u64,
    close: bool,
    until_ns: u64,
    slot_ns: u64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct TrafficDict {
    config: Plain<RunConfig>,
    flows: Vec<FlowDict>,
    far_sysctls: Vec<(String, String)>,
    work: WorkDict,
    mtu: u32,
    capture: Option<(String, PathBuf)>,
    most_bytes: usize,
}

impl TrafficDict {
    fn into_command(self) -> PyResult<TrafficCommand> {
        let config = self.config.0;
        let paths: Vec<_> = config.classes.iter().map(|c| (c.forward, c.back)).collect();
        let (forward, back, first) = both(config, false)?;
        let flow = |flow: FlowDict| FlowConfig {
            delays: paths.get(flow.class).copied().unwrap_or(first),
            control: flow.control,
            sysctls: flow.sysctls,
            initial_window: flow.initial_window,
            least_rto_ms: flow.least_rto_ms,
            start: Duration::from_nanos(flow.start_ns),
        };
        let WorkDict { sizes, pause_ns, close, until_ns, slot_ns } = self.work;
        let work = match sizes {
            Some(sizes) => Work::Transfers { sizes, pause: Duration::from_nanos(pause_ns), close },
            None => Work::Bulk {
                until: Duration::from_nanos(until_ns),
                slot: Duration::from_nanos(slot_ns.max(1)),
            },
        };
        let capture = match self.capture {
            Some((at, path)) => Some((side(&at)?, File::create(path)?)),
            None => None,
        };
        Ok(TrafficCommand {
            forward,
            back,
            flows: self.flows.into_iter().map(flow).collect(),
            far_sysctls: self.far_sysctls,
            work,
            mtu: self.mtu,
            way: None,
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
