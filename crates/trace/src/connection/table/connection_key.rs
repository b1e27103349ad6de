//! Key of a connection: its two ends, independent of the direction.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::segment::{Endpoint, Segment};

/// Both ends, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionKey {
    low: [u64; 2],
    high: [u64; 2],
    /// Ports, and whether the addresses are IPv6.
    rest: u64,
}

impl ConnectionKey {
    /// Returns the key of a segment's connection, and whether the segment comes from the higher
    /// end.
    #[inline]
    pub(super) fn of_segment(segment: &Segment) -> (Self, bool) {
        let (a, b) = (address_and_port(&segment.source), address_and_port(&segment.destination));
        let high = a > b;
        let (low, other) = if high { (b, a) } else { (a, b) };
        let v6 = segment.source.address.is_ipv6();
        let rest = u64::from(low.1) << 32 | u64::from(other.1) << 8 | u64::from(v6);
        (Self { low: split_address(low.0), high: split_address(other.0), rest }, high)
    }

    /// Both ends, the lower one first.
    pub(super) fn ends(&self) -> [Endpoint; 2] {
        let end = |[low, high]: [u64; 2], port: u64| {
            let address = if self.rest & 1 == 1 {
                IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)))
            } else {
                IpAddr::V4(Ipv4Addr::from_bits(low as u32))
            };
            Endpoint { address, port: port as u16 }
        };
        [end(self.low, self.rest >> 32), end(self.high, self.rest >> 8)]
    }
}

#[inline]
fn split_address(address: u128) -> [u64; 2] {
    [address as u64, (address >> 64) as u64]
}

#[inline]
fn address_and_port(end: &Endpoint) -> (u128, u16) {
    let address = match end.address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    (address, end.port)
}

impl Hash for ConnectionKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.low[0]);
        state.write_u64(self.high[0]);
        state.write_u64(self.rest);
        if self.rest & 1 == 1 {
            state.write_u64(self.low[1]);
            state.write_u64(self.high[1]);
        }
    }
}

/// Hashes words by multiplication with secret random parameters, because captures may be crafted.
#[derive(Clone, Debug)]
pub(super) struct KeyHasherBuilder {
    start: u64,
    factor: u64,
}

impl KeyHasherBuilder {
    pub(super) fn new() -> Self {
        let random = RandomState::new();
        Self { start: random.hash_one(0_u8), factor: random.hash_one(1_u8) | 1 }
    }

    /// Creates fixed parameters, for hashes that affect results.
    pub(super) fn with_fixed_parameters() -> Self {
        // Fractional parts of the square roots of 2 and 3.
        Self { start: 0x6a09_e667_f3bc_c908, factor: 0xbb67_ae85_84ca_a73b }
    }
}

impl BuildHasher for KeyHasherBuilder {
    type Hasher = KeyHasher;

    #[inline]
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher { state: self.start, factor: self.factor }
    }
}

/// State of a hash computation.
#[derive(Clone, Debug)]
pub(super) struct KeyHasher {
    state: u64,
    factor: u64,
}

impl Hasher for KeyHasher {
    #[inline(always)]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.factor);
        self.state = (product as u64 ^ (product >> 64) as u64).rotate_left(23);
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.state
    }
}
