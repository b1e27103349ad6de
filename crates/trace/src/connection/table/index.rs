//! From a key to its slot: an open table of small entries, so that looking one up touches little memory
//! besides the connection itself.

/// What is kept of a hash, and a slot plus one; 0 is an empty entry.
type Entry = (u32, u32);

/// Places by hash. Whether a slot holds what is looked for, the caller knows.
#[derive(Debug)]
pub(super) struct Index {
    entries: Vec<Entry>,
    len: usize,
}

const MIN_ENTRIES: usize = 16;

impl Index {
    pub(super) fn new() -> Self {
        Self { entries: vec![(0, 0); MIN_ENTRIES], len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The first slot with this hash that `is` the one.
    #[inline]
    pub(super) fn find(&self, hash: u64, is: impl Fn(usize) -> bool) -> Option<usize> {
        let (mut position, tag) = self.start(hash);
        loop {
            let (found, slot) = self.entries[position];
            if slot == 0 {
                return None;
            }
            let slot = slot as usize - 1;
            if found == tag && is(slot) {
                return Some(slot);
            }
            position = self.after(position);
        }
    }

    /// Fetches from memory where it is likely to be found; what comes of it says nothing.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) -> u64 {
        self.entries[self.start(hash).0].0.into()
    }

    /// The slot that is most likely to be found.
    #[inline(always)]
    pub(super) fn guess(&self, hash: u64) -> usize {
        let (mut position, tag) = self.start(hash);
        while self.entries[position].0 != tag && self.entries[position].1 != 0 {
            position = self.after(position);
        }
        (self.entries[position].1 as usize).wrapping_sub(1)
    }

    pub(super) fn insert(&mut self, hash: u64, slot: usize) {
        if (self.len + 1) * 4 > self.entries.len() * 3 {
            self.grow();
        }
        let (position, tag) = self.start(hash);
        // More connections than that do not fit into memory.
        self.put(position, (tag, slot as u32 + 1));
        self.len += 1;
    }

    /// Takes out the entry of `slot`, which must be there.
    pub(super) fn remove(&mut self, hash: u64, slot: usize) {
        let (mut hole, tag) = self.start(hash);
        while self.entries[hole] != (tag, slot as u32 + 1) {
            if self.entries[hole].1 == 0 {
                return;
            }
            hole = self.after(hole);
        }
        self.len -= 1;
        let mut position = hole;
        loop {
            position = self.after(position);
            let entry = self.entries[position];
            if entry.1 == 0 {
                self.entries[hole] = (0, 0);
                return;
            }
            // It may move back unless its own start lies behind the hole.
            let mask = self.entries.len() - 1;
            let start = self.home(entry.0);
            if position.wrapping_sub(start) & mask >= position.wrapping_sub(hole) & mask {
                self.entries[hole] = entry;
                hole = position;
            }
        }
    }

    #[inline(always)]
    fn start(&self, hash: u64) -> (usize, u32) {
        let tag = (hash >> 32) as u32;
        (self.home(tag), tag)
    }

    #[inline(always)]
    fn home(&self, tag: u32) -> usize {
        tag as usize & (self.entries.len() - 1)
    }

    #[inline(always)]
    fn after(&self, position: usize) -> usize {
        (position + 1) & (self.entries.len() - 1)
    }

    fn put(&mut self, mut position: usize, entry: Entry) {
        while self.entries[position].1 != 0 {
            position = self.after(position);
        }
        self.entries[position] = entry;
    }

    #[cold]
    fn grow(&mut self) {
        let twice = vec![(0, 0); self.entries.len() * 2];
        let old = std::mem::replace(&mut self.entries, twice);
        for entry in old.into_iter().filter(|entry| entry.1 != 0) {
            self.put(self.home(entry.0), entry);
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
        fn it_is_a_map(steps in prop::collection::vec((0_u64..40, any::<bool>()), 0..300)) {
            let mut index = Index::new();
            let mut map = HashMap::new();
            // Hashes of few values, so that many fall on each other.
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
                    let found = index.find(hash(key), |slot| slot == key as usize);
                    prop_assert_eq!(found, map.get(&key).copied());
                }
            }
        }
    }
}
