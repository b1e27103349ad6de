//! Sends a scenario's flows over a network of links with the kernel's TCP.
//!
//! ```text
//! namespaces of servers, and of clients             one process
//!   listen, send files after accepting   ==> paths ==>   connect, read immediately
//!   TCP_INFO, /proc/net/netstat              tally       counts bytes
//! ```
//!
//! A flow sends without end, files, requests with answers, messages or pings. An end that sends data
//! has a namespace of its own, so that it has its own kernel counters, sysctls and routes. The
//! receiver of files opens their connections. This process opens all sockets, so no program is
//! started.

mod connection;
mod datagrams;
mod driver;
mod flow_state;
mod player;
mod rtt_samples;
mod tcp_info;
mod traffic_tally;

use crate::capture::LinkCapture;
use crate::command::LinkError;
use crate::forwarding::{ForwardingLoop, ForwardingResult, SharedPaths, StopHandle};
use crate::namespace::spawn_thread;
use crate::network::{DeviceKind, EmulatedNetwork};
use crate::path::{EmulatedPaths, LinkPort, LinkSide, PacketInTransit, PortPair};
use crate::scheduling;
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
use tcpcast_net::{Network, RouteId};
use traffic_tally::SharedTally;

/// Port on which senders listen.
const SENDER_PORT: u16 = 5001;
/// Indices of the two ends of a flow.
const SERVER: usize = 0;
const CLIENT: usize = 1;

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

/// A request and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes of the request.
    pub request: u64,
    /// Bytes of the answer.
    pub answer: u64,
    /// Time from the complete request to the answer.
    pub server_time: Nanos,
    /// Time from the complete answer to the next request.
    pub pause: Nanos,
}

/// Generator of the exchanges of a flow.
pub struct ExchangeGenerator(pub Box<dyn FnMut() -> Exchange + Send>);

/// Generator of the messages or pings of a flow: bytes with the IP header, and time to the next.
pub struct MessageGenerator(pub Box<dyn FnMut() -> (u32, Nanos) + Send>);

macro_rules! debug_as_name {
    ($($name:ident)+) => {
        $(impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        })+
    };
}

debug_as_name!(FileGenerator ExchangeGenerator MessageGenerator NetworkSums);

/// A player that requests segments of a fixed length and plays them from a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Playing time of a segment.
    pub segment: Nanos,
    /// Buffered time with which playing begins, and resumes after a stall.
    pub start_buffer: Nanos,
    /// The next segment is requested when the buffered time including it is at most this.
    pub max_buffer: Nanos,
}

/// What the ends of a flow send.
#[derive(Debug)]
pub enum FlowApp {
    /// Files, or data without end.
    Files {
        /// End that sends.
        sender: usize,
        /// Files to send.
        files: FileGenerator,
        /// Use of connections.
        session: ConnectionUse,
    },
    /// Requests of the client and answers of the server, on one connection.
    Requests {
        /// Exchanges of the flow.
        exchanges: ExchangeGenerator,
        /// Flows of one client, which sends all requests at once and continues with the last
        /// answer: number of the first flow, and of flows.
        client: (usize, usize),
    },
    /// Segments for a player.
    Stream(StreamConfig),
    /// Messages without acknowledgements (UDP), by sending end.
    Messages(MessageGenerator, [bool; 2]),
    /// Echo requests of the client (ICMP).
    Ping(MessageGenerator),
}

impl FlowApp {
    fn kind(&self) -> FlowKind {
        match self {
            Self::Files { sender, .. } => FlowKind::Tcp { sender: *sender },
            Self::Requests { .. } | Self::Stream(_) => FlowKind::Tcp { sender: SERVER },
            Self::Messages(..) => FlowKind::Messages,
            Self::Ping(_) => FlowKind::Ping,
        }
    }
}

