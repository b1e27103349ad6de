//! Statistics of a direction with data: sums, distributions and recent events.

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem::take;

use super::interruption_kinds::{ClosedWindow, Interruption};
use super::intervals::{IntervalCounts, Intervals};
use super::ip_id_steps::IpIdSteps;
use super::limit_evidence::EvidenceSums;
use super::loss_indications::{
    FirstTimeoutMean, LossIndication, LossIndicationCounts, PftkIndicationRule, RetransInfo,
};
use super::retransmission_cause::{RetransCause, RetransCauses, RetransVerdict};
use super::rounds::{RoundSummary, Rounds};
use super::rtt::{RttReport, SampleStats, TimeAverage, credible_rtt_s};
use super::sequence_numbers::is_earlier_timestamp;
use super::sequence_plot::{PointKind, SequencePlot};
use crate::segment::Nanos;

/// Number of recent retransmissions that a DSACK or echoed timestamp may still prove unnecessary.
const MAX_UNCONFIRMED_RETRANS: usize = 64;
/// Number of ranges that were acknowledged before they were captured, and may still be captured.
const MAX_UNCAPTURED_RANGES: usize = 16;

/// Number of events that may still be listed by all directions in total.
#[derive(Debug)]
pub(crate) struct EventQuota {
    left: Cell<usize>,
}

impl EventQuota {
    pub(crate) fn new(events: usize) -> Self {
        Self { left: Cell::new(events) }
    }

    /// Takes one event from the quota, if any is left.
    pub(super) fn take_event_if_left(&self) -> bool {
        let less = self.left.get().checked_sub(1);
        less.inspect(|left| self.left.set(*left)).is_some()
    }

    /// Returns `count` events to the quota.
    pub(crate) fn return_events(&self, count: usize) {
        self.left.set(self.left.get() + count);
    }
}

/// A recent retransmission that may still prove unnecessary.
#[derive(Clone, Copy, Debug)]
struct UnconfirmedRetrans {
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
    over_time: TimeAverage,
    pub(super) timestamps: SampleStats,
    pub(super) rounds: Rounds,
    pub(super) evidence: EvidenceSums,
    pub(super) ack_ids: IpIdSteps,
    pub(super) indications: LossIndicationCounts,
    paper: PftkIndicationRule,
    pub(super) t0: FirstTimeoutMean,
    pub(super) causes: RetransCauses,
    pub(super) spurious: SpuriousRetransmissions,
    recent: VecDeque<UnconfirmedRetrans>,
    unseen: VecDeque<(u64, u64)>,
    pub(super) loss_times: Vec<LossIndication>,
    pub(super) retransmitted: Vec<Retransmission>,
    pub(super) omitted: u64,
    pub(super) interruptions: Vec<Interruption>,
    pub(super) closed_window: ClosedWindow,
    max_events: usize,
    /// Only if requested.
    pub(super) plot: Option<SequencePlot>,
}

/// Unnecessary retransmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpuriousRetransmissions {
    /// Reported by DSACK (RFC 2883).
    pub dsack: u64,
    /// Detected by the echoed timestamp (Eifel, RFC 3522).
    pub eifel: u64,
    /// DSACKs without a captured retransmission: the network duplicated a packet.
    pub unexplained_dsack: u64,
}

/// A retransmitted segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// Capture time.
    pub time: Nanos,
    /// Offset of the first byte in this direction.
    pub offset: u64,
    /// Payload, bytes.
    pub bytes: u32,
    /// Cause of the retransmission.
    pub cause: RetransCause,
    /// True if the retransmission was unnecessary: the receiver had the data (DSACK), or
    /// acknowledged the original (Eifel).
    pub spurious: bool,
}

impl DirectionStats {
    /// Boxed, because the structure is large, and only directions with data have one.
    pub(super) fn new(origin: Nanos, max_events: usize, max_points: usize) -> Box<Self> {
        let mut stats = Box::<Self>::default();
        stats.intervals.set_origin(origin);
        stats.max_events = max_events;
        stats.plot = (max_points > 0).then(|| SequencePlot::new(max_points));
        stats
    }

    /// Counts a recovery that begins without a retransmission.
    pub(super) fn on_new_recovery(
        &mut self,
        time: Nanos,
        verdict: &RetransVerdict,
        quota: &EventQuota,
    ) {
        self.indications.count_verdict(verdict);
        self.intervals.timeout_sequence_at(time, true).count_verdict(verdict);
        self.add_loss_indication(time, verdict, quota);
    }

    fn add_loss_indication(&mut self, time: Nanos, verdict: &RetransVerdict, quota: &EventQuota) {
        if let Some(kind) = verdict.indication {
            let indication = LossIndication { time, kind };
            let room = self.loss_times.len() < self.max_events && quota.take_event_if_left();
            push_if_room(&mut self.loss_times, indication, room, &mut self.omitted);
        }
    }

    /// Adds a point to the sequence plot, if requested.
    #[inline(always)]
    pub(super) fn add_plot_point(&mut self, time: Nanos, mark: PointKind, start: u64, end: u64) {
        if let Some(plot) = &mut self.plot {
            plot.add_point(time, mark, start, end);
        }
    }

    /// Adds an RTT sample as the sender measures it.
    pub(super) fn add_rtt_sample(&mut self, time: Nanos, sample: Nanos) {
        self.sender.add_sample(sample);
        self.over_time.add_sample(time, sample);
        let interval = self.intervals.interval_at(time);
        interval.rtt_samples += 1;
        interval.rtt_sum_s += sample as f64 / 1e9;
    }

