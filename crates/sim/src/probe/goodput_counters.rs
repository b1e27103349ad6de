//! Goodputs of files and of blocks of packets.
//!
//! The goodput of a file is its number of bits divided by the time from the transmission of its
//! first packet to the delivery of its last packet. The three definitions in section 8 of INRIA
//! report 4154 use three kinds of counts: blocks of consecutive packets, all files, and large
//! files.

use super::counts_by_slot::CountsBySlot;
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

/// The current block of one source.
#[derive(Clone, Copy, Debug, Default)]
struct CurrentSourceBlock {
    /// Start time of the file, which identifies the file.
    file: Nanos,
    /// End time of the previous block.
    since: Nanos,
    packets: u32,
}

/// Goodputs of a run, counted per slot of the counters.
#[derive(Clone, Debug, Default)]
pub struct GoodputCounters {
    /// Files with more packets than this are large.
    threshold: u32,
    /// Packets per block; 0 for no blocks.
    block: u32,
    blocks: Vec<CurrentSourceBlock>,
    /// Counts by bucket; the group is the class times the number of kinds, plus the kind.
    pub counts: CountsBySlot<{ BUCKETS / u64::BITS as usize }>,
    /// Goodputs of files by size interval, in bit/s.
    by_size: Vec<LogHistogram>,
}

impl GoodputCounters {
    /// Creates empty counters of some classes for blocks of `block` packets (0 for none). Files of
    /// more than `threshold` packets are large.
    #[must_use]
    pub fn new(block: u32, threshold: u32, classes: usize) -> Self {
        let counts = CountsBySlot::new(classes * GOODPUT_KINDS.len());
        Self { threshold, block, blocks: Vec::new(), counts, by_size: Vec::new() }
    }

    /// Resets all counts; blocks in progress continue.
    pub fn reset_counts(&mut self) {
        self.counts.clear();
        self.by_size.clear();
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
        self.counts.count_value(class * GOODPUT_KINDS.len() + kind as usize, bucket as usize);
        goodput
    }

    /// Goodputs of files by size interval, in bit/s, up to the last interval with a file.
    #[must_use]
    pub fn file_goodputs_by_size(&self) -> &[LogHistogram] {
        &self.by_size
    }
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
        let mut counters = GoodputCounters::new(0, 10, 1);
        for (packets, taken) in [(1, SECOND), (11, 3 * SECOND / 100), (10, 1 << 40)] {
            let mut single = GoodputCounters::new(0, 10, 1);
            single.count_file(0, 0, packets, 12_000.0, taken);
            counters.count_file(0, 0, packets, 12_000.0, taken);
            let goodput = f64::from(packets) * 12_000.0 * 1e9 / taken as f64;
            let slots = single.counts.counts_by_slot();
            let [counted] = slots[0][..] else { panic!("one file, {slots:?}") };
            assert!(edge(counted.bucket) <= goodput && goodput < edge(counted.bucket + 1));
            assert!(edge(counted.bucket + 1) / edge(counted.bucket) < 1.008);
            assert_eq!(counted.group, u32::from(packets > 10));
        }
        assert_eq!(
            counters.counts.counts_by_slot()[0].iter().map(|count| count.count).sum::<u64>(),
            3
        );
    }

    #[test]
    fn values_out_of_range_count_in_first_and_last_bucket() {
        let mut counters = GoodputCounters::new(0, 10, 1);
        counters.count_file(0, 0, 1, 12_000.0, u64::MAX);
        counters.count_file(0, 0, 1, 12_000.0, 0);
        let buckets: Vec<u16> =
            counters.counts.counts_by_slot()[0].iter().map(|count| count.bucket).collect();
        assert_eq!(buckets, [0, BUCKETS as u16 - 1]);
        assert_eq!(edge(0), 1.0);
        assert_eq!(edge(BUCKETS as u16), (1_u64 << 40) as f64);
    }

    #[test]
    fn blocks_start_with_their_file_and_are_consecutive() {
        let mut counters = GoodputCounters::new(2, 10, 1);
        // 10 kbit per packet: the blocks of the first file take 4 and 6 s, and its last packet is
        // in no block.
        for second in [101, 104, 105, 110, 111] {
            counters.count_packet(0, 7, 10_000.0, 100 * SECOND, second * SECOND);
        }
        // The next block starts with the next file.
        counters.count_packet(0, 7, 10_000.0, 200 * SECOND, 201 * SECOND);
        counters.count_packet(0, 7, 10_000.0, 200 * SECOND, 220 * SECOND);
        let blocks: Vec<(u32, f64)> = counters.counts.counts_by_slot()[0]
            .iter()
            .map(|count| (count.group, edge(count.bucket)))
            .collect();
        for ((group, edge), goodput) in blocks.iter().zip([1000.0, 20_000.0 / 6.0, 5000.0]) {
            assert_eq!(*group, GoodputKind::Block as u32);
            assert!(*edge <= goodput && goodput / edge < 1.008, "{edge} for {goodput}");
        }
        assert_eq!(blocks.len(), 3);
    }

    #[test]
    fn begin_keeps_the_block_in_progress() {
        let mut counters = GoodputCounters::new(2, 10, 1);
        counters.count_packet(0, 0, 10_000.0, SECOND, 2 * SECOND);
        counters.count_file(0, 3, 4, 10_000.0, SECOND);
        counters.counts.close_slot();
        counters.reset_counts();
        counters.count_packet(0, 0, 10_000.0, SECOND, 3 * SECOND);
        let slots = counters.counts.counts_by_slot();
        assert_eq!((slots.len(), slots[0].len()), (1, 1));
        let goodput = edge(slots[0][0].bucket);
        assert!(goodput <= 10_000.0 && 10_000.0 / goodput < 1.008, "two packets in 2 s");
        assert!(counters.file_goodputs_by_size().is_empty());
    }
}
