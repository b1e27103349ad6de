//! Which flow has the longest queue, in packets, known at once.
//!
//! Flows of one length stand in a list. A length changes by one packet at a time, so the longest
//! is found without a search, however many flows there are and however many are equally long.

use super::chain::NONE;
use super::flows::Listed;
use crate::random::Draws;
use serde::Deserialize;

/// Which of several longest queues loses a packet, the one that arrives counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// The one that came to its length last: that of the packet that arrives, if it is among them.
    #[default]
    Latest,
    /// Any, that of the packet that arrives among them.
    Random,
    /// Any but that of the packet that arrives.
    RandomOthers,
}

/// Where a flow stands among those whose queues are as long as its own.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The flow before it in a list that is linked, or its index in one that is not.
    before: u32,
    after: u32,
}

impl Place {
    /// Alone.
    pub const NOWHERE: Self = Self { before: NONE, after: NONE };
}

/// Flows by the lengths of their queues.
#[derive(Clone, Debug)]
pub enum Longest<D> {
    /// Of several longest queues, the one that came to its length last.
    Latest(Latest),
    /// Of several longest queues, any.
    Drawn(Drawn<D>),
}

impl<D: Draws> Longest<D> {
    /// No flows; of several longest queues it is the one that came to its length last.
    #[must_use]
    pub fn latest() -> Self {
        Self::Latest(Latest::default())
    }

    /// No flows; `draws` is for the choice among queues that are equally long.
    #[must_use]
    pub fn new(ties: Ties, draws: D) -> Self {
        match ties {
            Ties::Latest => Self::latest(),
            Ties::Random | Ties::RandomOthers => Self::Drawn(Drawn {
                of_length: Vec::new(),
                most: 0,
                own_counts: ties == Ties::Random,
                draws,
            }),
        }
    }

    /// Whose queue is the longest once a packet comes to a queue that it makes `len` long; `None` if
    /// that is its own. A length of 0 asks for the longest as it is.
    pub fn longest(&mut self, len: u32) -> Option<u32> {
        match self {
            Self::Latest(latest) => latest.longest(len),
            Self::Drawn(drawn) => drawn.longest(len),
        }
    }

    /// The queue of `flow` has a packet more, and now `to`.
    #[inline]
    pub fn grows(&mut self, flows: &mut [impl Listed], flow: u32, to: u32) {
        match self {
            Self::Latest(latest) => latest.grows(flows, flow, to),
            Self::Drawn(drawn) => drawn.grows(flows, flow, to),
        }
    }

    /// The queue of `flow` has a packet less, and now `to`.
    #[inline]
    pub fn shrinks(&mut self, flows: &mut [impl Listed], flow: u32, to: u32) {
        match self {
            Self::Latest(latest) => latest.shrinks(flows, flow, to),
            Self::Drawn(drawn) => drawn.shrinks(flows, flow, to),
        }
    }
}

/// A list of the flows of each length.
trait Lists {
    fn leave(&mut self, flows: &mut [impl Listed], flow: u32, len: u32);
    fn join(&mut self, flows: &mut [impl Listed], flow: u32, len: u32);
    /// Whether no queue is `len` long; some queue was.
    fn has_none(&self, len: u32) -> bool;
    /// The longest length.
    fn most(&mut self) -> &mut u32;

    #[inline]
    fn grows(&mut self, flows: &mut [impl Listed], flow: u32, to: u32) {
        if to > 1 {
            self.leave(flows, flow, to - 1);
        }
        self.join(flows, flow, to);
        *self.most() = to.max(*self.most());
    }

    #[inline]
    fn shrinks(&mut self, flows: &mut [impl Listed], flow: u32, to: u32) {
        self.leave(flows, flow, to + 1);
        if to > 0 {
            self.join(flows, flow, to);
        }
        if *self.most() == to + 1 && self.has_none(to + 1) {
            *self.most() = to;
        }
    }
}

/// Lists that are linked in the flows, the latest first.
#[derive(Clone, Debug, Default)]
pub struct Latest {
    /// The flow that came to each length last.
    latest: Vec<u32>,
    most: u32,
}

impl Latest {
    fn longest(&self, len: u32) -> Option<u32> {
        (len < self.most).then(|| self.latest[self.most as usize])
    }
}

impl Lists for Latest {
    #[inline]
    fn leave(&mut self, flows: &mut [impl Listed], flow: u32, len: u32) {
        let Place { before, after } = *flows[flow as usize].place();
        if before == NONE {
            self.latest[len as usize] = after;
        } else {
            flows[before as usize].place().after = after;
        }
        if after != NONE {
            flows[after as usize].place().before = before;
        }
    }

    #[inline]
    fn join(&mut self, flows: &mut [impl Listed], flow: u32, len: u32) {
        if len as usize >= self.latest.len() {
            self.latest.resize(len as usize + 1, NONE);
        }
        let after = std::mem::replace(&mut self.latest[len as usize], flow);
        *flows[flow as usize].place() = Place { before: NONE, after };
        if after != NONE {
            flows[after as usize].place().before = flow;
        }
    }

    #[inline]
    fn has_none(&self, len: u32) -> bool {
        self.latest[len as usize] == NONE
    }

    #[inline]
    fn most(&mut self) -> &mut u32 {
        &mut self.most
    }
}

