//! A scenario's flows, driven over a link by the kernel's own TCP.
//!
//! ```text
//! near namespaces, one a flow                                  far namespace, of all
//!   listens, sends as soon as it has accepted  ==> path ==>      connects, reads at once
//!   TCP_INFO, /proc/net/netstat                    tally         counts bytes
//! ```
//!
//! A flow sends without end, or files: each over a connection of its own, or all over one. Each has
//! a namespace of its own, so that the kernel's counters are those of its flow, and sysctls and
//! routes its own. All sockets are opened by this process, so no program is started.

mod connection;
mod driver;
mod flow;
mod tally;
mod tcp_info;

use crate::capture::Capture;
use crate::command::LinkError;
use crate::forwarding::{Forwarding, Outcome, Stop};
use crate::namespace::spawn;
use crate::network::{Network, Way};
use crate::path::{DirectionConfig, Path, Port, Side};
use driver::Driver;
use flow::Flow;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;
use tally::Shared;
use tcpcast_link::time::Nanos;

/// Where senders listen.
const SERVICE: u16 = 5001;
/// The address of the far end.
const FAR: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 1);
/// Most flows: as many namespaces are made.
pub const MOST_FLOWS: usize = 256;

/// What a flow sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// How long after the end of the one before it, or after its beginning where files arrive; of
    /// the first one, after the beginning of the run.
    pub after: Nanos,
    /// Its bytes; `None` of a flow that sends without end.
    pub bytes: Option<u64>,
}

/// What a flow sends: a file after another, as long as there are any.
pub struct Files(pub Box<dyn FnMut() -> Option<File> + Send>);

impl Files {
    fn next(&mut self) -> Option<File> {
        (self.0)()
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files")
    }
}

/// What files have to do with connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    /// One that never ends.
    Endless,
    /// Each has its own, and begins after the end of the one before it.
    Each,
    /// All have the same.
    Persistent,
    /// Each has its own, however many others there are.
    Arriving,
}

impl Session {
    /// Whether a sender closes its end with the last byte.
    fn closes(self) -> bool {
        matches!(self, Self::Each | Self::Arriving)
    }
}

/// A sender, and its path.
#[derive(Debug)]
pub struct FlowConfig {
    /// Propagation to the far side, and back.
    pub delays: (Nanos, Nanos),
    /// The congestion control, as the kernel calls it.
    pub control: String,
    /// Sysctls of `net.ipv4` in its namespace.
    pub sysctls: Vec<(String, String)>,
    /// Packets sent before the first ack.
    pub initial_window: u32,
    /// The least retransmission timeout.
    pub least_rto_ms: u32,
    /// The most bytes that its receivers advertise; `None` is as many as their buffers hold.
    pub receiver_window: Option<u32>,
    /// Longest packet of the sender, with its IP header.
    pub mtu: u32,
    /// What it sends.
    pub files: Files,
    /// Over which connections.
    pub session: Session,
    /// When it stops: from then on it sends nothing, not even what was lost.
    pub stop: Option<Nanos>,
}

/// How long a run is, and how often it is told what was counted so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// When it is over; `None` where files end.
    pub until: Option<Duration>,
    /// It is over earlier when, after that time, so many files have ended.
    pub wanted: Option<(Duration, u64)>,
    /// Between two snapshots; `None` for none.
    pub slot: Option<Duration>,
}

/// What is run, over which link.
#[derive(Debug)]
pub struct TrafficCommand {
    /// The link from the senders to the receivers.
    pub forward: DirectionConfig,
    /// The other way.
    pub back: DirectionConfig,
    /// The senders, at least one.
    pub flows: Vec<FlowConfig>,
    /// Sysctls of `net.ipv4` of the receivers.
    pub far_sysctls: Vec<(String, String)>,
    /// How long it is.
    pub schedule: Schedule,
    /// Longest packet of the receivers, with its IP header.
    pub mtu: u32,
    /// How the ends are joined to the link, where it is not left to the machine.
    pub way: Option<Way>,
    /// Where packets at one side are written.
    pub capture: Option<(Side, fs::File)>,
    /// Most bytes of memory for packets.
    pub memory: usize,
}

/// The address of a near port.
fn near(flow: usize) -> Ipv4Addr {
    let number = flow + 1;
    Ipv4Addr::new(10, 0, (number >> 8) as u8, (number & 255) as u8)
}

