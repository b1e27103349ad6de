//! Runs programs at both ends of a link.

use crate::capture::LinkCapture;
use crate::forwarding::{ForwardingLoop, ForwardingResult, SharedPaths, StopHandle};
use crate::namespace::spawn_thread;
use crate::nat::Nat;
use crate::network::{DeviceKind, EmulatedHost, EmulatedNetwork};
use crate::path::{
    EmulatedPaths, LinkPort, LinkSide, PacketInTransit, PortPair, ipv6_address_of_port,
};
use crate::sandbox;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tcpcast_link::time::Nanos;
use tcpcast_net::{Network, RouteId};

/// Address of the near end.
pub const NEAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Address of the far end.
pub const FAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 1);
/// Environment variable with the IPv4 address of the other end.
pub const PEER_VARIABLE: &str = "TCPCAST_PEER";
/// Environment variable with the IPv6 address of the other end.
pub const PEER6_VARIABLE: &str = "TCPCAST_PEER6";

/// Maximum time for which the near program waits for the far one to listen, and the time between
/// two looks. Servers in Java or Python need seconds on a busy machine.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);
const LISTEN_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum time for which the far program may continue after the near one has ended, and after
/// SIGTERM.
const FAR_EXIT_TIMEOUT: Duration = Duration::from_millis(500);
const FAR_TERM_TIMEOUT: Duration = Duration::from_millis(200);
/// Exit status if a program is not found, as in shells.
const EXIT_NOT_FOUND: i32 = 127;

/// Programs, and the link between them.
#[derive(Debug)]
pub struct LinkCommand {
    /// Links between both ends.
    pub network: Network<PacketInTransit>,
    /// Equal routes from the near to the far end, and back.
    pub routes: [Vec<RouteId>; 2],
    /// Maximum packet size, including the IP header, bytes.
    pub mtu: u32,
    /// Program and arguments for the near end.
    pub near: Vec<OsString>,
    /// Program and arguments for the far end.
    pub far: Option<Vec<OsString>>,
    /// Kind of device between hosts and link; `None` selects an available one.
    pub device: Option<DeviceKind>,
    /// Side to be captured, and the capture file.
    pub capture: Option<(LinkSide, File)>,
    /// NAT to this machine's network for the near end.
    pub nat: Option<Nat>,
    /// Maximum memory for packets, bytes.
    pub memory: usize,
}

/// Result of a run.
#[derive(Debug)]
pub struct LinkResult {
    /// The run of the near program.
    pub program: ProgramRun,
    /// Kind of device between hosts and link.
    pub device: DeviceKind,
    /// Result of the forwarding loop.
    pub outcome: ForwardingResult,
    /// Error that truncated the capture.
    pub capture_error: Option<io::Error>,
}

/// The run of the near program, without the time in which the far one starts or ends.
#[derive(Clone, Copy, Debug)]
pub struct ProgramRun {
    /// Exit status; 128 plus the signal if a signal ended the program.
    pub status: i32,
    /// Duration by the host's clock, ns.
    pub elapsed: Nanos,
    /// IP bytes that the link delivered until the program ended: near to far, far to near.
    pub delivered_bytes: [u64; 2],
}

/// Error before or during the run.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The devices cannot be created.
    #[error("cannot create the ends of the link: {0}")]
    Network(io::Error),
    /// A program cannot be started.
    #[error("cannot run {0}: {1}")]
    Program(String, io::Error),
    /// The forwarding loop failed.
    #[error("the link failed: {0}")]
    Loop(io::Error),
    /// The calling process has ended.
    #[error("the process that started the link has ended")]
    Abandoned,
}

impl LinkError {
    /// Exit status for this error.
    #[must_use]
    pub fn exit_status(&self) -> i32 {
        match self {
            Self::Program(..) => EXIT_NOT_FOUND,
            _ => 3,
        }
    }
}