/// Lists in no order: a flow that leaves one gives its place to the last.
#[derive(Clone, Debug)]
pub struct Drawn<D> {
    of_length: Vec<Vec<u32>>,
    most: u32,
    /// Whether the queue that a packet comes to may be drawn for being as long as others.
    own_counts: bool,
    draws: D,
}

impl<D: Draws> Drawn<D> {
    fn longest(&mut self, len: u32) -> Option<u32> {
        if len > self.most {
            return None;
        }
        let equals = self.of_length.get(self.most as usize)?;
        let own = u32::from(self.own_counts && len == self.most);
        // The arriving packet's own queue is not in the list yet: it is the number behind it.
        let among = equals.len() as u32 + own;
        equals.get(self.draws.below(among) as usize).copied()
    }
}

impl<D> Lists for Drawn<D> {
    #[inline]
    fn leave(&mut self, flows: &mut [impl Listed], flow: u32, len: u32) {
        let place = *flows[flow as usize].place();
        let equals = &mut self.of_length[len as usize];
        equals.swap_remove(place.before as usize);
        if let Some(moved) = equals.get(place.before as usize) {
            *flows[*moved as usize].place() = place;
        }
    }

    #[inline]
    fn join(&mut self, flows: &mut [impl Listed], flow: u32, len: u32) {
        if len as usize >= self.of_length.len() {
            self.of_length.resize_with(len as usize + 1, Vec::new);
        }
        let equals = &mut self.of_length[len as usize];
        *flows[flow as usize].place() = Place { before: equals.len() as u32, after: NONE };
        equals.push(flow);
    }

    #[inline]
    fn has_none(&self, len: u32) -> bool {
        self.of_length[len as usize].is_empty()
    }

    #[inline]
    fn most(&mut self) -> &mut u32 {
        &mut self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use proptest::prelude::*;

    #[derive(Clone, Copy)]
    struct Flow(Place);

    impl Listed for Flow {
        fn number(&self) -> u32 {
            0
        }
        fn next(&mut self) -> &mut u32 {
            unimplemented!("no list of these flows is asked for")
        }
        fn place(&mut self) -> &mut Place {
            &mut self.0
        }
    }

    fn longest(ties: Ties) -> Longest<Stream> {
        Longest::new(ties, Stream::of(1))
    }

    fn none() -> [Flow; 8] {
        [Flow(Place::NOWHERE); 8]
    }

    proptest! {
        #[test]
        fn it_is_the_longest_and_of_several_the_latest_or_one_of_them(
            steps in prop::collection::vec((0_usize..8, any::<bool>()), 1..300),
        ) {
            let (mut latest, mut drawn) = (longest(Ties::Latest), longest(Ties::RandomOthers));
            let (mut flows, mut drawn_flows) = (none(), none());
            let mut lengths = [(0_u32, 0_usize); 8]; // length, and when it came to it
            for (time, (flow, grows)) in (1..).zip(steps) {
                let from = lengths[flow].0;
                if from == 0 && !grows {
                    continue;
                }
                let to = if grows { from + 1 } else { from - 1 };
                if grows {
                    latest.grows(&mut flows, flow as u32, to);
                    drawn.grows(&mut drawn_flows, flow as u32, to);
                } else {
                    latest.shrinks(&mut flows, flow as u32, to);
                    drawn.shrinks(&mut drawn_flows, flow as u32, to);
                }
                lengths[flow] = (to, time);
                let of_all = *lengths.iter().max().unwrap();
                prop_assert_eq!(latest.longest(of_all.0), None);
                prop_assert_eq!(drawn.longest(of_all.0 + 1), None);
                if of_all.0 > 0 {
                    let expected = lengths.iter().position(|length| *length == of_all).unwrap();
                    prop_assert_eq!(latest.longest(of_all.0 - 1), Some(expected as u32));
                    let one = drawn.longest(of_all.0 - 1).unwrap();
                    prop_assert_eq!(lengths[one as usize].0, of_all.0);
                }
            }
        }
    }

    #[test]
    fn ties_are_broken_evenly_with_or_without_the_queue_of_the_arriving_packet() {
        // Flows 0 to 4 with queues of 3, 3, 1, 3 and 2 packets; a packet comes to the last, or the
        // last but two.
        for (ties, len, expected) in [
            (Ties::Random, 3, [10_000, 10_000, 10_000, 10_000]),
            (Ties::RandomOthers, 3, [13_333, 13_333, 13_333, 0]),
            (Ties::Random, 2, [13_333, 13_333, 13_333, 0]),
            (Ties::Random, 4, [0, 0, 0, 40_000]),
        ] {
            let (mut longest, mut flows) = (longest(ties), none());
            for (flow, len) in (0..).zip([3, 3, 1, 3, 2]) {
                (1..=len).for_each(|to| longest.grows(&mut flows, flow, to));
            }
            let mut counts = [0_u32; 4];
            for _ in 0..40_000 {
                let at = match longest.longest(len) {
                    Some(flow) => [0, 1, 3].iter().position(|f| *f == flow).unwrap(),
                    None => 3,
                };
                counts[at] += 1;
            }
            let near = counts.iter().zip(expected).all(|(is, should)| is.abs_diff(should) < 400);
            assert!(near, "{counts:?} and not {expected:?}");
        }
    }
}
