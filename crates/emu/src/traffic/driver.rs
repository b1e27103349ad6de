//! The loop that opens, feeds, reads and ends all connections, on one thread.
//!
//! ```text
//! due: a file begins -> connect .. accept -> write .. read the rest .. last ack -> told, the next
//! ```
//!
//! Times of files are the link's own, of packets at its ends, so that it does not matter when the
//! thread runs; it decides only when the next file begins.

use super::connection::{Connection, PIECE, Told};
use super::flow::Flow;
use super::tally::{FileTally, Shared};
use super::{File, SERVICE, Schedule, Session, list, near, tell};
use crate::command::LinkError;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::{TimeSpec, TimeValLike};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use tcpcast_link::time::Nanos;

/// How often connections are asked for their round-trip time.
const SAMPLING: Duration = Duration::from_millis(10);
/// How often the punctuality of the link is reported.
const REPORTS: Duration = Duration::from_millis(500);
/// How often the link is asked whether the last byte of a file is acknowledged.
const ASKS: Duration = Duration::from_micros(500);
/// Events of one look.
const EVENTS: usize = 64;

/// Something that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The next file of a flow.
    Begin(usize),
    /// A flow is over.
    Stop(usize),
    Sample,
    Slot,
    Punctuality,
}

/// Which descriptor an event is of.
const LISTENS: u64 = 0;
const READS: u64 = 1;
const WRITES: u64 = 2;

fn token(kind: u64, number: usize) -> u64 {
    kind << 48 | number as u64
}

/// All flows while the link runs.
pub(super) struct Driver<'a> {
    flows: Vec<Flow>,
    schedule: Schedule,
    tally: Shared,
    lifeline: &'a OwnedFd,
    answer: &'a mut (dyn Write + Send),
    epoll: Epoll,
    connections: Vec<Option<Connection>>,
    /// Connections whose file was read, and is not acknowledged.
    unacked: Vec<usize>,
    agenda: BinaryHeap<Reverse<(Instant, Due)>>,
    began: Instant,
    /// Files that ended after the warm-up.
    finished: u64,
    piece: Vec<u8>,
}

/// When something is done once more that began then and is over now: as long after as it took, at
/// least, so that many flows leave half of the time for their data.
fn again(due: Instant, begun: Instant) -> Instant {
    due.max(Instant::now() + begun.elapsed())
}

fn failed(fault: impl Into<io::Error>) -> LinkError {
    LinkError::Network(fault.into())
}

impl<'a> Driver<'a> {
    /// A loop that begins when it is run, in the thread of the receivers' namespace.
    pub(super) fn new(
        flows: Vec<Flow>,
        schedule: Schedule,
        tally: Shared,
        lifeline: &'a OwnedFd,
        answer: &'a mut (dyn Write + Send),
    ) -> io::Result<Self> {
        Ok(Self {
            flows,
            schedule,
            tally,
            lifeline,
            answer,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            connections: Vec::new(),
            unacked: Vec::new(),
            agenda: BinaryHeap::new(),
            began: Instant::now(),
            finished: 0,
            piece: vec![0; PIECE],
        })
    }

    /// Runs until the time is over, or enough files are.
    pub(super) fn run(&mut self) -> Result<(), LinkError> {
        self.begin()?;
        let until = self.schedule.until.map(|until| self.began + until);
        while until.is_none_or(|until| Instant::now() < until) && !self.has_finished() {
            self.wait(until)?;
            let mut events = [EpollEvent::empty(); EVENTS];
            let found = self.epoll.wait(&mut events, EpollTimeout::ZERO);
            let found =
                found.or_else(|fault| if fault == Errno::EINTR { Ok(0) } else { Err(fault) });
            for event in &events[..found.map_err(failed)?] {
                self.happens(*event).map_err(failed)?;
            }
            self.look_for_acks()?;
            // What becomes due meanwhile waits for the events that have come meanwhile.
            let now = Instant::now();
            while let Some(Reverse((due, what))) = self.agenda.peek().copied() {
                if due > now {
                    break;
                }
                self.agenda.pop();
                self.do_due(due, what)?;
            }
        }
        if self.schedule.slot.is_some() {
            self.snapshot()?;
        }
        self.report_punctuality()
    }

