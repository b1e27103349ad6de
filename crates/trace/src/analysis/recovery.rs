//! Why a segment was retransmitted: what the sender knew at that moment, reconstructed from the capture.

use super::rtt::Estimate;
use crate::segment::Nanos;

/// A sender answers an acknowledgement within this time. What it sends later, a timer sent, or its pacing.
const PROMPT: Nanos = 3_000_000;
/// The least that common stacks add to SRTT for their timer; reordering timers wait for less than an SRTT.
const MIN_VARIATION: f64 = 200e6;
/// RFC 6298, (2.4), less what a tick may be early.
const RFC_MIN_TIMEOUT: Nanos = 900_000_000;
/// A timer may be a tick early by our estimate.
const EARLY: f64 = 0.9;
/// Duplicates that make a fast retransmit (RFC 5681, section 3.2).
pub(super) const DUPLICATE_THRESHOLD: u32 = 3;

/// Why a segment was retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Fast retransmit after duplicate acknowledgements, or a partial acknowledgement in such a recovery.
    Duplicates,
    /// The receiver held later segments, and said so by SACK.
    Sack,
    /// A short timer after SACK or by pacing, or the acknowledgement of a repair that was sent later: RACK
    /// (RFC 8985).
    Rack,
    /// The retransmission timer; `depth` is 1 for the first time and grows with each backoff.
    Timeout {
        /// How often the timer has expired since the last new acknowledgement.
        depth: u8,
    },
    /// Retransmitted in slow start after an RTO, because all data in flight counted as lost.
    AfterTimeout,
    /// A tail-loss probe (RFC 8985, section 7).
    TailLossProbe,
    /// The capture shows no reason.
    Unexplained,
}

/// A loss indication, as the papers count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Duplicates, or what replaced them (SACK, RACK): one a recovery.
    Td,
    /// A sequence of timeouts of one segment.
    To,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// Until `recover` is acknowledged, retransmissions belong to the same indication.
    Repair(Cause),
}

/// A retransmission, as it was captured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resent {
    pub(super) time: Nanos,
    pub(super) start: u64,
    pub(super) end: u64,
    /// When its bytes were last sent, if that was captured.
    pub(super) last_sent: Option<Nanos>,
    /// They had been retransmitted before.
    pub(super) repeated: bool,
}

/// What else is sender of the direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct SenderState<'a> {
    pub(super) acknowledged: u64,
    pub(super) next: u64,
    /// SACK was agreed on.
    pub(super) sack: bool,
    pub(super) sacked_bytes: u64,
    pub(super) estimate: &'a Estimate,
    /// Round trip between the tap and the sender.
    pub(super) near: Nanos,
}

/// What a retransmission was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) cause: Cause,
    /// It is the first of a loss indication.
    pub(super) indication: Option<Kind>,
    /// How long the timer had run.
    pub(super) waited: Nanos,
}

/// Retransmitted data of a handshake: no loss indication.
pub(super) const HANDSHAKE: Verdict =
    Verdict { cause: Cause::Unexplained, indication: None, waited: 0 };

/// The state of a sender's loss recovery.
#[derive(Clone, Debug, Default)]
pub(super) struct Recovery {
    pub(super) duplicates: u32,
    /// When as many of them had come as make a fast retransmit, and when the last of them came.
    enough: Nanos,
    repeated: Nanos,
    /// When new data were last acknowledged.
    advanced: Nanos,
    /// When the peer's last packet was captured.
    heard: Option<Nanos>,
    /// When the retransmission timer was last started anew.
    restarted: Nanos,
    recover: u64,
    /// Data sent before the last RTO end here: all of them may be retransmitted.
    went_back: u64,
    /// The shortest time that the timer was seen to run, when nothing else can have made it send; 0 if never.
    shortest: Nanos,
    /// When the current recovery began.
    entered: Nanos,
    phase: Phase,
    /// Timeouts since the last new acknowledgement.
    depth: u8,
    /// The stack has retransmitted on a partial acknowledgement (RFC 6582), without further duplicates.
    mends: bool,
    /// It has waited for further duplicates instead (RFC 5681).
    waits: bool,
    /// The receiver has sent SACK blocks; a duplicate without any, all of its options being captured.
    blocks: bool,
    bare: bool,
    /// Options of its acknowledgements are cut.
    cut: bool,
    /// A fast retransmit followed at once on its duplicate: the tap is at the sender.
    at_sender: bool,
    /// A tail-loss probe is out.
    probing: bool,
    /// The stack has shown a timer shorter than a retransmission timer, so it probes tails, too.
    probes: bool,
    /// What was retransmitted in a recovery by SACK and had been sent in it, the first so many.
    beyond: Vec<(u64, u64)>,
    /// The recovery that has just ended with some of that.
    ended: Option<Cause>,
}

