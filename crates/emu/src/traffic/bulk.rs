//! Flows that send without end.

use super::tally::FlowTally;
use super::tcp_info::{NetStat, TcpInfo};
use super::{Driver, SERVICE, list, near};
use crate::command::LinkError;
use crate::network::Network;
use nix::sys::socket::{MsgFlags, recv};
use std::io::{self, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// How often connections are asked for their round-trip time.
const SAMPLING: Duration = Duration::from_millis(10);
/// Bytes written and read at once.
const PIECE: usize = 1 << 18;
/// Stack of a thread that only moves bytes.
const STACK: usize = 1 << 16;

/// What a flow's two ends and whoever asks share.
#[derive(Debug, Default)]
struct Ends {
    /// The sender's socket, once it has accepted.
    sender: OnceLock<TcpStream>,
    received: AtomicU64,
    /// Why an end gave up.
    fault: Mutex<Option<io::Error>>,
}

/// What a flow's connection told so far.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    rtt_sum_ns: u64,
    rtt_samples: u64,
    acks: u32,
}

impl Driver<'_> {
    /// Runs bulk flows; each slot is a line with everything that was counted since the beginning.
    pub(super) fn bulk(&mut self, until: Duration, slot: Duration) -> Result<(), LinkError> {
        let (mut ends, mut counters) = (Vec::new(), Vec::new());
        for (flow, config) in self.flows.iter().enumerate() {
            let listener = self.listen(flow)?;
            let shared = Arc::new(Ends::default());
            let counter = self.network.hosts[flow].namespace.within(NetStat::here);
            counters.push(counter.map_err(LinkError::Network)?);
            start_sender(listener, Arc::clone(&shared)).map_err(LinkError::Loop)?;
            let network = Arc::clone(&self.network);
            let receiver = (network, flow, config.start);
            start_receiver(receiver, Arc::clone(&shared)).map_err(LinkError::Loop)?;
            ends.push(shared);
        }
        let began = Instant::now();
        let mut told = vec![Told::default(); ends.len()];
        let (mut next_slot, mut next_sample) = (slot, SAMPLING);
        self.snapshot(&ends, &told, &mut counters)?;
        while next_slot <= until {
            self.sleep_until(began + next_sample.min(next_slot))?;
            let now = began.elapsed();
            for (ends, told) in ends.iter().zip(&mut told) {
                sample(ends, told);
            }
            while next_sample <= now {
                next_sample += SAMPLING;
            }
            if next_slot <= now {
                self.snapshot(&ends, &told, &mut counters)?;
            }
            while next_slot <= now {
                next_slot += slot;
            }
        }
        Ok(())
    }

    fn snapshot(
        &mut self,
        ends: &[Arc<Ends>],
        told: &[Told],
        counters: &mut [NetStat],
    ) -> Result<(), LinkError> {
        let mut rows = Vec::new();
        let (flows, whole) = {
            let mut tally = self.tally.get();
            let waits = std::mem::take(&mut tally.waits);
            let waits = waits.iter().map(|(steps, count)| list([steps, count]));
            let waits: Vec<String> = waits.collect();
            let whole = format!(
                "\"now_ns\":{},\"carried_bytes\":{},\"lateness\":{},\"waits\":[{}]",
                tally.now,
                tally.carried_bytes,
                list(tally.lateness),
                waits.join(",")
            );
            (tally.flows.clone(), whole)
        };
        for (((ends, told), counter), flow) in ends.iter().zip(told).zip(counters).zip(&flows) {
            if let Some(fault) = ends.fault.lock().ok().and_then(|mut fault| fault.take()) {
                return Err(LinkError::Network(fault));
            }
            let counted = counter.read().map_err(LinkError::Loop)?;
            rows.push(row(flow, ends, *told, counted));
        }
        self.tell("snapshot", &format!("{{{whole},\"flows\":[{}]}}", rows.join(",")))
    }
}

/// One flow's numbers, in the order that whoever reads them knows.
fn row(flow: &FlowTally, ends: &Ends, told: Told, (recoveries, timeouts): (u64, u64)) -> String {
    let info = ends.sender.get().and_then(|sender| TcpInfo::of(sender).ok());
    let of = |read: fn(&TcpInfo) -> u64| info.as_ref().map_or(0, read);
    list([
        flow.arrived,
        flow.queue_drops,
        flow.random_drops,
        flow.passed,
        flow.waited,
        flow.marked,
        ends.received.load(Ordering::Relaxed),
        told.rtt_sum_ns,
        told.rtt_samples,
        of(|info| u64::from(info.retransmitted())),
        recoveries,
        timeouts,
        of(|info| u64::from(info.timeout_sequences())),
        of(|info| info.busy_us().0),
        of(|info| info.busy_us().1),
    ])
}

/// Adds the round-trip time, once for each ack that came since: TCP takes a sample of each.
fn sample(ends: &Ends, told: &mut Told) {
    let Some(info) = ends.sender.get().and_then(|sender| TcpInfo::of(sender).ok()) else { return };
    let new = info.acks().wrapping_sub(told.acks);
    told.acks = info.acks();
    told.rtt_samples += u64::from(new);
    told.rtt_sum_ns += u64::from(new) * u64::from(info.rtt_us()) * 1000;
}

fn start_sender(listener: TcpListener, ends: Arc<Ends>) -> io::Result<()> {
    let work = move || {
        let sent = listener.accept().and_then(|(stream, _)| {
            let _ = ends.sender.set(stream.try_clone()?);
            push(stream)
        });
        note(&ends, sent);
    };
    thread::Builder::new().stack_size(STACK).spawn(work).map(drop)
}

fn push(mut stream: TcpStream) -> io::Result<()> {
    let piece = vec![0; PIECE];
    loop {
        stream.write_all(&piece)?;
    }
}

fn start_receiver(
    (network, flow, start): (Arc<Network>, usize, Duration),
    ends: Arc<Ends>,
) -> io::Result<()> {
    let work = move || {
        thread::sleep(start);
        let to = SocketAddrV4::new(near(flow), SERVICE);
        let far = &network.hosts[network.hosts.len() - 1];
        let read = far.namespace.within(|| TcpStream::connect(to));
        note(&ends, read.and_then(|stream| discard(&stream, &ends.received)));
    };
    thread::Builder::new().stack_size(STACK).spawn(work).map(drop)
}

/// Counts what comes without copying it (tcp(7), MSG_TRUNC).
fn discard(stream: &TcpStream, received: &AtomicU64) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let bytes = recv(stream.as_raw_fd(), &mut piece, MsgFlags::MSG_TRUNC)?;
        if bytes == 0 {
            return Ok(());
        }
        received.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

fn note(ends: &Ends, done: io::Result<()>) {
    if let (Err(fault), Ok(mut kept)) = (done, ends.fault.lock()) {
        *kept = Some(fault);
    }
}
