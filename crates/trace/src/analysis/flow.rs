//! The data that one end sends.

use super::flight::{Flight, Overlap, Sent};
use super::direction_stats::{EventQuota, DirectionStats, RetransmissionEvent};
use super::recovery::{HANDSHAKE, SenderState, Recovery, Resent};
use super::report::{Announced, Counts};
use super::rounds::{NewData, Wait};
use super::rtt::Estimate;
use super::scoreboard::Scoreboard;
use super::sequence::{earlier, first, unwrapped};
use super::evidence::NewSegment;
use super::out_of_window::{MAX_WINDOW, Reach, OutOfWindow};
use super::negotiated::NegotiatedOptions;
use super::sequence_plot::Mark;
use crate::segment::{Flags, Nanos, Segment};

/// A packet that comes so much later than its successor was not sent later.
const REORDERED: Nanos = 3_000_000;
/// A live peer is not asked more often than this whether it lives.
const KEEP_ALIVE: Nanos = 1_000_000_000;
/// In-order packets after which rising IP identifications are relied on.
const TRUSTED: i8 = 4;

/// Facts about the connection that its data segments need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionContext<'a> {
    /// Round trip between the tap and the end that sends the data; 0 if not known.
    pub(crate) near: Nanos,
    /// Losses and retransmissions kept one by one; and of all directions together.
    pub(crate) max_events: usize,
    pub(crate) quota: &'a EventQuota,
    /// Points of the trail that are kept; 0 for none.
    pub(crate) max_points: usize,
}

/// What was sent before the first acknowledgement of data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InitialWindow {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) over: bool,
}

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) counts: Counts,
    pub(crate) announced: Announced,
    pub(crate) negotiated: NegotiatedOptions,
    /// Initial sequence number, of a SYN captured.
    pub(crate) isn: Option<u32>,
    /// The sequence space is known.
    pub(super) begun: bool,
    /// Where the data end that were sent with a SYN; it has answered the other end's SYN.
    in_syn: u64,
    answers_syn: bool,
    /// An acknowledgement has said where it begins, or a SYN has.
    pub(super) anchored: bool,
    pub(super) origin: u64,
    pub(super) acknowledged: u64,
    pub(super) next: u64,
    /// End of what was sent into a closed window only.
    pub(super) probed: u64,
    pub(super) flight: Flight,
    /// When the newest was first captured of all that is acknowledged.
    pub(super) latest: Nanos,
    pub(super) board: Scoreboard,
    pub(super) recovery: Recovery,
    pub(super) estimate: Estimate,
    /// The receiver's last window, and the highest number that any window allowed.
    pub(super) window: u64,
    pub(super) edge: u64,
    pub(super) window_max: u64,
    pub(super) unscaled: bool,
    /// The receiver has said anything.
    pub(super) answered: bool,
    /// More was sent than its windows allowed: they are to be scaled, and nobody knows how.
    pub(super) misread: bool,
    /// The newest segment was not a full one.
    pub(super) short: bool,
    pub(super) first_data: Option<Nanos>,
    pub(super) last_data: Option<Nanos>,
    pub(super) last_sent: Nanos,
    last_ip_id: u16,
    rising_ids: i8,
    /// It has sent keepalive probes.
    pub(super) asked: bool,
    pub(super) largest: u32,
    /// Payload of a full segment that aggregated frames show without the SYNs; 0 if none did.
    pub(super) guessed: u32,
    pub(super) initial: InitialWindow,
    pub(super) flight_max: u64,
    pub(super) flight_sum: f64,
    /// Of its own numbers, and of those that acknowledge them.
    sequence_window: OutOfWindow,
    /// The last segment that was too far away: its number and its payload.
    stray: (u32, u32),
    pub(super) ack_window: OutOfWindow,
    /// Acknowledgements of its data that brought none.
    pub(super) bare_acks: u64,
    pub(super) stats: Option<Box<DirectionStats>>,
}

