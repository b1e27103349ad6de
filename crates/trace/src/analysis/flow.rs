//! Analysis of the data that one end sends.

use super::direction_counts::DirectionCounts;
use super::direction_stats::{DirectionStats, EventQuota};
use super::flight::{OverlappedBytesHistory, SegmentsInFlight, SentRange};
use super::limit_evidence::NewDataSegment;
use super::loss_indications::RetransInfo;
use super::negotiated_options::{AnnouncedOptions, NegotiatedOptions};
use super::out_of_window::{MAX_WINDOW, OutOfWindowTracker, SequenceCheck};
use super::recovery::{DUPLICATE_THRESHOLD, RecoveryTracker, RetransmittedSegment};
use super::reported_marks::ReportedMarks;
use super::retransmission_cause::HANDSHAKE_CLASS;
use super::round_record::WaitReason;
use super::rounds::NewDataSent;
use super::rtt::RttEstimate;
use super::scoreboard::SackScoreboard;
use super::sender_state::SenderState;
use super::sequence_numbers::{is_earlier_timestamp, unwrap_first_sequence, unwrap_near};
use super::sequence_plot::PointKind;
use crate::segment::{Flags, Nanos, Segment};

/// Longest time by which a reordered packet follows its successor; a later one is a retransmission.
const MAX_REORDERING_DELAY: Nanos = 3_000_000;
/// Minimum interval between keepalive probes.
const MIN_KEEP_ALIVE_INTERVAL: Nanos = 1_000_000_000;
/// Maximum amount of data that is assumed to have been sent, but not captured, because of a single
/// sequence number or SACK block: more than common windows, and unlikely for a wrong number.
pub(super) const MAX_HIDDEN_DATA: u64 = 1 << 24;
/// Number of in-order packets after which increasing IP identifications are trusted.
const MIN_TRUSTED_IP_IDS: i8 = 4;

/// Properties of the connection needed to process its data segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionContext<'a> {
    /// Round-trip time between the tap and the sender of the data; 0 if unknown.
    pub(crate) tap_rtt: Nanos,
    /// True if a queue may precede the tap: neither end is nearer than the other.
    pub(crate) may_be_queued: bool,
    /// Time since the timestamp that the segment echoes passed the tap, if this is the first echo.
    pub(crate) echo: Option<Nanos>,
    /// Maximum number of losses and of retransmissions listed per direction; `quota` limits all
    /// directions.
    pub(crate) max_events: usize,
    pub(crate) quota: &'a EventQuota,
    /// Maximum number of points of the sequence plot; 0 for no plot.
    pub(crate) max_points: usize,
}

/// Data sent before the first acknowledgement of data, which may also be a duplicate or SACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InitialWindow {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) complete: bool,
    /// True if its last segment was not full, so that the sender had no more data.
    pub(super) short: bool,
}

/// Data up to `end` that were not captured; a segment without data shows that they were sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    end: u64,
    noticed: Nanos,
    /// IP identification and timestamp of the segment, or 0.
    shown_by: (u16, u32),
}

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) counts: DirectionCounts,
    pub(crate) announced: AnnouncedOptions,
    /// Last values of accurate ECN from the receiver.
    pub(super) reported_marks: ReportedMarks,
    pub(crate) negotiated: NegotiatedOptions,
    pub(crate) isn: Option<u32>,
    pub(super) initialised: bool,
    /// End of the data sent with a SYN.
    syn_data_end: u64,
    syn_ack_sent: bool,
    /// True once an acknowledgement or a SYN has determined the start of the data.
    pub(super) anchored: bool,
    pub(super) origin: u64,
    pub(super) acknowledged: u64,
    /// Highest sequence number sent, plus one.
    pub(super) next: u64,
    /// End of the data that were sent only as probes of a closed window.
    pub(super) probed: u64,
    pub(super) flight: SegmentsInFlight,
    /// First capture time of the newest acknowledged segment.
    pub(super) latest: Nanos,
    pub(super) board: SackScoreboard,
    pub(super) recovery: RecoveryTracker,
    pub(super) estimate: RttEstimate,
    /// Last window of the receiver, and the highest number that any window allowed.
    pub(super) window: u64,
    pub(super) edge: u64,
    pub(super) window_max: u64,
    pub(super) unscaled: bool,
    /// True if a packet of the receiver has announced a window.
    pub(super) window_seen: bool,
    /// True if more was sent than the unscaled windows allow, so their scale is unknown.
    pub(super) bad_scale: bool,
    /// True if the newest segment was not full.
    pub(super) short: bool,
    pub(super) first_data: Option<Nanos>,
    pub(super) last_data: Option<Nanos>,
    pub(super) last_sent: Nanos,
    /// Reason for waiting before the last acknowledgement of new data or change of the window.
    pub(super) waited: WaitReason,
    last_ip_id: u16,
    rising_ids: i8,
    pub(super) keep_alive_sent: bool,
    pub(super) last_window_probe: Nanos,
    /// Number of window probes since the last packet of the receiver.
    pub(super) unanswered_window_probes: u64,
    /// First byte of the newest segment with new data.
    last_start: u64,
    /// Data that only segments without data show.
    pub(super) gap: Option<Gap>,
    /// Start of the last hole that a segment without data showed, and the time of this segment.
    shown_hole: (u64, Nanos),
    pub(super) largest: u32,
    /// Payload of a full segment inferred from aggregated frames if the SYNs are missing; 0 if
    /// unknown.
    pub(super) inferred_full: u32,
    pub(super) initial: InitialWindow,
    pub(super) flight_max: u64,
    pub(super) flight_sum: f64,
    sequence_window: OutOfWindowTracker,
    /// Sequence number and payload of the last out-of-window segment.
    pub(super) last_out_of_window: (u32, u32),
    pub(super) ack_window: OutOfWindowTracker,
    pub(super) bare_acks: u64,
    pub(super) stats: Option<Box<DirectionStats>>,
}

