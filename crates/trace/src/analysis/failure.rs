//! Connections that failed: SYNs without an answer, refusals, resets, handshakes that were not completed, and peers
//! that fell silent.

use super::exchanges::Exchanges;
use super::flow::Flow;
use super::report::End;
use crate::segment::{Flags, Nanos, Segment};

/// More transmissions without any answer mean that the other end is silent: a tail-loss probe and a timeout may be two
/// losses.
const SILENT: u64 = 3;

/// From this number of keepalive probes without an answer on, the other end is silent.
const IGNORED: u64 = 2;

/// How a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No SYN was answered.
    Unanswered,
    /// A RST answered the SYN.
    Refused,
    /// The SYN was answered, but the handshake was not completed.
    HalfOpen,
    /// A RST ended it.
    Reset,
    /// One end did not acknowledge data of the other one at all, until the capture or the sender gave up.
    Silent,
}

/// How far a connection had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The handshake had not ended.
    Handshake,
    /// No data had been sent.
    BeforeData,
    /// Data of the client had no response.
    InRequest,
    /// Data of the server were not all acknowledged.
    InResponse,
    /// All data were acknowledged.
    Idle,
    /// One end had sent a FIN.
    AfterFin,
}

/// How and when a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureDetails {
    /// Kind of failure.
    pub failure: Failure,
    /// Place of the end that answered with a RST, or that did not answer, in the report's directions.
    pub by: usize,
    /// How far the connection had come.
    pub stage: Stage,
    /// How often the other end tried: SYNs, SYN-ACKs, transmissions or probes without an answer; 0 for a RST.
    pub tries: u64,
    /// From the first try to the last, or for data from the first retransmission, ns; for a RST, how long the connection was quiet before it, or before the
    /// request that it answers.
    pub waited: Nanos,
}

/// A RST: which end sent it, how far the connection had come, and for how long it had been quiet.
#[derive(Clone, Copy, Debug)]
struct ResetInfo {
    by: usize,
    stage: Stage,
    quiet: Nanos,
}

/// The end of a connection so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndTracker {
    fin: bool,
    /// The first RST.
    reset: Option<Box<ResetInfo>>,
}

/// A connection before its FIN or RST, or at the end of the capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionView<'a> {
    pub(crate) flows: &'a [Flow; 2],
    pub(crate) exchanges: Option<&'a Exchanges>,
    pub(crate) opener: Option<usize>,
    pub(crate) client: usize,
    pub(crate) first: Nanos,
    pub(crate) last: Nanos,
}

impl Flow {
    /// It has sent its SYN, and nothing else.
    fn only_syns(&self) -> bool {
        self.isn.is_some() && self.counts.packets == self.syns()
    }

    fn syns(&self) -> u64 {
        1 + self.counts.syn_retransmissions
    }

    /// Transmissions of the last data since the other end was last heard, and the time from the first retransmission
    /// to the last; none if all is acknowledged.
    fn unanswered(&self) -> (u64, Nanos) {
        let heard = self.recovery.last_peer_time();
        let Some(stats) = self.stats.as_ref().filter(|_| self.acknowledged < self.next) else {
            return (0, 0);
        };
        let offset = stats.retransmitted.last().map(|again| again.offset);
        let since = stats.retransmitted.iter().rev().take_while(|again| again.time > heard);
        let mut same = since.filter(|again| Some(again.offset) == offset);
        let Some(last) = same.next() else { return (0, 0) };
        let (count, first) = same.fold((2, last.time), |(count, _), again| (count + 1, again.time));
        (count, last.time.saturating_sub(first))
    }

    /// A keepalive probe (RFC 9293, section 3.8.4).
    #[cold]
    pub(super) fn on_keep_alive(&mut self, time: Nanos) {
        self.counts.keep_alives += 1;
        self.counts.keep_alives_unanswered = self.unanswered_keep_alives();
        self.asked = true;
        self.last_sent = time;
    }

    /// Whether the last keepalive probe has no answer yet.
    fn ignored(&self) -> bool {
        self.asked && self.next == self.acknowledged && self.recovery.last_peer_time() < self.last_sent
    }

    /// Keepalive probes without an answer.
    pub(crate) fn unanswered_keep_alives(&self) -> u64 {
        self.counts.keep_alives_unanswered + u64::from(self.ignored())
    }
}

