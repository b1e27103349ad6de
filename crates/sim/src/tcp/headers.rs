//! What packets in flight carry beside their numbers, where they carry more than that.
//!
//! A packet itself has a number, a kind and a token; stamps, SACK blocks and the like wait here
//! until it arrives. So packets of ends that need none of it stay as small as they are. What an
//! acknowledgement carries that is at its sender before anything else happens need not wait.

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
}

impl Carried for DataHeader {
    #[inline(always)]
    fn is_short(&self) -> bool {
        self.is_short()
    }
}

impl Carried for AckHeader {}

/// What waits for a packet that others may overtake.
pub(crate) trait Overtaken: Carried {
    /// What stands in the place of one that waits no more.
    const GONE: Self;

    /// Whether it is that.
    fn is_gone(&self) -> bool;

    /// A word of it.
    fn fetch(&self) -> u64;
}

impl Overtaken for DataHeader {
    const GONE: Self = Self::GONE;

    #[inline(always)]
    fn is_gone(&self) -> bool {
        self.is_gone()
    }

    #[inline(always)]
    fn fetch(&self) -> u64 {
        self.fetch()
    }
}

/// The headers of a source's packets in one direction, in the order in which they were sent.
///
/// Acknowledgements of one source keep their order on every path, so when one arrives, those that were
/// sent before it and have not arrived are lost, and their headers are dropped ([`Headers::take`]).
/// Data packets may overtake each other, but each arrives or is told as lost
/// ([`Headers::take_any`]).
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers<H> {
    /// The token of the first header that is kept.
    first: u32,
    kept: Ring<H>,
    /// How many of them are gone; the first one is not.
    gone: u32,
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
        self.kept.get(self.place(label))
    }

    /// Where the header of a packet is; beyond the last one if it is there no more.
    #[inline(always)]
    fn place(&self, label: Label) -> usize {
        let after = label.token_after(self.first) as usize;
        if label.short_bytes().is_some() { self.place_of_short(after) } else { after }
    }

    /// Of several packets with the same lower bits of their tokens only one is short.
    #[inline(always)]
    fn place_of_short(&self, after: usize) -> usize {
        let is_there = self.kept.get(after).is_some_and(H::is_short);
        if is_there && self.kept.len() <= Self::APART { after } else { self.search_short(after) }
    }

    /// Packets whose tokens are so far apart have the same lower bits of them.
    const APART: usize = Label::SHORT_TOKENS as usize + 1;

    #[cold]
    fn search_short(&self, after: usize) -> usize {
        let is_short = |place: &usize| self.kept.get(*place).is_some_and(H::is_short);
        let mut alike = (after..self.kept.len()).step_by(Self::APART).rev();
        alike.find(is_short).unwrap_or(self.kept.len())
    }

    /// Takes the header of a packet that arrives; [`None`] if one sent after it has arrived.
    #[inline(always)]
    pub(crate) fn take(&mut self, label: Label) -> Option<&H> {
        if label.has_token(self.first) && !self.kept.is_empty() {
            self.first = self.first.wrapping_add(1) & Label::TOKENS;
            return Some(self.kept.take_in_place());
        }
        self.take_behind_lost(label)
    }

    #[inline(never)]
    fn take_behind_lost(&mut self, label: Label) -> Option<&H> {
        let lost = self.place(label);
        if lost >= self.kept.len() {
            return None;
        }
        self.first = self.first.wrapping_add(lost as u32 + 1) & Label::TOKENS;
        Some(self.kept.take_up_to(lost))
    }
}

impl<H: Overtaken> Headers<H> {
    /// A word of the first header that is kept, and of the place of the next one.
    #[inline(always)]
    pub(crate) fn fetch(&self) -> u64 {
        let (first, next) = (self.kept.first(), self.kept.next_slot());
        first.map_or(0, H::fetch) ^ next.map_or(0, H::fetch)
    }

