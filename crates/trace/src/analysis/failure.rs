//! Failed connections: unanswered or refused SYNs, resets, incomplete handshakes, and peers that
//! stopped responding.

use super::exchanges::Exchanges;
use super::flow::Flow;
use super::report::End;
use crate::segment::{Flags, Nanos, Segment};

/// Maximum number of unanswered transmissions of a live peer: a tail-loss probe and a timeout may
/// be two losses.
const MAX_UNANSWERED: u64 = 3;

/// Number of unanswered keepalive probes from which the peer counts as silent.
const MIN_PROBES: u64 = 2;

/// Kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No SYN was answered.
    Unanswered,
    /// A RST answered the SYN.
    Refused,
    /// The SYN was answered, but the handshake not completed.
    HalfOpen,
    /// A RST ended the connection.
    Reset,
    /// One end stopped acknowledging until the end of the capture or of the sender's retries.
    Silent,
}

/// State of a connection when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The handshake was not complete.
    Handshake,
    /// No data had been sent.
    BeforeData,
    /// Data of the client had no response yet.
    InRequest,
    /// Data of the server were not completely acknowledged.
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
    /// Index in the report's directions of the end that sent the RST or did not answer.
    pub by: usize,
    /// State of the connection.
    pub stage: Stage,
    /// Number of tries of the other end: SYNs, SYN-ACKs, transmissions or probes without an answer;
    /// 0 for a RST.
    pub tries: u64,
    /// Time from the first to the last try or, for data, from the first retransmission, ns. For a
    /// RST: idle time before it, or before the request that it answers.
    pub waited: Nanos,
}

/// A RST: its sender, the state of the connection, and the idle time before it.
#[derive(Clone, Copy, Debug)]
struct ResetInfo {
    by: usize,
    stage: Stage,
    idle: Nanos,
}

/// FINs and RSTs of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndTracker {
    fin: bool,
    /// The first RST.
    reset: Option<Box<ResetInfo>>,
}

/// State of a connection before its FIN or RST, or at the end of the capture.
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
    /// True if the end sent a SYN and nothing else.
    fn only_syns(&self) -> bool {
        self.isn.is_some() && self.counts.packets == self.syns()
    }

    fn syns(&self) -> u64 {
        1 + self.counts.syn_retransmissions
    }

    /// Number of transmissions of the last data since the last packet of the other end, and the
    /// time from the first to the last retransmission; 0 if all data are acknowledged.
    fn unanswered(&self) -> (u64, Nanos) {
        let peer_time = self.recovery.last_peer_time();
        let Some(stats) = self.stats.as_ref().filter(|_| self.acknowledged < self.next) else {
            return (0, 0);
        };
        let offset = stats.retransmitted.last().map(|event| event.offset);
        let since = stats.retransmitted.iter().rev().take_while(|event| event.time > peer_time);
        let mut same = since.filter(|event| Some(event.offset) == offset);
        let Some(last) = same.next() else { return (0, 0) };
        let (count, first) = same.fold((2, last.time), |(count, _), event| (count + 1, event.time));
        (count, last.time.saturating_sub(first))
    }

    /// Processes a keepalive probe (RFC 9293, section 3.8.4).
    #[cold]
    pub(super) fn on_keep_alive(&mut self, time: Nanos) {
        self.counts.keep_alives += 1;
        self.counts.keep_alives_unanswered = self.unanswered_keep_alives();
        self.keep_alive_sent = true;
        self.last_sent = time;
    }

    /// Whether the last keepalive probe has no answer yet.
    fn has_unanswered_keep_alive(&self) -> bool {
        self.keep_alive_sent
            && self.next == self.acknowledged
            && self.recovery.last_peer_time() < self.last_sent
    }

    /// Number of keepalive probes without an answer.
    pub(crate) fn unanswered_keep_alives(&self) -> u64 {
        self.counts.keep_alives_unanswered + u64::from(self.has_unanswered_keep_alive())
    }
}

