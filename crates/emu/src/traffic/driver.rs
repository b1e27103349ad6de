//! Opens, feeds, reads and closes all connections on one thread.
//!
//! ```text
//! due: file begins -> connect .. accept -> write .. read the rest .. last ack -> report, next file
//! ```
//!
//! Files are timed by their packets at the ends of the link, so the scheduling of this thread does
//! not affect the times. It only affects when the next file begins.

use super::connection::{BUFFER_BYTES, SenderStats, TestConnection};
use super::flow_state::FlowState;
use super::traffic_tally::{FileTally, SharedTally};
use super::{
    ConnectionUse, FileToSend, RunSchedule, SENDER_PORT, format_json_list, near_address_of_flow,
    write_key_value_line,
};
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

/// Interval at which the RTT of connections is sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);
/// Interval of punctuality reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);
/// Interval at which the acknowledgement of a file's last byte is checked.
const ACK_CHECK_INTERVAL: Duration = Duration::from_micros(500);
/// Maximum number of events per call.
const MAX_EVENTS: usize = 64;

/// Kind of a timed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TimedEvent {
    /// Start of a flow's next file.
    Begin(usize),
    /// Stop of a flow.
    Stop(usize),
    Sample,
    Slot,
    Punctuality,
}

/// Kind of a descriptor, stored in its epoll token.
const LISTENER_KIND: u64 = 0;
const READER_KIND: u64 = 1;
const WRITER_KIND: u64 = 2;

fn epoll_token(kind: u64, number: usize) -> u64 {
    kind << 48 | number as u64
}

/// State of all flows during a run.
pub(super) struct TrafficDriver<'a> {
    flows: Vec<FlowState>,
    schedule: RunSchedule,
    tally: SharedTally,
    lifeline: &'a OwnedFd,
    answer: &'a mut (dyn Write + Send),
    epoll: Epoll,
    connections: Vec<Option<TestConnection>>,
    /// Connections whose file was read but is not completely acknowledged.
    unacked: Vec<usize>,
    event_queue: BinaryHeap<Reverse<(Instant, TimedEvent)>>,
    began: Instant,
    /// Number of files that ended after the warm-up.
    finished: u64,
    piece: Vec<u8>,
}

/// Returns the next time of a periodic task that began at `start` and has just ended. The next time
/// is at least the duration of the task from now, so that at least half of the time is left for
/// data.
fn next_task_time(due: Instant, start: Instant) -> Instant {
    due.max(Instant::now() + start.elapsed())
}

fn link_error(error: impl Into<io::Error>) -> LinkError {
    LinkError::Network(error.into())
}

