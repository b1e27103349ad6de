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
use super::round_record::WaitReason;
use super::sender_state::MIN_RTO_MINUS_SRTT;
use super::sequence_numbers::unwrap_near;
use super::tap_side::{MIN_REMOTE_RTT, TapRtts};
use crate::named_enum::named_enum;
use crate::segment::{Flags, Nanos, Segment};

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
/// Number of unanswered retransmissions of a request from which the path or the server is dead.
const MIN_COPIES_OF_DEAD_PATH: u32 = 3;
/// Longest request without a response; more data are a transfer.
const MAX_REQUEST_BYTES: u64 = 1 << 20;
/// A client that closes the connection earlier after its last data did not wait for a response.
const MIN_WAIT_FOR_RESPONSE: Nanos = 1_000_000_000;

named_enum! {
    /// How a request ended.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum RequestOutcome {
        /// The server has sent data in response.
        Answered = "answered",
        /// The client closed or reset the connection first.
        ClientGaveUp = "client_gave_up",
        /// The server reset the connection.
        ResetByServer = "reset_by_server",
        /// The server closed the connection without a response.
        ServerClosed = "server_closed",
        /// No transmission of the request was acknowledged, and at least three were sent again.
        PathDead = "path_dead",
        /// The capture, or the part of the connection that was captured, ended first.
        #[default]
        CaptureEnded = "capture_ended",
    }
}

/// Where the time of a request went, ns, at the client. The parts add up to the time from the moment
/// at which the client could have sent the request to the last byte of the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeLine {
    /// The client had received the previous response (or the handshake or a greeting) and sent
    /// nothing; and pauses within the request.
    pub client: Nanos,
    /// The request was being sent.
    pub request: Nanos,
    /// The server had received the request and sent nothing, did not read the request, or had no
    /// further data of the response.
    pub server: Nanos,
    /// One round trip, and the transmission of the response.
    pub response: Nanos,
    /// Lost data had not been retransmitted.
    pub retransmission: Nanos,
    /// A small segment waited for an acknowledgement (RFC 896).
    pub held: Nanos,
    /// The receive window of the client did not allow more of the response.
    pub window: Nanos,
    /// One end transmitted data in vain, for longer than [`MIN_INTERRUPTION`](crate::MIN_INTERRUPTION) and
    /// four RTOs.
    pub interrupted: Nanos,
}

impl TimeLine {
    /// Sum of all parts.
    #[must_use]
    pub fn total(&self) -> Nanos {
        [
            self.client,
            self.request,
            self.server,
            self.response,
            self.retransmission,
            self.held,
            self.window,
            self.interrupted,
        ]
        .into_iter()
        .fold(0, Nanos::saturating_add)
    }
}

