//! Analysis of the acknowledgements, SACK blocks and windows of a direction, and its final report.

use std::mem::take;

use super::direction_stats::{DirectionStats, EventQuota};
use super::flight::SentRange;
use super::flow::{Flow, MAX_HIDDEN_DATA};
use super::negotiated_options::AnnouncedOptions;
use super::out_of_window::SequenceCheck;
use super::report::DirectionReport;
use super::round_record::WaitReason;
use super::rounds::DataAck;
use super::sequence_numbers::{unwrap_first_sequence, unwrap_near};
use super::sequence_plot::PointKind;
use super::tap_side::{TapRtts, TapSide};
use super::transfer_limits::{PathSummary, classify_limits};
use crate::segment::{Endpoint, Flags, Nanos, Segment};

/// First timeout of a sender without RTT samples (RFC 6298): a longer one is unlikely.
const MAX_FIRST_TIMEOUT: Nanos = 1_000_000_000;

/// Maximum number of data packets that is too small to show a limit by a window.
const MAX_PACKETS_WITHOUT_LIMIT: u64 = 2;

/// Segments acknowledged by one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct AckedData {
    packets: u64,
    /// First send time of the newest segment.
    newest: Option<Nanos>,
    /// First send time of the oldest segment that SACK had not covered.
    oldest: Option<Nanos>,
    /// Send time of the segment whose timestamp is echoed.
    echoed: Option<Nanos>,
    /// True if one of the segments was sent more than once.
    ambiguous: bool,
    /// True if the acknowledged segment with the highest bytes was captured after a segment with
    /// higher bytes, or never. The tap missed its first transmission, so there is no RTT sample.
    unseen: bool,
}

impl Flow {
    /// Processes a segment from the receiver of the data.
    #[inline]
    pub(crate) fn on_peer_segment(&mut self, segment: &Segment, quota: &EventQuota) {
        self.find_interruption(segment.time);
        self.recovery.on_peer_packet(segment.time);
        if !segment.flags.contains_any(Flags::ACK) || segment.flags.contains_any(Flags::RST) {
            return;
        }
        if !self.initialised {
            self.begin_sequence(unwrap_first_sequence(segment.acknowledgement));
        }
        if let Some(stats) = &mut self.stats {
            stats.ack_ids.add_segment(segment);
        }
        let number = unwrap_near(self.next, segment.acknowledgement);
        if !self.anchored {
            self.anchored = true;
            self.move_sequence_origin_back(number, segment.time);
        }
        match self.ack_window.check_sequence_number(segment.acknowledgement, number, self.next) {
            SequenceCheck::Within => {}
            reach => return self.on_out_of_window_ack(segment, reach),
        }
        self.count_ecn_echo(segment);
        let window = self.scaled_receive_window(segment);
        let same = window == self.window;
        let advances = number > self.acknowledged;
        // Why the sender has waited so far; this acknowledgement may remove the reason.
        let wait = if advances || !same { self.wait_reason() } else { WaitReason::Open };
        if advances || !same {
            self.waited = wait;
        }
        let bare = segment.payload == 0 && !segment.flags.contains_any(Flags::SYN | Flags::FIN);
        if !advances && window > self.window {
            let update = self.window_seen && bare && number == self.acknowledged;
            self.counts.window_updates += u64::from(update);
        }
        self.update_receive_window(segment, number, window);
        let mut sample = None;
        let unanswered = self.next > self.acknowledged;
        if advances {
            sample = self.process_new_ack(segment, number, wait);
        } else {
            self.on_ack_without_new_data(segment, wait);
        }
        let options = &segment.options;
        if options.sack_blocks > 0 {
            self.recovery.sack_seen = true;
            let sacked = self.process_sack_blocks(segment, number);
            sample = sample.or(sacked);
        }
        if advances {
            self.restart_recovery_after_ack(segment.time, quota);
        }
        if let Some(since) = sample {
            let sample = segment.time.saturating_sub(since);
            self.estimate.add_sample(sample);
            if let Some(stats) = &mut self.stats {
                stats.add_rtt_sample(segment.time, sample);
            }
        }
        if bare && !advances && number == self.acknowledged && unanswered && same {
            self.count_duplicate_ack(segment);
        }
    }

