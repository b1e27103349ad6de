//! A connection while it lives.

use crate::analysis::{
    EventQuota, ConnectionReport, DirectionReport, End, EndTracker, Exchanges, FailureDetails, Flow, ConnectionContext, ConnectionView,
    FlowState, Tap, NegotiatedOptions, DataEvent,
};
use crate::segment::{Endpoint, Flags, Nanos, Segment};

/// How a connection begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning {
    pub(super) number: u64,
    /// Frame and time of its first segment.
    pub(super) frame: u64,
    pub(super) time: Nanos,
    /// The first is that of who sent it.
    pub(super) ends: [Endpoint; 2],
    /// Points of a time-sequence plot that are kept of a direction.
    pub(super) points: usize,
}

/// Both directions, and what they share.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    beginning: Beginning,
    last: Nanos,
    flows: [Flow; 2],
    tap: Tap,
    /// Who opened it, if that was captured.
    opener: Option<usize>,
    end_tracker: EndTracker,
    /// Only with data in both directions.
    exchanges: Option<Box<Exchanges>>,
    /// Events that are kept one by one of a direction.
    max_events: usize,
}

impl Connection {
    pub(super) fn new(beginning: Beginning, max_events: usize) -> Self {
        Self {
            beginning,
            last: beginning.time,
            flows: [Flow::default(), Flow::default()],
            tap: Tap::default(),
            opener: None,
            end_tracker: EndTracker::default(),
            exchanges: None,
            max_events,
        }
    }

    /// When its last segment was captured.
    pub(super) fn last(&self) -> Nanos {
        self.last
    }

    /// The first is that of who sent the first segment.
    pub(super) fn ends(&self) -> [Endpoint; 2] {
        self.beginning.ends
    }

    /// Fetches from memory what the next segments change; what comes of it says nothing.
    #[inline]
    pub(super) fn prefetch(&self) -> u64 {
        let flows = self.flows[0].prefetch().wrapping_add(self.flows[1].prefetch());
        flows.wrapping_add(self.last).wrapping_add(self.tap.round_trip(0).unwrap_or(0))
    }

    /// The same of what the former points to.
    #[inline]
    pub(super) fn prefetch_second(&self) -> u64 {
        self.flows[0].prefetch_second().wrapping_add(self.flows[1].prefetch_second())
    }

    /// The same of what that points to.
    #[inline]
    pub(super) fn prefetch_third(&self) -> u64 {
        self.flows[0].prefetch_third().wrapping_add(self.flows[1].prefetch_third())
    }

    /// Which end sent it. (One end talking to itself is taken for the first.)
    #[inline(always)]
    fn from(&self, segment: &Segment) -> usize {
        usize::from(self.beginning.ends[0] != segment.source)
    }

    /// The next segment of it.
    #[inline]
    pub(super) fn push(&mut self, segment: &Segment, quota: &EventQuota) {
        let from = self.from(segment);
        if segment.flags.any(Flags::FIN | Flags::RST) {
            self.end_by(segment, from);
        }
        self.last = self.last.max(segment.time);
        self.tap.read(segment, from);
        self.flows[1 - from].on_peer_segment(segment, quota);
        let before = self.exchanges_data(segment, from).then(|| self.flows[from].state());
        let context = ConnectionContext {
            near: self.tap.round_trip(from).unwrap_or(0),
            max_events: self.max_events,
            quota,
            max_points: self.beginning.points,
        };
        self.flows[from].on_segment(segment, &context);
        if let Some(before) = before {
            self.exchange(segment, from, &before, quota);
        }
        if segment.flags.any(Flags::SYN) {
            self.open_by(segment, from);
        }
    }

    #[cold]
    fn open_by(&mut self, syn: &Segment, from: usize) {
        let opener = if syn.flags.any(Flags::ACK) { 1 - from } else { from };
        self.opener.get_or_insert(opener);
        let [first, second] = &mut self.flows;
        (first.negotiated, second.negotiated) = (NegotiatedOptions::of(first, second), NegotiatedOptions::of(second, first));
    }

    #[cold]
    fn end_by(&mut self, segment: &Segment, from: usize) {
        let mut end_tracker = std::mem::take(&mut self.end_tracker);
        end_tracker.read(segment, from, &self.view());
        self.end_tracker = end_tracker;
    }

    /// The opener or, without a SYN, the end with the higher port.
    fn client(&self) -> usize {
        let [first, second] = self.beginning.ends;
        self.opener.unwrap_or(usize::from(second.port > first.port))
    }

    fn view(&self) -> ConnectionView<'_> {
        ConnectionView {
            flows: &self.flows,
            exchanges: self.exchanges.as_deref(),
            opener: self.opener,
            client: self.client(),
            first: self.beginning.time,
            last: self.last,
        }
    }

    /// Whether a segment may begin or end a request or a response. Bulk data of one end do not.
    #[inline(always)]
    fn exchanges_data(&self, segment: &Segment, from: usize) -> bool {
        let both = || self.flows[1 - from].counts.data_packets > 0;
        segment.payload > 0 && (self.exchanges.is_some() || both() || self.flows[from].is_idle())
    }

    #[inline]
    fn exchange(&mut self, segment: &Segment, from: usize, before: &FlowState, quota: &EventQuota) {
        let client = self.client();
        let event = DataEvent { segment, from, before, flows: &self.flows, tap: &self.tap, quota };
        let most = self.max_events;
        let known = || Exchanges::new(client, most, &event);
        self.exchanges.get_or_insert_with(known).read(&event);
    }

    /// What is said of it, now that it has come to this end. `copies`: frames captured twice, from each end.
    pub(super) fn report(
        mut self: Box<Self>,
        end: End,
        copies: [u64; 2],
        quota: &EventQuota,
    ) -> ConnectionReport {
        let (failure, swaps) = (self.end_tracker.failure(end, &self.view()), self.opener == Some(1));
        let client = self.client() ^ usize::from(swaps);
        let (exchanges, omitted_exchanges) = self
            .exchanges
            .take()
            .map_or_else(Default::default, |found| found.report(&self.flows, quota));
        let Self { beginning, flows: [first, second], tap, last, .. } = &mut *self;
        let [a, b] = beginning.ends;
        [first.counts.capture_duplicates, second.counts.capture_duplicates] = copies;
        for flow in [&mut *first, &mut *second] {
            flow.counts.keep_alives_unanswered = flow.unanswered_keep_alives();
        }
        let syn_captured = first.isn.is_some() || second.isn.is_some();
        let mut directions = Box::new([first.report(a, b, tap, 0), second.report(b, a, tap, 1)]);
        let kept = |direction: &DirectionReport| {
            direction.loss_times.len() + direction.retransmitted.len()
        };
        quota.release(directions.iter().map(kept).sum::<usize>() + exchanges.len());
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
            handshake_rtt_s: tap.handshake().map(|whole| whole as f64 / 1e9),
            failure_details: failure
                .map(|failure| FailureDetails { by: failure.by ^ usize::from(swaps), ..failure }),
            client,
            exchanges,
            omitted_exchanges,
            directions,
        }
    }
}
