//! A connection while it lives.

use crate::analysis::{Budget, ConnectionReport, DirectionReport, End, Flow, Outlook, Tap};
use crate::segment::{Endpoint, Flags, Nanos, Segment};

/// How much is kept one by one, of a direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) events: usize,
    pub(super) points: usize,
}

/// Both directions, and what they share.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    number: u64,
    first_frame: u64,
    first: Nanos,
    last: Nanos,
    /// The first is that of who sent the first segment.
    ends: [Endpoint; 2],
    flows: [Flow; 2],
    tap: Tap,
    /// Who opened it, if that was captured.
    opener: Option<usize>,
    most: Most,
}

impl Connection {
    pub(super) fn new(number: u64, segment: &Segment, most: Most) -> Self {
        Self {
            number,
            first_frame: segment.frame,
            first: segment.time,
            last: segment.time,
            ends: [segment.source, segment.destination],
            flows: [Flow::default(), Flow::default()],
            tap: Tap::default(),
            opener: None,
            most,
        }
    }

    /// When its last segment was captured.
    pub(super) fn last(&self) -> Nanos {
        self.last
    }

    /// The first is that of who sent the first segment.
    pub(super) fn ends(&self) -> [Endpoint; 2] {
        self.ends
    }

    /// Fetches from memory what the next segments change; what comes of it says nothing.
    #[inline]
    pub(super) fn fetch(&self) -> u64 {
        let flows = self.flows[0].fetch().wrapping_add(self.flows[1].fetch());
        flows.wrapping_add(self.last).wrapping_add(self.tap.round_trip(0).unwrap_or(0))
    }

    /// The same of what the former points to.
    #[inline]
    pub(super) fn fetch_more(&self) -> u64 {
        self.flows[0].fetch_more().wrapping_add(self.flows[1].fetch_more())
    }

    /// The same of what that points to.
    #[inline]
    pub(super) fn fetch_most(&self) -> u64 {
        self.flows[0].fetch_most().wrapping_add(self.flows[1].fetch_most())
    }

    /// Which end sent it. (One end talking to itself is taken for the first.)
    #[inline(always)]
    fn from(&self, segment: &Segment) -> usize {
        usize::from(self.ends[0] != segment.source)
    }

    /// The next segment of it.
    #[inline]
    pub(super) fn push(&mut self, segment: &Segment, budget: &Budget) {
        let from = self.from(segment);
        self.last = self.last.max(segment.time);
        self.tap.read(segment, from);
        let answered = self.outlook(1 - from, budget);
        self.flows[1 - from].hears(segment, &answered);
        let outlook = self.outlook(from, budget);
        self.flows[from].sends(segment, &outlook);
        if segment.flags.any(Flags::SYN) && self.opener.is_none() {
            self.opener = Some(if segment.flags.any(Flags::ACK) { 1 - from } else { from });
        }
    }

    /// What the flow of data from the end `from` has to know.
    #[inline]
    fn outlook<'a>(&self, from: usize, budget: &'a Budget) -> Outlook<'a> {
        let (own, peer) = (&self.flows[from], &self.flows[1 - from]);
        let (sends, takes) = (&own.announced, &peer.announced);
        let (syn, answer) = (own.isn.is_some(), peer.isn.is_some());
        Outlook {
            near: self.tap.round_trip(from).unwrap_or(0),
            // RFC 7323, section 2.2: only if both ends have sent the option. An answer with it says so of both.
            scale: match (answer, syn) {
                (false, _) => None,
                (true, true) if sends.complete && sends.window_scale.is_none() => Some(0),
                (true, _) if takes.complete || takes.window_scale.is_some() => {
                    Some(takes.window_scale.unwrap_or(0))
                }
                _ => None,
            },
            sack: (!syn || !sends.complete || sends.sack)
                && (!answer || !takes.complete || takes.sack),
            mss: takes.mss,
            most_events: self.most.events,
            budget,
            most_points: self.most.points,
        }
    }

    /// What is said of it, now that it has come to this end. `copies`: frames captured twice, from each end.
    pub(super) fn report(self, end: End, copies: [u64; 2], budget: &Budget) -> ConnectionReport {
        let Self { ends: [a, b], flows: [mut first, mut second], tap, .. } = self;
        [first.counts.capture_duplicates, second.counts.capture_duplicates] = copies;
        let syn_captured = first.isn.is_some() || second.isn.is_some();
        let mut directions = [first.report(a, b, &tap, 0), second.report(b, a, &tap, 1)];
        let kept = |direction: &DirectionReport| {
            direction.loss_times.len() + direction.retransmitted.len()
        };
        budget.release(directions.iter().map(kept).sum());
        if self.opener == Some(1) {
            directions.swap(0, 1);
        }
        ConnectionReport {
            number: self.number,
            first_frame: self.first_frame,
            first: self.first,
            last: self.last,
            syn_captured,
            end,
            handshake_rtt_s: tap.handshake().map(|whole| whole as f64 / 1e9),
            directions,
        }
    }
}
