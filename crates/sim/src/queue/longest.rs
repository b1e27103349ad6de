//! Which flow has the longest queue, known at once.
//!
//! Flows of one length stand in a list. A length changes by one packet at a time, so the longest
//! is found without a search.

use super::backlog::NONE;

#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    after: u32,
}

/// Flows by the length of their queues.
#[derive(Clone, Debug, Default)]
pub(super) struct Longest {
    links: Vec<Links>,
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

    /// The queue of `flow` had `from` packets and has `to`, one more or one less.
    pub(super) fn change(&mut self, flow: u32, from: u32, to: u32) {
        if from > 0 {
            self.leave(flow, from);
        }
        if to > 0 {
            self.join(flow, to);
        }
        self.most = self.most.max(to);
        if self.most > 0 && self.latest[self.most as usize] == NONE {
            self.most -= 1;
        }
    }

    fn leave(&mut self, flow: u32, len: u32) {
        let Links { before, after } = self.links[flow as usize];
        if before == NONE {
            self.latest[len as usize] = after;
        } else {
            self.links[before as usize].after = after;
        }
        if after != NONE {
            self.links[after as usize].before = before;
        }
    }

    fn join(&mut self, flow: u32, len: u32) {
        let alone = Links { before: NONE, after: NONE };
        if flow as usize >= self.links.len() {
            self.links.resize(flow as usize + 1, alone);
        }
        if len as usize >= self.latest.len() {
            self.latest.resize(len as usize + 1, NONE);
        }
        let after = self.latest[len as usize];
        self.links[flow as usize] = Links { before: NONE, after };
        if after != NONE {
            self.links[after as usize].before = flow;
        }
        self.latest[len as usize] = flow;
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
            let mut lengths = [(0_u32, 0_usize); 8]; // length, and when it came to it
            for (time, (flow, grows)) in (1..).zip(steps) {
                let from = lengths[flow].0;
                if from == 0 && !grows {
                    continue;
                }
                let to = if grows { from + 1 } else { from - 1 };
                longest.change(flow as u32, from, to);
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
