//! Statistics of a direction with data: sums, distributions and recent events.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::evidence::EvidenceSums;
use super::flight::Sent;
use super::indications::{FirstTimeout, Indication, Indications, PaperRule};
use super::intervals::{Interval, Intervals};
use super::numbering::Numbering;
use super::recovery::{Cause, Verdict};
use super::report::{Causes, Retransmission, RoundTrips, Spurious};
use super::rounds::{RoundSummary, Rounds};
use super::rtt::{OverTime, SampleStats};
use super::sequence::earlier;
use super::sequence_plot::{Mark, SequencePlot};
use crate::segment::Nanos;

/// Number of recent retransmissions that a DSACK or echoed timestamp may still prove unnecessary.
const MAX_RECENT: usize = 64;
/// Number of ranges that were acknowledged before they were captured, and may still be captured.
const MAX_UNSEEN: usize = 16;

/// Number of events that may still be listed by all directions in total.
#[derive(Debug)]
pub(crate) struct EventQuota {
    left: AtomicUsize,
}

impl EventQuota {
    pub(crate) fn new(events: usize) -> Self {
        Self { left: AtomicUsize::new(events) }
    }

    /// Takes one event from the quota, if any is left.
    pub(super) fn take(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Returns `count` events to the quota.
    pub(crate) fn release(&self, count: usize) {
        self.left.fetch_add(count, Ordering::Relaxed);
    }

    /// Number of events left.
    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }
}

/// A recent retransmission that may still prove unnecessary.
#[derive(Clone, Copy, Debug)]
struct Pending {
    start: u64,
    end: u64,
    timestamp: u32,
    spurious: bool,
    /// Index in `retransmitted`, if listed.
    kept: Option<usize>,
}

/// Statistics of a direction.
#[derive(Clone, Debug, Default)]
pub(super) struct DirectionStats {
    pub(super) intervals: Intervals,
    pub(super) karn: SampleStats,
    /// Largest RTT sample of acknowledgements of several segments, which receivers do not delay.
    pub(super) max_undelayed: Option<Nanos>,
    pub(super) sender: SampleStats,
    over_time: OverTime,
    pub(super) timestamps: SampleStats,
    pub(super) rounds: Rounds,
    pub(super) evidence: EvidenceSums,
    pub(super) ack_ids: Numbering,
    pub(super) indications: Indications,
    paper: PaperRule,
    pub(super) t0: FirstTimeout,
    pub(super) causes: Causes,
    pub(super) spurious: Spurious,
    recent: VecDeque<Pending>,
    unseen: VecDeque<(u64, u64)>,
    pub(super) loss_times: Vec<Indication>,
    pub(super) retransmitted: Vec<Retransmission>,
    pub(super) omitted: u64,
    max_events: usize,
    /// Only if requested.
    pub(super) plot: Option<SequencePlot>,
}

/// A classified retransmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retransmit {
    pub(super) sent: Sent,
    /// Number of packets in the frame, more than one if aggregated.
    pub(super) packets: u64,
    /// Offset of the first byte in the direction.
    pub(super) offset: u64,
    pub(super) verdict: Verdict,
    pub(super) next: u64,
    pub(super) duplicates: u32,
    /// True for the oldest segment in flight.
    pub(super) oldest: bool,
    /// True if the segment was retransmitted before.
    pub(super) repeated: bool,
}

impl DirectionStats {
    /// Boxed, because it is large and exists once per direction with data.
    pub(super) fn new(origin: Nanos, max_events: usize, max_points: usize) -> Box<Self> {
        let mut stats = Box::<Self>::default();
        stats.intervals.begin(origin);
        stats.max_events = max_events;
        stats.plot = (max_points > 0).then(|| SequencePlot::new(max_points));
        stats
    }

