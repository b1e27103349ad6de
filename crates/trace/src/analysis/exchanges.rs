//! Requests and responses: alternating data of client and server.
//!
//! A request begins with new data of the client after a response, and its response with the next
//! new data of the server. The exchange is separable if the client had received the whole response
//! before it sent the request, and the server had received the request before it responded, by
//! acknowledgement numbers. With pipelining or several streams in a connection, the exchange is
//! marked as overlapping.

use std::mem::take;

use super::direction_stats::EventQuota;
use super::flow::Flow;
use super::tap_side::{MIN_REMOTE_RTT, TapRtts};
use crate::segment::{Nanos, Segment};

/// Longest reaction time of an end with data to a segment from the other end.
const MAX_REACTION_TIME: Nanos = 1_500_000;
/// Range of delayed acknowledgements: Linux delays by 40 ms or more, Windows and BSD by up to 200
/// ms; RFC 1122, section 4.2.3.2, allows less than 500 ms.
const DELAYED_ACK_TIMES: std::ops::Range<Nanos> = 20_000_000..500_000_000;
/// Initial window in segments (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// Pacing spreads a window over a round trip, so gaps longer than this fraction (one quarter) are
/// caused by the server.
const MIN_PAUSE_RTT_DIVISOR: Nanos = 4;

/// A request and its response. Times are measured at the tap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestExchange {
    /// Time of the first byte of the request, ns since 1970.
    pub time: Nanos,
    /// Payload of the request.
    pub request_bytes: u64,
    /// Payload of the response; 0 if there is no response.
    pub response_bytes: u64,
    /// Time from the first byte of the request to the first byte of the response, ns.
    pub first_byte: Nanos,
    /// Time from the first byte of the request to the last byte of the response, including
    /// retransmissions, ns.
    pub last_byte: Nanos,
    /// Time from the end of the request to the first byte of the response, ns: the server and the
    /// round trip to it.
    pub answer: Nanos,
    /// Gaps within the response without data to send, ns.
    pub pauses: Nanos,
    /// Time until lost data were retransmitted, ns.
    pub repair: Nanos,
    /// Time for which a small segment waited for an acknowledgement (RFC 896), ns.
    pub held: Nanos,
    /// Part of `held` caused by a delayed acknowledgement (RFC 1122, section 4.2.3.2), ns.
    pub delayed: Nanos,
    /// Retransmitted packets of both directions.
    pub retransmissions: u32,
    /// True if packets of the server were lost earlier in the connection.
    pub after_losses: bool,
    /// True if client and server did not wait for each other, so the times cover several requests.
    pub overlaps: bool,
}

/// State of a direction before one of its segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowState {
    next: u64,
    acknowledged: u64,
    /// Time of the last data, and of the last acknowledgement of new data.
    sent: Nanos,
    acked: Nanos,
    /// Time of the last segment from the other end.
    peer_time: Nanos,
    retransmissions: u64,
    /// True if nothing is in flight after data were sent.
    is_idle: bool,
}

impl Flow {
    #[inline(always)]
    pub(crate) fn flow_state(&self) -> FlowState {
        FlowState {
            next: self.next,
            acknowledged: self.acknowledged,
            sent: self.last_sent,
            acked: self.last_data.unwrap_or(0),
            peer_time: self.recovery.last_peer_time(),
            retransmissions: self.counts.retransmissions,
            is_idle: self.is_idle(),
        }
    }

    /// Whether nothing is in flight after data were sent.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.next == self.acknowledged && self.last_sent > 0
    }

    fn has_unacknowledged_data(&self) -> bool {
        self.acknowledged < self.next
    }
}

/// The end whose data are expected or being sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ExpectedSender {
    #[default]
    NoRequest,
    Client,
    Server,
}

/// Exchanges of a connection with data in both directions.
#[derive(Clone, Debug)]
pub(crate) struct ExchangeTracker {
    client: usize,
    turn: ExpectedSender,
    current: RequestExchange,
    /// Time of the last useful transmission of the request, and of the response.
    request_sent: Nanos,
    response_sent: Nanos,
    last_response: SegmentSize,
    /// Payload of both directions before the current exchange.
    bytes: [u64; 2],
    kept: Vec<RequestExchange>,
    max: usize,
    omitted: u64,
}

