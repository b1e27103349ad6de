//! Where connections are many, what their segments said waits until there are some hundred of a connection, or it
//! ends: what is known of thousands of connections does not fit into a processor's caches, and following a segment
//! fetches some thirty lines of it from memory. Those of a hundred at once fetch hardly more. Most connections of
//! most captures are shorter than that: they are followed at one go, and take a kilobyte until then.
//!
//! The latest bytes are beside what else is at hand of the connection ([`Lane`](super::lane::Lane)), and go from there
//! when there are some, so that a segment waits for no other memory.

use crate::connection::encoding::{Encoder, LONGEST, SHORT};
use crate::segment::{Nanos, Segment};

/// So many bytes go at a time;
const UNIT: usize = 48;
/// memory is taken by so many.
const CHUNK: usize = 4 * UNIT;
const LINE: usize = 64;
/// From so many bytes on it is time to follow them.
const ENOUGH: usize = 9 * CHUNK;
/// More than this does not wait.
pub(in crate::connection) const MOST: usize = 10 * CHUNK;
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
#[repr(align(64))] // two lines of memory
pub(super) struct Log {
    encoder: Encoder,
    first: u32,
    latest: u32,
    /// Bytes in all, and how many of them are in the tail.
    bytes: u16,
    used: u8,
    /// The latest, fewer than go at a time, and room for what is written at once.
    tail: [u8; UNIT + SHORT],
}

impl Default for Log {
    fn default() -> Self {
        let tail = [0; UNIT + SHORT];
        Self { encoder: Encoder::default(), first: NONE, latest: NONE, bytes: 0, used: 0, tail }
    }
}

impl Log {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Fetches it from memory; what comes of it says nothing.
    #[inline(always)]
    pub(super) fn fetch(&self) -> u64 {
        u64::from(self.bytes) + u64::from(self.tail[UNIT + SHORT - 1])
    }

    /// Bytes that are no longer in the tail.
    fn gone(&self) -> usize {
        usize::from(self.bytes) - usize::from(self.used)
    }
}

/// What becomes of a log by one segment more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
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
        let place = self.free;
        self.free = std::mem::replace(&mut self.after[place as usize], NONE);
        place
    }

    #[inline(always)]
    fn get(&self, place: u32) -> Option<&[u8; CHUNK]> {
        let place = place as usize;
        self.slabs.get(place / SLAB).map(|slab| &slab[place % SLAB].0)
    }

    #[inline(always)]
    fn get_mut(&mut self, place: u32) -> Option<&mut [u8; CHUNK]> {
        let place = place as usize;
        self.slabs.get_mut(place / SLAB).map(|slab| &mut slab[place % SLAB].0)
    }

    /// Writes a segment into a log; `last`: the latest time of those before it.
    #[inline]
    pub(super) fn add(
        &mut self,
        log: &mut Log,
        segment: &Segment,
        from: usize,
        last: Nanos,
    ) -> Length {
        let before = usize::from(log.bytes);
        match log.encoder.short(segment, from, last) {
            Some(short) => {
                if let Some(room) = room(log) {
                    short.write_to(room);
                }
                self.added(log, short.len());
            }
            None => self.add_long(log, segment, from),
        }
        match usize::from(log.bytes) {
            length if length + LONGEST > MOST => Length::Full,
            length if before < ENOUGH && length >= ENOUGH => Length::Due,
            _ => Length::Short,
        }
    }

    /// Adds a segment that is unlike the one before it.
    #[inline(never)]
    fn add_long(&mut self, log: &mut Log, segment: &Segment, from: usize) {
        let long = log.encoder.long(segment, from);
        for part in long.bytes().chunks(SHORT) {
            if let Some(room) = room(log) {
                room[..part.len()].copy_from_slice(part);
            }
            self.added(log, part.len());
        }
    }

    /// So many bytes were written into a log's tail.
    #[inline(always)]
    fn added(&mut self, log: &mut Log, length: usize) {
        log.bytes += length as u16;
        log.used += length as u8;
        if usize::from(log.used) >= UNIT {
            self.empty(log);
        }
    }

    /// What goes at a time goes from the tail.
    #[inline]
    fn empty(&mut self, log: &mut Log) {
        let at = log.gone() % CHUNK;
        if at == 0 {
            let more = self.take();
            match log.first {
                NONE => log.first = more,
                _ => self.after[log.latest as usize] = more,
            }
            log.latest = more;
        }
        if let Some(chunk) = self.get_mut(log.latest) {
            chunk[at..at + UNIT].copy_from_slice(&log.tail[..UNIT]);
        }
        log.tail.copy_within(UNIT.., 0);
        log.used -= UNIT as u8;
    }

    /// Takes what waits; it waits no longer.
    pub(super) fn release(&mut self, log: &mut Log, bytes: &mut Vec<u8>) {
        let Log { mut first, tail, used, .. } = *log;
        let mut left = log.gone();
        *log = Log::default();
        while let Some(chunk) = self.get(first).filter(|_| left > 0) {
            let count = left.min(CHUNK);
            bytes.extend_from_slice(&chunk[..count]);
            left -= count;
            let free = std::mem::replace(&mut self.free, first);
            first = std::mem::replace(&mut self.after[first as usize], free);
        }
        bytes.extend_from_slice(&tail[..usize::from(used)]);
    }

    /// Fetches from memory what waits, but for the log itself; what comes of it says nothing.
    #[inline]
    pub(super) fn fetch(&self, log: &Log) -> u64 {
        let (mut place, mut sum) = (log.first, 0);
        while let Some(chunk) = self.get(place) {
            let lines = chunk.iter().step_by(LINE);
            sum = lines.fold(sum, |sum, byte| sum + u64::from(*byte));
            place = self.after[place as usize];
        }
        sum
    }
}

/// Where the next bytes go.
#[inline(always)]
fn room(log: &mut Log) -> Option<&mut [u8; SHORT]> {
    log.tail.get_mut(usize::from(log.used)..)?.first_chunk_mut()
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
                if release == 0 || length == Length::Full {
                    let (mut bytes, mut found) = (Vec::new(), Vec::new());
                    chunks.release(log, &mut bytes);
                    prop_assert!(bytes.len() <= MOST);
                    read(&bytes, 0, [BLANK.source; 2], |segment| found.push(*segment));
                    prop_assert_eq!(&found, &std::mem::take(expected));
                }
            }
            prop_assert!(chunks.after.len() <= (logs.len() * MOST / CHUNK).next_multiple_of(SLAB));
        }
    }
}
