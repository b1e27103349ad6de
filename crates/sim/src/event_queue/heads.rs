//! Which of several queues has the earliest head.

use crate::clock::Nanos;

/// The times of the heads of some queues.
///
/// Up to eight are simply compared, which takes no branch and nothing to keep in order; more are
/// kept in a tournament. At equal times the queue with the lower number is first. The queues from
/// [`BUSY`] on are expected to change seldom.
#[derive(Clone, Debug)]
pub struct Heads {
    /// Time and queue in one number, so that the least is the first.
    few: [u64; FEW],
    /// The least of those that change seldom.
    seldom: u64,
    many: Option<Tournament>,
}

const FEW: usize = 8;
const QUEUE_BITS: u32 = FEW.ilog2();
const BUSY: usize = 5;

/// Times are below this, 73 years; what comes later is never.
pub const LAST: Nanos = u64::MAX >> QUEUE_BITS;

impl Heads {
    /// So many queues, all empty.
    #[must_use]
    pub fn new(queues: usize) -> Self {
        let many = (queues > FEW).then(|| Tournament::new(queues));
        Self { few: [u64::MAX; FEW], seldom: u64::MAX, many }
    }

    /// The head of a queue is due at `time`, [`LAST`] if it is empty.
    #[inline(always)]
    pub fn set(&mut self, queue: usize, time: Nanos) {
        debug_assert!(time <= LAST, "later than the last time");
        match &mut self.many {
            None => {
                let at = queue % FEW;
                self.few[at] = (time << QUEUE_BITS) | at as u64;
                if at >= BUSY {
                    self.seldom = least(&self.few[BUSY..]);
                }
            }
            Some(tournament) => tournament.set(queue, time),
        }
    }

    /// The earliest head: its queue and when it is due, [`LAST`] if all are empty.
    #[inline(always)]
    #[must_use]
    pub fn first(&self) -> (usize, Nanos) {
        if let Some(tournament) = &self.many {
            return tournament.first();
        }
        let first = least(&self.few[..BUSY]).min(self.seldom);
        (first as usize % FEW, first >> QUEUE_BITS)
    }

    /// When the head of a queue is due, [`LAST`] if it is empty.
    #[inline]
    #[must_use]
    pub fn of(&self, queue: usize) -> Nanos {
        match &self.many {
            None => self.few[queue] >> QUEUE_BITS,
            Some(tournament) => tournament.times[queue],
        }
    }
}

#[inline(always)]
fn least(keys: &[u64]) -> u64 {
    keys.iter().fold(u64::MAX, |least, key| least.min(*key))
}

/// A tournament of heads: each inner node names the winner below it.
#[derive(Clone, Debug)]
struct Tournament {
    times: Vec<Nanos>,
    winners: Vec<u32>,
}

impl Tournament {
    fn new(queues: usize) -> Self {
        let leaves = queues.next_power_of_two();
        let mut tournament = Self { times: vec![LAST; leaves], winners: vec![0; leaves] };
        for queue in 0..leaves {
            tournament.set(queue, LAST);
        }
        tournament
    }

    fn first(&self) -> (usize, Nanos) {
        let queue = self.winners[1] as usize;
        (queue, self.times[queue])
    }

    fn set(&mut self, queue: usize, time: Nanos) {
        self.times[queue] = time;
        let leaves = self.times.len();
        let mut node = (leaves + queue) / 2;
        while node >= 1 {
            let (left, right) = (2 * node, 2 * node + 1);
            let (a, b) = if left >= leaves {
                ((left - leaves) as u32, (right - leaves) as u32)
            } else {
                (self.winners[left], self.winners[right])
            };
            let right_wins = self.times[b as usize] < self.times[a as usize];
            self.winners[node] = if right_wins { b } else { a };
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least(
            queues in 1_usize..40,
            sets in prop::collection::vec((0_usize..40, 0_u64..20), 1..100),
        ) {
            let mut heads = Heads::new(queues);
            let mut times = vec![LAST; queues];
            for (queue, time) in sets {
                heads.set(queue % queues, time);
                times[queue % queues] = time;
                let least = *times.iter().min().unwrap();
                let first = times.iter().position(|t| *t == least).unwrap();
                prop_assert_eq!(heads.first(), (first, least));
                prop_assert_eq!(heads.of(queue % queues), time);
            }
        }
    }
}
