//! Which flow has the longest queue, drawn where several have.
//!
//! Flows of one length stand in a list in no order: one that leaves it gives its place to the last.
//! So a packet costs a constant number of steps however many are equally long.

use super::backlog::Flow;
use super::longest::{ByLength, Place};
use crate::random::{Draws, Stream};

/// Of several longest queues, any.
#[derive(Clone, Debug)]
pub struct Equals {
    of_length: Vec<Vec<u32>>,
    most: u32,
    /// Whether the queue that a packet comes to is among them.
    own_counts: bool,
    draws: Stream,
}

impl Equals {
    /// No flows. `own_counts` says whether the queue that a packet comes to may be drawn for being
    /// as long as others; if it is longer than all, it is the longest anyway.
    pub(super) fn new(own_counts: bool, draws: Stream) -> Self {
        Self { of_length: Vec::new(), most: 0, own_counts, draws }
    }

    fn leave(&mut self, flows: &mut [Flow], flow: u32, len: u32) {
        let place = flows[flow as usize].place;
        let equals = &mut self.of_length[len as usize];
        equals.swap_remove(place.index());
        if let Some(moved) = equals.get(place.index()) {
            flows[*moved as usize].place = place;
        }
    }

    fn join(&mut self, flows: &mut [Flow], flow: u32, len: u32) {
        let equals = &mut self.of_length[len as usize];
        flows[flow as usize].place = Place::at(equals.len());
        equals.push(flow);
    }
}

impl ByLength for Equals {
    const EMPTIES: bool = true;

    fn grows(&mut self, flows: &mut [Flow], flow: u32, to: u32) {
        if to > 1 {
            self.leave(flows, flow, to - 1);
        }
        if to as usize >= self.of_length.len() {
            self.of_length.resize_with(to as usize + 1, Vec::new);
        }
        self.join(flows, flow, to);
        self.most = self.most.max(to);
    }

    fn shrinks(&mut self, flows: &mut [Flow], flow: u32, to: u32) {
        self.leave(flows, flow, to + 1);
        if to > 0 {
            self.join(flows, flow, to);
        }
        if self.most == to + 1 && self.of_length[to as usize + 1].is_empty() {
            self.most = to;
        }
    }

    fn longest(&mut self, len: u32) -> Option<u32> {
        if len > self.most {
            return None;
        }
        let equals = &self.of_length[self.most as usize];
        let own = u32::from(self.own_counts && len == self.most);
        // The arriving packet's own queue is not in the list yet: it is the number behind it.
        equals.get(self.draws.below(equals.len() as u32 + own) as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Named, Purpose};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn draws() -> Stream {
        Stream::named(1, 0, 0, Purpose::Tie)
    }

    /// Flows 0 to 4 with queues of 3, 3, 1, 3 and 2 packets.
    fn five(own_counts: bool) -> Equals {
        let mut equals = Equals::new(own_counts, draws());
        let mut flows = [Flow::of(0); 5];
        for (flow, len) in (0..).zip([3, 3, 1, 3, 2]) {
            (1..=len).for_each(|to| equals.grows(&mut flows, flow, to));
        }
        equals
    }

    /// How often each of these flows is drawn, and the queue that the packet comes to.
    fn counts(mut equals: Equals, len: u32, flows: [u32; 3]) -> [u32; 4] {
        let mut counts = [0; 4];
        for _ in 0..40_000 {
            let drawn = equals.longest(len);
            let at = drawn.map_or(3, |drawn| flows.iter().position(|f| *f == drawn).unwrap());
            counts[at] += 1;
        }
        counts
    }

    #[test]
    fn each_of_the_longest_is_drawn_as_often() {
        // Standard deviations are below 100.
        let near = |found: [u32; 4], expected: [u32; 4]| {
            let apart = found.iter().zip(expected).map(|(a, b)| a.abs_diff(b)).max();
            assert!(apart < Some(400), "{found:?} for {expected:?}");
        };
        let third = 40_000 / 3;
        for own_counts in [true, false] {
            near(counts(five(own_counts), 1, [0, 1, 3]), [third, third, third, 0]);
            near(counts(five(own_counts), 4, [0, 1, 3]), [0, 0, 0, 40_000]);
        }
        near(counts(five(true), 3, [0, 1, 3]), [10_000; 4]);
        near(counts(five(false), 3, [0, 1, 3]), [third, third, third, 0]);
    }

    proptest! {
        #[test]
        fn it_draws_from_the_longest(
            steps in prop::collection::vec((0_usize..8, any::<bool>()), 1..300),
            own_counts in any::<bool>(),
        ) {
            let mut equals = Equals::new(own_counts, draws());
            let mut flows = [Flow::of(0); 8];
            let mut lengths = [0_u32; 8];
            for (flow, grows) in steps {
                if grows {
                    lengths[flow] += 1;
                    equals.grows(&mut flows, flow as u32, lengths[flow]);
                } else if lengths[flow] > 0 {
                    lengths[flow] -= 1;
                    equals.shrinks(&mut flows, flow as u32, lengths[flow]);
                }
                let most = *lengths.iter().max().unwrap();
                prop_assert_eq!(equals.longest(most + 1), None);
                if most > 0 {
                    let longest = (0..8).filter(|flow| lengths[*flow as usize] == most);
                    let longest: BTreeSet<u32> = longest.collect();
                    let listed = equals.of_length[most as usize].iter().copied().collect();
                    prop_assert_eq!(&longest, &listed);
                    let drawn = equals.longest(most - 1);
                    prop_assert!(drawn.is_some_and(|drawn| longest.contains(&drawn)));
                }
            }
        }
    }
}
