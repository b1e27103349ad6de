//! Web pages: a browser requests the objects of a page as it finds them, over connections to their
//! hosts.
//!
//! ```text
//!  found (part of the parent received) --(delay)--> waits for a connection of its host --> request
//!     ^                                                                                     |
//!     |                         answer <-- frames by priority or in turn <--(server time)-- v
//!     |___________________________|
//! ```
//!
//! The flows of a user are its connections, host by host. With HTTP/1.1, a connection carries one
//! request at a time. Otherwise a host has one connection, on which all answers share the stream of
//! the server. The server's stream consists of parts, one or more per object. With QUIC, parts of
//! different objects may arrive in any order, because its streams do not block each other.

use crate::clock::{Nanos, seconds_to_nanos};
use crate::flows::apps::AppState;
use crate::flows::config::{AnswerOrder, FlowTraffic, PageObject, PageTraffic};
use crate::flows::parcel::{CLIENT, NOT_WANTED, SERVER};
use crate::flows::{FlowSimulation, FlowTimer};
use crate::probe::{ClassCell, SenderListener, TimeKind};
use crate::random::RandomSource;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::num::NonZeroU64;

/// Bytes of a DATA frame: the default of HTTP/2 (RFC 9113, section 4.2).
const FRAME_BYTES: u64 = 16_384;

/// A connection as its client sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ConnectionPhase {
    /// The connection has not been used for this page yet.
    #[default]
    Unused,
    /// The handshake is under way.
    Opening,
    /// Requests can be sent.
    Free,
    /// HTTP/1.1: a request is under way.
    Busy,
}

/// A part of the stream of one direction that belongs to one object.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: u64,
    end: u64,
    object: u32,
    /// Received bytes that are counted.
    counted: u64,
}

/// An answer that the server has not written completely.
#[derive(Clone, Copy, Debug)]
struct Answer {
    object: u32,
    urgency: u8,
    left: u64,
    /// Rest of the current frame.
    frame: u64,
}

/// State of a connection of a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageConnection {
    phase: ConnectionPhase,
    /// Requests that the server has not received completely, and bytes of all requests.
    requests: VecDeque<Part>,
    requested: u64,
    /// Answers that the server prepares, with the times at which they are ready.
    preparing: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Answers to write, in this order.
    answers: VecDeque<Answer>,
    /// Parts of written answers that the client has not received, and bytes of all of them.
    parts: VecDeque<Part>,
    written: u64,
    /// Whether answers are being written, and must be written again.
    is_writing: bool,
    writes_again: bool,
}

impl PageConnection {
    /// Begins a new connection in the same memory.
    fn restart(&mut self) {
        self.requests.clear();
        self.preparing.clear();
        self.answers.clear();
        self.parts.clear();
        (self.requested, self.written) = (0, 0);
    }

    /// An answer of `bytes` is ready: it is written in turn, or before all that are less urgent.
    fn add_answer(&mut self, object: u32, bytes: u64, urgency: u8, order: AnswerOrder) {
        let at = match order {
            AnswerOrder::InTurn => self.answers.len(),
            AnswerOrder::Priority => self.answers.partition_point(|other| other.urgency <= urgency),
        };
        let frame = FRAME_BYTES.min(bytes);
        self.answers.insert(at, Answer { object, urgency, left: bytes, frame });
    }

    /// The socket accepted `bytes` of the first answer.
    fn on_written(&mut self, bytes: u64, order: AnswerOrder) {
        let Some(answer) = self.answers.front_mut() else { return };
        answer.left -= bytes;
        answer.frame -= bytes;
        let (object, left, is_end_of_frame) = (answer.object, answer.left, answer.frame == 0);
        if is_end_of_frame {
            answer.frame = FRAME_BYTES.min(left);
        }
        let (start, end) = (self.written, self.written + bytes);
        self.written = end;
        match self.parts.back_mut() {
            Some(last) if (last.object, last.end) == (object, start) => last.end = end,
            _ => self.parts.push_back(Part { start, end, object, counted: 0 }),
        }
        if left == 0 {
            self.answers.pop_front();
        } else if is_end_of_frame && order == AnswerOrder::InTurn {
            self.answers.rotate_left(1);
        }
    }
}

