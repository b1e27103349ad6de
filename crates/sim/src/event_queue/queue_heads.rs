//! Selection of the queue with the earliest head.

use crate::clock::Nanos;

/// Times of the heads of several queues.
///
/// Up to eight queues are compared directly, without branches or ordering. More queues use a
/// tournament tree. At equal times the queue with the lower index comes first. Queues with an index
/// of [`FIRST_RARE_QUEUE`] or more are expected to change rarely.
#[derive(Clone, Debug)]
pub struct QueueHeads {
    /// Time and queue index packed into one number, so that the minimum is the first.
    keys: [u64; MAX_DIRECT_QUEUES],
    /// Minimum of the keys that change rarely.
    min_rare: u64,
    tournament: Option<TournamentTree>,
}

const MAX_DIRECT_QUEUES: usize = 8;
const QUEUE_BITS: u32 = MAX_DIRECT_QUEUES.ilog2();
const FIRST_RARE_QUEUE: usize = 5;

/// Upper limit of times, 73 years; also the time of an empty queue.
pub const MAX_TIME: Nanos = u64::MAX >> QUEUE_BITS;

impl QueueHeads {
    /// Creates the heads of `queues` empty queues.
    #[must_use]
    pub fn new(queues: usize) -> Self {
        let tournament = (queues > MAX_DIRECT_QUEUES).then(|| TournamentTree::new(queues));
        Self { keys: [u64::MAX; MAX_DIRECT_QUEUES], min_rare: u64::MAX, tournament }
    }

    /// Sets the time of the head of a queue; [`MAX_TIME`] if the queue is empty.
    #[inline(always)]
    pub fn set_head(&mut self, queue: usize, time: Nanos) {
        debug_assert!(time <= MAX_TIME, "later than the last time");
        match &mut self.tournament {
            None => {
                let index = queue % MAX_DIRECT_QUEUES;
                self.keys[index] = (time << QUEUE_BITS) | index as u64;
                if index >= FIRST_RARE_QUEUE {
                    self.min_rare = min_key(&self.keys[FIRST_RARE_QUEUE..]);
                }
            }
            Some(tournament) => tournament.set_head(queue, time),
        }
    }

    /// Queue and time of the earliest head; [`MAX_TIME`] if all queues are empty.
    #[inline(always)]
    #[must_use]
    pub fn earliest_head(&self) -> (usize, Nanos) {
        if let Some(tournament) = &self.tournament {
            return tournament.earliest_head();
        }
        let first = min_key(&self.keys[..FIRST_RARE_QUEUE]).min(self.min_rare);
        (first as usize % MAX_DIRECT_QUEUES, first >> QUEUE_BITS)
    }

    /// Time of the head of a queue; [`MAX_TIME`] if the queue is empty.
    #[inline]
    #[must_use]
    pub fn head_time(&self, queue: usize) -> Nanos {
        match &self.tournament {
            None => self.keys[queue] >> QUEUE_BITS,
            Some(tournament) => tournament.times[queue],
        }
    }
}

#[inline(always)]
fn min_key(keys: &[u64]) -> u64 {
    keys.iter().fold(u64::MAX, |min, key| min.min(*key))
}

/// A tournament tree of heads: each inner node stores the winner of its subtree.
#[derive(Clone, Debug)]
struct TournamentTree {
    times: Vec<Nanos>,
    winners: Vec<u32>,
}

impl TournamentTree {
    fn new(queues: usize) -> Self {
        let leaves = queues.next_power_of_two();
        let mut tournament = Self { times: vec![MAX_TIME; leaves], winners: vec![0; leaves] };
        for queue in 0..leaves {
            tournament.set_head(queue, MAX_TIME);
        }
        tournament
    }

    fn earliest_head(&self) -> (usize, Nanos) {
        let queue = self.winners[1] as usize;
        (queue, self.times[queue])
    }

    fn set_head(&mut self, queue: usize, time: Nanos) {
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
        fn first_is_the_earliest_head(
            queues in 1_usize..40,
            sets in prop::collection::vec((0_usize..40, 0_u64..20), 1..100),
        ) {
            let mut heads = QueueHeads::new(queues);
            let mut times = vec![MAX_TIME; queues];
            for (queue, time) in sets {
                heads.set_head(queue % queues, time);
                times[queue % queues] = time;
                let min = *times.iter().min().unwrap();
                let first = times.iter().position(|t| *t == min).unwrap();
                prop_assert_eq!(heads.earliest_head(), (first, min));
                prop_assert_eq!(heads.head_time(queue % queues), time);
            }
        }
    }
}
