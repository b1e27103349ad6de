//! Goodputs of files and of blocks of packets.
//!
//! The goodput of a file is its number of bits divided by the time from the transmission of its
//! first packet to the delivery of its last packet. The three definitions in section 8 of INRIA
//! report 4154 use three kinds of counts: blocks of consecutive packets, all files, and large
//! files.

use super::{LogHistogram, Probes, SourceRecord};
use crate::clock::Nanos;

/// Buckets per power of two, for a resolution of 0.4 to 0.8 %.
pub const BUCKETS_PER_OCTAVE: usize = 1 << BUCKET_BITS;
/// Number of powers of two, from 1 bit/s to 1.1 Tbit/s; values outside this range count in the
/// first or last bucket.
pub const OCTAVES: usize = 40;
/// Total number of buckets.
pub const BUCKETS: usize = OCTAVES * BUCKETS_PER_OCTAVE;

const BUCKET_BITS: u32 = 7;
/// Bits of a double below the exponent and the first `BUCKET_BITS` bits of the mantissa.
const MANTISSA_SHIFT: u32 = 52 - BUCKET_BITS;
/// Upper bits of 1.0.
const BITS_OF_ONE: u64 = 1023 << BUCKET_BITS;

/// Kind of a goodput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoodputKind {
    /// A file that is not large.
    SmallFile,
    /// A file of more packets than the configured threshold.
    LargeFile,
    /// A block of consecutively delivered packets of a file.
    Block,
}

/// Names of the kinds, in the order of [`GoodputKind`].
pub const GOODPUT_KINDS: [&str; 3] = ["small_file", "large_file", "block"];

/// Number of goodputs in one bucket, for one class and kind in one time slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoodputBucketCount {
    /// Class times the number of kinds, plus the kind.
    pub group: u16,
    /// Bucket of the goodput.
    pub bucket: u16,
    /// Number of goodputs.
    pub count: u64,
}

/// The current block of one source.
#[derive(Clone, Copy, Debug, Default)]
struct CurrentSourceBlock {
    /// Start time of the file, which identifies the file.
    file: Nanos,
    /// End time of the previous block.
    since: Nanos,
    packets: u32,
}

/// Maximum number of goodputs that are stored individually before they are counted: 1 MB.
const MAX_STORED_GOODPUTS: usize = 1 << 18;

/// Goodputs of a run, counted per slot of the counters.
///
/// Goodputs are first stored individually, which costs almost nothing per file. The memory consists
/// of these and of the non-empty buckets of each slot. Slots are merged when the slots of the
/// counters are merged.
#[derive(Clone, Debug, Default)]
pub struct GoodputCounters {
    /// Files with more packets than this are large.
    threshold: u32,
    /// Packets per block; 0 for no blocks.
    block: u32,
    blocks: Vec<CurrentSourceBlock>,
    /// Group and bucket of each uncounted goodput, in the order of time.
    uncounted: Vec<u32>,
    closed: Vec<GoodputTimeSlot>,
    /// Counts of the current slot.
    open: Vec<GoodputBucketCount>,
    /// Goodputs of files by size interval, in bit/s.
    by_size: Vec<LogHistogram>,
}

/// A completed slot.
#[derive(Clone, Debug, Default)]
struct GoodputTimeSlot {
    counts: Vec<GoodputBucketCount>,
    /// End of the uncounted goodputs of the slot.
    end: usize,
}

impl GoodputCounters {
    /// Creates empty counters for blocks of `block` packets (0 for none). Files of more than
    /// `threshold` packets are large.
    #[must_use]
    pub fn new(block: u32, threshold: u32) -> Self {
        Self { threshold, block, ..Self::default() }
    }

    /// Resets all counts; blocks in progress continue.
    pub fn reset_counts(&mut self) {
        let blocks = std::mem::take(&mut self.blocks);
        *self = Self { threshold: self.threshold, block: self.block, blocks, ..Self::default() };
    }

