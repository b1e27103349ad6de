//! Comparison of two taps: which packets passed both taps, and how long they took between the taps.
//!
//! The payload of a packet is matched by its range of sequence numbers, because one of the taps may
//! see frames that a host splits or merges (TSO, GRO); timestamp and IP identification distinguish
//! copies. Other packets are matched by their ends, numbers and IP identification. Packets seen at
//! only one tap so far are stored ([`unmatched_packets`]). If there are very many directions, the directions
//! with few packets are dropped ([`direction_records`]), so memory does not grow with the captures.
//! The clocks need not be synchronised: their difference is estimated from packets at the start of
//! both captures.

mod direction_record;
mod direction_records;
mod packet_identity;
mod unmatched_packets;

use std::collections::{HashMap, VecDeque};
use std::io::Read;

use direction_records::DirectionRecords;
use packet_identity::PacketIdentities;
use unmatched_packets::{Part, UnmatchedPackets};

use crate::reader::{CaptureReader, ReadSummary};
use crate::segment::{Nanos, Segment};

pub use direction_record::{ClockOffset, DirectionBetweenTaps};

/// A packet not seen at the other tap within this time was lost.
const MAX_TRANSIT: Nanos = 20_000_000_000;
/// Number of segments of each capture used to compare the clocks.
const CLOCK_COMPARISON_SEGMENTS: usize = 1 << 14;

/// Indices of the taps: the first, whose connections are analysed, and the second.
pub(crate) const FIRST_TAP: usize = 0;
pub(crate) const SECOND_TAP: usize = 1;

/// Compares a second capture with the one whose connections are analysed.
///
/// Pass the segments of the first capture to [`push_first_tap`](Self::push_first_tap); the second
/// is read as needed.
pub struct TapComparison<R: Read> {
    other: CaptureReader<R>,
    /// Segments read from the second capture, but not yet processed.
    ahead: VecDeque<Segment>,
    /// First segments of the first capture with their connection numbers, until the clocks are
    /// compared.
    begin: Vec<(Segment, u64)>,
    compared: bool,
    matching: PacketMatcher,
}

impl<R: Read> TapComparison<R> {
    /// `other` is the capture of the second tap.
    #[must_use]
    pub fn new(other: CaptureReader<R>) -> Self {
        let matching = PacketMatcher::new();
        Self { other, ahead: VecDeque::new(), begin: Vec::new(), compared: false, matching }
    }

    /// Processes the next segment at the first tap, with its connection number.
    pub fn push_first_tap(&mut self, segment: &Segment, connection: u64) {
        if self.compared {
            self.match_segment(segment, connection);
            return;
        }
        self.begin.push((*segment, connection));
        if self.begin.len() == CLOCK_COMPARISON_SEGMENTS {
            self.compare_clocks();
        }
    }

    /// Ends both captures. Returns the comparison, and the summary of the second capture.
    /// `interrupted`: the rest of the second capture is not read.
    pub fn finish_comparison(mut self, interrupted: bool) -> (Comparison, ReadSummary) {
        if !self.compared {
            self.compare_clocks();
        }
        self.matching.ended[FIRST_TAP] = true;
        while !interrupted && self.read_second_tap() {
            self.match_second_tap();
        }
        self.ahead.clear();
        (self.matching.into_comparison(), self.other.summary().clone())
    }

    /// Compares the clocks, then processes the stored segments.
    fn compare_clocks(&mut self) {
        self.compared = true;
        while self.ahead.len() < CLOCK_COMPARISON_SEGMENTS {
            let Some(segment) = self.other.next_segment() else { break };
            self.ahead.push_back(*segment);
        }
        let begin = std::mem::take(&mut self.begin);
        self.matching
            .estimate_clock_difference(begin.iter().map(|first| &first.0), self.ahead.iter());
        for (segment, connection) in &begin {
            self.match_segment(segment, *connection);
        }
    }

    fn match_segment(&mut self, segment: &Segment, connection: u64) {
        while self.read_second_tap() {
            let due = self.ahead.front().is_some_and(|next| {
                self.matching.to_first_tap_clock(SECOND_TAP, next.time) <= i128::from(segment.time)
            });
            if !due {
                break;
            }
            self.match_second_tap();
        }
        self.matching.add_segment(FIRST_TAP, segment, Some(connection));
    }

    /// Reads the next segment of the second capture, if none is stored. Returns false at its end.
    fn read_second_tap(&mut self) -> bool {
        if self.ahead.is_empty() {
            let next = self.other.next_segment().copied();
            self.matching.ended[SECOND_TAP] = next.is_none();
            self.ahead.extend(next);
        }
        !self.ahead.is_empty()
    }

    fn match_second_tap(&mut self) {
        if let Some(segment) = self.ahead.pop_front() {
            self.matching.add_segment(SECOND_TAP, &segment, None);
        }
    }
}

/// Result of the comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// All directions of the connections at the first tap.
    pub passages: Vec<DirectionBetweenTaps>,
    /// Number of directions seen only at the second tap.
    pub only_after: u64,
    /// Number of packets, or parts of them, removed early because too many were stored.
    pub forgotten: u64,
    /// Number of directions dropped because there were too many.
    pub dropped: u64,
    /// Bounds of the clock offset.
    pub clocks: ClockOffset,
}

