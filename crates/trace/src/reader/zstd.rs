//! Frames of zstd one after the other (RFC 8878), decompressed as far as they are whole.
//!
//! Windows are bounded here. The output of one block is bounded by the library from its version
//! 0.9 on, which needs Rust 1.87; before that, a hostile block can make it take gigabytes.

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::error::Error;
use std::fmt::Display;
use std::io::{self, Read};
use std::iter::successors;
use std::panic::{AssertUnwindSafe, catch_unwind};

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The other three bytes of the magic number of a frame to be skipped.
const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];
/// What zstd itself takes without being told otherwise.
const LARGEST_WINDOW: u64 = 128 << 20;
/// An empty block, the last of its frame, and a checksum.
const EMPTY_LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

/// Whether a stream that begins so is one of zstd.
pub(super) fn begins(bytes: &[u8]) -> bool {
    bytes == MAGIC || matches!(bytes, [0x50..=0x5f, rest @ ..] if rest == SKIPPABLE)
}

/// A stream that decompresses another.
pub(super) struct Zstd<S> {
    source: S,
    decoder: FrameDecoder,
    /// What went wrong, to be told after all that came before it.
    error: Option<io::Error>,
    over: bool,
}

impl<S: Read> Zstd<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source, decoder: FrameDecoder::new(), error: None, over: false }
    }

    /// Decompresses a block, or begins the next frame.
    fn advance(&mut self) -> io::Result<()> {
        if self.decoder.is_finished() {
            let promised = self.decoder.get_checksum_from_data();
            if promised.is_some() && promised != self.decoder.get_calculated_checksum() {
                return Err(damaged("the checksum differs"));
            }
            return self.begin();
        }
        let step = || {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            self.decoder.decode_blocks(&mut self.source, one)
        };
        // The library asserts some things that hostile data can make untrue.
        match catch_unwind(AssertUnwindSafe(step)) {
            Ok(result) => result.map(|_| ()).map_err(|error| undone(&error)),
            Err(_) => {
                self.decoder = FrameDecoder::new();
                Err(damaged("contradicting data"))
            }
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        let mut magic = Vec::with_capacity(4);
        self.source.by_ref().take(4).read_to_end(&mut magic)?;
        if magic.is_empty() {
            self.over = true;
            return Ok(());
        }
        if magic == MAGIC {
            let header = frame_header(&mut self.source)?;
            // A new one: the old one would set memory aside for whatever window is declared.
            self.decoder = FrameDecoder::new();
            return self.decoder.init(&header[..]).map_err(damaged);
        }
        if begins(&magic) {
            return skip(&mut self.source);
        }
        Err(damaged("no frame where one should begin"))
    }

    /// Ends the frame early, so that what was decompressed of it can be had.
    fn salvage(&mut self) {
        if !self.decoder.is_finished() {
            // An error has been noted already, and there is nothing after it to be had.
            let _ = self.decoder.decode_blocks(EMPTY_LAST_BLOCK, BlockDecodingStrategy::All);
        }
    }
}

impl<S: Read> Read for Zstd<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.decoder.read(into)?;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            if let Some(error) = self.error.take() {
                self.over = true;
                return Err(error);
            }
            if self.over {
                return Ok(0);
            }
            if let Err(error) = self.advance() {
                self.error = Some(error);
                self.salvage();
            }
        }
    }
}

/// The header of a frame (section 3.1.1.1), if its window is not too large.
fn frame_header(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut header = MAGIC.to_vec();
    let mut more = |header: &mut Vec<u8>, count: usize| {
        let from = header.len();
        header.resize(from + count, 0);
        source.read_exact(&mut header[from..])
    };
    more(&mut header, 1)?;
    let descriptor = header[4];
    let single = descriptor & 0x20 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = match descriptor >> 6 {
        0 => usize::from(single),
        power => 1 << power,
    };
    more(&mut header, usize::from(!single) + dictionary + size)?;
    let window = if single {
        let mut content = [0; 8];
        content[..size].copy_from_slice(&header[5 + dictionary..]);
        u64::from_le_bytes(content)
    } else {
        let base = 1_u64 << (10 + (header[5] >> 3));
        base + base / 8 * u64::from(header[5] & 7)
    };
    if window > LARGEST_WINDOW {
        let text = format!("a window of {window} bytes; compress again without --long");
        return Err(damaged(text));
    }
    Ok(header)
}

/// Leaves a frame of something else behind.
fn skip(source: &mut impl Read) -> io::Result<()> {
    let mut size = [0; 4];
    source.read_exact(&mut size)?;
    let size = u64::from(u32::from_le_bytes(size));
    match io::copy(&mut source.by_ref().take(size), &mut io::sink())? {
        skipped if skipped == size => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// What a failed decoder has to say; it wraps the end of the data in much else.
fn undone(error: &(dyn Error + 'static)) -> io::Error {
    let ended = |error: &(dyn Error + 'static)| {
        let error = error.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
    };
    if successors(Some(error), |&error| error.source()).any(ended) {
        damaged("the data end early")
    } else {
        damaged(error)
    }
}

fn damaged(what: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("zstd: {what}"))
}
