//! The goodput of files: how fast each came, as a whole and in blocks of packets.
//!
//! The goodput of a file is its bits over the time from its first packet, handed to the network, to
//! its last at the destination. The three definitions of section 8 of INRIA report 4154 are made of
//! three kinds of counts: blocks of consecutive packets, files, and files of more packets than
//! some.

use super::{LogHistogram, Probes, SourceRecord};
use crate::clock::Nanos;

/// Parts of a power of two: a goodput is counted to 0.4 to 0.8 %.
pub const BUCKETS_PER_OCTAVE: usize = 1 << PART_BITS;
/// From 1 bit/s on, to 1.1 Tbit/s; what is beyond either end counts as that end.
pub const OCTAVES: usize = 40;
/// All of them.
pub const BUCKETS: usize = OCTAVES * BUCKETS_PER_OCTAVE;

const PART_BITS: u32 = 7;
/// The bits of a double below its exponent and the first bits of its mantissa.
const SHIFT: u32 = 52 - PART_BITS;
/// Those of 1.0.
const FIRST: u64 = 1023 << PART_BITS;

/// What a goodput is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A file of no more packets than a large one has.
    SmallFile,
    /// A larger one.
    LargeFile,
    /// So many packets of a file in the order of their delivery.
    Block,
}

/// Their names, in their order.
pub const PIECES: [&str; 3] = ["small_file", "large_file", "block"];

/// Goodputs of one class and kind in one slot of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoodputCount {
    /// Class times the number of kinds, and the kind.
    pub group: u16,
    /// Bucket of the goodput.
    pub bucket: u16,
    /// How many.
    pub count: u64,
}

/// The current block of one source.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// When its file began, which tells one file from the next.
    file: Nanos,
    /// When the block before it ended.
    since: Nanos,
    packets: u32,
}

/// So many goodputs are kept one by one before they are counted: 1 MB.
const MAX_UNCOUNTED: usize = 1 << 18;

/// The goodputs of a run, counted apart in each slot of the counters.
///
/// They are first kept one by one, which costs next to nothing a file. Memory is that of these and
/// of the buckets that are not empty, at most all of them in each slot, and slots are merged as the
/// counters are.
#[derive(Clone, Debug, Default)]
pub struct GoodputCounters {
    /// Larger files have more packets than this.
    least: u32,
    /// Packets in a block; 0 if blocks are not asked for.
    block: u32,
    blocks: Vec<Block>,
    /// Group and bucket of each goodput that is not counted yet, in the order of time.
    uncounted: Vec<u32>,
    closed: Vec<Slot>,
    /// The slot that is open.
    open: Vec<GoodputCount>,
    /// Of files by their size interval, in bit/s.
    by_size: Vec<LogHistogram>,
}

/// A slot that is over.
#[derive(Clone, Debug, Default)]
struct Slot {
    counts: Vec<GoodputCount>,
    /// Where what is not counted of it ends.
    end: usize,
}

impl GoodputCounters {
    /// Blocks of `block` packets, if any, and files of more than `least` apart.
    #[must_use]
    pub fn new(block: u32, least: u32) -> Self {
        Self { least, block, ..Self::default() }
    }

    /// Forgets the figures; blocks that have begun stay so.
    pub fn begin(&mut self) {
        let blocks = std::mem::take(&mut self.blocks);
        *self = Self { least: self.least, block: self.block, blocks, ..Self::default() };
    }

    /// A file of a class and a size interval was delivered, in packets of so many bits.
    #[inline(always)]
    pub fn file(&mut self, class: usize, row: usize, packets: u32, packet_bits: f32, taken: Nanos) {
        let kind = if packets > self.least { Piece::LargeFile } else { Piece::SmallFile };
        let goodput = self.add(class, kind, (packets, packet_bits), taken);
        if row >= self.by_size.len() {
            self.by_size.resize(row + 1, LogHistogram::default());
        }
        self.by_size[row].add(goodput);
    }

    /// A source that began a file at `file` delivered a packet of it, of so many bits.
    pub fn packet(
        &mut self,
        class: usize,
        source: usize,
        packet_bits: f32,
        file: Nanos,
        now: Nanos,
    ) {
        if source >= self.blocks.len() {
            self.blocks.resize(source + 1, Block::default());
        }
        let block = &mut self.blocks[source];
        if block.file != file {
            *block = Block { file, since: file, packets: 0 };
        }
        block.packets += 1;
        if block.packets == self.block {
            let taken = now - block.since;
            (block.packets, block.since) = (0, now);
            self.add(class, Piece::Block, (self.block, packet_bits), taken);
        }
    }

