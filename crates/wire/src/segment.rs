//! Headers of an IPv4 packet with a TCP segment, and TCP options.

/// The ACK flag.
pub const ACK: u8 = 0x10;
/// The FIN flag.
pub const FIN: u8 = 0x01;
/// The SYN flag.
pub const SYN: u8 = 0x02;
/// The ECE flag: RFC 3168, section 6.1.
pub const ECE: u8 = 0x40;
/// The CWR flag.
pub const CWR: u8 = 0x80;
/// The PSH flag.
pub const PSH: u8 = 0x08;

const IP_TCP_HEADER_BYTES: u16 = 40;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// Accurate ECN with the bytes of ECT(1) first: RFC 9768, section 3.2.3.
const ACCURATE_ECN_1: u8 = 174;
const PROTOCOL_TCP: u8 = 6;
const TIME_TO_LIVE: u8 = 64;

/// Options of a SYN or SYN-ACK only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SynOptions {
    /// Maximum segment size: RFC 9293, section 3.7.1.
    pub mss: u16,
    /// Shift of the windows in later segments: RFC 7323, section 2.
    pub window_scale: u8,
    /// SACK is permitted: RFC 2018.
    pub sack_permitted: bool,
}

/// Options of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TcpOptions {
    /// Timestamp value and echo: RFC 7323.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks, start and end; the first `blocks` are valid: RFC 2018.
    pub sacks: [(u32, u32); 4],
    /// Number of SACK blocks; at most three with timestamps.
    pub blocks: u8,
    /// Accurate ECN: number of fields, and bytes received with ECT(1), with CE and with ECT(0),
    /// modulo 2^24.
    pub accurate_ecn: Option<(u8, [u32; 3])>,
    /// Options of a SYN.
    pub syn: Option<SynOptions>,
}

impl TcpOptions {
    /// Encodes the options, padded to 4 bytes like Linux.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(syn) = self.syn {
            bytes.extend([MAXIMUM_SEGMENT_SIZE, 4]);
            bytes.extend(syn.mss.to_be_bytes());
            bytes.extend([NO_OPERATION, WINDOW_SCALE, 3, syn.window_scale]);
            if syn.sack_permitted {
                bytes.extend([NO_OPERATION, NO_OPERATION, SACK_PERMITTED, 2]);
            }
        }
        if let Some((value, echo)) = self.timestamps {
            bytes.extend([NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10]);
            bytes.extend(value.to_be_bytes().iter().chain(&echo.to_be_bytes()));
        }
        if self.blocks > 0 {
            bytes.extend([NO_OPERATION, NO_OPERATION, SACK, 2 + 8 * self.blocks]);
            for (start, end) in &self.sacks[..usize::from(self.blocks)] {
                bytes.extend(start.to_be_bytes().iter().chain(&end.to_be_bytes()));
            }
        }
        if let Some((fields, counters)) = self.accurate_ecn {
            bytes.extend([ACCURATE_ECN_1, 2 + 3 * fields]);
            for counter in &counters[..usize::from(fields)] {
                bytes.extend(&counter.to_be_bytes()[1..]);
            }
            bytes.resize(bytes.len().next_multiple_of(4), NO_OPERATION);
        }
        bytes
    }
}

/// A TCP segment in an IPv4 packet. The payload is all zeros and is not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZeroPayloadSegment {
    /// Source address.
    pub source: [u8; 4],
    /// Destination address.
    pub destination: [u8; 4],
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// ECN codepoint: RFC 3168, section 5.
    pub codepoint: u8,
    /// Identification of the IPv4 packet.
    pub identification: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Flags.
    pub flags: u8,
    /// The flag AE of accurate ECN.
    pub ae: bool,
    /// Window, unscaled.
    pub window: u16,
    /// Bytes of payload, at most 65,495 minus the options.
    pub payload: u16,
    /// TCP options.
    pub options: TcpOptions,
}