/// Counts received bytes of parts of a stream, and removes complete parts. `received` returns the
/// received bytes between two positions.
fn take_received(
    parts: &mut VecDeque<Part>,
    received: impl Fn(u64, u64) -> u64,
    received_end: u64,
    mut on_bytes: impl FnMut(u32, u64),
) {
    let mut has_complete = false;
    for part in parts.iter_mut().take_while(|part| part.start < received_end) {
        let bytes = received(part.start, part.end);
        if bytes > part.counted {
            on_bytes(part.object, bytes - part.counted);
            part.counted = bytes;
        }
        has_complete |= bytes == part.end - part.start;
    }
    if has_complete {
        parts.retain(|part| part.counted < part.end - part.start);
    }
}

/// Bytes of an answer that a browser can read: those of complete records.
fn readable_bytes(received: u64, size: u64, record: NonZeroU64) -> u64 {
    if received == size { size } else { received - received % record }
}

/// Progress of an object.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    received: u64,
    /// Children that were found.
    found: u32,
    server_time: Nanos,
}

/// State of the browser of a user.
#[derive(Clone, Debug, Default)]
pub(crate) struct Browser {
    page: usize,
    began: Nanos,
    /// Objects that are not complete.
    missing: u32,
    objects: Vec<Progress>,
    /// Objects that will be requested, with the times of their requests.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Objects that wait for a connection, by host.
    waiting: Vec<Vec<u32>>,
    next_page: Option<Nanos>,
    stopped: bool,
}

/// State of a flow of a user.
#[derive(Clone, Debug)]
pub(crate) struct PageState {
    /// First flow of the user.
    first: usize,
    connection: PageConnection,
    /// Used only in the first flow of a user.
    browser: Browser,
}

impl PageState {
    /// State of a flow whose user begins with flow `first`.
    pub fn new(first: usize) -> Self {
        Self { first, connection: PageConnection::default(), browser: Browser::default() }
    }

    /// Stops the browser.
    pub fn stop(&mut self) {
        self.browser.stopped = true;
    }
}

/// Traffic of browsers.
fn page_traffic(traffic: &FlowTraffic) -> Option<&PageTraffic> {
    if let FlowTraffic::Page(traffic) = traffic { Some(traffic) } else { None }
}

impl FlowSimulation {
    fn page_of(&mut self, flow: usize) -> Option<(&PageTraffic, &mut PageState)> {
        let state = &mut self.flows[flow];
        match (&self.classes[state.record.class()].traffic, &mut state.app) {
            (FlowTraffic::Page(traffic), AppState::Page(app)) => Some((traffic, app)),
            _ => None,
        }
    }

    /// The user that begins with flow `first` loads a page.
    pub(in crate::flows) fn begin_page(&mut self, first: usize) {
        let now = self.now;
        let state = &mut self.flows[first];
        let class = &self.classes[state.record.class()];
        let (Some(traffic), AppState::Page(app)) = (page_traffic(&class.traffic), &mut state.app)
        else {
            return;
        };
        let browser = &mut app.browser;
        // All random numbers of a page are drawn here, in the order of its objects, so that they do
        // not depend on the protocol.
        browser.page = state.off_times.draw_below(traffic.pages.len() as u32) as usize;
        let objects = &traffic.pages[browser.page].objects;
        (browser.began, browser.missing) = (now, objects.len() as u32);
        browser.objects.clear();
        browser.objects.extend(objects.iter().map(|object| {
            let drawn = traffic.server_time.draw_value(&mut state.sizes);
            let server_time = seconds_to_nanos(object.server_time_s + drawn);
            Progress { server_time, ..Progress::default() }
        }));
        browser.waiting.resize_with(traffic.hosts.len(), Vec::new);
        let roots = objects.iter().enumerate().filter(|(_, object)| object.parent.is_none());
        for (index, object) in roots {
            let due = now + seconds_to_nanos(object.delay_s);
            browser.due.push(Reverse((due, index as u32)));
        }
        self.request_due_objects(first);
    }