impl Flow {
    /// Processes a segment from the sender of these data.
    #[inline]
    pub(crate) fn process_segment(&mut self, segment: &Segment, context: &ConnectionContext<'_>) {
        self.count_segment(segment);
        let flags = segment.flags;
        if flags.contains_any(Flags::RST) {
            return;
        }
        let syn = flags.contains_any(Flags::SYN);
        if !self.initialised {
            self.begin_sequence(unwrap_first_sequence(segment.sequence));
        }
        if syn {
            self.process_syn(segment);
        }
        let start = unwrap_near(self.next, segment.sequence).wrapping_add(u64::from(syn));
        let occupies = segment.payload > 0 || flags.contains_any(Flags::FIN);
        if occupies && !syn {
            match self.sequence_window.check_sequence_number(segment.sequence, start, self.next) {
                SequenceCheck::Within => {}
                reach => return self.process_out_of_window(segment, reach, context),
            }
        }
        if segment.payload > 0 {
            self.process_data(segment, start, context);
        } else if start > self.next && !flags.contains_any(Flags::FIN) {
            self.on_gap_before_empty_segment(segment, start);
        } else if !flags.contains_any(Flags::SYN | Flags::FIN) && start + 1 == self.next {
            if self.has_closed_window() {
                self.on_window_probe(segment.time);
            } else {
                self.on_keep_alive(segment.time);
            }
        }
        if flags.contains_any(Flags::FIN) {
            self.process_syn_or_fin(segment, start + u64::from(segment.payload));
        }
    }

    /// Counts a segment of an old connection between the same ends.
    pub(crate) fn count_old_connection_segment(&mut self, segment: &Segment) {
        self.count_segment(segment);
        self.counts.old_connection_packets += 1;
    }

    #[inline]
    fn count_segment(&mut self, segment: &Segment) {
        let counts = &mut self.counts;
        counts.packets += 1;
        counts.ip_bytes += u64::from(segment.ip_bytes);
        // Most packets have neither, and need not touch these counters.
        if segment.fragment || segment.ecn == 3 {
            counts.fragments += u64::from(segment.fragment);
            counts.ce_marks += u64::from(segment.ecn == 3);
            counts.ce_bytes += u64::from(segment.payload) * u64::from(segment.ecn == 3);
        }
        if segment.flags.contains_any(Flags::CWR)
            && !segment.flags.contains_any(Flags::SYN)
            && !self.negotiated.accurate_ecn
        {
            counts.window_reductions += 1;
            self.on_ecn_reaction();
        }
    }

    /// Called for an ECN echo from the receiver, and for a window reduction by the sender.
    #[cold]
    pub(super) fn on_ecn_reaction(&mut self) {
        if let Some(stats) = &mut self.stats {
            stats.rounds.on_ecn_reaction();
        }
    }

    pub(super) fn begin_sequence(&mut self, start: u64) {
        self.initialised = true;
        self.origin = start;
        self.acknowledged = start;
        self.next = start;
    }