    /// Counts a delivered file of a class and `size_interval`, with packets of `packet_bits`.
    #[inline(always)]
    pub fn count_file(
        &mut self,
        class: usize,
        size_interval: usize,
        packets: u32,
        packet_bits: f32,
        taken: Nanos,
    ) {
        let kind =
            if packets > self.threshold { GoodputKind::LargeFile } else { GoodputKind::SmallFile };
        let goodput = self.add_goodput(class, kind, (packets, packet_bits), taken);
        if size_interval >= self.by_size.len() {
            self.by_size.resize(size_interval + 1, LogHistogram::default());
        }
        self.by_size[size_interval].add_value(goodput);
    }

    /// Counts a delivered packet of the file that `source` started at time `file`.
    pub fn count_packet(
        &mut self,
        class: usize,
        source: usize,
        packet_bits: f32,
        file: Nanos,
        now: Nanos,
    ) {
        if source >= self.blocks.len() {
            self.blocks.resize(source + 1, CurrentSourceBlock::default());
        }
        let block = &mut self.blocks[source];
        if block.file != file {
            *block = CurrentSourceBlock { file, since: file, packets: 0 };
        }
        block.packets += 1;
        if block.packets == self.block {
            let taken = now - block.since;
            (block.packets, block.since) = (0, now);
            self.add_goodput(class, GoodputKind::Block, (self.block, packet_bits), taken);
        }
    }

    #[inline]
    fn add_goodput(
        &mut self,
        class: usize,
        kind: GoodputKind,
        sent: (u32, f32),
        taken: Nanos,
    ) -> f64 {
        let (packets, packet_bits) = sent;
        let goodput = f64::from(packets) * f64::from(packet_bits) / (taken as f64 * 1e-9);
        let bucket = (goodput.to_bits() >> MANTISSA_SHIFT)
            .saturating_sub(BITS_OF_ONE)
            .min(BUCKETS as u64 - 1);
        let group = (class * GOODPUT_KINDS.len() + kind as usize) as u32;
        self.uncounted.push(group << 16 | bucket as u32);
        if self.uncounted.len() == MAX_STORED_GOODPUTS {
            self.count_individual_goodputs();
        }
        goodput
    }

    /// Counts the goodputs that are stored individually.
    #[inline(never)]
    fn count_individual_goodputs(&mut self) {
        let mut begin = 0;
        for slot in &mut self.closed {
            add_goodputs_to_counts(&mut slot.counts, &mut self.uncounted[begin..slot.end]);
            begin = std::mem::take(&mut slot.end);
        }
        add_goodputs_to_counts(&mut self.open, &mut self.uncounted[begin..]);
        self.uncounted.clear();
    }

    /// Completes the current slot.
    pub fn close_goodput_slot(&mut self) {
        let counts = std::mem::take(&mut self.open);
        self.closed.push(GoodputTimeSlot { counts, end: self.uncounted.len() });
    }

    /// Merges each pair of completed slots.
    pub fn merge_slot_pairs(&mut self) {
        let mut slots = std::mem::take(&mut self.closed).into_iter();
        while let Some(GoodputTimeSlot { mut counts, end }) = slots.next() {
            let second = slots.next().unwrap_or(GoodputTimeSlot { counts: Vec::new(), end });
            counts.extend(second.counts);
            merge_equal_counts(&mut counts);
            self.closed.push(GoodputTimeSlot { counts, end: second.end });
        }
    }

    /// Counts of each slot in order; the last slot is the current one.
    #[must_use]
    pub fn counts_by_slot(&self) -> Vec<Vec<GoodputBucketCount>> {
        let mut counted = self.clone();
        counted.count_individual_goodputs();
        counted.closed.into_iter().map(|slot| slot.counts).chain([counted.open]).collect()
    }