    fn report_punctuality(&mut self) -> Result<(), LinkError> {
        let elapsed = self.began.elapsed().as_nanos() as Nanos;
        let punctuality = self.tally.get().punctuality(elapsed);
        tell(self.answer, "punctuality", &punctuality)
    }

    fn has_finished(&self) -> bool {
        let enough = self.schedule.wanted.is_some_and(|(_, wanted)| self.finished >= wanted);
        let idle = |flow: &Flow| flow.next.is_none() && flow.open.is_empty();
        enough || (self.schedule.until.is_none() && self.flows.iter().all(idle))
    }

    fn begin(&mut self) -> Result<(), LinkError> {
        self.began = Instant::now();
        for number in 0..self.flows.len() {
            let flow = &self.flows[number];
            let event = EpollEvent::new(EpollFlags::EPOLLIN, token(LISTENS, number));
            self.epoll.add(&flow.listener, event).map_err(failed)?;
            if let Some(stop) = flow.config.stop {
                let stop = self.began + Duration::from_nanos(stop);
                self.agenda.push(Reverse((stop, Due::Stop(number))));
            }
            self.draw(number, self.began);
        }
        self.agenda.push(Reverse((self.began + SAMPLING, Due::Sample)));
        self.agenda.push(Reverse((self.began + REPORTS, Due::Punctuality)));
        if let Some(slot) = self.schedule.slot {
            self.agenda.push(Reverse((self.began + slot, Due::Slot)));
            self.snapshot()?;
        }
        Ok(())
    }

    /// Draws the next file of a flow, which begins so long after then.
    fn draw(&mut self, number: usize, then: Instant) {
        let flow = &mut self.flows[number];
        flow.next = flow.config.files.next().map(|file| {
            let due = then + Duration::from_nanos(file.after);
            (file, due)
        });
        if let Some((_, due)) = flow.next {
            self.agenda.push(Reverse((due, Due::Begin(number))));
        }
    }

    /// Waits until something is due or happens, or fails when whoever asked has gone.
    fn wait(&self, until: Option<Instant>) -> Result<(), LinkError> {
        let now = Instant::now();
        let due = self.agenda.peek().map(|Reverse((due, _))| *due);
        let asks = (!self.unacked.is_empty()).then(|| now + ASKS);
        let first = [due, asks, until].into_iter().flatten().min();
        let limit = first.map(|first| {
            let left = first.saturating_duration_since(now);
            TimeSpec::nanoseconds(left.as_nanos() as i64)
        });
        let ends = [self.epoll.0.as_fd(), self.lifeline.as_fd()];
        let mut polled = ends.map(|end| PollFd::new(end, PollFlags::POLLIN));
        match ppoll(&mut polled, limit, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(fault) => return Err(failed(fault)),
        }
        if polled[1].any() == Some(true) { Err(LinkError::Abandoned) } else { Ok(()) }
    }

    fn do_due(&mut self, due: Instant, what: Due) -> Result<(), LinkError> {
        match what {
            Due::Begin(flow) => self.begin_file(flow, due).map_err(failed)?,
            Due::Stop(flow) => self.stop(flow).map_err(failed)?,
            Due::Sample => {
                let begun = Instant::now();
                for connection in self.connections.iter_mut().flatten() {
                    connection.ask();
                }
                self.agenda.push(Reverse((again(due + SAMPLING, begun), what)));
            }
            Due::Punctuality => {
                self.report_punctuality()?;
                self.agenda.push(Reverse((due + REPORTS, what)));
            }
            Due::Slot => {
                let begun = Instant::now();
                self.snapshot()?;
                let slot = self.schedule.slot.unwrap_or(SAMPLING);
                self.agenda.push(Reverse((again(due + slot, begun), what)));
            }
        }
        Ok(())
    }

