//! Flows of a scenario over an emulated network of links, with the network stack of the kernel.

use super::files::{IsolatedTransfers, SimulatedSourceId, flow_app};
use super::network::NetworkBuilder;
use super::sandboxed_run::{create_capture_file, parse_side, run_in_sandbox};
use crate::python_config::ConfigFromPython;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use tcpcast_emu::traffic::{FlowConfig, HostConfig, RunSchedule, TrafficCommand};
use tcpcast_sim::clock::seconds_to_nanos;
use tcpcast_sim::flows::{FlowClassConfig, NetworkConfig};

/// A host: its side, and its settings of TCP.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct HostDict {
    side: String,
    sysctls: Vec<(String, String)>,
    /// Initial window in packets, and minimum RTO in ms, of senders.
    route: Option<(u32, u32)>,
    mtu: u32,
}

/// One flow. Its paths and traffic are defined by its class; `place` is the index of the flow in the
/// class, and `source` is the index of the simulated source with the same random streams. `hosts`
/// are the indices of the hosts of server and client.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct FlowDict {
    class: usize,
    place: usize,
    source: u32,
    hosts: [usize; 2],
    control: String,
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
    config: ConfigFromPython<NetworkConfig>,
    hosts: Vec<HostDict>,
    flows: Vec<FlowDict>,
    schedule: ScheduleDict,
    /// Number of the replication, whose random streams are used.
    replication: u32,
    capture: Option<(String, PathBuf)>,
    most_bytes: usize,
}

impl TrafficDict {
    fn into_command(self) -> PyResult<TrafficCommand> {
        let mut builder = NetworkBuilder::new(self.config.0, self.replication);
        let ScheduleDict { until_ns, wanted, slot_ns, pause_ns, count } = self.schedule;
        let isolated = IsolatedTransfers { pause: pause_ns, count };
        let hosts = self.hosts.into_iter().map(HostDict::into_config).collect::<PyResult<_>>()?;
        let draws = (builder.config().seed, self.replication);
        let mut flows = Vec::new();
        for (number, flow) in self.flows.into_iter().enumerate() {
            let Some(class) = builder.config().classes.get(flow.class).cloned() else {
                return Err(PyValueError::new_err(format!("there is no class {}", flow.class)));
            };
            let source = SimulatedSourceId {
                class: flow.class as u32,
                class_index: flow.place,
                index: flow.source,
                flow: number,
            };
            let member = flow.place as u32 / class.flows.max(1);
            let payload = NonZeroU32::new(flow.payload).unwrap_or(NonZeroU32::MIN);
            let Some((app, start)) = flow_app(&class, source, draws, (payload, isolated)) else {
                return Err(PyValueError::new_err("sockets do not load pages"));
            };
            let FlowClassConfig { dscp, ref traffic, .. } = class;
            flows.push(FlowConfig {
                class: flow.class as u16,
                hosts: flow.hosts,
                routes: builder.add_routes(flow.class, flow.source, member),
                // As in the simulator, each source has a server of its own.
                fair_hosts: [number as u32, class.client_host(flow.source, member)],
                dscp,
                control: flow.control,
                receiver_window: flow.receiver_window_bytes,
                app,
                start,
                stop: traffic.stop_time().map(seconds_to_nanos),
            });
        }
        let schedule = RunSchedule {
            until: until_ns.map(Duration::from_nanos),
            wanted: wanted.map(|(warm_up, files)| (Duration::from_nanos(warm_up), files)),
            slot: slot_ns.map(|slot| Duration::from_nanos(slot.max(1))),
        };
        Ok(TrafficCommand {
            network: builder.into_traffic_network(),
            hosts,
            flows,
            schedule,
            device: None,
            capture: create_capture_file(self.capture)?,
            memory: self.most_bytes,
        })
    }
}

impl HostDict {
    fn into_config(self) -> PyResult<HostConfig> {
        let Self { side, sysctls, route, mtu } = self;
        Ok(HostConfig { side: parse_side(&side)?, sysctls, route, mtu })
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