/// A request and its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestExchange {
    /// Time of the first byte of the request at the tap, ns since 1970.
    pub time: Nanos,
    /// Payload of the request.
    pub request_bytes: u64,
    /// Payload of the response; 0 if there is no response.
    pub response_bytes: u64,
    /// Time from the first byte of the request to the first byte of the response at the client,
    /// without pauses of the client, ns; 0 if there is no response.
    pub first_byte: Nanos,
    /// Where the time went. Without a response, the time line ends when the connection ends.
    pub parts: TimeLine,
    /// Part of `held` caused by a delayed acknowledgement (RFC 1122, section 4.2.3.2), ns.
    pub delayed: Nanos,
    /// Time from the end of the request to the first byte of the response at the tap, ns. It
    /// includes the server and the round trip to it.
    pub answer: Nanos,
    /// Time between the end of the previous response and the request at the tap, ns. It includes
    /// the client and the round trip to it.
    pub idle: Nanos,
    /// How the request ended.
    pub outcome: RequestOutcome,
    /// Retransmitted packets of both directions.
    pub retransmissions: u32,
    /// Part of `retransmissions` sent in vain during `interrupted`.
    pub copies: u32,
    /// Number of pauses of client and server within their messages, after which they sent without
    /// data from the other end.
    pub pauses: [u32; 2],
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
    /// Reason for waiting before the last acknowledgement.
    waited: WaitReason,
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
            waited: self.waited,
            is_idle: self.is_idle(),
        }
    }

    /// Whether nothing is in flight after data were sent.
    #[inline(always)]
    fn is_idle(&self) -> bool {
        self.next == self.acknowledged && self.last_sent > 0
    }

    /// Whether the next data may begin or end a message: nothing is in flight, or nothing was sent.
    #[inline(always)]
    pub(crate) fn may_begin_message(&self) -> bool {
        self.next == self.acknowledged || self.last_sent == 0
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

/// Exchanges of a connection, from its first data on.
///
/// Each interval between two transmissions of the end whose turn it is becomes part of one component
/// of the time line, so the components add up.
#[derive(Clone, Debug)]
pub(crate) struct ExchangeTracker {
    client: usize,
    turn: ExpectedSender,
    current: RequestExchange,
    /// Time until which the time line is complete: the last useful transmission of the end whose
    /// turn it is.
    charged: Nanos,
    /// Time at the tap of the last data before the request, or of the SYN-ACK; 0 if unknown.
    ready: Nanos,
    /// Time between retransmissions since the last segment of the other end, and their number.
    vain: Nanos,
    vain_copies: u32,
    last_segment: SegmentSize,
    /// Sequence number of the response.
    response_start: u64,
    /// Retransmissions of both directions so far.
    retransmissions: [u64; 2],
    /// Payload of both directions before the current exchange.
    bytes: [u64; 2],
    /// Time of the FIN or RST that ended the wait for a response.
    ended: Nanos,
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

/// Longest reaction time of an end at this round-trip time from the tap. A quarter of the round trip
/// is added for queues.
#[inline(always)]
fn max_reaction(tap_rtt: Nanos) -> Nanos {
    tap_rtt.saturating_add(tap_rtt / 4).saturating_add(MAX_REACTION_TIME)
}

/// Longest gap between segments that pacing explains at this round-trip time.
#[inline(always)]
fn max_paced_gap(round: Nanos) -> Nanos {
    MAX_REACTION_TIME + round / MIN_PAUSE_RTT_DIVISOR
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
    /// Longest gap between two segments that the network explains: after the RTO, the sender would
    /// have retransmitted.
    fn max_network_gap(&self) -> Nanos {
        let estimate = &self.flows[self.from].estimate;
        let timeout = estimate.rto_ns(MIN_RTO_MINUS_SRTT).unwrap_or(MIN_RTO_MINUS_SRTT) as Nanos;
        timeout.saturating_add(self.round().saturating_mul(2))
    }

    /// Round-trip time between both ends.
    fn round(&self) -> Nanos {
        self.rtt_between_tap_and_end(0).saturating_add(self.rtt_between_tap_and_end(1))
    }

    /// Round-trip time between the tap and an end.
    fn rtt_between_tap_and_end(&self, end: usize) -> Nanos {
        self.tap.rtt_to_end(end).unwrap_or(0)
    }

    /// Longest reaction time of the sender, seen at the tap.
    fn max_sender_reaction(&self) -> Nanos {
        max_reaction(self.rtt_between_tap_and_end(self.from))
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
        since_peer > self.max_sender_reaction() && gap > max_paced_gap(self.round())
    }
}

impl ExchangeTracker {
    /// Called at the first data after a packet of the other end. `ready`: time of the SYN-ACK at the
    /// tap; 0 if unknown.
    pub(crate) fn new(
        client: usize,
        max: usize,
        ready: Nanos,
        event: &DataSegmentEvent<'_>,
    ) -> Box<Self> {
        let flow = &event.flows[client];
        let sent = if event.from == client { event.before.sent } else { flow.last_sent };
        let time = if sent > 0 { flow.first_data.unwrap_or(sent) } else { 0 };
        let mut current = RequestExchange { time, ..RequestExchange::default() };
        current.parts.request = sent.saturating_sub(time);
        Box::new(Self {
            client,
            turn: if sent > 0 { ExpectedSender::Client } else { ExpectedSender::NoRequest },
            current,
            charged: sent,
            ready,
            vain: 0,
            vain_copies: 0,
            last_segment: SegmentSize::default(),
            response_start: event.flows[1 - client].next,
            retransmissions: [0; 2],
            bytes: [0; 2],
            ended: 0,
            kept: Vec::new(),
            max,
            omitted: 0,
        })
    }

    /// Processes a data segment.
    #[inline]
    pub(crate) fn process_data(&mut self, event: &DataSegmentEvent<'_>) {
        let flow = &event.flows[event.from];
        let resent = self.take_retransmissions(event.from, flow);
        if flow.next > event.before.next {
            if resent > 0 {
                self.charge_shown_loss(event);
            }
            if event.from == self.client {
                self.on_client_data(event);
            } else {
                self.on_server_data(event);
            }
        } else if event.before.acknowledged < event.before.next {
            self.on_repeated_data(event, resent);
        }
        self.current.retransmissions += resent;
    }

    /// Processes data of the only end that has sent data so far, with other data in flight.
    #[inline]
    pub(crate) fn process_one_way_data(
        &mut self,
        segment: &Segment,
        from: usize,
        flows: &[Flow; 2],
        tap: &TapRtts,
        quota: &EventQuota,
    ) {
        if self.turn == ExpectedSender::NoRequest {
            self.ready = segment.time;
            self.take_retransmissions(from, &flows[from]);
            return;
        }
        let gap = segment.time.saturating_sub(self.charged);
        let resent = flows[from].counts.retransmissions != self.retransmissions[from];
        if gap < MAX_REACTION_TIME && !resent {
            self.current.parts.request += gap;
            self.charged = self.charged.max(segment.time);
        } else if !resent && self.is_gap_between_flights(segment.time, gap, from, flows, tap) {
            self.current.parts.request += gap;
            self.charged = segment.time;
            let largest = flows[from].largest;
            self.last_segment = SegmentSize { payload: segment.payload, largest };
        } else {
            let flow = &flows[from];
            // Neither the new data nor their retransmission change the other values.
            let before = FlowState {
                next: flow.next - u64::from(!resent),
                sent: self.charged,
                is_idle: false,
                ..flow.flow_state()
            };
            let before = &before;
            self.process_data(&DataSegmentEvent { segment, from, before, flows, tap, quota });
        }
    }

    /// Whether a gap before one-way data of the client is certain to belong to the transmission,
    /// because the data follow an acknowledgement or are paced. Most gaps of a bulk transfer do, so
    /// this is a cheap and sufficient condition for the result of [`Self::add_long_gap`].
    #[inline(always)]
    fn is_gap_between_flights(
        &self,
        now: Nanos,
        gap: Nanos,
        from: usize,
        flows: &[Flow; 2],
        tap: &TapRtts,
    ) -> bool {
        let flow = &flows[from];
        let since_peer = now.saturating_sub(flow.recovery.last_peer_time());
        self.turn == ExpectedSender::Client
            && from == self.client
            && self.vain == 0
            // Any RTO is longer, so the network explains the gap.
            && gap <= MIN_RTO_MINUS_SRTT as Nanos
            && flow.waited != WaitReason::Closed
            && {
                let [own, other] = [from, 1 - from].map(|end| tap.rtt_to_end(end).unwrap_or(0));
                since_peer <= max_reaction(own) || gap <= max_paced_gap(own.saturating_add(other))
            }
    }

    /// Returns the number of new retransmissions of a direction.
    #[inline(always)]
    fn take_retransmissions(&mut self, from: usize, flow: &Flow) -> u32 {
        let known = std::mem::replace(&mut self.retransmissions[from], flow.counts.retransmissions);
        flow.counts.retransmissions.saturating_sub(known) as u32
    }

    /// Processes new data of the client.
    #[inline]
    fn on_client_data(&mut self, event: &DataSegmentEvent<'_>) {
        if self.turn == ExpectedSender::Client {
            self.add_gap(event);
        } else {
            self.begin_exchange(event);
        }
        self.after_segment(event);
    }

    #[inline(never)]
    fn begin_exchange(&mut self, event: &DataSegmentEvent<'_>) {
        // The client had not received the whole response.
        let overlaps = event.flows[1 - self.client].has_unacknowledged_data()
            && self.turn == ExpectedSender::Server;
        self.current.overlaps |= overlaps;
        if self.turn == ExpectedSender::Server {
            self.ready = self.charged;
        }
        self.finish_exchange(event.flows, event.quota, u64::from(event.segment.payload), 0);
        let server = &event.flows[1 - self.client];
        // The first transmission of the request may have been lost before the tap.
        let sent = event.segment.time;
        let shown = event.flows[self.client].time_of_shown_hole(event.before.next);
        let time = shown.map_or(sent, |shown| shown.clamp(self.ready.min(sent), sent));
        self.current = RequestExchange {
            time,
            parts: TimeLine { retransmission: sent - time, ..TimeLine::default() },
            idle: if self.ready > 0 { time.saturating_sub(self.ready) } else { 0 },
            overlaps,
            after_losses: server.counts.retransmissions > 0,
            ..RequestExchange::default()
        };
        self.charged = sent;
        self.response_start = server.next;
        self.ended = 0;
        self.turn = ExpectedSender::Client;
    }

    /// Processes new data of the server.
    #[inline]
    fn on_server_data(&mut self, event: &DataSegmentEvent<'_>) {
        match self.turn {
            ExpectedSender::NoRequest => {
                self.ready = event.segment.time;
                return;
            }
            ExpectedSender::Client => self.begin_response(event),
            ExpectedSender::Server => self.add_gap(event),
        }
        self.after_segment(event);
    }

    #[inline(always)]
    fn after_segment(&mut self, event: &DataSegmentEvent<'_>) {
        self.charged = self.charged.max(event.segment.time);
        self.last_segment = event.segment_size();
    }

    #[inline(never)]
    fn begin_response(&mut self, event: &DataSegmentEvent<'_>) {
        let client = &event.flows[self.client];
        let to_server = event.rtt_between_tap_and_end(1 - self.client);
        // The request was acknowledged before a retransmission could have reached the server, so an
        // earlier transmission had reached it, and the server needed the time. In an interruption,
        // acknowledgements were lost as well.
        let acked = client.last_data.unwrap_or(0);
        let early = to_server > MIN_REMOTE_RTT
            && self.vain < client.min_interruption()
            && acked.saturating_sub(self.charged) < to_server / 5 * 4;
        if early {
            self.current.answer = self.vain;
            (self.vain, self.vain_copies) = (0, 0);
        }
        self.settle_transmissions_in_vain(client);
        let time = event.segment.time;
        self.turn = ExpectedSender::Server;
        self.current.outcome = RequestOutcome::Answered;
        let pauses = self.current.parts.client;
        self.current.first_byte = time.saturating_sub(self.current.time).saturating_sub(pauses);
        self.current.answer += time.saturating_sub(self.charged);
        let early = client.has_unacknowledged_data();
        self.current.overlaps |= early;
        // The end of the previous response is also unknown.
        if let Some(last) = self.kept.last_mut().filter(|_| early) {
            last.overlaps = true;
        }
    }

    /// Adds the time since the previous segment of the same message.
    #[inline(always)]
    fn add_gap(&mut self, event: &DataSegmentEvent<'_>) {
        let gap = event.segment.time.saturating_sub(self.charged);
        if gap < MAX_REACTION_TIME && self.vain == 0 {
            *self.transmission() += gap;
        } else {
            self.add_long_gap(event, gap);
        }
    }

    /// The component of the time line for the transmission of the current message.
    #[inline(always)]
    fn transmission(&mut self) -> &mut Nanos {
        match self.turn {
            ExpectedSender::Server => &mut self.current.parts.response,
            _ => &mut self.current.parts.request,
        }
    }

    #[inline(never)]
    fn add_long_gap(&mut self, event: &DataSegmentEvent<'_>, gap: Nanos) {
        self.settle_transmissions_in_vain(&event.flows[event.from]);
        let (before, of_client) = (event.before, event.from == self.client);
        if before.is_idle {
            let bytes = event.flows[event.from].counts.unique_bytes;
            let bytes = bytes.saturating_sub(self.bytes[event.from]);
            if let Some((_, delayed)) = event.nagle_wait(bytes) {
                self.current.parts.held += gap;
                self.current.delayed += delayed.min(gap);
                return;
            }
        }
        let unrelated = event.is_gap_unrelated_to_acks(gap);
        let parts = &mut self.current.parts;
        let application = if of_client { &mut parts.client } else { &mut parts.server };
        if !unrelated && before.waited.is_by_receiver() {
            match (of_client, before.waited) {
                (false, _) => parts.window += gap,
                (true, WaitReason::Closed) => parts.server += gap,
                (true, _) => parts.request += gap,
            }
            return;
        }
        if unrelated {
            let remote = event.rtt_between_tap_and_end(event.from) > MIN_REMOTE_RTT;
            let full = event.ends_with_full_packet(self.last_segment);
            if !full || before.is_idle && !remote {
                *application += gap;
                self.current.pauses[usize::from(!of_client)] += 1;
                return;
            }
            if remote && gap > event.round().saturating_mul(2) {
                // The last packets were lost before the tap.
                (self.vain, self.vain_copies) = (gap, 1);
                self.current.retransmissions += 1;
                self.settle_transmissions_in_vain(&event.flows[event.from]);
                return;
            }
        }
        // No timeout is shorter.
        let longest = if gap > MIN_RTO_MINUS_SRTT as Nanos { event.max_network_gap() } else { gap };
        let network = gap.min(longest);
        *application += gap - network;
        *self.transmission() += network;
    }

    /// Processes data below the highest sequence number sent, if some of these data are not
    /// acknowledged yet.
    #[inline(never)]
    fn on_repeated_data(&mut self, event: &DataSegmentEvent<'_>, resent: u32) {
        let sender = match self.turn {
            ExpectedSender::Client => self.client,
            ExpectedSender::Server => 1 - self.client,
            ExpectedSender::NoRequest => return,
        };
        if event.from != sender {
            let server = &event.flows[1 - self.client];
            let start = unwrap_near(server.next, event.segment.sequence);
            if resent > 0 && sender == self.client && start >= self.response_start {
                self.begin_lost_response(event);
            }
            return;
        }
        if event.before.peer_time > self.charged {
            self.settle_transmissions_in_vain(&event.flows[sender]);
        }
        let gap = event.segment.time.saturating_sub(self.charged);
        if resent > 0 {
            self.vain += gap;
            self.vain_copies += resent;
        } else {
            *self.transmission() += gap;
        }
        self.charged = self.charged.max(event.segment.time);
    }

    /// Begins a response whose first transmission was lost before the tap, as a later sequence number
    /// has shown.
    #[cold]
    fn begin_lost_response(&mut self, event: &DataSegmentEvent<'_>) {
        let wait = event.segment.time.saturating_sub(self.charged);
        let lost = wait.saturating_sub(event.rtt_between_tap_and_end(1 - self.client));
        self.charged += lost;
        self.begin_response(event);
        (self.vain, self.vain_copies) = (lost, 1);
        self.after_segment(event);
    }

    /// Charges the wait for data that were lost before the tap, since a segment without data showed
    /// that they had been sent. The other end answered, so this is no interruption.
    #[cold]
    fn charge_shown_loss(&mut self, event: &DataSegmentEvent<'_>) {
        let sender = event.from;
        let shown = event.flows[sender].time_of_shown_hole(event.before.next);
        let awaited = match self.turn {
            ExpectedSender::NoRequest => false,
            ExpectedSender::Client => true,
            ExpectedSender::Server => sender != self.client,
        };
        let (Some(shown), true) = (shown, awaited) else { return };
        self.settle_transmissions_in_vain(&event.flows[sender]);
        // The client may have sent further data in the meantime; it waited for the response.
        let meanwhile = self.charged.saturating_sub(shown);
        let parts = &mut self.current.parts;
        let pauses = if sender == self.client { 0 } else { meanwhile.min(parts.client) };
        let lost = event.segment.time.saturating_sub(self.charged.max(shown));
        parts.client -= pauses;
        parts.retransmission += pauses + lost;
        // The time before the loss is still to be charged to the server or the transmission.
        self.charged += lost;
    }

    /// Adds the time of the retransmissions since the last segment of the other end to the time line.
    fn settle_transmissions_in_vain(&mut self, flow: &Flow) {
        if self.vain == 0 {
            return;
        }
        if self.vain >= flow.min_interruption() {
            self.current.parts.interrupted += self.vain;
            self.current.copies += self.vain_copies;
        } else {
            self.current.parts.retransmission += self.vain;
        }
        (self.vain, self.vain_copies) = (0, 0);
    }

    /// Processes a FIN or RST, after the data of its segment.
    #[cold]
    pub(crate) fn process_fin_or_rst(&mut self, segment: &Segment, from: usize) {
        if self.turn != ExpectedSender::Client || self.current.outcome != RequestOutcome::default()
        {
            return;
        }
        self.current.outcome = match (from == self.client, segment.flags.contains_any(Flags::RST)) {
            (true, _) => RequestOutcome::ClientGaveUp,
            (false, true) => RequestOutcome::ResetByServer,
            (false, false) => RequestOutcome::ServerClosed,
        };
        self.ended = segment.time;
    }

    /// Ends a request without a response at `end`.
    fn finish_unanswered(&mut self, flows: &[Flow; 2], end: Nanos) {
        let end = if self.ended > 0 { self.ended } else { end };
        let wait = end.saturating_sub(self.charged);
        let client = &flows[self.client];
        if self.vain > 0 && client.has_unacknowledged_data() {
            self.vain += wait;
            let gave_up = matches!(
                self.current.outcome,
                RequestOutcome::CaptureEnded | RequestOutcome::ClientGaveUp
            );
            if gave_up && self.vain_copies >= MIN_COPIES_OF_DEAD_PATH {
                self.current.outcome = RequestOutcome::PathDead;
            }
        } else {
            self.current.answer = wait;
        }
        self.settle_transmissions_in_vain(client);
    }

    /// Whether the current data of the client without a response are not a request: a transfer, or
    /// messages that the client does not expect to be answered.
    fn is_one_way(&self, flows: &[Flow; 2]) -> bool {
        let exchange = &self.current;
        let server = &flows[1 - self.client].counts;
        let silent_server = server.data_packets == 0;
        let flight = INITIAL_WINDOW * u64::from(flows[self.client].largest);
        let several = exchange.parts.client > 0 || exchange.request_bytes > flight;
        let waited = exchange.answer.max(exchange.parts.interrupted);
        // Without any packet of the server, the capture may lack this direction.
        server.packets == 0
            || exchange.request_bytes > MAX_REQUEST_BYTES
            || several && silent_server
            || exchange.outcome == RequestOutcome::ClientGaveUp && waited < MIN_WAIT_FOR_RESPONSE
    }

    /// Ends the exchange. `next`: payload of the client that belongs to the next exchange. `end`:
    /// time of the last segment.
    fn finish_exchange(&mut self, flows: &[Flow; 2], quota: &EventQuota, next: u64, end: Nanos) {
        let mut totals = [0, 1].map(|end: usize| flows[end].counts.unique_bytes);
        totals[self.client] = totals[self.client].saturating_sub(next);
        let [before, after] = [self.bytes, totals];
        self.bytes = totals;
        if self.turn == ExpectedSender::NoRequest {
            return;
        }
        let server = 1 - self.client;
        self.current.request_bytes = after[self.client].saturating_sub(before[self.client]);
        if self.turn == ExpectedSender::Server {
            self.current.response_bytes = after[server].saturating_sub(before[server]);
            self.settle_transmissions_in_vain(&flows[server]);
        } else {
            self.finish_unanswered(flows, end);
            if self.is_one_way(flows) {
                return;
            }
        }
        let exchange = take(&mut self.current);
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
        self.current.idle
    }

    /// Returns the exchanges in order, and the number of exchanges beyond the limit. `end`: time of
    /// the last segment.
    pub(crate) fn into_exchanges(
        mut self,
        flows: &[Flow; 2],
        tap: &TapRtts,
        quota: &EventQuota,
        end: Nanos,
    ) -> (Vec<RequestExchange>, u64) {
        self.finish_exchange(flows, quota, 0, end);
        let rtts = [self.client, 1 - self.client].map(|end| tap.rtt_to_end(end).unwrap_or(0));
        self.kept.iter_mut().for_each(|exchange| exchange.move_to_client(rtts));
        (self.kept, self.omitted)
    }
}

impl RequestExchange {
    /// Converts the times at the tap to times at the client. `rtts`: round-trip times between the
    /// tap and the client, and between the tap and the server.
    fn move_to_client(&mut self, [to_client, to_server]: [Nanos; 2]) {
        let way = self.answer.min(to_server);
        self.parts.response = self.parts.response.saturating_add(way);
        self.parts.server = self.parts.server.saturating_add(self.answer - way);
        self.parts.client = self.parts.client.saturating_add(self.idle.saturating_sub(to_client));
        if self.outcome == RequestOutcome::Answered {
            self.parts.response = self.parts.response.saturating_add(to_client);
            self.first_byte = self.first_byte.saturating_add(to_client);
        }
    }
}