/// Matches the packets of two merged captures.
#[derive(Debug)]
struct PacketMatcher {
    identities: PacketIdentities,
    waiting: [UnmatchedPackets; 2],
    records: DirectionRecords,
    /// Approximate clock of the second tap minus that of the first, ns.
    offset: i128,
    first: [Option<Nanos>; 2],
    last: [Nanos; 2],
    ended: [bool; 2],
}

impl PacketMatcher {
    fn new() -> Self {
        Self {
            identities: PacketIdentities::new(),
            waiting: [UnmatchedPackets::default(), UnmatchedPackets::default()],
            records: DirectionRecords::default(),
            offset: 0,
            first: [None; 2],
            last: [0; 2],
            ended: [false; 2],
        }
    }

    /// Sets the clock difference to the median over packets at the start of both captures, in
    /// either direction.
    fn estimate_clock_difference<'a>(
        &mut self,
        before: impl Iterator<Item = &'a Segment>,
        after: impl Iterator<Item = &'a Segment>,
    ) {
        // Frames that are split or merged have at least the first byte in common.
        let first_byte = |segment: &Segment| {
            let part = self.identities.part_of(segment, 0);
            (part.key, part.start, part.timestamp)
        };
        let known: HashMap<_, Nanos> =
            before.map(|segment| (first_byte(segment), segment.time)).collect();
        let mut differences: Vec<i128> = after
            .filter_map(|segment| {
                let time = known.get(&first_byte(segment))?;
                Some(i128::from(segment.time) - i128::from(*time))
            })
            .collect();
        differences.sort_unstable();
        self.offset = differences.get(differences.len() / 2).copied().unwrap_or(0);
    }

    /// Converts a time at a tap to the first tap's clock.
    fn to_first_tap_clock(&self, tap: usize, time: Nanos) -> i128 {
        i128::from(time) - if tap == SECOND_TAP { self.offset } else { 0 }
    }

    /// Adds a segment at a tap. `connection`: its number at the first tap.
    fn add_segment(&mut self, tap: usize, segment: &Segment, connection: Option<u64>) {
        self.first[tap].get_or_insert(segment.time);
        self.last[tap] = self.last[tap].max(segment.time);
        if self.identities.store_and_check_duplicate(tap, segment) {
            return;
        }
        if self.records.is_full() {
            let indices = self.records.thin_out_points();
            for waiting in &mut self.waiting {
                waiting.renumber_directions(&indices);
            }
        }
        let index = self.records.find_or_insert(segment, connection);
        self.records.note_frame(index, segment);
        let packet = self.identities.part_of(segment, index);
        let Self { waiting, records, .. } = self;
        let [first, second] = waiting;
        let (here, there) = if tap == FIRST_TAP { (first, second) } else { (second, first) };
        let mut process = |part: Part, other: Option<Part>| {
            let Some(other) = other else {
                here.insert(part);
                return;
            };
            let mut times = [part.time; 2];
            times[1 - tap] = other.time;
            // The first tap knows the connection if the ends were reused.
            let known = if tap == FIRST_TAP { part.index } else { other.index };
            records[known].add_matched_packets(times, part.length);
        };
        if there.is_empty() {
            process(packet, None);
        } else if packet.length == 0 {
            process(packet, there.take_whole(packet.key));
        } else {
            there.take_range(&packet, process);
        }
        self.expire_until(self.to_first_tap_clock(tap, segment.time) - i128::from(MAX_TRANSIT));
    }

    /// Removes packets seen before `until`, by the first tap's clock.
    fn expire_until(&mut self, until: i128) {
        for tap in [FIRST_TAP, SECOND_TAP] {
            let until = until + if tap == SECOND_TAP { self.offset } else { 0 };
            while let Some(part) = self.waiting[tap].take_expired(until) {
                self.count_unmatched(tap, &part, self.ended[1 - tap]);
            }
        }
    }

    /// Counts data that were seen at one tap only. `ended`: the other capture has ended.
    fn count_unmatched(&mut self, tap: usize, part: &Part, ended: bool) {
        let other = 1 - tap;
        let record = &mut self.records[part.index];
        let (time, packets) = (part.time, record.packets_in(part.length));
        let Some(first) = self.first[other] else {
            record.not_covered[tap] += packets;
            return;
        };
        let (soonest, latest) = record.expected_times_at_other_tap(tap, time, self.offset);
        // The packet is late by at least the observed range of transit times.
        let long_ago = latest + (latest - soonest) < i128::from(self.last[other]);
        let count = if soonest < i128::from(first) {
            &mut record.not_covered
        } else if !ended || record.was_overtaken(tap, time) || long_ago {
            &mut record.lost
        } else {
            &mut record.in_flight
        };
        count[tap] += packets;
    }

    fn into_comparison(mut self) -> Comparison {
        for tap in [FIRST_TAP, SECOND_TAP] {
            while let Some(part) = self.waiting[tap].take_expired(i128::MAX) {
                self.count_unmatched(tap, &part, true);
            }
        }
        let forgotten = self.waiting.iter().map(|waiting| waiting.forgotten).sum();
        let dropped = self.records.dropped;
        Comparison {
            forgotten,
            dropped,
            ..direction_record::build_comparison(self.records.records())
        }
    }
}

#[cfg(test)]
#[path = "between_tests.rs"]
mod tests;
