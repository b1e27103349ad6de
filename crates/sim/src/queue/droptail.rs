//! First in, first out; what finds the buffer full is dropped.

use super::{QueueDiscipline, QueueProbe, Verdict};
use crate::clock::{NEVER, Nanos, Transmitter};
use crate::packet::Packet;
use tcpcast_link::ring::Ring;

/// The drop-tail queue.
///
/// It counts packets. All packets of a run are of one size, so a buffer of so many bytes is one of
/// so many whole packets.
#[derive(Clone, Debug)]
pub struct DropTail {
    most: usize,
    leaving: Ring<Nanos>,
    /// When the first of those leaves, [`NEVER`] if there is none.
    first_leaves: Nanos,
}

impl DropTail {
    /// An empty queue that holds `most` packets, the one in transmission included; `None` is
    /// unlimited.
    #[must_use]
    pub fn new(most: Option<u64>) -> Self {
        let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        Self { most, leaving: Ring::default(), first_leaves: NEVER }
    }

    /// Whether one more packet fits, as of the last call.
    #[inline(always)]
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.leaving.len() < self.most
    }
}

impl QueueDiscipline for DropTail {
    #[inline(always)]
    fn offer(
        &mut self,
        now: Nanos,
        _packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Verdict {
        self.settle(now, probe);
        let found = self.leaving.len();
        probe.queue_seen(found);
        if found >= self.most {
            return Verdict::Dropped;
        }
        let leaves = link.transmit(now);
        if leaves > now {
            probe.queue_held(found, now);
            self.leaving.push(leaves);
            if found == 0 {
                self.first_leaves = leaves;
            }
        }
        Verdict::Departs { leaves, found }
    }

    #[inline(always)]
    fn settle(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
        while self.first_leaves <= now {
            probe.queue_held(self.leaving.len(), self.first_leaves);
            self.leaving.take();
            self.first_leaves = self.leaving.first().copied().unwrap_or(NEVER);
        }
    }

    fn held(&self) -> usize {
        self.leaving.len()
    }

    fn ahead(&self, now: Nanos) -> Nanos {
        self.leaving.iter().map(|leaves| leaves - now).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Levels(Vec<(usize, Nanos)>, Vec<usize>);

    impl QueueProbe for Levels {
        fn queue_held(&mut self, packets: usize, until: Nanos) {
            self.0.push((packets, until));
        }
        fn queue_seen(&mut self, packets: usize) {
            self.1.push(packets);
        }
    }

    #[test]
    fn the_one_in_transmission_counts_and_departures_come_first() {
        let mut link = Transmitter::new(Some(12_000_000_000), 1500); // 1500 bytes take 1000 ns
        let mut queue = DropTail::new(Some(2));
        let mut probe = Levels::default();
        let mut offer = |now| queue.offer(now, &Packet::default(), &mut link, &mut probe);
        assert_eq!(offer(0), Verdict::Departs { leaves: 1000, found: 0 });
        assert_eq!(offer(0), Verdict::Departs { leaves: 2000, found: 1 });
        assert_eq!(offer(999), Verdict::Dropped);
        assert_eq!(offer(1000), Verdict::Departs { leaves: 3000, found: 1 });
        assert_eq!(probe.1, [0, 1, 2, 1]);
        assert_eq!(probe.0, [(0, 0), (1, 0), (2, 1000), (1, 1000)]);
    }

    proptest! {
        /// A queue that holds its packets and is stepped from departure to departure says the same.
        #[test]
        fn it_agrees_with_a_queue_that_is_stepped(
            gaps in prop::collection::vec(0_u64..2500, 1..300),
            most in 1_usize..12,
        ) {
            let mut link = Transmitter::new(Some(12_000_000_000), 1500);
            let mut queue = DropTail::new(Some(most as u64));
            let mut probe = Levels::default();
            let (mut now, mut waiting, mut head_leaves) = (0, 0_usize, 0);
            for gap in gaps {
                now += gap;
                while waiting > 0 && head_leaves <= now {
                    waiting -= 1;
                    head_leaves += 1000;
                }
                let expected = if waiting == most {
                    Verdict::Dropped
                } else {
                    if waiting == 0 {
                        head_leaves = now + 1000;
                    }
                    waiting += 1;
                    let found = waiting - 1;
                    Verdict::Departs { leaves: head_leaves + 1000 * found as u64, found }
                };
                prop_assert_eq!(queue.offer(now, &Packet::default(), &mut link, &mut probe), expected);
                prop_assert_eq!(queue.held(), waiting);
            }
        }
    }
}