impl<'a> TrafficDriver<'a> {
    /// Creates a driver on the thread of the receivers' namespace.
    pub(super) fn new(
        flows: Vec<FlowState>,
        schedule: RunSchedule,
        tally: SharedTally,
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
            event_queue: BinaryHeap::new(),
            began: Instant::now(),
            finished: 0,
            piece: vec![0; BUFFER_BYTES],
        })
    }

    /// Runs until the end of the schedule.
    pub(super) fn run_schedule(&mut self) -> Result<(), LinkError> {
        self.listen_and_schedule_files()?;
        let until = self.schedule.until.map(|until| self.began + until);
        while until.is_none_or(|until| Instant::now() < until) && !self.has_finished() {
            self.wait_for_event(until)?;
            let mut events = [EpollEvent::empty(); MAX_EVENTS];
            let count = self.epoll.wait(&mut events, EpollTimeout::ZERO);
            let count =
                count.or_else(|error| if error == Errno::EINTR { Ok(0) } else { Err(error) });
            for event in &events[..count.map_err(link_error)?] {
                self.on_event(*event).map_err(link_error)?;
            }
            self.finish_acked_files()?;
            // Events that become due in the meantime wait for the next poll.
            let now = Instant::now();
            while let Some(Reverse((due, event))) = self.event_queue.peek().copied() {
                if due > now {
                    break;
                }
                self.event_queue.pop();
                self.process_timed_event(due, event)?;
            }
        }
        if self.schedule.slot.is_some() {
            self.write_snapshot()?;
        }
        self.report_punctuality()
    }

    fn report_punctuality(&mut self) -> Result<(), LinkError> {
        let elapsed = self.began.elapsed().as_nanos() as Nanos;
        let punctuality = self.tally.lock_tally().punctuality_json(elapsed);
        write_key_value_line(self.answer, "punctuality", &punctuality)
    }

    fn has_finished(&self) -> bool {
        let enough = self.schedule.wanted.is_some_and(|(_, wanted)| self.finished >= wanted);
        let idle = |flow: &FlowState| flow.next.is_none() && flow.open.is_empty();
        enough || (self.schedule.until.is_none() && self.flows.iter().all(idle))
    }

    fn listen_and_schedule_files(&mut self) -> Result<(), LinkError> {
        self.began = Instant::now();
        for number in 0..self.flows.len() {
            let flow = &self.flows[number];
            let event = EpollEvent::new(EpollFlags::EPOLLIN, epoll_token(LISTENER_KIND, number));
            self.epoll.add(&flow.listener, event).map_err(link_error)?;
            if let Some(stop) = flow.config.stop {
                let stop = self.began + Duration::from_nanos(stop);
                self.event_queue.push(Reverse((stop, TimedEvent::Stop(number))));
            }
            self.draw_and_schedule_file(number, self.began);
        }
        self.event_queue.push(Reverse((self.began + SAMPLE_INTERVAL, TimedEvent::Sample)));
        self.event_queue.push(Reverse((self.began + REPORT_INTERVAL, TimedEvent::Punctuality)));
        if let Some(slot) = self.schedule.slot {
            self.event_queue.push(Reverse((self.began + slot, TimedEvent::Slot)));
            self.write_snapshot()?;
        }
        Ok(())
    }

    /// Draws the next file of a flow, relative to `then`.
    fn draw_and_schedule_file(&mut self, number: usize, then: Instant) {
        let flow = &mut self.flows[number];
        flow.next = flow.config.files.next_file().map(|file| {
            let due = then + Duration::from_nanos(file.after);
            (file, due)
        });
        if let Some((_, due)) = flow.next {
            self.event_queue.push(Reverse((due, TimedEvent::Begin(number))));
        }
    }

    /// Waits for an event or the next due time; fails if the caller has ended.
    fn wait_for_event(&self, until: Option<Instant>) -> Result<(), LinkError> {
        let now = Instant::now();
        let due = self.event_queue.peek().map(|Reverse((due, _))| *due);
        let ack_check = (!self.unacked.is_empty()).then(|| now + ACK_CHECK_INTERVAL);
        let first = [due, ack_check, until].into_iter().flatten().min();
        let limit = first.map(|first| {
            let left = first.saturating_duration_since(now);
            TimeSpec::nanoseconds(left.as_nanos() as i64)
        });
        let ends = [self.epoll.0.as_fd(), self.lifeline.as_fd()];
        let mut polled = ends.map(|end| PollFd::new(end, PollFlags::POLLIN));
        match ppoll(&mut polled, limit, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(link_error(error)),
        }
        if polled[1].any() == Some(true) { Err(LinkError::Abandoned) } else { Ok(()) }
    }

    fn process_timed_event(&mut self, due: Instant, event: TimedEvent) -> Result<(), LinkError> {
        match event {
            TimedEvent::Begin(flow) => self.begin_scheduled_file(flow, due).map_err(link_error)?,
            TimedEvent::Stop(flow) => self.stop_flow(flow).map_err(link_error)?,
            TimedEvent::Sample => {
                let start = Instant::now();
                for connection in self.connections.iter_mut().flatten() {
                    connection.sample_tcp_info();
                }
                self.event_queue
                    .push(Reverse((next_task_time(due + SAMPLE_INTERVAL, start), event)));
            }
            TimedEvent::Punctuality => {
                self.report_punctuality()?;
                self.event_queue.push(Reverse((due + REPORT_INTERVAL, event)));
            }
            TimedEvent::Slot => {
                let start = Instant::now();
                self.write_snapshot()?;
                let slot = self.schedule.slot.unwrap_or(SAMPLE_INTERVAL);
                self.event_queue.push(Reverse((next_task_time(due + slot, start), event)));
            }
        }
        Ok(())
    }

    fn begin_scheduled_file(&mut self, number: usize, due: Instant) -> io::Result<()> {
        let flow = &mut self.flows[number];
        let Some((FileToSend { bytes, .. }, _)) = flow.next.take() else { return Ok(()) };
        let count = flow.started;
        flow.started += 1;
        if flow.config.session == ConnectionUse::Arriving {
            self.draw_and_schedule_file(number, due);
        }
        let open = self.flows[number].open.values().next().copied();
        let index = open.filter(|_| self.flows[number].config.session == ConnectionUse::Persistent);
        if let (Some(index), Some(bytes)) = (index, bytes) {
            return self.start_file_on_connection(index, count, bytes);
        }
        let to = SocketAddrV4::new(near_address_of_flow(number), SENDER_PORT);
        let window = self.flows[number].config.receiver_window;
        let connection = TestConnection::open_connection(number, to, count, bytes, window)?;
        let free = self.connections.iter().position(Option::is_none);
        let index = free.unwrap_or(self.connections.len());
        let event = EpollEvent::new(EpollFlags::EPOLLIN, epoll_token(READER_KIND, index));
        self.epoll.add(&connection.receiver, event)?;
        self.flows[number].open.insert(connection.port, index);
        if free.is_none() {
            self.connections.push(None);
        }
        self.connections[index] = Some(connection);
        Ok(())
    }

    fn start_file_on_connection(
        &mut self,
        index: usize,
        number: u64,
        bytes: u64,
    ) -> io::Result<()> {
        let Some(connection) = &mut self.connections[index] else { return Ok(()) };
        connection.sample_tcp_info();
        connection.start_file(number, bytes);
        if let Some(files) = &mut self.tally.lock_tally().files[connection.flow] {
            files.entry(connection.port).and_modify(FileTally::begin_next_file);
        }
        let event = &mut EpollEvent::new(EpollFlags::EPOLLIN, epoll_token(READER_KIND, index));
        self.epoll.modify(&connection.receiver, event)?;
        self.write_connection(index)
    }

    /// Resets the connections of a flow and starts no more files.
    fn stop_flow(&mut self, number: usize) -> io::Result<()> {
        self.flows[number].next = None;
        let open: Vec<usize> = self.flows[number].open.drain().map(|(_, index)| index).collect();
        let ended: Vec<_> =
            open.iter().filter_map(|index| self.connections[*index].take()).collect();
        ended.into_iter().try_for_each(|connection| self.end_connection(connection, true))
    }

    fn end_connection(
        &mut self,
        mut connection: TestConnection,
        with_reset: bool,
    ) -> io::Result<()> {
        let flow = &mut self.flows[connection.flow];
        flow.ended.add_stats(connection.sample_tcp_info());
        flow.open.remove(&connection.port);
        connection.close_connection(with_reset)
    }

    fn on_event(&mut self, event: EpollEvent) -> io::Result<()> {
        let number = (event.data() & 0xffff_ffff) as usize;
        match event.data() >> 48 {
            LISTENER_KIND => self.accept_connection(number),
            READER_KIND => self.read_connection(number),
            _ => {
                let connection = self.connections[number].as_ref();
                let sender = connection.and_then(|connection| connection.sender.as_ref());
                if event.events().contains(EpollFlags::EPOLLERR) {
                    if let Some(error) = sender.map_or(Ok(None), TcpStream::take_error)? {
                        return Err(error);
                    }
                }
                self.write_connection(number)
            }
        }
    }

    fn accept_connection(&mut self, number: usize) -> io::Result<()> {
        loop {
            let (sender, from) = match self.flows[number].listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            sender.set_nonblocking(true)?;
            // A stopped connection no longer has a receiver.
            let Some(index) = self.flows[number].open.get(&from.port()).copied() else { continue };
            if let Some(connection) = &mut self.connections[index] {
                let event = EpollEvent::new(EpollFlags::empty(), epoll_token(WRITER_KIND, index));
                self.epoll.add(&sender, event)?;
                connection.set_accepted_sender(sender);
                self.write_connection(index)?;
            }
        }
    }

    fn write_connection(&mut self, index: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[index] else { return Ok(()) };
        let closes = self.flows[connection.flow].config.session.closes_after_file();
        let done = connection.write_unsent_bytes(&self.piece, closes)?;
        let Some(sender) = &connection.sender else { return Ok(()) };
        let wants = if done { EpollFlags::empty() } else { EpollFlags::EPOLLOUT };
        Ok(self
            .epoll
            .modify(sender, &mut EpollEvent::new(wants, epoll_token(WRITER_KIND, index)))?)
    }

    fn read_connection(&mut self, index: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[index] else { return Ok(()) };
        if connection.read_from_socket(&mut self.piece)? && connection.delivered.is_none() {
            let mut tally = self.tally.lock_tally();
            let files = tally.files[connection.flow].as_mut();
            let file = files.and_then(|files| files.get(&connection.port));
            connection.delivered = Some(file.map_or(0, |file| file.last_left));
            self.unacked.push(index);
            let nothing =
                &mut EpollEvent::new(EpollFlags::empty(), epoll_token(READER_KIND, index));
            self.epoll.modify(&connection.receiver, nothing)?;
        }
        Ok(())
    }

    /// Ends the files whose last byte is acknowledged.
    fn finish_acked_files(&mut self) -> Result<(), LinkError> {
        for index in std::mem::take(&mut self.unacked) {
            let Some(connection) = &self.connections[index] else { continue };
            let (flow, port) = (connection.flow, connection.port);
            let (now, file) = {
                let mut tally = self.tally.lock_tally();
                let now = tally.current_link_time();
                let file = tally.files[flow].as_ref().and_then(|files| files.get(&port));
                (now, file.copied().unwrap_or_default())
            };
            if file.is_acked() {
                self.finish_file(index, &file, now)?;
            } else {
                self.unacked.push(index);
            }
        }
        Ok(())
    }

    /// Reports a file and schedules the next one. `now`: link time.
    fn finish_file(&mut self, index: usize, file: &FileTally, now: Nanos) -> Result<(), LinkError> {
        let Some(mut connection) = self.connections[index].take() else { return Ok(()) };
        connection.sample_tcp_info();
        let first = file.first_entered.unwrap_or(0);
        let line = format_json_list([
            connection.flow as u64,
            connection.number,
            connection.bytes.unwrap_or(0),
            file.opened,
            first,
            connection.delivered.unwrap_or(first),
            file.last_ack,
            file.arrived,
            file.drops,
            connection.retransmissions_of_file(),
        ]);
        write_key_value_line(self.answer, "transfer", &line)?;
        let host = Instant::now();
        let warm = self.schedule.wanted.is_some_and(|(warm_up, _)| host - self.began >= warm_up);
        self.finished += u64::from(warm);
        let (flow, port) = (connection.flow, connection.port);
        let session = self.flows[flow].config.session;
        if session == ConnectionUse::Persistent {
            self.connections[index] = Some(connection);
        } else {
            self.end_connection(connection, false).map_err(link_error)?;
            if let Some(files) = &mut self.tally.lock_tally().files[flow] {
                files.remove(&port);
            }
        }
        if session != ConnectionUse::Arriving {
            let since = Duration::from_nanos(now.saturating_sub(file.last_ack));
            self.draw_and_schedule_file(flow, host.checked_sub(since).unwrap_or(host));
        }
        Ok(())
    }

    /// Writes a line with all counters since the start.
    fn write_snapshot(&mut self) -> Result<(), LinkError> {
        let (tallies, totals) = {
            let mut tally = self.tally.lock_tally();
            let waits = std::mem::take(&mut tally.waits);
            let waits: Vec<String> =
                waits.iter().map(|(steps, n)| format_json_list([steps, n])).collect();
            let totals = format!(
                "\"now_ns\":{},\"carried_bytes\":{},\"waits\":[{}]",
                tally.current_link_time(),
                tally.carried_bytes,
                waits.join(",")
            );
            (tally.flows.clone(), totals)
        };
        let mut stats: Vec<SenderStats> = self.flows.iter().map(|flow| flow.ended).collect();
        for connection in self.connections.iter_mut().flatten() {
            stats[connection.flow].add_stats(connection.sample_tcp_info());
        }
        let mut rows = Vec::new();
        for ((flow, tally), stats) in self.flows.iter_mut().zip(&tallies).zip(stats) {
            rows.push(flow.format_counters_row(tally, stats).map_err(LinkError::Loop)?);
        }
        write_key_value_line(
            self.answer,
            "snapshot",
            &format!("{{{totals},\"flows\":[{}]}}", rows.join(",")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_time_leaves_at_least_the_duration_of_the_task() {
        let now = Instant::now();
        let long = Duration::from_millis(500);
        let start = now.checked_sub(long).unwrap();
        assert!(next_task_time(start + SAMPLE_INTERVAL, start) >= now + long);
        assert_eq!(next_task_time(now + 4 * long, start), now + 4 * long);
    }
}
