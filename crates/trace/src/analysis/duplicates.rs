//! Frames that were captured twice: on two interfaces, or by a port that mirrors both ways.

use std::hash::BuildHasher;

use crate::segment::{Flags, Nanos, Segment};

/// Two captures of one frame are not further apart. No sender repeats itself so soon with the same
/// identification.
const SOON: Nanos = 100_000_000;
/// The same without an identification: shorter than any round trip that a retransmission could answer.
const AT_ONCE: Nanos = 20_000;
/// Packets in a row with the IP identification of the one before, after which it tells none of them apart.
pub(crate) const SAME_IDS: u8 = 3;
/// Places for recent segments, of which each is one line of memory for a few of them.
const PLACES: usize = 1024;
const WAYS: usize = 4;

/// What was captured lately, of all connections together: marks, and when.
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    places: Vec<[(u64, Nanos); WAYS]>,
}

impl Recent {
    pub(crate) fn new() -> Self {
        Self { places: vec![[(0, 0); WAYS]; PLACES] }
    }

    /// When a segment like this was captured last, if lately. `connection` tells connections apart; `hashes` must be
    /// the same in every run.
    #[inline(always)]
    pub(crate) fn find(
        &mut self,
        segment: &Segment,
        connection: u64,
        hashes: &impl BuildHasher,
    ) -> Option<Nanos> {
        let mark = mark(segment, connection, hashes);
        let place = &mut self.places[mark as usize % PLACES];
        let found = place.iter().position(|known| known.0 == mark);
        let since = found.map(|way| place[way].1);
        // The latest first; the oldest goes.
        match found {
            Some(way) => place.copy_within(..way, 1),
            None => place.copy_within(..WAYS - 1, 1),
        }
        place[0] = (mark, segment.time);
        since
    }
}

/// Whether a segment is the same packet as one like it that was captured at `since`. `usual`: it has happened in this
/// direction before; `told`: identifications tell its packets apart.
pub(crate) fn is_copy(segment: &Segment, since: Nanos, usual: bool, told: bool) -> bool {
    // A clock that was set back between two captures of one frame is known to happen.
    segment.time.abs_diff(since) < tolerance(segment, usual, told)
}

fn tolerance(segment: &Segment, usual: bool, told: bool) -> Nanos {
    let identified = told && segment.ip_id.is_some_and(|id| id != 0);
    let occupies = segment.payload > 0 || segment.flags.any(Flags::SYN | Flags::FIN);
    if identified {
        SOON
    } else {
        // Without an identification duplicate acknowledgements look alike, too.
        Nanos::from(occupies || usual) * AT_ONCE
    }
}

/// The time to live is left out: it differs on two sides of a router.
#[inline]
fn mark(segment: &Segment, connection: u64, hashes: &impl BuildHasher) -> u64 {
    let (value, echo) = segment.options.timestamps.unwrap_or_default();
    let sack = segment.options.sack[0];
    let numbers = [
        connection << 32 | u64::from(segment.sequence),
        u64::from(segment.acknowledgement) << 32 | u64::from(segment.payload),
        u64::from(segment.window) << 32
            | u64::from(segment.flags.0) << 16
            | u64::from(segment.ip_id.unwrap_or(0)),
        u64::from(value) << 32 | u64::from(echo),
        u64::from(sack.0) << 32 | u64::from(sack.1),
    ];
    // 0 is an empty place.
    hashes.hash_one(numbers) | 1 << 63
}
