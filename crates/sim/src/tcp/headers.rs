//! What packets in flight carry beside their numbers, where they carry more than that.
//!
//! A packet itself has a number, a kind and a token; stamps, SACK blocks and the like wait here
//! until it arrives. So packets of ends that need none of it stay as small as they are. What an
//! acknowledgement carries that is at its sender before anything else happens need not wait.

use super::modern::{AckHeader, DataHeader};
use crate::packet::Label;
use tcpcast_link::ring::Ring;

/// What waits.
pub(crate) trait StoredHeader: Copy + Default {
    /// Whether its packet is shorter than others, so that its label has fewer bits of its token.
    #[inline(always)]
    fn is_short(&self) -> bool {
        false
    }
}

impl StoredHeader for DataHeader {
    #[inline(always)]
    fn is_short(&self) -> bool {
        self.is_short()
    }
}

impl StoredHeader for AckHeader {}

/// What waits for a packet that others may overtake.
pub(crate) trait ReorderableHeader: StoredHeader {
    /// What stands in the place of one that waits no more.
    const GONE: Self;

    /// Whether it is that.
    fn is_gone(&self) -> bool;

    /// A word of it.
    fn prefetch(&self) -> u64;
}

impl ReorderableHeader for DataHeader {
    const GONE: Self = Self::GONE;

    #[inline(always)]
    fn is_gone(&self) -> bool {
        self.is_gone()
    }

    #[inline(always)]
    fn prefetch(&self) -> u64 {
        self.prefetch()
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
    entries: Ring<H>,
    /// How many of them are gone; the first one is not.
    gone: u32,
}

impl<H: StoredHeader> Headers<H> {
    /// Keeps the header of a packet that is sent, and returns its token.
    #[inline(always)]
    pub(crate) fn push(&mut self, header: H) -> u32 {
        let token = self.first.wrapping_add(self.entries.len() as u32) & Label::TOKENS;
        self.entries.push(header);
        token
    }

    /// The header of a packet that is on its way.
    pub(crate) fn get(&self, label: Label) -> Option<&H> {
        self.entries.get(self.index(label))
    }

    /// Where the header of a packet is; beyond the last one if it is there no more.
    #[inline(always)]
    fn index(&self, label: Label) -> usize {
        let after = label.token_after(self.first) as usize;
        if label.short_bytes().is_some() { self.index_of_short(after) } else { after }
    }

    /// Of several packets with the same lower bits of their tokens only one is short.
    #[inline(always)]
    fn index_of_short(&self, after: usize) -> usize {
        let is_there = self.entries.get(after).is_some_and(H::is_short);
        if is_there && self.entries.len() <= Self::SHORT_TOKEN_PERIOD {
            after
        } else {
            self.search_short(after)
        }
    }

    /// Packets whose tokens are so far apart have the same lower bits of them.
    const SHORT_TOKEN_PERIOD: usize = Label::SHORT_TOKENS as usize + 1;

    #[cold]
    fn search_short(&self, after: usize) -> usize {
        let is_short = |index: &usize| self.entries.get(*index).is_some_and(H::is_short);
        let mut alike = (after..self.entries.len()).step_by(Self::SHORT_TOKEN_PERIOD).rev();
        alike.find(is_short).unwrap_or(self.entries.len())
    }

    /// Takes the header of a packet that arrives; [`None`] if one sent after it has arrived.
    #[inline(always)]
    pub(crate) fn take(&mut self, label: Label) -> Option<&H> {
        if label.has_token(self.first) && !self.entries.is_empty() {
            self.first = self.first.wrapping_add(1) & Label::TOKENS;
            return Some(self.entries.take_in_place());
        }
        self.take_after_lost(label)
    }

    #[inline(never)]
    fn take_after_lost(&mut self, label: Label) -> Option<&H> {
        let lost = self.index(label);
        if lost >= self.entries.len() {
            return None;
        }
        self.first = self.first.wrapping_add(lost as u32 + 1) & Label::TOKENS;
        Some(self.entries.take_up_to(lost))
    }
}

impl<H: ReorderableHeader> Headers<H> {
    /// A word of the first header that is kept, and of the place of the next one.
    #[inline(always)]
    pub(crate) fn prefetch(&self) -> u64 {
        let (first, next) = (self.entries.first(), self.entries.next_place());
        first.map_or(0, H::prefetch) ^ next.map_or(0, H::prefetch)
    }

    /// Takes the header of a packet that arrives or is lost, whatever came before it; where that is not
    /// simply the next one it is moved to `spare`, an empty one if it is not there.
    #[inline(always)]
    pub(crate) fn take_any<'a>(&'a mut self, label: Label, spare: &'a mut H) -> &'a mut H {
        if !label.has_token(self.first) || self.entries.is_empty() || self.gone > 0 {
            *spare = self.take_reordered(label);
            return spare;
        }
        self.first = self.first.wrapping_add(1) & Label::TOKENS;
        self.entries.take_in_place()
    }