/// So many of them are kept.
const MAX_BEYOND: usize = 64;

impl Recovery {
    /// The peer has sent anything.
    #[inline(always)]
    pub(super) fn on_peer_packet(&mut self, time: Nanos) {
        self.heard = Some(time);
    }

    /// When the peer's last packet was captured; 0 if none was.
    #[inline(always)]
    pub(super) fn last_peer_time(&self) -> Nanos {
        self.heard.unwrap_or(0)
    }

    /// New data are acknowledged up to `acknowledged`.
    #[inline]
    pub(super) fn advance(&mut self, time: Nanos, acknowledged: u64) {
        self.duplicates = 0;
        self.depth = 0;
        self.probing = false;
        self.restarted = time;
        self.advanced = time;
        if acknowledged >= self.recover {
            if let (Phase::Repair(cause), false) = (self.phase, self.beyond.is_empty()) {
                self.ended = Some(cause);
            }
            self.phase = Phase::Open;
        }
    }

    /// A recovery may have ended with the acknowledgement that was heard at `time`: where something is still
    /// lost of what was sent in it, though retransmitted, another begins at once (as in Linux).
    pub(super) fn begin_next_recovery(
        &mut self,
        time: Nanos,
        sender: (u64, u64),
        held: impl Fn(u64, u64) -> bool,
    ) -> Option<Verdict> {
        let cause = self.ended.take()?;
        let (acknowledged, next) = sender;
        let lost = |&(start, end): &(u64, u64)| end > acknowledged && !held(start, end);
        let another = self.beyond.iter().any(lost);
        self.beyond.clear();
        if !another {
            return None;
        }
        self.phase = Phase::Repair(cause);
        self.recover = next;
        self.entered = time;
        Some(Verdict { cause, indication: Some(Kind::Td), waited: 0 })
    }

    /// The last acknowledgement comes once more, without SACK; `cut`: as far as its options were captured.
    #[inline]
    pub(super) fn duplicate(&mut self, time: Nanos, cut: bool) {
        self.cut |= cut;
        self.bare |= !cut;
        self.duplicates = self.duplicates.saturating_add(1);
        self.repeated = time;
        if self.duplicates == DUPLICATE_THRESHOLD {
            self.enough = time;
        }
    }

    /// The receiver holds more than before, by SACK; the timer starts anew (as in Linux).
    pub(super) fn sacked(&mut self, time: Nanos) {
        self.restarted = time;
    }

    /// The receiver has sent SACK blocks.
    pub(super) fn has_blocks(&mut self) {
        self.blocks = true;
    }

    /// New data are sent. `alone`: nothing was in flight; `probe`: the stack keeps a probe timer, which
    /// each new segment sets anew.
    #[inline]
    pub(super) fn sent_new(&mut self, time: Nanos, alone: bool, probe: bool) {
        if alone || (probe && self.phase == Phase::Open && self.duplicates == 0) {
            self.restarted = time;
        }
    }

    /// Whether a loss is being repaired.
    #[inline(always)]
    pub(super) fn repairs(&self) -> bool {
        self.phase != Phase::Open
    }

    /// Whether it is repaired by fast retransmits.
    #[inline(always)]
    pub(super) fn fast(&self) -> bool {
        !matches!(self.phase, Phase::Open | Phase::Repair(Cause::AfterTimeout))
    }

