//! The compared directions. Their number is limited; directions with the most packets are
//! preferred.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};

use super::direction_record::DirectionRecord;
use crate::analysis::{MAX_ETHERNET_PAYLOAD, full_payload_by_mss, infer_full_payload};
use crate::segment::{Endpoint, Flags, Segment};

/// Maximum number of directions; the directions with the fewest packets are dropped first.
const MAX_DIRECTIONS: usize = 1 << 17;

/// Records of the directions, by index.
#[derive(Debug, Default)]
pub(super) struct DirectionRecords {
    records: Vec<DirectionRecord>,
    /// Latest record of each direction.
    by_ends: HashMap<(Endpoint, Endpoint), usize>,
    /// Number of directions dropped because there were too many.
    pub(super) dropped: u64,
}

impl DirectionRecords {
    /// Whether the maximum number is reached.
    pub(super) fn is_full(&self) -> bool {
        self.records.len() >= MAX_DIRECTIONS
    }

    /// Drops the half of the directions with the fewest packets; if numbers are equal, later
    /// directions are dropped first. Returns the new index of each record.
    pub(super) fn thin_out_points(&mut self) -> Vec<Option<usize>> {
        let mut order: Vec<usize> = (0..self.records.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(self.records[index].frames));
        let kept = order.len() / 2;
        let mut indices = vec![None; order.len()];
        for &index in &order[..kept] {
            indices[index] = Some(index);
        }
        for (new, index) in indices.iter_mut().flatten().enumerate() {
            *index = new;
        }
        self.dropped += (order.len() - kept) as u64;
        let mut old = 0..;
        self.records.retain(|_| old.next().is_some_and(|index| indices[index].is_some()));
        self.by_ends.retain(|_, index| match indices[*index] {
            Some(new) => {
                *index = new;
                true
            }
            None => false,
        });
        indices
    }

    /// Index of the segment's direction, added if missing. `connection`: number of its connection,
    /// if known.
    pub(super) fn find_or_insert(&mut self, segment: &Segment, connection: Option<u64>) -> usize {
        let ends = (segment.source, segment.destination);
        if let Some(&index) = self.by_ends.get(&ends) {
            let record = &mut self.records[index];
            if connection.is_none() || record.connection == connection {
                return index;
            }
            if record.connection.is_none() {
                record.connection = connection;
                return index;
            }
        }
        self.records.push(DirectionRecord::new(connection, segment.source));
        self.by_ends.insert(ends, self.records.len() - 1);
        self.records.len() - 1
    }

    /// Counts a frame of the direction, and learns how much payload a full packet has.
    #[inline]
    pub(super) fn note_frame(&mut self, index: usize, segment: &Segment) {
        let record = &mut self.records[index];
        record.frames += 1;
        if segment.flags.contains_any(Flags::SYN) {
            record.mss = segment.options.mss.or(record.mss);
        } else if segment.payload > record.max_single_payload {
            self.learn_full_payload(index, segment);
        }
    }

    #[cold]
    fn learn_full_payload(&mut self, index: usize, segment: &Segment) {
        let reverse = self.by_ends.get(&(segment.destination, segment.source));
        let mss = reverse.and_then(|&reverse| self.records[reverse].mss);
        let record = &mut self.records[index];
        let full = match mss {
            Some(mss) => Some(full_payload_by_mss(segment, mss)),
            None if segment.payload > MAX_ETHERNET_PAYLOAD => infer_full_payload(segment),
            None => None,
        };
        record.full_payload = full.unwrap_or(0);
        record.max_single_payload = full.map_or(MAX_ETHERNET_PAYLOAD, |_| u32::MAX);
    }

    pub(super) fn records(&self) -> &[DirectionRecord] {
        &self.records
    }
}

impl Index<usize> for DirectionRecords {
    type Output = DirectionRecord;

    fn index(&self, index: usize) -> &DirectionRecord {
        &self.records[index]
    }
}

impl IndexMut<usize> for DirectionRecords {
    fn index_mut(&mut self, index: usize) -> &mut DirectionRecord {
        &mut self.records[index]
    }
}