    #[inline(never)]
    fn take_reordered(&mut self, label: Label) -> H {
        let index = self.index(label);
        if index > 0 || self.entries.is_empty() {
            let header = self.entries.replace(index, H::GONE).filter(|header| !header.is_gone());
            self.gone += u32::from(header.is_some());
            return header.unwrap_or_default();
        }
        self.first = self.first.wrapping_add(1) & Label::TOKENS;
        let header = self.entries.take();
        self.drop_gone();
        self.entries.rewind();
        header
    }

    /// Drops those before the first one that waits.
    #[inline(never)]
    fn drop_gone(&mut self) {
        while self.entries.first().is_some_and(H::is_gone) {
            self.entries.take();
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

    impl StoredHeader for Header {
        fn is_short(&self) -> bool {
            self.1
        }
    }

    impl ReorderableHeader for Header {
        const GONE: Self = Self(u32::MAX, false);

        fn is_gone(&self) -> bool {
            *self == Self::GONE
        }

        fn prefetch(&self) -> u64 {
            u64::from(self.0)
        }
    }

    fn full(number: u32) -> Header {
        Header(number, false)
    }

    #[test]
    fn a_header_is_found_by_its_token_and_those_before_it_are_dropped() {
        let mut headers = Headers { first: Label::TOKENS - 1, ..Headers::default() };
        let get = |at: u32| Header(at, at == 5);
        let tokens: Vec<u32> = (0..6).map(|at| headers.push(get(at))).collect();
        assert_eq!(tokens, [Label::TOKENS - 1, Label::TOKENS, 0, 1, 2, 3]);
        let label = |at: usize| Label::with_token(Kind::Data, tokens[at]);
        assert_eq!(headers.take(label(0)), Some(&full(0)));
        assert_eq!(headers.get(label(3)), Some(&full(3)));
        assert_eq!(headers.take(label(3)), Some(&full(3)));
        assert_eq!(headers.get(label(3)), None);
        assert_eq!(headers.take(label(2)), None, "a later one has arrived");
        assert_eq!(headers.entries.len(), 2);
        let short = Label::of_short(Kind::Data, tokens[5], 60);
        let taken = headers.take(short);
        assert_eq!(taken, Some(&get(5)), "a short packet's, by what is left of its token");
        assert_eq!(headers.take(short), None);
        assert_eq!(
            (headers.entries.len(), headers.push(full(6)), headers.push(full(7))),
            (0, 4, 5)
        );
    }

    #[test]
    fn packets_that_overtake_each_other_have_their_own_headers() {
        let mut headers = Headers { first: Label::TOKENS - 1, ..Headers::default() };
        let get = |at: u32| Header(at + 1, at == 4);
        let tokens: Vec<u32> = (0..6).map(|at| headers.push(get(at))).collect();
        let label = |at: usize| match get(at as u32).is_short() {
            true => Label::of_short(Kind::Data, tokens[at], 60),
            false => Label::with_token(Kind::Data, tokens[at]),
        };
        let take = |headers: &mut Headers<Header>, at| {
            *headers.take_any(label(at), &mut Header::default())
        };
        for at in [3_usize, 1, 0, 5] {
            assert_eq!(headers.get(label(at)), Some(&get(at as u32)));
            assert_eq!(take(&mut headers, at), get(at as u32));
            assert_eq!(take(&mut headers, at), Header::default());
        }
        assert_eq!((headers.entries.len(), headers.gone), (4, 2), "2 and 4 are on their way");
        assert_eq!(take(&mut headers, 2), get(2));
        assert_eq!((headers.entries.len(), headers.gone), (2, 1));
        assert_eq!(take(&mut headers, 4), get(4), "a short packet's is the first one");
        assert_eq!((headers.entries.len(), headers.gone), (0, 0));
        assert_eq!((headers.push(get(6)), take(&mut headers, 5)), (4, Header::default()));
    }

    #[test]
    fn a_short_packet_is_told_from_full_ones_far_before_it() {
        let (mut headers, many) = (Headers::default(), 3 * (Label::SHORT_TOKENS + 1));
        (0..many).for_each(|at| {
            headers.push(full(at));
        });
        let token = headers.push(Header(many, true));
        let short = Label::of_short(Kind::Data, token, 700);
        assert_eq!(headers.get(short), Some(&Header(many, true)));
        assert_eq!(headers.take(short), Some(&Header(many, true)));
    }
}
