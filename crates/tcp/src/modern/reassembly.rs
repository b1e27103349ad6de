//! Reassembly of out-of-order data, and selection of the SACK blocks to report.

use super::segment::{SackBlock, SackBlocks};

/// Number of blocks that certainly fit into an acknowledgement, and again into the next one if the
/// first is lost: Linux's `TCP_SACK_BLOCKS_EXPECTED`.
const SACK_BLOCKS_EXPECTED: usize = 2;

/// Outcome of inserting a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOutcome {
    /// Continues the in-order data.
    InOrder,
    /// Fills the beginning of a gap.
    FillsGap,
    /// Above a gap.
    Held,
    /// Above a gap, and completely held already.
    AlreadyHeld,
    /// Completely received before.
    Duplicate,
}

/// Reassembles a stream.
#[derive(Clone, Debug)]
pub struct ReassemblyQueue {
    next: u64,
    /// Data above gaps, as sorted disjoint blocks.
    held: Vec<SackBlock>,
    /// Blocks to report, most recent first: RFC 2018, section 4.
    recent: SackBlocks,
    /// Duplicate to report once: RFC 2883, section 4.
    duplicate: Option<SackBlock>,
    /// Sequence number of FIN.
    end: Option<u64>,
    /// A packet extends only blocks that are being reported: Linux's `tcp_sack_new_ofo_skb`. RFC
    /// 2018 requires all held data around the packet instead.
    extends_reported: bool,
}

impl ReassemblyQueue {
    /// Creates a stream that begins with byte `start`; blocks are reported as in Linux or RFC 2018.
    #[must_use]
    pub fn new(start: u64, extends_reported: bool) -> Self {
        let (held, recent) = (Vec::new(), SackBlocks::default());
        Self { next: start, held, recent, duplicate: None, end: None, extends_reported }
    }

    /// Next expected sequence number; FIN occupies one.
    #[inline(always)]
    #[must_use]
    pub fn next_expected(&self) -> u64 {
        self.next
    }

    /// Byte after the last in-order byte.
    #[must_use]
    pub fn data_end(&self) -> u64 {
        self.next - u64::from(self.is_complete())
    }