    /// Why it was retransmitted, and the loss indication that follows.
    pub(super) fn classify(&mut self, resent: &Resent, sender: &SenderState<'_>) -> Verdict {
        let idle = self.idle(resent, sender);
        let fast = self.answers_duplicates(resent, sender);
        self.at_sender |= fast && self.phase == Phase::Open && sender.near == 0;
        // What is sent for the third time answers no duplicate, even if one has just come; nor does what is
        // sent when there were fewer duplicates than it takes, or long after them.
        let blind = sender.sacked_bytes == 0 && self.phase != Phase::Repair(Cause::AfterTimeout);
        let timer = resent.repeated || (blind && !fast) || self.timer_driven(resent, sender);
        // Both at once is unlikely where the timer was never seen to run for so short a time.
        let doubtful = fast && idle < self.shortest / 2;
        let cause = if timer && !doubtful { self.timer(resent, sender, idle) } else { None };
        let renewed = cause.is_none() && fast && self.begins_anew(resent, sender);
        self.waits |= renewed;
        let cause = match cause {
            None if renewed => Cause::Duplicates,
            None => self.evidence(resent, sender),
            Some(cause) => cause,
        };
        let within = self.phase == Phase::Repair(Cause::Duplicates) && !renewed;
        let next = resent.start <= sender.acknowledged && resent.start >= self.went_back;
        self.mends |= within && next && cause == Cause::Duplicates && resent.start < self.recover;
        if matches!(cause, Cause::Timeout { .. }) && self.timer_driven(resent, sender) {
            self.shortest = if self.shortest == 0 { idle } else { self.shortest.min(idle) };
        }
        let indication = self.enter(cause, renewed, resent, sender);
        Verdict { cause, indication, waited: idle }
    }

    /// How long the timer has run: since it was last started anew, or the segment last sent (RFC 6298, section 5).
    fn idle(&self, resent: &Resent, sender: &SenderState<'_>) -> Nanos {
        let run = |since| resent.time.saturating_sub(since).saturating_sub(sender.near);
        let idle = run(self.restarted.max(resent.last_sent.unwrap_or(0)));
        let timeout = sender.estimate.timeout(0.0).unwrap_or(MIN_VARIATION);
        if (idle as f64) < EARLY * timeout && self.repeats_a_repair(resent, sender) {
            // RFC 6582, section 4: the patient variant does not start it anew for partial acknowledgements.
            return run(self.entered);
        }
        let since_progress = run(self.advanced.max(resent.last_sent.unwrap_or(0)));
        let explained = idle as f64 >= EARLY * min_timeout(sender);
        if !explained && self.outlasts_sacks(resent, sender, since_progress) {
            return since_progress;
        }
        idle
    }

    /// The oldest segment was retransmitted in this recovery, and now again only after a timeout: its
    /// sender restarts the timer for new acknowledgements alone (RFC 6298, 5.3), not for SACK, and finds lost
    /// retransmissions in no other way (RFC 6675). RACK finds them within a round trip or two.
    fn outlasts_sacks(&self, resent: &Resent, sender: &SenderState<'_>, run: Nanos) -> bool {
        matches!(self.phase, Phase::Repair(Cause::Sack | Cause::Rack))
            && resent.repeated
            && resent.start <= sender.acknowledged
            && resent.last_sent.is_some_and(|sent| sent >= self.entered)
            && sender.estimate.timeout(MIN_VARIATION).is_some_and(|rto| run as f64 >= EARLY * rto)
    }

    /// The oldest segment was retransmitted already since it became the oldest, and no SACK explains another time.
    fn repeats_a_repair(&self, resent: &Resent, sender: &SenderState<'_>) -> bool {
        self.phase == Phase::Repair(Cause::Duplicates)
            && sender.sacked_bytes == 0
            && resent.repeated
            && resent.last_sent.is_some_and(|sent| sent >= self.advanced)
    }

    /// The oldest segment follows at once on the duplicate that is one too many.
    fn answers_duplicates(&self, resent: &Resent, sender: &SenderState<'_>) -> bool {
        self.duplicates >= DUPLICATE_THRESHOLD
            && resent.start <= sender.acknowledged
            && sender.sacked_bytes == 0
            && !self.repeats_a_repair(resent, sender)
            && (resent.time.saturating_sub(self.enough) <= sender.near + sender.near / 2 + PROMPT
                || self.answers_a_later_duplicate(resent, sender))
    }

