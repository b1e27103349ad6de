//! Deficit round robin against the pseudo-code of Shreedhar and Varghese (1995).

use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use tcpcast_link::queue::{
    BufferAssignment, BufferLimits, DropPolicy, Drr, DrrConfig, HeadOfLine, HeavyFlows,
    QueueDiscipline, TieBreakRule,
};
use tcpcast_link::random::RandomStream;
use tcpcast_link::{NEVER, Packet};

/// The pseudo-code. Flows with numbers of 4 or more have weight 0.5, so their bytes count twice.
#[derive(Default)]
struct Paper {
    queues: BTreeMap<u32, VecDeque<Packet>>,
    deficits: BTreeMap<u32, u64>,
    active: VecDeque<u32>,
    turn: Option<u32>,
}

/// Length of the packets of heavy flows, which are charged twice.
const HEAVY_BYTES: u32 = 750;

fn size(packet: &Packet) -> u64 {
    u64::from(packet.bytes) * if packet.flow < 4 { 1 } else { 2 }
}

impl Paper {
    fn enqueue(&mut self, packet: Packet) {
        let flow = packet.flow;
        if !self.active.contains(&flow) && self.turn != Some(flow) {
            self.active.push_back(flow);
            self.deficits.insert(flow, 0);
        }
        self.queues.entry(flow).or_default().push_back(packet);
    }

    fn dequeue(&mut self, quantum: u64) -> Option<Packet> {
        loop {
            let Some(flow) = self.turn else {
                let flow = self.active.pop_front()?;
                *self.deficits.get_mut(&flow)? += quantum;
                self.turn = Some(flow);
                continue;
            };
            let queue = self.queues.get_mut(&flow)?;
            let deficit = self.deficits.get_mut(&flow)?;
            match queue.front() {
                Some(head) if size(head) <= *deficit => {
                    *deficit -= size(head);
                    return queue.pop_front();
                }
                Some(_) => self.active.push_back(flow),
                None => *deficit = 0,
            }
            self.turn = None;
        }
    }
}

/// Packets of up to 1500 bytes on a link with 1 ns per byte. The loads are 0.5 (few packets wait),
/// 4 and 30 (a deficit that differs by one byte changes the order).
fn arrivals() -> impl Strategy<Value = Vec<(u64, u32, u32)>> {
    let gap = prop_oneof![Just(3000_u64), Just(400), Just(50)];
    gap.prop_flat_map(|gap| prop::collection::vec((0..gap, 0_u32..7, 40_u32..=1500), 1..400))
}

proptest! {
    #[test]
    fn drr_1995_order_agrees_with_pseudo_code(
        arrivals in arrivals(),
        quantum in prop_oneof![1_u32..100, 100_u32..1500, 1500_u32..5000],
        hashed: bool,
    ) {
        // Small flow numbers are looked up in an array, large ones in a hash table.
        let base = if hashed { 0xfff0_0000 } else { 0 };
        let config = DrrConfig {
            quantum_bytes: NonZeroU32::new(quantum).unwrap(),
            buffers: BufferAssignment::Shared,
            drop: DropPolicy::Arriving,
            ties: TieBreakRule::Latest,
            head_of_line: HeadOfLine::InBuffer,
            heavy: Some(HeavyFlows { first: base + 4, last: base + 6, charge: 2 * HEAVY_BYTES }),
        };
        let mut drr = Drr::new(BufferLimits::default(), config, RandomStream::from_seed(1));
        let mut paper = Paper::default();
        let (mut dropped, mut now, mut free) = (Vec::new(), 0, NEVER);
        // A last packet arrives after all others have left.
        let last = (u64::from(u32::MAX), 0, 40);
        for (token, (gap, flow, bytes)) in (0..).zip(arrivals.into_iter().chain([last])) {
            let bytes = if flow < 4 { bytes } else { HEAVY_BYTES };
            now += gap;
            while free <= now {
                let packet = drr.dequeue(free, &mut dropped);
                let expected = paper.dequeue(u64::from(quantum));
                prop_assert_eq!(packet.map(|p| p.token), expected.map(|p| p.token));
                free = packet.map_or(NEVER, |packet| free + u64::from(packet.bytes));
            }
            drr.enqueue(now, Packet::new(token, base + flow, bytes), &mut dropped);
            paper.enqueue(Packet::new(token, flow, bytes));
            if free == NEVER {
                free = now;
            }
        }
        prop_assert!(dropped.is_empty());
    }
}
