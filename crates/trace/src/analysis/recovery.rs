//! Classifies retransmissions: reconstructs the state of the sender's loss recovery from the
//! capture.

use super::retransmission_cause::{IndicationKind, RetransCause, RetransVerdict};
use super::sender_state::{MAX_REACTION_TIME, MIN_RTO_MINUS_SRTT, SenderState};
use crate::segment::Nanos;

/// RFC 6298, (2.4): 1 s minus a tolerance of one timer tick.
const RFC_MIN_TIMEOUT: Nanos = 900_000_000;
/// A timer may expire one tick earlier than estimated.
const MIN_RTO_SHARE: f64 = 0.9;
/// Duplicate acknowledgements that trigger a fast retransmit (RFC 5681, section 3.2).
pub(super) const DUPLICATE_THRESHOLD: u32 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RecoveryPhase {
    #[default]
    Open,
    /// Retransmissions belong to the current indication until `recover` is acknowledged.
    Repair(RetransCause),
}

/// A captured retransmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetransmittedSegment {
    pub(super) time: Nanos,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Time of the previous transmission of these bytes, if captured.
    pub(super) last_sent: Option<Nanos>,
    /// True if these bytes had already been retransmitted.
    pub(super) repeated: bool,
}

/// State of a sender's loss recovery.
#[derive(Clone, Debug, Default)]
pub(super) struct RecoveryTracker {
    pub(super) duplicates: u32,
    /// Times of the duplicate that reached the threshold, and of the latest duplicate.
    threshold_time: Nanos,
    last_duplicate: Nanos,
    /// Time of the last acknowledgement of new data.
    last_advance: Nanos,
    /// Capture time of the last packet from the peer.
    peer_time: Option<Nanos>,
    /// Time of the last start of the retransmission timer.
    pub(super) timer_start: Nanos,
    recover: u64,
    /// End of the data sent before the last RTO, all of which may be retransmitted.
    rto_recover: u64,
    /// Shortest observed run of the timer that nothing else explains; 0 if none.
    min_timeout: Nanos,
    /// Start of the current recovery.
    entered: Nanos,
    phase: RecoveryPhase,
    /// Number of timeouts since the last new acknowledgement.
    depth: u8,
    /// True if the stack retransmits on a partial acknowledgement, without further duplicates (RFC
    /// 6582).
    retransmits_on_partial: bool,
    /// True if the stack waits for further duplicates instead (RFC 5681).
    awaits_duplicates: bool,
    /// True if the receiver has sent SACK blocks.
    pub(super) sack_seen: bool,
    /// True if a duplicate with complete options had no SACK block.
    duplicate_without_sack: bool,
    /// True if the options of an acknowledgement are truncated.
    cut: bool,
    /// True if a fast retransmit immediately followed its duplicate, so the tap is at the sender.
    at_sender: bool,
    /// A tail-loss probe is in flight.
    probing: bool,
    /// True if the stack has used a timer shorter than the RTO, which means that it sends tail-loss
    /// probes.
    sends_probes: bool,
    /// Ranges that were first sent and then retransmitted within the same SACK recovery, at most
    /// [`MAX_NEW_RANGES`].
    beyond: Vec<(u64, u64)>,
    /// Cause of the recovery that has just ended while `beyond` was not empty.
    ended_recovery: Option<RetransCause>,
}

const MAX_NEW_RANGES: usize = 64;

impl RecoveryTracker {
    /// Called for each packet from the peer.
    #[inline(always)]
    pub(super) fn on_peer_packet(&mut self, time: Nanos) {
        self.peer_time = Some(time);
    }

    /// Capture time of the last packet from the peer; 0 if there is none.
    #[inline(always)]
    pub(super) fn last_peer_time(&self) -> Nanos {
        self.peer_time.unwrap_or(0)
    }

    /// Called when new data up to `acknowledged` are acknowledged.
    #[inline]
    pub(super) fn on_new_ack(&mut self, time: Nanos, acknowledged: u64) {
        self.duplicates = 0;
        self.depth = 0;
        self.probing = false;
        self.timer_start = time;
        self.last_advance = time;
        if acknowledged >= self.recover {
            if let (RecoveryPhase::Repair(cause), false) = (self.phase, self.beyond.is_empty()) {
                self.ended_recovery = Some(cause);
            }
            self.phase = RecoveryPhase::Open;
        }
    }