impl TrafficCommand {
    /// Runs it in the first process of a sandbox, and writes what was counted to `answer`, a line
    /// at a time: a word and what it is, in JSON. `lifeline` closes when whoever asked has gone.
    ///
    /// # Errors
    /// [`LinkError`] says what failed.
    pub fn run(self, lifeline: &OwnedFd, answer: &mut (dyn Write + Send)) -> Result<(), LinkError> {
        let ports = self.ports();
        let mtus: Vec<u32> = self.flows.iter().map(|flow| flow.mtu).chain([self.mtu]).collect();
        let (network, devices) =
            Network::new(&ports, &mtus, self.way).map_err(LinkError::Network)?;
        self.tune(&network).map_err(LinkError::Network)?;
        let capture = self.capture.map(|(side, file)| Capture::new(side, &ports, file));
        let capture = capture.transpose().map_err(LinkError::Loop)?;
        let path = Path::new(self.forward, self.back, ports, self.memory);
        let mut forwarding = Forwarding::new(path, devices).map_err(LinkError::Loop)?;
        let tally = Shared::new(self.flows.iter().map(|flow| flow.session != Session::Endless));
        let mut observer = (tally.clone(), capture);
        let stop = Stop::new().map_err(LinkError::Loop)?;
        let flows = self.flows.into_iter().zip(&network.hosts).enumerate();
        let flows = flows.map(|(number, (config, host))| Flow::new(number, config, host));
        let flows: Vec<Flow> = flows.collect::<io::Result<_>>().map_err(LinkError::Network)?;
        let (schedule, far) = (self.schedule, &network.hosts[network.hosts.len() - 1]);
        let (done, outcome) = thread::scope(|scope| -> Result<_, LinkError> {
            let (asked, observer) = (stop.clone(), &mut observer);
            let loops = spawn(scope, move || forwarding.run(&asked, observer));
            let loops = loops.map_err(LinkError::Loop)?;
            let done = far
                .namespace
                .within(|| Ok(Driver::new(flows, schedule, tally, lifeline, &mut *answer)?.run()));
            stop.stop();
            Ok((done, loops.join()))
        })?;
        done.map_err(LinkError::Loop)??;
        let panicked = |_| LinkError::Loop(io::Error::other("its loop panicked"));
        let mut outcome = outcome.map_err(panicked)?.map_err(LinkError::Loop)?;
        outcome.missed += network.drops();
        if let Some(fault) = observer.1.and_then(|capture| capture.end().err()) {
            tell(answer, "capture_fault", &fault.to_string())?;
        }
        ended(answer, network.way, &outcome)
    }

    /// Sets what TCP does in each namespace.
    fn tune(&self, network: &Network) -> io::Result<()> {
        for (host, flow) in network.hosts.iter().zip(&self.flows) {
            let route = (flow.initial_window, flow.least_rto_ms);
            host.tune(&flow.sysctls, Some(route))?;
        }
        network.hosts.last().map_or(Ok(()), |far| far.tune(&self.far_sysctls, None))
    }

    /// A near port for each flow, and the far one.
    fn ports(&self) -> Vec<Port> {
        let port = |(at, flow): (usize, &FlowConfig)| {
            let (forward, back) = flow.delays;
            Port { side: Side::Near, address: near(at), forward, back }
        };
        let far = Port { side: Side::Far, address: FAR, forward: 0, back: 0 };
        self.flows.iter().enumerate().map(port).chain([far]).collect()
    }
}

fn tell(answer: &mut (dyn Write + Send), word: &str, value: &str) -> Result<(), LinkError> {
    let line = format!("{word} {value}\n");
    answer.write_all(line.as_bytes()).map_err(|_| LinkError::Abandoned)
}

/// Numbers as JSON has them.
fn list<T: std::fmt::Display>(numbers: impl IntoIterator<Item = T>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    format!("[{}]", numbers.join(","))
}

fn ended(answer: &mut (dyn Write + Send), way: Way, outcome: &Outcome) -> Result<(), LinkError> {
    let late = |share| {
        let (forward, back) = (&outcome.path.forward.lateness, &outcome.path.back.lateness);
        forward.quantile(share).max(back.quantile(share))
    };
    if let Some(reason) = outcome.distortion() {
        tell(answer, "distortion", &reason)?;
    }
    let numbers = [
        ("elapsed_ns", outcome.elapsed),
        ("away_ns", outcome.away),
        ("pauses", outcome.pauses),
        ("longest_pause_ns", outcome.longest_pause),
        ("missed", outcome.missed),
        ("cpu_ns", outcome.cpu),
        ("late_p50_ns", late(0.5)),
        ("late_p99_ns", late(0.99)),
        ("late_max_ns", late(1.0)),
    ];
    let numbers: Vec<String> = numbers.iter().map(|(key, n)| format!("\"{key}\":{n}")).collect();
    tell(answer, "device", way.name())?;
    tell(answer, "ended", &format!("{{{}}}", numbers.join(",")))
}
