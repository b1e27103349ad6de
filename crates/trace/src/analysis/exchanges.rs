//! Requests and responses: data of the client, then data of the server, in turn.
//!
//! A request begins with new data of the client after a response, and its response with the next new data of the
//! server. The two are separable if the client had received all before it sent the request, and the server had
//! received the request before it responded: the acknowledgement numbers tell. With pipelining, or several streams in
//! a connection, they are not, and the exchange is marked.

use std::mem::take;

use super::flow::Flow;
use super::direction_stats::EventQuota;
use super::side::Tap;
use crate::segment::{Nanos, Segment};

/// An end with data reacts to a segment from the other one within this time.
const REACTION: Nanos = 1_500_000;
/// Least and most time of a delayed acknowledgement: Linux delays by 40 ms and more, Windows and BSD by up to 200 ms;
/// RFC 1122, section 4.2.3.2, allows less than 500 ms.
const DELAYED: std::ops::Range<Nanos> = 20_000_000..500_000_000;
/// Segments that a sender may have in flight at first (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// The tap is away from an end from this round trip on.
const AWAY: Nanos = 1_000_000;
/// Pacing spreads a window over a round trip, so that gaps longer than this part of one are the server's.
const PACED_PART: Nanos = 4;

/// A request and its response. Times are those of the tap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// First byte of the request, ns since 1970.
    pub time: Nanos,
    /// Payload of the request.
    pub request_bytes: u64,
    /// Payload of the response; 0 if there is none.
    pub response_bytes: u64,
    /// From the first byte of the request to the first byte of the response.
    pub first_byte: Nanos,
    /// From the first byte of the request to the last byte of the response, retransmissions included.
    pub last_byte: Nanos,
    /// From the end of the request to the first byte of the response: the server, and the round trip to it.
    pub answer: Nanos,
    /// Gaps within the response in which the server had nothing to send.
    pub pauses: Nanos,
    /// Time until data arrived that had to be retransmitted.
    pub repair: Nanos,
    /// Time for which a small segment waited for the acknowledgement of an earlier one (RFC 896).
    pub held: Nanos,
    /// The part of that time for which the receiver delayed its acknowledgement (RFC 1122, section 4.2.3.2).
    pub delayed: Nanos,
    /// Packets retransmitted, of both directions.
    pub retransmissions: u32,
    /// The connection had lost packets of the server before.
    pub after_losses: bool,
    /// Client and server did not wait for each other: its times belong to several requests.
    pub overlaps: bool,
}

/// State of a direction before a segment of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowState {
    next: u64,
    acknowledged: u64,
    /// Last data sent, and the last acknowledgement of new data, if it came later.
    sent: Nanos,
    moved: Nanos,
    /// Last segment from the other end.
    heard: Nanos,
    retransmissions: u64,
    /// Nothing was in flight, after data had been.
    is_idle: bool,
}

impl Flow {
    #[inline(always)]
    pub(crate) fn state(&self) -> FlowState {
        FlowState {
            next: self.next,
            acknowledged: self.acknowledged,
            sent: self.last_sent,
            moved: self.last_data.unwrap_or(0),
            heard: self.recovery.last_peer_time(),
            retransmissions: self.counts.retransmissions,
            is_idle: self.is_idle(),
        }
    }

    /// Nothing is in flight, after data have been.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.next == self.acknowledged && self.last_sent > 0
    }

    fn outstanding(&self) -> bool {
        self.acknowledged < self.next
    }
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    NoRequest,
    Client,
    Server,
}

/// Exchanges of a connection with data in both directions.
#[derive(Clone, Debug)]
pub(crate) struct Exchanges {
    client: usize,
    turn: Turn,
    current: Exchange,
    /// Last needed transmission of the request, and of the response.
    asked: Nanos,
    answered: Nanos,
    /// The last segment of the response.
    tail: Tail,
    /// Payload of both directions before the current exchange.
    bytes: [u64; 2],
    kept: Vec<Exchange>,
    most: usize,
    omitted: u64,
}

/// Payload of a segment, and of the largest one so far.
#[derive(Clone, Copy, Debug, Default)]
struct Tail {
    payload: u32,
    largest: u32,
}

/// A data segment, and both directions after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataEvent<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) from: usize,
    pub(crate) before: &'a FlowState,
    pub(crate) flows: &'a [Flow; 2],
    pub(crate) tap: &'a Tap,
    pub(crate) quota: &'a EventQuota,
}

