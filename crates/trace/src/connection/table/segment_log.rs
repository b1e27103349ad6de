//! Logs of segments save 70 % of the CPU time and 60 % of the memory of the benchmark "library, 50,000
//! connections". With many connections, segments are stored until a connection ends or has some
//! hundred segments. The state of thousands of connections does not fit into the caches, and
//! analysing one segment fetches about thirty cache lines; analysing a hundred together fetches
//! hardly more. In most captures, most connections are shorter: such a connection is analysed in
//! one go when it ends, and needs about a kilobyte until then.

use crate::connection::segment_encoding::{LONGEST, SHORT, SegmentEncoder, ShortSegmentForm};
use crate::segment::{Nanos, Segment};

/// Bytes per chunk.
const CHUNK: usize = 2 * LINE;
const LINE: usize = 64;
/// Bytes that usually follow: an acknowledgement and the segments that it triggers.
const LOOKAHEAD: usize = 3 * SHORT - 1;
/// Maximum bytes of a log.
pub(in crate::connection) const MAX_BYTES: usize = 32 * LINE;
/// Number of chunks allocated together.
const SLAB: usize = 64;
/// Marks the absence of a chunk.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
#[repr(align(64))] // cache lines
struct LogChunk([u8; CHUNK]);

/// Memory for the logs of all connections.
#[derive(Debug)]
pub(super) struct LogChunks {
    /// Slabs stay in place; a single vector would be copied when it grows.
    slabs: Vec<Box<[LogChunk; SLAB]>>,
    /// For each chunk: the next chunk of its log, or of the free list.
    next: Vec<u32>,
    free: u32,
}

/// Segments of a connection that have not been analysed.
#[derive(Clone, Debug)]
#[repr(align(64))] // one cache line
pub(super) struct SegmentLog {
    encoder: SegmentEncoder,
    bytes: u16,
    first: u32,
    latest: u32,
}

impl Default for SegmentLog {
    fn default() -> Self {
        Self { encoder: SegmentEncoder::default(), bytes: 0, first: NONE, latest: NONE }
    }
}

impl SegmentLog {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.stored_bytes() == 0
    }

    /// Stored bytes.
    #[inline(always)]
    fn stored_bytes(&self) -> usize {
        self.bytes.into()
    }
}

impl LogChunks {
    pub(super) fn new() -> Self {
        Self { slabs: Vec::new(), next: Vec::new(), free: NONE }
    }

    /// Takes a free chunk.
    fn allocate_chunk(&mut self) -> u32 {
        if self.free == NONE {
            self.slabs.push(Box::new([const { LogChunk([0; CHUNK]) }; SLAB]));
            // Limited by the number of connections; fits into 32 bits.
            let first = self.next.len() as u32;
            self.next.extend((1..SLAB as u32).map(|next| first + next).chain([NONE]));
            self.free = first;
        }
        let index = self.free;
        self.free = std::mem::replace(&mut self.next[index as usize], NONE);
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

    /// Appends a segment to a log. `last`: latest time of the previous segments. Returns true if the
    /// log has no room for another segment.
    #[inline]
    pub(super) fn append_segment(
        &mut self,
        log: &mut SegmentLog,
        segment: &Segment,
        from: usize,
        last: Nanos,
    ) -> bool {
        let before = log.stored_bytes();
        let used = before % CHUNK;
        let length = before
            + match log.encoder.encode_short(segment, from, last) {
                Some(short) => {
                    let latest = self.get_mut(log.latest).filter(|_| used > 0);
                    let room = latest.and_then(|chunk| chunk.get_mut(used..)?.first_chunk_mut());
                    match room {
                        Some(room) => short.write_to(room),
                        None => self.append_split_segment(log, used, &short),
                    }
                    short.len()
                }
                None => self.append_long_segment(log, used, segment, from),
            };
        log.bytes = length as u16;
        length + LONGEST > MAX_BYTES
    }

    /// Adds a short segment that does not fit into the latest chunk.
    #[inline(never)]
    fn append_split_segment(
        &mut self,
        log: &mut SegmentLog,
        used: usize,
        short: &ShortSegmentForm,
    ) {
        let mut bytes = [0; SHORT];
        short.write_to(&mut bytes);
        self.append_bytes(log, used, &bytes[..short.len()]);
    }

    /// Adds a segment in long form. Returns its number of bytes.
    #[inline(never)]
    fn append_long_segment(
        &mut self,
        log: &mut SegmentLog,
        used: usize,
        segment: &Segment,
        from: usize,
    ) -> usize {
        let long = log.encoder.encode_long(segment, from);
        self.append_bytes(log, used, long.bytes());
        long.bytes().len()
    }

    fn append_bytes(&mut self, log: &mut SegmentLog, mut used: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if used == 0 {
                let more = self.allocate_chunk();
                match log.first {
                    NONE => log.first = more,
                    _ => self.next[log.latest as usize] = more,
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

    /// Moves the bytes of a log to `bytes` and frees its chunks.
    pub(super) fn release_log(&mut self, log: &mut SegmentLog, bytes: &mut Vec<u8>) {
        let mut left = log.stored_bytes();
        let mut index = std::mem::take(log).first;
        while left > 0 {
            let Some(chunk) = self.get(index) else { return };
            let count = left.min(CHUNK);
            bytes.extend_from_slice(&chunk[..count]);
            left -= count;
            let free = std::mem::replace(&mut self.free, index);
            index = std::mem::replace(&mut self.next[index as usize], free);
        }
    }

    /// Prefetches the memory of the next few segments. The returned sum only prevents the compiler
    /// from removing the reads.
    #[inline]
    pub(super) fn prefetch_next(&self, log: &SegmentLog) -> u64 {
        let Some(chunk) = self.get(log.latest) else { return 0 };
        let next = log.stored_bytes() % CHUNK;
        u64::from(chunk[next]) + u64::from(chunk[(next + LOOKAHEAD).min(CHUNK - 1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::segment_encoding::decode_segments;
    use crate::frame::EMPTY_SEGMENT;
    use proptest::prelude::*;

    proptest! {
        /// Logs grow concurrently, are released and restarted.
        #[test]
        fn logs_are_independent_and_reuse_memory(steps in prop::collection::vec((0_usize..4, 0_u32..9, any::<u32>()), 0..600)) {
            let mut chunks = LogChunks::new();
            let mut logs = vec![(SegmentLog::default(), Vec::new()); 4];
            for (which, release, acknowledgement) in steps {
                let (log, expected) = &mut logs[which];
                let segment = Segment { acknowledgement, ..EMPTY_SEGMENT };
                expected.push(segment);
                let is_full = chunks.append_segment(log, &segment, 0, 0);
                if release == 0 || is_full {
                    let (mut bytes, mut decoded) = (Vec::new(), Vec::new());
                    chunks.release_log(log, &mut bytes);
                    prop_assert!(bytes.len() <= MAX_BYTES);
                    decode_segments(&bytes, 0, [EMPTY_SEGMENT.source; 2], |segment| decoded.push(*segment));
                    prop_assert_eq!(&decoded, &std::mem::take(expected));
                }
            }
            prop_assert!(chunks.next.len() <= (logs.len() * MAX_BYTES / CHUNK).next_multiple_of(SLAB));
        }
    }
}