impl ConnectionView<'_> {
    fn stage(&self, fin: bool) -> Stage {
        let opener = self.opener.map(|end| &self.flows[end]);
        let shaking = opener.is_some_and(|flow| flow.counts.packets == 0 || flow.only_syns());
        let [asks, answers] = [self.client, 1 - self.client].map(|end| &self.flows[end]);
        let asked = asks.counts.data_packets > 0;
        let unanswered = asked && answers.counts.data_packets == 0;
        match self.exchanges.and_then(Exchanges::waits) {
            _ if shaking => Stage::Handshake,
            _ if fin => Stage::AfterFin,
            Some(true) => Stage::InRequest,
            None if unanswered => Stage::InRequest,
            _ if answers.acknowledged < answers.next => Stage::InResponse,
            _ if !asked && answers.counts.data_packets == 0 => Stage::BeforeData,
            _ => Stage::Idle,
        }
    }

    /// An end that does not answer data of the other one.
    fn silent(&self) -> Option<FailureDetails> {
        self.ignored().or_else(|| {
            (0..2).find_map(|end| {
                let (tries, waited) = self.flows[end].unanswered();
                let spoke = self.flows[1 - end].counts.packets > 0;
                let stage = self.stage(false);
                (spoke && tries > SILENT).then_some(FailureDetails {
                    failure: Failure::Silent,
                    by: 1 - end,
                    stage,
                    tries,
                    waited,
                })
            })
        })
    }

    /// An end that does not answer keepalive probes.
    fn ignored(&self) -> Option<FailureDetails> {
        (0..2).find_map(|end| {
            let flow = &self.flows[end];
            let (tries, waited) = (flow.unanswered_keep_alives(), flow.last_sent);
            (flow.ignored() && tries >= IGNORED).then_some(FailureDetails {
                failure: Failure::Silent,
                by: 1 - end,
                stage: Stage::Idle,
                tries,
                waited: waited.saturating_sub(flow.recovery.last_peer_time()),
            })
        })
    }

    /// A handshake that was not completed.
    fn handshake(&self, stage: Stage) -> Option<FailureDetails> {
        let opener = self.opener?;
        let [asks, answers] = [opener, 1 - opener].map(|end| &self.flows[end]);
        let silent = asks.only_syns() && answers.counts.packets == 0;
        let pending = answers.only_syns() && (asks.only_syns() || asks.counts.packets == 0);
        let (failure, by, tries) = match (silent, pending) {
            (true, _) => (Failure::Unanswered, 1 - opener, asks.syns()),
            (_, true) => (Failure::HalfOpen, opener, answers.syns()),
            _ => return None,
        };
        Some(FailureDetails { failure, by, stage, tries, waited: self.last.saturating_sub(self.first) })
    }
}

impl EndTracker {
    /// A FIN or RST from the end `from`.
    #[cold]
    pub(crate) fn read(&mut self, segment: &Segment, from: usize, view: &ConnectionView<'_>) {
        if segment.flags.any(Flags::RST) && self.reset.is_none() {
            let stage = view.stage(self.fin);
            let idle = view.exchanges.map(Exchanges::idle).filter(|_| stage == Stage::InRequest);
            let quiet = idle.unwrap_or(segment.time.saturating_sub(view.last));
            self.reset = Some(Box::new(ResetInfo { by: from, stage, quiet }));
        }
        self.fin |= segment.flags.any(Flags::FIN);
    }

    /// How the connection failed, if it did.
    pub(crate) fn failure(&self, end: End, view: &ConnectionView<'_>) -> Option<FailureDetails> {
        if let Some(silent) = view.silent() {
            return Some(silent);
        }
        match self.reset.as_deref().filter(|_| end == End::Reset) {
            Some(&ResetInfo { by, stage, quiet }) => {
                let opener = view.opener.filter(|_| stage == Stage::Handshake);
                let refused = opener.is_some_and(|end| by != end && view.flows[by].isn.is_none());
                let failure = if refused { Failure::Refused } else { Failure::Reset };
                let tries = opener.map_or(0, |end| view.flows[end].syns());
                Some(FailureDetails { failure, by, stage, tries, waited: quiet })
            }
            None => view.handshake(Stage::Handshake),
        }
    }
}