    #[inline]
    fn count_ecn_echo(&mut self, segment: &Segment) {
        if self.negotiated.accurate_ecn {
            return self.count_reported_marks(segment);
        }
        // In a SYN, the flag only offers or accepts ECN (RFC 3168, section 6.1.1).
        if segment.flags.contains_any(Flags::ECE) && !segment.flags.contains_any(Flags::SYN) {
            self.counts.ecn_echoes += 1;
            self.on_ecn_reaction();
        }
    }

    /// Counts the marks that accurate ECN reports: RFC 9768, section 3.2. Before data was sent, the
    /// field answers the handshake.
    fn count_reported_marks(&mut self, segment: &Segment) {
        if segment.flags.contains_any(Flags::SYN) || self.counts.data_packets == 0 {
            return;
        }
        let (packets, bytes) = self.reported_marks.on_ack(segment);
        self.counts.reported_ce_packets += packets;
        self.counts.reported_ce_bytes += bytes;
        if packets > 0 {
            self.counts.ecn_echoes += 1;
            self.on_ecn_reaction();
        }
    }

    /// Processes an acknowledgement of no new data. `wait`: reason for waiting so far.
    #[inline]
    fn on_ack_without_new_data(&mut self, segment: &Segment, wait: WaitReason) {
        let opens = wait.is_by_receiver() && !self.wait_reason().is_by_receiver();
        let Some(stats) = &mut self.stats else { return };
        if segment.payload > 0 {
            stats.rounds.on_peer_data();
        }
        if opens {
            stats.rounds.on_window_opened(segment.time, wait);
        }
    }

    /// Counts a duplicate acknowledgement.
    #[inline]
    fn count_duplicate_ack(&mut self, segment: &Segment) {
        if self.recovery.duplicates == 0 {
            if let Some(stats) = &mut self.stats {
                stats.rounds.reductions.on_first_duplicate(self.next - self.acknowledged);
            }
        }
        self.recovery.count_duplicate_without_sack(segment.time, segment.options.cut);
        self.counts.duplicate_acks += 1;
        self.initial.complete |= self.initial.packets > 0;
    }

    /// Starts another recovery if the acknowledgement ended a recovery, but retransmitted data are
    /// still missing.
    #[inline]
    fn restart_recovery_after_ack(&mut self, time: Nanos, quota: &EventQuota) {
        let (range, board) = ((self.acknowledged, self.next), &self.board);
        let verdict = self
            .recovery
            .restart_recovery_if_lost(time, range, |left, right| board.holds_range(left, right));
        if let (Some(verdict), Some(stats)) = (verdict, &mut self.stats) {
            stats.on_new_recovery(time, &verdict, quota);
        }
    }

    #[inline]
    fn scaled_receive_window(&mut self, segment: &Segment) -> u64 {
        let shift = if segment.flags.contains_any(Flags::SYN) {
            0
        } else {
            self.negotiated.scale.unwrap_or(0)
        };
        self.unscaled = self.negotiated.scale.is_none();
        u64::from(segment.window) << shift.min(14)
    }

    #[inline]
    fn update_receive_window(&mut self, segment: &Segment, number: u64, window: u64) {
        if window == 0 && (self.window > 0 || !self.window_seen) {
            self.counts.zero_windows += 1;
            self.on_window_closed(segment.time);
        } else if window > 0 && self.window == 0 {
            self.on_window_opened(segment.time, true);
        }
        self.window = window;
        self.window_seen = true;
        if window > self.window_max {
            self.window_max = window;
        }
        let raised = number.saturating_add(window) > self.edge;
        self.edge = self.edge.max(number.saturating_add(window));
        if let Some(stats) = &mut self.stats {
            if raised {
                stats.add_plot_point(segment.time, PointKind::Window, number, self.edge);
            }
            let interval = stats.intervals.interval_at(segment.time);
            interval.window_max_bytes = interval.window_max_bytes.max(window);
        }
    }

