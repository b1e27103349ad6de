//! Compact storage of completed rounds, in a third of the memory; rounds dominate the memory of
//! long transfers.

use super::round_record::{Round, TimeByCause};

/// Maximum number of stored rounds per direction; beyond this limit, neighbouring rows are merged.
const MAX_ROUNDS: usize = 2048;
/// Initial capacity in bytes: a few rounds.
const MIN_CAPACITY: usize = 128;

/// Rounds in order, or rows of several merged rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct PackedRounds {
    /// Numbers with seven bits per byte, lowest first; the eighth bit is set in all but the last
    /// byte of a number.
    packed: Vec<u8>,
    count: usize,
    /// Time of the last row.
    time: u64,
    /// Base-2 logarithm of the rounds per row.
    stride: u8,
    /// An incomplete row.
    open: Option<Box<Round>>,
}

impl PackedRounds {
    /// Appends a completed round.
    pub(super) fn push(&mut self, round: &Round) {
        let row = match self.open.take() {
            Some(mut open) => {
                open.merge_next(round);
                open
            }
            None => {
                if self.count == MAX_ROUNDS {
                    self.merge_pairs();
                }
                if self.stride == 0 {
                    return self.append_packed_row(round);
                }
                Box::new(*round)
            }
        };
        if row.rounds >= 1 << self.stride.min(31) {
            self.append_packed_row(&row);
        } else {
            self.open = Some(row);
        }
    }

    /// Merges pairs of rows.
    fn merge_pairs(&mut self) {
        let stride = self.stride + 1;
        let rounds = std::mem::take(self).into_rounds();
        self.stride = stride;
        for pair in rounds.chunks_exact(2) {
            let mut row = pair[0];
            row.merge_next(&pair[1]);
            self.append_packed_row(&row);
        }
    }

    fn append_packed_row(&mut self, row: &Round) {
        let numbers = row_to_numbers(row, self.time);
        (self.time, self.count) = (row.time, self.count + 1);
        let mut bytes = [0; FIELDS_PER_ROUND * MAX_VARINT_BYTES];
        let mut length = 0;
        for mut number in numbers {
            while number >= 0x80 {
                bytes[length] = number as u8 | 0x80;
                length += 1;
                number >>= 7;
            }
            bytes[length] = number as u8;
            length += 1;
        }
        if self.packed.capacity() - self.packed.len() < length {
            self.packed.reserve_exact(length.max(MIN_CAPACITY).max(self.packed.len() / 2));
        }
        self.packed.extend_from_slice(&bytes[..length]);
    }

    pub(super) fn into_rounds(self) -> Vec<Round> {
        let mut rounds = Vec::with_capacity(self.count + usize::from(self.open.is_some()));
        let mut bytes = self.packed.into_iter();
        let mut time = 0;
        for _ in 0..self.count {
            let round = numbers_to_row(std::array::from_fn(|_| read_varint(&mut bytes)), time);
            time = round.time;
            rounds.push(round);
        }
        rounds.extend(self.open.map(|open| *open));
        rounds
    }
}

const FIELDS_PER_ROUND: usize = 19;
/// Maximum bytes per number.
const MAX_VARINT_BYTES: usize = 10;
/// Unit of the stored sending time, µs.
const SENDING_TIME_UNIT_US: u32 = 128;

/// Converts a row to mostly small numbers. `before`: time of the previous row.
fn row_to_numbers(row: &Round, before: u64) -> [u64; FIELDS_PER_ROUND] {
    let parts = &row.parts;
    let lasted = row.end.wrapping_sub(row.time);
    [
        zigzag_encode(row.time.wrapping_sub(before)),
        zigzag_encode(lasted),
        row.sent_bytes,
        row.acked_bytes,
        parts.application,
        parts.receiver_window,
        parts.closed,
        parts.slow_start,
        parts.recovery,
        parts.timeout,
        parts.rest,
        zigzag_encode(row.rtt_sum.wrapping_sub(lasted)),
        row.rtt_samples.into(),
        row.rounds.into(),
        u64::from(row.retransmissions) << 1 | u64::from(row.marked),
        row.flight_bytes.into(),
        row.flight_bytes.wrapping_sub(row.flight_min).into(),
        row.window_bytes.into(),
        (row.sending_us / SENDING_TIME_UNIT_US).into(),
    ]
}

/// Converts numbers back to a row.
fn numbers_to_row(numbers: [u64; FIELDS_PER_ROUND], before: u64) -> Round {
    let [time, lasted, sent_bytes, acked_bytes, rest @ ..] = numbers;
    let [application, receiver_window, closed, slow_start, recovery, timeout, open, rest @ ..] =
        rest;
    let [rtt_sum, rtt_samples, rounds, retransmissions, flight, min, window, sending] = rest;
    let (time, lasted) = (before.wrapping_add(zigzag_decode(time)), zigzag_decode(lasted));
    Round {
        time,
        end: time.wrapping_add(lasted),
        sent_bytes,
        acked_bytes,
        parts: TimeByCause {
            application,
            receiver_window,
            closed,
            slow_start,
            recovery,
            timeout,
            rest: open,
        },
        rtt_sum: lasted.wrapping_add(zigzag_decode(rtt_sum)),
        rtt_samples: rtt_samples as u32,
        rounds: rounds as u32,
        retransmissions: (retransmissions >> 1) as u32,
        marked: retransmissions & 1 == 1,
        flight_bytes: flight as u32,
        flight_min: (flight as u32).wrapping_sub(min as u32),
        window_bytes: window as u32,
        sending_us: (sending as u32).wrapping_mul(SENDING_TIME_UNIT_US),
        ..Round::default()
    }
}

fn read_varint(bytes: &mut impl Iterator<Item = u8>) -> u64 {
    let (mut number, mut shift) = (0, 0);
    for byte in bytes {
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

/// Zigzag encoding: small numbers for small differences of either sign.
fn zigzag_encode(difference: u64) -> u64 {
    difference << 1 ^ ((difference as i64) >> 63) as u64
}

fn zigzag_decode(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn any_round()(
            numbers in prop::array::uniform19(prop_oneof![0_u64..300, 0_u64..1 << 40, any::<u64>()]),
        ) -> Round {
            Round { rounds: 1, ..numbers_to_row(numbers, 0) }
        }
    }

    proptest! {
        #[test]
        fn unpacking_restores_rows(rounds in prop::collection::vec(any_round(), 0..40)) {
            let mut rows = PackedRounds::default();
            rounds.iter().for_each(|round| rows.push(round));
            prop_assert_eq!(rows.into_rounds(), rounds);
        }
    }

    #[test]
    fn push_merges_neighbours_at_the_limit() {
        let round =
            |n: u64| Round { time: n, end: n + 1, sent_bytes: 1, rounds: 1, ..Round::default() };
        let mut rows = PackedRounds::default();
        (0..5 * MAX_ROUNDS as u64 + 3).for_each(|n| rows.push(&round(n)));
        let merged = rows.into_rounds();
        // Eight rounds per row, and three in the last.
        assert_eq!(merged.len(), 5 * MAX_ROUNDS / 8 + 1);
        for (n, row) in merged.iter().enumerate() {
            let rounds = if n + 1 == merged.len() { 3 } else { 8 };
            assert_eq!(
                (row.time, row.rounds, row.sent_bytes),
                (8 * n as u64, rounds, rounds.into())
            );
            assert_eq!(row.end, row.time + u64::from(rounds));
        }
    }
}