    /// Adds a frame of data packets. `flight`: bytes in flight, including the frame.
    #[inline]
    pub(super) fn add_data_frame(&mut self, time: Nanos, packets: u64, bytes: u32, flight: u64) {
        let interval: &mut IntervalCounts = self.intervals.interval_at(time);
        interval.data_packets += packets;
        interval.bytes += u64::from(bytes);
        interval.flight_max_bytes = interval.flight_max_bytes.max(flight);
        self.rounds.record_sent_data(bytes, flight);
    }

    /// Adds a retransmission.
    pub(super) fn add_retransmission(&mut self, event: &RetransInfo, quota: &EventQuota) {
        let RetransInfo { sent, packets, verdict, .. } = *event;
        let time = sent.last;
        self.causes.count_packets(verdict.cause, packets);
        self.add_plot_point(time, PointKind::Retransmission(verdict.cause), sent.start, sent.end());
        self.t0.add_if_first_timeout(&verdict);
        let paper = if event.oldest { self.paper.classify_indication(event) } else { None };
        self.indications.count_verdict(&verdict);
        self.indications.count_by_pftk_rule(paper);
        let interval = self.intervals.interval_at(time);
        interval.retransmissions += packets;
        interval.indications.count_by_pftk_rule(paper);
        let first = !matches!(verdict.cause, RetransCause::Timeout { depth } if depth > 1);
        self.intervals.timeout_sequence_at(time, first).count_verdict(&verdict);
        self.add_loss_indication(time, &verdict, quota);
        let kept = Retransmission {
            time,
            offset: event.offset,
            bytes: sent.length,
            cause: verdict.cause,
            spurious: false,
        };
        let room = self.retransmitted.len() < self.max_events && quota.take_event_if_left();
        let kept = push_if_room(&mut self.retransmitted, kept, room, &mut self.omitted);
        if self.recent.len() == MAX_UNCONFIRMED_RETRANS {
            self.recent.pop_front();
        }
        let (start, end, timestamp) = (sent.start, sent.end(), sent.timestamp);
        self.recent.push_back(UnconfirmedRetrans { start, end, timestamp, spurious: false, kept });
    }

    /// Counts a DSACK block for `[left, right)`.
    pub(super) fn count_dsack(&mut self, left: u64, right: u64) {
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

    /// Checks an acknowledgement of `[from, to)` with the timestamp `echo`: if `echo` is older than
    /// the timestamp of the retransmission at `from`, the acknowledgement was triggered by the
    /// original segment (RFC 3522).
    pub(super) fn detect_spurious_by_timestamp(&mut self, from: u64, to: u64, echo: u32) {
        let index = self.recent.iter().position(|pending| pending.start == from);
        let Some(index) = index else { return };
        let pending = self.recent[index];
        if pending.end <= to
            && pending.timestamp != 0
            && is_earlier_timestamp(echo, pending.timestamp)
        {
            self.spurious.eifel += u64::from(self.mark_spurious(index));
        }
    }

    /// Marks a retransmission as spurious. Returns false if the retransmission was already marked.
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
    pub(super) fn restart_sequence_space(&mut self, start: u64) {
        self.recent.clear();
        self.unseen.clear();
        self.paper = PftkIndicationRule::default();
        self.rounds.restart_sequence_at(start);
    }

    /// Stores that `[from, to)` was acknowledged, but not captured.
    pub(super) fn add_uncaptured_range(&mut self, from: u64, to: u64) {
        if let Some(latest) = self.unseen.back_mut().filter(|latest| latest.1 == from) {
            latest.1 = to;
            return;
        }
        if self.unseen.len() == MAX_UNCAPTURED_RANGES {
            self.unseen.pop_front();
        }
        self.unseen.push_back((from, to));
    }

    /// Removes `[start, end)`, now captured, from the unseen ranges and returns the number of
    /// removed bytes.
    pub(super) fn remove_from_uncaptured(&mut self, start: u64, end: u64) -> u64 {
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
        rest.truncate(MAX_UNCAPTURED_RANGES);
        self.unseen = rest;
        bytes
    }
}

impl DirectionStats {
    /// Returns the RTT report. `tap_rtt`: minimum round-trip time between the tap and the sender.
    pub(super) fn rtt_report(
        &mut self,
        tap_rtt: Option<Nanos>,
        rounds: &RoundSummary,
    ) -> RttReport {
        RttReport {
            karn: take(&mut self.karn).into_report(),
            undelayed_max_s: self.max_undelayed.and_then(|rtt| credible_rtt_s(rtt as f64 / 1e9)),
            sender: take(&mut self.sender).into_report(),
            over_time_s: self.over_time.mean_s().and_then(credible_rtt_s),
            timestamps: take(&mut self.timestamps).into_report(),
            tap_to_sender_s: tap_rtt.map(|tap_rtt| tap_rtt as f64 / 1e9),
            round_samples: rounds.samples,
            round_mean_s: rounds.mean_s.and_then(credible_rtt_s),
            flight_correlation: rounds.correlation,
            withheld: false,
            too_short: false,
        }
    }
}

/// Appends `item` if there is room, and returns its index.
fn push_if_room<T>(list: &mut Vec<T>, item: T, room: bool, omitted: &mut u64) -> Option<usize> {
    if !room {
        *omitted += 1;
        return None;
    }
    list.push(item);
    Some(list.len() - 1)
}
