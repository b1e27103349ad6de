//! Packet loss and transit time of one direction between two taps.

use std::collections::HashMap;

use super::{Comparison, FIRST_TAP, SECOND_TAP};
use crate::segment::{Endpoint, Nanos};

/// Smallest payload that may belong to several packets: hosts accept 536 bytes (RFC 9293, 3.7.1).
const MIN_SPLIT_PAYLOAD: u32 = 536;

/// Counters of a direction. Arrays have one entry per tap.
#[derive(Clone, Debug)]
pub(super) struct DirectionRecord {
    /// Connection number at the first tap, if seen there.
    pub(super) connection: Option<u64>,
    source: Endpoint,
    /// Number of frames at both taps.
    pub(super) frames: u64,
    /// MSS in the SYN of this direction: the limit of the other direction.
    pub(super) mss: Option<u16>,
    /// Payload of a full packet, bytes; 0 if unknown.
    pub(super) full_payload: u32,
    /// A frame with a larger payload may show how large a full packet is.
    pub(super) max_single_payload: u32,
    /// Packets seen at this tap that did not reach the other.
    pub(super) lost: [u64; 2],
    /// Packets for which the other capture ended too early.
    pub(super) in_flight: [u64; 2],
    /// Packets for which the other capture began too late.
    pub(super) not_covered: [u64; 2],
    matches: u64,
    /// Sum over all packets of the time at the second tap minus the time at the first tap, ns.
    sum: i128,
    min: i128,
    max: i128,
    /// Latest time of a matched packet at this tap.
    latest: [Nanos; 2],
    /// Observed reordering: maximum time between two packets at this tap whose order was reversed
    /// at the other tap.
    disorder: [Nanos; 2],
}

impl DirectionRecord {
    pub(super) fn new(connection: Option<u64>, source: Endpoint) -> Self {
        Self {
            connection,
            source,
            frames: 0,
            mss: None,
            full_payload: 0,
            max_single_payload: MIN_SPLIT_PAYLOAD,
            lost: [0; 2],
            in_flight: [0; 2],
            not_covered: [0; 2],
            matches: 0,
            sum: 0,
            min: i128::MAX,
            max: i128::MIN,
            latest: [0; 2],
            disorder: [0; 2],
        }
    }

    /// Number of packets with `bytes` of payload.
    pub(super) fn packets_in(&self, bytes: u32) -> u64 {
        if self.full_payload == 0 || bytes <= self.full_payload {
            return 1;
        }
        u64::from(bytes.div_ceil(self.full_payload))
    }

    /// Adds packets with `bytes` of payload, seen at both taps at these times.
    pub(super) fn add_matched_packets(&mut self, times: [Nanos; 2], bytes: u32) {
        let packets = self.packets_in(bytes);
        let difference = i128::from(times[SECOND_TAP]) - i128::from(times[FIRST_TAP]);
        self.matches += packets;
        self.sum += difference * i128::from(packets);
        self.min = self.min.min(difference);
        self.max = self.max.max(difference);
        for tap in [FIRST_TAP, SECOND_TAP] {
            self.disorder[tap] =
                self.disorder[tap].max(self.latest[tap].saturating_sub(times[tap]));
            self.latest[tap] = self.latest[tap].max(times[tap]);
        }
    }

    /// Returns the range of times, by the other tap's clock, at which a packet seen at `time` is
    /// expected there. `offset`: clock offset, used until a packet of the direction was matched.
    pub(super) fn expected_times_at_other_tap(
        &self,
        tap: usize,
        time: Nanos,
        offset: i128,
    ) -> (i128, i128) {
        let time = i128::from(time);
        match (self.matches, tap) {
            (0, FIRST_TAP) => (time + offset, time + offset),
            (0, _) => (time - offset, time - offset),
            (_, FIRST_TAP) => (time + self.min, time + self.max),
            (..) => (time - self.max, time - self.min),
        }
    }

    /// Whether a packet that passed this tap later was seen at the other, considering the observed
    /// reordering.
    pub(super) fn was_overtaken(&self, tap: usize, time: Nanos) -> bool {
        self.latest[tap] > time.saturating_add(self.disorder[tap])
    }