    /// The threshold was more than three: Linux raises it when packets turn out to have been reordered. The oldest
    /// segment follows on one of the duplicates after the third. A timer that expires at that very moment would look
    /// the same; but duplicates end a round trip after the loss, and the timer is longer.
    fn answers_a_later_duplicate(&self, resent: &Resent, sender: &SenderState<'_>) -> bool {
        let since = resent.time.saturating_sub(self.repeated);
        self.duplicates > DUPLICATE_THRESHOLD
            && self.phase == Phase::Open
            && !resent.repeated
            && sender.near <= PROMPT
            && since <= sender.near + sender.near / 2 + PROMPT
    }

    /// A fast retransmit during what was taken for one recovery. RFC 5681's ends with its first new acknowledgement,
    /// so that three duplicates more begin another; RFC 6582's would have sent the segment on that acknowledgement.
    fn begins_anew(&self, resent: &Resent, sender: &SenderState<'_>) -> bool {
        // Several acknowledgements may be captured before the first of them is answered. Three duplicates at once
        // after a partial acknowledgement say nothing, unless the stack was seen to wait for them.
        let late = resent.time.saturating_sub(self.advanced) > PROMPT;
        let apart = late || (self.waits && self.duplicates == DUPLICATE_THRESHOLD);
        // Away from the sender, it has not heard yet what the tap has.
        let heard = resent.time.saturating_sub(self.enough) + PROMPT >= sender.near;
        match self.phase {
            Phase::Open => false,
            // Duplicates of what was sent twice are ignored after a first timeout only.
            Phase::Repair(Cause::AfterTimeout) => {
                heard && (late || self.duplicates == DUPLICATE_THRESHOLD)
            }
            Phase::Repair(_) => {
                let untouched = resent.last_sent.is_some_and(|sent| sent < self.advanced);
                apart && heard && untouched && !self.mends
            }
        }
    }

    /// No sender without SACK retransmits its oldest segment without a new acknowledgement, unless a fast retransmit
    /// or the timer makes it do so. `idle`: how long the timer has run.
    fn only_the_timer(&self, resent: &Resent, sender: &SenderState<'_>, idle: Nanos) -> bool {
        if !self.classic(resent, sender)
            || sender.near > PROMPT
            || self.answers_duplicates(resent, sender)
        {
            return false;
        }
        let quiet = |since: Nanos| resent.time.saturating_sub(since) > sender.near + PROMPT;
        let late =
            sender.estimate.timeout(0.0).is_some_and(|timeout| idle as f64 >= EARLY * timeout);
        let silent = quiet(self.advanced) && resent.last_sent.is_none_or(quiet);
        let near = self.at_sender || sender.near > 0;
        // Linux waits for more duplicates where packets were reordered before.
        let patient = self.duplicates >= DUPLICATE_THRESHOLD && !self.timer_driven(resent, sender);
        let nothing_else = match self.phase {
            Phase::Open => self.duplicates < DUPLICATE_THRESHOLD || near && !patient,
            Phase::Repair(Cause::AfterTimeout) => near && !patient,
            // Its pacing may put off what a partial acknowledgement asks for.
            Phase::Repair(_) => {
                let round = sender.estimate.smoothed().unwrap_or(0.0);
                near && !patient && !self.mends && idle as f64 >= round / 2.0
            }
        };
        self.repeats_a_repair(resent, sender) || silent && (late || nothing_else)
    }

    /// The receiver sends no SACK, or nothing is explained by it.
    fn classic(&self, resent: &Resent, sender: &SenderState<'_>) -> bool {
        let probe = resent.end >= sender.next;
        !self.blocks && !self.cut && (self.bare || !sender.sack || !probe)
    }

    fn timer_driven(&self, resent: &Resent, sender: &SenderState<'_>) -> bool {
        let heard = self.heard.or(resent.last_sent).unwrap_or(self.restarted);
        // Away from the sender, the round trip to it varies, too.
        resent.time.saturating_sub(heard) > sender.near.saturating_add(sender.near / 2 + PROMPT)
    }