    /// Takes the header of a packet that arrives or is lost, whatever came before it; where that is not
    /// simply the next one it is moved to `spare`, an empty one if it is not there.
    #[inline(always)]
    pub(crate) fn take_any<'a>(&'a mut self, label: Label, spare: &'a mut H) -> &'a mut H {
        if !label.has_token(self.first) || self.kept.is_empty() || self.gone > 0 {
            *spare = self.take_out_of_turn(label);
            return spare;
        }
        self.first = self.first.wrapping_add(1) & Label::TOKENS;
        self.kept.take_in_place()
    }

    #[inline(never)]
    fn take_out_of_turn(&mut self, label: Label) -> H {
        let place = self.place(label);
        if place > 0 || self.kept.is_empty() {
            let header = self.kept.replace(place, H::GONE).filter(|header| !header.is_gone());
            self.gone += u32::from(header.is_some());
            return header.unwrap_or_default();
        }
        self.first = self.first.wrapping_add(1) & Label::TOKENS;
        let header = self.kept.take();
        self.drop_gone();
        self.kept.rewind();
        header
    }

    /// Drops those before the first one that waits.
    #[inline(never)]
    fn drop_gone(&mut self) {
        while self.kept.first().is_some_and(H::is_gone) {
            self.kept.take();
            self.first = self.first.wrapping_add(1) & Label::TOKENS;
            self.gone -= 1;
        }
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
    }

    impl Overtaken for Header {
        const GONE: Self = Self(u32::MAX, false);

        fn is_gone(&self) -> bool {
            *self == Self::GONE
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
        let mut headers = Headers { first: Label::TOKENS - 1, ..Headers::default() };
        let of = |at: u32| Header(at, at == 5);
        let tokens: Vec<u32> = (0..6).map(|at| headers.push(of(at))).collect();
        assert_eq!(tokens, [Label::TOKENS - 1, Label::TOKENS, 0, 1, 2, 3]);
        let label = |at: usize| Label::with_token(Kind::Data, tokens[at]);
        assert_eq!(headers.take(label(0)), Some(&full(0)));
        assert_eq!(headers.of(label(3)), Some(&full(3)));
        assert_eq!(headers.take(label(3)), Some(&full(3)));
        assert_eq!(headers.of(label(3)), None);
        assert_eq!(headers.take(label(2)), None, "a later one has arrived");
        assert_eq!(headers.kept.len(), 2);
        let short = Label::of_short(Kind::Data, tokens[5], 60);
        let taken = headers.take(short);
        assert_eq!(taken, Some(&of(5)), "a short packet's, by what is left of its token");
        assert_eq!(headers.take(short), None);
        assert_eq!((headers.kept.len(), headers.push(full(6)), headers.push(full(7))), (0, 4, 5));
    }

    #[test]
    fn packets_that_overtake_each_other_have_their_own_headers() {
        let mut headers = Headers { first: Label::TOKENS - 1, ..Headers::default() };
        let of = |at: u32| Header(at + 1, at == 4);
        let tokens: Vec<u32> = (0..6).map(|at| headers.push(of(at))).collect();
        let label = |at: usize| match of(at as u32).is_short() {
            true => Label::of_short(Kind::Data, tokens[at], 60),
            false => Label::with_token(Kind::Data, tokens[at]),
        };
        let take = |headers: &mut Headers<Header>, at| {
            *headers.take_any(label(at), &mut Header::default())
        };
        for at in [3_usize, 1, 0, 5] {
            assert_eq!(headers.of(label(at)), Some(&of(at as u32)));
            assert_eq!(take(&mut headers, at), of(at as u32));
            assert_eq!(take(&mut headers, at), Header::default());
        }
        assert_eq!((headers.kept.len(), headers.gone), (4, 2), "2 and 4 are on their way");
        assert_eq!(take(&mut headers, 2), of(2));
        assert_eq!((headers.kept.len(), headers.gone), (2, 1));
        assert_eq!(take(&mut headers, 4), of(4), "a short packet's is the first one");
        assert_eq!((headers.kept.len(), headers.gone), (0, 0));
        assert_eq!((headers.push(of(6)), take(&mut headers, 5)), (4, Header::default()));
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
        assert_eq!(headers.take(short), Some(&Header(many, true)));
    }
}