impl LinkCommand {
    /// Runs the programs and the link until the near program ends, in the first process of a
    /// sandbox. `lifeline` closes when the calling process ends.
    ///
    /// # Errors
    /// [`LinkError`] describes the failure.
    pub fn run(self, lifeline: &OwnedFd) -> Result<LinkResult, LinkError> {
        let ports = vec![
            LinkPort { side: LinkSide::Near, address: NEAR_ADDRESS },
            LinkPort { side: LinkSide::Far, address: FAR_ADDRESS },
        ];
        let pair = |(from, routes): (u16, Vec<RouteId>)| PortPair {
            from,
            to: 1 - from,
            routes: routes.into_boxed_slice(),
            hosts: None,
        };
        let pairs = (0..).zip(self.routes).map(pair).collect();
        let children = ChildProcesses::new(lifeline).map_err(LinkError::Loop)?;
        let (mut network, devices) =
            EmulatedNetwork::new(&ports, &vec![self.mtu; ports.len()], self.device)
                .map_err(LinkError::Network)?;
        network.add_ipv6();
        let capture = self.capture.map(|(side, file)| LinkCapture::new(side, &ports, file));
        let mut capture = capture.transpose().map_err(LinkError::Loop)?;
        let mut paths = EmulatedPaths::new(self.network, ports, pairs, self.memory);
        let mut nat_guard = None;
        if self.nat.is_none() {
            sandbox::hide_name_servers();
        }
        if let (Some(nat), Some(far)) = (self.nat, network.hosts.last()) {
            paths = paths.with_far_default_route();
            nat_guard = Some(nat.connect_far_end_to_host(far).map_err(LinkError::Network)?);
        }
        let paths = SharedPaths::new(paths);
        let mut forwarding =
            ForwardingLoop::new(paths.clone(), devices).map_err(LinkError::Loop)?;
        let stop = StopHandle::new().map_err(LinkError::Loop)?;
        let (ended, outcome) = thread::scope(|scope| -> Result<_, LinkError> {
            let stop_handle = stop.clone();
            let capture = &mut capture;
            let work = spawn_thread(scope, move || {
                forwarding.forward_until_stopped(&stop_handle, capture)
            });
            let work = work.map_err(LinkError::Loop)?;
            let ended = children.run_programs(&network, &paths, &self.near, self.far.as_deref());
            stop.request_stop();
            Ok((ended, work.join()))
        })?;
        let panicked = |_| LinkError::Loop(io::Error::other("the forwarding loop panicked"));
        let mut outcome = outcome.map_err(panicked)?.map_err(LinkError::Loop)?;
        outcome.missed += network.interface_drops();
        drop(nat_guard);
        let capture_error = capture.and_then(|capture| capture.finish_writing().err());
        Ok(LinkResult { program: ended?, device: network.device, outcome, capture_error })
    }
}

/// Child processes: both programs, and orphans that are reparented to this process.
struct ChildProcesses<'a> {
    signals: SignalFd,
    lifeline: &'a OwnedFd,
}

impl<'a> ChildProcesses<'a> {
    /// Blocks SIGCHLD and receives it by descriptor. Call it before starting threads, so that all
    /// threads block the signal.
    fn new(lifeline: &'a OwnedFd) -> io::Result<Self> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        mask.thread_block()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { signals: SignalFd::with_flags(&mask, flags)?, lifeline })
    }

    fn run_programs(
        &self,
        network: &EmulatedNetwork,
        paths: &SharedPaths,
        near: &[OsString],
        far: Option<&[OsString]>,
    ) -> Result<ProgramRun, LinkError> {
        let [here, there, ..] = &network.hosts[..] else {
            return Err(LinkError::Network(io::Error::other("one end of the link is missing")));
        };
        let mut far_child = None;
        if let Some(far) = far {
            let child = start_program(there, far, here, Stdio::null())?;
            far_child = Some(child);
            self.wait_until_listening(there, child)?;
        }
        let started = Instant::now();
        let program = start_program(here, near, there, Stdio::inherit())?;
        let status = self.wait_for_child(program, &mut far_child, None)?.unwrap_or(3);
        let elapsed = started.elapsed().as_nanos() as Nanos;
        let report = paths.lock().current_report();
        let delivered_bytes = [report.forward.delivered.bytes, report.back.delivered.bytes];
        if let Some(far) = far_child {
            let left = self.wait_for_child(far, &mut far_child, Some(FAR_EXIT_TIMEOUT))?;
            if left.is_none() {
                // The program may have ended by itself in the meantime.
                let _ = kill(far, Signal::SIGTERM);
                self.wait_for_child(far, &mut far_child, Some(FAR_TERM_TIMEOUT))?;
            }
        }
        Ok(ProgramRun { status, elapsed, delivered_bytes })
    }

