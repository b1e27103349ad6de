use super::*;
use crate::clock::{MILLISECOND, NEVER, create_fixed_rate_transmitter};
use std::num::NonZeroU64;

struct Seen(Vec<usize>);

impl QueueProbe for Seen {
    fn on_queue_length_interval(&mut self, _packets: usize, _until: Nanos) {
        panic!("a policer holds nothing");
    }
    fn on_arrival_queue_length(&mut self, packets: usize) {
        self.0.push(packets);
    }
}

/// RFC 2697: packets without tokens are dropped. A packet of 1500 bytes uses the tokens of 1 ms.
#[test]
fn rfc_2697_policer_passes_burst_and_then_rate() {
    let rate_bps = NonZeroU64::new(12_000_000).unwrap();
    let tokens = TokenBucketConfig { rate_bps, burst_bytes: 4500, overhead_bytes: 0 };
    let mut queue = PolicerQueue::new(PolicerConfig { tokens, packet_bytes: 1500 });
    let (mut link, mut probe) = (create_fixed_rate_transmitter(None, 1500), Seen(Vec::new()));
    let mut passes = |at: Nanos| match queue.enqueue(at, &Packet::default(), &mut link, &mut probe)
    {
        EnqueueOutcome::Departs { leaves, backlog: 0 } => leaves == at,
        EnqueueOutcome::Dropped => false,
        other => panic!("{other:?}"),
    };
    // Two packets per millisecond: the burst passes, then every second packet.
    let passed: Vec<bool> = (0..12).map(|at| passes(at * MILLISECOND / 2)).collect();
    let expected = [1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0];
    assert_eq!(passed, expected.map(|passed| passed == 1));
    assert_eq!(probe.0, [0; 12]);
    let carried = queue.link_load_until(5_500_000);
    assert_eq!(carried, Some(LinkLoad { bytes: 8 * 1500, capacity: 8250 }));
    assert_eq!((queue.held_packets(), queue.next_departure()), (0, NEVER));
}

#[test]
fn restart_fills_the_bucket_of_a_policer() {
    let tokens = TokenBucketConfig {
        rate_bps: NonZeroU64::new(12_000_000).unwrap(),
        burst_bytes: 3000,
        overhead_bytes: 0,
    };
    let mut queue = PolicerQueue::new(PolicerConfig { tokens, packet_bytes: 1500 });
    let (mut link, mut probe) = (create_fixed_rate_transmitter(None, 1500), Seen(Vec::new()));
    let mut passed = |queue: &mut PolicerQueue| {
        let mut offer = || queue.enqueue(5, &Packet::default(), &mut link, &mut probe);
        [offer(), offer(), offer()].map(|verdict| verdict != EnqueueOutcome::Dropped)
    };
    assert_eq!(passed(&mut queue), [true, true, false]);
    assert_eq!(passed(&mut queue), [false; 3]);
    queue.reset_for_next_transfer();
    assert_eq!(passed(&mut queue), [true, true, false]);
}
