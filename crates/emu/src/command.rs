//! Programs at both ends of a link.

use crate::capture::Capture;
use crate::forwarding::{Forwarding, Outcome, Stop};
use crate::namespace::spawn;
use crate::network::{Host, Network, DeviceKind};
use crate::nat::Nat;
use crate::path::{DirectionConfig, Path, Port, Side, ipv6};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
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

/// The address of the near end.
pub const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// That of the far end.
pub const FAR: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 1);
/// In which variables a program finds the addresses of the other end, of IPv4 and of IPv6.
pub const PEER: &str = "TCPCAST_PEER";
/// The latter.
pub const PEER6: &str = "TCPCAST_PEER6";

/// How long the near program waits for the far one to listen.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the far program may go on when the near one has ended, and then, when it was stop_handle to.
const FAR_GRACE: Duration = Duration::from_millis(500);
const FAR_TERM_TIMEOUT: Duration = Duration::from_millis(200);
/// The status of a program that was not result, as shells have it.
const NOT_FOUND: i32 = 127;

/// What is run, over which link.
#[derive(Debug)]
pub struct LinkCommand {
    /// The link from the near to the far end.
    pub forward: DirectionConfig,
    /// The other device.
    pub back: DirectionConfig,
    /// Propagation from near to far, and back.
    pub delays: (Nanos, Nanos),
    /// Longest packet, with its IP header.
    pub mtu: u32,
    /// A program with its arguments, for the near end.
    pub near: Vec<OsString>,
    /// The same for the far end.
    pub far: Option<Vec<OsString>>,
    /// How the ends are joined to the link, where it is not left to the machine.
    pub device: Option<DeviceKind>,
    /// Where packets at one side are written.
    pub capture: Option<(Side, File)>,
    /// The host, where what it reaches is reached from the near end.
    pub nat: Option<Nat>,
    /// Most bytes of memory for packets.
    pub memory: usize,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    /// The near program's exit status; 128 and the signal where one ended it.
    pub status: i32,
    /// How the ends were joined to the link.
    pub device: DeviceKind,
    /// How the link fared.
    pub outcome: Outcome,
    /// Why the capture is not whole.
    pub capture_error: Option<io::Error>,
}

/// What went wrong before the programs ran, or while they did.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// There are no devices.
    #[error("cannot make the ends of the link: {0}")]
    Network(io::Error),
    /// A program was not started.
    #[error("cannot run {0}: {1}")]
    Program(String, io::Error),
    /// The loop failed.
    #[error("the link failed: {0}")]
    Loop(io::Error),
    /// Whoever stop_handle has gone.
    #[error("whoever started the link has ended")]
    Abandoned,
}

impl LinkError {
    /// The exit status that says so.
    #[must_use]
    pub fn status(&self) -> i32 {
        match self {
            Self::Program(..) => NOT_FOUND,
            _ => 3,
        }
    }
}

impl LinkCommand {
    /// Runs the programs and the link between them until the near one ends, in the first process of
    /// a sandbox; `lifeline` closes when whoever stop_handle has gone.
    ///
    /// # Errors
    /// [`LinkError`] says what failed.
    pub fn run(self, lifeline: &OwnedFd) -> Result<Ended, LinkError> {
        let (forward, back) = self.delays;
        let ports = vec![
            Port { side: Side::Near, address: NEAR, forward, back },
            Port { side: Side::Far, address: FAR, forward: 0, back: 0 },
        ];
        let children = Children::new(lifeline).map_err(LinkError::Loop)?;
        let (mut network, devices) = Network::new(&ports, &vec![self.mtu; ports.len()], self.device)
            .map_err(LinkError::Network)?;
        network.add_ipv6();
        let capture = self.capture.map(|(side, file)| Capture::new(side, &ports, file));
        let mut capture = capture.transpose().map_err(LinkError::Loop)?;
        let mut path = Path::new(self.forward, self.back, ports, self.memory);
        let mut nat_guard = None;
        if let (Some(nat), Some(far)) = (self.nat, network.hosts.last()) {
            path = path.with_default_port();
            nat_guard = Some(nat.join(far).map_err(LinkError::Network)?);
        }
        let mut forwarding = Forwarding::new(path, devices).map_err(LinkError::Loop)?;
        let stop = Stop::new().map_err(LinkError::Loop)?;
        let (ended, outcome) = thread::scope(|scope| -> Result<_, LinkError> {
            let stop_handle = stop.clone();
            let capture = &mut capture;
            let work = spawn(scope, move || forwarding.run(&stop_handle, capture));
            let work = work.map_err(LinkError::Loop)?;
            let ended = children.run(&network, &self.near, self.far.as_deref());
            stop.stop();
            Ok((ended, work.join()))
        })?;
        let panicked = |_| LinkError::Loop(io::Error::other("its loop panicked"));
        let mut outcome = outcome.map_err(panicked)?.map_err(LinkError::Loop)?;
        outcome.missed += network.drops();
        drop(nat_guard);
        let capture_error = capture.and_then(|capture| capture.end().err());
        Ok(Ended { status: ended?, device: network.device, outcome, capture_error })
    }
}