    fn mean_difference(&self) -> Option<f64> {
        (self.matches > 0).then(|| self.sum as f64 / self.matches as f64)
    }
}

/// A direction of a connection between two taps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectionBetweenTaps {
    /// Connection number.
    pub connection: u64,
    /// Sender.
    pub source: Endpoint,
    /// True if packets pass the first tap first.
    pub forward: bool,
    /// Packets seen at the first tap while the second was capturing, without copies.
    pub seen_before: u64,
    /// Packets seen at the second tap while the first was capturing, without copies.
    pub seen_after: u64,
    /// Packets seen at their first tap, but not at their second; 0 if no packet was seen at both.
    pub lost: u64,
    /// Packets seen at their first tap when the other capture ended before they could arrive.
    pub in_flight: u64,
    /// Packets seen while the other tap was not yet capturing.
    pub not_covered: u64,
    /// Packets seen at both taps.
    pub matched: u64,
    /// Minimum, mean and maximum transit time between the taps by their clocks, s.
    pub transit_s: Option<[f64; 3]>,
}

/// Bounds of the clock offset: no packet arrives before it was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockOffset {
    /// Minimum lead of the second clock, s.
    pub min_s: Option<f64>,
    /// Maximum lead of the second clock, s.
    pub max_s: Option<f64>,
}

/// Builds the comparison from all records.
pub(super) fn build_comparison(records: &[DirectionRecord]) -> Comparison {
    let mut sides: HashMap<u64, Vec<&DirectionRecord>> = HashMap::new();
    for record in records {
        if let Some(connection) = record.connection {
            sides.entry(connection).or_default().push(record);
        }
    }
    let mut comparison = Comparison::default();
    let clocks = &mut comparison.clocks;
    for record in records {
        let Some(connection) = record.connection else {
            comparison.only_after += u64::from(record.matches == 0);
            continue;
        };
        let other = sides[&connection].iter().find(|other| other.source != record.source);
        let forward = passes_first_tap_first(
            record.mean_difference(),
            other.and_then(|other| other.mean_difference()),
        );
        if record.matches > 0 && forward {
            let min = record.min as f64 / 1e9;
            clocks.max_s = Some(clocks.max_s.map_or(min, |known| known.min(min)));
        } else if record.matches > 0 {
            let max = record.max as f64 / 1e9;
            clocks.min_s = Some(clocks.min_s.map_or(max, |known| known.max(max)));
        }
        comparison.passages.push(direction_between_taps(record, connection, forward));
    }
    comparison
}

/// Whether the direction passes the first tap first. The two directions have opposite orders, so
/// the direction with the larger time difference passes the first tap first.
fn passes_first_tap_first(own: Option<f64>, other: Option<f64>) -> bool {
    match (own, other) {
        (Some(own), Some(other)) => own >= other,
        (Some(own), None) => own >= 0.0,
        (None, Some(other)) => other < 0.0,
        (None, None) => true,
    }
}

fn direction_between_taps(
    record: &DirectionRecord,
    connection: u64,
    forward: bool,
) -> DirectionBetweenTaps {
    let first = if forward { FIRST_TAP } else { SECOND_TAP };
    let seconds = |nanos: i128| nanos as f64 / 1e9;
    let transit_s = record.mean_difference().map(|mean| {
        let [min, max] = [seconds(record.min), seconds(record.max)];
        if forward { [min, mean / 1e9, max] } else { [-max, -mean / 1e9, -min] }
    });
    let known = record.matches > 0;
    let covered = |tap: usize| record.matches + record.lost[tap] + record.in_flight[tap];
    DirectionBetweenTaps {
        connection,
        source: record.source,
        forward,
        seen_before: covered(FIRST_TAP),
        seen_after: covered(SECOND_TAP),
        lost: if known { record.lost[first] } else { 0 },
        in_flight: if known { record.in_flight[first] } else { 0 },
        not_covered: record.not_covered[FIRST_TAP] + record.not_covered[SECOND_TAP],
        matched: record.matches,
        transit_s,
    }
}