impl ConnectionView<'_> {
    fn stage(&self, fin: bool) -> Stage {
        let opener = self.opener.map(|end| &self.flows[end]);
        let in_handshake = opener.is_some_and(|flow| flow.counts.packets == 0 || flow.only_syns());
        let [client, server] = [self.client, 1 - self.client].map(|end| &self.flows[end]);
        let has_request = client.counts.data_packets > 0;
        let unanswered = has_request && server.counts.data_packets == 0;
        match self.exchanges.and_then(Exchanges::awaits_response) {
            _ if in_handshake => Stage::Handshake,
            _ if fin => Stage::AfterFin,
            Some(true) => Stage::InRequest,
            None if unanswered => Stage::InRequest,
            _ if server.acknowledged < server.next => Stage::InResponse,
            _ if !has_request && server.counts.data_packets == 0 => Stage::BeforeData,
            _ => Stage::Idle,
        }
    }

    /// Returns the failure if one end does not acknowledge data.
    fn silent(&self) -> Option<FailureDetails> {
        self.unanswered_probes().or_else(|| {
            (0..2).find_map(|end| {
                let (tries, waited) = self.flows[end].unanswered();
                let was_alive = self.flows[1 - end].counts.packets > 0;
                let silent = was_alive && tries > MAX_UNANSWERED;
                silent.then(|| silent_peer(end, self.stage(false), tries, waited))
            })
        })
    }

    /// Returns the failure if one end does not answer keepalive probes.
    fn unanswered_probes(&self) -> Option<FailureDetails> {
        (0..2).find_map(|end| {
            let flow = &self.flows[end];
            let (tries, last_probe) = (flow.unanswered_keep_alives(), flow.last_sent);
            let waited = last_probe.saturating_sub(flow.recovery.last_peer_time());
            let silent = flow.has_unanswered_keep_alive() && tries >= MIN_PROBES;
            silent.then(|| silent_peer(end, Stage::Idle, tries, waited))
        })
    }

    /// Returns the failure if the handshake was not completed.
    fn handshake(&self) -> Option<FailureDetails> {
        let opener = self.opener?;
        let [active, passive] = [opener, 1 - opener].map(|end| &self.flows[end]);
        let silent = active.only_syns() && passive.counts.packets == 0;
        let pending = passive.only_syns() && (active.only_syns() || active.counts.packets == 0);
        let (failure, by, tries) = match (silent, pending) {
            (true, _) => (Failure::Unanswered, 1 - opener, active.syns()),
            (_, true) => (Failure::HalfOpen, opener, passive.syns()),
            _ => return None,
        };
        let waited = self.last.saturating_sub(self.first);
        Some(FailureDetails { failure, by, stage: Stage::Handshake, tries, waited })
    }
}

/// Returns the failure of the peer of `end`.
fn silent_peer(end: usize, stage: Stage, tries: u64, waited: Nanos) -> FailureDetails {
    FailureDetails { failure: Failure::Silent, by: 1 - end, stage, tries, waited }
}

impl EndTracker {
    /// Processes a FIN or RST from the end `from`.
    #[cold]
    pub(crate) fn read(&mut self, segment: &Segment, from: usize, view: &ConnectionView<'_>) {
        if segment.flags.any(Flags::RST) && self.reset.is_none() {
            let stage = view.stage(self.fin);
            let idle = view.exchanges.map(Exchanges::idle).filter(|_| stage == Stage::InRequest);
            let idle = idle.unwrap_or(segment.time.saturating_sub(view.last));
            self.reset = Some(Box::new(ResetInfo { by: from, stage, idle }));
        }
        self.fin |= segment.flags.any(Flags::FIN);
    }

    /// Returns the failure of the connection, if any.
    pub(crate) fn failure(&self, end: End, view: &ConnectionView<'_>) -> Option<FailureDetails> {
        if let Some(silent) = view.silent() {
            return Some(silent);
        }
        match self.reset.as_deref().filter(|_| end == End::Reset) {
            Some(&ResetInfo { by, stage, idle }) => {
                let opener = view.opener.filter(|_| stage == Stage::Handshake);
                let refused = opener.is_some_and(|end| by != end && view.flows[by].isn.is_none());
                let failure = if refused { Failure::Refused } else { Failure::Reset };
                let tries = opener.map_or(0, |end| view.flows[end].syns());
                Some(FailureDetails { failure, by, stage, tries, waited: idle })
            }
            None => view.handshake(),
        }
    }
}