    #[inline]
    fn add(&mut self, class: usize, kind: Piece, sent: (u32, f32), taken: Nanos) -> f64 {
        let (packets, packet_bits) = sent;
        let goodput = f64::from(packets) * f64::from(packet_bits) / (taken as f64 * 1e-9);
        let bucket = (goodput.to_bits() >> SHIFT).saturating_sub(FIRST).min(BUCKETS as u64 - 1);
        let group = (class * PIECES.len() + kind as usize) as u32;
        self.uncounted.push(group << 16 | bucket as u32);
        if self.uncounted.len() == MAX_UNCOUNTED {
            self.count();
        }
        goodput
    }

    /// Counts what is kept one by one.
    #[inline(never)]
    fn count(&mut self) {
        let mut begin = 0;
        for slot in &mut self.closed {
            count_into(&mut slot.counts, &mut self.uncounted[begin..slot.end]);
            begin = std::mem::take(&mut slot.end);
        }
        count_into(&mut self.open, &mut self.uncounted[begin..]);
        self.uncounted.clear();
    }

    /// A slot is over.
    pub fn close(&mut self) {
        let counts = std::mem::take(&mut self.open);
        self.closed.push(Slot { counts, end: self.uncounted.len() });
    }

    /// Makes one slot of each two.
    pub fn merge_slots(&mut self) {
        let mut slots = std::mem::take(&mut self.closed).into_iter();
        while let Some(Slot { mut counts, end }) = slots.next() {
            let second = slots.next().unwrap_or(Slot { counts: Vec::new(), end });
            counts.extend(second.counts);
            add_up(&mut counts);
            self.closed.push(Slot { counts, end: second.end });
        }
    }

    /// The counts of each slot in order, the last one that which is open.
    #[must_use]
    pub fn slots(&self) -> Vec<Vec<GoodputCount>> {
        let mut counted = self.clone();
        counted.count();
        counted.closed.into_iter().map(|slot| slot.counts).chain([counted.open]).collect()
    }

    /// Goodputs of files by their size interval, in bit/s; the last ones are missing where no file
    /// was in them.
    #[must_use]
    pub fn by_size(&self) -> &[LogHistogram] {
        &self.by_size
    }
}

/// Adds goodputs, each a group and a bucket, to counts.
fn count_into(counts: &mut Vec<GoodputCount>, goodputs: &mut [u32]) {
    goodputs.sort_unstable();
    let counted = |alike: &[u32]| GoodputCount {
        group: (alike[0] >> 16) as u16,
        bucket: alike[0] as u16,
        count: alike.len() as u64,
    };
    counts.extend(goodputs.chunk_by(u32::eq).map(counted));
    add_up(counts);
}

/// Makes one count of those of the same bucket.
fn add_up(counts: &mut Vec<GoodputCount>) {
    counts.sort_unstable();
    counts.dedup_by(|next, kept| {
        let same = (next.group, next.bucket) == (kept.group, kept.bucket);
        kept.count += if same { next.count } else { 0 };
        same
    });
    counts.shrink_to_fit();
}

