//! Reads a stream in large blocks and gives access to the bytes in place.

use std::io::{self, Read};

/// Maximum number of bytes held, which fits into a second-level cache. Only the start of longer
/// records is visible; declared lengths do not enlarge the buffer.
pub(super) const CAPACITY: usize = 256 << 10;

/// A window of up to `CAPACITY` bytes that moves along a stream.
#[derive(Debug)]
pub(super) struct StreamBuffer<R> {
    source: R,
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// Position of `start` in the stream.
    position: u64,
    mark: u64,
    ended: bool,
    error: Option<io::Error>,
}

impl<R: Read> StreamBuffer<R> {
    pub(super) fn new(source: R) -> Self {
        let bytes = vec![0; CAPACITY].into_boxed_slice();
        Self { source, bytes, start: 0, end: 0, position: 0, mark: 0, ended: false, error: None }
    }

    /// Bytes held and not yet skipped.
    #[inline(always)]
    pub(super) fn held_bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Reads until `length` bytes are held. Returns false if the stream is shorter, or `length`
    /// exceeds `CAPACITY`.
    #[inline(always)]
    pub(super) fn ensure_bytes(&mut self, length: usize) -> bool {
        self.end - self.start >= length || self.fill_to(length)
    }

    #[cold]
    fn fill_to(&mut self, length: usize) -> bool {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < length.min(CAPACITY) && !self.ended {
            self.read_once();
        }
        self.end >= length
    }

    fn read_once(&mut self) {
        match self.source.read(&mut self.bytes[self.end..]) {
            Ok(0) => self.ended = true,
            Ok(count) => self.end += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                self.ended = true;
                self.error = Some(error);
            }
        }
    }

    /// Skips `length` bytes. Returns false if the stream is shorter.
    #[inline(always)]
    pub(super) fn skip_bytes(&mut self, length: u64) -> bool {
        let held = self.end - self.start;
        if length <= held as u64 {
            self.start += length as usize;
            self.position += length;
            return true;
        }
        self.skip_unread(length)
    }

    #[cold]
    fn skip_unread(&mut self, mut length: u64) -> bool {
        loop {
            let step = length.min((self.end - self.start) as u64);
            self.start += step as usize;
            self.position += step;
            length -= step;
            if length == 0 || !self.ensure_bytes(1) {
                return length == 0;
            }
        }
    }

    /// Stores the current position as the start of a record.
    #[inline(always)]
    pub(super) fn set_record_start(&mut self) {
        self.mark = self.position;
    }

    /// Start of the last record.
    pub(super) fn record_start(&self) -> u64 {
        self.mark
    }

    /// Returns the error that ended the stream, if any.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte per read, as a pipe may.
    struct SingleBytes(u8);

    impl Read for SingleBytes {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.0 == 9 {
                return Ok(0);
            }
            into[0] = self.0;
            self.0 += 1;
            Ok(1)
        }
    }

    #[test]
    fn ensure_and_skip_handle_single_byte_reads() {
        let mut buffer = StreamBuffer::new(SingleBytes(0));
        assert!(buffer.ensure_bytes(4));
        assert_eq!(buffer.held_bytes(), [0, 1, 2, 3]);
        assert!(buffer.skip_bytes(6));
        buffer.set_record_start();
        assert_eq!(buffer.record_start(), 6);
        assert!(!buffer.ensure_bytes(4));
        assert_eq!(buffer.held_bytes(), [6, 7, 8]);
        assert!(!buffer.skip_bytes(4));
    }

    #[test]
    fn buffer_holds_at_most_its_capacity() {
        let mut buffer = StreamBuffer::new(io::repeat(7));
        assert!(!buffer.ensure_bytes(CAPACITY + 1));
        assert_eq!(buffer.held_bytes().len(), CAPACITY);
        assert!(buffer.skip_bytes(10 * CAPACITY as u64 + 3));
        assert!(buffer.ensure_bytes(1));
    }

    #[test]
    fn error_is_reported_after_preceding_bytes() {
        let cut = io::repeat(1).take(3).chain(Broken);
        let mut buffer = StreamBuffer::new(cut);
        assert!(!buffer.ensure_bytes(4));
        assert_eq!(buffer.held_bytes(), [1, 1, 1]);
        assert_eq!(buffer.take_error().unwrap().kind(), io::ErrorKind::TimedOut);
    }

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}