    /// Goodputs of files by size interval, in bit/s, up to the last interval with a file.
    #[must_use]
    pub fn file_goodputs_by_size(&self) -> &[LogHistogram] {
        &self.by_size
    }
}

/// Adds goodputs, packed as group and bucket, to counts.
fn add_goodputs_to_counts(counts: &mut Vec<GoodputBucketCount>, goodputs: &mut [u32]) {
    goodputs.sort_unstable();
    let counted = |equal: &[u32]| GoodputBucketCount {
        group: (equal[0] >> 16) as u16,
        bucket: equal[0] as u16,
        count: equal.len() as u64,
    };
    counts.extend(goodputs.chunk_by(u32::eq).map(counted));
    merge_equal_counts(counts);
}

/// Merges counts of the same group and bucket.
fn merge_equal_counts(counts: &mut Vec<GoodputBucketCount>) {
    counts.sort_unstable();
    counts.dedup_by(|next, kept| {
        let same = (next.group, next.bucket) == (kept.group, kept.bucket);
        kept.count += if same { next.count } else { 0 };
        same
    });
    counts.shrink_to_fit();
}

impl Probes {
    /// Counts a data packet that reached its receiver, if goodputs of blocks are recorded.
    #[inline(never)]
    pub fn count_delivery_for_blocks(&mut self, now: Nanos, record: &SourceRecord, source: u32) {
        let (class, bits) = (record.class(), record.packet_bits);
        self.goodput.count_packet(class, source as usize, bits, record.started, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;

    /// Lower limit of a bucket.
    fn edge(bucket: u16) -> f64 {
        f64::from_bits((u64::from(bucket) + BITS_OF_ONE) << MANTISSA_SHIFT)
    }

    #[test]
    fn buckets_resolve_goodputs_to_less_than_one_percent() {
        let mut counters = GoodputCounters::new(0, 10);
        for (packets, taken) in [(1, SECOND), (11, 3 * SECOND / 100), (10, 1 << 40)] {
            let mut single = GoodputCounters::new(0, 10);
            single.count_file(0, 0, packets, 12_000.0, taken);
            counters.count_file(0, 0, packets, 12_000.0, taken);
            let goodput = f64::from(packets) * 12_000.0 * 1e9 / taken as f64;
            let slots = single.counts_by_slot();
            let [counted] = slots[0][..] else { panic!("one file, {slots:?}") };
            assert!(edge(counted.bucket) <= goodput && goodput < edge(counted.bucket + 1));
            assert!(edge(counted.bucket + 1) / edge(counted.bucket) < 1.008);
            assert_eq!(counted.group, u16::from(packets > 10));
        }
        assert_eq!(counters.counts_by_slot()[0].iter().map(|count| count.count).sum::<u64>(), 3);
    }

    #[test]
    fn values_out_of_range_count_in_first_and_last_bucket() {
        let mut counters = GoodputCounters::new(0, 10);
        counters.count_file(0, 0, 1, 12_000.0, u64::MAX);
        counters.count_file(0, 0, 1, 12_000.0, 0);
        let buckets: Vec<u16> =
            counters.counts_by_slot()[0].iter().map(|count| count.bucket).collect();
        assert_eq!(buckets, [0, BUCKETS as u16 - 1]);
        assert_eq!(edge(0), 1.0);
        assert_eq!(edge(BUCKETS as u16), (1_u64 << 40) as f64);
    }

    #[test]
    fn blocks_start_with_their_file_and_are_consecutive() {
        let mut counters = GoodputCounters::new(2, 10);
        // 10 kbit per packet: the blocks of the first file take 4 and 6 s, and its last packet is
        // in no block.
        for second in [101, 104, 105, 110, 111] {
            counters.count_packet(0, 7, 10_000.0, 100 * SECOND, second * SECOND);
        }
        // The next block starts with the next file.
        counters.count_packet(0, 7, 10_000.0, 200 * SECOND, 201 * SECOND);
        counters.count_packet(0, 7, 10_000.0, 200 * SECOND, 220 * SECOND);
        let blocks: Vec<(u16, f64)> = counters.counts_by_slot()[0]
            .iter()
            .map(|count| (count.group, edge(count.bucket)))
            .collect();
        for ((group, edge), goodput) in blocks.iter().zip([1000.0, 20_000.0 / 6.0, 5000.0]) {
            assert_eq!(*group, GoodputKind::Block as u16);
            assert!(*edge <= goodput && goodput / edge < 1.008, "{edge} for {goodput}");
        }
        assert_eq!(blocks.len(), 3);
    }

    #[test]
    fn merged_slots_keep_their_counts() {
        let mut counters = GoodputCounters::new(0, 10);
        for slot in 1..=5 {
            (0..slot)
                .for_each(|n| counters.count_file(n % 3, 0, 5 + 3 * n as u32, 12_000.0, SECOND));
            counters.close_goodput_slot();
        }
        counters.merge_slot_pairs();
        counters.count_file(2, 0, 5, 12_000.0, SECOND);
        let slots = counters.counts_by_slot();
        let totals: Vec<u64> =
            slots.iter().map(|slot| slot.iter().map(|count| count.count).sum()).collect();
        assert_eq!(totals, [1 + 2, 3 + 4, 5, 1]);
        let first = &slots[1];
        let twice = first.iter().filter(|count| count.count == 2).count();
        assert_eq!(twice, 3, "the third and fourth slots have three files in common");
        assert_eq!(slots[3][0].group, 2 * GOODPUT_KINDS.len() as u16);
    }

    #[test]
    fn intermediate_counting_does_not_change_the_result() {
        let (mut plain, mut counted) = (GoodputCounters::new(0, 10), GoodputCounters::new(0, 10));
        for n in 0..600_u32 {
            for counters in [&mut plain, &mut counted] {
                counters.count_file(n as usize % 2, 0, 1 + n % 20, 12_000.0, SECOND / 10);
                if n % 70 == 69 {
                    counters.close_goodput_slot();
                }
                if n == 500 {
                    counters.merge_slot_pairs();
                }
            }
            if n % 110 == 109 {
                counted.count_individual_goodputs();
            }
        }
        assert!(counted.uncounted.len() < 100);
        assert_eq!(plain.counts_by_slot(), counted.counts_by_slot());
        assert_eq!(
            plain.counts_by_slot().iter().flatten().map(|count| count.count).sum::<u64>(),
            600
        );
    }

    #[test]
    fn memory_is_independent_of_the_number_of_files() {
        let mut counters = GoodputCounters::new(0, 10);
        for n in 0..3 * MAX_STORED_GOODPUTS as u32 {
            counters.count_file(0, 0, 1 + n % 20, 12_000.0, SECOND / 10);
        }
        assert!(counters.uncounted.len() < MAX_STORED_GOODPUTS && counters.open.len() == 20);
        let total: u64 = counters.counts_by_slot()[0].iter().map(|count| count.count).sum();
        assert_eq!(total, 3 * MAX_STORED_GOODPUTS as u64);
    }

    #[test]
    fn begin_keeps_the_block_in_progress() {
        let mut counters = GoodputCounters::new(2, 10);
        counters.count_packet(0, 0, 10_000.0, SECOND, 2 * SECOND);
        counters.count_file(0, 3, 4, 10_000.0, SECOND);
        counters.close_goodput_slot();
        counters.reset_counts();
        counters.count_packet(0, 0, 10_000.0, SECOND, 3 * SECOND);
        let slots = counters.counts_by_slot();
        assert_eq!((slots.len(), slots[0].len()), (1, 1));
        let goodput = edge(slots[0][0].bucket);
        assert!(goodput <= 10_000.0 && 10_000.0 / goodput < 1.008, "two packets in 2 s");
        assert!(counters.file_goodputs_by_size().is_empty());
    }
}
