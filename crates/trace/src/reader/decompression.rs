//! Input streams, decompressed if necessary.

use super::zstandard::ZstdDecoder;
use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufReader, Chain, Cursor, Read};

const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Start of a skippable zstd frame, from the second byte; parallel compressors write one first. The
/// first byte is 0x50 to 0x5f.
const ZSTD_SKIPPABLE_MAGIC: [u8; 3] = [0x2a, 0x4d, 0x18];
/// Compressed bytes read at a time.
const READ_BLOCK_BYTES: usize = 128 << 10;

/// Inner error of a stream that was stopped on request; the stop is not reported as damage.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("stopped")]
pub struct StopRequested;

/// Whether an error means that the stream was stopped on request.
pub(super) fn is_stop_request(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<StopRequested>())
}

/// A stream whose first bytes were already read.
type PeekedStream<R> = Chain<Cursor<Vec<u8>>, R>;

/// A stream, decompressed if necessary.
pub(super) enum DecompressedSource<R: Read> {
    Plain(PeekedStream<R>),
    Gzip(Box<MultiGzDecoder<BufReader<PeekedStream<R>>>>),
    Zstd(Box<ZstdDecoder<BufReader<PeekedStream<R>>>>),
}

impl<R: Read> DecompressedSource<R> {
    /// Detects the compression by the first bytes.
    pub(super) fn new(mut stream: R) -> io::Result<Self> {
        let mut first = Vec::with_capacity(4);
        stream.by_ref().take(4).read_to_end(&mut first)?;
        let gzip = first.starts_with(&GZIP_MAGIC);
        let zstd = first == ZSTD_MAGIC
            || matches!(first[..], [0x50..=0x5f, ref rest @ ..] if *rest == ZSTD_SKIPPABLE_MAGIC);
        let started = Cursor::new(first).chain(stream);
        if gzip {
            let decoder = MultiGzDecoder::new(BufReader::with_capacity(READ_BLOCK_BYTES, started));
            return Ok(Self::Gzip(Box::new(decoder)));
        }
        if zstd {
            let decoder = ZstdDecoder::new(BufReader::with_capacity(READ_BLOCK_BYTES, started))?;
            return Ok(Self::Zstd(Box::new(decoder)));
        }
        Ok(Self::Plain(started))
    }
}

impl<R: Read> Read for DecompressedSource<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(into),
            Self::Gzip(decoder) => decoder.read(into),
            Self::Zstd(decoder) => decoder.read(into),
        }
    }
}
