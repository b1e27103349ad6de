//! The directions that are compared: as many as there is room for, those with most packets.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};

use super::passage::Record;
use crate::segment::{Endpoint, Segment};

/// More directions than this are not kept; those with the fewest packets go first.
const MAX_DIRECTIONS: usize = 1 << 17;

/// What is known of each direction, found by its index.
#[derive(Debug, Default)]
pub(super) struct Directions {
    records: Vec<Record>,
    /// The latest record of a direction.
    by_ends: HashMap<(Endpoint, Endpoint), usize>,
    /// Directions that went because there were too many.
    pub(super) dropped: u64,
}

impl Directions {
    /// Whether there is no room for one more.
    pub(super) fn are_full(&self) -> bool {
        self.records.len() >= MAX_DIRECTIONS
    }

    /// Drops the half with the fewest packets, of equal ones those that came later; where each index is now.
    pub(super) fn thin_out(&mut self) -> Vec<Option<usize>> {
        let mut order: Vec<usize> = (0..self.records.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(self.records[index].packets()));
        let kept = order.len() / 2;
        let mut indices = vec![None; order.len()];
        for &index in &order[..kept] {
            indices[index] = Some(index);
        }
        for (now, index) in indices.iter_mut().flatten().enumerate() {
            *index = now;
        }
        self.dropped += (order.len() - kept) as u64;
        let mut old = 0..;
        self.records.retain(|_| old.next().is_some_and(|index| indices[index].is_some()));
        self.by_ends.retain(|_, index| match indices[*index] {
            Some(now) => {
                *index = now;
                true
            }
            None => false,
        });
        indices
    }

    /// The index of the segment's direction; `connection` is its number where the tap knows it.
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
        self.records.push(Record::new(connection, segment.source));
        self.by_ends.insert(ends, self.records.len() - 1);
        self.records.len() - 1
    }

    pub(super) fn all(&self) -> &[Record] {
        &self.records
    }
}

impl Index<usize> for Directions {
    type Output = Record;

    fn index(&self, index: usize) -> &Record {
        &self.records[index]
    }
}

impl IndexMut<usize> for Directions {
    fn index_mut(&mut self, index: usize) -> &mut Record {
        &mut self.records[index]
    }
}