    /// Moves the origin back to `to`: the capture began with segments in flight, and this one is
    /// older.
    pub(super) fn move_sequence_origin_back(&mut self, to: u64, now: Nanos) {
        if to < self.origin && self.origin - to < MAX_WINDOW {
            self.flight.prepend_hole(to, now);
            self.origin = to;
            self.acknowledged = to;
        }
    }

    fn process_syn(&mut self, segment: &Segment) {
        let options = &segment.options;
        self.isn = Some(segment.sequence);
        // RFC 9768, table 2.
        let accurate_ecn = match segment.flags.contains_any(Flags::ACK) {
            true => matches!(segment.ace(), 2 | 3 | 4 | 6),
            false => segment.ace() == 7,
        };
        self.anchored = true;
        self.announced = AnnouncedOptions {
            mss: options.mss.or(self.announced.mss),
            window_scale: options.window_scale.or(self.announced.window_scale),
            sack: options.sack_permitted || self.announced.sack,
            timestamps: options.timestamps.is_some() || self.announced.timestamps,
            ecn: segment.flags.contains_any(Flags::ECE) || accurate_ecn,
            accurate_ecn,
            complete: !options.cut,
        };
        let start = unwrap_near(self.next, segment.sequence);
        self.syn_data_end = self.syn_data_end.max(start + 1 + u64::from(segment.payload));
        self.process_syn_or_fin(segment, start);
        self.syn_ack_sent |= segment.flags.contains_any(Flags::ACK);
    }

    /// Processes a SYN or FIN with the sequence number `number`.
    fn process_syn_or_fin(&mut self, segment: &Segment, number: u64) {
        let mut sent = create_sent_range(segment, number, number + 1);
        sent.control = true;
        if number >= self.next {
            self.flight.append_after_hole(self.next, sent);
            self.next = number + 1;
            return;
        }
        self.flight.record_retransmission(sent, u32::MAX);
        if segment.payload == 0 {
            let syn = segment.flags.contains_any(Flags::SYN);
            // In a simultaneous open, each end sends its SYN again in its SYN-ACK (RFC 9293, figure
            // 7).
            let answers = syn && segment.flags.contains_any(Flags::ACK) && !self.syn_ack_sent;
            self.counts.syn_retransmissions += u64::from(syn && !answers);
            self.counts.fin_retransmissions += u64::from(!syn);
        }
    }

    #[inline]
    pub(super) fn process_data(
        &mut self,
        segment: &Segment,
        start: u64,
        context: &ConnectionContext<'_>,
    ) {
        let end = start + u64::from(segment.payload);
        if self.gap.is_some() {
            self.add_shown_hole(segment.time, context.tap_rtt);
        }
        if segment.payload == 1 && self.count_if_keep_alive(segment, start, end) {
            return;
        }
        let packets = self.count_data(segment, context);
        self.last_sent = segment.time;
        if self.count_if_window_probe(segment, start, end) {
            self.add_data_frame(segment, packets, self.next - self.acknowledged);
            return;
        }
        if !self.anchored {
            self.move_sequence_origin_back(start, segment.time);
        }
        if packets == 1 {
            self.largest = self.largest.max(segment.payload);
        }
        let old = self.next;
        if end > old {
            self.on_new_data(segment, (start.max(old), end), packets, context);
        }
        if start < old {
            let sent = create_sent_range(segment, start, end.min(old));
            let overlap = self.take_overlap_history(sent);
            self.counts.unique_bytes += overlap.filled;
            self.on_retransmitted_or_reordered(
                segment,
                create_sent_range(segment, start, end),
                &overlap,
                packets,
                context,
            );
        }
        // A larger flight is impossible: acknowledgements are missing.
        let flight = (self.next - self.acknowledged).min(MAX_WINDOW);
        self.flight_max = self.flight_max.max(flight);
        self.flight_sum += flight as f64;
        if packets > 1 {
            // The packets leave one by one: on average, a packet of the frame finds half of the
            // other packets in flight.
            // Some of them may already be acknowledged.
            let others = (u64::from(segment.payload) * (packets - 1) / packets).min(flight);
            self.flight_sum += (packets - 1) as f64 * flight as f64 - (packets * others / 2) as f64;
        }
        self.add_data_frame(segment, packets, flight);
        if let Some(stats) = self.stats.as_mut().filter(|_| end > old) {
            stats.add_plot_point(segment.time, PointKind::Data, start.max(old), end);
        }
    }

