//! Writer of captures in pcap format 2.4, with nanosecond timestamps and raw IP packets.

use std::io::{self, Write};

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINKTYPE_RAW: u32 = 101;
const SNAPLEN: u32 = 65_535;

/// Writes packets to a capture file.
#[derive(Debug)]
pub struct CaptureWriter<W> {
    sink: W,
}

impl<W: Write> CaptureWriter<W> {
    /// Writes the file header.
    ///
    /// # Errors
    /// Returns the error of the sink.
    pub fn new(mut sink: W) -> io::Result<Self> {
        let mut header = Vec::with_capacity(24);
        header.extend(MAGIC_NANOSECONDS.to_le_bytes());
        header.extend(2_u16.to_le_bytes());
        header.extend(4_u16.to_le_bytes());
        header.extend([0; 8]);
        header.extend(SNAPLEN.to_le_bytes());
        header.extend(LINKTYPE_RAW.to_le_bytes());
        sink.write_all(&header)?;
        Ok(Self { sink })
    }

    /// Writes a packet with a length of `length` bytes, of which `bytes` are stored.
    ///
    /// # Errors
    /// Returns the error of the sink.
    pub fn write_packet(&mut self, time_ns: u64, length: u32, bytes: &[u8]) -> io::Result<()> {
        let mut record = Vec::with_capacity(16 + bytes.len());
        record.extend(((time_ns / 1_000_000_000) as u32).to_le_bytes());
        record.extend(((time_ns % 1_000_000_000) as u32).to_le_bytes());
        record.extend((bytes.len() as u32).to_le_bytes());
        record.extend(length.to_le_bytes());
        record.extend(bytes);
        self.sink.write_all(&record)
    }

    /// Returns the sink.
    pub fn into_inner(self) -> W {
        self.sink
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_with_one_packet_has_header_and_record() {
        let mut writer = CaptureWriter::new(Vec::new()).unwrap();
        writer.write_packet(2_000_000_003, 1500, &[0x45, 7]).unwrap();
        let bytes = writer.into_inner();
        assert_eq!(bytes.len(), 24 + 16 + 2);
        assert_eq!(bytes[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
        assert_eq!(bytes[20..24], [101, 0, 0, 0]);
        assert_eq!(bytes[24..32], [2, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(bytes[32..40], [2, 0, 0, 0, 0xdc, 5, 0, 0]);
    }
}
