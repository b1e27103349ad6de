//! Headers of packets in flight.
//!
//! A packet holds only a number, a kind and a token. Timestamps, SACK blocks and other header
//! fields are stored here until the packet arrives, so packets of ends without such headers stay
//! small. An acknowledgement that reaches its sender before any other event needs no stored header.

use super::modern::{AckHeader, DataHeader};
use crate::packet_label::PacketLabel;
use tcpcast_link::ring_buffer::RingBuffer;

/// A header that is stored while its packet is in flight.
pub(crate) trait InFlightHeader: Copy + Default {
    /// Whether the packet is shorter than full size; its label then has fewer token bits.
    #[inline(always)]
    fn is_short(&self) -> bool {
        false
    }
}

impl InFlightHeader for DataHeader {
    #[inline(always)]
    fn is_short(&self) -> bool {
        self.is_short()
    }
}

impl InFlightHeader for AckHeader {}

/// A header of a packet that can be reordered.
pub(crate) trait ReorderableHeader: InFlightHeader {
    /// Placeholder for a removed header.
    const PLACEHOLDER: Self;

    /// Whether this is the placeholder.
    fn is_placeholder(&self) -> bool;

    /// Reads one word, to load its cache line.
    fn prefetch(&self) -> u64;
}

impl ReorderableHeader for DataHeader {
    const PLACEHOLDER: Self = Self::PLACEHOLDER;

    #[inline(always)]
    fn is_placeholder(&self) -> bool {
        self.is_placeholder()
    }

    #[inline(always)]
    fn prefetch(&self) -> u64 {
        self.prefetch()
    }
}

/// Headers of a source's packets in one direction, in sending order.
///
/// Acknowledgements of one source are never reordered: when one arrives, all earlier ones that have
/// not arrived are lost and their headers are dropped ([`HeadersInFlight::take_header_in_order`]).
/// Data packets can be reordered, but each one arrives or is reported as lost
/// ([`HeadersInFlight::take_in_any_order`]).
#[derive(Clone, Debug, Default)]
pub(crate) struct HeadersInFlight<H> {
    /// Token of the first entry.
    first: u32,
    entries: RingBuffer<H>,
    /// Number of placeholders; the first entry is never a placeholder.
    gone: u32,
}

impl<H: InFlightHeader> HeadersInFlight<H> {
    /// Stores the header of a sent packet and returns its token.
    #[inline(always)]
    pub(crate) fn store_header(&mut self, header: H) -> u32 {
        let token = self.first.wrapping_add(self.entries.len() as u32) & PacketLabel::TOKEN_MASK;
        self.entries.push(header);
        token
    }

    /// Returns the header of a packet in flight.
    pub(crate) fn header_in_flight(&self, label: PacketLabel) -> Option<&H> {
        self.entries.get(self.index_of(label))
    }

    /// Returns the index of a packet's header; `entries.len()` or more if it is not stored.
    #[inline(always)]
    fn index_of(&self, label: PacketLabel) -> usize {
        let after = label.token_distance_from(self.first) as usize;
        if label.length_of_short_packet().is_some() {
            self.index_of_short_header(after)
        } else {
            after
        }
    }

    /// Among packets with equal lower token bits only one is short.
    #[inline(always)]
    fn index_of_short_header(&self, after: usize) -> usize {
        let short = self.entries.get(after).is_some_and(H::is_short);
        if short && self.entries.len() <= Self::SHORT_TOKEN_PERIOD {
            after
        } else {
            self.search_short_header(after)
        }
    }

    /// Distance of tokens with equal lower bits.
    const SHORT_TOKEN_PERIOD: usize = PacketLabel::SHORT_TOKEN_MASK as usize + 1;

    #[cold]
    fn search_short_header(&self, after: usize) -> usize {
        let is_short = |index: &usize| self.entries.get(*index).is_some_and(H::is_short);
        let mut candidates = (after..self.entries.len()).step_by(Self::SHORT_TOKEN_PERIOD).rev();
        candidates.find(is_short).unwrap_or(self.entries.len())
    }

    /// Removes the header of an arriving packet; [`None`] if a later packet has already arrived.
    #[inline(always)]
    pub(crate) fn take_header_in_order(&mut self, label: PacketLabel) -> Option<&H> {
        if label.is_full_packet_with_token(self.first) && !self.entries.is_empty() {
            self.first = self.first.wrapping_add(1) & PacketLabel::TOKEN_MASK;
            return Some(self.entries.pop_by_reference());
        }
        self.take_after_lost_headers(label)
    }

    #[inline(never)]
    fn take_after_lost_headers(&mut self, label: PacketLabel) -> Option<&H> {
        let lost = self.index_of(label);
        if lost >= self.entries.len() {
            return None;
        }
        self.first = self.first.wrapping_add(lost as u32 + 1) & PacketLabel::TOKEN_MASK;
        Some(self.entries.pop_after_skipping(lost))
    }
}

impl<H: ReorderableHeader> HeadersInFlight<H> {
    /// Reads one word of the first entry and of the next free slot.
    #[inline(always)]
    pub(crate) fn prefetch(&self) -> u64 {
        let (first, next) = (self.entries.first(), self.entries.slot_for_next_push());
        first.map_or(0, H::prefetch) ^ next.map_or(0, H::prefetch)
    }