    /// Counts data regardless of their sequence numbers. Returns the number of packets in the
    /// frame.
    #[inline]
    pub(super) fn count_data(&mut self, segment: &Segment, context: &ConnectionContext<'_>) -> u64 {
        let packets = self.count_packets_in_frame(segment, self.negotiated.mss);
        self.counts.data_packets += packets;
        self.counts.bytes += u64::from(segment.payload);
        self.first_data.get_or_insert(segment.time);
        self.last_data = self.last_data.max(Some(segment.time));
        let stats = || DirectionStats::new(segment.time, context.max_events, context.max_points);
        let stats = self.stats.get_or_insert_with(stats);
        if let Some((value, _)) = segment.options.timestamps {
            let (queued, echo) = (context.may_be_queued, context.echo);
            stats.evidence.add_sender_timestamp(segment.time, value, queued, echo);
        }
        packets
    }

    #[inline]
    pub(super) fn add_data_frame(&mut self, segment: &Segment, packets: u64, flight: u64) {
        if let Some(stats) = &mut self.stats {
            stats.add_data_frame(segment.time, packets, segment.payload, flight);
        }
    }

    #[inline]
    fn on_new_data(
        &mut self,
        segment: &Segment,
        (start, end): (u64, u64),
        packets: u64,
        context: &ConnectionContext<'_>,
    ) {
        let sent = create_sent_range(segment, start, end);
        let idle = self.next == self.acknowledged;
        self.recovery.on_new_data(
            segment.time,
            idle,
            !self.negotiated.lacks_sack && self.board.held_bytes() == 0,
        );
        // The reason for waiting is needed only after a pause.
        let wait = if idle { self.wait_reason() } else { WaitReason::Open };
        // When the window is full, a short segment does not mean that the sender has no more data.
        let room = self.bad_scale || end + u64::from(self.largest) <= self.edge;
        self.short = segment.payload != self.largest && segment.payload % self.largest.max(1) > 0
            || self.negotiated.mss.is_some_and(|mss| segment.payload < u32::from(mss) / 2);
        if let Some(stats) = &mut self.stats {
            let (time, tap_rtt, short) = (segment.time, context.tap_rtt, self.short && room);
            let (timed, peer_time) = (!self.recovery.is_fast(), self.recovery.last_peer_time());
            stats.evidence.on_new_data(&NewDataSegment {
                time,
                start,
                end,
                peer_time,
                tap_rtt,
                short,
            });
            stats.rounds.on_new_data(&NewDataSent { time, end, idle, timed, wait, tap_rtt });
        }
        self.flight.append_after_hole(self.next, sent);
        // Bytes that were sent as probes are already counted.
        self.counts.unique_bytes += end - start.max(self.probed.min(end));
        self.last_start = start;
        self.next = end;
        self.bad_scale |= self.negotiated.scale.is_none() && self.window_seen && end > self.edge;
        if sent.ip_id != 0 {
            let step = sent.ip_id.wrapping_sub(self.last_ip_id);
            let change = if (1..=1024).contains(&step) { 1 } else { -2 };
            self.rising_ids = self.rising_ids.saturating_add(change).clamp(-8, 8);
            self.last_ip_id = sent.ip_id;
        }
        if !self.initial.complete {
            self.initial.bytes += end - start;
            self.initial.packets += packets;
            self.initial.short = self.short && room;
        }
    }

    /// Whether the receiver has closed its window.
    #[inline]
    fn has_closed_window(&self) -> bool {
        self.window == 0 && self.counts.zero_windows > 0
    }

    /// Counts a keepalive probe with one byte, which was acknowledged before. The byte is not data
    /// (RFC 9293, section 3.8.4).
    #[cold]
    fn count_if_keep_alive(&mut self, segment: &Segment, start: u64, end: u64) -> bool {
        let probe = end == self.next && self.acknowledged == self.next;
        if !probe || self.has_closed_window() {
            return false;
        }
        // A segment of one byte may be retransmitted because its acknowledgement was lost.
        let idle = segment.time.saturating_sub(self.last_sent);
        if start == self.last_start && idle < MIN_KEEP_ALIVE_INTERVAL {
            return false;
        }
        if self.isn.is_none() && start == self.origin && self.counts.bytes == 1 {
            self.recount_first_keep_alive();
        }
        self.on_keep_alive(segment.time);
        true
    }

