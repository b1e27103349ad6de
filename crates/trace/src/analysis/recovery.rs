//! Why a segment was sent again: what the sender knew at that moment, reconstructed from the capture.

use super::rtt::Estimate;
use crate::segment::Nanos;

/// A sender answers an acknowledgement within this time. What it sends later, a timer sent, or its pacing.
const PROMPT: Nanos = 3_000_000;
/// The least that common stacks add to SRTT for their timer; reordering timers wait for less than an SRTT.
const LEAST_VARIATION: f64 = 200e6;
/// A timer may be a tick early by our estimate.
const EARLY: f64 = 0.9;
/// Duplicates that make a fast retransmit (RFC 5681, section 3.2).
pub(super) const DUPLICATE_THRESHOLD: u32 = 3;

/// Why a segment was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Fast retransmit after duplicate acknowledgements, or a partial acknowledgement in such a recovery.
    Duplicates,
    /// The receiver held later segments, and said so by SACK.
    Sack,
    /// A short timer after SACK or by pacing: RACK's reordering timer (RFC 8985).
    Rack,
    /// The retransmission timer; `depth` is 1 for the first time and grows with each backoff.
    Timeout {
        /// How often the timer has expired since the last new acknowledgement.
        depth: u8,
    },
    /// Sent again in slow start after a timeout, because all that was in flight counted as lost.
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
    /// Until `recover` is acknowledged, what is sent again belongs to the same indication.
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
    /// They had been sent again before.
    pub(super) again: bool,
}

/// What else is known of the direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
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

/// The state of a sender's loss recovery.
#[derive(Clone, Debug, Default)]
pub(super) struct Recovery {
    pub(super) duplicates: u32,
    /// When the peer's last packet was captured.
    heard: Option<Nanos>,
    /// When the retransmission timer was last started anew.
    restarted: Nanos,
    recover: u64,
    phase: Phase,
    /// Timeouts since the last new acknowledgement.
    depth: u8,
    /// A tail-loss probe is out.
    probing: bool,
    /// The stack has shown a timer shorter than a retransmission timer, so it probes tails, too.
    probes: bool,
}

impl Recovery {
    /// The peer has sent anything.
    #[inline(always)]
    pub(super) fn heard(&mut self, time: Nanos) {
        self.heard = Some(time);
    }

    /// New data are acknowledged up to `acknowledged`.
    #[inline]
    pub(super) fn advance(&mut self, time: Nanos, acknowledged: u64) {
        self.duplicates = 0;
        self.depth = 0;
        self.probing = false;
        self.restarted = time;
        if acknowledged >= self.recover {
            self.phase = Phase::Open;
        }
    }

    /// The receiver holds more than before, by SACK; the timer starts anew (as in Linux).
    pub(super) fn sacked(&mut self, time: Nanos) {
        self.restarted = time;
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

    /// Why it was sent again, and what that says.
    pub(super) fn judge(&mut self, resent: &Resent, known: &Known<'_>) -> Verdict {
        let idle = self.idle(resent, known);
        // What is sent for the third time answers no duplicate, even if one has just come.
        let timer = resent.again || self.timer_driven(resent, known);
        let cause = if timer { self.timer(resent, known, idle) } else { None };
        let cause = cause.unwrap_or_else(|| self.evidence(resent, known));
        let indication = self.enter(cause, resent, known);
        Verdict { cause, indication, waited: idle }
    }

    /// How long the timer has run: since it was last started anew, or the segment last sent (RFC 6298, section 5).
    fn idle(&self, resent: &Resent, known: &Known<'_>) -> Nanos {
        let since = self.restarted.max(resent.last_sent.unwrap_or(0));
        resent.time.saturating_sub(since).saturating_sub(known.near)
    }

    fn timer_driven(&self, resent: &Resent, known: &Known<'_>) -> bool {
        let heard = self.heard.or(resent.last_sent).unwrap_or(self.restarted);
        // Away from the sender, the round trip to it varies, too.
        resent.time.saturating_sub(heard) > known.near.saturating_add(known.near / 2 + PROMPT)
    }

    /// Which timer, if one can have expired.
    fn timer(&mut self, resent: &Resent, known: &Known<'_>, idle: Nanos) -> Option<Cause> {
        let idle = idle as f64;
        let head = resent.start <= known.acknowledged;
        let tail = resent.end >= known.next;
        let quiet = known.sacked_bytes == 0 && self.phase == Phase::Open && self.depth == 0;
        if known.sack && tail && quiet && !self.probing && !resent.again {
            if !head {
                self.probes = true;
                return Some(Cause::TailLossProbe);
            }
            // One segment in flight: probe and retransmission look alike, but the probe comes first.
            if self.probes {
                return Some(Cause::TailLossProbe);
            }
        }
        (head && idle >= EARLY * least_timeout(known)).then(|| {
            self.depth = self.depth.saturating_add(1);
            Cause::Timeout { depth: self.depth }
        })
    }

    /// What made the sender send again without a retransmission timer.
    fn evidence(&mut self, resent: &Resent, known: &Known<'_>) -> Cause {
        if let Phase::Repair(cause) = self.phase {
            if resent.start < self.recover {
                return cause;
            }
        }
        if known.sacked_bytes > 0 {
            let late = self.timer_driven(resent, known);
            self.probes |= late;
            return if late { Cause::Rack } else { Cause::Sack };
        }
        // Who captured no acknowledgements cannot ask for duplicates.
        let explained = self.duplicates > 0 || self.heard.is_none();
        if explained { Cause::Duplicates } else { Cause::Unexplained }
    }

    fn enter(&mut self, cause: Cause, resent: &Resent, known: &Known<'_>) -> Option<Kind> {
        match cause {
            Cause::Timeout { depth } => {
                self.phase = Phase::Repair(Cause::AfterTimeout);
                self.recover = known.next;
                (depth == 1).then_some(Kind::To)
            }
            Cause::TailLossProbe => {
                self.probing = true;
                None
            }
            Cause::Duplicates | Cause::Sack | Cause::Rack => {
                let new = self.phase == Phase::Open || resent.start >= self.recover;
                if new {
                    self.phase = Phase::Repair(cause);
                    self.recover = known.next;
                }
                (new && resent.end > known.acknowledged).then_some(Kind::Td)
            }
            Cause::AfterTimeout | Cause::Unexplained => None,
        }
    }
}

/// A retransmission timer is not shorter than this, ns. Any short timer of RACK or a probe is.
fn least_timeout(known: &Known<'_>) -> f64 {
    let near = known.near as f64;
    let smoothed = known.estimate.smoothed().map(|smoothed| smoothed + near);
    let least = smoothed.map_or(LEAST_VARIATION, |smoothed| smoothed.min(LEAST_VARIATION));
    known.estimate.timeout(least).map_or(LEAST_VARIATION, |timeout| timeout + near)
}
