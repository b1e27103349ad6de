//! The sending side of a stream of bytes, for stream data and for CRYPTO frames: RFC 9000, sections
//! 2.2 and 19.6.

use super::datagram::Chunk;
use super::ranges::RangeSet;
use std::collections::VecDeque;

/// A chunk to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkToSend {
    pub chunk: Chunk,
    /// Number, from 1, of the packet in which its first byte was first sent.
    pub number: u32,
    pub is_retransmission: bool,
}

/// Bytes written, sent and acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct SendStream {
    written: u64,
    next: u64,
    /// Limit by flow control.
    limit: u64,
    /// Bytes of a full chunk if the application is about to write more, so that a smaller chunk
    /// waits; otherwise 0.
    full_chunk: u64,
    lost: RangeSet,
    acked: RangeSet,
    /// First unacknowledged byte.
    una: u64,
    /// Ends of the chunks above `una` that were sent as new data, and the number of earlier ones.
    ends: VecDeque<u64>,
    acked_packets: u32,
}

impl SendStream {
    /// A new stream whose receiver accepts `limit` bytes.
    pub fn restart(&mut self, limit: u64) {
        self.lost.clear();
        self.acked.clear();
        self.ends.clear();
        (self.written, self.next, self.limit, self.una) = (0, 0, limit, 0);
        (self.acked_packets, self.full_chunk) = (0, 0);
    }

    pub fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Bytes written and never sent.
    pub fn unsent_bytes(&self) -> u64 {
        self.written - self.next
    }

    /// Chunks of less than `full` bytes wait, because the application is about to write more; 0 if
    /// it is not.
    pub fn expect_more(&mut self, full: u64) {
        self.full_chunk = full;
    }

    /// Whether the application is about to write more.
    pub fn expects_more(&self) -> bool {
        self.full_chunk > 0
    }

    /// Whether there is a full chunk of unsent data.
    pub fn has_full_chunk(&self) -> bool {
        self.unsent_bytes() >= self.full_chunk.max(1)
    }

    /// The receiver accepts `limit` bytes.
    pub fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Whether data can be sent.
    #[inline]
    pub fn has_data(&self) -> bool {
        !self.lost.is_empty() || self.has_new_data()
    }

    /// Whether new data can be sent.
    #[inline]
    pub fn has_new_data(&self) -> bool {
        // Flow control may end within a chunk.
        self.next < self.written.min(self.limit)
            && (self.full_chunk == 0 || self.has_full_chunk() || self.limit <= self.written)
    }

    /// Whether the receiver has acknowledged everything.
    #[inline]
    pub fn is_acknowledged(&self) -> bool {
        self.una == self.written
    }

    /// Packets of new data that were acknowledged, and that were sent.
    #[inline]
    pub fn acked_and_sent_packets(&self) -> (u32, u32) {
        (self.acked_packets, self.acked_packets + self.ends.len() as u32)
    }

    /// Takes at most `max` bytes to send: lost ones first.
    #[inline]
    pub fn take_chunk(&mut self, max: u32) -> Option<ChunkToSend> {
        if max == 0 {
            return None;
        }
        if let Some(range) = self.lost.take_first(u64::from(max)) {
            let chunk = Chunk { start: range.start, len: (range.end - range.start) as u32 };
            let earlier = self.ends.partition_point(|end| *end <= chunk.start);
            let number = self.acked_packets + earlier as u32 + 1;
            return Some(ChunkToSend { chunk, number, is_retransmission: true });
        }
        if !self.has_new_data() {
            return None;
        }
        let len = self.written.min(self.limit).saturating_sub(self.next).min(u64::from(max)) as u32;
        if len == 0 {
            return None;
        }
        let chunk = Chunk { start: self.next, len };
        self.next += u64::from(len);
        self.ends.push_back(self.next);
        let number = self.acked_packets + self.ends.len() as u32;
        Some(ChunkToSend { chunk, number, is_retransmission: false })
    }