    /// Which timer, if one can have expired.
    fn timer(&mut self, resent: &Resent, sender: &SenderState<'_>, idle: Nanos) -> Option<Cause> {
        let head = resent.start <= sender.acknowledged;
        let tail = resent.end >= sender.next;
        let quiet = sender.sacked_bytes == 0 && self.phase == Phase::Open && self.depth == 0;
        if sender.sack
            && !self.classic(resent, sender)
            && tail
            && quiet
            && !self.probing
            && !resent.repeated
        {
            if !head {
                self.probes = true;
                return Some(Cause::TailLossProbe);
            }
            // One segment in flight: probe and retransmission look alike, but the probe comes first. Who waits
            // for less than RFC 6298's second and has SACK is taken to probe.
            if self.probes || idle < RFC_MIN_TIMEOUT {
                return Some(Cause::TailLossProbe);
            }
        }
        let expired = idle as f64 >= EARLY * min_timeout(sender);
        (head && (expired || self.only_the_timer(resent, sender, idle))).then(|| {
            self.depth = self.depth.saturating_add(1);
            Cause::Timeout { depth: self.depth }
        })
    }

    /// What made the sender retransmit without an RTO.
    fn evidence(&mut self, resent: &Resent, sender: &SenderState<'_>) -> Cause {
        if let Phase::Repair(cause) = self.phase {
            if resent.start < self.recover {
                return cause;
            }
        }
        if sender.sacked_bytes > 0 {
            let late = self.timer_driven(resent, sender);
            self.probes |= late;
            return if late { Cause::Rack } else { Cause::Sack };
        }
        if self.outrun_by_a_repair(resent, sender) {
            return Cause::Rack;
        }
        // Who captured no acknowledgements cannot ask for duplicates.
        let explained = self.duplicates > 0 || self.heard.is_none();
        if explained { Cause::Duplicates } else { Cause::Unexplained }
    }

    /// The acknowledgement of a recovery's last repair says that the oldest segment is lost, which was sent before
    /// that repair (RFC 8985, section 6.2).
    fn outrun_by_a_repair(&self, resent: &Resent, sender: &SenderState<'_>) -> bool {
        let prompt = resent.time.saturating_sub(self.advanced) <= sender.near + PROMPT;
        sender.sack
            && self.blocks
            && prompt
            && self.phase == Phase::Open
            && resent.start == sender.acknowledged
            && resent.last_sent.is_some_and(|sent| sent >= self.entered && sent < self.advanced)
    }

    /// What is lost of the data sent in a recovery by SACK belongs to it, as long as it lasts: until all that was
    /// in flight at its beginning is acknowledged (RFC 6675, section 5; Linux also after a timeout).
    fn goes_on(&self, cause: Cause) -> bool {
        self.heard.is_some() && matches!(cause, Cause::Sack | Cause::Rack)
    }

    /// Begins what the cause begins; `renewed`: a recovery within another.
    fn enter(
        &mut self,
        cause: Cause,
        renewed: bool,
        resent: &Resent,
        sender: &SenderState<'_>,
    ) -> Option<Kind> {
        match cause {
            Cause::Timeout { depth } => {
                self.beyond.clear();
                self.phase = Phase::Repair(Cause::AfterTimeout);
                self.recover = sender.next;
                self.went_back = sender.next;
                (depth == 1).then_some(Kind::To)
            }
            Cause::TailLossProbe => {
                self.probing = true;
                None
            }
            Cause::Duplicates | Cause::Sack | Cause::Rack => {
                let beyond = resent.start >= self.recover && !self.goes_on(cause);
                let new = renewed || self.phase == Phase::Open || beyond;
                if new {
                    self.beyond.clear();
                    self.entered = resent.time;
                    self.phase = Phase::Repair(cause);
                    self.recover = sender.next;
                } else if resent.start >= self.recover && self.beyond.len() < MAX_BEYOND {
                    self.beyond.push((resent.start, resent.end));
                }
                (new && resent.end > sender.acknowledged).then_some(Kind::Td)
            }
            Cause::AfterTimeout | Cause::Unexplained => None,
        }
    }
}

/// A retransmission timer is not shorter than this, ns. Any short timer of RACK or a probe is.
fn min_timeout(sender: &SenderState<'_>) -> f64 {
    let near = sender.near as f64;
    let smoothed = sender.estimate.smoothed().map(|smoothed| smoothed + near);
    let least = smoothed.map_or(MIN_VARIATION, |smoothed| smoothed.min(MIN_VARIATION));
    sender.estimate.timeout(least).map_or(MIN_VARIATION, |timeout| timeout + near)
}