    /// Starts another recovery right after a recovery that ended at `time`, as Linux does, if data
    /// that were sent and retransmitted during the ended recovery are still missing. `range`:
    /// acknowledged and next sequence number. `is_sacked`: whether SACK covers a range.
    pub(super) fn restart_recovery_if_lost(
        &mut self,
        time: Nanos,
        range: (u64, u64),
        is_sacked: impl Fn(u64, u64) -> bool,
    ) -> Option<RetransVerdict> {
        let cause = self.ended_recovery.take()?;
        let (acknowledged, next) = range;
        let lost = |&(start, end): &(u64, u64)| end > acknowledged && !is_sacked(start, end);
        let another = self.beyond.iter().any(lost);
        self.beyond.clear();
        if !another {
            return None;
        }
        self.phase = RecoveryPhase::Repair(cause);
        self.recover = next;
        self.entered = time;
        Some(RetransVerdict { cause, indication: Some(IndicationKind::Td), waited: 0 })
    }

    /// Counts a duplicate acknowledgement without SACK blocks. `options_truncated`: its options are
    /// truncated.
    #[inline]
    pub(super) fn count_duplicate_without_sack(&mut self, time: Nanos, options_truncated: bool) {
        self.cut |= options_truncated;
        self.duplicate_without_sack |= !options_truncated;
        self.duplicates = self.duplicates.saturating_add(1);
        self.last_duplicate = time;
        if self.duplicates == DUPLICATE_THRESHOLD {
            self.threshold_time = time;
        }
    }

    /// Called when new data are sent. `idle`: nothing was in flight. `probe`: the stack uses a
    /// probe timer, which each new segment restarts.
    #[inline]
    pub(super) fn on_new_data(&mut self, time: Nanos, idle: bool, probe: bool) {
        if idle || (probe && self.phase == RecoveryPhase::Open && self.duplicates == 0) {
            self.timer_start = time;
        }
    }

    /// Whether loss recovery is in progress.
    #[inline(always)]
    pub(super) fn is_active(&self) -> bool {
        self.phase != RecoveryPhase::Open
    }

    /// Whether fast recovery is in progress.
    #[inline(always)]
    pub(super) fn is_fast(&self) -> bool {
        !matches!(
            self.phase,
            RecoveryPhase::Open | RecoveryPhase::Repair(RetransCause::AfterTimeout)
        )
    }

    /// Classifies a retransmission and updates the recovery state.
    pub(super) fn classify_retransmission(
        &mut self,
        resent: &RetransmittedSegment,
        sender: &SenderState<'_>,
    ) -> RetransVerdict {
        let idle = self.time_since_timer_start(resent, sender);
        let fast = self.follows_duplicates(resent, sender);
        self.at_sender |= fast && self.phase == RecoveryPhase::Open && sender.tap_rtt == 0;
        // A third transmission is never a reaction to a duplicate. A retransmission is also no such
        // reaction if there were too few duplicates, or if they arrived long before.
        let no_sack = sender.sacked_bytes == 0
            && self.phase != RecoveryPhase::Repair(RetransCause::AfterTimeout);
        let timer = resent.repeated || (no_sack && !fast) || self.is_timer_driven(resent, sender);
        // A fast retransmit and a much shorter timeout than observed before are unlikely to
        // coincide.
        let doubtful = fast && idle < self.min_timeout / 2;
        let cause =
            if timer && !doubtful { self.expired_timer(resent, sender, idle) } else { None };
        let renewed = cause.is_none() && fast && self.starts_new_recovery(resent, sender);
        self.awaits_duplicates |= renewed;
        let cause = match cause {
            None if renewed => RetransCause::Duplicates,
            None => self.cause_without_timeout(resent, sender),
            Some(cause) => cause,
        };
        let within = self.phase == RecoveryPhase::Repair(RetransCause::Duplicates) && !renewed;
        let next = resent.start <= sender.acknowledged && resent.start >= self.rto_recover;
        self.retransmits_on_partial |=
            within && next && cause == RetransCause::Duplicates && resent.start < self.recover;
        if matches!(cause, RetransCause::Timeout { .. }) && self.is_timer_driven(resent, sender) {
            self.min_timeout =
                if self.min_timeout == 0 { idle } else { self.min_timeout.min(idle) };
        }
        let indication = self.enter_phase(cause, renewed, resent, sender);
        RetransVerdict { cause, indication, waited: idle }
    }

