//! A scenario's flows, driven over a link by the kernel's own TCP.
//!
//! ```text
//! near namespaces, one a flow                                  far namespace, of all
//!   listens, sends as soon as it has accepted  ==> path ==>      connects, reads at once
//!   TCP_INFO, /proc/net/netstat                    tally         counts bytes
//! ```
//!
//! Each sender has a namespace of its own, so that the kernel's counters are those of its flow, and
//! sysctls and routes its own. All sockets are opened by this process, so no program is started.

mod bulk;
mod tally;
mod tcp_info;
mod transfers;

use crate::capture::Capture;
use crate::command::LinkError;
use crate::forwarding::{Forwarding, Outcome, Stop};
use crate::network::{Network, Way};
use crate::path::{DirectionConfig, Path, Port, Side};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tally::Shared;
use tcpcast_link::time::Nanos;

/// Where senders listen.
const SERVICE: u16 = 5001;
/// The address of the far end.
const FAR: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 1);
/// Most flows: as many namespaces are made.
pub const MOST_FLOWS: usize = 256;

/// A sender, and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// When it is asked to begin.
    pub start: Duration,
}

/// What flows do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// They send without end.
    Bulk {
        /// How long the run is.
        until: Duration,
        /// How often it is told what was counted so far.
        slot: Duration,
    },
    /// The first one sends files one after another, each over a connection of its own.
    Transfers {
        /// Bytes of each.
        sizes: Vec<u64>,
        /// Silence between two.
        pause: Duration,
        /// Whether a sender closes its end with the last byte.
        close: bool,
    },
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
    /// What the flows do.
    pub work: Work,
    /// Longest packet, with its IP header.
    pub mtu: u32,
    /// How the ends are joined to the link, where it is not left to the machine.
    pub way: Option<Way>,
    /// Where packets at one side are written.
    pub capture: Option<(Side, File)>,
    /// Most bytes of memory for packets.
    pub memory: usize,
}

/// The address of a near port.
fn near(flow: usize) -> Ipv4Addr {
    let number = flow + 1;
    Ipv4Addr::new(10, 0, (number >> 8) as u8, (number & 255) as u8)
}

/// What the work needs while the link runs.
struct Driver<'a> {
    network: Arc<Network>,
    flows: &'a [FlowConfig],
    tally: Shared,
    lifeline: &'a OwnedFd,
    answer: &'a mut dyn Write,
}

impl TrafficCommand {
    /// Runs it in the first process of a sandbox, and writes what was counted to `answer`, a line
    /// at a time: a word and what it is, in JSON. `lifeline` closes when whoever asked has gone.
    ///
    /// # Errors
    /// [`LinkError`] says what failed.
    pub fn run(self, lifeline: &OwnedFd, answer: &mut dyn Write) -> Result<(), LinkError> {
        let ports = self.ports();
        let (network, devices) =
            Network::new(&ports, self.mtu, self.way).map_err(LinkError::Network)?;
        for (host, flow) in network.hosts.iter().zip(&self.flows) {
            let route = (flow.initial_window, flow.least_rto_ms);
            host.tune(&flow.sysctls, Some(route)).map_err(LinkError::Network)?;
        }
        if let Some(far) = network.hosts.last() {
            far.tune(&self.far_sysctls, None).map_err(LinkError::Network)?;
        }
        let capture = self.capture.map(|(side, file)| Capture::new(side, &ports, file));
        let capture = capture.transpose().map_err(LinkError::Loop)?;
        let path = Path::new(self.forward, self.back, ports, self.memory);
        let mut forwarding = Forwarding::new(path, devices).map_err(LinkError::Loop)?;
        let (network, tally) = (Arc::new(network), Shared::new(self.flows.len()));
        let mut observer = (tally.clone(), capture);
        let stop = Stop::new().map_err(LinkError::Loop)?;
        let way = network.way;
        let (done, outcome) = thread::scope(|scope| {
            let (asked, observer) = (stop.clone(), &mut observer);
            let loops = scope.spawn(move || forwarding.run(&asked, observer));
            let network = Arc::clone(&network);
            let mut driver =
                Driver { network, flows: &self.flows, tally, lifeline, answer: &mut *answer };
            let done = driver.work(&self.work);
            stop.stop();
            (done, loops.join())
        });
        done?;
        let panicked = |_| LinkError::Loop(io::Error::other("its loop panicked"));
        let mut outcome = outcome.map_err(panicked)?.map_err(LinkError::Loop)?;
        outcome.missed += network.drops();
        if let Some(fault) = observer.1.and_then(|capture| capture.end().err()) {
            tell(answer, "capture_fault", &fault.to_string())?;
        }
        ended(answer, way, &outcome)
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

impl Driver<'_> {
    fn work(&mut self, work: &Work) -> Result<(), LinkError> {
        match work {
            Work::Bulk { until, slot } => self.bulk(*until, *slot),
            Work::Transfers { sizes, pause, close } => self.transfers(sizes, *pause, *close),
        }
    }

    /// Listens where a flow comes from, with its congestion control.
    fn listen(&self, flow: usize) -> Result<TcpListener, LinkError> {
        let control = &self.flows[flow].control;
        let listener = self.network.hosts[flow].namespace.within(|| {
            let listener = TcpListener::bind(SocketAddrV4::new(near(flow), SERVICE))?;
            setsockopt(&listener, sockopt::TcpCongestion, &OsString::from(control)).map_err(
                |fault| {
                    io::Error::other(format!(
                        "the congestion control {control} is refused: {fault}"
                    ))
                },
            )?;
            Ok(listener)
        });
        listener.map_err(LinkError::Network)
    }

    /// Waits until then, or fails when whoever asked has gone.
    fn sleep_until(&self, then: Instant) -> Result<(), LinkError> {
        loop {
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let limit = PollTimeout::try_from(left + Duration::from_micros(999));
            let mut polled = [PollFd::new(self.lifeline.as_fd(), PollFlags::POLLIN)];
            match poll(&mut polled, limit.unwrap_or(PollTimeout::MAX)) {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Err(LinkError::Abandoned),
                Err(fault) => return Err(LinkError::Loop(fault.into())),
            }
        }
    }

    fn tell(&mut self, word: &str, value: &str) -> Result<(), LinkError> {
        tell(self.answer, word, value)
    }
}

fn tell(answer: &mut dyn Write, word: &str, value: &str) -> Result<(), LinkError> {
    let line = format!("{word} {value}\n");
    answer.write_all(line.as_bytes()).map_err(|_| LinkError::Abandoned)
}

/// Numbers as JSON has them.
fn list<T: std::fmt::Display>(numbers: impl IntoIterator<Item = T>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    format!("[{}]", numbers.join(","))
}

fn ended(answer: &mut dyn Write, way: Way, outcome: &Outcome) -> Result<(), LinkError> {
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