    /// Whether no data is held above a gap.
    #[inline(always)]
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether the complete stream was received.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.next > end)
    }

    /// Data held above gaps.
    #[must_use]
    pub fn held_blocks(&self) -> &[SackBlock] {
        &self.held
    }

    /// Appends a packet if it continues the in-order data and nothing is held; returns true if the
    /// packet was appended.
    #[inline(always)]
    pub fn append_in_order(&mut self, start: u64, len: u32, fin: bool) -> bool {
        let appends = start == self.next && self.held.is_empty() && self.end.is_none();
        if appends {
            self.next += u64::from(len);
            if fin {
                self.end = Some(self.next);
                self.next += 1;
            }
        }
        appends
    }

    /// Inserts any packet.
    pub fn insert_packet(
        &mut self,
        start: u64,
        len: u32,
        fin: bool,
        reports_duplicates: bool,
    ) -> InsertOutcome {
        let end = start + u64::from(len) + u64::from(fin);
        if fin {
            self.end = Some(start + u64::from(len));
        }
        if start == self.next && self.held.is_empty() {
            self.next = end;
            return InsertOutcome::InOrder;
        }
        self.insert_out_of_order(SackBlock { start, end }, reports_duplicates)
    }

    #[inline(never)]
    fn insert_out_of_order(&mut self, new: SackBlock, reports_duplicates: bool) -> InsertOutcome {
        let mut duplicate = self.duplicate;
        let outcome = if new.end <= self.next {
            extend_reported_duplicate(&mut duplicate, new);
            InsertOutcome::Duplicate
        } else if new.start <= self.next {
            self.fill_in_order(new, &mut duplicate)
        } else if self.extend_last_block(new) {
            InsertOutcome::Held
        } else if self.holds_packet(new) {
            extend_reported_duplicate(&mut duplicate, new);
            if self.extends_reported {
                self.add_reported_block(new);
            }
            InsertOutcome::AlreadyHeld
        } else {
            self.insert_held_block(new, &mut duplicate);
            InsertOutcome::Held
        };
        if reports_duplicates {
            self.duplicate = duplicate;
        }
        outcome
    }

    /// Appends the packet to the last held block if the packet follows this block, and the block is
    /// also the first block to report. This is the common case above a gap.
    #[inline]
    fn extend_last_block(&mut self, new: SackBlock) -> bool {
        let (Some(last), Some(newest)) = (self.held.last_mut(), self.recent.first_mut()) else {
            return false;
        };
        if last.end != new.start || *last != *newest {
            return false;
        }
        last.end = new.end;
        *newest = *last;
        true
    }

    /// Whether a packet would displace recently extended blocks from the next acknowledgement,
    /// before they were reported.
    pub fn would_displace_unreported_blocks(&self, new: SackBlock) -> bool {
        let recent = self.recent.as_slice();
        let touched = recent.iter().position(|b| new.start <= b.end && b.start <= new.end);
        new.start > self.next && touched.unwrap_or(recent.len()) >= SACK_BLOCKS_EXPECTED
    }

    /// Whether the packet is completely held.
    fn holds_packet(&self, new: SackBlock) -> bool {
        let begun = self.held.partition_point(|block| block.start <= new.start);
        self.held[..begun].last().is_some_and(|block| block.contains(new))
    }

    /// Appends the packet to the in-order data, and held blocks that become contiguous.
    fn fill_in_order(
        &mut self,
        new: SackBlock,
        duplicate: &mut Option<SackBlock>,
    ) -> InsertOutcome {
        let fills = !self.held.is_empty();
        extend_reported_duplicate(duplicate, SackBlock { start: new.start, end: self.next });
        self.next = new.end;
        let reached = self.held.partition_point(|block| block.start <= new.end);
        for block in self.held.drain(..reached) {
            extend_reported_duplicate(
                duplicate,
                SackBlock { start: block.start, end: block.end.min(new.end) },
            );
            self.next = self.next.max(block.end);
        }
        let next = self.next;
        self.recent = self.recent.as_slice().iter().filter(|b| b.start > next).copied().collect();
        if fills { InsertOutcome::FillsGap } else { InsertOutcome::InOrder }
    }

    /// Merges the block with adjacent blocks; the result becomes the first block to report.
    fn insert_held_block(&mut self, new: SackBlock, duplicate: &mut Option<SackBlock>) {
        let from = self.held.partition_point(|block| block.end < new.start);
        let to = self.held.partition_point(|block| block.start <= new.end);
        let mut merged = new;
        for block in &self.held[from..to] {
            let (start, end) = (block.start.max(new.start), block.end.min(new.end));
            extend_reported_duplicate(duplicate, SackBlock { start, end });
            merged.start = merged.start.min(block.start);
            merged.end = merged.end.max(block.end);
        }
        if from == to {
            self.held.insert(from, merged);
        } else {
            self.held[from] = merged;
            self.held.drain(from + 1..to);
        }
        self.add_reported_block(if self.extends_reported { new } else { merged });
    }

    /// Merges the block with adjacent reported blocks; the result becomes the first block to
    /// report.
    fn add_reported_block(&mut self, new: SackBlock) {
        let touches = |a: SackBlock, b: SackBlock| a.start <= b.end && b.start <= a.end;
        let recent = self.recent;
        let extended = recent.as_slice().iter().position(|&block| touches(block, new));
        let join = |a: SackBlock, b: SackBlock| SackBlock {
            start: a.start.min(b.start),
            end: a.end.max(b.end),
        };
        let mut first = extended.map_or(new, |index| join(recent.as_slice()[index], new));
        let mut others = SackBlocks::default();
        for (index, &block) in recent.as_slice().iter().enumerate() {
            if Some(index) == extended {
                continue;
            }
            if extended.is_some() && touches(first, block) {
                first = join(first, block);
            } else {
                others.push(block);
            }
        }
        self.recent = std::iter::once(first).chain(others.as_slice().iter().copied()).collect();
    }

    /// Reports data as a duplicate, like [`ReassemblyQueue::insert_packet`] does.
    pub fn report_duplicate(&mut self, start: u64, len: u32) {
        let end = (start + u64::from(len)).min(self.next);
        extend_reported_duplicate(&mut self.duplicate, SackBlock { start, end });
    }

    /// Whether there are blocks to report.
    #[inline(always)]
    pub fn has_blocks_to_report(&self) -> bool {
        self.duplicate.is_some() || !self.held.is_empty()
    }

    /// Returns at most `max` blocks: the duplicate first, then the most recent ones.
    #[inline(never)]
    pub fn blocks_to_report(&self, max: usize) -> SackBlocks {
        let recent = self.recent.as_slice().iter().copied();
        self.duplicate.into_iter().chain(recent).take(max).collect()
    }

    /// The duplicate has been reported.
    #[inline(always)]
    pub fn clear_duplicate(&mut self) {
        self.duplicate = None;
    }
}

