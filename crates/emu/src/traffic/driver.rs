//! Opens, feeds, reads and closes all connections, and sends all messages, on one thread.
//!
//! ```text
//! due: file begins -> connect .. accept -> write .. read the rest .. last ack -> report, next file
//! due: request -> write .. read -> answer: write .. read the rest -> pause, next request
//! ```
//!
//! Files, requests and messages are timed by their packets at the ends of the links, so the
//! scheduling of this thread does not affect the times. It only affects when the next one begins,
//! and how long a server takes.

use super::connection::{BUFFER_BYTES, SenderStats, TestConnection};
use super::flow_state::{ClientState, FlowState};
use super::traffic_tally::{FileTally, SharedTally};
use super::{
    CLIENT, ConnectionUse, Exchange, FileToSend, FlowApp, NetworkSums, RunSchedule, SENDER_PORT,
    SERVER, format_json_list, write_key_value_line,
};
use crate::command::LinkError;
use crate::forwarding::SharedPaths;
use crate::network::EmulatedHost;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::{TimeSpec, TimeValLike};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use tcpcast_link::time::Nanos;

/// Bytes of a player's request.
const STREAM_REQUEST_BYTES: u64 = 400;
/// Interval of punctuality reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);
/// Interval at which the acknowledgement of a file's last byte is checked.
const ACK_CHECK_INTERVAL: Duration = Duration::from_micros(500);
/// Maximum number of events per call.
const MAX_EVENTS: usize = 64;