impl Flow {
    /// Fetches from memory what each segment changes, a word of each line of it; their sum says nothing.
    #[inline]
    pub(crate) fn prefetch(&self) -> u64 {
        let words = [
            self.counts.packets,
            self.counts.duplicate_acks,
            self.next,
            self.edge,
            self.initial.bytes,
            self.flight_max,
            self.recovery.duplicates.into(),
            u64::from(self.short),
        ];
        words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word))
    }

    /// The same of what it points to.
    #[inline]
    pub(crate) fn prefetch_second(&self) -> u64 {
        let stats = self.stats.as_ref().map_or(0, |stats| stats.prefetch());
        stats.wrapping_add(self.flight.prefetch())
    }

    /// The same of what that points to.
    #[inline]
    pub(crate) fn prefetch_third(&self) -> u64 {
        self.stats.as_ref().map_or(0, |stats| stats.prefetch_second())
    }

    /// A segment from the end whose data this is.
    #[inline]
    pub(crate) fn on_segment(&mut self, segment: &Segment, context: &ConnectionContext<'_>) {
        self.count(segment);
        let flags = segment.flags;
        if flags.any(Flags::RST) {
            return;
        }
        let syn = flags.any(Flags::SYN);
        if !self.begun {
            self.begin(first(segment.sequence));
        }
        if syn {
            self.syn(segment);
        }
        let start = unwrapped(self.next, segment.sequence).wrapping_add(u64::from(syn));
        let occupies = segment.payload > 0 || flags.any(Flags::FIN);
        if occupies && !syn {
            match self.sequence_window.check(segment.sequence, start, self.next) {
                Reach::Within => {}
                reach => return self.on_out_of_window(segment, reach, context),
            }
        }
        if segment.payload > 0 {
            self.data(segment, start, context);
        } else if !flags.any(Flags::SYN | Flags::FIN) && start + 1 == self.next {
            let closed = self.window == 0 && self.counts.zero_windows > 0;
            if closed {
                self.counts.zero_window_probes += 1;
            } else {
                self.on_keep_alive(segment.time);
            }
        }
        if flags.any(Flags::FIN) {
            self.control(segment, start + u64::from(segment.payload));
        }
    }

    /// A segment of which the numbers are too far away: it counts, but says nothing, unless it is one of several.
    #[cold]
    fn on_out_of_window(&mut self, segment: &Segment, reach: Reach, context: &ConnectionContext<'_>) {
        self.counts.out_of_window += 1;
        if reach == Reach::Moved {
            self.move_to(segment.sequence);
            let (number, payload) = self.stray;
            self.counts.unique_bytes +=
                u64::from(if number == segment.sequence { 0 } else { payload });
            if segment.payload > 0 {
                self.data(segment, self.next, context);
            }
            return;
        }
        self.stray = (segment.sequence, segment.payload);
        if segment.payload > 0 {
            let packets = self.carries(segment, context);
            self.note_data(segment, packets, (self.next - self.acknowledged).min(MAX_WINDOW));
        }
    }

    #[inline]
    fn count(&mut self, segment: &Segment) {
        let counts = &mut self.counts;
        counts.packets += 1;
        counts.ip_bytes += u64::from(segment.ip_bytes);
        // Most packets are neither, and need not touch these counts.
        if segment.fragment || segment.ecn == 3 {
            counts.fragments += u64::from(segment.fragment);
            counts.ce_marks += u64::from(segment.ecn == 3);
        }
        if segment.flags.any(Flags::ECE | Flags::CWR) && !segment.flags.any(Flags::SYN) {
            counts.ecn_echoes += u64::from(segment.flags.any(Flags::ECE));
            counts.window_reductions += u64::from(segment.flags.any(Flags::CWR));
        }
    }

    pub(super) fn begin(&mut self, at: u64) {
        self.begun = true;
        self.origin = at;
        self.acknowledged = at;
        self.next = at;
    }

    /// What the capture began with was not the oldest in flight: this is.
    pub(super) fn reach_back(&mut self, to: u64, now: Nanos) {
        if to < self.origin && self.origin - to < MAX_WINDOW {
            self.flight.prepend(to, now);
            self.origin = to;
            self.acknowledged = to;
        }
    }

    fn syn(&mut self, segment: &Segment) {
        let options = &segment.options;
        self.isn = Some(segment.sequence);
        self.anchored = true;
        self.announced = Announced {
            mss: options.mss.or(self.announced.mss),
            window_scale: options.window_scale.or(self.announced.window_scale),
            sack: options.sack_permitted || self.announced.sack,
            timestamps: options.timestamps.is_some() || self.announced.timestamps,
            ecn: segment.flags.any(Flags::ECE),
            complete: !options.cut,
        };
        let at = unwrapped(self.next, segment.sequence);
        self.in_syn = self.in_syn.max(at + 1 + u64::from(segment.payload));
        self.control(segment, at);
        self.answers_syn |= segment.flags.any(Flags::ACK);
    }

    /// A SYN or FIN with the number `at`.
    fn control(&mut self, segment: &Segment, at: u64) {
        let mut sent = stamp(segment, at, at + 1);
        sent.control = true;
        if at >= self.next {
            self.flight.append(self.next, sent);
            self.next = at + 1;
            return;
        }
        self.flight.resend(sent, u32::MAX);
        if segment.payload == 0 {
            let syn = segment.flags.any(Flags::SYN);
            // Both ends may open at once: then each sends its SYN once more with its answer (RFC 9293, figure 7).
            let answers = syn && segment.flags.any(Flags::ACK) && !self.answers_syn;
            self.counts.syn_retransmissions += u64::from(syn && !answers);
            self.counts.fin_retransmissions += u64::from(!syn);
        }
    }

    #[inline]
    fn data(&mut self, segment: &Segment, start: u64, context: &ConnectionContext<'_>) {
        let end = start + u64::from(segment.payload);
        let packets = self.carries(segment, context);
        if self.probes(segment, start, end) {
            self.note_data(segment, packets, self.next - self.acknowledged);
            return;
        }
        if !self.anchored {
            self.reach_back(start, segment.time);
        }
        if packets == 1 {
            self.largest = self.largest.max(segment.payload);
        }
        let old = self.next;
        if end > old {
            self.advance(segment, (start.max(old), end), packets, context);
        }
        if start < old {
            let sent = stamp(segment, start, end.min(old));
            let overlap = self.overlap(sent);
            self.counts.unique_bytes += overlap.filled;
            self.late(segment, stamp(segment, start, end), &overlap, packets, context);
        }
        // More is not allowed: acknowledgements are missing.
        let flight = (self.next - self.acknowledged).min(MAX_WINDOW);
        self.flight_max = self.flight_max.max(flight);
        self.flight_sum += flight as f64;
        if packets > 1 {
            // Its packets leave one after another: on average half of the others are out with each.
            let others = u64::from(segment.payload) * (packets - 1) / packets;
            self.flight_sum += (packets - 1) as f64 * flight as f64 - (packets * others / 2) as f64;
        }
        self.note_data(segment, packets, flight);
        if let Some(stats) = self.stats.as_mut().filter(|_| end > old) {
            stats.mark(segment.time, Mark::Data, start.max(old), end);
        }
    }

    /// Counts data, whatever their numbers say; how many packets the frame stands for.
    #[inline]
    fn carries(&mut self, segment: &Segment, context: &ConnectionContext<'_>) -> u64 {
        let packets = self.packets_in(segment, self.negotiated.mss);
        self.counts.data_packets += packets;
        self.counts.bytes += u64::from(segment.payload);
        self.first_data.get_or_insert(segment.time);
        self.last_data = self.last_data.max(Some(segment.time));
        let stats = || DirectionStats::new(segment.time, context.max_events, context.max_points);
        let stats = self.stats.get_or_insert_with(stats);
        if let Some((value, _)) = segment.options.timestamps {
            stats.signs.stamped(segment.time, value, context.near);
        }
        packets
    }

    #[inline]
    fn note_data(&mut self, segment: &Segment, packets: u64, flight: u64) {
        if let Some(stats) = &mut self.stats {
            stats.data(segment.time, packets, segment.payload, flight);
        }
    }

    /// Data that continue the sequence.
    #[inline]
    fn advance(
        &mut self,
        segment: &Segment,
        (start, end): (u64, u64),
        packets: u64,
        context: &ConnectionContext<'_>,
    ) {
        let sent = stamp(segment, start, end);
        let alone = self.next == self.acknowledged;
        self.recovery.sent_new(
            segment.time,
            alone,
            !self.negotiated.lacks_sack && self.board.bytes() == 0,
        );
        // Only after a pause is it asked what was waited for.
        let wait = if alone { self.wait() } else { Wait::Open };
        // A window that is full ends with any segment: the sender may have more.
        let room = self.misread || end + u64::from(self.largest) <= self.edge;
        self.short = segment.payload != self.largest && segment.payload % self.largest.max(1) > 0
            || self.negotiated.mss.is_some_and(|mss| segment.payload < u32::from(mss) / 2);
        if let Some(stats) = &mut self.stats {
            let (time, near, short) = (segment.time, context.near, self.short && room);
            let (timed, heard) = (!self.recovery.fast(), self.recovery.last_peer_time());
            stats.signs.sent_new(&NewSegment { time, start, end, heard, near, short });
            stats.rounds.sent_new(&NewData { time, end, alone, timed, wait, near });
        }
        self.flight.append(self.next, sent);
        // What was probed with before has been counted.
        self.counts.unique_bytes += end - start.max(self.probed.min(end));
        self.next = end;
        self.misread |= self.negotiated.scale.is_none() && self.answered && end > self.edge;
        if sent.ip_id != 0 {
            let step = sent.ip_id.wrapping_sub(self.last_ip_id);
            let change = if (1..=1024).contains(&step) { 1 } else { -2 };
            self.rising_ids = self.rising_ids.saturating_add(change).clamp(-8, 8);
            self.last_ip_id = sent.ip_id;
        }
        if !self.initial.over {
            self.initial.bytes += end - start;
            self.initial.packets += packets;
        }
    }

    /// Whether the segment only probes a closed window, or asks whether the peer is there.
    fn probes(&mut self, segment: &Segment, start: u64, end: u64) -> bool {
        let one = segment.payload == 1;
        let closed = self.window == 0 && self.counts.zero_windows > 0;
        // With data in flight the retransmission timer runs, and nothing needs to be probed.
        let next = start == self.acknowledged && self.next == self.acknowledged;
        let beyond = start >= self.edge && !self.unscaled;
        if closed && next && (one || beyond) {
            self.counts.zero_window_probes += 1;
            let known = self.probed.max(self.next).clamp(start, end);
            self.counts.unique_bytes += end - known;
            self.probed = self.probed.max(end);
            return true;
        }
        let idle = segment.time.saturating_sub(self.last_sent);
        let asks = one && end == self.next && self.acknowledged == self.next && idle >= KEEP_ALIVE;
        if asks {
            self.on_keep_alive(segment.time);
        }
        self.last_sent = segment.time;
        asks
    }

    /// What was known of bytes below the highest sent.
    fn overlap(&mut self, sent: Sent) -> Overlap {
        let (start, end) = (sent.start, sent.end());
        let mut overlap = Overlap::default();
        if end > self.acknowledged {
            let from = start.max(self.acknowledged);
            let length = (end - from) as u32;
            overlap = self.flight.resend(Sent { start: from, length, ..sent }, self.largest);
        }
        if start < self.acknowledged {
            let end = end.min(self.acknowledged);
            let late = self.stats.as_mut().map_or(0, |stats| stats.seen_late(start, end));
            self.counts.missing_bytes = self.counts.missing_bytes.saturating_sub(late);
            // Before the capture began nothing was seen.
            let before = self.origin.clamp(start, end) - start;
            overlap.filled += late.max(before);
            overlap.disordered = late > 0;
        }
        // What is neither was seen, but is acknowledged or not kept any more.
        overlap.seen = end - start - overlap.filled.min(end - start);
        overlap
    }

    /// A segment that does not continue the sequence.
    fn late(
        &mut self,
        segment: &Segment,
        sent: Sent,
        overlap: &Overlap,
        packets: u64,
        context: &ConnectionContext<'_>,
    ) {
        if overlap.seen == 0 && self.reordered(segment, overlap, context.near) {
            self.counts.out_of_order += 1;
            if let Some(stats) = &mut self.stats {
                stats.mark(segment.time, Mark::Data, sent.start, sent.end());
            }
            return;
        }
        self.counts.retransmissions += packets;
        self.counts.retransmitted_bytes += u64::from(segment.payload);
        let resent = Resent {
            time: segment.time,
            start: sent.start,
            // FIN goes with the last data.
            end: sent.end() + u64::from(segment.flags.any(Flags::FIN)),
            last_sent: overlap.last_sent,
            repeated: overlap.sends > 1,
        };
        let sender = SenderState {
            acknowledged: self.acknowledged,
            next: self.next,
            sack: !self.negotiated.lacks_sack,
            sacked_bytes: self.board.bytes(),
            estimate: &self.estimate,
            near: context.near,
        };
        let wait = self.wait();
        // What went with a SYN and was not taken goes once more with the handshake (RFC 7413): no loss.
        let opening =
            segment.flags.any(Flags::SYN) || sent.end() <= self.in_syn && !resent.repeated;
        let verdict = if opening { HANDSHAKE } else { self.recovery.classify(&resent, &sender) };
        let offset = sent.start.saturating_sub(self.origin + u64::from(self.isn.is_some()));
        let (next, duplicates) = (self.next, self.recovery.duplicates);
        if let Some(stats) = &mut self.stats {
            let (oldest, repeated) = (sent.start <= self.acknowledged && !opening, resent.repeated);
            let repeat =
                RetransmissionEvent { sent, packets, offset, verdict, next, duplicates, oldest, repeated };
            stats.repeat(&repeat, context.quota);
            let span = (sent.start, sent.end());
            stats.rounds.sent_again(segment.time, span, packets, &verdict, wait);
        }
    }

    /// Whether a segment that nobody had seen was sent before those that came before it.
    fn reordered(&self, segment: &Segment, overlap: &Overlap, near: Nanos) -> bool {
        if overlap.disordered {
            return true;
        }
        if let Some((ip_id, timestamp)) = overlap.after {
            let own = segment.ip_id.unwrap_or(0);
            if own != 0 && ip_id != 0 && self.rising_ids >= TRUSTED {
                return earlier(u32::from(own) << 16, u32::from(ip_id) << 16);
            }
            let own = segment.options.timestamps.map_or(0, |timestamps| timestamps.0);
            if own != 0 && timestamp != 0 && own != timestamp {
                return earlier(own, timestamp);
            }
        }
        let lag = segment.time.saturating_sub(overlap.noticed);
        // A retransmission takes a round trip to the sender.
        lag < REORDERED.max(near / 5 * 4)
    }
}

#[inline]
fn stamp(segment: &Segment, start: u64, end: u64) -> Sent {
    Sent {
        start,
        length: (end - start) as u32,
        first: segment.time,
        last: segment.time,
        timestamp: segment.options.timestamps.map_or(0, |timestamps| timestamps.0),
        ip_id: segment.ip_id.unwrap_or(0),
        sends: 1,
        ..Sent::default()
    }
}
