//! Tests of `FifoLink` and `QueueingLink`, including their agreement.

use super::*;
use crate::queue::{AdmitAll, DropTail};
use crate::time::SECOND;
use crate::transmit::{AnyTransmitter, ConstantRate, TokenBucket, TokenBucketConfig};
use proptest::prelude::*;
use std::num::NonZeroU64;

/// A rate at which 1500 bytes take 1000 ns.
fn rate() -> ConstantRate {
    ConstantRate::new(NonZeroU64::new(12_000_000_000))
}

#[derive(Default)]
struct Recorder {
    levels: Vec<(u64, Nanos)>,
    dropped: Vec<u32>,
}

impl QueueProbe<u32> for Recorder {
    fn on_drop(&mut self, _now: Nanos, packet: &Packet, _reason: DropReason) {
        self.dropped.push(packet.token);
    }
    fn on_queue_length_interval(&mut self, packets: u64, until: Nanos) {
        self.levels.push((packets, until));
    }
}

#[test]
fn fifo_link_counts_packet_in_transmission_and_departs_before_arrivals() {
    let mut link = FifoLink::new(BufferLimits::limit_packets(2), rate());
    let mut recorder = Recorder::default();
    let mut offer = |now| link.offer(now, Packet::new(7, 0, 1500), &mut recorder);
    assert_eq!([offer(0), offer(0), offer(999)], [Some(1000), Some(2000), None]);
    assert_eq!(offer(1000), Some(3000));
    assert_eq!(recorder.levels, [(0, 0), (1, 0), (2, 1000), (1, 1000)]);
    assert_eq!(recorder.dropped, [7]);
}

#[test]
fn fifo_link_without_rate_holds_nothing() {
    let mut link = FifoLink::new(BufferLimits::limit_packets(1), ConstantRate::new(None));
    let mut recorder = Recorder::default();
    for now in [0, 0, 5] {
        assert_eq!(link.offer(now, Packet::new(0, 0, 1500), &mut recorder), Some(now));
    }
}

#[test]
fn fifo_link_counts_packet_waiting_for_tokens_as_in_transmission() {
    let rate_bps = NonZeroU64::new(12_000_000_000).unwrap();
    let bucket =
        TokenBucket::new(TokenBucketConfig { rate_bps, burst_bytes: 3000, overhead_bytes: 0 });
    let mut link = FifoLink::new(BufferLimits::limit_packets(1), bucket);
    let mut recorder = Recorder::default();
    let mut offer = |now| link.offer(now, Packet::new(0, 0, 1500), &mut recorder);
    assert_eq!([offer(0), offer(0), offer(0)], [Some(0), Some(0), Some(1000)]);
    assert_eq!([offer(999), offer(1000)], [None, Some(2000)]);
}

/// Serves all packets that leave by `now`, in order.
fn serve_until<Q: QueueDiscipline<u32>, X: Transmitter>(
    link: &mut QueueingLink<Q, X>,
    now: Nanos,
    recorder: &mut Recorder,
    departures: &mut Vec<(u32, Nanos)>,
) {
    while link.next_departure() <= now {
        departures.extend(
            link.transmit_next_packet(recorder).map(|(leaves, packet)| (packet.token, leaves)),
        );
    }
}

type Arrivals = Vec<(Nanos, u32)>;

/// Departed tokens with their times, dropped tokens, and the integral of the queue length.
type Outcome = (Vec<(u32, Nanos)>, Vec<u32>, u64);

/// Time integral of the number of packets held.
fn integral(levels: &[(u64, Nanos)]) -> u64 {
    let mut from = 0;
    levels
        .iter()
        .map(|(packets, until)| packets * (until - std::mem::replace(&mut from, *until)))
        .sum()
}

fn run_fifo(mut link: FifoLink<impl Transmitter>, arrivals: &Arrivals) -> Outcome {
    let (mut recorder, mut departures) = (Recorder::default(), Vec::new());
    for (token, (now, bytes)) in (0..).zip(arrivals) {
        let leaves = link.offer(*now, Packet::new(token, 0, *bytes), &mut recorder);
        departures.extend(leaves.map(|leaves| (token, leaves)));
    }
    link.advance_to(NEVER - 1, &mut recorder);
    (departures, recorder.dropped, integral(&recorder.levels))
}

fn run_held<Q: QueueDiscipline<u32>>(
    mut link: QueueingLink<Q, impl Transmitter>,
    arrivals: &Arrivals,
) -> Outcome {
    let (mut recorder, mut departures) = (Recorder::default(), Vec::new());
    for (token, (now, bytes)) in (0..).zip(arrivals) {
        serve_until(&mut link, *now, &mut recorder, &mut departures);
        let packet = Packet::new(token, 0, *bytes);
        if let OfferOutcome::Departs { leaves, .. } = link.offer(*now, packet, &mut recorder) {
            departures.push((token, leaves));
        }
    }
    serve_until(&mut link, NEVER - 1, &mut recorder, &mut departures);
    assert_eq!(link.queue().held_backlog(), Backlog::default());
    (departures, recorder.dropped, integral(&recorder.levels))
}

proptest! {
    #[test]
    fn fifo_link_and_held_link_agree(
        arrivals in prop::collection::vec(
            (prop_oneof![30 => 0_u64..1300, 1 => 0_u64..20_000], 64_u32..3000),
            1..300,
        ),
        packets in 1_u64..20,
        bytes in prop::option::of(1000_u64..20_000),
        bucket: bool,
    ) {
        let limits = BufferLimits { packets: Some(packets), bytes };
        let mut now = 0;
        let arrivals: Arrivals = arrivals.into_iter().map(|(gap, bytes)| {
            now += gap;
            (now, bytes)
        }).collect();
        let transmitter = || if bucket {
            let rate_bps = NonZeroU64::new(8 * SECOND).unwrap();
            AnyTransmitter::TokenBucket(TokenBucket::new(TokenBucketConfig { rate_bps, burst_bytes: 2500, overhead_bytes: 0 }))
        } else {
            AnyTransmitter::ConstantRate(rate())
        };
        let fifo = run_fifo(FifoLink::new(limits, transmitter()), &arrivals);
        let tail: DropTail = DropTail::new(limits, AdmitAll);
        prop_assert_eq!(fifo, run_held(QueueingLink::new(tail, transmitter()), &arrivals));
    }
}