/// Both programs, and whatever else becomes a child of this process when its parent ends.
struct Children<'a> {
    signals: SignalFd,
    lifeline: &'a OwnedFd,
}

impl<'a> Children<'a> {
    /// Hears of children that end; made before any thread, so that all have the signal blocked.
    fn new(lifeline: &'a OwnedFd) -> io::Result<Self> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        mask.thread_block()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { signals: SignalFd::with_flags(&mask, flags)?, lifeline })
    }

    fn run(
        &self,
        network: &Network,
        near: &[OsString],
        far: Option<&[OsString]>,
    ) -> Result<i32, LinkError> {
        let [here, there, ..] = &network.hosts[..] else {
            return Err(LinkError::Network(io::Error::other("an end is missing")));
        };
        let mut far_child = None;
        if let Some(far) = far {
            far_child = Some(start(there, far, here, Stdio::null())?);
            wait_for_listener(there);
        }
        let program = start(here, near, there, Stdio::inherit())?;
        let status = self.wait_for(program, &mut far_child, None)?.unwrap_or(3);
        if let Some(far) = far_child {
            let left = self.wait_for(far, &mut far_child, Some(FAR_GRACE))?;
            if left.is_none() {
                // It may have ended by itself meanwhile.
                let _ = kill(far, Signal::SIGTERM);
                self.wait_for(far, &mut far_child, Some(FAR_TERM_TIMEOUT))?;
            }
        }
        Ok(status)
    }

    /// Waits for a child, and tells its status; `None` if it takes longer than that. `other` is
    /// taken out when it ends.
    fn wait_for(
        &self,
        child: Pid,
        other: &mut Option<Pid>,
        within: Option<Duration>,
    ) -> Result<Option<i32>, LinkError> {
        let until = within.map(|within| Instant::now() + within);
        loop {
            if let Some(status) = reap(child, other) {
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
            // Only that there was one matters: several children may have ended.
            while let Ok(Some(_)) = self.signals.read_signal() {}
        }
    }
}

/// Takes all children that have ended; the status of the one that is waited for.
fn reap(child: Pid, other: &mut Option<Pid>) -> Option<i32> {
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

fn start(host: &Host, program: &[OsString], peer: &Host, input: Stdio) -> Result<Pid, LinkError> {
    let Some((name, arguments)) = program.split_first() else {
        return Err(LinkError::Program("nothing".to_owned(), io::ErrorKind::NotFound.into()));
    };
    // The child is in the namespace of the thread that starts it.
    let started = host.namespace.within(|| {
        let mut command = Command::new(name);
        command.args(arguments).env(PEER, peer.address.to_string()).stdin(input);
        if peer.has_ipv6 {
            command.env(PEER6, ipv6(peer.address).to_string());
        }
        command.spawn()
    });
    let named = |error| LinkError::Program(name.to_string_lossy().into_owned(), error);
    started.map(|child| Pid::from_raw(child.id() as i32)).map_err(named)
}

/// Waits until something listens at a host, for a second at the most.
fn wait_for_listener(host: &Host) {
    let until = Instant::now() + LISTEN_TIMEOUT;
    let waited = host.namespace.within(|| {
        while !has_listener() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    });
    // Whoever cannot look does not wait.
    drop(waited);
}

/// Whether a TCP socket listens, or a UDP socket has a port, in the thread's network namespace.
fn has_listener() -> bool {
    const LISTENING: &str = "0A";
    let lines = |name: &str| {
        ["", "6"].map(|version| {
            fs::read_to_string(format!("/proc/thread-self/net/{name}{version}")).unwrap_or_default()
        })
    };
    let is_listening = |line: &str| line.split_whitespace().nth(3) == Some(LISTENING);
    let tcp = lines("tcp").iter().any(|text| text.lines().skip(1).any(is_listening));
    tcp || lines("udp").iter().any(|text| text.lines().count() > 1)
}