    /// Prefetches the fields that most segments change.
    #[inline]
    pub(super) fn prefetch(&self) -> u64 {
        let spreads = [&self.karn, &self.sender, &self.timestamps];
        let spreads =
            spreads.iter().fold(0, |sum: u64, spread| sum.wrapping_add(spread.prefetch()));
        let others = self.over_time.prefetch().wrapping_add(self.intervals.prefetch());
        spreads.wrapping_add(others).wrapping_add(self.rounds.prefetch())
    }

    /// Prefetches the objects that these fields point to.
    #[inline]
    pub(super) fn prefetch_second(&self) -> u64 {
        let spreads = [&self.karn, &self.sender, &self.timestamps];
        spreads.iter().fold(0, |sum: u64, spread| sum.wrapping_add(spread.prefetch_second()))
    }

    /// Counts a recovery that begins without a retransmission.
    pub(super) fn on_new_recovery(&mut self, time: Nanos, verdict: &Verdict, quota: &EventQuota) {
        self.indications.add(verdict);
        self.intervals.sequence_at(time, true).add(verdict);
        self.add_indication(time, verdict, quota);
    }

    fn add_indication(&mut self, time: Nanos, verdict: &Verdict, quota: &EventQuota) {
        if let Some(kind) = verdict.indication {
            let indication = Indication { time, kind };
            let room = self.loss_times.len() < self.max_events && quota.take();
            keep(&mut self.loss_times, indication, room, &mut self.omitted);
        }
    }

    /// Adds a point to the sequence plot, if requested.
    #[inline(always)]
    pub(super) fn add_point(&mut self, time: Nanos, mark: Mark, start: u64, end: u64) {
        if let Some(plot) = &mut self.plot {
            plot.add(time, mark, start, end);
        }
    }

    /// Adds an RTT sample as the sender measures it.
    pub(super) fn round_trip(&mut self, time: Nanos, sample: Nanos) {
        self.sender.add(sample);
        self.over_time.add(time, sample);
        let interval = self.intervals.at(time);
        interval.rtt_samples += 1;
        interval.rtt_sum_s += sample as f64 / 1e9;
    }

    /// Adds a frame of data packets. `flight`: bytes in flight, including the frame.
    #[inline]
    pub(super) fn data(&mut self, time: Nanos, packets: u64, bytes: u32, flight: u64) {
        let interval: &mut Interval = self.intervals.at(time);
        interval.data_packets += packets;
        interval.bytes += u64::from(bytes);
        interval.flight_max_bytes = interval.flight_max_bytes.max(flight);
        self.rounds.data(bytes, flight);
    }

    /// Adds a retransmission.
    pub(super) fn retransmission(&mut self, event: &Retransmit, quota: &EventQuota) {
        let Retransmit { sent, packets, verdict, .. } = *event;
        let time = sent.last;
        self.causes.add(verdict.cause, packets);
        self.add_point(time, Mark::Retransmission(verdict.cause), sent.start, sent.end());
        self.t0.add(&verdict);
        let paper = if event.oldest { self.paper.classify(event) } else { None };
        self.indications.add(&verdict);
        self.indications.add_paper(paper);
        let interval = self.intervals.at(time);
        interval.retransmissions += packets;
        interval.indications.add_paper(paper);
        let first = !matches!(verdict.cause, Cause::Timeout { depth } if depth > 1);
        self.intervals.sequence_at(time, first).add(&verdict);
        self.add_indication(time, &verdict, quota);
        let kept = Retransmission {
            time,
            offset: event.offset,
            bytes: sent.length,
            cause: verdict.cause,
            spurious: false,
        };
        let room = self.retransmitted.len() < self.max_events && quota.take();
        let kept = keep(&mut self.retransmitted, kept, room, &mut self.omitted);
        if self.recent.len() == MAX_RECENT {
            self.recent.pop_front();
        }
        let (start, end, timestamp) = (sent.start, sent.end(), sent.timestamp);
        self.recent.push_back(Pending { start, end, timestamp, spurious: false, kept });
    }

