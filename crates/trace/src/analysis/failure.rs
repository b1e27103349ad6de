//! Failed connections: unanswered or refused SYNs, resets, incomplete handshakes, and peers that
//! stopped responding.

use super::exchanges::ExchangeTracker;
use super::flow::Flow;
use super::sender_state::MAX_REACTION_TIME;
use super::sequence_numbers::unwrap_near;
use crate::named_enum::named_enum;
use crate::segment::{Flags, Nanos, Segment};

named_enum! {
    /// How a connection ended, as far as captured.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum ConnectionEnd {
        /// The capture ended first.
        #[default]
        Open = "open",
        /// Both ends sent a FIN.
        Closed = "closed",
        /// A RST ended the connection.
        Reset = "reset",
        /// Evicted because too many connections were alive; this connection had been idle the longest.
        Evicted = "evicted",
    }
}

/// End of a connection, and whether packets were awaited for long enough after its last packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedEnd {
    pub(crate) end: ConnectionEnd,
    /// True if a SYN or SYN-ACK would have been answered or repeated. False if the capture ended
    /// sooner, or if the connection was evicted.
    observed_for_handshake: bool,
}

impl ObservedEnd {
    /// `observed`: time from the last packet to the eviction, or to the end of the capture, ns.
    pub(crate) fn new(end: ConnectionEnd, observed: Nanos) -> Self {
        Self { end, observed_for_handshake: observed >= MIN_HANDSHAKE_TIME }
    }
}

/// Number of unanswered transmissions from which the peer counts as silent.
const MIN_UNANSWERED: u64 = 3;
/// Minimum time between the first and the last of these transmissions. A tail-loss probe and a
/// timeout follow each other faster, and may be two losses.
const MIN_UNANSWERED_TIME: Nanos = 1_000_000_000;
/// Time without an answer from which a handshake has failed: the first RTO (RFC 6298).
const MIN_HANDSHAKE_TIME: Nanos = 1_000_000_000;
/// Sizes of a TLS record with a close notification, by cipher suite, bytes.
const CLOSE_NOTIFICATIONS: [u64; 9] = [23, 24, 27, 29, 31, 37, 53, 69, 85];

/// Number of unanswered keepalive probes from which the peer counts as silent.
const MIN_PROBES: u64 = 2;
/// The same for probes of a closed window, which may meet a busy receiver.
const MIN_WINDOW_PROBES: u64 = 3;

named_enum! {
    /// Kind of failure.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FailureKind {
        /// No SYN was answered.
        Unanswered = "unanswered",
        /// A RST answered the SYN.
        Refused = "refused",
        /// The SYN was answered, but the handshake not completed.
        HalfOpen = "half_open",
        /// A RST ended the connection.
        Reset = "reset",
        /// One end stopped acknowledging, until the capture ended or the sender gave up.
        Silent = "silent",
        /// Not a failure, but a delay: the first SYN met an old connection between the same ends, which
        /// the passive end acknowledged and the opener reset. A later SYN opened this connection.
        OldConnection = "old_connection",
    }
}

named_enum! {
    /// State of a connection when it failed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FailureStage {
        /// The handshake was not complete.
        Handshake = "handshake",
        /// Acknowledgements of an old connection between the same ends were the only answers to the SYN.
        OldConnection = "old_connection",
        /// No data had been sent.
        BeforeData = "before_data",
        /// Data of the client had no response yet.
        InRequest = "in_request",
        /// The server responded or closed while the client was still sending, and did not acknowledge
        /// all data of the client.
        InUpload = "in_upload",
        /// Data of the server were not completely acknowledged.
        InResponse = "in_response",
        /// The receiver had closed its window.
        ClosedWindow = "closed_window",
        /// All data were acknowledged.
        Idle = "idle",
        /// One end had sent a FIN.
        AfterFin = "after_fin",
    }
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
    /// the RST. For an old connection: time from the first SYN to the SYN that was answered.
    pub waited: Nanos,
    /// Payload that was sent, but never acknowledged, of the ends of each direction, bytes. For a
    /// silent end: the payload sent to it. A TLS close notification before a FIN does not count.
    pub lost_bytes: [u64; 2],
    /// Time from the last packet of a silent end to the last packet of the connection, ns.
    pub silence: Nanos,
    /// Largest and last receive window of a silent end, bytes.
    pub windows: [u64; 2],
    /// True if the scale of these windows is unknown.
    pub windows_unscaled: bool,
    /// True if the connection opened, and no end waited for the lost data.
    pub harmless: bool,
}

