//! Hash table from keys to slots: open addressing with small entries, so that a lookup touches
//! little memory besides the connection itself.

/// Tag of the hash, and the slot plus one; 0 marks an empty entry.
type IndexEntry = (u32, u32);

/// Slots by hash. The caller checks whether a slot has the right key.
#[derive(Debug)]
pub(super) struct SlotIndex {
    entries: Vec<IndexEntry>,
    len: usize,
}

const MIN_ENTRIES: usize = 16;

impl SlotIndex {
    pub(super) fn new() -> Self {
        Self { entries: vec![(0, 0); MIN_ENTRIES], len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the first slot with this hash for which `is` is true.
    #[inline]
    pub(super) fn find(&self, hash: u64, is: impl Fn(usize) -> bool) -> Option<usize> {
        let (mut position, tag) = self.home_and_tag(hash);
        loop {
            let (found_tag, slot) = self.entries[position];
            if slot == 0 {
                return None;
            }
            let slot = slot as usize - 1;
            if found_tag == tag && is(slot) {
                return Some(slot);
            }
            position = self.next_position(position);
        }
    }

    /// Prefetches the likely entry. The returned value only prevents the compiler from removing the
    /// read.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) -> u64 {
        self.entries[self.home_and_tag(hash).0].0.into()
    }

    /// Returns the most likely slot.
    #[inline(always)]
    pub(super) fn likely_slot(&self, hash: u64) -> usize {
        let (mut position, tag) = self.home_and_tag(hash);
        while self.entries[position].0 != tag && self.entries[position].1 != 0 {
            position = self.next_position(position);
        }
        (self.entries[position].1 as usize).wrapping_sub(1)
    }

    pub(super) fn insert(&mut self, hash: u64, slot: usize) {
        if (self.len + 1) * 4 > self.entries.len() * 3 {
            self.grow();
        }
        let (position, tag) = self.home_and_tag(hash);
        // More than 2^32 connections do not fit into memory.
        self.put_entry(position, (tag, slot as u32 + 1));
        self.len += 1;
    }

    /// Removes the entry of `slot`, which must be present.
    pub(super) fn remove(&mut self, hash: u64, slot: usize) {
        let (mut hole, tag) = self.home_and_tag(hash);
        while self.entries[hole] != (tag, slot as u32 + 1) {
            if self.entries[hole].1 == 0 {
                return;
            }
            hole = self.next_position(hole);
        }
        self.len -= 1;
        let mut position = hole;
        loop {
            position = self.next_position(position);
            let entry = self.entries[position];
            if entry.1 == 0 {
                self.entries[hole] = (0, 0);
                return;
            }
            // The entry may move back unless its home position is after the hole.
            let mask = self.entries.len() - 1;
            let start = self.home_position(entry.0);
            if position.wrapping_sub(start) & mask >= position.wrapping_sub(hole) & mask {
                self.entries[hole] = entry;
                hole = position;
            }
        }
    }

    #[inline(always)]
    fn home_and_tag(&self, hash: u64) -> (usize, u32) {
        let tag = (hash >> 32) as u32;
        (self.home_position(tag), tag)
    }

    #[inline(always)]
    fn home_position(&self, tag: u32) -> usize {
        tag as usize & (self.entries.len() - 1)
    }

    #[inline(always)]
    fn next_position(&self, position: usize) -> usize {
        (position + 1) & (self.entries.len() - 1)
    }

    fn put_entry(&mut self, mut position: usize, entry: IndexEntry) {
        while self.entries[position].1 != 0 {
            position = self.next_position(position);
        }
        self.entries[position] = entry;
    }

    #[cold]
    fn grow(&mut self) {
        let twice = vec![(0, 0); self.entries.len() * 2];
        let old = std::mem::replace(&mut self.entries, twice);
        for entry in old.into_iter().filter(|entry| entry.1 != 0) {
            self.put_entry(self.home_position(entry.0), entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn index_matches_hash_map(steps in prop::collection::vec((0_u64..40, any::<bool>()), 0..300)) {
            let mut index = SlotIndex::new();
            let mut map = HashMap::new();
            // Few distinct hashes, for many collisions.
            let hash = |key: u64| (key % 7) << 32 | (key % 3) << 34;
            for (key, insert) in steps {
                let slot = key as usize;
                match (insert, map.contains_key(&key)) {
                    (true, false) => {
                        index.insert(hash(key), slot);
                        map.insert(key, slot);
                    }
                    (false, true) => {
                        index.remove(hash(key), slot);
                        map.remove(&key);
                    }
                    _ => {}
                }
                prop_assert_eq!(index.len(), map.len());
                for key in 0..40 {
                    let result = index.find(hash(key), |slot| slot == key as usize);
                    prop_assert_eq!(result, map.get(&key).copied());
                }
            }
        }
    }
}
