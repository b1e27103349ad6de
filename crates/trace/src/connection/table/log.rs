//! Where connections are many, what their segments said waits until there are some hundred of a connection, or it
//! ends: what is known of thousands of connections does not fit into a processor's caches, and following a segment
//! fetches some thirty lines of it from memory. Those of a hundred at once prefetch hardly more. Most connections of
//! most captures are shorter than that: they are followed at one go, and take a kilobyte until then.

use crate::connection::encoding::{Encoder, LONGEST, SHORT, Short};
use crate::connection::analyzer::PREFETCHED;
use crate::segment::{Nanos, Segment};

/// Memory is taken by so many bytes.
const CHUNK: usize = 2 * LINE;
const LINE: usize = 64;
/// What often comes next: an acknowledgement and what it lets out.
const NEXT: usize = 3 * SHORT - 1;
/// From so many bytes on it is time to follow them.
const DUE_BYTES: usize = 28 * LINE;
/// More than this does not wait.
pub(in crate::connection) const MAX_BYTES: usize = 32 * LINE;
/// Chunks are made so many at a time.
const SLAB: usize = 64;
/// No chunk.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
#[repr(align(64))] // lines of memory
struct Chunk([u8; CHUNK]);

/// Memory for the logs of all connections.
#[derive(Debug)]
pub(super) struct Chunks {
    /// So many at a time, which stay where they are: a vector of all would be copied as it grows.
    slabs: Vec<Box<[Chunk; SLAB]>>,
    /// Beside each: the one that follows it in its log, or among those that are free.
    after: Vec<u32>,
    free: u32,
}

/// What waits of a connection.
#[derive(Clone, Debug)]
#[repr(align(64))] // one line of memory
pub(super) struct Log {
    encoder: Encoder,
    bytes: u16,
    first: u32,
    latest: u32,
}

impl Default for Log {
    fn default() -> Self {
        Self { encoder: Encoder::default(), bytes: 0, first: NONE, latest: NONE }
    }
}

impl Log {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Bytes that wait.
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.bytes.into()
    }
}

/// What becomes of a log by one segment more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogState {
    Short,
    /// It is time to follow it: it has just become so.
    Due,
    /// Nothing more fits.
    Full,
}

impl Chunks {
    pub(super) fn new() -> Self {
        Self { slabs: Vec::new(), after: Vec::new(), free: NONE }
    }

    /// One that is free.
    fn take(&mut self) -> u32 {
        if self.free == NONE {
            self.slabs.push(Box::new([const { Chunk([0; CHUNK]) }; SLAB]));
            // Not more than a few for each connection.
            let first = self.after.len() as u32;
            self.after.extend((1..SLAB as u32).map(|next| first + next).chain([NONE]));
            self.free = first;
        }
        let index = self.free;
        self.free = std::mem::replace(&mut self.after[index as usize], NONE);
        index
    }

    #[inline(always)]
    fn get(&self, index: u32) -> Option<&[u8; CHUNK]> {
        let index = index as usize;
        self.slabs.get(index / SLAB).map(|slab| &slab[index % SLAB].0)
    }

    #[inline(always)]
    fn get_mut(&mut self, index: u32) -> Option<&mut [u8; CHUNK]> {
        let index = index as usize;
        self.slabs.get_mut(index / SLAB).map(|slab| &mut slab[index % SLAB].0)
    }

    /// Writes a segment into a log; `last`: the latest time of those before it.
    #[inline]
    pub(super) fn add(
        &mut self,
        log: &mut Log,
        segment: &Segment,
        from: usize,
        last: Nanos,
    ) -> LogState {
        let before = log.bytes();
        let used = before % CHUNK;
        let length = before
            + match log.encoder.short(segment, from, last) {
                Some(short) => {
                    let latest = self.get_mut(log.latest).filter(|_| used > 0);
                    let room = latest.and_then(|chunk| chunk.get_mut(used..)?.first_chunk_mut());
                    match room {
                        Some(room) => short.write_to(room),
                        None => self.add_parts(log, used, &short),
                    }
                    short.len()
                }
                None => self.add_long(log, used, segment, from),
            };
        log.bytes = length as u16;
        match length {
            _ if length + LONGEST > MAX_BYTES => LogState::Full,
            _ if before < DUE_BYTES && length >= DUE_BYTES => LogState::Due,
            _ => LogState::Short,
        }
    }

