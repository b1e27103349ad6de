//! Constant-time lookup of the flow with the longest queue in packets.
//!
//! There is one list of flows per queue length. A length changes by one packet at a time, so the
//! longest queue is known without a search, for any number of flows and ties.

use super::flow_table::DrrFlow;
use super::packet_list::NO_INDEX;
use crate::random::RandomSource;
use serde::Deserialize;

/// Tie-breaking rule: which of several longest queues loses a packet. The arriving packet counts as
/// part of its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TieBreakRule {
    /// The queue that reached its length last. If the queue of the arriving packet is among the
    /// longest queues, that queue is chosen.
    #[default]
    Latest,
    /// A random queue, including the queue of the arriving packet.
    Random,
    /// A random queue, excluding the queue of the arriving packet.
    RandomOthers,
}

/// Links of a flow in the list of flows with equal queue lengths.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListLinks {
    /// The preceding flow for [`LatestTieBreak`], or the index in the list for [`RandomTieBreak`].
    before: u32,
    after: u32,
}

impl ListLinks {
    /// Links of a flow that is in no list.
    pub const UNLINKED: Self = Self { before: NO_INDEX, after: NO_INDEX };
}

/// Flows by queue length.
#[derive(Clone, Debug)]
pub(super) enum LongestQueue<D> {
    /// Ties are broken in favour of the queue that reached its length last.
    Latest(LatestTieBreak),
    /// Ties are broken at random.
    RandomTie(RandomTieBreak<D>),
}

impl<D: RandomSource> LongestQueue<D> {
    /// Creates an empty structure; `draws` is used for random ties.
    pub fn new(ties: TieBreakRule, draws: D) -> Self {
        match ties {
            TieBreakRule::Latest => Self::Latest(LatestTieBreak::default()),
            TieBreakRule::Random | TieBreakRule::RandomOthers => Self::RandomTie(RandomTieBreak {
                of_length: Vec::new(),
                max_len: 0,
                includes_arrival: ties == TieBreakRule::Random,
                draws,
            }),
        }
    }

    /// Returns the flow with the longest queue after the arrival of a packet that makes its own
    /// queue `len` packets long, or `None` if that queue is the longest. With `len` = 0, no packet
    /// arrives.
    pub fn longest_flow(&mut self, len: u32) -> Option<u32> {
        match self {
            Self::Latest(latest) => latest.longest_flow(len),
            Self::RandomTie(random) => random.longest_flow(len),
        }
    }

    /// Records that the queue of `flow` has grown by one packet to length `to`.
    #[inline]
    pub fn on_queue_grown(&mut self, flows: &mut [DrrFlow], flow: u32, to: u32) {
        match self {
            Self::Latest(latest) => latest.on_queue_grown(flows, flow, to),
            Self::RandomTie(random) => random.on_queue_grown(flows, flow, to),
        }
    }

    /// Records that the queue of `flow` has shrunk by one packet to length `to`.
    #[inline]
    pub fn on_queue_shrunk(&mut self, flows: &mut [DrrFlow], flow: u32, to: u32) {
        match self {
            Self::Latest(latest) => latest.on_queue_shrunk(flows, flow, to),
            Self::RandomTie(random) => random.on_queue_shrunk(flows, flow, to),
        }
    }
}

/// One list of flows per queue length.
trait LengthLists {
    fn leave_list(&mut self, flows: &mut [DrrFlow], flow: u32, len: u32);
    fn join_list(&mut self, flows: &mut [DrrFlow], flow: u32, len: u32);
    /// Whether no queue has length `len`, which must have occurred before.
    fn has_no_queue_of_length(&self, len: u32) -> bool;
    /// Length of the longest queue.
    fn max_len(&mut self) -> &mut u32;

    #[inline]
    fn on_queue_grown(&mut self, flows: &mut [DrrFlow], flow: u32, to: u32) {
        if to > 1 {
            self.leave_list(flows, flow, to - 1);
        }
        self.join_list(flows, flow, to);
        *self.max_len() = to.max(*self.max_len());
    }

    #[inline]
    fn on_queue_shrunk(&mut self, flows: &mut [DrrFlow], flow: u32, to: u32) {
        self.leave_list(flows, flow, to + 1);
        if to > 0 {
            self.join_list(flows, flow, to);
        }
        if *self.max_len() == to + 1 && self.has_no_queue_of_length(to + 1) {
            *self.max_len() = to;
        }
    }
}

/// Linked lists through the flows, most recent flow first.
#[derive(Clone, Debug, Default)]
pub(super) struct LatestTieBreak {
    /// Flow that reached each length last.
    latest: Vec<u32>,
    max_len: u32,
}

impl LatestTieBreak {
    fn longest_flow(&self, len: u32) -> Option<u32> {
        (len < self.max_len).then(|| self.latest[self.max_len as usize])
    }
}

impl LengthLists for LatestTieBreak {
    #[inline]
    fn leave_list(&mut self, flows: &mut [DrrFlow], flow: u32, len: u32) {
        let ListLinks { before, after } = flows[flow as usize].links;
        if before == NO_INDEX {
            self.latest[len as usize] = after;
        } else {
            flows[before as usize].links.after = after;
        }
        if after != NO_INDEX {
            flows[after as usize].links.before = before;
        }
    }

