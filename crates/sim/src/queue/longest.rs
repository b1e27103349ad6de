//! Which flow has the longest queue, known at once.
//!
//! Flows of one length stand in a list. A length changes by one packet at a time, so the longest
//! is found without a search.

use super::backlog::{Flow, NONE};

/// Flows by the length of their queues, and a rule for those that are equally long.
pub trait ByLength {
    /// Whether a queue of one packet may lose it to a packet of another flow.
    const EMPTIES: bool;

    /// The queue of `flow` has a packet more, and now `to`.
    fn grows(&mut self, flows: &mut [Flow], flow: u32, to: u32);

    /// The queue of `flow` has a packet less, and now `to`.
    fn shrinks(&mut self, flows: &mut [Flow], flow: u32, to: u32);

    /// Whose queue is the longest once a packet comes to a queue that it makes `len` long; `None` if
    /// that is its own.
    fn longest(&mut self, len: u32) -> Option<u32>;
}

/// Where a flow stands among those whose queues are as long as its own.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    before: u32,
    after: u32,
}

impl Place {
    /// Alone.
    pub(super) const NOWHERE: Self = Self { before: NONE, after: NONE };

    /// In a list that is not linked.
    pub(super) fn at(index: usize) -> Self {
        Self { before: index as u32, after: NONE }
    }

    /// Where that is.
    pub(super) fn index(self) -> usize {
        self.before as usize
    }
}

/// Of several, the flow that came to that length last; the lists are in the flows.
#[derive(Clone, Debug, Default)]
pub struct Longest {
    /// The flow that came to each length last.
    latest: Vec<u32>,
    most: u32,
}

impl ByLength for Longest {
    // A packet that comes to an empty queue is the latest to make one of one packet.
    const EMPTIES: bool = false;

    fn longest(&mut self, len: u32) -> Option<u32> {
        (len < self.most).then(|| self.latest[self.most as usize])
    }

    #[inline(always)]
    fn grows(&mut self, flows: &mut [Flow], flow: u32, to: u32) {
        if to > 1 {
            self.leave(flows, flow, to - 1);
        }
        if to as usize >= self.latest.len() {
            self.lengthen(to as usize);
        }
        self.join(flows, flow, to);
        self.most = self.most.max(to);
    }

    #[inline(always)]
    fn shrinks(&mut self, flows: &mut [Flow], flow: u32, to: u32) {
        self.leave(flows, flow, to + 1);
        if to > 0 {
            self.join(flows, flow, to);
        }
        if self.most == to + 1 && self.latest[to as usize + 1] == NONE {
            self.most = to;
        }
    }
}

impl Longest {
    fn leave(&mut self, flows: &mut [Flow], flow: u32, len: u32) {
        let Place { before, after } = flows[flow as usize].place;
        if before == NONE {
            self.latest[len as usize] = after;
        } else {
            flows[before as usize].place.after = after;
        }
        if after != NONE {
            flows[after as usize].place.before = before;
        }
    }

    fn join(&mut self, flows: &mut [Flow], flow: u32, len: u32) {
        let after = std::mem::replace(&mut self.latest[len as usize], flow);
        flows[flow as usize].place = Place { before: NONE, after };
        if after != NONE {
            flows[after as usize].place.before = flow;
        }
    }

    #[cold]
    fn lengthen(&mut self, len: usize) {
        self.latest.resize(len + 1, NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_longest_and_of_several_the_latest(
            steps in prop::collection::vec((0_usize..8, any::<bool>()), 1..300),
        ) {
            let mut longest = Longest::default();
            let mut flows = [Flow::of(0); 8];
            let mut lengths = [(0_u32, 0_usize); 8]; // length, and when it came to it
            for (time, (flow, grows)) in (1..).zip(steps) {
                let from = lengths[flow].0;
                if from == 0 && !grows {
                    continue;
                }
                let to = if grows { from + 1 } else { from - 1 };
                if grows {
                    longest.grows(&mut flows, flow as u32, to);
                } else {
                    longest.shrinks(&mut flows, flow as u32, to);
                }
                lengths[flow] = (to, time);
                let of_all = *lengths.iter().max().unwrap();
                prop_assert_eq!(longest.longest(of_all.0), None);
                if of_all.0 > 0 {
                    let expected = lengths.iter().position(|length| *length == of_all).unwrap();
                    prop_assert_eq!(longest.longest(of_all.0 - 1), Some(expected as u32));
                }
            }
        }
    }
}