    /// Requests all objects whose time has come, and sets the timer of the next one.
    fn request_due_objects(&mut self, first: usize) {
        let now = self.now;
        loop {
            let Some((traffic, app)) = self.page_of(first) else { return };
            let browser = &mut app.browser;
            let Some(Reverse((due, object))) = browser.due.peek().copied() else { break };
            if due > now {
                self.timers.set(FlowTimer::Application, first, CLIENT, due);
                break;
            }
            browser.due.pop();
            let host = traffic.pages[browser.page].objects[object as usize].host;
            browser.waiting[host].push(object);
        }
        let hosts = self.page_of(first).map_or(0, |(traffic, _)| traffic.hosts.len());
        for host in 0..hosts {
            if self.page_of(first).is_some_and(|(_, app)| !app.browser.waiting[host].is_empty()) {
                self.send_waiting_requests(first, host);
            }
        }
    }

    /// Sends waiting requests to a host as connections allow, and opens connections for others.
    fn send_waiting_requests(&mut self, first: usize, host: usize) {
        let Some((traffic, _)) = self.page_of(first) else { return };
        let per_host = traffic.connections_per_host.get() as usize;
        let flows = first + host * per_host..first + (host + 1) * per_host;
        let (mut opening, mut unused) = (0, None);
        for flow in flows {
            match self.page_of(flow).map(|(_, app)| app.connection.phase) {
                Some(ConnectionPhase::Free) => self.send_requests_of_host(first, host, flow),
                Some(ConnectionPhase::Opening) => opening += 1,
                Some(ConnectionPhase::Unused) => unused = unused.or(Some(flow)),
                _ => (),
            }
        }
        let Some(flow) = unused else { return };
        let waiting = self.page_of(first).map_or(0, |(_, app)| app.browser.waiting[host].len());
        if waiting > opening {
            self.open_page_connection(flow);
            // Opens another connection if more requests wait. Without a handshake, sends requests
            // at once.
            self.send_waiting_requests(first, host);
        }
    }

    fn open_page_connection(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        if state.connection == 0 {
            self.wire.probes.record_transfer_start(self.now, &mut state.record, u32::MAX);
        }
        self.start_connection(flow, &[SERVER, CLIENT]);
        let state = &mut self.flows[flow];
        let is_opening = state.ends[CLIENT].endpoint.as_ref().is_some_and(|end| end.is_opening());
        if let AppState::Page(app) = &mut state.app {
            app.connection.restart();
            app.connection.phase =
                if is_opening { ConnectionPhase::Opening } else { ConnectionPhase::Free };
        }
        state.wanted = [NOT_WANTED; 2];
        if is_opening {
            self.transmit(flow, CLIENT);
        }
    }

    /// The session of an end is open.
    pub(in crate::flows) fn on_page_connection_open(&mut self, flow: usize, end: usize) {
        if end == SERVER {
            return self.send_opening(flow);
        }
        let Some((traffic, app)) = self.page_of(flow) else { return };
        if app.connection.phase != ConnectionPhase::Opening {
            return;
        }
        app.connection.phase = ConnectionPhase::Free;
        let first = app.first;
        let host = (flow - first) / traffic.connections_per_host.get() as usize;
        self.send_requests_of_host(first, host, flow);
    }

    /// The server sends the messages that precede all answers.
    fn send_opening(&mut self, flow: usize) {
        let messages = self.page_of(flow).map_or(0, |(traffic, _)| traffic.opening.len());
        for message in 0..messages {
            let Some((traffic, app)) = self.page_of(flow) else { return };
            let bytes = traffic.opening[message];
            app.connection.written += bytes;
            self.write(flow, SERVER, bytes);
            self.transmit(flow, SERVER);
        }
    }