    /// Counts the first segment as a keepalive: the capture begins in the middle of a connection, and
    /// the only byte captured so far is sent again.
    #[cold]
    fn recount_first_keep_alive(&mut self) {
        let counts = &mut self.counts;
        counts.keep_alives += 1;
        (counts.data_packets, counts.bytes, counts.unique_bytes) = (0, 0, 0);
        (counts.acks, counts.acknowledged_packets) = (0, 0);
        (self.stats, self.first_data, self.last_data) = (None, None, None);
        (self.flight_max, self.flight_sum, self.largest) = (0, 0.0, 0);
        self.initial = InitialWindow::default();
    }

    /// Processes a probe of a closed window: the sender has data, but must not send them.
    #[cold]
    fn on_window_probe(&mut self, time: Nanos) {
        self.counts.zero_window_probes += 1;
        self.last_data = self.last_data.max(self.first_data.map(|_| time));
        let answered = self.recovery.last_peer_time() >= self.last_window_probe;
        self.unanswered_window_probes =
            if answered { 1 } else { self.unanswered_window_probes + 1 };
        self.last_window_probe = time;
    }

    /// Processes a segment without data whose sequence number shows that the data before it were sent.
    /// They were lost before the tap, or the segment overtook them.
    #[cold]
    fn on_gap_before_empty_segment(&mut self, segment: &Segment, start: u64) {
        if !self.anchored || start - self.next > MAX_HIDDEN_DATA {
            return;
        }
        let timestamp = segment.options.timestamps.map_or(0, |timestamps| timestamps.0);
        let shown_by = (segment.ip_id.unwrap_or(0), timestamp);
        let gap = Gap { end: start, noticed: segment.time, shown_by };
        self.gap = Some(Gap { end: start, ..self.gap.unwrap_or(gap) });
    }

    /// Adds the hole that a segment without data showed, unless the first data after it come so soon
    /// that the segment had overtaken them.
    #[cold]
    fn add_shown_hole(&mut self, data_time: Nanos, tap_rtt: Nanos) {
        let Some(gap) = self.gap.take() else { return };
        let lag = data_time.saturating_sub(gap.noticed);
        if gap.end <= self.next || lag < MAX_REORDERING_DELAY.max(tap_rtt / 5 * 4) {
            return;
        }
        let (time, end) = (gap.noticed, gap.end);
        let idle = self.next == self.acknowledged;
        let wait = if idle { self.wait_reason() } else { WaitReason::Open };
        self.recovery.on_new_data(time.max(self.recovery.timer_start), idle, false);
        if let Some(stats) = &mut self.stats {
            stats.rounds.on_new_data(&NewDataSent { time, end, idle, timed: false, wait, tap_rtt });
        }
        self.shown_hole = (self.next, time);
        self.flight.append_hole((self.next, end), time, gap.shown_by);
        self.next = end;
    }

    /// Time of the segment without data that showed a hole which begins at `start`.
    pub(super) fn time_of_shown_hole(&self, start: u64) -> Option<Nanos> {
        let (hole, time) = self.shown_hole;
        (time > 0 && hole == start).then_some(time)
    }

    /// Whether the segment is a window probe with data.
    fn count_if_window_probe(&mut self, segment: &Segment, start: u64, end: u64) -> bool {
        let one = segment.payload == 1;
        let closed = self.has_closed_window();
        // With data in flight, the retransmission timer runs instead of the persist timer.
        let next = start == self.acknowledged && self.next == self.acknowledged;
        let beyond = start >= self.edge && !self.unscaled;
        if closed && next && (one || beyond) {
            self.on_window_probe(segment.time);
            let known = self.probed.max(self.next).clamp(start, end);
            self.counts.unique_bytes += end - known;
            self.probed = self.probed.max(end);
            return true;
        }
        false
    }

    /// Returns the history of bytes below the highest number sent.
    fn take_overlap_history(&mut self, sent: SentRange) -> OverlappedBytesHistory {
        let (start, end) = (sent.start, sent.end());
        let mut overlap = OverlappedBytesHistory::default();
        if end > self.acknowledged {
            let from = start.max(self.acknowledged);
            let length = (end - from) as u32;
            overlap = self
                .flight
                .record_retransmission(SentRange { start: from, length, ..sent }, self.largest);
        }
        if start < self.acknowledged {
            let end = end.min(self.acknowledged);
            let late =
                self.stats.as_mut().map_or(0, |stats| stats.remove_from_uncaptured(start, end));
            self.counts.missing_bytes = self.counts.missing_bytes.saturating_sub(late);
            // Bytes before the start of the capture were not seen.
            let before = self.origin.clamp(start, end) - start;
            overlap.filled += late.max(before);
            overlap.disordered = late > 0;
        }
        // Other bytes were seen, but are acknowledged or no longer stored.
        overlap.seen = end - start - overlap.filled.min(end - start);
        overlap
    }

