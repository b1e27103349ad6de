//! First in, first out; what finds the buffer full is dropped.

use super::{QueueDiscipline, QueueProbe, Verdict};
use crate::clock::{Nanos, Transmitter};
use crate::ring::Ring;

/// The most a buffer holds, the packet in transmission included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many packets.
    Packets(u64),
    /// So many bytes.
    Bytes(u64),
    /// No limit.
    Unlimited,
}

/// The drop-tail queue.
#[derive(Clone, Debug)]
pub struct DropTail {
    limit: Limit,
    bytes: u64,
    leaving: Ring<(Nanos, u32)>,
}

impl DropTail {
    /// An empty queue.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self { limit, bytes: 0, leaving: Ring::default() }
    }

    #[inline(always)]
    fn has_room(&self, bytes: u32) -> bool {
        match self.limit {
            Limit::Packets(most) => (self.leaving.len() as u64) < most,
            Limit::Bytes(most) => self.bytes + u64::from(bytes) <= most,
            Limit::Unlimited => true,
        }
    }
}

impl QueueDiscipline for DropTail {
    #[inline(always)]
    fn offer(
        &mut self,
        now: Nanos,
        bytes: u32,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Verdict {
        self.settle(now, probe);
        let found = self.leaving.len();
        probe.queue_seen(found);
        if !self.has_room(bytes) {
            return Verdict::Dropped;
        }
        let leaves = link.transmit(now);
        if leaves > now {
            probe.queue_held(found, now);
            self.bytes += u64::from(bytes);
            self.leaving.push((leaves, bytes));
        }
        Verdict::Departs { leaves, found }
    }

    #[inline(always)]
    fn settle(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
        while let Some(&(departure, bytes)) = self.leaving.first() {
            if departure > now {
                break;
            }
            probe.queue_held(self.leaving.len(), departure);
            self.bytes -= u64::from(bytes);
            self.leaving.pop();
        }
    }

    fn held(&self) -> usize {
        self.leaving.len()
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
        let mut queue = DropTail::new(Limit::Packets(2));
        let mut probe = Levels::default();
        let mut offer = |now| queue.offer(now, 1500, &mut link, &mut probe);
        assert_eq!(offer(0), Verdict::Departs { leaves: 1000, found: 0 });
        assert_eq!(offer(0), Verdict::Departs { leaves: 2000, found: 1 });
        assert_eq!(offer(999), Verdict::Dropped);
        assert_eq!(offer(1000), Verdict::Departs { leaves: 3000, found: 1 });
        assert_eq!(probe.1, [0, 1, 2, 1]);
        assert_eq!(probe.0, [(0, 0), (1, 0), (2, 1000), (1, 1000)]);
    }

    #[test]
    fn a_buffer_in_bytes() {
        let mut link = Transmitter::new(Some(12_000_000_000), 1500);
        let mut queue = DropTail::new(Limit::Bytes(3100));
        let mut probe = Levels::default();
        let mut offer = |now| queue.offer(now, 1500, &mut link, &mut probe);
        assert!(matches!(offer(0), Verdict::Departs { .. }));
        assert!(matches!(offer(0), Verdict::Departs { .. }));
        assert_eq!(offer(0), Verdict::Dropped);
        assert!(matches!(offer(1000), Verdict::Departs { .. }));
    }

    proptest! {
        /// A queue that holds its packets and is stepped from departure to departure says the same.
        #[test]
        fn it_agrees_with_a_queue_that_is_stepped(
            gaps in prop::collection::vec(0_u64..2500, 1..300),
            most in 1_usize..12,
        ) {
            let mut link = Transmitter::new(Some(12_000_000_000), 1500);
            let mut queue = DropTail::new(Limit::Packets(most as u64));
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
                prop_assert_eq!(queue.offer(now, 1500, &mut link, &mut probe), expected);
                prop_assert_eq!(queue.held(), waiting);
            }
        }
    }
}