impl ZeroPayloadSegment {
    /// Encodes the headers with valid checksums.
    #[must_use]
    pub fn encode_headers(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::from(IP_TCP_HEADER_BYTES)];
        bytes.extend(self.options.encode());
        let length = bytes.len() as u16 + self.payload;
        bytes[0] = 0x45;
        bytes[1] = self.codepoint;
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.identification.to_be_bytes());
        bytes[6] = 0x40; // do not fragment
        bytes[8] = TIME_TO_LIVE;
        bytes[9] = PROTOCOL_TCP;
        bytes[12..16].copy_from_slice(&self.source);
        bytes[16..20].copy_from_slice(&self.destination);
        let sum = internet_checksum(sum_words(&bytes[..20]));
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes[20..22].copy_from_slice(&self.source_port.to_be_bytes());
        bytes[22..24].copy_from_slice(&self.destination_port.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[28..32].copy_from_slice(&self.acknowledgement.to_be_bytes());
        bytes[32] = ((bytes.len() - 20) as u8 / 4) << 4 | u8::from(self.ae);
        bytes[33] = self.flags;
        bytes[34..36].copy_from_slice(&self.window.to_be_bytes());
        let pseudo = sum_words(&bytes[12..20])
            + u32::from(PROTOCOL_TCP)
            + u32::from(length - 20)
            + sum_words(&bytes[20..]);
        let sum = internet_checksum(pseudo);
        bytes[36..38].copy_from_slice(&sum.to_be_bytes());
        bytes
    }
}

fn sum_words(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
}

fn internet_checksum(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_valid_checksums() {
        let segment = ZeroPayloadSegment {
            source: [10, 0, 0, 1],
            destination: [10, 128, 0, 1],
            source_port: 1025,
            destination_port: 80,
            sequence: 0x1234_5678,
            acknowledgement: 1,
            flags: ACK | PSH,
            window: 65_535,
            payload: 1460,
            ..ZeroPayloadSegment::default()
        };
        let bytes = segment.encode_headers();
        assert_eq!(internet_checksum(sum_words(&bytes[..20])), 0);
        let pseudo = sum_words(&bytes[12..20]) + 6 + 1480;
        assert_eq!(internet_checksum(pseudo + sum_words(&bytes[20..])), 0);
        assert_eq!(bytes[2..4], [0x05, 0xdc]);
    }

    #[test]
    fn options_are_padded_and_included_in_both_lengths() {
        let mut options =
            TcpOptions { timestamps: Some((7, 0x0102_0304)), ..TcpOptions::default() };
        (options.sacks[0], options.blocks) = ((1449, 2897), 1);
        let bytes = ZeroPayloadSegment {
            payload: 100,
            flags: ACK,
            options,
            ..ZeroPayloadSegment::default()
        }
        .encode_headers();
        assert_eq!((bytes.len(), bytes[32] >> 4), (64, 11));
        assert_eq!(bytes[2..4], [0, 164]);
        assert_eq!(bytes[40..52], [1, 1, 8, 10, 0, 0, 0, 7, 1, 2, 3, 4]);
        assert_eq!(bytes[52..64], [1, 1, 5, 10, 0, 0, 5, 169, 0, 0, 11, 81]);
        let pseudo = sum_words(&bytes[12..20]) + 6 + 144;
        assert_eq!(internet_checksum(pseudo + sum_words(&bytes[20..])), 0);
    }

    #[test]
    fn syn_options_are_encoded() {
        let syn = SynOptions { mss: 1460, window_scale: 14, sack_permitted: true };
        let options =
            TcpOptions { syn: Some(syn), timestamps: Some((1, 0)), ..TcpOptions::default() };
        let bytes = ZeroPayloadSegment { flags: SYN, options, ..ZeroPayloadSegment::default() }
            .encode_headers();
        assert_eq!(bytes[40..52], [2, 4, 5, 180, 1, 3, 3, 14, 1, 1, 4, 2]);
        assert_eq!((bytes.len(), bytes[32] >> 4), (64, 11));
    }
}
