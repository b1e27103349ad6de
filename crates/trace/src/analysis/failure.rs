//! Failed connections: unanswered or refused SYNs, resets, incomplete handshakes, and peers that
//! stopped responding.

use super::exchanges::ExchangeTracker;
use super::flow::Flow;
use crate::segment::{Flags, Nanos, Segment};

/// How a connection ended, as far as captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The capture ended first.
    #[default]
    Open,
    /// Both ends sent a FIN.
    Closed,
    /// A RST ended the connection.
    Reset,
    /// Evicted because too many connections were alive; this connection had been idle the longest.
    Evicted,
}

/// Maximum number of unanswered transmissions of a live peer: a tail-loss probe and a timeout may
/// be two losses.
const MAX_UNANSWERED: u64 = 3;

/// Number of unanswered keepalive probes from which the peer counts as silent.
const MIN_PROBES: u64 = 2;

/// Kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// No SYN was answered.
    Unanswered,
    /// A RST answered the SYN.
    Refused,
    /// The SYN was answered, but the handshake not completed.
    HalfOpen,
    /// A RST ended the connection.
    Reset,
    /// One end stopped acknowledging, until the capture ended or the sender gave up.
    Silent,
}

/// State of a connection when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureStage {
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
    pub failure: FailureKind,
    /// Index in the report's directions of the end that sent the RST or did not answer.
    pub by: usize,
    /// State of the connection.
    pub stage: FailureStage,
    /// Number of tries of the other end: SYNs, SYN-ACKs, transmissions or probes without an answer;
    /// 0 for a RST.
    pub tries: u64,
    /// Time from the first to the last try or, for data, from the first retransmission, ns. For a
    /// RST that answers a request: idle time before the request. For other RSTs: idle time before
    /// the RST.
    pub waited: Nanos,
}

/// Sender of a RST, state of the connection before the RST, and idle time before the RST.
#[derive(Clone, Copy, Debug)]
struct ResetInfo {
    by: usize,
    stage: FailureStage,
    idle: Nanos,
}

/// FINs and RSTs of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct FinRstTracker {
    /// True for each end that sent a FIN.
    fins: [bool; 2],
    /// The first RST.
    reset: Option<Box<ResetInfo>>,
}

/// State of a connection before its FIN or RST, or at the end of the capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionView<'a> {
    pub(crate) flows: &'a [Flow; 2],
    pub(crate) exchanges: Option<&'a ExchangeTracker>,
    pub(crate) opener: Option<usize>,
    pub(crate) client: usize,
    pub(crate) first: Nanos,
    pub(crate) last: Nanos,
}

impl Flow {
    /// True if the end sent a SYN and nothing else.
    fn has_sent_only_syns(&self) -> bool {
        self.isn.is_some() && self.counts.packets == self.syn_count()
    }

    fn syn_count(&self) -> u64 {
        1 + self.counts.syn_retransmissions
    }