/// Kind of a timed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TimedEvent {
    /// Start of a flow's next file, or of a client's next requests.
    Begin(usize),
    /// End of the time that a server takes for an answer.
    Answer(usize),
    /// Next message or ping of an end of a flow.
    Message(usize, usize),
    /// Stop of a flow.
    Stop(usize),
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
    hosts: &'a [EmulatedHost],
    /// Host in whose namespace this thread is.
    current_host: Option<usize>,
    schedule: RunSchedule,
    tally: SharedTally,
    paths: SharedPaths,
    sums: NetworkSums,
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
    /// Creates a driver, which moves its thread between the namespaces of `hosts`.
    pub(super) fn new(
        flows: Vec<FlowState>,
        hosts: &'a [EmulatedHost],
        schedule: RunSchedule,
        (tally, paths, sums): (SharedTally, SharedPaths, NetworkSums),
        lifeline: &'a OwnedFd,
        answer: &'a mut (dyn Write + Send),
    ) -> io::Result<Self> {
        Ok(Self {
            flows,
            hosts,
            current_host: None,
            schedule,
            tally,
            paths,
            sums,
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
        self.listen_and_schedule_flows()?;
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

    fn listen_and_schedule_flows(&mut self) -> Result<(), LinkError> {
        self.began = Instant::now();
        for number in 0..self.flows.len() {
            let flow = &self.flows[number];
            if let Some(sender) = &flow.sender {
                let token = epoll_token(LISTENER_KIND, number);
                let event = EpollEvent::new(EpollFlags::EPOLLIN, token);
                self.epoll.add(&sender.listener, event).map_err(link_error)?;
            }
            if let Some(stop) = flow.config.stop {
                self.schedule_event(
                    self.began + Duration::from_nanos(stop),
                    TimedEvent::Stop(number),
                );
            }
            self.schedule_start(number);
        }
        self.schedule_event(self.began + REPORT_INTERVAL, TimedEvent::Punctuality);
        if let Some(slot) = self.schedule.slot {
            self.schedule_event(self.began + slot, TimedEvent::Slot);
            self.write_snapshot()?;
        }
        Ok(())
    }

    fn schedule_event(&mut self, due: Instant, event: TimedEvent) {
        self.event_queue.push(Reverse((due, event)));
    }

    fn schedule_start(&mut self, number: usize) {
        let config = &self.flows[number].config;
        let start = config.start.map(|start| self.began + Duration::from_nanos(start));
        match (&config.app, start) {
            (FlowApp::Files { .. }, _) => self.draw_and_schedule_file(number, self.began),
            (_, None) => (),
            (FlowApp::Requests { .. } | FlowApp::Stream(_), Some(start)) => {
                self.schedule_event(start, TimedEvent::Begin(number));
            }
            (FlowApp::Messages(_, sends), Some(start)) => {
                for end in
                    [SERVER, CLIENT].into_iter().filter(|end| sends[*end]).collect::<Vec<_>>()
                {
                    self.schedule_event(start, TimedEvent::Message(number, end));
                }
            }
            (FlowApp::Ping(_), Some(start)) => {
                self.schedule_event(start, TimedEvent::Message(number, CLIENT));
            }
        }
    }

    /// Host time since the start of the run.
    fn elapsed(&self) -> Nanos {
        self.began.elapsed().as_nanos() as Nanos
    }

    /// Draws the next file of a flow, relative to `then`.
    fn draw_and_schedule_file(&mut self, number: usize, then: Instant) {
        let flow = &mut self.flows[number];
        let FlowApp::Files { files, .. } = &mut flow.config.app else { return };
        flow.next = files.next_file().map(|file| {
            let due = then + Duration::from_nanos(file.after);
            (file, due)
        });
        if let Some((_, due)) = flow.next {
            self.schedule_event(due, TimedEvent::Begin(number));
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
            TimedEvent::Begin(flow) => match self.flows[flow].config.app {
                FlowApp::Files { .. } => self.begin_scheduled_file(flow, due),
                _ => self.begin_requests(flow),
            }
            .map_err(link_error)?,
            TimedEvent::Answer(flow) => self.answer_request(flow).map_err(link_error)?,
            TimedEvent::Message(flow, end) => {
                self.send_message(flow, end, due).map_err(link_error)?;
            }
            TimedEvent::Stop(flow) => self.stop_flow(flow).map_err(link_error)?,
            TimedEvent::Punctuality => {
                self.report_punctuality()?;
                self.schedule_event(due + REPORT_INTERVAL, event);
            }
            TimedEvent::Slot => {
                let start = Instant::now();
                self.write_snapshot()?;
                let slot = self.schedule.slot.unwrap_or(REPORT_INTERVAL);
                self.schedule_event(next_task_time(due + slot, start), event);
            }
        }
        Ok(())
    }

    /// Sends a message or ping, and schedules the next one.
    fn send_message(&mut self, number: usize, end: usize, due: Instant) -> io::Result<()> {
        let flow = &mut self.flows[number];
        if flow.stopped {
            return Ok(());
        }
        let (FlowApp::Messages(next, _) | FlowApp::Ping(next)) = &mut flow.config.app else {
            return Ok(());
        };
        let (bytes, interval) = (next.0)();
        if let Some(socket) = &mut flow.datagrams[end] {
            socket.send_packet(bytes)?;
        }
        self.schedule_event(due + Duration::from_nanos(interval), TimedEvent::Message(number, end));
        Ok(())
    }

    fn session_of(&self, number: usize) -> ConnectionUse {
        match &self.flows[number].config.app {
            FlowApp::Files { session, .. } => *session,
            _ => ConnectionUse::Persistent,
        }
    }

    fn begin_scheduled_file(&mut self, number: usize, due: Instant) -> io::Result<()> {
        let flow = &mut self.flows[number];
        let Some((FileToSend { bytes, .. }, _)) = flow.next.take() else { return Ok(()) };
        let count = flow.started;
        flow.started += 1;
        let session = self.session_of(number);
        if session == ConnectionUse::Arriving {
            self.draw_and_schedule_file(number, due);
        }
        let open = self.flows[number].open.values().next().copied();
        let index = open.filter(|_| session == ConnectionUse::Persistent);
        if let (Some(index), Some(bytes)) = (index, bytes) {
            self.start_file_on_connection(index, count, bytes);
            return self.write_connection(index);
        }
        self.open_connection(number, count, bytes).map(drop)
    }

    /// Opens a connection of a flow from its receiver, and returns its index.
    fn open_connection(
        &mut self,
        number: usize,
        count: u64,
        bytes: Option<u64>,
    ) -> io::Result<Option<usize>> {
        let Some(sender) = &self.flows[number].sender else { return Ok(None) };
        let (host, to) = (sender.receiver, SocketAddrV4::new(sender.address, SENDER_PORT));
        if self.current_host != Some(host) {
            self.hosts[host].namespace.enter()?;
            self.current_host = Some(host);
        }
        let config = &self.flows[number].config;
        let options = (config.receiver_window, config.dscp);
        let connection = TestConnection::open_connection(number, to, (count, bytes), options)?;
        let free = self.connections.iter().position(Option::is_none);
        let index = free.unwrap_or(self.connections.len());
        let event = EpollEvent::new(EpollFlags::EPOLLIN, epoll_token(READER_KIND, index));
        self.epoll.add(&connection.receiver, event)?;
        self.flows[number].open.insert(connection.port, index);
        if free.is_none() {
            self.connections.push(None);
        }
        self.connections[index] = Some(connection);
        Ok(Some(index))
    }

    /// Sends the requests of all flows of the client whose first flow is `first`.
    fn begin_requests(&mut self, first: usize) -> io::Result<()> {
        if self.flows[first].stopped {
            return Ok(());
        }
        let count = self.client_of(first).1;
        self.flows[first].client = ClientState { missing: count, ..ClientState::default() };
        let elapsed = self.elapsed();
        if let Some(player) = &mut self.flows[first].player {
            player.begin(elapsed);
        }
        (first..first + count).try_for_each(|flow| self.send_request(flow))
    }

    /// First flow and number of flows of the client of a flow.
    fn client_of(&self, number: usize) -> (usize, usize) {
        match self.flows[number].config.app {
            FlowApp::Requests { client, .. } => client,
            _ => (number, 1),
        }
    }

    fn send_request(&mut self, number: usize) -> io::Result<()> {
        let flow = &mut self.flows[number];
        let exchange = match (&mut flow.config.app, &flow.player) {
            (FlowApp::Requests { exchanges, .. }, _) => (exchanges.0)(),
            (_, Some(player)) => Exchange {
                request: STREAM_REQUEST_BYTES,
                answer: player.segment_bytes(),
                server_time: 0,
                pause: 0,
            },
            _ => return Ok(()),
        };
        flow.exchange = Some(exchange);
        let count = flow.started;
        flow.started += 1;
        let open = flow.open.values().next().copied();
        let index = match open {
            Some(index) => {
                self.start_file_on_connection(index, count, exchange.answer);
                Some(index)
            }
            None => self.open_connection(number, count, Some(exchange.answer))?,
        };
        let Some(index) = index else { return Ok(()) };
        if let Some(connection) = &mut self.connections[index] {
            connection.start_request(exchange.request);
        }
        self.write_request(index)
    }

    fn write_request(&mut self, index: usize) -> io::Result<()> {
        if let Some(connection) = &mut self.connections[index] {
            connection.write_request(&self.piece)?;
        }
        self.update_events(index)
    }

    /// Reads a request at its server, and schedules the answer if the request is complete.
    fn read_request(&mut self, index: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[index] else { return Ok(()) };
        let number = connection.flow;
        if !connection.read_request(&mut self.piece)? {
            return Ok(());
        }
        let time = self.flows[number].exchange.map_or(0, |exchange| exchange.server_time);
        if time == 0 {
            return self.answer_request(number);
        }
        self.schedule_event(
            Instant::now() + Duration::from_nanos(time),
            TimedEvent::Answer(number),
        );
        self.update_events(index)
    }

    fn answer_request(&mut self, number: usize) -> io::Result<()> {
        let Some(index) = self.flows[number].open.values().next().copied() else { return Ok(()) };
        if let Some(connection) = &mut self.connections[index] {
            connection.answer_request();
        }
        self.write_connection(index)
    }

    /// Counts an answer, and schedules the next requests of its client after the last one.
    fn finish_exchange(&mut self, number: usize, port: u16) {
        let (first, _) = self.client_of(number);
        let file = self.tally.lock_tally().files[number].get(&port).cloned().unwrap_or_default();
        let pause = self.flows[first].exchange.map_or(0, |exchange| exchange.pause);
        let client = &mut self.flows[first].client;
        client.missing = client.missing.saturating_sub(1);
        client.asked = client.asked.into_iter().chain(file.asked).min();
        client.answered = client.answered.max(file.last_left);
        if client.missing > 0 {
            return;
        }
        let latency = client.answered.saturating_sub(client.asked.unwrap_or(client.answered));
        self.tally.lock_tally().count_request(first, latency);
        let elapsed = self.elapsed();
        let player = self.flows[first].player.as_mut();
        let pause = player.map_or(pause, |player| player.add_segment(elapsed));
        let due = Instant::now() + Duration::from_nanos(pause);
        self.schedule_event(due, TimedEvent::Begin(first));
    }

    /// Asks for the events for which a connection waits.
    fn update_events(&mut self, index: usize) -> io::Result<()> {
        let Some(connection) = &self.connections[index] else { return Ok(()) };
        let [reader, writer] = connection.wanted_events();
        let event = &mut EpollEvent::new(reader, epoll_token(READER_KIND, index));
        self.epoll.modify(&connection.receiver, event)?;
        if let Some(sender) = &connection.sender {
            let event = &mut EpollEvent::new(writer, epoll_token(WRITER_KIND, index));
            self.epoll.modify(sender, event)?;
        }
        Ok(())
    }

    fn start_file_on_connection(&mut self, index: usize, number: u64, bytes: u64) {
        let Some(connection) = &mut self.connections[index] else { return };
        connection.sample_tcp_info();
        connection.start_file(number, bytes);
        let files = &mut self.tally.lock_tally().files[connection.flow];
        files.entry(connection.port).and_modify(FileTally::begin_next_file);
    }

    /// Resets the connections of a flow and starts no more files.
    fn stop_flow(&mut self, number: usize) -> io::Result<()> {
        self.flows[number].next = None;
        self.flows[number].stopped = true;
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
            READER_KIND => {
                if event.events().contains(EpollFlags::EPOLLOUT) {
                    self.write_request(number)?;
                }
                self.read_connection(number)
            }
            _ => {
                let connection = self.connections[number].as_ref();
                let sender = connection.and_then(|connection| connection.sender.as_ref());
                if event.events().contains(EpollFlags::EPOLLERR) {
                    if let Some(error) = sender.map_or(Ok(None), TcpStream::take_error)? {
                        return Err(error);
                    }
                }
                if event.events().contains(EpollFlags::EPOLLIN) {
                    self.read_request(number)?;
                }
                self.write_connection(number)
            }
        }
    }

    fn accept_connection(&mut self, number: usize) -> io::Result<()> {
        loop {
            let Some(own) = &self.flows[number].sender else { return Ok(()) };
            let (sender, from) = match own.listener.accept() {
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
        let Some(connection) = &self.connections[index] else { return Ok(()) };
        let closes = self.session_of(connection.flow).closes_after_file();
        if let Some(connection) = &mut self.connections[index] {
            connection.write_unsent_bytes(&self.piece, closes)?;
        }
        self.update_events(index)
    }

    fn read_connection(&mut self, index: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[index] else { return Ok(()) };
        if connection.read_from_socket(&mut self.piece)? && connection.delivered.is_none() {
            let (flow, port) = (connection.flow, connection.port);
            let last = self.tally.lock_tally().files[flow].get(&port).map(|file| file.last_left);
            connection.delivered = Some(last.unwrap_or(0));
            if self.session_of(flow).closes_after_file() {
                self.close_read_connection(index)?;
            }
            if matches!(self.flows[flow].config.app, FlowApp::Files { .. }) {
                self.unacked.push(index);
            } else {
                self.finish_exchange(flow, port);
            }
            self.update_events(index)?;
        }
        Ok(())
    }

    /// Closes the receiver's end after the last byte, as programs do. The FIN carries the ack, which
    /// Linux would otherwise delay by 40 ms.
    fn close_read_connection(&mut self, index: usize) -> io::Result<()> {
        let connection = self.connections[index].as_ref();
        connection.map_or(Ok(()), |connection| connection.receiver.shutdown(Shutdown::Write))
    }

    /// Ends the files whose last byte is acknowledged.
    fn finish_acked_files(&mut self) -> Result<(), LinkError> {
        for index in std::mem::take(&mut self.unacked) {
            let Some(connection) = &self.connections[index] else { continue };
            let (flow, port) = (connection.flow, connection.port);
            let (now, file) = {
                let mut tally = self.tally.lock_tally();
                let now = tally.current_link_time();
                (now, tally.files[flow].get(&port).cloned().unwrap_or_default())
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
        let session = self.session_of(flow);
        if session == ConnectionUse::Persistent {
            self.connections[index] = Some(connection);
        } else {
            self.end_connection(connection, false).map_err(link_error)?;
            self.tally.lock_tally().files[flow].remove(&port);
        }
        if session != ConnectionUse::Arriving {
            let since = Duration::from_nanos(now.saturating_sub(file.last_ack));
            self.draw_and_schedule_file(flow, host.checked_sub(since).unwrap_or(host));
        }
        Ok(())
    }

    /// Writes a line with all counters since the start.
    fn write_snapshot(&mut self) -> Result<(), LinkError> {
        let now = self.tally.lock_tally().current_link_time();
        let (now, links) = {
            let mut paths = self.paths.lock();
            let (network, now) = paths.network_at(now, &mut ());
            (now, (self.sums.0)(network, now))
        };
        let (tallies, waits, times) = {
            let mut tally = self.tally.lock_tally();
            let (waits, times) =
                (std::mem::take(&mut tally.waits), std::mem::take(&mut tally.times));
            (tally.flows.clone(), waits, times)
        };
        let [waits, times] = [waits, times].map(|counts| {
            let counts = counts.iter();
            let row = |((group, step), n): (&(u32, u64), &u64)| {
                format_json_list([u64::from(*group), *step, *n])
            };
            counts.map(row).collect::<Vec<_>>().join(",")
        });
        let mut stats: Vec<SenderStats> = self.flows.iter().map(|flow| flow.ended).collect();
        for connection in self.connections.iter_mut().flatten() {
            stats[connection.flow].add_stats(connection.sample_tcp_info());
        }
        let elapsed = self.elapsed();
        let mut rows = Vec::new();
        for ((flow, tally), stats) in self.flows.iter_mut().zip(&tallies).zip(stats) {
            if let Some(player) = &mut flow.player {
                player.play_until(elapsed);
            }
            rows.push(flow.format_counters_row(tally, stats).map_err(LinkError::Loop)?);
        }
        let (links, rows) = (format_json_list(links), rows.join(","));
        let line = format!(
            "{{\"now_ns\":{now},\"links\":{links},\"waits\":[{waits}],\"times\":[{times}],\
             \"flows\":[{rows}]}}"
        );
        write_key_value_line(self.answer, "snapshot", &line)
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
        assert!(next_task_time(start + REPORT_INTERVAL, start) >= now + long);
        assert_eq!(next_task_time(now + 4 * long, start), now + 4 * long);
    }
}