/// Payload of a segment, and of the largest segment so far.
#[derive(Clone, Copy, Debug, Default)]
struct SegmentSize {
    payload: u32,
    largest: u32,
}

/// A data segment, and the state of both directions after the segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataSegmentEvent<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) from: usize,
    pub(crate) before: &'a FlowState,
    pub(crate) flows: &'a [Flow; 2],
    pub(crate) tap: &'a TapRtts,
    pub(crate) quota: &'a EventQuota,
}

impl DataSegmentEvent<'_> {
    /// Round-trip time between the tap and an end.
    fn rtt_between_tap_and_end(&self, end: usize) -> Nanos {
        self.tap.rtt_to_end(end).unwrap_or(0)
    }

    /// Longest reaction time of the sender, seen at the tap. A quarter of the round trip is added
    /// for queues.
    fn max_sender_reaction(&self) -> Nanos {
        let tap_rtt = self.rtt_between_tap_and_end(self.from);
        tap_rtt.saturating_add(tap_rtt / 4).saturating_add(MAX_REACTION_TIME)
    }

    fn segment_size(&self) -> SegmentSize {
        SegmentSize { payload: self.segment.payload, largest: self.flows[self.from].largest }
    }

    /// Whether a segment of this direction ends with a full packet, so the sender may have more
    /// data. The path MTU may make packets smaller than the MSS, but not much.
    fn ends_with_full_packet(&self, SegmentSize { payload, largest }: SegmentSize) -> bool {
        let [flow, other] = [self.from, 1 - self.from].map(|end| &self.flows[end]);
        let stamps = flow.announced.timestamps && other.announced.timestamps;
        let mss = other
            .announced
            .mss
            .map_or(0, |mss| u32::from(mss).saturating_sub(if stamps { 12 } else { 0 }));
        let full = if largest >= mss / 5 * 4 { largest } else { mss };
        payload >= full && payload % full.max(1) == 0
    }

    /// Returns the time for which a small segment waited for the acknowledgement of the previous
    /// data (RFC 896), and the part caused by a delayed acknowledgement. The segment followed the
    /// acknowledgement, with nothing else in flight. `bytes`: payload of the message, including
    /// this segment.
    fn nagle_wait(&self, bytes: u64) -> Option<(Nanos, Nanos)> {
        let FlowState { sent, acked, .. } = *self.before;
        let flow = &self.flows[self.from];
        let since = self.segment.time.saturating_sub(acked);
        let prompt = since <= self.max_sender_reaction()
            && since + MAX_REACTION_TIME >= self.rtt_between_tap_and_end(self.from);
        if !(prompt && !self.ends_with_full_packet(self.segment_size()) && acked > sent) {
            return None;
        }
        let delay =
            acked.saturating_sub(sent).saturating_sub(self.rtt_between_tap_and_end(1 - self.from));
        let delayed = if DELAYED_ACK_TIMES.contains(&delay) { delay } else { 0 };
        // Otherwise the congestion window may have delayed the segment.
        let early = bytes <= INITIAL_WINDOW * u64::from(flow.largest);
        let nagle = early && flow.counts.retransmissions == 0;
        let held = self.segment.time.saturating_sub(sent);
        (delayed > 0 || nagle).then_some((held, delayed))
    }

    /// Whether a gap of `gap` before the segment has another cause than an awaited acknowledgement
    /// or pacing.
    fn is_gap_unrelated_to_acks(&self, gap: Nanos) -> bool {
        let since_peer = self.segment.time.saturating_sub(self.before.peer_time);
        let round = self.rtt_between_tap_and_end(0).saturating_add(self.rtt_between_tap_and_end(1));
        since_peer > self.max_sender_reaction()
            && gap > MAX_REACTION_TIME + round / MIN_PAUSE_RTT_DIVISOR
    }
}

