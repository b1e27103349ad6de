//! Sends a scenario's flows over a link with the kernel's TCP.
//!
//! ```text
//! near namespaces, one per flow                 far namespace, for all flows
//!   listen, send after accepting      ==> path ==>   connect, read immediately
//!   TCP_INFO, /proc/net/netstat           tally      counts bytes
//! ```
//!
//! A flow sends without end or sends files, each on a new connection or all on one connection. Each
//! flow has its own namespace, so that it has its own kernel counters, sysctls and routes. This
//! process opens all sockets, so no program is started.

mod connection;
mod driver;
mod flow_state;
mod tcp_info;
mod traffic_tally;

use crate::capture::LinkCapture;
use crate::command::{FAR_ADDRESS, LinkError};
use crate::forwarding::{ForwardingLoop, ForwardingResult, StopHandle};
use crate::namespace::spawn_thread;
use crate::network::{DeviceKind, EmulatedNetwork};
use crate::path::{EmulatedLink, LinkPort, LinkSide};
use driver::TrafficDriver;
use flow_state::FlowState;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;
use tcpcast_link::time::Nanos;
use tcpcast_net::LinkConfig;
use traffic_tally::SharedTally;

/// Port on which senders listen.
const SENDER_PORT: u16 = 5001;
/// Maximum number of flows, each of which needs a namespace.
pub const MAX_FLOWS: usize = 256;

/// The next file of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileToSend {
    /// Time since the end of the previous file or, if files arrive independently, since its start.
    /// For the first file, time since the start of the run.
    pub after: Nanos,
    /// Size in bytes; `None` for a flow that sends without end.
    pub bytes: Option<u64>,
}

/// Generator of a flow's files; returns `None` after the last.
pub struct FileGenerator(pub Box<dyn FnMut() -> Option<FileToSend> + Send>);

impl FileGenerator {
    fn next_file(&mut self) -> Option<FileToSend> {
        (self.0)()
    }
}

impl fmt::Debug for FileGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files")
    }
}

/// Use of connections by files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionUse {
    /// One endless connection.
    Endless,
    /// A new connection per file, after the end of the previous file.
    Each,
    /// One connection for all files.
    Persistent,
    /// A new connection per file, independent of other files.
    Arriving,
}

impl ConnectionUse {
    /// Whether the sender closes its end after the last byte.
    fn closes_after_file(self) -> bool {
        matches!(self, Self::Each | Self::Arriving)
    }
}

/// Configuration of a sender and its path.
#[derive(Debug)]
pub struct FlowConfig {
    /// Propagation delay to the far side, and back.
    pub delays: (Nanos, Nanos),
    /// Congestion control, by its kernel name.
    pub control: String,
    /// Sysctls of `net.ipv4` in its namespace, name and value.
    pub sysctls: Vec<(String, String)>,
    /// Initial window in packets.
    pub initial_window: u32,
    /// Minimum retransmission timeout, ms.
    pub min_rto_ms: u32,
    /// Maximum window that its receivers advertise, bytes; `None` for the size of the buffers.
    pub receiver_window: Option<u32>,
    /// Maximum packet size of the sender, including the IP header, bytes.
    pub mtu: u32,
    /// Files to send.
    pub files: FileGenerator,
    /// Use of connections.
    pub session: ConnectionUse,
    /// Time at which all transmissions stop, including retransmissions.
    pub stop: Option<Nanos>,
}

/// Duration of a run, and interval of its snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSchedule {
    /// End of the run; `None` if the run ends with the files.
    pub until: Option<Duration>,
    /// The run ends earlier if this number of files has ended after this warm-up.
    pub wanted: Option<(Duration, u64)>,
    /// Interval between snapshots; `None` for no snapshots.
    pub slot: Option<Duration>,
}

/// Flows and the link over which they run.
#[derive(Debug)]
pub struct TrafficCommand {
    /// Link from the senders to the receivers.
    pub forward: LinkConfig,
    /// Link from the receivers to the senders.
    pub back: LinkConfig,
    /// Senders, at least one.
    pub flows: Vec<FlowConfig>,
    /// Sysctls of `net.ipv4` for the receivers, name and value.
    pub far_sysctls: Vec<(String, String)>,
    /// Duration and snapshots.
    pub schedule: RunSchedule,
    /// Maximum packet size of the receivers, including the IP header, bytes.
    pub mtu: u32,
    /// Kind of device between hosts and link; `None` selects an available one.
    pub device: Option<DeviceKind>,
    /// Side to be captured, and the capture file.
    pub capture: Option<(LinkSide, fs::File)>,
    /// Maximum memory for packets, bytes.
    pub memory: usize,
}

/// Address of a near port.
fn near_address_of_flow(flow: usize) -> Ipv4Addr {
    let number = flow + 1;
    Ipv4Addr::new(10, 0, (number >> 8) as u8, (number & 255) as u8)
}

