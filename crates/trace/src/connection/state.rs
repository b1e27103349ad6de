//! State of a live connection.

use crate::analysis::{
    ConnectionContext, ConnectionReport, ConnectionView, DataEvent, DirectionReport, End,
    EndTracker, EventQuota, Exchanges, FailureDetails, Flow, FlowState, NegotiatedOptions, Tap,
};
use crate::segment::{Endpoint, Flags, Nanos, Segment};

/// Properties of a connection at its first segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning {
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
    beginning: Beginning,
    last: Nanos,
    flows: [Flow; 2],
    tap: Tap,
    /// Index of the opener, if its SYN or the SYN-ACK was captured.
    opener: Option<usize>,
    end_tracker: EndTracker,
    /// Allocated only with data in both directions, or after a pause.
    exchanges: Option<Box<Exchanges>>,
    /// Maximum number of listed events per direction.
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

    /// Capture time of the last segment.
    pub(super) fn last(&self) -> Nanos {
        self.last
    }

    /// Both ends; the first sent the first segment.
    pub(super) fn ends(&self) -> [Endpoint; 2] {
        self.beginning.ends
    }

    /// Prefetches the fields that the next segments change. The returned sum only keeps the reads.
    #[inline]
    pub(super) fn prefetch(&self) -> u64 {
        let flows = self.flows[0].prefetch().wrapping_add(self.flows[1].prefetch());
        flows.wrapping_add(self.last).wrapping_add(self.tap.round_trip(0).unwrap_or(0))
    }

    /// Prefetches the objects that these fields point to.
    #[inline]
    pub(super) fn prefetch_second(&self) -> u64 {
        self.flows[0].prefetch_second().wrapping_add(self.flows[1].prefetch_second())
    }

    /// Prefetches the objects that those point to.
    #[inline]
    pub(super) fn prefetch_third(&self) -> u64 {
        self.flows[0].prefetch_third().wrapping_add(self.flows[1].prefetch_third())
    }

    /// Index of the sender. (If an end talks to itself, the first.)
    #[inline(always)]
    fn from(&self, segment: &Segment) -> usize {
        usize::from(self.beginning.ends[0] != segment.source)
    }

    /// Processes the next segment.
    #[inline]
    pub(super) fn push(&mut self, segment: &Segment, quota: &EventQuota) {
        let from = self.from(segment);
        if segment.flags.any(Flags::FIN | Flags::RST) {
            self.on_fin_or_rst(segment, from);
        }
        self.last = self.last.max(segment.time);
        self.tap.read(segment, from);
        self.flows[1 - from].on_peer_segment(segment, quota);
        let before = self.exchanges_data(segment, from).then(|| self.flows[from].state());
        let context = ConnectionContext {
            tap_rtt: self.tap.round_trip(from).unwrap_or(0),
            max_events: self.max_events,
            quota,
            max_points: self.beginning.points,
        };
        self.flows[from].on_segment(segment, &context);
        if let Some(before) = before {
            self.exchange(segment, from, &before, quota);
        }
        if segment.flags.any(Flags::SYN) {
            self.on_syn(segment, from);
        }
    }

    #[cold]
    fn on_syn(&mut self, syn: &Segment, from: usize) {
        let opener = if syn.flags.any(Flags::ACK) { 1 - from } else { from };
        self.opener.get_or_insert(opener);
        let [first, second] = &mut self.flows;
        (first.negotiated, second.negotiated) =
            (NegotiatedOptions::of(first, second), NegotiatedOptions::of(second, first));
    }

    #[cold]
    fn on_fin_or_rst(&mut self, segment: &Segment, from: usize) {
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

    /// Whether a segment may begin or end a request or a response. One-way bulk data do not.
    #[inline(always)]
    fn exchanges_data(&self, segment: &Segment, from: usize) -> bool {
        let both = || self.flows[1 - from].counts.data_packets > 0;
        segment.payload > 0 && (self.exchanges.is_some() || both() || self.flows[from].is_idle())
    }

    #[inline]
    fn exchange(&mut self, segment: &Segment, from: usize, before: &FlowState, quota: &EventQuota) {
        let client = self.client();
        let event = DataEvent { segment, from, before, flows: &self.flows, tap: &self.tap, quota };
        let max = self.max_events;
        let new = || Exchanges::new(client, max, &event);
        self.exchanges.get_or_insert_with(new).read(&event);
    }

    /// Returns the report of the connection. `copies`: frames captured twice, from each end.
    pub(super) fn report(
        mut self: Box<Self>,
        end: End,
        copies: [u64; 2],
        quota: &EventQuota,
    ) -> ConnectionReport {
        let (failure, swaps) =
            (self.end_tracker.failure(end, &self.view()), self.opener == Some(1));
        let client = self.client() ^ usize::from(swaps);
        let (exchanges, omitted_exchanges) = self
            .exchanges
            .take()
            .map_or_else(Default::default, |exchanges| exchanges.report(&self.flows, quota));
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
            handshake_rtt_s: tap.handshake().map(|rtt| rtt as f64 / 1e9),
            failure_details: failure
                .map(|failure| FailureDetails { by: failure.by ^ usize::from(swaps), ..failure }),
            client,
            exchanges,
            omitted_exchanges,
            directions,
        }
    }
}