impl Probes {
    /// A data packet of a file of which the blocks are to be told reached its receiver.
    #[inline(never)]
    pub fn delivered_in_block(&mut self, now: Nanos, record: &SourceRecord, source: u32) {
        let (class, bits) = (record.class(), record.packet_bits);
        self.goodput.packet(class, source as usize, bits, record.started, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;

    /// The goodput at which a bucket begins.
    fn edge(bucket: u16) -> f64 {
        f64::from_bits((u64::from(bucket) + FIRST) << SHIFT)
    }

    #[test]
    fn a_goodput_is_counted_to_less_than_one_percent() {
        let mut counters = GoodputCounters::new(0, 10);
        for (packets, taken) in [(1, SECOND), (11, 3 * SECOND / 100), (10, 1 << 40)] {
            let mut alone = GoodputCounters::new(0, 10);
            alone.file(0, 0, packets, 12_000.0, taken);
            counters.file(0, 0, packets, 12_000.0, taken);
            let goodput = f64::from(packets) * 12_000.0 * 1e9 / taken as f64;
            let slots = alone.slots();
            let [found] = slots[0][..] else { panic!("one file, {slots:?}") };
            assert!(edge(found.bucket) <= goodput && goodput < edge(found.bucket + 1));
            assert!(edge(found.bucket + 1) / edge(found.bucket) < 1.008);
            assert_eq!(found.group, u16::from(packets > 10));
        }
        assert_eq!(counters.slots()[0].iter().map(|found| found.count).sum::<u64>(), 3);
    }

    #[test]
    fn what_is_beyond_the_ends_counts_as_the_ends() {
        let mut counters = GoodputCounters::new(0, 10);
        counters.file(0, 0, 1, 12_000.0, u64::MAX);
        counters.file(0, 0, 1, 12_000.0, 0);
        let buckets: Vec<u16> = counters.slots()[0].iter().map(|found| found.bucket).collect();
        assert_eq!(buckets, [0, BUCKETS as u16 - 1]);
        assert_eq!(edge(0), 1.0);
        assert_eq!(edge(BUCKETS as u16), (1_u64 << 40) as f64);
    }

    #[test]
    fn blocks_follow_one_another_and_begin_with_their_file() {
        let mut counters = GoodputCounters::new(2, 10);
        // Ten kbit a packet: the blocks of the first file take 4 and 6 s, its last packet is in
        // none.
        for second in [101, 104, 105, 110, 111] {
            counters.packet(0, 7, 10_000.0, 100 * SECOND, second * SECOND);
        }
        // The next file's block begins with the file.
        counters.packet(0, 7, 10_000.0, 200 * SECOND, 201 * SECOND);
        counters.packet(0, 7, 10_000.0, 200 * SECOND, 220 * SECOND);
        let found: Vec<(u16, f64)> =
            counters.slots()[0].iter().map(|found| (found.group, edge(found.bucket))).collect();
        for ((group, edge), goodput) in found.iter().zip([1000.0, 20_000.0 / 6.0, 5000.0]) {
            assert_eq!(*group, Piece::Block as u16);
            assert!(*edge <= goodput && goodput / edge < 1.008, "{edge} for {goodput}");
        }
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn slots_that_are_merged_keep_their_counts() {
        let mut counters = GoodputCounters::new(0, 10);
        for slot in 1..=5 {
            (0..slot).for_each(|n| counters.file(n % 3, 0, 5 + 3 * n as u32, 12_000.0, SECOND));
            counters.close();
        }
        counters.merge_slots();
        counters.file(2, 0, 5, 12_000.0, SECOND);
        let slots = counters.slots();
        let totals: Vec<u64> =
            slots.iter().map(|slot| slot.iter().map(|found| found.count).sum()).collect();
        assert_eq!(totals, [1 + 2, 3 + 4, 5, 1]);
        let first = &slots[1];
        let twice = first.iter().filter(|found| found.count == 2).count();
        assert_eq!(twice, 3, "three files of the third slot are in the fourth as well");
        assert_eq!(slots[3][0].group, 2 * PIECES.len() as u16);
    }

    #[test]
    fn what_was_counted_on_the_way_is_the_same() {
        let (mut whole, mut counted) = (GoodputCounters::new(0, 10), GoodputCounters::new(0, 10));
        for n in 0..600_u32 {
            for counters in [&mut whole, &mut counted] {
                counters.file(n as usize % 2, 0, 1 + n % 20, 12_000.0, SECOND / 10);
                if n % 70 == 69 {
                    counters.close();
                }
                if n == 500 {
                    counters.merge_slots();
                }
            }
            if n % 110 == 109 {
                counted.count();
            }
        }
        assert!(counted.uncounted.len() < 100);
        assert_eq!(whole.slots(), counted.slots());
        assert_eq!(whole.slots().iter().flatten().map(|found| found.count).sum::<u64>(), 600);
    }

    #[test]
    fn memory_does_not_grow_with_the_files() {
        let mut counters = GoodputCounters::new(0, 10);
        for n in 0..3 * MAX_UNCOUNTED as u32 {
            counters.file(0, 0, 1 + n % 20, 12_000.0, SECOND / 10);
        }
        assert!(counters.uncounted.len() < MAX_UNCOUNTED && counters.open.len() == 20);
        let total: u64 = counters.slots()[0].iter().map(|found| found.count).sum();
        assert_eq!(total, 3 * MAX_UNCOUNTED as u64);
    }

    #[test]
    fn the_warm_up_is_forgotten_but_not_the_block_under_way() {
        let mut counters = GoodputCounters::new(2, 10);
        counters.packet(0, 0, 10_000.0, SECOND, 2 * SECOND);
        counters.file(0, 3, 4, 10_000.0, SECOND);
        counters.close();
        counters.begin();
        counters.packet(0, 0, 10_000.0, SECOND, 3 * SECOND);
        let slots = counters.slots();
        assert_eq!((slots.len(), slots[0].len()), (1, 1));
        let found = edge(slots[0][0].bucket);
        assert!(found <= 10_000.0 && 10_000.0 / found < 1.008, "both its packets, in 2 s");
        assert!(counters.by_size().is_empty());
    }
}
