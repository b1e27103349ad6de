//! Data out of order: what is held, and which blocks an acknowledgement reports.

use super::segment::{SackBlock, SackBlocks};

/// So many blocks are sure to fit into an acknowledgement, and into the next one if that is lost:
/// Linux's `TCP_SACK_BLOCKS_EXPECTED`.
const REPORTED: usize = 2;

/// Where a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// At the end of what is in order.
    InOrder,
    /// At the beginning of a gap.
    Fills,
    /// Beyond a gap.
    Held,
    /// Beyond a gap, where all of it was held.
    AlreadyHeld,
    /// All of it had come before.
    Duplicate,
}

/// Puts a stream in order.
#[derive(Clone, Debug)]
pub struct Reassembly {
    next: u64,
    /// What is beyond, in order and apart.
    held: Vec<SackBlock>,
    /// The blocks to report, the newest first: RFC 2018, section 4.
    recent: SackBlocks,
    /// What came twice, to be reported once: RFC 2883, section 4.
    duplicate: Option<SackBlock>,
    /// The sequence number of FIN.
    end: Option<u64>,
    /// A packet extends the blocks to report alone, whatever else is held beside it: Linux's
    /// `tcp_sack_new_ofo_skb`, where RFC 2018 asks for all that is held around it.
    extends_reported: bool,
}

impl Reassembly {
    /// A stream that begins with byte `start`; blocks to report are those of Linux, or of RFC 2018.
    #[must_use]
    pub fn new(start: u64, extends_reported: bool) -> Self {
        let (held, recent) = (Vec::new(), SackBlocks::default());
        Self { next: start, held, recent, duplicate: None, end: None, extends_reported }
    }

    /// The next sequence number expected; FIN counts for one.
    #[inline(always)]
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The byte after the last one in order.
    #[must_use]
    pub fn data_end(&self) -> u64 {
        self.next - u64::from(self.is_complete())
    }