    #[inline]
    fn join_list(&mut self, flows: &mut [DrrFlow], flow: u32, len: u32) {
        if len as usize >= self.latest.len() {
            self.latest.resize(len as usize + 1, NO_INDEX);
        }
        let after = std::mem::replace(&mut self.latest[len as usize], flow);
        flows[flow as usize].links = ListLinks { before: NO_INDEX, after };
        if after != NO_INDEX {
            flows[after as usize].links.before = flow;
        }
    }

    #[inline]
    fn has_no_queue_of_length(&self, len: u32) -> bool {
        self.latest[len as usize] == NO_INDEX
    }

    #[inline]
    fn max_len(&mut self) -> &mut u32 {
        &mut self.max_len
    }
}

/// Unordered lists as vectors; removal moves the last flow into the gap.
#[derive(Clone, Debug)]
pub(super) struct RandomTieBreak<D> {
    of_length: Vec<Vec<u32>>,
    max_len: u32,
    /// Whether the queue of the arriving packet takes part in random ties.
    includes_arrival: bool,
    draws: D,
}

impl<D: RandomSource> RandomTieBreak<D> {
    fn longest_flow(&mut self, len: u32) -> Option<u32> {
        if len > self.max_len {
            return None;
        }
        let flows_of_len = self.of_length.get(self.max_len as usize)?;
        let arriving = u32::from(self.includes_arrival && len == self.max_len);
        // The queue of the arriving packet is not in the list yet; it has the index after the last.
        let among = flows_of_len.len() as u32 + arriving;
        flows_of_len.get(self.draws.draw_below(among) as usize).copied()
    }
}

impl<D> LengthLists for RandomTieBreak<D> {
    #[inline]
    fn leave_list(&mut self, flows: &mut [DrrFlow], flow: u32, len: u32) {
        let links = flows[flow as usize].links;
        let flows_of_len = &mut self.of_length[len as usize];
        flows_of_len.swap_remove(links.before as usize);
        if let Some(moved) = flows_of_len.get(links.before as usize) {
            flows[*moved as usize].links = links;
        }
    }

    #[inline]
    fn join_list(&mut self, flows: &mut [DrrFlow], flow: u32, len: u32) {
        if len as usize >= self.of_length.len() {
            self.of_length.resize_with(len as usize + 1, Vec::new);
        }
        let flows_of_len = &mut self.of_length[len as usize];
        flows[flow as usize].links =
            ListLinks { before: flows_of_len.len() as u32, after: NO_INDEX };
        flows_of_len.push(flow);
    }

    #[inline]
    fn has_no_queue_of_length(&self, len: u32) -> bool {
        self.of_length[len as usize].is_empty()
    }

    #[inline]
    fn max_len(&mut self) -> &mut u32 {
        &mut self.max_len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;
    use proptest::prelude::*;

    fn longest(ties: TieBreakRule) -> LongestQueue<RandomStream> {
        LongestQueue::new(ties, RandomStream::from_seed(1))
    }

    fn none() -> [DrrFlow; 8] {
        [DrrFlow::new(0, 1.0); 8]
    }

    proptest! {
        #[test]
        fn longest_queue_is_found_with_latest_or_random_ties(
            steps in prop::collection::vec((0_usize..8, any::<bool>()), 1..300),
        ) {
            let (mut latest, mut random) = (longest(TieBreakRule::Latest), longest(TieBreakRule::RandomOthers));
            let (mut flows, mut random_flows) = (none(), none());
            let mut lengths = [(0_u32, 0_usize); 8]; // length and time at which it was reached
            for (time, (flow, grows)) in (1..).zip(steps) {
                let from = lengths[flow].0;
                if from == 0 && !grows {
                    continue;
                }
                let to = if grows { from + 1 } else { from - 1 };
                if grows {
                    latest.on_queue_grown(&mut flows, flow as u32, to);
                    random.on_queue_grown(&mut random_flows, flow as u32, to);
                } else {
                    latest.on_queue_shrunk(&mut flows, flow as u32, to);
                    random.on_queue_shrunk(&mut random_flows, flow as u32, to);
                }
                lengths[flow] = (to, time);
                let of_all = *lengths.iter().max().unwrap();
                prop_assert_eq!(latest.longest_flow(of_all.0), None);
                prop_assert_eq!(random.longest_flow(of_all.0 + 1), None);
                if of_all.0 > 0 {
                    let expected = lengths.iter().position(|length| *length == of_all).unwrap();
                    prop_assert_eq!(latest.longest_flow(of_all.0 - 1), Some(expected as u32));
                    let one = random.longest_flow(of_all.0 - 1).unwrap();
                    prop_assert_eq!(lengths[one as usize].0, of_all.0);
                }
            }
        }
    }

    #[test]
    fn random_ties_are_uniform_with_or_without_arriving_queue() {
        // Queue lengths of flows 0 to 4: 3, 3, 1, 3 and 2 packets; `len` includes the arriving
        // packet.
        for (ties, len, expected) in [
            (TieBreakRule::Random, 3, [10_000, 10_000, 10_000, 10_000]),
            (TieBreakRule::RandomOthers, 3, [13_333, 13_333, 13_333, 0]),
            (TieBreakRule::Random, 2, [13_333, 13_333, 13_333, 0]),
            (TieBreakRule::Random, 4, [0, 0, 0, 40_000]),
        ] {
            let (mut longest, mut flows) = (longest(ties), none());
            for (flow, len) in (0..).zip([3, 3, 1, 3, 2]) {
                (1..=len).for_each(|to| longest.on_queue_grown(&mut flows, flow, to));
            }
            let mut counts = [0_u32; 4];
            for _ in 0..40_000 {
                let at = match longest.longest_flow(len) {
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