/// Configuration of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Side for captures.
    pub side: LinkSide,
    /// Sysctls of `net.ipv4`, name and value.
    pub sysctls: Vec<(String, String)>,
    /// Initial window in packets, and minimum retransmission timeout in ms, of its senders.
    pub route: Option<(u32, u32)>,
    /// Maximum packet size, including the IP header, bytes.
    pub mtu: u32,
}

/// Configuration of a flow.
#[derive(Debug)]
pub struct FlowConfig {
    /// Class of the flow, as in the network.
    pub class: u16,
    /// Numbers of the hosts of server and client. Only one flow has both.
    pub hosts: [usize; 2],
    /// Equal routes from the server, and from the client.
    pub routes: [Vec<RouteId>; 2],
    /// Server and client for disciplines that are fair among hosts.
    pub fair_hosts: [u32; 2],
    /// Differentiated services codepoint of all packets.
    pub dscp: u8,
    /// Congestion control, by its kernel name.
    pub control: String,
    /// Maximum window that its receivers advertise, bytes; `None` for the size of the buffers.
    pub receiver_window: Option<u32>,
    /// What the flow sends.
    pub app: FlowApp,
    /// Start of a flow without files.
    pub start: Option<Nanos>,
    /// Time at which all transmissions stop, including retransmissions.
    pub stop: Option<Nanos>,
}

/// Role of a link of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRole {
    /// Number of its configuration.
    pub declared: u32,
    /// Whether the counters of flows refer to it.
    pub is_headline: bool,
    /// Whether packets may wait.
    pub has_queue: bool,
}

type SumsFunction = dyn Fn(&Network<PacketInTransit>, Nanos) -> Vec<u64> + Send;

/// Function that returns the counters of all links up to a time, for the reader of the results.
pub struct NetworkSums(pub Box<SumsFunction>);

/// Links between the hosts.
#[derive(Debug)]
pub struct TrafficNetwork {
    /// Links and routes.
    pub network: Network<PacketInTransit>,
    /// Role of each link.
    pub links: Vec<LinkRole>,
    /// Number of configured links.
    pub declared_links: u32,
    /// Number of classes of flows.
    pub classes: u32,
    /// Counters of the links.
    pub sums: NetworkSums,
}

/// Traffic of a flow as far as its packets show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowKind {
    Tcp { sender: usize },
    Messages,
    Ping,
}

#[derive(Clone, Copy, Debug)]
struct FlowRole {
    class: u16,
    kind: FlowKind,
}