    /// Waits until a socket listens at a host, or the program that should listen has ended, for at
    /// most [`LISTEN_TIMEOUT`].
    fn wait_until_listening(&self, host: &EmulatedHost, child: Pid) -> Result<(), LinkError> {
        let until = Instant::now() + LISTEN_TIMEOUT;
        while Instant::now() < until {
            // If the socket list cannot be read, do not wait.
            if host.namespace.run_in_namespace(|| Ok(is_any_socket_listening())).unwrap_or(true) {
                break;
            }
            let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
            if !matches!(waitid(Id::Pid(child), flags), Ok(WaitStatus::StillAlive)) {
                break;
            }
            let interval = PollTimeout::try_from(LISTEN_INTERVAL).unwrap_or(PollTimeout::ZERO);
            if poll(&mut [PollFd::new(self.lifeline.as_fd(), PollFlags::POLLIN)], interval) == Ok(1)
            {
                return Err(LinkError::Abandoned);
            }
        }
        Ok(())
    }

    /// Waits for a child and returns its status; `None` after `within`. Sets `other` to `None` when
    /// that child ends.
    fn wait_for_child(
        &self,
        child: Pid,
        other: &mut Option<Pid>,
        within: Option<Duration>,
    ) -> Result<Option<i32>, LinkError> {
        let until = within.map(|within| Instant::now() + within);
        loop {
            if let Some(status) = reap_children(child, other) {
                return Ok(Some(status));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            let limit = left.map_or(PollTimeout::NONE, |left| {
                PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
            });
            let (signals, lifeline) = (self.signals.as_fd(), self.lifeline.as_fd());
            let mut polled = [signals, lifeline].map(|end| PollFd::new(end, PollFlags::POLLIN));
            match poll(&mut polled, limit) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(LinkError::Loop(error.into())),
            }
            if polled[1].any() == Some(true) {
                return Err(LinkError::Abandoned);
            }
            // Discards the signals, because several children may have ended per signal.
            while let Ok(Some(_)) = self.signals.read_signal() {}
        }
    }
}

/// Reaps all ended children. Returns the status of `child` if it has ended.
fn reap_children(child: Pid, other: &mut Option<Pid>) -> Option<i32> {
    let mut result = None;
    loop {
        let (ended, status) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(ended, code)) => (ended, code),
            Ok(WaitStatus::Signaled(ended, signal, _)) => (ended, 128 + signal as i32),
            Ok(WaitStatus::StillAlive) | Err(_) => return result,
            Ok(_) => continue,
        };
        if ended == child {
            result = Some(status);
        }
        if *other == Some(ended) {
            *other = None;
        }
    }
}

fn start_program(
    host: &EmulatedHost,
    program: &[OsString],
    peer: &EmulatedHost,
    input: Stdio,
) -> Result<Pid, LinkError> {
    let Some((name, arguments)) = program.split_first() else {
        return Err(LinkError::Program(
            "an empty command".to_owned(),
            io::ErrorKind::NotFound.into(),
        ));
    };
    // The child inherits the namespace of the thread that starts it.
    let started = host.namespace.run_in_namespace(|| {
        let mut command = Command::new(name);
        command.args(arguments).env(PEER_VARIABLE, peer.address.to_string()).stdin(input);
        if peer.has_ipv6 {
            command.env(PEER6_VARIABLE, ipv6_address_of_port(peer.address).to_string());
        }
        command.spawn()
    });
    let named = |error| LinkError::Program(name.to_string_lossy().into_owned(), error);
    started.map(|child| Pid::from_raw(child.id() as i32)).map_err(named)
}

/// Whether a TCP socket is listening, or a UDP socket receives from any peer, in the thread's network
/// namespace.
///
/// A UDP socket with a peer is a client: some servers look up a name before they listen.
fn is_any_socket_listening() -> bool {
    const LISTEN_STATE: &str = "0A";
    const UNCONNECTED_STATE: &str = "07";
    let lines = |name: &str| {
        ["", "6"].map(|version| {
            fs::read_to_string(format!("/proc/thread-self/net/{name}{version}")).unwrap_or_default()
        })
    };
    [("tcp", LISTEN_STATE), ("udp", UNCONNECTED_STATE)].iter().any(|(name, state)| {
        let is_in_state = |line: &str| line.split_whitespace().nth(3) == Some(*state);
        lines(name).iter().any(|text| text.lines().skip(1).any(is_in_state))
    })
}