    /// Sends the waiting requests of a host that a free connection may carry, most urgent first.
    fn send_requests_of_host(&mut self, first: usize, host: usize, flow: usize) {
        let mut bytes = 0;
        loop {
            let Some((traffic, app)) = self.page_of(first) else { return };
            let browser = &mut app.browser;
            let objects = &traffic.pages[browser.page].objects;
            let waiting = &mut browser.waiting[host];
            let urgent = |index: &usize| objects[waiting[*index] as usize].urgency;
            let Some(next) = (0..waiting.len()).min_by_key(urgent) else { break };
            let object = waiting.remove(next);
            let (length, multiplexes) = (objects[object as usize].request, traffic.multiplexes);
            let Some((_, app)) = self.page_of(flow) else { return };
            let connection = &mut app.connection;
            let start = connection.requested;
            connection.requested += length;
            connection.requests.push_back(Part {
                start,
                end: connection.requested,
                object,
                counted: 0,
            });
            bytes += length;
            if !multiplexes {
                connection.phase = ConnectionPhase::Busy;
                break;
            }
        }
        if bytes > 0 {
            self.flows[flow].wanted = [0; 2];
            self.write(flow, CLIENT, bytes);
            self.transmit(flow, CLIENT);
        }
    }

    /// Data of requests has arrived at a server, or data of answers at a browser.
    pub(in crate::flows) fn on_page_data(&mut self, flow: usize, end: usize) {
        let now = self.now;
        let state = &mut self.flows[flow];
        let class = &self.classes[state.record.class()];
        let (Some(endpoint), Some(tcp), AppState::Page(app)) =
            (&state.ends[end].endpoint, class.tcp(end), &mut state.app)
        else {
            return;
        };
        let (first, connection) = (app.first, &mut app.connection);
        let parts = if end == SERVER { &mut connection.requests } else { &mut connection.parts };
        let mut news = std::mem::take(&mut self.page_news);
        let received = |start, end| endpoint.received_between(start, end, tcp);
        take_received(parts, received, endpoint.received_end(tcp), |object, bytes| {
            news.push((object, bytes));
        });
        let mut has_found_objects = false;
        for (object, bytes) in news.drain(..) {
            if end == CLIENT {
                has_found_objects |= self.on_object_data(first, flow, object, bytes);
                continue;
            }
            let Some((traffic, app)) = self.page_of(first) else { break };
            let browser = &app.browser;
            let config = &traffic.pages[browser.page].objects[object as usize];
            let server_time = browser.objects[object as usize].server_time;
            let (length, answer, urgency) = (config.request, config.bytes, config.urgency);
            let Some((traffic, app)) = self.page_of(flow) else { break };
            // A request of several packets is complete with its last byte.
            if bytes < length && app.connection.requests.iter().any(|part| part.object == object) {
                continue;
            }
            if server_time > 0 {
                app.connection.preparing.push(Reverse((now + server_time, object)));
                self.timers.set(FlowTimer::Application, flow, SERVER, now + server_time);
            } else {
                app.connection.add_answer(object, answer, urgency, traffic.order);
            }
        }
        self.page_news = news;
        if end == SERVER {
            self.write_answers(flow);
        } else {
            if has_found_objects {
                self.request_due_objects(first);
            }
            self.finish_page_if_complete(first);
        }
    }

    /// The browser has received bytes of an object; returns whether it has found further objects.
    fn on_object_data(&mut self, first: usize, flow: usize, object: u32, bytes: u64) -> bool {
        let now = self.now;
        let class = self.flows[first].record.class();
        let Some((traffic, app)) = self.page_of(first) else { return false };
        let (page, browser) = (&traffic.pages[app.browser.page], &mut app.browser);
        let progress = &mut browser.objects[object as usize];
        let size = page.objects[object as usize].bytes;
        let readable = |received| readable_bytes(received, size, traffic.record);
        let was_readable = readable(progress.received) > 0;
        progress.received += bytes;
        let (is_complete, readable) = (progress.received == size, readable(progress.received));
        let is_first = !was_readable && readable > 0;
        let found_before = progress.found;
        let children = &page.children[object as usize][found_before as usize..];
        for child in children {
            let config = &page.objects[*child as usize];
            if config.found_at > readable {
                break;
            }
            progress.found += 1;
            browser.due.push(Reverse((now + seconds_to_nanos(config.delay_s), *child)));
        }
        let has_found_objects = progress.found > found_before;
        browser.missing -= u32::from(is_complete);
        let (elapsed, multiplexes) = (now - browser.began, traffic.multiplexes);
        if object == 0 {
            let probes = &mut self.wire.probes;
            if is_first {
                probes.add_time(class, TimeKind::FirstByte, elapsed);
            }
            if is_complete {
                probes.add_time(class, TimeKind::FirstObject, elapsed);
            }
        }
        if is_complete && !multiplexes {
            let Some((traffic, app)) = self.page_of(flow) else { return has_found_objects };
            app.connection.phase = ConnectionPhase::Free;
            let host = (flow - first) / traffic.connections_per_host.get() as usize;
            self.send_requests_of_host(first, host, flow);
        }
        has_found_objects
    }