/// What a tally needs to know of flows and links.
#[derive(Debug, Default)]
struct TallyConfig {
    flows: Vec<FlowRole>,
    links: Vec<LinkRole>,
    declared_links: u32,
    classes: u32,
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

/// Flows and the links over which they run.
#[derive(Debug)]
pub struct TrafficCommand {
    /// Links.
    pub network: TrafficNetwork,
    /// Hosts.
    pub hosts: Vec<HostConfig>,
    /// Flows, at least one.
    pub flows: Vec<FlowConfig>,
    /// Duration and snapshots.
    pub schedule: RunSchedule,
    /// Kind of device between hosts and links; `None` selects an available one.
    pub device: Option<DeviceKind>,
    /// Side to be captured, and the capture file.
    pub capture: Option<(LinkSide, fs::File)>,
    /// Maximum memory for packets, bytes.
    pub memory: usize,
}

/// Ports of hosts: the hosts of each side have addresses of their own.
fn host_ports(hosts: &[HostConfig]) -> Vec<LinkPort> {
    let mut counts = [0_u16; 2];
    let port = |host: &HostConfig| {
        let is_far = host.side == LinkSide::Far;
        let count = &mut counts[usize::from(is_far)];
        *count += 1;
        let [high, low] = count.to_be_bytes();
        let address = Ipv4Addr::new(10, if is_far { 128 } else { 0 }, high, low);
        LinkPort { side: host.side, address }
    };
    hosts.iter().map(port).collect()
}

/// Pairs of ports, two per flow: from the server, and from the client.
fn flow_pairs(flow: &FlowConfig) -> [PortPair; 2] {
    [SERVER, CLIENT].map(|end| {
        let other = 1 - end;
        PortPair {
            from: flow.hosts[end] as u16,
            to: flow.hosts[other] as u16,
            routes: flow.routes[end].clone().into_boxed_slice(),
            hosts: Some([flow.fair_hosts[end], flow.fair_hosts[other]]),
        }
    })
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
        scheduling::prioritise_session();
        let ports = host_ports(&self.hosts);
        let mtus: Vec<u32> = self.hosts.iter().map(|host| host.mtu).collect();
        let (network, devices) =
            EmulatedNetwork::new(&ports, &mtus, self.device).map_err(LinkError::Network)?;
        for (host, config) in network.hosts.iter().zip(&self.hosts) {
            let set = host.set_tcp_parameters(&config.sysctls, config.route);
            set.map_err(LinkError::Network)?;
        }
        let capture = self.capture.map(|(side, file)| LinkCapture::new(side, &ports, file));
        let capture = capture.transpose().map_err(LinkError::Loop)?;
        let pairs = self.flows.iter().flat_map(flow_pairs).collect();
        let TrafficNetwork { network: links, links: roles, declared_links, classes, sums } =
            self.network;
        let paths = SharedPaths::new(EmulatedPaths::new(links, ports, pairs, self.memory));
        let mut forwarding =
            ForwardingLoop::new(paths.clone(), devices).map_err(LinkError::Loop)?;
        let role = |flow: &FlowConfig| FlowRole { class: flow.class, kind: flow.app.kind() };
        let tally = SharedTally::new(TallyConfig {
            flows: self.flows.iter().map(role).collect(),
            links: roles,
            declared_links,
            classes,
        });
        let mut observer = (tally.clone(), capture);
        let stop = StopHandle::new().map_err(LinkError::Loop)?;
        let flows = self.flows.into_iter();
        let flows = flows.map(|config| FlowState::new(config, &network.hosts));
        let flows: Vec<FlowState> = flows.collect::<io::Result<_>>().map_err(LinkError::Network)?;
        let (schedule, hosts) = (self.schedule, &network.hosts[..]);
        let (done, outcome) = thread::scope(|scope| -> Result<_, LinkError> {
            let (stop_handle, observer) = (stop.clone(), &mut observer);
            let loops = spawn_thread(scope, move || {
                forwarding.forward_until_stopped(&stop_handle, observer)
            });
            let loops = loops.map_err(LinkError::Loop)?;
            let counters = (tally, paths, sums);
            // The driver changes the namespace of its thread.
            let done = spawn_thread(scope, move || {
                // A late reader delays acks, and would compete with the loop for a processor.
                scheduling::reduce_wakeup_latency();
                let driver =
                    TrafficDriver::new(flows, hosts, schedule, counters, lifeline, &mut *answer);
                (
                    driver.map_err(LinkError::Loop).and_then(|mut driver| driver.run_schedule()),
                    answer,
                )
            });
            let done = done.map(|done| done.join()).map_err(LinkError::Loop);
            stop.request_stop();
            Ok((done?, loops.join()))
        })?;
        let panicked = |of: &str| LinkError::Loop(io::Error::other(format!("{of} panicked")));
        let (done, answer) = done.map_err(|_| panicked("the driver of the flows"))?;
        done?;
        let outcome = outcome.map_err(|_| panicked("the forwarding loop"))?;
        let mut outcome = outcome.map_err(LinkError::Loop)?;
        outcome.missed += network.interface_drops();
        if let Some(error) = observer.1.and_then(|capture| capture.finish_writing().err()) {
            write_key_value_line(answer, "capture_fault", &error.to_string())?;
        }
        write_forwarding_outcome(answer, network.device, &outcome)
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
