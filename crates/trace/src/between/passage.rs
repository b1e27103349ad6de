//! The outcome of the packets of one direction between two taps.

use std::collections::HashMap;

use super::{AFTER, BEFORE, Comparison};
use crate::segment::{Endpoint, Nanos};

/// What is counted while the captures are read. Counts and times come in pairs: of the first tap, of the second.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// The connection's number at the first tap, if it was seen there.
    pub(super) connection: Option<u64>,
    source: Endpoint,
    pub(super) seen: [u64; 2],
    /// Seen at this tap, and certainly not at the other.
    pub(super) lost: [u64; 2],
    /// The other capture ended too early to say.
    pub(super) under_way: [u64; 2],
    /// The other capture began too late to say.
    pub(super) apart: [u64; 2],
    matches: u64,
    /// Time at the second tap less that at the first, ns.
    sum: i128,
    min: i128,
    max: i128,
    /// When the latest of those was here that were seen at both.
    latest: [Nanos; 2],
    /// By how much a packet was here before one that it came after at the other tap.
    disorder: [Nanos; 2],
}

impl Record {
    pub(super) fn new(connection: Option<u64>, source: Endpoint) -> Self {
        Self {
            connection,
            source,
            seen: [0; 2],
            lost: [0; 2],
            under_way: [0; 2],
            apart: [0; 2],
            matches: 0,
            sum: 0,
            min: i128::MAX,
            max: i128::MIN,
            latest: [0; 2],
            disorder: [0; 2],
        }
    }

    /// Packets seen, at both taps together.
    pub(super) fn packets(&self) -> u64 {
        self.seen.iter().sum()
    }

    /// A packet was seen at both taps, at these times.
    pub(super) fn matched(&mut self, times: [Nanos; 2]) {
        let difference = i128::from(times[AFTER]) - i128::from(times[BEFORE]);
        self.matches += 1;
        self.sum += difference;
        self.min = self.min.min(difference);
        self.max = self.max.max(difference);
        for tap in [BEFORE, AFTER] {
            self.disorder[tap] =
                self.disorder[tap].max(self.latest[tap].saturating_sub(times[tap]));
            self.latest[tap] = self.latest[tap].max(times[tap]);
        }
    }

    /// TapComparison when and when a packet of `time` at a tap is at the other, by that one's clock. `offset`: of the clocks,
    /// where no packet of the direction has said more.
    pub(super) fn expected(&self, tap: usize, time: Nanos, offset: i128) -> (i128, i128) {
        let time = i128::from(time);
        match (self.matches, tap) {
            (0, BEFORE) => (time + offset, time + offset),
            (0, _) => (time - offset, time - offset),
            (_, BEFORE) => (time + self.min, time + self.max),
            (..) => (time - self.max, time - self.min),
        }
    }

    /// Whether one that was here later has been seen at the other tap, and not only because packets change indices.
    pub(super) fn overtaken(&self, tap: usize, time: Nanos) -> bool {
        self.latest[tap] > time.saturating_add(self.disorder[tap])
    }

    fn mean(&self) -> Option<f64> {
        (self.matches > 0).then(|| self.sum as f64 / self.matches as f64)
    }
}

/// A direction of a connection between two taps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passage {
    /// The connection's number.
    pub connection: u64,
    /// The end that sends.
    pub source: Endpoint,
    /// It passes the first tap first.
    pub forward: bool,
    /// Packets at the first tap while the second could see them, frames captured twice counted once.
    pub seen_before: u64,
    /// Packets at the second tap while the first could see them.
    pub seen_after: u64,
    /// Seen at the tap that it passes first, and not at the other. 0 where no packet was seen at both.
    pub lost: u64,
    /// Seen at the tap that it passes first when the capture of the other ended before it could get there.
    pub under_way: u64,
    /// Seen where the other capture had not begun.
    pub apart: u64,
    /// Packets seen at both taps.
    pub matched: u64,
    /// Least, mean and max time from tap to tap by their clocks, s.
    pub transit_s: Option<[f64; 3]>,
}

/// What packets say of the taps' clocks: no packet arrives before it has left.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockOffset {
    /// The second clock is ahead of the first by at min this, s.
    pub min_s: Option<f64>,
    /// And by at most this, s.
    pub max_s: Option<f64>,
}

/// What is said in the end.
pub(super) fn report(records: &[Record]) -> Comparison {
    let mut sides: HashMap<u64, Vec<&Record>> = HashMap::new();
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
        let forward = is_forward(record.mean(), other.and_then(|other| other.mean()));
        if record.matches > 0 && forward {
            let min = record.min as f64 / 1e9;
            clocks.max_s = Some(clocks.max_s.map_or(min, |known| known.min(min)));
        } else if record.matches > 0 {
            let max = record.max as f64 / 1e9;
            clocks.min_s = Some(clocks.min_s.map_or(max, |known| known.max(max)));
        }
        comparison.passages.push(passage(record, connection, forward));
    }
    comparison
}

/// Whichever order a direction has, the other has the reverse: the sooner one is later by the second clock.
fn is_forward(own: Option<f64>, other: Option<f64>) -> bool {
    match (own, other) {
        (Some(own), Some(other)) => own >= other,
        (Some(own), None) => own >= 0.0,
        (None, Some(other)) => other < 0.0,
        (None, None) => true,
    }
}

fn passage(record: &Record, connection: u64, forward: bool) -> Passage {
    let first = if forward { BEFORE } else { AFTER };
    let seconds = |nanos: i128| nanos as f64 / 1e9;
    let transit_s = record.mean().map(|mean| {
        let [min, max] = [seconds(record.min), seconds(record.max)];
        if forward { [min, mean / 1e9, max] } else { [-max, -mean / 1e9, -min] }
    });
    let known = record.matches > 0;
    let covered = |tap: usize| record.seen[tap] - record.apart[tap].min(record.seen[tap]);
    Passage {
        connection,
        source: record.source,
        forward,
        seen_before: covered(BEFORE),
        seen_after: covered(AFTER),
        lost: if known { record.lost[first] } else { 0 },
        under_way: if known { record.under_way[first] } else { 0 },
        apart: record.apart[BEFORE] + record.apart[AFTER],
        matched: record.matches,
        transit_s,
    }
}