    /// Processes an acknowledgement of new data up to `number`. Returns the start of the sender's
    /// RTT sample, if any.
    fn process_new_ack(
        &mut self,
        segment: &Segment,
        number: u64,
        wait: WaitReason,
    ) -> Option<Nanos> {
        let from = self.acknowledged;
        let flight = self.next - from;
        let beyond = number > self.next;
        if beyond {
            let seen = self.next.max(self.probed).min(number);
            self.count_uncaptured_data(seen, number);
            self.next = number;
        }
        let echo = segment.options.timestamps.map(|timestamps| timestamps.1);
        // The segment arrived after later data, but was not retransmitted.
        let holds_later_data = self.board.held_bytes() > 0 && !beyond;
        if holds_later_data && self.flight.was_oldest_sent_once_unsacked(number) {
            self.counts.late_packets += 1;
        }
        let mut acked = self.take_acknowledged_segments(number, echo);
        acked.unseen |= beyond;
        self.acknowledged = number;
        if let Some(stats) = &mut self.stats {
            stats.add_plot_point(segment.time, PointKind::Ack, from, number);
        }
        self.board.remove_below(number);
        self.recovery.on_new_ack(segment.time, number);
        acked.newest?;
        self.counts.acks += 1;
        self.bare_acks += u64::from(segment.payload == 0);
        self.counts.acknowledged_packets += acked.packets;
        self.initial.complete = true;
        self.last_data = self.last_data.max(Some(segment.time));
        let stats = self.stats.as_mut()?;
        let (time, bytes, window) = (segment.time, number - from, self.window);
        let has_data = segment.payload > 0;
        stats.rounds.on_new_ack(&DataAck { time, number, bytes, has_data, flight, window, wait });
        if let Some(since) = acked.echoed {
            stats.timestamps.add_sample(segment.time.saturating_sub(since));
        }
        if acked.ambiguous {
            if let Some(echo) = echo {
                stats.detect_spurious_by_timestamp(from, number, echo);
            }
            return None;
        }
        if acked.unseen {
            return None;
        }
        if let Some(since) = acked.newest {
            let sample = segment.time.saturating_sub(since);
            stats.karn.add_sample(sample);
            if acked.packets > 1 {
                stats.max_undelayed = stats.max_undelayed.max(Some(sample));
            }
        }
        acked.oldest
    }

    fn take_acknowledged_segments(&mut self, number: u64, echo: Option<u32>) -> AckedData {
        let (mut acked, mut hole, mut held) = (AckedData::default(), false, false);
        while let Some(sent) = self.flight.take_oldest_until(number) {
            if sent.sends == 0 {
                self.count_uncaptured_data(sent.start, sent.end());
                (hole, acked.unseen) = (true, true);
                continue;
            }
            if sent.control {
                continue;
            }
            acked.packets += match sent.length > self.largest {
                true => u64::from(sent.length.div_ceil(self.largest.max(1))),
                false => 1,
            };
            held |= sent.sacked;
            self.record_acked_send_times(&mut acked, &sent, echo);
        }
        if let Some(part) = self.flight.take_part_of_oldest(number).filter(|part| part.sends > 0) {
            acked.packets += u64::from(part.length / self.largest.max(1));
            self.record_acked_send_times(&mut acked, &part, echo);
        }
        // SACK or duplicate acknowledgements show that the receiver also missed the uncaptured bytes
        // and got them later, from a segment that was not captured. The acknowledgement answers
        // that segment.
        acked.unseen |= hole && (held || self.recovery.duplicates > 0);
        acked
    }

    /// Adds the send times of an acknowledged segment or part of an aggregated frame.
    #[inline(always)]
    fn record_acked_send_times(
        &mut self,
        acked: &mut AckedData,
        sent: &SentRange,
        echo: Option<u32>,
    ) {
        acked.unseen = sent.first < self.latest;
        self.latest = self.latest.max(sent.first);
        acked.newest = Some(sent.first);
        acked.ambiguous |= sent.is_retransmitted();
        if !sent.sacked && acked.oldest.is_none() {
            acked.oldest = Some(sent.first);
        }
        if acked.echoed.is_none() && echo.is_some_and(|e| e != 0 && e == sent.timestamp) {
            acked.echoed = Some(sent.last);
        }
    }