impl TrafficCommand {
    /// Runs the flows in the first process of a sandbox. Writes results to `answer`, one line per
    /// result: a key and its JSON value. `lifeline` closes when the caller ends.
    ///
    /// # Errors
    /// [`LinkError`] describes the failure.
    pub fn run_flows(
        self,
        lifeline: &OwnedFd,
        answer: &mut (dyn Write + Send),
    ) -> Result<(), LinkError> {
        let ports = self.link_ports();
        let mtus: Vec<u32> = self.flows.iter().map(|flow| flow.mtu).chain([self.mtu]).collect();
        let (network, devices) =
            EmulatedNetwork::new(&ports, &mtus, self.device).map_err(LinkError::Network)?;
        self.set_tcp_parameters(&network).map_err(LinkError::Network)?;
        let capture = self.capture.map(|(side, file)| LinkCapture::new(side, &ports, file));
        let capture = capture.transpose().map_err(LinkError::Loop)?;
        let path = EmulatedLink::new(self.forward, self.back, ports, self.memory);
        let mut forwarding = ForwardingLoop::new(path, devices).map_err(LinkError::Loop)?;
        let tally =
            SharedTally::new(self.flows.iter().map(|flow| flow.session != ConnectionUse::Endless));
        let mut observer = (tally.clone(), capture);
        let stop = StopHandle::new().map_err(LinkError::Loop)?;
        let flows = self.flows.into_iter().zip(&network.hosts).enumerate();
        let flows = flows.map(|(number, (config, host))| FlowState::new(number, config, host));
        let flows: Vec<FlowState> = flows.collect::<io::Result<_>>().map_err(LinkError::Network)?;
        let (schedule, far) = (self.schedule, &network.hosts[network.hosts.len() - 1]);
        let (done, outcome) = thread::scope(|scope| -> Result<_, LinkError> {
            let (stop_handle, observer) = (stop.clone(), &mut observer);
            let loops = spawn_thread(scope, move || {
                forwarding.forward_until_stopped(&stop_handle, observer)
            });
            let loops = loops.map_err(LinkError::Loop)?;
            let done = far.namespace.run_in_namespace(|| {
                Ok(TrafficDriver::new(flows, schedule, tally, lifeline, &mut *answer)?
                    .run_schedule())
            });
            stop.request_stop();
            Ok((done, loops.join()))
        })?;
        done.map_err(LinkError::Loop)??;
        let panicked = |_| LinkError::Loop(io::Error::other("the forwarding loop panicked"));
        let mut outcome = outcome.map_err(panicked)?.map_err(LinkError::Loop)?;
        outcome.missed += network.interface_drops();
        if let Some(error) = observer.1.and_then(|capture| capture.finish_writing().err()) {
            write_key_value_line(answer, "capture_fault", &error.to_string())?;
        }
        write_forwarding_outcome(answer, network.device, &outcome)
    }

    /// Configures TCP in each namespace.
    fn set_tcp_parameters(&self, network: &EmulatedNetwork) -> io::Result<()> {
        for (host, flow) in network.hosts.iter().zip(&self.flows) {
            let route = (flow.initial_window, flow.min_rto_ms);
            host.set_tcp_parameters(&flow.sysctls, Some(route))?;
        }
        network.hosts.last().map_or(Ok(()), |far| far.set_tcp_parameters(&self.far_sysctls, None))
    }

    /// Returns a near port for each flow, and the far port.
    fn link_ports(&self) -> Vec<LinkPort> {
        let port = |(index, flow): (usize, &FlowConfig)| {
            let (forward, back) = flow.delays;
            LinkPort { side: LinkSide::Near, address: near_address_of_flow(index), forward, back }
        };
        let far = LinkPort { side: LinkSide::Far, address: FAR_ADDRESS, forward: 0, back: 0 };
        self.flows.iter().enumerate().map(port).chain([far]).collect()
    }
}

fn write_key_value_line(
    answer: &mut (dyn Write + Send),
    key: &str,
    value: &str,
) -> Result<(), LinkError> {
    let line = format!("{key} {value}\n");
    answer.write_all(line.as_bytes()).map_err(|_| LinkError::Abandoned)
}

/// Formats numbers as a JSON list.
fn format_json_list<T: std::fmt::Display>(numbers: impl IntoIterator<Item = T>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    format!("[{}]", numbers.join(","))
}

fn write_forwarding_outcome(
    answer: &mut (dyn Write + Send),
    device: DeviceKind,
    outcome: &ForwardingResult,
) -> Result<(), LinkError> {
    let late = |share| {
        let (forward, back) = (&outcome.path.forward.lateness, &outcome.path.back.lateness);
        forward.quantile(share).max(back.quantile(share))
    };
    if let Some(reason) = outcome.unreliable_result_reason() {
        write_key_value_line(answer, "distortion", &reason)?;
    }
    let numbers = [
        ("elapsed_ns", outcome.elapsed),
        ("away_ns", outcome.paused),
        ("pauses", outcome.pause_count),
        ("longest_pause_ns", outcome.longest_pause),
        ("missed", outcome.missed),
        ("cpu_ns", outcome.cpu),
        ("late_p50_ns", late(0.5)),
        ("late_p99_ns", late(0.99)),
        ("late_max_ns", late(1.0)),
    ];
    let numbers: Vec<String> = numbers.iter().map(|(key, n)| format!("\"{key}\":{n}")).collect();
    write_key_value_line(answer, "device", device.name())?;
    write_key_value_line(answer, "ended", &format!("{{{}}}", numbers.join(",")))
}