    fn finish_page_if_complete(&mut self, first: usize) {
        let now = self.now;
        let state = &mut self.flows[first];
        let class = state.record.class();
        let (Some(traffic), AppState::Page(app)) =
            (page_traffic(&self.classes[class].traffic), &mut state.app)
        else {
            return;
        };
        let browser = &mut app.browser;
        if browser.missing > 0 || browser.next_page.is_some() {
            return;
        }
        let next = now + seconds_to_nanos(traffic.pause.draw_value(&mut state.off_times));
        browser.next_page = Some(next);
        let probes = &mut self.wire.probes;
        probes.counters.add_to_class(class, ClassCell::Pages, 1);
        probes.counters.add_to_class(class, ClassCell::PageTime, now - browser.began);
        probes.add_time(class, TimeKind::Page, now - browser.began);
        self.timers.set(FlowTimer::Application, first, CLIENT, next);
        let (connections, persistent) = (traffic.connections(), traffic.persistent);
        for flow in first..first + connections {
            let Some((_, app)) = self.page_of(flow).filter(|_| !persistent) else { return };
            app.connection.phase = ConnectionPhase::Unused;
        }
    }

    /// The client requests an object or the next page that is due; the server writes an answer that
    /// is ready.
    pub(in crate::flows) fn on_page_timer(&mut self, flow: usize, end: usize) {
        let now = self.now;
        let Some((_, app)) = self.page_of(flow) else { return };
        if end == CLIENT {
            let browser = &mut app.browser;
            if browser.stopped {
                return;
            }
            if browser.next_page.is_some_and(|due| due <= now) {
                browser.next_page = None;
                return self.begin_page(flow);
            }
            return self.request_due_objects(flow);
        }
        let first = app.first;
        let mut ready = std::mem::take(&mut self.page_news);
        if let Some((_, app)) = self.page_of(flow) {
            let preparing = &mut app.connection.preparing;
            while let Some(Reverse((_, object))) =
                preparing.peek().copied().filter(|Reverse((due, _))| *due <= now)
            {
                preparing.pop();
                ready.push((object, 0));
            }
        }
        for (object, _) in ready.drain(..) {
            let Some((traffic, app)) = self.page_of(first) else { break };
            let PageObject { bytes, urgency, .. } =
                traffic.pages[app.browser.page].objects[object as usize];
            let Some((traffic, app)) = self.page_of(flow) else { break };
            app.connection.add_answer(object, bytes, urgency, traffic.order);
        }
        self.page_news = ready;
        self.write_answers(flow);
    }

    /// Writes answers until the socket accepts no more, and sends them. The socket accepts more as
    /// soon as it has sent some, so that the next frame is chosen as late as possible.
    pub(in crate::flows) fn write_answers(&mut self, flow: usize) {
        let Some((_, app)) = self.page_of(flow) else { return };
        app.connection.writes_again = true;
        if std::mem::replace(&mut app.connection.is_writing, true) {
            return;
        }
        while let Some((_, app)) = self.page_of(flow) {
            app.connection.is_writing = std::mem::replace(&mut app.connection.writes_again, false);
            if !app.connection.is_writing {
                return;
            }
            self.fill_socket(flow);
            self.transmit(flow, SERVER);
        }
    }