impl DataEvent<'_> {
    /// Round trip between the tap and an end.
    fn to(&self, end: usize) -> Nanos {
        self.tap.round_trip(end).unwrap_or(0)
    }

    /// The sender answers within this time at the tap; a quarter of the round trip is left for queues.
    fn reaction(&self) -> Nanos {
        let near = self.to(self.from);
        near + near / 4 + REACTION
    }

    fn tail(&self) -> Tail {
        Tail { payload: self.segment.payload, largest: self.flows[self.from].largest }
    }

    /// Whether a segment of this direction ends with a full packet: the sender may have had more to send. Packets may
    /// be smaller than the MSS by the path's MTU, but not much.
    fn full(&self, Tail { payload, largest }: Tail) -> bool {
        let [flow, other] = [self.from, 1 - self.from].map(|end| &self.flows[end]);
        let stamps = flow.announced.timestamps && other.announced.timestamps;
        let mss = other
            .announced
            .mss
            .map_or(0, |mss| u32::from(mss).saturating_sub(if stamps { 12 } else { 0 }));
        let full = if largest >= mss / 5 * 4 { largest } else { mss };
        payload >= full && payload % full.max(1) == 0
    }

    /// How long this small segment waited for the acknowledgement of the data before it (RFC 896), and how much of
    /// that is a delayed acknowledgement: it left when the acknowledgement came. Nothing else was in flight.
    /// `bytes`: payload of the message, this segment included.
    fn held(&self, bytes: u64) -> Option<(Nanos, Nanos)> {
        let FlowState { sent, moved, .. } = *self.before;
        let flow = &self.flows[self.from];
        let since = self.segment.time.saturating_sub(moved);
        let prompt = since <= self.reaction() && since + REACTION >= self.to(self.from);
        if !(prompt && !self.full(self.tail()) && moved > sent) {
            return None;
        }
        let delay = moved.saturating_sub(sent).saturating_sub(self.to(1 - self.from));
        let delayed = if DELAYED.contains(&delay) { delay } else { 0 };
        // Otherwise the congestion window may have held it.
        let early = bytes <= INITIAL_WINDOW * u64::from(flow.largest);
        let nagle = early && flow.counts.retransmissions == 0;
        let held = self.segment.time.saturating_sub(sent);
        (delayed > 0 || nagle).then_some((held, delayed))
    }

    /// Whether neither an acknowledgement nor pacing explains when the segment was sent, `gap` after the last one.
    fn unprompted(&self, gap: Nanos) -> bool {
        let quiet = self.segment.time.saturating_sub(self.before.heard);
        let round = self.to(0).saturating_add(self.to(1));
        quiet > self.reaction() && gap > REACTION + round / PACED_PART
    }
}

impl Exchanges {
    /// Both ends have sent data, or the client again after a pause. `before`: what stood before the current segment
    /// from the end `from`.
    pub(crate) fn new(client: usize, most: usize, event: &DataEvent<'_>) -> Box<Self> {
        let flow = &event.flows[client];
        let sender = event.from == client;
        let sent = if sender { event.before.sent } else { flow.last_sent };
        let mut found = Box::new(Self {
            client,
            turn: Turn::NoRequest,
            current: Exchange::default(),
            asked: sent,
            answered: 0,
            tail: Tail::default(),
            bytes: [0; 2],
            kept: Vec::new(),
            most,
            omitted: 0,
        });
        if sent > 0 {
            found.turn = Turn::Client;
            found.current.time = flow.first_data.unwrap_or(sent);
            found.repairs_a_lone_request(flow, sender);
        }
        found
    }

    /// Of a request before, only the last transmission is known.
    fn repairs_a_lone_request(&mut self, flow: &Flow, sender: bool) {
        if !sender && flow.counts.retransmissions > 0 {
            self.current.repair = self.asked.saturating_sub(self.current.time);
            self.current.retransmissions = flow.counts.retransmissions as u32;
        }
    }

    /// A data segment.
    #[inline]
    pub(crate) fn read(&mut self, event: &DataEvent<'_>) {
        let flow = &event.flows[event.from];
        let resent = flow.counts.retransmissions - event.before.retransmissions;
        if flow.next > event.before.next {
            if event.from == self.client {
                self.asks(event);
            } else {
                self.responds(event);
            }
        } else if event.before.acknowledged < event.before.next {
            self.repeats(event, resent > 0);
        }
        self.current.retransmissions += resent as u32;
    }

    /// New data of the client.
    #[inline]
    fn asks(&mut self, event: &DataEvent<'_>) {
        if self.turn == Turn::Client {
            self.holds(event);
        } else {
            self.begin(event);
        }
        self.asked = event.segment.time;
    }

    #[inline(never)]
    fn begin(&mut self, event: &DataEvent<'_>) {
        // It had not received the whole response.
        let overlaps = event.flows[1 - self.client].outstanding() && self.turn == Turn::Server;
        self.current.overlaps |= overlaps;
        self.finish(event.flows, event.quota, u64::from(event.segment.payload));
        let server = &event.flows[1 - self.client];
        self.current = Exchange {
            time: event.segment.time,
            overlaps,
            after_losses: server.counts.retransmissions > 0,
            ..Exchange::default()
        };
        self.turn = Turn::Client;
    }