    /// Returns the time since the timer was restarted or the segment last sent (RFC 6298, section
    /// 5).
    fn time_since_timer_start(
        &self,
        resent: &RetransmittedSegment,
        sender: &SenderState<'_>,
    ) -> Nanos {
        let run = |since| resent.time.saturating_sub(since).saturating_sub(sender.tap_rtt);
        let idle = run(self.timer_start.max(resent.last_sent.unwrap_or(0)));
        let timeout = sender.estimate.rto_ns(0.0).unwrap_or(MIN_RTO_MINUS_SRTT);
        if (idle as f64) < MIN_RTO_SHARE * timeout && self.repeats_retransmission(resent, sender) {
            // RFC 6582, section 4: the impatient variant does not restart the timer for later
            // partial acknowledgements.
            return run(self.entered);
        }
        let since_progress = run(self.last_advance.max(resent.last_sent.unwrap_or(0)));
        let explained = idle as f64 >= MIN_RTO_SHARE * sender.min_timeout();
        if !explained && self.is_rto_despite_sack(resent, sender, since_progress) {
            return since_progress;
        }
        idle
    }

    /// Whether the oldest segment, already retransmitted in this recovery, was retransmitted again
    /// after an RTO. The sender restarts the timer only for new acknowledgements (RFC 6298, 5.3),
    /// not for SACK, and detects lost retransmissions only by timeout (RFC 6675). RACK detects such
    /// losses within one or two round trips.
    fn is_rto_despite_sack(
        &self,
        resent: &RetransmittedSegment,
        sender: &SenderState<'_>,
        run: Nanos,
    ) -> bool {
        matches!(self.phase, RecoveryPhase::Repair(RetransCause::Sack | RetransCause::Rack))
            && resent.repeated
            && resent.start <= sender.acknowledged
            && resent.last_sent.is_some_and(|sent| sent >= self.entered)
            && sender
                .estimate
                .rto_ns(MIN_RTO_MINUS_SRTT)
                .is_some_and(|rto| run as f64 >= MIN_RTO_SHARE * rto)
    }

    /// Whether the oldest segment is retransmitted again without new data acknowledged or SACKed.
    fn repeats_retransmission(
        &self,
        resent: &RetransmittedSegment,
        sender: &SenderState<'_>,
    ) -> bool {
        self.phase == RecoveryPhase::Repair(RetransCause::Duplicates)
            && sender.sacked_bytes == 0
            && resent.repeated
            && resent.last_sent.is_some_and(|sent| sent >= self.last_advance)
    }

    /// Whether the oldest segment was retransmitted immediately after the duplicate that reached
    /// the threshold.
    fn follows_duplicates(&self, resent: &RetransmittedSegment, sender: &SenderState<'_>) -> bool {
        self.duplicates >= DUPLICATE_THRESHOLD
            && resent.start <= sender.acknowledged
            && sender.sacked_bytes == 0
            && !self.repeats_retransmission(resent, sender)
            && (resent.time.saturating_sub(self.threshold_time) <= sender.max_reaction_time()
                || self.follows_later_duplicate(resent, sender))
    }

    /// Whether the oldest segment was retransmitted after a later duplicate than the third. Linux
    /// raises the threshold after it detects reordering. A timer that expires at that moment would
    /// look the same, but duplicates end a round trip after the loss, and the timer is longer.
    fn follows_later_duplicate(
        &self,
        resent: &RetransmittedSegment,
        sender: &SenderState<'_>,
    ) -> bool {
        let since = resent.time.saturating_sub(self.last_duplicate);
        self.duplicates > DUPLICATE_THRESHOLD
            && self.phase == RecoveryPhase::Open
            && !resent.repeated
            && sender.tap_rtt <= MAX_REACTION_TIME
            && since <= sender.max_reaction_time()
    }

