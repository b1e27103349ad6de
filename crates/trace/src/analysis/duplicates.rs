//! Detection of frames that were captured twice: on two interfaces, or at a port that mirrors both
//! directions.

use std::hash::BuildHasher;

use crate::segment::{Flags, Nanos, Segment};

/// Maximum time between two captures of a frame. No sender reuses an identification so soon.
const MAX_DELAY_WITH_ID: Nanos = 100_000_000;
/// Limit without an identification: shorter than any round trip after which a
/// retransmission could follow.
const MAX_DELAY_WITHOUT_ID: Nanos = 20_000;
/// Number of consecutive packets with the same IP identification after which identifications are
/// ignored.
pub(crate) const SAME_IDS: u8 = 3;
/// Size of the cache of recent segments: sets of `CACHE_WAYS` entries, one cache line each.
const CACHE_SETS: usize = 1024;
const CACHE_WAYS: usize = 4;

/// Cache of recently captured segments of all connections: hash and time.
#[derive(Clone, Debug)]
pub(crate) struct RecentSegments {
    sets: Vec<[(u64, Nanos); CACHE_WAYS]>,
}

impl RecentSegments {
    pub(crate) fn new() -> Self {
        Self { sets: vec![[(0, 0); CACHE_WAYS]; CACHE_SETS] }
    }

    /// Returns the time of an identical recent segment, and stores this one. `connection`
    /// identifies the connection. `hashes` must be the same in every run.
    #[inline(always)]
    pub(crate) fn find_copy_and_store(
        &mut self,
        segment: &Segment,
        connection: u64,
        hashes: &impl BuildHasher,
    ) -> Option<Nanos> {
        let mark = hash_segment(segment, connection, hashes);
        let set = &mut self.sets[mark as usize % CACHE_SETS];
        let hit = set.iter().position(|known| known.0 == mark);
        let since = hit.map(|way| set[way].1);
        // Most recent first; the oldest entry is evicted.
        match hit {
            Some(way) => set.copy_within(..way, 1),
            None => set.copy_within(..CACHE_WAYS - 1, 1),
        }
        set[0] = (mark, segment.time);
        since
    }
}

/// Whether a segment is a copy of an identical one captured at `since`. `usual`: copies were seen
/// in this direction before. `distinct_ids`: its IP identifications distinguish packets.
pub(crate) fn is_copy_of_recent(
    segment: &Segment,
    since: Nanos,
    usual: bool,
    distinct_ids: bool,
) -> bool {
    // The clock may be set back between two captures of a frame.
    segment.time.abs_diff(since) < max_copy_delay(segment, usual, distinct_ids)
}

fn max_copy_delay(segment: &Segment, usual: bool, distinct_ids: bool) -> Nanos {
    let identified = distinct_ids && segment.ip_id.is_some_and(|id| id != 0);
    let occupies = segment.payload > 0 || segment.flags.contains_any(Flags::SYN | Flags::FIN);
    if identified {
        MAX_DELAY_WITH_ID
    } else {
        // Without an identification, duplicate acknowledgements are also identical.
        Nanos::from(occupies || usual) * MAX_DELAY_WITHOUT_ID
    }
}

/// Excludes the time to live, which differs on both sides of a router.
#[inline]
fn hash_segment(segment: &Segment, connection: u64, hashes: &impl BuildHasher) -> u64 {
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
    // 0 marks an empty entry.
    hashes.hash_one(numbers) | 1 << 63
}
