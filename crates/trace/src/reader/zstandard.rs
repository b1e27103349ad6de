//! Decompression of zstd data (RFC 8878), one block at a time.

use std::io::{self, BufRead, Read};

use zstd::stream::raw::{Decoder, Operation};
use zstd::zstd_safe::DParameter;

/// Maximum window of a frame, as a power of two: 128 MiB, like the zstd command without `--long`.
/// Frames that need more are rejected before memory is allocated.
const MAX_WINDOW_LOG: u32 = 27;
/// The decoder's size hint for a block includes the header of the next block.
const BLOCK_HEADER: usize = 3;

/// Decompresses consecutive frames.
pub(super) struct ZstdDecoder<R> {
    source: R,
    decoder: Decoder<'static>,
    /// Number of bytes requested by the decoder; 0 between frames.
    wanted: usize,
    /// True if the decoder may hold more output.
    full: bool,
}

impl<R: BufRead> ZstdDecoder<R> {
    pub(super) fn new(source: R) -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG))?;
        Ok(Self { source, decoder, wanted: 0, full: false })
    }

    /// Runs the decoder once. Returns the number of decompressed bytes, and whether the input has
    /// ended.
    ///
    /// The decoder discards the output of a failed step, so a step has at most one block.
    fn decode_step(&mut self, into: &mut [u8]) -> io::Result<(usize, bool)> {
        let input = if self.full { &[][..] } else { self.source.fill_buf()? };
        let ended = input.is_empty() && !self.full;
        let length = self.wanted.saturating_sub(BLOCK_HEADER).max(1).min(input.len());
        let status =
            self.decoder.run_on_buffers(&input[..length], into).map_err(explain_zstd_error)?;
        self.source.consume(status.bytes_read);
        self.full = status.bytes_written == into.len();
        // A final step without output does not change the requested size.
        if !ended || status.bytes_written > 0 {
            self.wanted = status.remaining;
        }
        Ok((status.bytes_written, ended))
    }
}

impl<R: BufRead> Read for ZstdDecoder<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            match self.decode_step(into)? {
                (0, true) if self.wanted > 0 => {
                    let text = "zstd: the data are truncated";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
                }
                (0, false) => {}
                (count, _) => return Ok(count),
            }
        }
    }
}

fn explain_zstd_error(error: io::Error) -> io::Error {
    let text = error.to_string();
    // The library distinguishes its errors only by their text.
    let advice = if text.contains("too much memory") {
        "; the maximum window is 128 MiB: compress without --long"
    } else {
        ""
    };
    io::Error::new(io::ErrorKind::InvalidData, format!("zstd: {text}{advice}"))
}
