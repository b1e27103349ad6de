//! What the other end answers: acknowledgements, SACK, windows; and the report that comes of it all.

use std::mem::take;

use super::flight::Sent;
use super::flow::Flow;
use super::direction_stats::{EventQuota, DirectionStats};
use super::limits::{Limitation, PathSummary, classify_limits};
use super::report::DirectionReport;
use super::rounds::{NewAck, Wait};
use super::sequence::{first, unwrapped};
use super::side::{Side, Tap};
use super::out_of_window::Reach;
use super::sequence_plot::Mark;
use crate::segment::{Endpoint, Flags, Nanos, Segment};

/// What an acknowledgement took out of the flight.
#[derive(Clone, Copy, Debug, Default)]
struct AckedData {
    packets: u64,
    /// When the newest segment was first sent.
    newest: Option<Nanos>,
    /// When the oldest was first sent that SACK had not covered.
    oldest: Option<Nanos>,
    /// When the segment was sent whose timestamp is echoed.
    echoed: Option<Nanos>,
    /// One of them was sent more than once.
    ambiguous: bool,
    /// The segment with the newest bytes was not captured, or after newer ones: it was
    /// retransmitted, and its first transmission not captured.
    unseen: bool,
}

impl Flow {
    /// A segment from the end that takes the data.
    #[inline]
    pub(crate) fn on_peer_segment(&mut self, segment: &Segment, quota: &EventQuota) {
        self.recovery.on_peer_packet(segment.time);
        if !segment.flags.any(Flags::ACK) || segment.flags.any(Flags::RST) {
            return;
        }
        if !self.begun {
            self.begin(first(segment.acknowledgement));
        }
        if let Some(stats) = &mut self.stats {
            stats.answers.read(segment);
        }
        let number = unwrapped(self.next, segment.acknowledgement);
        if !self.anchored {
            self.anchored = true;
            self.reach_back(number, segment.time);
        }
        match self.ack_window.check(segment.acknowledgement, number, self.next) {
            Reach::Within => {}
            reach => return self.on_out_of_window_ack(segment, reach),
        }
        let window = self.announced_window(segment);
        let same = window == self.window;
        let advances = number > self.acknowledged;
        // What it waited for until now: this acknowledgement may end that.
        let wait = if advances || !same { self.wait() } else { Wait::Open };
        if !advances && window > self.window {
            self.note_update(segment, number);
        }
        self.note_window(segment, number, window);
        let mut sample = None;
        let unanswered = self.next > self.acknowledged;
        if advances {
            sample = self.acknowledge(segment, number, wait);
        } else {
            self.on_no_new_ack(segment, wait);
        }
        let options = &segment.options;
        if options.sack_blocks > 0 {
            self.recovery.has_blocks();
            let sacked = self.sack(segment, number);
            sample = sample.or(sacked);
        }
        if advances {
            self.begin_next_recovery(segment.time, quota);
        }
        if let Some(since) = sample {
            let sample = segment.time.saturating_sub(since);
            self.estimate.add(sample);
            if let Some(stats) = &mut self.stats {
                stats.round_trip(segment.time, sample);
            }
        }
        let bare = segment.payload == 0 && !segment.flags.any(Flags::SYN | Flags::FIN);
        if bare && !advances && number == self.acknowledged && unanswered && same {
            self.duplicate(segment);
        }
    }

    /// Nothing new is acknowledged; `wait`: what the sender waited for until now.
    #[inline]
    fn on_no_new_ack(&mut self, segment: &Segment, wait: Wait) {
        let opens = wait.by_receiver() && !self.wait().by_receiver();
        let Some(stats) = &mut self.stats else { return };
        if segment.payload > 0 {
            stats.rounds.asked();
        }
        if opens {
            stats.rounds.opened(segment.time, wait);
        }
    }

    /// The last acknowledgement comes once more.
    #[inline]
    fn duplicate(&mut self, segment: &Segment) {
        if self.recovery.duplicates == 0 {
            if let Some(stats) = &mut self.stats {
                stats.rounds.reductions.duplicate(self.next - self.acknowledged);
            }
        }
        self.recovery.duplicate(segment.time, segment.options.cut);
        self.counts.duplicate_acks += 1;
    }

    /// A window is larger than the last, and nothing new is acknowledged.
    fn note_update(&mut self, segment: &Segment, number: u64) {
        let bare = segment.payload == 0 && !segment.flags.any(Flags::SYN | Flags::FIN);
        let update = self.answered && bare && number == self.acknowledged;
        self.counts.window_updates += u64::from(update);
    }

    /// The acknowledgement may have ended a recovery, and another have begun.
    #[inline]
    fn begin_next_recovery(&mut self, time: Nanos, quota: &EventQuota) {
        let (known, board) = ((self.acknowledged, self.next), &self.board);
        let begun =
            self.recovery.begin_next_recovery(time, known, |left, right| board.holds(left, right));
        if let (Some(verdict), Some(stats)) = (begun, &mut self.stats) {
            stats.on_new_recovery(time, &verdict, quota);
        }
    }