impl ExchangeTracker {
    /// Called when both ends have sent data, or when the client sends data again after a pause.
    pub(crate) fn new(client: usize, max: usize, event: &DataSegmentEvent<'_>) -> Box<Self> {
        let flow = &event.flows[client];
        let sender = event.from == client;
        let sent = if sender { event.before.sent } else { flow.last_sent };
        let mut exchanges = Box::new(Self {
            client,
            turn: ExpectedSender::NoRequest,
            current: RequestExchange::default(),
            request_sent: sent,
            response_sent: 0,
            last_response: SegmentSize::default(),
            bytes: [0; 2],
            kept: Vec::new(),
            max,
            omitted: 0,
        });
        if sent > 0 {
            exchanges.turn = ExpectedSender::Client;
            exchanges.current.time = flow.first_data.unwrap_or(sent);
            exchanges.count_request_retransmissions(flow, sender);
        }
        exchanges
    }

    /// Adds retransmissions of the first request; only its last transmission is known.
    fn count_request_retransmissions(&mut self, flow: &Flow, sender: bool) {
        if !sender && flow.counts.retransmissions > 0 {
            self.current.repair = self.request_sent.saturating_sub(self.current.time);
            self.current.retransmissions = flow.counts.retransmissions as u32;
        }
    }

    /// Processes a data segment.
    #[inline]
    pub(crate) fn process_data(&mut self, event: &DataSegmentEvent<'_>) {
        let flow = &event.flows[event.from];
        let resent = flow.counts.retransmissions - event.before.retransmissions;
        if flow.next > event.before.next {
            if event.from == self.client {
                self.on_client_data(event);
            } else {
                self.on_server_data(event);
            }
        } else if event.before.acknowledged < event.before.next {
            self.on_repeated_data(event, resent > 0);
        }
        self.current.retransmissions += resent as u32;
    }

    /// Processes new data of the client.
    #[inline]
    fn on_client_data(&mut self, event: &DataSegmentEvent<'_>) {
        if self.turn == ExpectedSender::Client {
            self.add_nagle_wait_if_idle(event);
        } else {
            self.begin_exchange(event);
        }
        self.request_sent = event.segment.time;
    }

    #[inline(never)]
    fn begin_exchange(&mut self, event: &DataSegmentEvent<'_>) {
        // The client had not received the whole response.
        let overlaps = event.flows[1 - self.client].has_unacknowledged_data()
            && self.turn == ExpectedSender::Server;
        self.current.overlaps |= overlaps;
        self.finish_exchange(event.flows, event.quota, u64::from(event.segment.payload));
        let server = &event.flows[1 - self.client];
        self.current = RequestExchange {
            time: event.segment.time,
            overlaps,
            after_losses: server.counts.retransmissions > 0,
            ..RequestExchange::default()
        };
        self.turn = ExpectedSender::Client;
    }

    /// Processes new data of the server.
    #[inline]
    fn on_server_data(&mut self, event: &DataSegmentEvent<'_>) {
        let time = event.segment.time;
        match self.turn {
            ExpectedSender::NoRequest => return,
            ExpectedSender::Client => self.begin_response(event),
            ExpectedSender::Server => {
                let gap = time.saturating_sub(self.response_sent);
                if !self.add_nagle_wait_if_idle(event) && event.is_gap_unrelated_to_acks(gap) {
                    self.add_application_gap(event, gap);
                }
            }
        }
        self.response_sent = time;
        self.last_response = event.segment_size();
    }

    #[inline(never)]
    fn begin_response(&mut self, event: &DataSegmentEvent<'_>) {
        let time = event.segment.time;
        self.turn = ExpectedSender::Server;
        self.current.first_byte = time.saturating_sub(self.current.time);
        self.current.answer = time.saturating_sub(self.request_sent);
        let early = event.flows[self.client].has_unacknowledged_data();
        self.current.overlaps |= early;
        // The end of the previous response is also unknown.
        if let Some(last) = self.kept.last_mut().filter(|_| early) {
            last.overlaps = true;
        }
    }

