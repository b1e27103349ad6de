//! PIE against the pseudo-code of RFC 8033, appendix B, with time stamps and always active.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::collections::VecDeque;
use tcpcast_link::queue::DropReason::{Early, Full};
use tcpcast_link::queue::{
    BufferLimits, EnqueueOutcome, Fifo, Pie, PieConfig, PieRules, QueueDiscipline,
};
use tcpcast_link::random::{RandomSource, RandomStream};
use tcpcast_link::{Ecn, NEVER, Nanos, Packet};

const MS: Nanos = 1_000_000;
const TAIL_DROP: usize = 100;
const QDELAY_REF: f64 = 0.015;
const T_UPDATE: f64 = 0.015;
const MAX_BURST: f64 = 0.150;
const MAX_ECNTH: f64 = 0.1;
const MEAN_PKTSIZE: u64 = 1500;

/// The pseudo-code; times are in seconds.
struct Rfc {
    queue: VecDeque<Packet>,
    draws: RandomStream,
    drop_prob: f64,
    accu_prob: f64,
    current_qdelay: f64,
    qdelay_old: f64,
    burst_allowance: f64,
}

impl Rfc {
    fn new(seed: u64) -> Self {
        Self {
            queue: VecDeque::new(),
            draws: RandomStream::from_seed(seed),
            drop_prob: 0.0,
            accu_prob: 0.0,
            current_qdelay: 0.0,
            qdelay_old: 0.0,
            burst_allowance: MAX_BURST,
        }
    }

    fn byte_length(&self) -> u64 {
        self.queue.iter().map(|packet| u64::from(packet.bytes)).sum()
    }

    fn enque(&mut self, packet: Packet) -> EnqueueOutcome {
        let verdict = if self.queue.len() >= TAIL_DROP {
            self.accu_prob = 0.0;
            EnqueueOutcome::Dropped(Full)
        } else if self.drop_early() && self.burst_allowance < 1e-12 {
            if self.drop_prob <= MAX_ECNTH && packet.ecn != Ecn::NotEct {
                EnqueueOutcome::Marked
            } else {
                EnqueueOutcome::Dropped(Early)
            }
        } else {
            EnqueueOutcome::Accepted
        };
        match verdict {
            EnqueueOutcome::Accepted => self.queue.push_back(packet),
            EnqueueOutcome::Marked => {
                self.queue.push_back(Packet { ecn: Ecn::Ce, marked: true, ..packet });
            }
            EnqueueOutcome::Dropped(_) => {}
        }
        if self.drop_prob == 0.0
            && self.current_qdelay < QDELAY_REF / 2.0
            && self.qdelay_old < QDELAY_REF / 2.0
        {
            self.burst_allowance = MAX_BURST;
        }
        verdict
    }

    fn drop_early(&mut self) -> bool {
        if (self.qdelay_old < QDELAY_REF / 2.0 && self.drop_prob < 0.2)
            || self.byte_length() <= 2 * MEAN_PKTSIZE
        {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob >= 8.5 {
            self.accu_prob = 0.0;
            return true;
        }
        let drop = self.draws.draw_unit() <= self.drop_prob;
        if drop {
            self.accu_prob = 0.0;
        }
        drop
    }

    fn deque(&mut self, now: Nanos) -> Option<Packet> {
        let packet = self.queue.pop_front()?;
        self.current_qdelay = (now - packet.entered) as f64 / 1e9;
        Some(packet)
    }

    fn calculate_drop_prob(&mut self) {
        let mut p = 0.125 * (self.current_qdelay - QDELAY_REF)
            + 1.25 * (self.current_qdelay - self.qdelay_old);
        if self.drop_prob < 0.000_001 {
            p /= 2048.0;
        } else if self.drop_prob < 0.000_01 {
            p /= 512.0;
        } else if self.drop_prob < 0.0001 {
            p /= 128.0;
        } else if self.drop_prob < 0.001 {
            p /= 32.0;
        } else if self.drop_prob < 0.01 {
            p /= 8.0;
        } else if self.drop_prob < 0.1 {
            p /= 2.0;
        }
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        if self.current_qdelay < QDELAY_REF / 2.0 && self.qdelay_old < QDELAY_REF / 2.0 {
            self.drop_prob *= 0.98;
        }
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = (self.burst_allowance - T_UPDATE).max(0.0);
    }
}

type Arrivals = Vec<(Nanos, u32, bool)>;

/// Arrivals with a load above 1 for several hundred packets, separated by pauses.
fn arrivals() -> impl Strategy<Value = Arrivals> {
    let gap = prop_oneof![500 => 0..MS * 9 / 10, 1 => 0..2000 * MS];
    prop::collection::vec((gap, 40_u32..=1500, any::<bool>()), 1..4000)
}

/// Runs both implementations and returns the number of early drops and marks.
fn agree(arrivals: &Arrivals, ecn: bool, seed: u64) -> Result<usize, TestCaseError> {
    let ecn_below = ecn.then_some(MAX_ECNTH);
    let config = PieConfig { rules: PieRules::Rfc8033, ecn_below, ..PieConfig::default() };
    // The queue of the RFC does not contain the packet in transmission.
    let limits = BufferLimits::limit_packets(TAIL_DROP as u64 + 1);
    let mut pie = Fifo::new(limits, Pie::new(config, RandomStream::from_seed(seed)));
    let mut model = Rfc::new(seed);
    let mut dropped = Vec::new();
    let (mut now, mut free, mut signals) = (0, NEVER, 0);
    for (token, (gap, bytes, capable)) in (0..).zip(arrivals) {
        now += gap;
        while free.min(pie.deadline()) <= now {
            let deadline = pie.deadline();
            if deadline <= free {
                pie.on_deadline(deadline);
                model.calculate_drop_prob();
                let error = (pie.admission().drop_probability() - model.drop_prob).abs();
                prop_assert!(error < 1e-12, "{error}");
            } else {
                let packet = pie.dequeue(free, &mut dropped);
                prop_assert_eq!(packet, model.deque(free));
                // 1.2 ms for 1500 bytes.
                free = packet.map_or(NEVER, |packet| free + u64::from(packet.bytes) * 800);
            }
        }
        let marks = if *capable && ecn { Ecn::Ect0 } else { Ecn::NotEct };
        let packet = Packet { entered: now, ..Packet::new(token, 0, *bytes).with_ecn(marks) };
        let verdict = pie.enqueue(now, packet, &mut dropped);
        prop_assert_eq!(verdict, model.enque(packet));
        signals +=
            usize::from(matches!(verdict, EnqueueOutcome::Marked | EnqueueOutcome::Dropped(Early)));
        free = if free == NEVER { now } else { free };
    }
    Ok(signals)
}

#[test]
fn rfc_8033_b_pie_agrees_with_pseudo_code() {
    let signals = Cell::new(0);
    let case = |(arrivals, ecn, seed)| {
        signals.set(signals.get() + agree(&arrivals, ecn, seed)?);
        Ok(())
    };
    TestRunner::default().run(&(arrivals(), any::<bool>(), any::<u64>()), case).unwrap();
    assert!(signals.get() >= 5_000, "{} drops and marks are too few", signals.get());
}