    /// Removes the header of a packet that arrives or is lost, in any order. Unless it is the first
    /// entry, the header is moved to `spare`. Returns an empty header if none is stored.
    #[inline(always)]
    pub(crate) fn take_in_any_order<'a>(
        &'a mut self,
        label: PacketLabel,
        spare: &'a mut H,
    ) -> &'a mut H {
        if !label.is_full_packet_with_token(self.first) || self.entries.is_empty() || self.gone > 0
        {
            *spare = self.take_reordered(label);
            return spare;
        }
        self.first = self.first.wrapping_add(1) & PacketLabel::TOKEN_MASK;
        self.entries.pop_by_reference()
    }

    #[inline(never)]
    fn take_reordered(&mut self, label: PacketLabel) -> H {
        let index = self.index_of(label);
        if index > 0 || self.entries.is_empty() {
            let header = self
                .entries
                .replace_at(index, H::PLACEHOLDER)
                .filter(|header| !header.is_placeholder());
            self.gone += u32::from(header.is_some());
            return header.unwrap_or_default();
        }
        self.first = self.first.wrapping_add(1) & PacketLabel::TOKEN_MASK;
        let header = self.entries.pop_existing();
        self.drop_leading_placeholders();
        self.entries.rewind_when_empty();
        header
    }

    /// Removes placeholders at the front.
    #[inline(never)]
    fn drop_leading_placeholders(&mut self) {
        while self.entries.first().is_some_and(H::is_placeholder) {
            self.entries.pop_existing();
            self.first = self.first.wrapping_add(1) & PacketLabel::TOKEN_MASK;
            self.gone -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_label::PacketKind;

    /// Packet number; whether the packet is short.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct Header(u32, bool);

    impl InFlightHeader for Header {
        fn is_short(&self) -> bool {
            self.1
        }
    }

    impl ReorderableHeader for Header {
        const PLACEHOLDER: Self = Self(u32::MAX, false);

        fn is_placeholder(&self) -> bool {
            *self == Self::PLACEHOLDER
        }

        fn prefetch(&self) -> u64 {
            u64::from(self.0)
        }
    }

    fn full(number: u32) -> Header {
        Header(number, false)
    }

    #[test]
    fn take_finds_header_by_token_and_drops_earlier_ones() {
        let mut headers =
            HeadersInFlight { first: PacketLabel::TOKEN_MASK - 1, ..HeadersInFlight::default() };
        let header = |n: u32| Header(n, n == 5);
        let tokens: Vec<u32> = (0..6).map(|n| headers.store_header(header(n))).collect();
        assert_eq!(tokens, [PacketLabel::TOKEN_MASK - 1, PacketLabel::TOKEN_MASK, 0, 1, 2, 3]);
        let label = |n: usize| PacketLabel::with_token(PacketKind::Data, tokens[n]);
        assert_eq!(headers.take_header_in_order(label(0)), Some(&full(0)));
        assert_eq!(headers.header_in_flight(label(3)), Some(&full(3)));
        assert_eq!(headers.take_header_in_order(label(3)), Some(&full(3)));
        assert_eq!(headers.header_in_flight(label(3)), None);
        assert_eq!(headers.take_header_in_order(label(2)), None, "a later packet has arrived");
        assert_eq!(headers.entries.len(), 2);
        let short = PacketLabel::for_short_packet(PacketKind::Data, tokens[5], 60);
        let taken = headers.take_header_in_order(short);
        assert_eq!(taken, Some(&header(5)), "short packet, found by the lower token bits");
        assert_eq!(headers.take_header_in_order(short), None);
        assert_eq!(
            (headers.entries.len(), headers.store_header(full(6)), headers.store_header(full(7))),
            (0, 4, 5)
        );
    }

    #[test]
    fn take_any_returns_headers_of_reordered_packets() {
        let mut headers =
            HeadersInFlight { first: PacketLabel::TOKEN_MASK - 1, ..HeadersInFlight::default() };
        let header = |n: u32| Header(n + 1, n == 4);
        let tokens: Vec<u32> = (0..6).map(|n| headers.store_header(header(n))).collect();
        let label = |n: usize| match header(n as u32).is_short() {
            true => PacketLabel::for_short_packet(PacketKind::Data, tokens[n], 60),
            false => PacketLabel::with_token(PacketKind::Data, tokens[n]),
        };
        let take = |headers: &mut HeadersInFlight<Header>, n| {
            *headers.take_in_any_order(label(n), &mut Header::default())
        };
        for n in [3_usize, 1, 0, 5] {
            assert_eq!(headers.header_in_flight(label(n)), Some(&header(n as u32)));
            assert_eq!(take(&mut headers, n), header(n as u32));
            assert_eq!(take(&mut headers, n), Header::default());
        }
        assert_eq!((headers.entries.len(), headers.gone), (4, 2), "2 and 4 are in flight");
        assert_eq!(take(&mut headers, 2), header(2));
        assert_eq!((headers.entries.len(), headers.gone), (2, 1));
        assert_eq!(take(&mut headers, 4), header(4), "the first entry, a short packet");
        assert_eq!((headers.entries.len(), headers.gone), (0, 0));
        assert_eq!(
            (headers.store_header(header(6)), take(&mut headers, 5)),
            (4, Header::default())
        );
    }

    #[test]
    fn short_packet_is_distinguished_from_earlier_full_packets() {
        let (mut headers, many) =
            (HeadersInFlight::default(), 3 * (PacketLabel::SHORT_TOKEN_MASK + 1));
        (0..many).for_each(|n| {
            headers.store_header(full(n));
        });
        let token = headers.store_header(Header(many, true));
        let short = PacketLabel::for_short_packet(PacketKind::Data, token, 700);
        assert_eq!(headers.header_in_flight(short), Some(&Header(many, true)));
        assert_eq!(headers.take_header_in_order(short), Some(&Header(many, true)));
    }
}
