//! What packets in flight carry beside their numbers, where they carry more than that.
//!
//! A packet itself has a number, a kind and a token; stamps, SACK blocks and the like wait here
//! until it arrives. So packets of ends that need none of it stay as small as they are.

use super::modern::{AckHeader, DataHeader};
use crate::packet::Label;
use tcpcast_link::ring::Ring;

/// What waits.
pub(crate) trait Carried: Copy + Default {
    /// Whether its packet is shorter than others, so that its label has fewer bits of its token.
    #[inline(always)]
    fn is_short(&self) -> bool {
        false
    }

    /// A word of it.
    fn fetch(&self) -> u64;
}

impl Carried for DataHeader {
    #[inline(always)]
    fn is_short(&self) -> bool {
        self.is_short()
    }

    #[inline(always)]
    fn fetch(&self) -> u64 {
        self.fetch()
    }
}

impl Carried for AckHeader {
    #[inline(always)]
    fn fetch(&self) -> u64 {
        self.fetch()
    }
}

/// The headers of a source's packets in one direction, in the order in which they were sent.
///
/// Packets of one source keep their order on every path, so when one arrives, those that were sent
/// before it and have not arrived are lost, and their headers are dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers<H> {
    /// The token of the first header that is kept.
    first: u32,
    kept: Ring<H>,
}

impl<H: Carried> Headers<H> {
    /// Keeps the header of a packet that is sent, and returns its token.
    #[inline(always)]
    pub(crate) fn push(&mut self, header: H) -> u32 {
        let token = self.first.wrapping_add(self.kept.len() as u32) & Label::TOKENS;
        self.kept.push(header);
        token
    }

    /// The header of a packet that is on its way.
    pub(crate) fn of(&self, label: Label) -> Option<&H> {
        self.kept.iter().nth(self.place(label))
    }

    /// Where the header of a packet is; beyond the last one if it is there no more.
    #[inline(always)]
    fn place(&self, label: Label) -> usize {
        let after = label.token_after(self.first) as usize;
        if label.short_bytes().is_some() { self.place_of_short(after) } else { after }
    }

    /// Of several packets with the same lower bits of their tokens only one is short.
    #[inline(never)]
    fn place_of_short(&self, after: usize) -> usize {
        let apart = Label::SHORT_TOKENS as usize + 1;
        let alike = self.kept.iter().enumerate().skip(after).step_by(apart);
        let short = alike.filter(|(_, header)| header.is_short()).last();
        short.map_or(self.kept.len(), |(place, _)| place)
    }

    /// A word of the first header that is kept, and of the place of the next one.
    #[inline(always)]
    pub(crate) fn fetch(&self) -> u64 {
        let (first, next) = (self.kept.first(), self.kept.next_place());
        first.map_or(0, Carried::fetch) ^ next.map_or(0, Carried::fetch)
    }

    /// Takes the header of a packet that arrives; [`None`] if one sent after it has arrived.
    #[inline(always)]
    pub(crate) fn take(&mut self, label: Label) -> Option<H> {
        let lost = self.place(label);
        if lost >= self.kept.len() {
            return None;
        }
        (0..lost).for_each(|_| {
            self.kept.take();
        });
        self.first = self.first.wrapping_add(lost as u32 + 1) & Label::TOKENS;
        let header = self.kept.take();
        self.kept.rewind();
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Kind;

    /// A number, and whether its packet is short.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct Header(u32, bool);

    impl Carried for Header {
        fn is_short(&self) -> bool {
            self.1
        }
        fn fetch(&self) -> u64 {
            u64::from(self.0)
        }
    }

    fn full(number: u32) -> Header {
        Header(number, false)
    }

    #[test]
    fn a_header_is_found_by_its_token_and_those_before_it_are_dropped() {
        let mut headers = Headers { first: Label::TOKENS - 1, kept: Ring::default() };
        let of = |at: u32| Header(at, at == 5);
        let tokens: Vec<u32> = (0..6).map(|at| headers.push(of(at))).collect();
        assert_eq!(tokens, [Label::TOKENS - 1, Label::TOKENS, 0, 1, 2, 3]);
        let label = |at: usize| Label::with_token(Kind::Data, tokens[at]);
        assert_eq!(headers.take(label(0)), Some(full(0)));
        assert_eq!(headers.of(label(3)), Some(&full(3)));
        assert_eq!(headers.take(label(3)), Some(full(3)));
        assert_eq!(headers.of(label(3)), None);
        assert_eq!(headers.take(label(2)), None, "a later one has arrived");
        assert_eq!(headers.kept.len(), 2);
        let short = Label::of_short(Kind::Data, tokens[5], 60);
        let taken = headers.take(short);
        assert_eq!(taken, Some(of(5)), "a short packet's, by what is left of its token");
        assert_eq!((headers.take(short), headers.push(full(7))), (None, 4));
    }

    #[test]
    fn a_short_packet_is_told_from_full_ones_far_before_it() {
        let (mut headers, many) = (Headers::default(), 3 * (Label::SHORT_TOKENS + 1));
        (0..many).for_each(|at| {
            headers.push(full(at));
        });
        let token = headers.push(Header(many, true));
        let short = Label::of_short(Kind::Data, token, 700);
        assert_eq!(headers.of(short), Some(&Header(many, true)));
        assert_eq!(headers.take(short), Some(Header(many, true)));
    }
}