    /// New data of the server.
    #[inline]
    fn responds(&mut self, event: &DataEvent<'_>) {
        let time = event.segment.time;
        match self.turn {
            Turn::NoRequest => return,
            Turn::Client => self.begin_response(event),
            Turn::Server => {
                let gap = time.saturating_sub(self.answered);
                if !self.holds(event) && event.unprompted(gap) {
                    self.lags(event, gap);
                }
            }
        }
        self.answered = time;
        self.tail = event.tail();
    }

    #[inline(never)]
    fn begin_response(&mut self, event: &DataEvent<'_>) {
        let time = event.segment.time;
        self.turn = Turn::Server;
        self.current.first_byte = time.saturating_sub(self.current.time);
        self.current.answer = time.saturating_sub(self.asked);
        let early = event.flows[self.client].outstanding();
        self.current.overlaps |= early;
        // The end of the response before is not known, either.
        if let Some(last) = self.kept.last_mut().filter(|_| early) {
            last.overlaps = true;
        }
    }

    /// Adds the time for which a segment within a message waited for an acknowledgement; whether it did.
    #[inline(always)]
    fn holds(&mut self, event: &DataEvent<'_>) -> bool {
        // Bulk data are most often sent while others are in flight.
        event.before.is_idle && self.add_held(event)
    }

    #[inline(never)]
    fn add_held(&mut self, event: &DataEvent<'_>) -> bool {
        let all = event.flows[event.from].counts.unique_bytes;
        let held = event.held(all.saturating_sub(self.bytes[event.from]));
        let (whole, delayed) = held.unwrap_or_default();
        self.current.held = self.current.held.saturating_add(whole);
        self.current.delayed = self.current.delayed.saturating_add(delayed);
        held.is_some()
    }

    /// Neither an acknowledgement nor pacing explains a gap within the response: the server had nothing to send before,
    /// or its last packets were lost before the tap.
    #[inline(never)]
    fn lags(&mut self, event: &DataEvent<'_>, gap: Nanos) {
        let round = event.to(0).saturating_add(event.to(1));
        if !event.full(self.tail) {
            self.current.pauses = self.current.pauses.saturating_add(gap);
        } else if event.to(event.from) > AWAY && gap > round.saturating_mul(2) {
            self.current.repair = self.current.repair.saturating_add(gap);
            self.current.retransmissions += 1;
        }
    }

    /// Data below the highest, while some were not acknowledged.
    #[inline(never)]
    fn repeats(&mut self, event: &DataEvent<'_>, resent: bool) {
        let time = event.segment.time;
        let client = event.from == self.client;
        let last = match self.turn {
            Turn::Client if client => &mut self.asked,
            Turn::Server if !client => &mut self.answered,
            _ => return,
        };
        if resent {
            self.current.repair = self.current.repair.saturating_add(time.saturating_sub(*last));
        }
        *last = time;
    }

    /// The exchange ends; `next`: payload of the client that already belongs to the next one.
    fn finish(&mut self, flows: &[Flow; 2], quota: &EventQuota, next: u64) {
        let mut all = [0, 1].map(|end: usize| flows[end].counts.unique_bytes);
        all[self.client] = all[self.client].saturating_sub(next);
        let [before, after] = [self.bytes, all];
        self.bytes = all;
        if self.turn == Turn::NoRequest {
            return;
        }
        let mut found = take(&mut self.current);
        let server = 1 - self.client;
        found.request_bytes = after[self.client].saturating_sub(before[self.client]);
        if self.turn == Turn::Server {
            found.response_bytes = after[server].saturating_sub(before[server]);
            found.last_byte = self.answered.saturating_sub(found.time);
        }
        if self.kept.len() < self.most && quota.take() {
            self.kept.push(found);
        } else {
            self.omitted += 1;
        }
    }

    /// Whether the last request has no response; `None` before the first request.
    pub(crate) fn waits(&self) -> Option<bool> {
        (self.turn != Turn::NoRequest).then_some(self.turn == Turn::Client)
    }

    /// How long the connection was idle before the current request.
    pub(crate) fn idle(&self) -> Nanos {
        if self.answered > 0 { self.current.time.saturating_sub(self.answered) } else { 0 }
    }

    /// The exchanges in order, and the number of those beyond the limit.
    pub(crate) fn report(mut self, flows: &[Flow; 2], quota: &EventQuota) -> (Vec<Exchange>, u64) {
        self.finish(flows, quota, 0);
        (self.kept, self.omitted)
    }
}
