//! A second, plain implementation of FIFO links: one event per departure, nothing computed ahead.

use crate::random_network::{LinkPlan, Plan, Run, plans_with};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use tcpcast_link::Nanos;
use tcpcast_link::queue::{BufferLimits, QueueConfig};
use tcpcast_net::Network;

#[derive(Clone, Copy)]
enum Event {
    Departure { link: usize },
    Arrival { packet: usize, hop: usize },
}

/// A link: its packets, the first of which is in transmission, and the exact time of the last
/// departure of the busy period as its start and the bits sent since.
#[derive(Clone, Default)]
struct FifoState {
    packets: VecDeque<(usize, usize)>,
    began: Nanos,
    bits: u128,
}

/// Returns the time at which each packet is delivered; `None` if it is dropped.
fn deliveries(plan: &Plan) -> Vec<Option<Nanos>> {
    let mut delivered = vec![None; plan.packets.len()];
    let mut links = vec![FifoState::default(); plan.links.len()];
    // Departures come before arrivals; then by link and order of scheduling.
    let mut agenda: BTreeMap<(Nanos, u8, usize, usize), Event> = BTreeMap::new();
    let mut count = 0;
    let place = |packet: usize, hop: usize| {
        plan.routes[plan.packets[packet].route].links.get(hop).copied().unwrap_or(usize::MAX)
    };
    for (packet, sent) in plan.packets.iter().enumerate() {
        count += 1;
        let event = Event::Arrival { packet, hop: 0 };
        let extra = if place(packet, 0) == usize::MAX { plan.routes[sent.route].delay } else { 0 };
        agenda.insert((sent.time + extra, 1, place(packet, 0), count), event);
    }
    while let Some(((now, ..), event)) = agenda.pop_first() {
        let mut begin = None;
        match event {
            Event::Arrival { packet, hop } => match place(packet, hop) {
                usize::MAX => delivered[packet] = Some(now),
                link => {
                    let state = &mut links[link];
                    let limit = plan.links[link].limits.packets.unwrap_or(u64::MAX);
                    if state.packets.len() as u64 >= limit {
                        continue;
                    }
                    state.packets.push_back((packet, hop));
                    if state.packets.len() == 1 {
                        (state.began, state.bits) = (now, 0);
                        begin = Some(link);
                    }
                }
            },
            Event::Departure { link } => {
                let (packet, hop) = links[link].packets.pop_front().unwrap();
                begin = (!links[link].packets.is_empty()).then_some(link);
                let next = place(packet, hop + 1);
                let rest = if next == usize::MAX {
                    plan.routes[plan.packets[packet].route].delay
                } else {
                    0
                };
                count += 1;
                let due = now + plan.links[link].delay + rest;
                agenda.insert((due, 1, next, count), Event::Arrival { packet, hop: hop + 1 });
            }
        }
        if let Some(link) = begin {
            let state = &mut links[link];
            state.bits += u128::from(plan.packets[state.packets[0].0].bytes) * 8;
            let rate = u128::from(plan.links[link].rate_bps.unwrap());
            let leaves = state.began + (state.bits * 1_000_000_000 / rate) as Nanos;
            count += 1;
            agenda.insert((leaves, 0, link, count), Event::Departure { link });
        }
    }
    delivered
}

fn fifo_links() -> impl Strategy<Value = Vec<LinkPlan>> {
    let link = (5_000_u64..50_000, prop::option::of(1_u64..10), 1_u64..10_000_000_000);
    let link = link.prop_map(|(rate, packets, delay)| LinkPlan {
        rate_bps: Some(rate),
        queue: QueueConfig::DropTail,
        limits: BufferLimits { packets, bytes: None },
        tokens: false,
        policed: false,
        remark: None,
        loss: None,
        jitter: None,
        delay,
        changes: Vec::new(),
        seed: 0,
    });
    prop::collection::vec(link, 1..5)
}

proptest! {
    #[test]
    fn fifo_networks_equal_the_plain_reference(plan in plans_with(fifo_links())) {
        let run = Run::new(&plan, Network::default()).send_all(&plan);
        let mut delivered = vec![None; plan.packets.len()];
        for (time, payload, _) in &run.record.delivered {
            delivered[*payload as usize] = Some(*time);
        }
        prop_assert_eq!(delivered, deliveries(&plan));
    }
}