    /// Adds what does not fit into the latest chunk.
    #[inline(never)]
    fn add_parts(&mut self, log: &mut Log, used: usize, short: &Short) {
        let mut bytes = [0; SHORT];
        short.write_to(&mut bytes);
        self.add_bytes(log, used, &bytes[..short.len()]);
    }

    /// Adds a segment that is unlike the one before it; how many bytes that takes.
    #[inline(never)]
    fn add_long(&mut self, log: &mut Log, used: usize, segment: &Segment, from: usize) -> usize {
        let long = log.encoder.long(segment, from);
        self.add_bytes(log, used, long.bytes());
        long.bytes().len()
    }

    fn add_bytes(&mut self, log: &mut Log, mut used: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if used == 0 {
                let more = self.take();
                match log.first {
                    NONE => log.first = more,
                    _ => self.after[log.latest as usize] = more,
                }
                log.latest = more;
            }
            let (now, rest) = bytes.split_at(bytes.len().min(CHUNK - used));
            if let Some(chunk) = self.get_mut(log.latest) {
                chunk[used..used + now.len()].copy_from_slice(now);
            }
            (bytes, used) = (rest, 0);
        }
    }

    /// Takes what waits; it waits no longer.
    pub(super) fn release(&mut self, log: &mut Log, bytes: &mut Vec<u8>) {
        let mut left = log.bytes();
        let mut index = std::mem::take(log).first;
        while left > 0 {
            let Some(chunk) = self.get(index) else { return };
            let count = left.min(CHUNK);
            bytes.extend_from_slice(&chunk[..count]);
            left -= count;
            let free = std::mem::replace(&mut self.free, index);
            index = std::mem::replace(&mut self.after[index as usize], free);
        }
    }

    /// Fetches from memory where the next few segments go; what comes of it says nothing.
    #[inline]
    pub(super) fn prefetch_next(&self, log: &Log) -> u64 {
        let Some(chunk) = self.get(log.latest) else { return 0 };
        let next = log.bytes() % CHUNK;
        u64::from(chunk[next]) + u64::from(chunk[(next + NEXT).min(CHUNK - 1)])
    }

    /// The same of what waits in several logs, of each a chunk by lifecycle: where a chunk's successor is, has to be
    /// fetched as well.
    pub(super) fn prefetch<'a>(&self, logs: impl Iterator<Item = &'a Log>) -> u64 {
        let mut indices = [NONE; PREFETCHED];
        indices.iter_mut().zip(logs).for_each(|(index, log)| *index = log.first);
        let mut sum = 0;
        for _ in 0..MAX_BYTES / CHUNK {
            for index in &mut indices {
                if let Some(chunk) = self.get(*index) {
                    let lines = chunk.iter().step_by(LINE);
                    sum = lines.fold(sum, |sum, byte| sum + u64::from(*byte));
                    *index = self.after[*index as usize];
                }
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::encoding::read;
    use crate::frame::BLANK;
    use proptest::prelude::*;

    proptest! {
        /// Logs that grow beside each other, and are released and begun again.
        #[test]
        fn logs_share_memory(steps in prop::collection::vec((0_usize..4, 0_u32..9, any::<u32>()), 0..600)) {
            let mut chunks = Chunks::new();
            let mut logs = vec![(Log::default(), Vec::new()); 4];
            for (which, release, acknowledgement) in steps {
                let (log, expected) = &mut logs[which];
                let segment = Segment { acknowledgement, ..BLANK };
                expected.push(segment);
                let length = chunks.add(log, &segment, 0, 0);
                if release == 0 || length == LogState::Full {
                    let (mut bytes, mut found) = (Vec::new(), Vec::new());
                    chunks.release(log, &mut bytes);
                    prop_assert!(bytes.len() <= MAX_BYTES);
                    read(&bytes, 0, [BLANK.source; 2], |segment| found.push(*segment));
                    prop_assert_eq!(&found, &std::mem::take(expected));
                }
            }
            prop_assert!(chunks.after.len() <= (logs.len() * MAX_BYTES / CHUNK).next_multiple_of(SLAB));
        }
    }
}
