//! Data compressed by zstd (RFC 8878), a block at a time.

use std::io::{self, BufRead, Read};

use zstd::stream::raw::{Decoder, Operation};
use zstd::zstd_safe::DParameter;

/// The largest window of a frame, as a power of two: 128 MiB, as the zstd command has it without `--long`. A
/// frame that wants more memory is refused before any is taken.
const LARGEST_WINDOW: u32 = 27;
/// A block ends with the header of the next in what the decoder asks for.
const BLOCK_HEADER: usize = 3;

/// Frames, one after the other, decompressed.
pub(super) struct Zstd<R> {
    source: R,
    decoder: Decoder<'static>,
    /// Bytes that the decoder asks for; 0 between frames.
    wanted: usize,
    /// It may hold more than it gave.
    full: bool,
}

impl<R: BufRead> Zstd<R> {
    pub(super) fn new(source: R) -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(LARGEST_WINDOW))?;
        Ok(Self { source, decoder, wanted: 0, full: false })
    }

    /// Gives the decoder what it needs for one step; how much it decompressed, and whether it could not
    /// go on.
    ///
    /// It gives up what it has decompressed in a step that fails, so a step is not more than a block.
    fn step(&mut self, into: &mut [u8]) -> io::Result<(usize, bool)> {
        let input = if self.full { &[][..] } else { self.source.fill_buf()? };
        let ended = input.is_empty() && !self.full;
        let length = self.wanted.saturating_sub(BLOCK_HEADER).max(1).min(input.len());
        let status = self.decoder.run_on_buffers(&input[..length], into).map_err(explained)?;
        self.source.consume(status.bytes_read);
        self.full = status.bytes_written == into.len();
        // An end that has nothing more to say does not change what was asked for.
        if !ended || status.bytes_written > 0 {
            self.wanted = status.remaining;
        }
        Ok((status.bytes_written, ended))
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            match self.step(into)? {
                (0, true) if self.wanted > 0 => {
                    let text = "zstd: the data end early";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
                }
                (0, false) => {}
                (count, _) => return Ok(count),
            }
        }
    }
}

fn explained(error: io::Error) -> io::Error {
    let text = error.to_string();
    // The library tells its errors apart by their text only.
    let advice = if text.contains("too much memory") {
        "; a window of 128 MiB is the largest: compress it without --long"
    } else {
        ""
    };
    io::Error::new(io::ErrorKind::InvalidData, format!("zstd: {text}{advice}"))
}