    /// Number of transmissions of the last data since the last packet of the other end, and the
    /// time from the first to the last retransmission; 0 if all data are acknowledged.
    fn unanswered_transmissions(&self) -> (u64, Nanos) {
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
    fn failure_stage(&self, fin: bool) -> FailureStage {
        let opener = self.opener.map(|end| &self.flows[end]);
        let in_handshake =
            opener.is_some_and(|flow| flow.counts.packets == 0 || flow.has_sent_only_syns());
        let [client, server] = [self.client, 1 - self.client].map(|end| &self.flows[end]);
        let has_request = client.counts.data_packets > 0;
        let unanswered = has_request && server.counts.data_packets == 0;
        match self.exchanges.and_then(ExchangeTracker::awaits_response) {
            _ if in_handshake => FailureStage::Handshake,
            _ if fin => FailureStage::AfterFin,
            Some(true) => FailureStage::InRequest,
            None if unanswered => FailureStage::InRequest,
            _ if server.acknowledged < server.next => FailureStage::InResponse,
            _ if !has_request && server.counts.data_packets == 0 => FailureStage::BeforeData,
            _ => FailureStage::Idle,
        }
    }

    /// Returns the failure if one end does not answer keep-alive probes or acknowledge data.
    fn unanswered_packets_failure(&self, fins: [bool; 2]) -> Option<FailureDetails> {
        self.unanswered_keep_alive_failure().or_else(|| {
            (0..2).find_map(|end| {
                let (tries, waited) = self.flows[end].unanswered_transmissions();
                let was_alive = self.flows[1 - end].counts.packets > 0;
                let silent = was_alive && tries > MAX_UNANSWERED;
                // A FIN with the unanswered data does not show that the peer got them.
                let stage = || self.failure_stage(fins[1 - end]);
                silent.then(|| silent_peer_failure(end, stage(), tries, waited))
            })
        })
    }

    /// Returns the failure if one end does not answer keepalive probes.
    fn unanswered_keep_alive_failure(&self) -> Option<FailureDetails> {
        (0..2).find_map(|end| {
            let flow = &self.flows[end];
            let (tries, last_probe) = (flow.unanswered_keep_alives(), flow.last_sent);
            let waited = last_probe.saturating_sub(flow.recovery.last_peer_time());
            let silent = flow.has_unanswered_keep_alive() && tries >= MIN_PROBES;
            silent.then(|| silent_peer_failure(end, FailureStage::Idle, tries, waited))
        })
    }

    /// Returns the failure if the handshake was not completed.
    fn handshake_failure(&self) -> Option<FailureDetails> {
        let opener = self.opener?;
        let [active, passive] = [opener, 1 - opener].map(|end| &self.flows[end]);
        let silent = active.has_sent_only_syns() && passive.counts.packets == 0;
        let pending = passive.has_sent_only_syns()
            && (active.has_sent_only_syns() || active.counts.packets == 0);
        let (failure, by, tries) = match (silent, pending) {
            (true, _) => (FailureKind::Unanswered, 1 - opener, active.syn_count()),
            (_, true) => (FailureKind::HalfOpen, opener, passive.syn_count()),
            _ => return None,
        };
        let waited = self.last.saturating_sub(self.first);
        Some(FailureDetails { failure, by, stage: FailureStage::Handshake, tries, waited })
    }
}

/// Returns the failure of the peer of `end`.
fn silent_peer_failure(
    end: usize,
    stage: FailureStage,
    tries: u64,
    waited: Nanos,
) -> FailureDetails {
    FailureDetails { failure: FailureKind::Silent, by: 1 - end, stage, tries, waited }
}

impl FinRstTracker {
    /// Processes a FIN or RST from the end `from`.
    #[cold]
    pub(crate) fn process_fin_or_rst(
        &mut self,
        segment: &Segment,
        from: usize,
        view: &ConnectionView<'_>,
    ) {
        if segment.flags.contains_any(Flags::RST) && self.reset.is_none() {
            let stage = view.failure_stage(self.fins.contains(&true));
            let idle = view
                .exchanges
                .map(ExchangeTracker::idle_before_request)
                .filter(|_| stage == FailureStage::InRequest);
            let idle = idle.unwrap_or(segment.time.saturating_sub(view.last));
            self.reset = Some(Box::new(ResetInfo { by: from, stage, idle }));
        }
        self.fins[from] |= segment.flags.contains_any(Flags::FIN);
    }

    /// Returns the failure of the connection, if any.
    pub(crate) fn connection_failure(
        &self,
        end: ConnectionEnd,
        view: &ConnectionView<'_>,
    ) -> Option<FailureDetails> {
        if let Some(silent) = view.unanswered_packets_failure(self.fins) {
            return Some(silent);
        }
        match self.reset.as_deref().filter(|_| end == ConnectionEnd::Reset) {
            Some(&ResetInfo { by, stage, idle }) => {
                let opener = view.opener.filter(|_| stage == FailureStage::Handshake);
                let refused = opener.is_some_and(|end| by != end && view.flows[by].isn.is_none());
                let failure = if refused { FailureKind::Refused } else { FailureKind::Reset };
                let tries = opener.map_or(0, |end| view.flows[end].syn_count());
                Some(FailureDetails { failure, by, stage, tries, waited: idle })
            }
            None => view.handshake_failure(),
        }
    }
}
