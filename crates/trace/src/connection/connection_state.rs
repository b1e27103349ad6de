//! State of a live connection.

use crate::analysis::{
    AnnouncedOptions, ConnectionContext, ConnectionReport, ConnectionView, DataSegmentEvent,
    DirectionReport, EventQuota, ExchangeTracker, FinRstTracker, Flow, FlowState,
    NegotiatedOptions, ObservedEnd, TapRtts, credible_rtt_s,
};
use crate::segment::{Endpoint, Flags, Nanos, Segment};

/// Properties of a connection at its first segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionBeginning {
    pub(super) number: u64,
    /// Frame number and time of the first segment.
    pub(super) frame: u64,
    pub(super) time: Nanos,
    /// Both ends; the first sent the first segment.
    pub(super) ends: [Endpoint; 2],
    /// Maximum number of points of the time-sequence plot per direction.
    pub(super) points: usize,
}

/// Both directions of a connection and their common state.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    beginning: ConnectionBeginning,
    last: Nanos,
    flows: [Flow; 2],
    tap: TapRtts,
    /// Index of the opener, if its SYN or the SYN-ACK was captured.
    opener: Option<usize>,
    /// Time of the last SYN of the opener.
    last_syn: Nanos,
    /// True from the SYN of the opener to the first other segment of this connection.
    awaits_syn_ack: bool,
    end_tracker: FinRstTracker,
    /// Time of the last SYN-ACK; 0 if it was not captured.
    syn_answered: Nanos,
    /// Allocated at the first data after a packet of the other end.
    exchanges: Option<Box<ExchangeTracker>>,
    /// Maximum number of listed events per direction.
    max_events: usize,
}

impl Connection {
    pub(super) fn new(beginning: ConnectionBeginning, max_events: usize) -> Self {
        Self {
            beginning,
            last: beginning.time,
            flows: [Flow::default(), Flow::default()],
            tap: TapRtts::default(),
            opener: None,
            last_syn: 0,
            awaits_syn_ack: false,
            end_tracker: FinRstTracker::default(),
            syn_answered: 0,
            exchanges: None,
            max_events,
        }
    }

    /// Capture time of the last segment.
    pub(super) fn last_time(&self) -> Nanos {
        self.last
    }

    /// Both ends; the first sent the first segment.
    pub(super) fn ends(&self) -> [Endpoint; 2] {
        self.beginning.ends
    }

    /// Index of the sender. (If an end talks to itself, the first.)
    #[inline(always)]
    fn sender_index(&self, segment: &Segment) -> usize {
        usize::from(self.beginning.ends[0] != segment.source)
    }

    /// Processes the next segment.
    #[inline]
    pub(super) fn process_segment(&mut self, segment: &Segment, quota: &EventQuota) {
        let from = self.sender_index(segment);
        if self.awaits_syn_ack && self.is_of_old_connection(segment, from) {
            self.last = self.last.max(segment.time);
            return self.flows[from].count_old_connection_segment(segment);
        }
        if segment.flags.contains_any(Flags::FIN | Flags::RST) {
            self.on_fin_or_rst(segment, from);
        }
        self.last = self.last.max(segment.time);
        let echo = self.tap.process_segment(segment, from);
        self.flows[1 - from].on_peer_segment(segment, quota);
        let has_data = segment.payload > 0;
        let before =
            (has_data && self.may_affect_exchanges(from)).then(|| self.flows[from].flow_state());
        let context = ConnectionContext {
            tap_rtt: self.tap.rtt_to_end(from).unwrap_or(0),
            may_be_queued: self.tap.may_be_behind_queue(from),
            echo,
            max_events: self.max_events,
            quota,
            max_points: self.beginning.points,
        };
        self.flows[from].process_segment(segment, &context);
        if let Some(before) = before {
            self.update_exchanges(segment, from, &before, quota);
        } else if has_data {
            if let Some(exchanges) = &mut self.exchanges {
                exchanges.process_one_way_data(segment, from, &self.flows, &self.tap, quota);
            }
        }
        if segment.flags.contains_any(Flags::FIN | Flags::RST) {
            if let Some(exchanges) = &mut self.exchanges {
                exchanges.process_fin_or_rst(segment, from);
            }
        }
        if segment.flags.contains_any(Flags::SYN) {
            self.on_syn(segment, from);
        }
    }

    /// Whether a segment that follows the SYN belongs to an old connection between the same ends. The
    /// passive end may still have that connection (in TIME_WAIT, or because the opener crashed), and
    /// acknowledges its number instead of the SYN. The opener resets it and sends the SYN again (RFC
    /// 9293, 3.5.1 and 3.10.7.3).
    #[cold]
    fn is_of_old_connection(&mut self, segment: &Segment, from: usize) -> bool {
        let (flags, opener) = (segment.flags, self.opener.unwrap_or(0));
        let first = self.flows[opener].isn.unwrap_or(0).wrapping_add(1);
        let reset = flags.contains_any(Flags::RST);
        let acknowledges = flags.contains_any(Flags::ACK) && segment.payload == 0 && !reset;
        let old = !flags.contains_any(Flags::SYN)
            && if from == opener {
                reset && segment.sequence != first
            } else {
                acknowledges && segment.acknowledgement != first
            };
        self.awaits_syn_ack = old;
        if old {
            // The RST, and not a loss, causes the next SYN, so that its response shows the RTT.
            self.tap = TapRtts::default();
        }
        old
    }