    fn begin_file(&mut self, number: usize, due: Instant) -> io::Result<()> {
        let flow = &mut self.flows[number];
        let Some((File { bytes, .. }, _)) = flow.next.take() else { return Ok(()) };
        let count = flow.begun;
        flow.begun += 1;
        if flow.config.session == Session::Arriving {
            self.draw(number, due);
        }
        let goes_on = self.flows[number].open.values().next().copied();
        let at = goes_on.filter(|_| self.flows[number].config.session == Session::Persistent);
        if let (Some(at), Some(bytes)) = (at, bytes) {
            return self.go_on(at, count, bytes);
        }
        let to = SocketAddrV4::new(near(number), SERVICE);
        let window = self.flows[number].config.receiver_window;
        let connection = Connection::open(number, to, count, bytes, window)?;
        let free = self.connections.iter().position(Option::is_none);
        let at = free.unwrap_or(self.connections.len());
        let event = EpollEvent::new(EpollFlags::EPOLLIN, token(READS, at));
        self.epoll.add(&connection.receiver, event)?;
        self.flows[number].open.insert(connection.port, at);
        if free.is_none() {
            self.connections.push(None);
        }
        self.connections[at] = Some(connection);
        Ok(())
    }

    fn go_on(&mut self, at: usize, number: u64, bytes: u64) -> io::Result<()> {
        let Some(connection) = &mut self.connections[at] else { return Ok(()) };
        connection.ask();
        connection.go_on(number, bytes);
        if let Some(files) = &mut self.tally.get().files[connection.flow] {
            files.entry(connection.port).and_modify(FileTally::begin);
        }
        let event = &mut EpollEvent::new(EpollFlags::EPOLLIN, token(READS, at));
        self.epoll.modify(&connection.receiver, event)?;
        self.push(at)
    }

    /// Resets a flow's connections, and begins no more.
    fn stop(&mut self, number: usize) -> io::Result<()> {
        self.flows[number].next = None;
        let open: Vec<usize> = self.flows[number].open.drain().map(|(_, at)| at).collect();
        let ended: Vec<_> = open.iter().filter_map(|at| self.connections[*at].take()).collect();
        ended.into_iter().try_for_each(|connection| self.end(connection, true))
    }

    fn end(&mut self, mut connection: Connection, resets: bool) -> io::Result<()> {
        let flow = &mut self.flows[connection.flow];
        flow.ended.add(connection.ask());
        flow.open.remove(&connection.port);
        connection.end(resets)
    }

    fn happens(&mut self, event: EpollEvent) -> io::Result<()> {
        let number = (event.data() & 0xffff_ffff) as usize;
        match event.data() >> 48 {
            LISTENS => self.accept(number),
            READS => self.read(number),
            _ => {
                let connection = self.connections[number].as_ref();
                let sender = connection.and_then(|connection| connection.sender.as_ref());
                if event.events().contains(EpollFlags::EPOLLERR)
                    && let Some(fault) = sender.map_or(Ok(None), TcpStream::take_error)?
                {
                    return Err(fault);
                }
                self.push(number)
            }
        }
    }

    fn accept(&mut self, number: usize) -> io::Result<()> {
        loop {
            let (sender, from) = match self.flows[number].listener.accept() {
                Ok(accepted) => accepted,
                Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(fault) => return Err(fault),
            };
            sender.set_nonblocking(true)?;
            // One that was stopped meanwhile has no receiver.
            let Some(at) = self.flows[number].open.get(&from.port()).copied() else { continue };
            if let Some(connection) = &mut self.connections[at] {
                let event = EpollEvent::new(EpollFlags::empty(), token(WRITES, at));
                self.epoll.add(&sender, event)?;
                connection.accepted(sender);
                self.push(at)?;
            }
        }
    }

    fn push(&mut self, at: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[at] else { return Ok(()) };
        let closes = self.flows[connection.flow].config.session.closes();
        let done = connection.push(&self.piece, closes)?;
        let Some(sender) = &connection.sender else { return Ok(()) };
        let wants = if done { EpollFlags::empty() } else { EpollFlags::EPOLLOUT };
        Ok(self.epoll.modify(sender, &mut EpollEvent::new(wants, token(WRITES, at)))?)
    }

