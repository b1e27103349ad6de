//! Reads what counters and a filter of acknowledgements need to know of a TCP packet.

use super::header::read_word;
use tcpcast_wire::{ACK, FIN, PSH, SYN};

/// Further flags of TCP (RFC 9293, section 3.1).
const RST: u8 = 4;
const URG: u8 = 32;
/// Kinds of options (RFC 9293, 2018, 7323).
const NO_OPERATION: u8 = 1;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const MAX_SACKS: usize = 4;

/// Header of a TCP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpHeader {
    /// Source and destination port.
    ports: u32,
    pub sequence: u32,
    ack: u32,
    flags: u8,
    pub payload: usize,
    /// Value and echo.
    timestamps: Option<(u32, u32)>,
    sacks: [Option<(u32, u32)>; MAX_SACKS],
    has_other_options: bool,
}

/// Whether a sequence number is after another (RFC 9293, section 3.4).
pub(crate) fn is_sequence_after(number: u32, other: u32) -> bool {
    number.wrapping_sub(other) as i32 > 0
}

fn is_at_most(number: u32, other: u32) -> bool {
    !is_sequence_after(number, other)
}

impl TcpHeader {
    /// Parses an IP packet; `None` if it is not TCP, is a fragment, or is truncated.
    pub(crate) fn parse_ip(packet: &[u8]) -> Option<Self> {
        let (protocol, start) = match packet.first()? >> 4 {
            4 if packet.len() >= 20 => {
                let is_fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
                (packet[9], usize::from(packet[0] & 15) * 4 + if is_fragment { 1 << 16 } else { 0 })
            }
            6 if packet.len() >= 40 => (packet[6], 40),
            _ => return None,
        };
        let tcp = packet.get(start..).filter(|tcp| tcp.len() >= 20 && protocol == 6)?;
        let header = usize::from(tcp[12] >> 4) * 4;
        let options = tcp.get(20..header)?;
        let mut parsed = Self {
            ports: read_word(tcp, 0),
            sequence: read_word(tcp, 4),
            ack: read_word(tcp, 8),
            flags: tcp[13],
            payload: tcp.len() - header,
            timestamps: None,
            sacks: [None; MAX_SACKS],
            has_other_options: false,
        };
        parsed.read_options(options);
        Some(parsed)
    }

    fn read_options(&mut self, mut options: &[u8]) {
        while let [kind, rest @ ..] = options {
            if *kind == NO_OPERATION {
                options = rest;
                continue;
            }
            let length = rest.first().map_or(0, |length| usize::from(*length));
            if *kind == 0 || length < 2 || length > options.len() {
                // The end of the list, or a broken one.
                self.has_other_options |= *kind != 0;
                return;
            }
            let value = &options[2..length];
            match (*kind, value.len()) {
                (TIMESTAMPS, 8) => {
                    self.timestamps = Some((read_word(value, 0), read_word(value, 4)))
                }
                (SACK, bytes) if bytes % 8 == 0 && bytes / 8 <= MAX_SACKS => {
                    for (sack, block) in self.sacks.iter_mut().zip(value.chunks(8)) {
                        *sack = Some((read_word(block, 0), read_word(block, 4)));
                    }
                }
                _ => self.has_other_options = true,
            }
            options = &options[length..];
        }
    }

    pub(crate) fn source_port(&self) -> u16 {
        (self.ports >> 16) as u16
    }

    pub(crate) fn destination_port(&self) -> u16 {
        self.ports as u16
    }

    /// Acknowledgement number; `None` for the first packet of a connection, and for resets, which
    /// do not acknowledge data.
    pub(crate) fn acknowledged(&self) -> Option<u32> {
        (self.flags & (ACK | RST) == ACK).then_some(self.ack)
    }

    /// Whether the packet is the first of its connection.
    pub(crate) fn opens_connection(&self) -> bool {
        self.flags & (ACK | SYN) == SYN
    }

    /// Bits ECE and CWR.
    pub(super) fn ecn_echo(&self) -> u8 {
        self.flags >> 6
    }

    /// Whether `older` is a pure acknowledgement without information that this later packet of the
    /// same direction lacks: what `sch_cake.c` may drop.
    pub(super) fn supersedes(&self, older: &Self) -> bool {
        let control = FIN | SYN | RST | PSH | URG;
        let is_newer = match (older.timestamps, self.timestamps) {
            (Some(before), Some(after)) => {
                is_at_most(before.0, after.0) && is_at_most(before.1, after.1)
            }
            (before, _) => before.is_none(),
        };
        self.ports == older.ports
            && self.flags & (ACK | SYN) == ACK
            && older.payload == 0
            && older.flags & (control | ACK) == ACK
            && !older.has_other_options
            && is_newer
            && is_at_most(older.ack, self.ack)
            && self.sacks_added_to(older).is_some_and(|added| added > 0 || older.ack != self.ack)
    }