    #[cold]
    fn on_syn(&mut self, syn: &Segment, from: usize) {
        let opener = if syn.flags.contains_any(Flags::ACK) { 1 - from } else { from };
        self.opener.get_or_insert(opener);
        if opener == from {
            self.last_syn = syn.time;
            // Data with the SYN may be acknowledged separately.
            self.awaits_syn_ack = syn.payload == 0 && self.flows[1 - from].isn.is_none();
        } else {
            self.syn_answered = syn.time;
        }
        let [first, second] =
            self.flows.each_ref().map(|flow| (flow.isn.is_some(), flow.announced));
        self.flows[0].negotiated = NegotiatedOptions::from_announced(first, second);
        self.flows[1].negotiated = NegotiatedOptions::from_announced(second, first);
    }

    #[cold]
    fn on_fin_or_rst(&mut self, segment: &Segment, from: usize) {
        let mut end_tracker = std::mem::take(&mut self.end_tracker);
        end_tracker.process_fin_or_rst(segment, from, &self.connection_view());
        self.end_tracker = end_tracker;
    }

    /// The opener or, without a SYN, the end with the higher port.
    fn client_index(&self) -> usize {
        let [first, second] = self.beginning.ends;
        self.opener.unwrap_or(usize::from(second.port > first.port))
    }

    fn connection_view(&self) -> ConnectionView<'_> {
        ConnectionView {
            flows: &self.flows,
            exchanges: self.exchanges.as_deref(),
            opener: self.opener,
            client: self.client_index(),
            first: self.beginning.time,
            last: self.last,
            last_syn: self.last_syn,
            client_rtt: self.tap.rtt_to_end(self.client_index()).unwrap_or(0),
        }
    }

    /// Whether data may begin or end a request or a response. One-way bulk data do not.
    #[inline(always)]
    fn may_affect_exchanges(&self, from: usize) -> bool {
        let other = &self.flows[1 - from].counts;
        other.data_packets > 0 || other.packets > 0 && self.flows[from].may_begin_message()
    }

    #[inline]
    fn update_exchanges(
        &mut self,
        segment: &Segment,
        from: usize,
        before: &FlowState,
        quota: &EventQuota,
    ) {
        let client = self.client_index();
        let event =
            DataSegmentEvent { segment, from, before, flows: &self.flows, tap: &self.tap, quota };
        let (max, ready) = (self.max_events, self.syn_answered);
        let new = || ExchangeTracker::new(client, max, ready, &event);
        self.exchanges.get_or_insert_with(new).process_data(&event);
    }

    /// Returns the report of the connection. `copies`: number of duplicate frames sent by each end.
    pub(super) fn into_report(
        mut self: Box<Self>,
        observed: ObservedEnd,
        copies: [u64; 2],
        quota: &EventQuota,
    ) -> ConnectionReport {
        let end = self.end_tracker.effective_end(observed.end, &self.connection_view());
        let failure = self.end_tracker.connection_failure(end, &self.connection_view());
        let failure = failure.filter(|failure| !failure.is_undecided(&observed));
        let swaps = self.opener == Some(1);
        let client = self.client_index() ^ usize::from(swaps);
        let (exchanges, omitted_exchanges) =
            self.exchanges.take().map_or_else(Default::default, |exchanges| {
                exchanges.into_exchanges(&self.flows, &self.tap, quota, self.last)
            });
        let Self { beginning, flows: [first, second], tap, last, end_tracker, .. } = &mut *self;
        let [a, b] = beginning.ends;
        [first.counts.capture_duplicates, second.counts.capture_duplicates] = copies;
        for flow in [&mut *first, &mut *second] {
            flow.counts.keep_alives_unanswered = flow.unanswered_keep_alives();
            flow.find_interruption_at_end(*last);
        }
        let syn_captured = first.isn.is_some() || second.isn.is_some();
        let [sends, takes] = [&*first, &*second].map(|flow| (flow.isn.is_some(), flow.announced));
        let ipv6 = a.address.is_ipv6();
        let [forth, back] = [(sends, takes), (takes, sends)]
            .map(|(from, to)| AnnouncedOptions::effective(from, to, ipv6));
        let mut directions = Box::new([
            first.direction_report(a, b, (tap, 0), forth),
            second.direction_report(b, a, (tap, 1), back),
        ]);
        for (end, direction) in directions.iter_mut().enumerate() {
            // An end that has closed need not respond.
            direction.receiver_silence =
                direction.receiver_silence.filter(|_| !end_tracker.has_sent_fin(1 - end));
        }
        let kept = |direction: &DirectionReport| {
            direction.loss_times.len() + direction.retransmitted.len()
        };
        quota.return_events(directions.iter().map(kept).sum::<usize>() + exchanges.len());
        if swaps {
            directions.swap(0, 1);
        }
        ConnectionReport {
            number: beginning.number,
            first_frame: beginning.frame,
            first: beginning.time,
            last: *last,
            syn_captured,
            end,
            handshake_rtt_s: tap.handshake_rtt().and_then(|rtt| credible_rtt_s(rtt as f64 / 1e9)),
            failure_details: failure.map(|failure| if swaps { failure.swapped() } else { failure }),
            client,
            exchanges,
            omitted_exchanges,
            directions,
        }
    }
}