    #[inline]
    fn announced_window(&mut self, segment: &Segment) -> u64 {
        let shift = if segment.flags.any(Flags::SYN) { 0 } else { self.negotiated.scale.unwrap_or(0) };
        self.unscaled = self.negotiated.scale.is_none();
        u64::from(segment.window) << shift.min(14)
    }

    #[inline]
    fn note_window(&mut self, segment: &Segment, number: u64, window: u64) {
        if window == 0 && self.window > 0 {
            self.counts.zero_windows += 1;
        }
        self.window = window;
        self.answered = true;
        if window > self.window_max {
            self.window_max = window;
        }
        let raised = number.saturating_add(window) > self.edge;
        self.edge = self.edge.max(number.saturating_add(window));
        if let Some(stats) = &mut self.stats {
            if raised {
                stats.mark(segment.time, Mark::Window, number, self.edge);
            }
            let interval = stats.intervals.at(segment.time);
            interval.window_max_bytes = interval.window_max_bytes.max(window);
        }
    }

    /// New data are acknowledged up to `number`; when the sample began that a sender would take.
    fn acknowledge(&mut self, segment: &Segment, number: u64, wait: Wait) -> Option<Nanos> {
        let from = self.acknowledged;
        let flight = self.next - from;
        let beyond = number > self.next;
        if beyond {
            let seen = self.next.max(self.probed).min(number);
            self.miss(seen, number);
            self.next = number;
        }
        let echo = segment.options.timestamps.map(|timestamps| timestamps.1);
        // Later data had come before it, and nobody sent it again.
        if self.board.bytes() > 0 && !beyond && self.flight.oldest_is_alone(number) {
            self.counts.late_packets += 1;
        }
        let mut taken = self.take(number, echo);
        taken.unseen |= beyond;
        self.acknowledged = number;
        if let Some(stats) = &mut self.stats {
            stats.mark(segment.time, Mark::Ack, from, number);
        }
        self.board.acknowledge(number);
        self.recovery.advance(segment.time, number);
        taken.newest?;
        self.counts.acks += 1;
        self.bare_acks += u64::from(segment.payload == 0);
        self.counts.acknowledged_packets += taken.packets;
        self.initial.over = true;
        self.last_data = self.last_data.max(Some(segment.time));
        let stats = self.stats.as_mut()?;
        let (time, bytes, window) = (segment.time, number - from, self.window);
        let asks = segment.payload > 0;
        stats.rounds.acked(&NewAck { time, number, bytes, asks, flight, window, wait });
        if let Some(since) = taken.echoed {
            stats.timestamps.add(segment.time.saturating_sub(since));
        }
        if taken.ambiguous {
            if let Some(echo) = echo {
                stats.echoed(from, number, echo);
            }
            return None;
        }
        if taken.unseen {
            return None;
        }
        if let Some(since) = taken.newest {
            let sample = segment.time.saturating_sub(since);
            stats.karn.add(sample);
            if taken.packets > 1 {
                stats.max_undelayed = stats.max_undelayed.max(Some(sample));
            }
        }
        taken.oldest
    }

    fn take(&mut self, number: u64, echo: Option<u32>) -> AckedData {
        let (mut taken, mut hole, mut held) = (AckedData::default(), false, false);
        while let Some(sent) = self.flight.take_until(number) {
            if sent.sends == 0 {
                self.miss(sent.start, sent.end());
                (hole, taken.unseen) = (true, true);
                continue;
            }
            if sent.control {
                continue;
            }
            taken.packets += match sent.length > self.largest {
                true => u64::from(sent.length.div_ceil(self.largest.max(1))),
                false => 1,
            };
            held |= sent.sacked;
            self.note_taken(&mut taken, &sent, echo);
        }
        if let Some(part) = self.flight.take_part(number).filter(|part| part.sends > 0) {
            taken.packets += u64::from(part.length / self.largest.max(1));
            self.note_taken(&mut taken, &part, echo);
        }
        // The receiver lacked it, too. What filled it, nobody saw: the acknowledgement answers that.
        taken.unseen |= hole && (held || self.recovery.duplicates > 0);
        taken
    }

    /// Notes when an acknowledged segment, or a part of an aggregated frame, was sent.
    #[inline(always)]
    fn note_taken(&mut self, taken: &mut AckedData, sent: &Sent, echo: Option<u32>) {
        taken.unseen = sent.first < self.latest;
        self.latest = self.latest.max(sent.first);
        taken.newest = Some(sent.first);
        taken.ambiguous |= sent.ambiguous();
        if !sent.sacked && taken.oldest.is_none() {
            taken.oldest = Some(sent.first);
        }
        if taken.echoed.is_none() && echo.is_some_and(|e| e != 0 && e == sent.timestamp) {
            taken.echoed = Some(sent.last);
        }
    }