    /// Counts `[from, to)` as received, but not captured.
    fn count_uncaptured_data(&mut self, from: u64, to: u64) {
        self.counts.missing_bytes += to - from;
        if let Some(stats) = self.stats.as_mut().filter(|_| to > from) {
            stats.add_uncaptured_range(from, to);
        }
    }

    /// Processes the SACK blocks. Returns the send time of the oldest newly covered segment.
    fn process_sack_blocks(&mut self, segment: &Segment, number: u64) -> Option<Nanos> {
        let options = &segment.options;
        let count = usize::from(options.sack_blocks).min(options.sack.len());
        let blocks = options.sack[..count].iter();
        let base = self.acknowledged;
        let block =
            |&(left, right): &(u32, u32)| (unwrap_near(base, left), unwrap_near(base, right));
        let (mut fresh, mut oldest) = (false, None);
        for (place, (left, right)) in blocks.clone().map(block).enumerate() {
            if left >= right {
                continue;
            }
            if self.is_untranslated_dsack((left, right), number) {
                self.counts.untranslated_sacks += 1;
                if let Some(stats) = &mut self.stats {
                    stats.count_dsack(number.saturating_sub(right - left), number);
                }
                continue;
            }
            // RFC 2883: the first block is a DSACK if another block or the acknowledgement number
            // covers it.
            let within = |(l, r): (u64, u64)| l <= left && right <= r && (l, r) != (left, right);
            let twice = right <= number
                || options.sack.get(1..count).unwrap_or_default().iter().map(block).any(within);
            if place == 0 && twice {
                if let Some(stats) = &mut self.stats {
                    stats.count_dsack(left, right);
                }
            }
            if right > self.next && self.first_data.is_none() {
                self.add_data_before_capture(segment.time, right);
            }
            if left < self.acknowledged || right > self.next {
                continue;
            }
            let Some(gain) = self.board.add_range(left, right) else { continue };
            fresh = true;
            if let Some(stats) = &mut self.stats {
                stats.add_plot_point(segment.time, PointKind::Sack, gain.from, gain.to);
            }
            self.flight.mark_sacked(gain, self.largest, |sent| {
                oldest = Some(oldest.map_or(sent, |min: Nanos| min.min(sent)));
            });
        }
        if fresh {
            // As in Linux, SACK of new data restarts the timer.
            self.recovery.timer_start = segment.time;
            self.initial.complete = true;
        }
        oldest
    }

    /// Whether a SACK block of an acknowledgement of all data has numbers that were never sent. Such
    /// a block can only be a DSACK, whose numbers a middlebox did not translate as it translates
    /// other sequence numbers. It reports the last data, because other duplicates are rare then.
    fn is_untranslated_dsack(&self, (left, right): (u64, u64), number: u64) -> bool {
        let origin = self.origin;
        number >= self.next
            && right - left <= self.next.saturating_sub(origin)
            && (left > self.next + MAX_HIDDEN_DATA || right + MAX_HIDDEN_DATA < origin)
    }

    /// Adds the data up to `end`, which SACK shows to have been sent before the capture began.
    #[cold]
    fn add_data_before_capture(&mut self, time: Nanos, end: u64) {
        if end - self.acknowledged <= MAX_HIDDEN_DATA {
            self.flight.append_hole((self.next, end), time, (0, 0));
            self.next = end;
        }
    }

    /// Returns the reason why the sender does not send more.
    #[inline]
    pub(super) fn wait_reason(&self) -> WaitReason {
        let beyond = !self.bad_scale && self.edge < self.next + u64::from(self.largest);
        let full = self.window_seen && (self.window == 0 || beyond);
        if self.recovery.is_active() {
            WaitReason::Repair
        } else if full && self.window < u64::from(self.largest) {
            WaitReason::Closed
        } else if full {
            WaitReason::Window
        } else if self.short {
            WaitReason::Short
        } else {
            WaitReason::Open
        }
    }