    /// Whether a fast retransmit starts a new recovery, although the previous recovery was assumed
    /// to continue. RFC 5681's recovery ends with the first new acknowledgement, so three more
    /// duplicates start another. RFC 6582 would have retransmitted the segment on that
    /// acknowledgement.
    fn starts_new_recovery(&self, resent: &RetransmittedSegment, sender: &SenderState<'_>) -> bool {
        // The sender may react to the first of several acknowledgements after all are captured.
        // Three duplicates right after a partial acknowledgement prove nothing, unless the stack is
        // known to wait for three duplicates.
        let late = resent.time.saturating_sub(self.last_advance) > MAX_REACTION_TIME;
        let separate = late || (self.awaits_duplicates && self.duplicates == DUPLICATE_THRESHOLD);
        // Far from the tap, the sender has not yet received the latest captured acknowledgements.
        let received =
            resent.time.saturating_sub(self.threshold_time) + MAX_REACTION_TIME >= sender.tap_rtt;
        match self.phase {
            RecoveryPhase::Open => false,
            // Duplicates of data sent twice are ignored only after a first timeout.
            RecoveryPhase::Repair(RetransCause::AfterTimeout) => {
                received && (late || self.duplicates == DUPLICATE_THRESHOLD)
            }
            RecoveryPhase::Repair(_) => {
                let untouched = resent.last_sent.is_some_and(|sent| sent < self.last_advance);
                separate && received && untouched && !self.retransmits_on_partial
            }
        }
    }

    /// Whether only the timer can explain the retransmission: without SACK, a sender retransmits
    /// its oldest segment only on a new acknowledgement, by fast retransmit, or by timer. `idle`:
    /// running time of the timer.
    fn only_timer_explains(
        &self,
        resent: &RetransmittedSegment,
        sender: &SenderState<'_>,
        idle: Nanos,
    ) -> bool {
        if !self.lacks_sack_evidence(resent, sender)
            || sender.tap_rtt > MAX_REACTION_TIME
            || self.follows_duplicates(resent, sender)
        {
            return false;
        }
        let quiet = |since: Nanos| {
            resent.time.saturating_sub(since) > sender.tap_rtt.saturating_add(MAX_REACTION_TIME)
        };
        let late = sender
            .estimate
            .rto_ns(0.0)
            .is_some_and(|timeout| idle as f64 >= MIN_RTO_SHARE * timeout);
        let silent = quiet(self.last_advance) && resent.last_sent.is_none_or(quiet);
        // Linux waits for more duplicates if it detected reordering before.
        let reordered =
            self.duplicates >= DUPLICATE_THRESHOLD && !self.is_timer_driven(resent, sender);
        let clear = (self.at_sender || sender.tap_rtt > 0) && !reordered;
        let nothing_else = match self.phase {
            RecoveryPhase::Open => self.duplicates < DUPLICATE_THRESHOLD || clear,
            RecoveryPhase::Repair(RetransCause::AfterTimeout) => clear,
            // Pacing may delay the reaction to a partial acknowledgement.
            RecoveryPhase::Repair(_) => {
                let round = sender.estimate.srtt_ns().unwrap_or(0.0);
                clear && !self.retransmits_on_partial && idle as f64 >= round / 2.0
            }
        };
        self.repeats_retransmission(resent, sender) || silent && (late || nothing_else)
    }

    /// True if the receiver does not send SACK, or SACK cannot explain the retransmission.
    fn lacks_sack_evidence(&self, resent: &RetransmittedSegment, sender: &SenderState<'_>) -> bool {
        let probe = resent.end >= sender.next;
        !self.sack_seen && !self.cut && (self.duplicate_without_sack || !sender.sack || !probe)
    }

    fn is_timer_driven(&self, resent: &RetransmittedSegment, sender: &SenderState<'_>) -> bool {
        let since = self.peer_time.or(resent.last_sent).unwrap_or(self.timer_start);
        // If the sender is far from the tap, the round trip between them also varies.
        resent.time.saturating_sub(since) > sender.max_reaction_time()
    }