    /// `[from, to)` was received, but not captured.
    fn miss(&mut self, from: u64, to: u64) {
        self.counts.missing_bytes += to - from;
        if let Some(stats) = self.stats.as_mut().filter(|_| to > from) {
            stats.unseen(from, to);
        }
    }

    /// Reads the SACK blocks; when the oldest segment was sent that they tell of for the first time.
    fn sack(&mut self, segment: &Segment, number: u64) -> Option<Nanos> {
        let options = &segment.options;
        let count = usize::from(options.sack_blocks).min(options.sack.len());
        let blocks = options.sack[..count].iter();
        let near = self.acknowledged;
        let block = |&(left, right): &(u32, u32)| (unwrapped(near, left), unwrapped(near, right));
        let (mut fresh, mut oldest) = (false, None);
        for (place, (left, right)) in blocks.clone().map(block).enumerate() {
            if left >= right {
                continue;
            }
            // RFC 2883: the first block tells of what came twice if the others, or the number, cover it.
            let within = |(l, r): (u64, u64)| l <= left && right <= r && (l, r) != (left, right);
            let twice = right <= number
                || options.sack.get(1..count).unwrap_or_default().iter().map(block).any(within);
            if place == 0 && twice {
                if let Some(stats) = &mut self.stats {
                    stats.on_dsack(left, right);
                }
            }
            if left < self.acknowledged || right > self.next {
                continue;
            }
            let Some(gain) = self.board.add(left, right) else { continue };
            fresh = true;
            if let Some(stats) = &mut self.stats {
                stats.mark(segment.time, Mark::Sack, gain.from, gain.to);
            }
            self.flight.mark_sacked(gain, self.largest, |sent| {
                oldest = Some(oldest.map_or(sent, |least: Nanos| least.min(sent)));
            });
        }
        if fresh {
            self.recovery.sacked(segment.time);
        }
        oldest
    }

    /// What keeps the sender from sending more.
    #[inline]
    pub(super) fn wait(&self) -> Wait {
        let beyond = !self.misread && self.edge < self.next + u64::from(self.largest);
        let full = self.answered && (self.window == 0 || beyond);
        if self.recovery.repairs() {
            Wait::Repair
        } else if full && self.window < u64::from(self.largest) {
            Wait::Closed
        } else if full {
            Wait::Window
        } else if self.short {
            Wait::Short
        } else {
            Wait::Open
        }
    }

    /// What is said of this direction in the end.
    pub(crate) fn report(
        &mut self,
        source: Endpoint,
        destination: Endpoint,
        tap: &Tap,
        from: usize,
    ) -> DirectionReport {
        // At the receiver, acknowledgements pass before the rest of the initial window has arrived.
        let (wait, starts) = (self.wait(), self.isn.is_some() && self.initial.over);
        let mut blank = None::<DirectionStats>;
        let stats = self.stats.as_deref_mut().unwrap_or_else(|| blank.get_or_insert_default());
        let least = stats.sender.least();
        let side = tap.side(from, least);
        let mut found = stats.rounds.finish(self.last_data.unwrap_or(0), wait);
        let mut rtt = stats.round_trips(tap.round_trip(from), &found);
        if self.bare_acks == 0 {
            rtt.withhold_if_late(tap.handshake());
        }
        let lossless = self.counts.retransmissions + self.counts.missing_bytes == 0;
        let (near, segment, misread) = (tap.round_trip(from), self.largest, self.misread);
        let path = PathSummary { side, near, least, lossless, segment, misread };
        let answered = self.answered || self.counts.acks > 0;
        let limitation = if answered { classify_limits(&mut found, &path) } else { Limitation::default() };
        let whole_start = starts && side != Side::Receiver;
        let packets = self.counts.data_packets.max(1) as f64;
        let origin = self.origin + u64::from(self.isn.is_some());
        let plot = stats.plot.take().map(|plot| plot.into_points(origin));
        DirectionReport {
            source,
            destination,
            side,
            counts: self.counts,
            announced: self.announced,
            causes: stats.causes,
            spurious: stats.spurious,
            indications: stats.indications,
            t0_s: stats.t0.mean_s(),
            rtt,
            segment_bytes: self.largest,
            initial_window_bytes: whole_start.then_some(self.initial.bytes),
            initial_window_packets: whole_start.then_some(self.initial.packets),
            flight_max_bytes: if answered { self.flight_max } else { 0 },
            flight_mean_bytes: answered.then(|| self.flight_sum / packets),
            window_max_bytes: self.window_max,
            window_unscaled: self.unscaled,
            first_data: self.first_data,
            last_data: self.last_data,
            intervals: take(&mut stats.intervals).into_list(),
            loss_times: take(&mut stats.loss_times),
            retransmitted: take(&mut stats.retransmitted),
            omitted: stats.omitted,
            missing_answers: stats.answers.missing(),
            sequence_plot: plot.unwrap_or_default(),
            slow_start: found.slow_start,
            limitation,
            evidence: stats.signs.report(),
            rounds: found.rows,
        }
    }
}