    /// Returns the report of this direction.
    pub(crate) fn direction_report(
        &mut self,
        source: Endpoint,
        destination: Endpoint,
        (tap, from): (&TapRtts, usize),
        options: AnnouncedOptions,
    ) -> DirectionReport {
        let receiver_silence = self.receiver_silence();
        // At a receiver, acknowledgements may precede the rest of the initial window. A sender without
        // more data did not fill the window.
        let filled = self.initial.complete && !self.initial.short;
        let (wait, starts) = (self.wait_reason(), self.isn.is_some() && filled);
        let mut blank = None::<DirectionStats>;
        let stats = self.stats.as_deref_mut().unwrap_or_else(|| blank.get_or_insert_default());
        let min_rtt = stats.sender.min();
        let evidence = stats.evidence.to_limit_evidence(tap.rtt_to_end(from));
        let side = tap.tap_side(from, min_rtt, evidence.queue_s);
        let mut summary = stats.rounds.finish_last_round(self.last_data.unwrap_or(0), wait);
        let mut rtt = stats.rtt_report(tap.rtt_to_end(from), &summary);
        if self.bare_acks == 0 {
            rtt.withhold_if_acks_missing(tap.handshake_rtt());
        }
        let is_too_short = rtt.withhold_if_too_short(side, tap.handshake_rtt());
        // Without a credible RTT, flights and rounds are unknown.
        let min_rtt = min_rtt.filter(|_| !is_too_short);
        let (tap_rtt, segment, bad_scale) = (tap.rtt_to_end(from), self.largest, self.bad_scale);
        let missing = self.counts.missing_bytes.div_ceil(u64::from(segment.max(1)));
        let timeout = stats.t0.mean_s().map_or(0, |t0| (t0 * 1e9) as Nanos).max(MAX_FIRST_TIMEOUT);
        let hidden_timeouts =
            timeout.saturating_mul(self.counts.retransmissions.saturating_add(missing));
        let one_flight = self.initial.bytes >= self.counts.unique_bytes;
        // One or two packets show nothing about a window; a loss reduces it.
        let packets = self.counts.data_packets.saturating_sub(self.counts.retransmissions);
        let waited = summary.ack_clocked || self.counts.retransmissions > 0;
        let ack_clocked = waited && !one_flight && packets > MAX_PACKETS_WITHOUT_LIMIT;
        let path = PathSummary {
            side,
            tap_rtt,
            min_rtt,
            hidden_timeouts,
            ack_clocked,
            segment,
            bad_scale,
        };
        let answered = self.window_seen || self.counts.acks > 0;
        let limits = answered.then(|| classify_limits(&mut summary, &path));
        let complete_start = starts && !one_flight && side != TapSide::Receiver;
        let packets = self.counts.data_packets.max(1) as f64;
        let origin = self.origin + u64::from(self.isn.is_some());
        let plot = stats.plot.take().map(|plot| plot.into_points(origin));
        DirectionReport {
            source,
            destination,
            side,
            counts: self.counts,
            options,
            causes: stats.causes,
            spurious: stats.spurious,
            indications: stats.indications,
            t0_s: stats.t0.mean_s(),
            rtt,
            segment_bytes: self.largest,
            initial_window_bytes: complete_start.then_some(self.initial.bytes),
            initial_window_packets: complete_start.then_some(self.initial.packets),
            flight_max_bytes: if answered { self.flight_max } else { 0 },
            flight_mean_bytes: answered.then(|| self.flight_sum / packets),
            window_max_bytes: self.window_max,
            window_last_bytes: self.window,
            receiver_silence,
            window_unscaled: self.unscaled,
            first_data: self.first_data,
            last_data: self.last_data,
            intervals: take(&mut stats.intervals).into_vec(),
            loss_times: take(&mut stats.loss_times),
            retransmitted: take(&mut stats.retransmitted),
            omitted: stats.omitted,
            interruptions: take(&mut stats.interruptions),
            missing_answers: stats.ack_ids.missing_segments(),
            sequence_plot: plot.unwrap_or_default(),
            slow_start: summary.slow_start,
            limitation: limits.unwrap_or_default(),
            evidence,
            rounds: summary.rows,
        }
    }
}
