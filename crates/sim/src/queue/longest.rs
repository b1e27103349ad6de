//! Which flow has the longest queue, known at once.
//!
//! Flows of one length stand in a list. A length changes by one packet at a time, so the longest
//! is found without a search.

use super::backlog::{Flow, NONE};

/// Where a flow stands among those whose queues are as long as its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    before: u32,
    after: u32,
}

impl Place {
    /// Alone.
    pub(super) const NOWHERE: Self = Self { before: NONE, after: NONE };
}

/// Flows by the length of their queues; the lists are in the flows.
#[derive(Clone, Debug, Default)]
pub(super) struct Longest {
    /// The flow that came to each length last.
    latest: Vec<u32>,
    most: u32,
}

impl Longest {
    /// The length of the longest queue; 0 if there is none.
    pub(super) fn len(&self) -> u32 {
        self.most
    }

    /// The flow with the longest queue; of several, the one that came to that length last.
    pub(super) fn flow(&self) -> u32 {
        self.latest.get(self.most as usize).copied().unwrap_or(NONE)
    }

    /// The queue of `flow` has a packet more, and now `to`.
    #[inline(always)]
    pub(super) fn grows(&mut self, flows: &mut [Flow], flow: u32, to: u32) {
        if to > 1 {
            self.leave(flows, flow, to - 1);
        }
        if to as usize >= self.latest.len() {
            self.lengthen(to as usize);
        }
        self.join(flows, flow, to);
        self.most = self.most.max(to);
    }

    /// The queue of `flow` has a packet less, and now `to`.
    #[inline(always)]
    pub(super) fn shrinks(&mut self, flows: &mut [Flow], flow: u32, to: u32) {
        self.leave(flows, flow, to + 1);
        if to > 0 {
            self.join(flows, flow, to);
        }
        if self.most == to + 1 && self.latest[to as usize + 1] == NONE {
            self.most = to;
        }
    }

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
                prop_assert_eq!(longest.len(), of_all.0);
                if of_all.0 > 0 {
                    let expected = lengths.iter().position(|length| *length == of_all).unwrap();
                    prop_assert_eq!(longest.flow(), expected as u32);
                }
            }
        }
    }
}