    /// Adds the time for which a segment within a message waited for an acknowledgement. Returns
    /// true if the segment waited.
    #[inline(always)]
    fn add_nagle_wait_if_idle(&mut self, event: &DataSegmentEvent<'_>) -> bool {
        // Bulk data are usually sent with other data in flight.
        event.before.is_idle && self.add_nagle_wait(event)
    }

    #[inline(never)]
    fn add_nagle_wait(&mut self, event: &DataSegmentEvent<'_>) -> bool {
        let all = event.flows[event.from].counts.unique_bytes;
        let held = event.nagle_wait(all.saturating_sub(self.bytes[event.from]));
        let (total, delayed) = held.unwrap_or_default();
        self.current.held = self.current.held.saturating_add(total);
        self.current.delayed = self.current.delayed.saturating_add(delayed);
        held.is_some()
    }

    /// Adds a gap within the response that neither an acknowledgement nor pacing explains: the
    /// server had no data, or its last packets were lost before the tap.
    #[inline(never)]
    fn add_application_gap(&mut self, event: &DataSegmentEvent<'_>, gap: Nanos) {
        let round =
            event.rtt_between_tap_and_end(0).saturating_add(event.rtt_between_tap_and_end(1));
        if !event.ends_with_full_packet(self.last_response) {
            self.current.pauses = self.current.pauses.saturating_add(gap);
        } else if event.rtt_between_tap_and_end(event.from) > MIN_REMOTE_RTT
            && gap > round.saturating_mul(2)
        {
            self.current.repair = self.current.repair.saturating_add(gap);
            self.current.retransmissions += 1;
        }
    }

    /// Processes data below the highest sequence number sent, if some of these data are not
    /// acknowledged yet.
    #[inline(never)]
    fn on_repeated_data(&mut self, event: &DataSegmentEvent<'_>, resent: bool) {
        let time = event.segment.time;
        let client = event.from == self.client;
        let last = match self.turn {
            ExpectedSender::Client if client => &mut self.request_sent,
            ExpectedSender::Server if !client => &mut self.response_sent,
            _ => return,
        };
        if resent {
            self.current.repair = self.current.repair.saturating_add(time.saturating_sub(*last));
        }
        *last = time;
    }

    /// Ends the exchange. `next`: payload of the client that belongs to the next exchange.
    fn finish_exchange(&mut self, flows: &[Flow; 2], quota: &EventQuota, next: u64) {
        let mut totals = [0, 1].map(|end: usize| flows[end].counts.unique_bytes);
        totals[self.client] = totals[self.client].saturating_sub(next);
        let [before, after] = [self.bytes, totals];
        self.bytes = totals;
        if self.turn == ExpectedSender::NoRequest {
            return;
        }
        let mut exchange = take(&mut self.current);
        let server = 1 - self.client;
        exchange.request_bytes = after[self.client].saturating_sub(before[self.client]);
        if self.turn == ExpectedSender::Server {
            exchange.response_bytes = after[server].saturating_sub(before[server]);
            exchange.last_byte = self.response_sent.saturating_sub(exchange.time);
        }
        if self.kept.len() < self.max && quota.take_event_if_left() {
            self.kept.push(exchange);
        } else {
            self.omitted += 1;
        }
    }

    /// Whether the last request has no response; `None` before the first request.
    pub(crate) fn awaits_response(&self) -> Option<bool> {
        (self.turn != ExpectedSender::NoRequest).then_some(self.turn == ExpectedSender::Client)
    }

    /// Idle time of the connection before the current request.
    pub(crate) fn idle_before_request(&self) -> Nanos {
        if self.response_sent > 0 {
            self.current.time.saturating_sub(self.response_sent)
        } else {
            0
        }
    }

    /// Returns the exchanges in order, and the number of exchanges beyond the limit.
    pub(crate) fn into_exchanges(
        mut self,
        flows: &[Flow; 2],
        quota: &EventQuota,
    ) -> (Vec<RequestExchange>, u64) {
        self.finish_exchange(flows, quota, 0);
        (self.kept, self.omitted)
    }
}