impl FailureDetails {
    fn new(failure: FailureKind, by: usize, stage: FailureStage) -> Self {
        Self {
            failure,
            by,
            stage,
            tries: 0,
            waited: 0,
            lost_bytes: [0; 2],
            silence: 0,
            windows: [0; 2],
            windows_unscaled: false,
            harmless: failure == FailureKind::OldConnection,
        }
    }

    /// Whether a handshake had too little time for an answer or a second try.
    pub(crate) fn is_undecided(&self, end: &ObservedEnd) -> bool {
        matches!(self.failure, FailureKind::Unanswered | FailureKind::HalfOpen)
            && self.tries == 1
            && !end.observed_for_handshake
    }

    /// Returns the failure for the other order of directions.
    pub(crate) fn swapped(self) -> Self {
        let [first, second] = self.lost_bytes;
        Self { by: 1 - self.by, lost_bytes: [second, first], ..self }
    }
}

/// Sender of a RST, state of the connection before the RST, and idle time before the RST.
#[derive(Clone, Copy, Debug)]
struct ResetInfo {
    by: usize,
    time: Nanos,
    stage: FailureStage,
    idle: Nanos,
    /// Time of the last data or the FIN of the other end, if there are any.
    responded: Option<Nanos>,
    /// Next sequence number of the sender of the RST.
    next: u64,
    /// Acknowledgement number.
    acknowledgement: Option<u32>,
}

/// FINs and RSTs of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct FinRstTracker {
    /// Time of the first FIN of each end.
    fins: [Option<Nanos>; 2],
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
    /// Time of the last SYN of the opener.
    pub(crate) last_syn: Nanos,
    /// Round-trip time between the tap and the client; 0 if unknown.
    pub(crate) client_rtt: Nanos,
}

impl Flow {
    /// True if the end sent a SYN and nothing else.
    fn has_sent_only_syns(&self) -> bool {
        self.isn.is_some()
            && self.counts.packets == self.syn_count() + self.counts.old_connection_packets
    }

    /// True if the end sent nothing, except for packets of an old connection.
    fn has_sent_nothing(&self) -> bool {
        self.counts.packets == self.counts.old_connection_packets
    }

    fn syn_count(&self) -> u64 {
        1 + self.counts.syn_retransmissions
    }

    /// Payload that was sent, but never acknowledged, bytes; `reset`: acknowledgement number of a
    /// RST. 0 if the capture contains no acknowledgements.
    fn lost_bytes(&self, reset: Option<u32>) -> u64 {
        let reset = reset.map(|number| unwrap_near(self.acknowledged, number));
        let from = reset.filter(|number| *number <= self.next).unwrap_or(0).max(self.acknowledged);
        if self.window_seen { self.flight.payload_from(from) } else { 0 }
    }

    /// Returns true if the other end did not respond to several transmissions of the last data.
    fn has_silent_receiver(&self) -> bool {
        let (tries, waited) = self.unanswered_transmissions();
        let first = || {
            let last = self.stats.as_ref().and_then(|stats| stats.retransmitted.last());
            let sent = self.flight.first_payload_time()?.max(self.recovery.last_peer_time());
            last.map(|last| last.time.saturating_sub(sent))
        };
        let long = || first().unwrap_or(waited) >= MIN_UNANSWERED_TIME;
        tries > MIN_UNANSWERED || tries == MIN_UNANSWERED && long()
    }

    /// Returns true if the other end closed its window and does not answer the probes.
    fn has_unanswered_window_probes(&self) -> bool {
        self.unanswered_window_probes >= MIN_WINDOW_PROBES
            && self.recovery.last_peer_time() < self.last_window_probe
    }