    /// Whether nothing is held beyond a gap.
    #[inline(always)]
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether all of the stream is there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.next > end)
    }

    /// What is held.
    #[must_use]
    pub fn held(&self) -> &[SackBlock] {
        &self.held
    }

    /// A packet arrives: takes it if it continues what is in order, with nothing beyond; says whether
    /// it does.
    #[inline(always)]
    pub fn append(&mut self, start: u64, len: u32, fin: bool) -> bool {
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

    /// A packet arrives.
    pub fn insert(
        &mut self,
        start: u64,
        len: u32,
        fin: bool,
        reports_duplicates: bool,
    ) -> Placement {
        let end = start + u64::from(len) + u64::from(fin);
        if fin {
            self.end = Some(start + u64::from(len));
        }
        if start == self.next && self.held.is_empty() {
            self.next = end;
            return Placement::InOrder;
        }
        self.insert_out_of_order(SackBlock { start, end }, reports_duplicates)
    }

    #[inline(never)]
    fn insert_out_of_order(&mut self, new: SackBlock, reports_duplicates: bool) -> Placement {
        let mut duplicate = self.duplicate;
        let placement = if new.end <= self.next {
            merge_duplicate(&mut duplicate, new);
            Placement::Duplicate
        } else if new.start <= self.next {
            self.fill(new, &mut duplicate)
        } else if self.extends_last(new) {
            Placement::Held
        } else if self.holds(new) {
            merge_duplicate(&mut duplicate, new);
            if self.extends_reported {
                self.report(new);
            }
            Placement::AlreadyHeld
        } else {
            self.hold(new, &mut duplicate);
            Placement::Held
        };
        if reports_duplicates {
            self.duplicate = duplicate;
        }
        placement
    }

    /// Whether the packet follows the last block that is held, which most packets beyond a gap do,
    /// and that is the newest to report: then it becomes part of it.
    #[inline]
    fn extends_last(&mut self, new: SackBlock) -> bool {
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

    /// Whether a packet would move what two others have left to report to where an acknowledgement
    /// may not have room for it.
    pub fn crowds_out(&self, new: SackBlock) -> bool {
        let recent = self.recent.as_slice();
        let touched = recent.iter().position(|b| new.start <= b.end && b.start <= new.end);
        new.start > self.next && touched.unwrap_or(recent.len()) >= REPORTED
    }

    /// Whether all of the packet is held.
    fn holds(&self, new: SackBlock) -> bool {
        let begun = self.held.partition_point(|block| block.start <= new.start);
        self.held[..begun].last().is_some_and(|block| block.contains(new))
    }

    /// The packet continues what is in order, perhaps up to what is held and beyond.
    fn fill(&mut self, new: SackBlock, duplicate: &mut Option<SackBlock>) -> Placement {
        let fills = !self.held.is_empty();
        merge_duplicate(duplicate, SackBlock { start: new.start, end: self.next });
        self.next = new.end;
        let reached = self.held.partition_point(|block| block.start <= new.end);
        for block in self.held.drain(..reached) {
            merge_duplicate(
                duplicate,
                SackBlock { start: block.start, end: block.end.min(new.end) },
            );
            self.next = self.next.max(block.end);
        }
        let next = self.next;
        self.recent = self.recent.as_slice().iter().filter(|b| b.start > next).copied().collect();
        if fills { Placement::Fills } else { Placement::InOrder }
    }

    /// Joins the block with those that it touches; it is the newest to report.
    fn hold(&mut self, new: SackBlock, duplicate: &mut Option<SackBlock>) {
        let from = self.held.partition_point(|block| block.end < new.start);
        let to = self.held.partition_point(|block| block.start <= new.end);
        let mut merged = new;
        for block in &self.held[from..to] {
            let (start, end) = (block.start.max(new.start), block.end.min(new.end));
            merge_duplicate(duplicate, SackBlock { start, end });
            merged.start = merged.start.min(block.start);
            merged.end = merged.end.max(block.end);
        }
        if from == to {
            self.held.insert(from, merged);
        } else {
            self.held[from] = merged;
            self.held.drain(from + 1..to);
        }
        self.report(if self.extends_reported { new } else { merged });
    }

    /// The block becomes the newest to report, with those that it touches.
    fn report(&mut self, new: SackBlock) {
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

    /// What was taken before has come once more, as it would be found by [`Reassembly::insert`].
    pub fn report_duplicate(&mut self, start: u64, len: u32) {
        let end = (start + u64::from(len)).min(self.next);
        merge_duplicate(&mut self.duplicate, SackBlock { start, end });
    }

    /// Whether there are blocks to report.
    #[inline(always)]
    pub fn has_blocks(&self) -> bool {
        self.duplicate.is_some() || !self.held.is_empty()
    }

    /// At most `max` blocks: what came twice, then the newest.
    #[inline(never)]
    pub fn blocks(&self, max: usize) -> SackBlocks {
        let recent = self.recent.as_slice().iter().copied();
        self.duplicate.into_iter().chain(recent).take(max).collect()
    }

    /// What came twice has been reported.
    #[inline(always)]
    pub fn clear_duplicate(&mut self) {
        self.duplicate = None;
    }
}

/// What came twice is one block; what does not touch it is not reported.
fn merge_duplicate(duplicate: &mut Option<SackBlock>, block: SackBlock) {
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

    fn report(stream: &Reassembly) -> Vec<(u64, u64)> {
        stream.blocks(4).as_slice().iter().map(|b| (b.start, b.end)).collect()
    }

    #[test]
    fn rfc_2018_section_4_the_newest_block_comes_first() {
        let mut stream = Reassembly::new(1, false);
        for (start, blocks) in [
            (1001, vec![(1001, 2001)]),
            (2001, vec![(1001, 3001)]),
            (4001, vec![(4001, 5001), (1001, 3001)]),
            (7001, vec![(7001, 8001), (4001, 5001), (1001, 3001)]),
            (9001, vec![(9001, 10001), (7001, 8001), (4001, 5001), (1001, 3001)]),
            (3001, vec![(1001, 5001), (9001, 10001), (7001, 8001)]),
        ] {
            assert_eq!(stream.insert(start, 1000, false, true), Placement::Held);
            assert_eq!(report(&stream), blocks);
        }
        assert_eq!(stream.insert(1, 1000, false, true), Placement::Fills);
        assert_eq!((stream.next(), report(&stream)), (5001, vec![(9001, 10001), (7001, 8001)]));
    }

    #[test]
    fn linux_s_tcp_sack_new_ofo_skb_extends_what_it_reports_alone() {
        let held = [2001, 4001, 6001, 8001, 10_001, 12_001];
        let mut streams = [Reassembly::new(1, true), Reassembly::new(1, false)];
        for stream in &mut streams {
            held.iter().for_each(|&start| {
                stream.insert(start, 1000, false, true);
            });
            // Beside the oldest block, which has fallen out, and then between it and a newer one.
            stream.insert(3001, 1000, false, true);
        }
        let [linux, rfc] = &mut streams;
        assert_eq!(report(linux)[..2], [(3001, 4001), (12_001, 13_001)]);
        assert_eq!(report(rfc)[..2], [(2001, 5001), (12_001, 13_001)]);
        assert_eq!(linux.insert(9001, 1000, false, true), Placement::Held);
        assert_eq!(report(linux)[..2], [(8001, 11_001), (3001, 4001)]);
        assert_eq!(linux.insert(2001, 1000, false, true), Placement::AlreadyHeld);
        assert_eq!(
            report(linux)[..2],
            [(2001, 3001), (2001, 4001)],
            "the duplicate, and its block"
        );
        assert_eq!(linux.held().len(), 4);
    }

    #[test]
    fn rfc_2883_section_4_duplicates_come_before_all_and_once() {
        let mut stream = Reassembly::new(1, false);
        stream.insert(1, 1000, false, true);
        stream.insert(3001, 1000, false, true);
        assert_eq!(stream.insert(1, 1000, false, true), Placement::Duplicate);
        assert_eq!(report(&stream), [(1, 1001), (3001, 4001)]);
        stream.clear_duplicate();
        assert_eq!(stream.insert(3001, 1000, false, true), Placement::AlreadyHeld);
        assert_eq!(report(&stream), [(3001, 4001), (3001, 4001)]);
        stream.clear_duplicate();
        assert_eq!(stream.insert(501, 2000, false, true), Placement::Fills);
        assert_eq!((stream.next(), report(&stream)), (2501, vec![(501, 1001), (3001, 4001)]));
    }

    proptest! {
        #[test]
        fn it_holds_what_came(packets in prop::collection::vec((0_u64..60, 1_u32..9), 1..120)) {
            let mut stream = Reassembly::new(1, false);
            let mut model = BTreeSet::new();
            for (start, len) in packets {
                stream.insert(1 + start, len, false, true);
                model.extend(1 + start..1 + start + u64::from(len));
                let next = (1..).find(|byte| !model.contains(byte)).unwrap();
                prop_assert_eq!(stream.next(), next);
                let held: BTreeSet<_> =
                    stream.held().iter().flat_map(|b| b.start..b.end).collect();
                let beyond: BTreeSet<_> = model.iter().copied().filter(|&b| b > next).collect();
                prop_assert_eq!(&held, &beyond);
                for pair in stream.held().windows(2) {
                    prop_assert!(pair[0].end < pair[1].start);
                }
                for block in stream.recent.as_slice() {
                    prop_assert!(stream.held().iter().any(|held| held.contains(*block)));
                }
            }
        }
    }
}