    fn fill_socket(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        let class = &self.classes[state.record.class()];
        let (Some(traffic), AppState::Page(app), Some(endpoint), Some(tcp)) = (
            page_traffic(&class.traffic),
            &mut state.app,
            &mut state.ends[SERVER].endpoint,
            class.tcp(SERVER),
        ) else {
            return;
        };
        while let Some(answer) = app.connection.answers.front() {
            let probes = &mut self.wire.probes;
            let listener = &mut SenderListener::new(probes, &mut state.record, flow as u32);
            let bytes = answer.frame;
            let accepted = endpoint.write_to_buffer(self.now, bytes, tcp, listener);
            if accepted > 0 {
                app.connection.on_written(accepted, traffic.order);
            }
            if accepted < bytes {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::config::Page;

    /// Objects in the order in which all answers are written, a frame at a time.
    fn written(answers: &[(u32, u64, u8)], order: AnswerOrder) -> Vec<(u32, u64)> {
        let mut connection = PageConnection::default();
        for (object, bytes, urgency) in answers {
            connection.add_answer(*object, *bytes, *urgency, order);
        }
        let mut frames = Vec::new();
        while let Some(Answer { object, frame, .. }) = connection.answers.front().copied() {
            frames.push((object, frame));
            connection.on_written(frame, order);
        }
        let total: u64 = connection.parts.iter().map(|part| part.end - part.start).sum();
        assert_eq!(total, connection.written);
        frames
    }

    #[test]
    fn answers_are_written_by_urgency_or_in_turn() {
        let answers = [(0, 20_000, 3), (1, 20_000, 1), (2, 100, 3)];
        let (full, rest) = (FRAME_BYTES, 20_000 - FRAME_BYTES);
        assert_eq!(
            written(&answers, AnswerOrder::Priority),
            [(1, full), (1, rest), (0, full), (0, rest), (2, 100)]
        );
        assert_eq!(
            written(&answers, AnswerOrder::InTurn),
            [(0, full), (1, full), (2, 100), (0, rest), (1, rest)]
        );
    }

    #[test]
    fn rfc_8446_5_1_only_complete_records_are_read() {
        let record = NonZeroU64::new(FRAME_BYTES).unwrap();
        let readable = [100, FRAME_BYTES - 1, FRAME_BYTES, 2 * FRAME_BYTES - 1, 40_000]
            .map(|received| readable_bytes(received, 40_000, record));
        assert_eq!(readable, [0, 0, FRAME_BYTES, FRAME_BYTES, 40_000]);
        assert_eq!(readable_bytes(100, 40_000, NonZeroU64::MIN), 100);
    }

    #[test]
    fn parts_of_other_objects_count_although_earlier_bytes_are_missing() {
        let part = |start, end, object| Part { start, end, object, counted: 0 };
        let mut parts = VecDeque::from([part(0, 100, 7), part(100, 300, 8), part(300, 400, 7)]);
        let mut take = |held: &[(u64, u64)]| {
            let received = |start: u64, end: u64| {
                let overlap =
                    |range: &(u64, u64)| range.1.min(end).saturating_sub(range.0.max(start));
                held.iter().map(overlap).sum()
            };
            let mut counted = Vec::new();
            let end = held.iter().map(|range| range.1).max().unwrap_or(0);
            take_received(&mut parts, received, end, |object, bytes| counted.push((object, bytes)));
            counted
        };
        assert_eq!(take(&[(50, 250)]), [(7, 50), (8, 150)]);
        assert_eq!(take(&[(50, 250)]), []);
        assert_eq!(take(&[(50, 400)]), [(8, 50), (7, 100)]);
        assert_eq!(take(&[(0, 400)]), [(7, 50)]);
        assert!(parts.is_empty());
    }

    #[test]
    fn pages_have_children_in_the_order_in_which_they_are_found() {
        let object = |bytes, parent, found_at| PageObject {
            bytes,
            request: 100,
            host: 0,
            parent,
            found_at,
            delay_s: 0.0,
            server_time_s: 0.0,
            urgency: 3,
        };
        let objects = vec![object(50, None, 0), object(9, Some(0), 40), object(9, Some(0), 10)];
        assert_eq!(Page::try_from(objects.clone()).unwrap().children[0], [2, 1]);
        let with = |changed| Page::try_from(vec![objects[0].clone(), changed]).is_err();
        assert!(with(object(9, Some(0), 51)) && with(object(9, Some(1), 0)));
        assert!(with(object(9, Some(7), 0)) && with(object(0, Some(0), 0)));
    }
}