    /// Sends a chunk again, except for acknowledged bytes.
    pub fn on_lost(&mut self, chunk: Chunk) {
        let mut start = chunk.start.max(self.una);
        for acked in self.acked.ranges() {
            if acked.start >= chunk.end() {
                break;
            }
            if start < acked.start {
                self.lost.insert(start, acked.start);
            }
            start = start.max(acked.end);
        }
        if start < chunk.end() {
            self.lost.insert(start, chunk.end());
        }
    }

    /// A chunk is acknowledged; returns the number of packets of new data that are now acknowledged
    /// together with all earlier bytes.
    #[inline]
    pub fn on_acked(&mut self, chunk: Chunk) -> u32 {
        if !self.lost.is_empty() {
            self.lost.remove(chunk.start, chunk.end());
        }
        if chunk.start <= self.una {
            self.una = self.una.max(chunk.end());
            if !self.acked.is_empty() {
                self.advance_over_acked();
            }
        } else {
            self.acked.insert(chunk.start, chunk.end());
            return 0;
        }
        let mut packets = 0;
        while self.ends.front().is_some_and(|end| *end <= self.una) {
            self.ends.pop_front();
            packets += 1;
        }
        self.acked_packets += packets;
        packets
    }

    fn advance_over_acked(&mut self) {
        while let Some(first) = self.acked.ranges().first().copied() {
            if first.start > self.una {
                return;
            }
            self.una = self.una.max(first.end);
            self.acked.remove_below(first.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_bytes_are_sent_before_new_ones_with_the_number_of_their_packet() {
        let mut stream = SendStream::default();
        stream.restart(10_000);
        stream.write(5000);
        let take = |stream: &mut SendStream, max| {
            let sent = stream.take_chunk(max).unwrap();
            (sent.chunk.start, sent.chunk.len, sent.number, sent.is_retransmission)
        };
        assert_eq!(take(&mut stream, 1000), (0, 1000, 1, false));
        assert_eq!(take(&mut stream, 1000), (1000, 1000, 2, false));
        assert_eq!(take(&mut stream, 1000), (2000, 1000, 3, false));
        assert_eq!(stream.on_acked(Chunk { start: 2000, len: 1000 }), 0);
        stream.on_lost(Chunk { start: 0, len: 1000 });
        assert_eq!(take(&mut stream, 600), (0, 600, 1, true));
        stream.on_lost(Chunk { start: 1000, len: 1500 });
        // Bytes from 2000 on are acknowledged.
        assert_eq!(take(&mut stream, 5000), (600, 1400, 1, true));
        assert_eq!(take(&mut stream, 9000), (3000, 2000, 4, false));
        assert_eq!(stream.on_acked(Chunk { start: 0, len: 2000 }), 3);
        assert_eq!(stream.acked_and_sent_packets(), (3, 4));
        assert_eq!(stream.on_acked(Chunk { start: 3000, len: 2000 }), 1);
        assert!(stream.is_acknowledged() && !stream.has_data());
    }

    #[test]
    fn short_chunks_wait_for_an_application_that_writes_more() {
        let mut stream = SendStream::default();
        stream.restart(10_000);
        stream.expect_more(1000);
        stream.write(1500);
        assert_eq!(stream.take_chunk(1000).unwrap().chunk.len, 1000);
        assert!(!stream.has_data() && stream.take_chunk(1000).is_none());
        stream.write(600);
        assert_eq!(stream.take_chunk(1000).unwrap().chunk, Chunk { start: 1000, len: 1000 });
        stream.expect_more(0);
        assert_eq!(stream.take_chunk(1000).unwrap().chunk, Chunk { start: 2000, len: 100 });
        // Flow control may end within a chunk.
        stream.expect_more(1000);
        stream.write(8300);
        while stream.take_chunk(1000).is_some() {}
        assert_eq!((stream.next, stream.written), (10_000, 10_400));
    }

    #[test]
    fn flow_control_limits_new_data() {
        let mut stream = SendStream::default();
        stream.restart(1500);
        stream.write(5000);
        assert_eq!(stream.take_chunk(1000).unwrap().chunk.len, 1000);
        assert_eq!(stream.take_chunk(1000).unwrap().chunk.len, 500);
        assert!(!stream.has_data());
        stream.raise_limit(2500);
        assert_eq!(stream.take_chunk(3000).unwrap().chunk, Chunk { start: 1500, len: 1000 });
    }
}
