//! Where connections are many, what their segments said waits until there are some hundred of a connection, or it
//! ends: what is known of thousands of connections does not fit into a processor's caches, and following a segment
//! fetches some thirty lines of it from memory. Those of a hundred at once fetch hardly more. Most connections of
//! most captures are shorter than that: they are followed at one go, and take a kilobyte until then.

use super::encoding::{Encoder, LONGEST, PLAIN, has_more};
use crate::segment::{Nanos, Segment};

/// Memory is taken by so many bytes.
const CHUNK: usize = 4 * LINE;
const LINE: usize = 64;
/// From so many bytes on it is time to follow them.
const ENOUGH: usize = 5 * CHUNK;
/// More than this does not wait.
pub(super) const MOST: usize = 6 * CHUNK;
/// No chunk.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
#[repr(align(64))] // lines of memory
struct Chunk([u8; CHUNK]);

/// Memory for the logs of all connections.
#[derive(Debug)]
pub(super) struct Chunks {
    chunks: Vec<Chunk>,
    /// Beside each: the one that follows it in its log, or among those that are free.
    after: Vec<u32>,
    free: u32,
}

/// What waits of a connection.
#[derive(Clone, Debug)]
#[repr(align(64))] // one line of memory
pub(super) struct Log {
    encoder: Encoder,
    first: u32,
    latest: u32,
}

impl Default for Log {
    fn default() -> Self {
        Self { encoder: Encoder::default(), first: NONE, latest: NONE }
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
        self.encoder.written().into()
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
        Self { chunks: Vec::new(), after: Vec::new(), free: NONE }
    }

    /// One that is free.
    fn take(&mut self) -> u32 {
        if self.free == NONE {
            self.chunks.push(Chunk([0; CHUNK]));
            self.after.push(NONE);
            // Not more than a few for each connection.
            return (self.chunks.len() - 1) as u32;
        }
        let place = self.free;
        self.free = std::mem::replace(&mut self.after[place as usize], NONE);
        place
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
        let before = log.bytes();
        let used = before % CHUNK;
        let latest = self.chunks.get_mut(log.latest as usize).filter(|_| used > 0);
        let room = latest.and_then(|chunk| chunk.0.get_mut(used..used + PLAIN));
        match room.filter(|_| !has_more(segment)) {
            Some(room) => _ = log.encoder.write(segment, from, last, room),
            None => self.add_slowly(log, segment, from, last),
        }
        match log.bytes() {
            length if length + LONGEST > MOST => Length::Full,
            length if before < ENOUGH && length >= ENOUGH => Length::Due,
            _ => Length::Short,
        }
    }

    /// The same of one that may not fit into the latest chunk.
    #[inline(never)]
    fn add_slowly(&mut self, log: &mut Log, segment: &Segment, from: usize, last: Nanos) {
        let (mut used, mut room) = (log.bytes() % CHUNK, [0; LONGEST]);
        let length = log.encoder.write(segment, from, last, &mut room);
        let mut bytes = &room[..length];
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
            let chunk = &mut self.chunks[log.latest as usize].0;
            chunk[used..used + now.len()].copy_from_slice(now);
            (bytes, used) = (rest, 0);
        }
    }

    /// Takes what waits; it waits no longer.
    pub(super) fn release(&mut self, log: &mut Log, bytes: &mut Vec<u8>) {
        let mut left = log.bytes();
        let mut place = std::mem::take(log).first;
        while left > 0 {
            let chunk = &self.chunks[place as usize].0;
            let count = left.min(CHUNK);
            bytes.extend_from_slice(&chunk[..count]);
            left -= count;
            let free = std::mem::replace(&mut self.free, place);
            place = std::mem::replace(&mut self.after[place as usize], free);
        }
    }

    /// Fetches from memory where the next segment goes; what comes of it says nothing.
    #[inline]
    pub(super) fn fetch_next(&self, log: &Log) -> u64 {
        let chunk = self.chunks.get(log.latest as usize);
        chunk.map_or(0, |chunk| chunk.0[log.bytes() % CHUNK].into())
    }

    /// The same of what waits.
    #[inline]
    pub(super) fn fetch(&self, log: &Log) -> u64 {
        let (mut place, mut sum) = (log.first, 0);
        while let Some(chunk) = self.chunks.get(place as usize) {
            let lines = chunk.0.iter().step_by(LINE);
            sum = lines.fold(sum, |sum, byte| sum + u64::from(*byte));
            place = self.after[place as usize];
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
                if release == 0 || length == Length::Full {
                    let (mut bytes, mut found) = (Vec::new(), Vec::new());
                    chunks.release(log, &mut bytes);
                    prop_assert!(bytes.len() <= MOST);
                    read(&bytes, 0, [BLANK.source; 2], |segment| found.push(*segment));
                    prop_assert_eq!(&found, &std::mem::take(expected));
                }
            }
            prop_assert!(chunks.chunks.len() <= logs.len() * MOST / CHUNK);
        }
    }
}