    /// Returns the timer that can have expired, if any.
    fn expired_timer(
        &mut self,
        resent: &RetransmittedSegment,
        sender: &SenderState<'_>,
        idle: Nanos,
    ) -> Option<RetransCause> {
        let head = resent.start <= sender.acknowledged;
        let tail = resent.end >= sender.next;
        let quiet =
            sender.sacked_bytes == 0 && self.phase == RecoveryPhase::Open && self.depth == 0;
        if sender.sack
            && !self.lacks_sack_evidence(resent, sender)
            && tail
            && quiet
            && !self.probing
            && !resent.repeated
        {
            if !head {
                self.sends_probes = true;
                return Some(RetransCause::TailLossProbe);
            }
            // With one segment in flight, a probe and a retransmission look alike, but the probe
            // comes first. A sender with SACK and a timer below RFC 6298's second is assumed to
            // probe.
            if self.sends_probes || idle < RFC_MIN_TIMEOUT {
                return Some(RetransCause::TailLossProbe);
            }
        }
        let expired = idle as f64 >= MIN_RTO_SHARE * sender.min_timeout();
        (head && (expired || self.only_timer_explains(resent, sender, idle))).then(|| {
            self.depth = self.depth.saturating_add(1);
            RetransCause::Timeout { depth: self.depth }
        })
    }

    /// Returns the cause of a retransmission without an RTO.
    fn cause_without_timeout(
        &mut self,
        resent: &RetransmittedSegment,
        sender: &SenderState<'_>,
    ) -> RetransCause {
        if let RecoveryPhase::Repair(cause) = self.phase {
            if resent.start < self.recover {
                return cause;
            }
        }
        if sender.sacked_bytes > 0 {
            let late = self.is_timer_driven(resent, sender);
            self.sends_probes |= late;
            return if late { RetransCause::Rack } else { RetransCause::Sack };
        }
        if self.lost_before_retransmission(resent, sender) {
            return RetransCause::Rack;
        }
        // Without captured acknowledgements, duplicates cannot be required.
        let explained = self.duplicates > 0 || self.peer_time.is_none();
        if explained { RetransCause::Duplicates } else { RetransCause::Unexplained }
    }

    /// Whether the acknowledgement of the last retransmission of a recovery revealed the loss of
    /// the oldest segment, which was sent before that retransmission (RFC 8985, section 6.2).
    fn lost_before_retransmission(
        &self,
        resent: &RetransmittedSegment,
        sender: &SenderState<'_>,
    ) -> bool {
        let prompt = resent.time.saturating_sub(self.last_advance)
            <= sender.tap_rtt.saturating_add(MAX_REACTION_TIME);
        sender.sack
            && self.sack_seen
            && prompt
            && self.phase == RecoveryPhase::Open
            && resent.start == sender.acknowledged
            && resent.last_sent.is_some_and(|sent| sent >= self.entered && sent < self.last_advance)
    }

    /// Whether losses of data that were sent during a recovery count as losses of the same
    /// recovery. A SACK recovery lasts until all data in flight at its start are acknowledged (RFC
    /// 6675, section 5; Linux also after a timeout).
    fn recovery_includes_new_data(&self, cause: RetransCause) -> bool {
        self.peer_time.is_some() && matches!(cause, RetransCause::Sack | RetransCause::Rack)
    }

    /// Updates the phase and returns the new indication, if any. `renewed`: a new recovery within
    /// another.
    fn enter_phase(
        &mut self,
        cause: RetransCause,
        renewed: bool,
        resent: &RetransmittedSegment,
        sender: &SenderState<'_>,
    ) -> Option<IndicationKind> {
        match cause {
            RetransCause::Timeout { depth } => {
                self.beyond.clear();
                self.phase = RecoveryPhase::Repair(RetransCause::AfterTimeout);
                self.recover = sender.next;
                self.rto_recover = sender.next;
                (depth == 1).then_some(IndicationKind::To)
            }
            RetransCause::TailLossProbe => {
                self.probing = true;
                None
            }
            RetransCause::Duplicates | RetransCause::Sack | RetransCause::Rack => {
                let beyond =
                    resent.start >= self.recover && !self.recovery_includes_new_data(cause);
                let new = renewed || self.phase == RecoveryPhase::Open || beyond;
                if new {
                    self.beyond.clear();
                    self.entered = resent.time;
                    self.phase = RecoveryPhase::Repair(cause);
                    self.recover = sender.next;
                } else if resent.start >= self.recover && self.beyond.len() < MAX_NEW_RANGES {
                    self.beyond.push((resent.start, resent.end));
                }
                (new && resent.end > sender.acknowledged).then_some(IndicationKind::Td)
            }
            RetransCause::AfterTimeout | RetransCause::Unexplained => None,
        }
    }
}