    /// Processes a segment that does not continue the sequence: a retransmission or a reordered
    /// segment.
    fn on_retransmitted_or_reordered(
        &mut self,
        segment: &Segment,
        sent: SentRange,
        overlap: &OverlappedBytesHistory,
        packets: u64,
        context: &ConnectionContext<'_>,
    ) {
        if overlap.seen == 0 && self.is_reordered(segment, overlap, context.tap_rtt) {
            self.counts.out_of_order += 1;
            if let Some(stats) = &mut self.stats {
                stats.add_plot_point(segment.time, PointKind::Data, sent.start, sent.end());
            }
            return;
        }
        self.counts.retransmissions += packets;
        self.counts.retransmitted_bytes += u64::from(segment.payload);
        let resent = RetransmittedSegment {
            time: segment.time,
            start: sent.start,
            // A FIN is sent with the last data.
            end: sent.end() + u64::from(segment.flags.contains_any(Flags::FIN)),
            last_sent: overlap.last_sent,
            repeated: overlap.sends > 1,
        };
        let sender = SenderState {
            acknowledged: self.acknowledged,
            next: self.next,
            sack: !self.negotiated.lacks_sack,
            sacked_bytes: self.board.held_bytes(),
            estimate: &self.estimate,
            tap_rtt: context.tap_rtt,
        };
        let wait = self.wait_reason();
        // Data of a SYN that were not acknowledged are retransmitted after the handshake (RFC
        // 7413), without a loss.
        let opening = segment.flags.contains_any(Flags::SYN)
            || sent.end() <= self.syn_data_end && !resent.repeated;
        let verdict = if opening {
            HANDSHAKE_CLASS
        } else {
            self.recovery.classify_retransmission(&resent, &sender)
        };
        let offset = sent.start.saturating_sub(self.origin + u64::from(self.isn.is_some()));
        let (next, duplicates) = (self.next, self.recovery.duplicates);
        if let Some(stats) = &mut self.stats {
            let (oldest, repeated) = (sent.start <= self.acknowledged && !opening, resent.repeated);
            let event =
                RetransInfo { sent, packets, offset, verdict, next, duplicates, oldest, repeated };
            stats.add_retransmission(&event, context.quota);
            let span = (sent.start, sent.end());
            stats.rounds.on_retransmission(segment.time, span, packets, &verdict, wait);
        }
    }

    /// Whether a segment not captured before was sent before the segments that preceded it.
    fn is_reordered(
        &self,
        segment: &Segment,
        overlap: &OverlappedBytesHistory,
        tap_rtt: Nanos,
    ) -> bool {
        if overlap.disordered {
            return true;
        }
        if let Some((ip_id, timestamp)) = overlap.after {
            let own = segment.ip_id.unwrap_or(0);
            if own != 0 && ip_id != 0 && self.rising_ids >= MIN_TRUSTED_IP_IDS {
                return is_earlier_timestamp(u32::from(own) << 16, u32::from(ip_id) << 16);
            }
            let own = segment.options.timestamps.map_or(0, |timestamps| timestamps.0);
            if own != 0 && timestamp != 0 && own != timestamp {
                return is_earlier_timestamp(own, timestamp);
            }
        }
        // Only duplicates show the hole, and no captured data do: the capture began during a
        // recovery.
        if overlap.after.is_none() && self.recovery.duplicates + 1 >= DUPLICATE_THRESHOLD {
            return false;
        }
        let lag = segment.time.saturating_sub(overlap.noticed);
        // A retransmission takes at least a round trip to the sender.
        lag < MAX_REORDERING_DELAY.max(tap_rtt / 5 * 4)
    }
}

#[inline]
fn create_sent_range(segment: &Segment, start: u64, end: u64) -> SentRange {
    SentRange {
        start,
        length: (end - start) as u32,
        first: segment.time,
        last: segment.time,
        timestamp: segment.options.timestamps.map_or(0, |timestamps| timestamps.0),
        ip_id: segment.ip_id.unwrap_or(0),
        sends: 1,
        ..SentRange::default()
    }
}