    /// Counts a DSACK block for `[left, right)`.
    pub(super) fn on_dsack(&mut self, left: u64, right: u64) {
        let mut known = false;
        for index in 0..self.recent.len() {
            let pending = self.recent[index];
            if pending.start < right && pending.end > left {
                known = true;
                self.spurious.dsack += u64::from(self.mark_spurious(index));
            }
        }
        self.spurious.unexplained_dsack += u64::from(!known);
    }

    /// Checks an acknowledgement of `[from, to)` with the timestamp `echo`: if that is older than
    /// the timestamp of the retransmission at `from`, it acknowledges the original (RFC 3522).
    pub(super) fn check_echo(&mut self, from: u64, to: u64, echo: u32) {
        let index = self.recent.iter().position(|pending| pending.start == from);
        let Some(index) = index else { return };
        let pending = self.recent[index];
        if pending.end <= to && pending.timestamp != 0 && earlier(echo, pending.timestamp) {
            self.spurious.eifel += u64::from(self.mark_spurious(index));
        }
    }

    /// Marks a retransmission as spurious. Returns false if it already was.
    fn mark_spurious(&mut self, index: usize) -> bool {
        let pending = &mut self.recent[index];
        let new = !pending.spurious;
        pending.spurious = true;
        if let Some(kept) = pending.kept.and_then(|kept| self.retransmitted.get_mut(kept)) {
            kept.spurious = true;
        }
        new
    }

    /// Forgets sequence numbers; the new sequence space starts at `start`.
    pub(super) fn reset_sequence(&mut self, start: u64) {
        self.recent.clear();
        self.unseen.clear();
        self.paper = PaperRule::default();
        self.rounds.move_to(start);
    }

    /// Stores that `[from, to)` was acknowledged, but not captured.
    pub(super) fn add_unseen(&mut self, from: u64, to: u64) {
        if let Some(latest) = self.unseen.back_mut().filter(|latest| latest.1 == from) {
            latest.1 = to;
            return;
        }
        if self.unseen.len() == MAX_UNSEEN {
            self.unseen.pop_front();
        }
        self.unseen.push_back((from, to));
    }

    /// Removes `[start, end)`, now captured, from the unseen ranges and returns the number of
    /// removed bytes.
    pub(super) fn remove_unseen(&mut self, start: u64, end: u64) -> u64 {
        let mut bytes = 0;
        let mut rest = VecDeque::with_capacity(self.unseen.len() + 1);
        for (from, to) in self.unseen.drain(..) {
            let (first, after) = (from.max(start), to.min(end));
            if first >= after {
                rest.push_back((from, to));
                continue;
            }
            bytes += after - first;
            rest.extend([(from, first), (after, to)].into_iter().filter(|part| part.0 < part.1));
        }
        rest.truncate(MAX_UNSEEN);
        self.unseen = rest;
        bytes
    }
}

impl DirectionStats {
    /// Returns the RTT report. `tap_rtt`: minimum round-trip time between the tap and the sender.
    pub(super) fn rtts(&mut self, tap_rtt: Option<Nanos>, rounds: &RoundSummary) -> RoundTrips {
        RoundTrips {
            karn: take(&mut self.karn).report(),
            undelayed_max_s: self.max_undelayed.map(|longest| longest as f64 / 1e9),
            sender: take(&mut self.sender).report(),
            over_time_s: self.over_time.mean_s(),
            timestamps: take(&mut self.timestamps).report(),
            tap_to_sender_s: tap_rtt.map(|tap_rtt| tap_rtt as f64 / 1e9),
            round_samples: rounds.samples,
            round_mean_s: rounds.mean_s,
            flight_correlation: rounds.correlation,
            withheld: false,
        }
    }
}

/// Appends `item` if there is room, and returns its index.
fn keep<T>(list: &mut Vec<T>, item: T, room: bool, omitted: &mut u64) -> Option<usize> {
    if !room {
        *omitted += 1;
        return None;
    }
    list.push(item);
    Some(list.len() - 1)
}