    /// Bytes that the SACK blocks report in addition to those of an older acknowledgement; `None` if
    /// a block of the older one is not contained in a block, or reports a duplicate (RFC 2883).
    fn sacks_added_to(&self, older: &Self) -> Option<u32> {
        let contains = |(start, end): (u32, u32), (from, to): (u32, u32)| {
            is_at_most(start, from) && is_at_most(to, end)
        };
        let is_kept = |block: &(u32, u32)| {
            let mut newer = self.sacks.iter().flatten();
            is_at_most(older.ack, block.0) && newer.any(|newer| contains(*newer, *block))
        };
        let bytes = |sacks: &[Option<(u32, u32)>]| -> u32 {
            sacks.iter().flatten().map(|(start, end)| end.wrapping_sub(*start)).sum()
        };
        let added = bytes(&self.sacks).saturating_sub(bytes(&older.sacks));
        older.sacks.iter().flatten().all(is_kept).then_some(added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of IPv4 and TCP with options, and `payload` bytes of data.
    fn packet(ack: u32, flags: u8, options: &[u8], payload: usize) -> Vec<u8> {
        let mut bytes = vec![0; 40];
        (bytes[0], bytes[9]) = (0x45, 6);
        bytes[20..24].copy_from_slice(&[0, 80, 0, 81]);
        bytes[28..32].copy_from_slice(&ack.to_be_bytes());
        (bytes[32], bytes[33]) = ((5 + options.len() as u8 / 4) << 4, flags);
        bytes.extend(options);
        bytes.resize(40 + options.len() + payload, 0);
        bytes
    }

    fn ack(ack: u32, options: &[u8]) -> TcpHeader {
        TcpHeader::parse_ip(&packet(ack, ACK, options, 0)).unwrap()
    }

    fn sacks(blocks: &[(u32, u32)]) -> Vec<u8> {
        let mut option = vec![NO_OPERATION, NO_OPERATION, SACK, 2 + 8 * blocks.len() as u8];
        for (start, end) in blocks {
            option.extend([start.to_be_bytes(), end.to_be_bytes()].concat());
        }
        option
    }

    #[test]
    fn later_ack_supersedes_pure_acks_also_across_wrap_around() {
        assert!(ack(10, &[]).supersedes(&ack(9, &[])));
        assert!(ack(5, &[]).supersedes(&ack(u32::MAX - 5, &[])));
        assert!(!ack(9, &[]).supersedes(&ack(10, &[])));
        assert!(!ack(10, &[]).supersedes(&ack(10, &[])), "a duplicate");
        for (flags, payload) in [(ACK | FIN, 0), (ACK | PSH, 0), (0, 0), (ACK, 1)] {
            let other = TcpHeader::parse_ip(&packet(9, flags, &[], payload)).unwrap();
            assert!(!ack(10, &[]).supersedes(&other), "{flags} {payload}");
        }
        let data = TcpHeader::parse_ip(&packet(10, ACK | PSH, &[], 100)).unwrap();
        assert!(data.supersedes(&ack(9, &[])));
    }

    #[test]
    fn blocks_and_timestamps_of_an_ack_are_kept() {
        let one = sacks(&[(20, 30)]);
        assert!(ack(10, &one).supersedes(&ack(9, &one)));
        assert!(ack(9, &sacks(&[(20, 40)])).supersedes(&ack(9, &one)));
        assert!(!ack(10, &[]).supersedes(&ack(9, &one)));
        assert!(!ack(30, &sacks(&[(5, 8)])).supersedes(&ack(9, &sacks(&[(5, 8)]))), "a duplicate");
        let stamps = |value: u32, echo: u32| {
            let mut option = vec![NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10];
            option.extend([value.to_be_bytes(), echo.to_be_bytes()].concat());
            option
        };
        assert!(ack(10, &stamps(5, 7)).supersedes(&ack(9, &stamps(5, 6))));
        assert!(!ack(10, &stamps(5, 5)).supersedes(&ack(9, &stamps(5, 6))));
        assert!(!ack(10, &[]).supersedes(&ack(9, &stamps(5, 6))));
        assert!(!ack(10, &[]).supersedes(&ack(9, &[30, 4, 0, 0])), "an unknown option");
    }

    #[test]
    fn other_and_truncated_packets_are_no_acks() {
        let mut fragment = packet(1, ACK, &[], 0);
        fragment[6] = 0x20;
        let mut long = packet(1, ACK, &[], 0);
        long[32] = 0xf0;
        for other in [&[][..], &fragment, &long, &packet(1, ACK, &[], 0)[..39]] {
            assert_eq!(TcpHeader::parse_ip(other), None);
        }
        assert_eq!(TcpHeader::parse_ip(&packet(1, ACK | 0xc0, &[], 0)).unwrap().ecn_echo(), 3);
        assert!(
            TcpHeader::parse_ip(&packet(1, ACK, &[TIMESTAMPS, 200, 0, 0], 0))
                .unwrap()
                .has_other_options
        );
    }
}