    fn read(&mut self, at: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[at] else { return Ok(()) };
        if connection.take(&mut self.piece)? && connection.delivered.is_none() {
            let mut tally = self.tally.get();
            let files = tally.files[connection.flow].as_mut();
            let file = files.and_then(|files| files.get(&connection.port));
            connection.delivered = Some(file.map_or(0, |file| file.last_left));
            self.unacked.push(at);
            let nothing = &mut EpollEvent::new(EpollFlags::empty(), token(READS, at));
            self.epoll.modify(&connection.receiver, nothing)?;
        }
        Ok(())
    }

    /// Ends the files whose last byte is acknowledged.
    fn look_for_acks(&mut self) -> Result<(), LinkError> {
        for at in std::mem::take(&mut self.unacked) {
            let Some(connection) = &self.connections[at] else { continue };
            let (flow, port) = (connection.flow, connection.port);
            let (now, file) = {
                let mut tally = self.tally.get();
                let now = tally.now();
                let file = tally.files[flow].as_ref().and_then(|files| files.get(&port));
                (now, file.copied().unwrap_or_default())
            };
            if file.is_acked() {
                self.finish(at, &file, now)?;
            } else {
                self.unacked.push(at);
            }
        }
        Ok(())
    }

    /// Tells of a file, and of what comes after it; `now` is the link's time.
    fn finish(&mut self, at: usize, file: &FileTally, now: Nanos) -> Result<(), LinkError> {
        let Some(mut connection) = self.connections[at].take() else { return Ok(()) };
        connection.ask();
        let first = file.first_entered.unwrap_or(0);
        let line = list([
            connection.flow as u64,
            connection.number,
            connection.bytes.unwrap_or(0),
            file.opened,
            first,
            connection.delivered.unwrap_or(first),
            file.last_ack,
            file.arrived,
            file.drops,
            connection.retransmitted(),
        ]);
        tell(self.answer, "transfer", &line)?;
        let host = Instant::now();
        let warm = self.schedule.wanted.is_some_and(|(warm_up, _)| host - self.began >= warm_up);
        self.finished += u64::from(warm);
        let (flow, port) = (connection.flow, connection.port);
        let session = self.flows[flow].config.session;
        if session == Session::Persistent {
            self.connections[at] = Some(connection);
        } else {
            self.end(connection, false).map_err(failed)?;
            if let Some(files) = &mut self.tally.get().files[flow] {
                files.remove(&port);
            }
        }
        if session != Session::Arriving {
            let since = Duration::from_nanos(now.saturating_sub(file.last_ack));
            self.draw(flow, host.checked_sub(since).unwrap_or(host));
        }
        Ok(())
    }

    /// A line with everything that was counted since the beginning.
    fn snapshot(&mut self) -> Result<(), LinkError> {
        let (tallies, whole) = {
            let mut tally = self.tally.get();
            let waits = std::mem::take(&mut tally.waits);
            let waits: Vec<String> = waits.iter().map(|(steps, n)| list([steps, n])).collect();
            let whole = format!(
                "\"now_ns\":{},\"carried_bytes\":{},\"waits\":[{}]",
                tally.now(),
                tally.carried_bytes,
                waits.join(",")
            );
            (tally.flows.clone(), whole)
        };
        let mut told: Vec<Told> = self.flows.iter().map(|flow| flow.ended).collect();
        for connection in self.connections.iter_mut().flatten() {
            told[connection.flow].add(connection.ask());
        }
        let mut rows = Vec::new();
        for ((flow, tally), told) in self.flows.iter_mut().zip(&tallies).zip(told) {
            rows.push(flow.row(tally, told).map_err(LinkError::Loop)?);
        }
        tell(self.answer, "snapshot", &format!("{{{whole},\"flows\":[{}]}}", rows.join(",")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_longer_than_its_period_leaves_as_much_time_for_others() {
        let now = Instant::now();
        let long = Duration::from_millis(500);
        let begun = now.checked_sub(long).unwrap();
        assert!(again(begun + SAMPLING, begun) >= now + long);
        assert_eq!(again(now + 4 * long, begun), now + 4 * long);
    }
}