    /// Time from the last packet of a receiver that answers neither data nor window probes to the
    /// last data or probe.
    pub(super) fn receiver_silence(&self) -> Option<Nanos> {
        let silent =
            self.window_seen && (self.has_silent_receiver() || self.has_unanswered_window_probes());
        let last = self.last_sent.max(self.last_window_probe);
        silent.then(|| last.saturating_sub(self.recovery.last_peer_time()))
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
            opener.is_some_and(|flow| flow.has_sent_nothing() || flow.has_sent_only_syns());
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

    /// Returns the failure if one end does not answer probes or acknowledge data.
    fn unanswered_packets_failure(&self, fins: [bool; 2]) -> Option<FailureDetails> {
        self.unanswered_keep_alive_failure()
            .or_else(|| self.unanswered_window_probe_failure())
            .or_else(|| {
                (0..2).find_map(|end| {
                    let flow = &self.flows[end];
                    let was_alive = self.flows[1 - end].counts.packets > 0;
                    // A FIN with the unanswered data does not show that the peer got them.
                    let stage = || self.failure_stage(fins[1 - end]);
                    (was_alive && flow.has_silent_receiver()).then(|| {
                        self.silent_peer_failure(end, stage(), flow.unanswered_transmissions())
                    })
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
            silent.then(|| self.silent_peer_failure(end, FailureStage::Idle, (tries, waited)))
        })
    }

    /// Returns the failure if one end closed its window and does not answer the probes.
    fn unanswered_window_probe_failure(&self) -> Option<FailureDetails> {
        (0..2).find_map(|end| {
            let flow = &self.flows[end];
            let (tries, last_answer) =
                (flow.unanswered_window_probes, flow.recovery.last_peer_time());
            let waited = flow.last_window_probe.saturating_sub(last_answer);
            flow.has_unanswered_window_probes()
                .then(|| self.silent_peer_failure(end, FailureStage::ClosedWindow, (tries, waited)))
        })
    }

    /// Returns the failure of the peer of `end`, which answered neither data nor probes.
    fn silent_peer_failure(
        &self,
        end: usize,
        stage: FailureStage,
        (tries, waited): (u64, Nanos),
    ) -> FailureDetails {
        let flow = &self.flows[end];
        let mut lost_bytes = [0; 2];
        lost_bytes[end] = flow.lost_bytes(None);
        FailureDetails {
            tries,
            waited,
            lost_bytes,
            silence: self.last.saturating_sub(flow.recovery.last_peer_time()),
            windows: [flow.window_max, flow.window],
            windows_unscaled: flow.unscaled,
            ..FailureDetails::new(FailureKind::Silent, 1 - end, stage)
        }
    }

    /// Returns the failure if the handshake was not completed, or the delay if the first SYN met an
    /// old connection.
    fn handshake_failure(&self) -> Option<FailureDetails> {
        let opener = self.opener?;
        let [active, passive] = [opener, 1 - opener].map(|end| &self.flows[end]);
        let met_old_connection = passive.counts.old_connection_packets > 0;
        let silent = active.has_sent_only_syns() && passive.has_sent_nothing();
        let pending = passive.has_sent_only_syns()
            && (active.has_sent_only_syns() || active.has_sent_nothing());
        let (failure, by, tries) = match (silent, pending) {
            (true, _) => (FailureKind::Unanswered, 1 - opener, active.syn_count()),
            (_, true) => (FailureKind::HalfOpen, opener, passive.syn_count()),
            _ if met_old_connection => (FailureKind::OldConnection, 1 - opener, active.syn_count()),
            _ => return None,
        };
        let stage = match failure {
            FailureKind::Unanswered if met_old_connection => FailureStage::OldConnection,
            _ => FailureStage::Handshake,
        };
        let until = if failure == FailureKind::OldConnection { self.last_syn } else { self.last };
        let waited = until.saturating_sub(self.first);
        Some(FailureDetails { tries, waited, ..FailureDetails::new(failure, by, stage) })
    }
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
            let stage = view.failure_stage(self.fins != [None; 2]);
            let idle = view
                .exchanges
                .map(ExchangeTracker::idle_before_request)
                .filter(|_| stage == FailureStage::InRequest);
            let idle = idle.unwrap_or(segment.time.saturating_sub(view.last));
            self.reset = Some(Box::new(ResetInfo {
                by: from,
                time: segment.time,
                stage,
                idle,
                responded: self.response_time(view),
                next: view.flows[from].next,
                acknowledgement: segment
                    .flags
                    .contains_any(Flags::ACK)
                    .then_some(segment.acknowledgement),
            }));
        }
        if segment.flags.contains_any(Flags::FIN) {
            self.fins[from].get_or_insert(segment.time);
        }
    }

    /// Whether an end has sent a FIN.
    pub(crate) fn has_sent_fin(&self, end: usize) -> bool {
        self.fins[end].is_some()
    }

    /// Time of the last data of the server, or of its FIN plus the time until a client reacts to a
    /// FIN.
    fn response_time(&self, view: &ConnectionView<'_>) -> Option<Nanos> {
        let server = &view.flows[1 - view.client];
        let data = (server.counts.data_packets > 0).then_some(server.last_sent);
        data.max(self.fins[1 - view.client].map(|fin| fin.saturating_add(MAX_REACTION_TIME)))
    }

    /// Payload of an end that the other end never acknowledged, bytes.
    fn lost_bytes(&self, end: usize, reset: &ResetInfo, view: &ConnectionView<'_>) -> u64 {
        let flow = &view.flows[end];
        let lost = flow.lost_bytes(reset.acknowledgement.filter(|_| reset.by != end));
        // An end that closes a TLS connection does not wait for the notification of the other end.
        let notifies = self.fins[end].is_some() && CLOSE_NOTIFICATIONS.contains(&lost);
        if notifies { 0 } else { lost }
    }

    /// Whether the client reset a connection that it had closed before the lost data of the server
    /// reached it: it waited for none of them. A server must read what clients send.
    fn is_closed_by_client(&self, reset: &ResetInfo, view: &ConnectionView<'_>) -> bool {
        let closed = self.fins[view.client].unwrap_or(reset.time);
        let sent = view.flows[1 - view.client].flight.first_payload_time();
        reset.by == view.client
            && sent.is_none_or(|sent| sent.saturating_add(view.client_rtt) >= closed)
    }

    /// Returns the first RST, unless its sender later sent data that the other end acknowledged: the
    /// RST had a wrong number, and was ignored (RFC 5961, section 3).
    fn effective_reset(&self, view: &ConnectionView<'_>) -> Option<&ResetInfo> {
        let continues = |reset: &&ResetInfo| view.flows[reset.by].acknowledged <= reset.next;
        self.reset.as_deref().filter(continues)
    }

    /// Returns how the connection ended: a RST that was ignored did not end it.
    pub(crate) fn effective_end(
        &self,
        end: ConnectionEnd,
        view: &ConnectionView<'_>,
    ) -> ConnectionEnd {
        match (end, self.effective_reset(view), self.fins) {
            (ConnectionEnd::Reset, None, [Some(_), Some(_)]) => ConnectionEnd::Closed,
            (ConnectionEnd::Reset, None, _) => ConnectionEnd::Open,
            _ => end,
        }
    }

    /// Returns the failure of the connection, if any.
    pub(crate) fn connection_failure(
        &self,
        end: ConnectionEnd,
        view: &ConnectionView<'_>,
    ) -> Option<FailureDetails> {
        if let Some(silent) = view.unanswered_packets_failure(self.fins.map(|fin| fin.is_some())) {
            return Some(silent);
        }
        let reset = self.effective_reset(view).and_then(|reset| {
            let lost = [0, 1].map(|end| self.lost_bytes(end, reset, view));
            let unwanted = lost[view.client] == 0 && self.is_closed_by_client(reset, view);
            let harmless = lost == [0; 2] || unwanted;
            // After both FINs, only a loss of data is a failure.
            let failed = end == ConnectionEnd::Reset || end == ConnectionEnd::Closed && !harmless;
            failed.then(|| reset_failure(reset, lost, harmless, view))
        });
        reset.or_else(|| view.handshake_failure())
    }
}

/// Returns the failure of a connection that was reset. `lost`: unacknowledged bytes of each end.
/// `harmless`: no end waited for these.
fn reset_failure(
    reset: &ResetInfo,
    lost: [u64; 2],
    harmless: bool,
    view: &ConnectionView<'_>,
) -> FailureDetails {
    let &ResetInfo { by, mut stage, idle, responded, .. } = reset;
    // The client sent the lost data before it could have received the response or the FIN.
    let sent = view.flows[view.client].flight.first_payload_time();
    let overlaps =
        responded.zip(sent).is_some_and(|(at, sent)| sent <= at.saturating_add(view.client_rtt));
    if by != view.client && overlaps && lost[view.client] > 0 && stage != FailureStage::Handshake {
        stage = FailureStage::InUpload;
    }
    let opener = view.opener.filter(|_| stage == FailureStage::Handshake);
    let refused = opener.is_some_and(|end| by != end && view.flows[by].isn.is_none());
    let failure = if refused { FailureKind::Refused } else { FailureKind::Reset };
    FailureDetails {
        tries: opener.map_or(0, |end| view.flows[end].syn_count()),
        waited: idle,
        lost_bytes: lost,
        harmless: harmless && matches!(stage, FailureStage::Idle | FailureStage::AfterFin),
        ..FailureDetails::new(failure, by, stage)
    }
}