/// Extends the duplicate to report; a duplicate that is not adjacent is not reported.
fn extend_reported_duplicate(duplicate: &mut Option<SackBlock>, block: SackBlock) {
    if block.start >= block.end {
        return;
    }
    match duplicate {
        None => *duplicate = Some(block),
        Some(known) if block.start <= known.end && known.start <= block.end => {
            known.start = known.start.min(block.start);
            known.end = known.end.max(block.end);
        }
        Some(_) => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn report(stream: &ReassemblyQueue) -> Vec<(u64, u64)> {
        stream.blocks_to_report(4).as_slice().iter().map(|b| (b.start, b.end)).collect()
    }

    #[test]
    fn rfc_2018_section_4_most_recent_block_comes_first() {
        let mut stream = ReassemblyQueue::new(1, false);
        for (start, blocks) in [
            (1001, vec![(1001, 2001)]),
            (2001, vec![(1001, 3001)]),
            (4001, vec![(4001, 5001), (1001, 3001)]),
            (7001, vec![(7001, 8001), (4001, 5001), (1001, 3001)]),
            (9001, vec![(9001, 10001), (7001, 8001), (4001, 5001), (1001, 3001)]),
            (3001, vec![(1001, 5001), (9001, 10001), (7001, 8001)]),
        ] {
            assert_eq!(stream.insert_packet(start, 1000, false, true), InsertOutcome::Held);
            assert_eq!(report(&stream), blocks);
        }
        assert_eq!(stream.insert_packet(1, 1000, false, true), InsertOutcome::FillsGap);
        assert_eq!(
            (stream.next_expected(), report(&stream)),
            (5001, vec![(9001, 10001), (7001, 8001)])
        );
    }

    #[test]
    fn linux_tcp_sack_new_ofo_skb_extends_only_reported_blocks() {
        let held = [2001, 4001, 6001, 8001, 10_001, 12_001];
        let mut streams = [ReassemblyQueue::new(1, true), ReassemblyQueue::new(1, false)];
        for stream in &mut streams {
            held.iter().for_each(|&start| {
                stream.insert_packet(start, 1000, false, true);
            });
            // Adjacent to the oldest block, which is no longer reported; then between it and a
            // newer one.
            stream.insert_packet(3001, 1000, false, true);
        }
        let [linux, rfc] = &mut streams;
        assert_eq!(report(linux)[..2], [(3001, 4001), (12_001, 13_001)]);
        assert_eq!(report(rfc)[..2], [(2001, 5001), (12_001, 13_001)]);
        assert_eq!(linux.insert_packet(9001, 1000, false, true), InsertOutcome::Held);
        assert_eq!(report(linux)[..2], [(8001, 11_001), (3001, 4001)]);
        assert_eq!(linux.insert_packet(2001, 1000, false, true), InsertOutcome::AlreadyHeld);
        assert_eq!(report(linux)[..2], [(2001, 3001), (2001, 4001)], "the duplicate and its block");
        assert_eq!(linux.held_blocks().len(), 4);
    }

    #[test]
    fn rfc_2883_section_4_duplicate_comes_first_and_once() {
        let mut stream = ReassemblyQueue::new(1, false);
        stream.insert_packet(1, 1000, false, true);
        stream.insert_packet(3001, 1000, false, true);
        assert_eq!(stream.insert_packet(1, 1000, false, true), InsertOutcome::Duplicate);
        assert_eq!(report(&stream), [(1, 1001), (3001, 4001)]);
        stream.clear_duplicate();
        assert_eq!(stream.insert_packet(3001, 1000, false, true), InsertOutcome::AlreadyHeld);
        assert_eq!(report(&stream), [(3001, 4001), (3001, 4001)]);
        stream.clear_duplicate();
        assert_eq!(stream.insert_packet(501, 2000, false, true), InsertOutcome::FillsGap);
        assert_eq!(
            (stream.next_expected(), report(&stream)),
            (2501, vec![(501, 1001), (3001, 4001)])
        );
    }

    proptest! {
        #[test]
        fn held_blocks_equal_received_bytes(packets in prop::collection::vec((0_u64..60, 1_u32..9), 1..120)) {
            let mut stream = ReassemblyQueue::new(1, false);
            let mut model = BTreeSet::new();
            for (start, len) in packets {
                stream.insert_packet(1 + start, len, false, true);
                model.extend(1 + start..1 + start + u64::from(len));
                let next = (1..).find(|byte| !model.contains(byte)).unwrap();
                prop_assert_eq!(stream.next_expected(), next);
                let held: BTreeSet<_> =
                    stream.held_blocks().iter().flat_map(|b| b.start..b.end).collect();
                let beyond: BTreeSet<_> = model.iter().copied().filter(|&b| b > next).collect();
                prop_assert_eq!(&held, &beyond);
                for pair in stream.held_blocks().windows(2) {
                    prop_assert!(pair[0].end < pair[1].start);
                }
                for block in stream.recent.as_slice() {
                    prop_assert!(stream.held_blocks().iter().any(|held| held.contains(*block)));
                }
            }
        }
    }
}
