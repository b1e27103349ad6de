//! DualPI2 against a model written from the pseudo-code of RFC 9332, appendix A, with random numbers
//! for the decisions and with the rules that Linux adds: no coupled signal while less than two full
//! packets wait, and a credit of the scheduler in bytes.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::collections::VecDeque;
use tcpcast_link::queue::{BufferLimits, DualPi2, DualPi2Config, QueueDiscipline};
use tcpcast_link::random::{RandomSource, RandomStream};
use tcpcast_link::{Ecn, NEVER, Nanos, Packet};

const MS: Nanos = 1_000_000;
const LIMIT: usize = 200;
const MTU: usize = 1500;

/// The pseudo-code; times are in seconds.
struct Rfc {
    lq: VecDeque<Packet>,
    cq: VecDeque<Packet>,
    draws: RandomStream,
    /// Probability of the controller, p'.
    p_prime: f64,
    prevq: f64,
    k: f64,
    min_th: f64,
    range: f64,
    wc: i64,
    credit: i64,
    dropped: Vec<u32>,
}

impl Rfc {
    fn new(seed: u64, config: &DualPi2Config) -> Self {
        let wc = i64::from(config.classic_protection);
        Self {
            lq: VecDeque::new(),
            cq: VecDeque::new(),
            draws: RandomStream::from_seed(seed),
            p_prime: 0.0,
            prevq: 0.0,
            k: config.coupling,
            min_th: config.step as f64 / 1e9,
            range: config.ramp as f64 / 1e9,
            wc,
            credit: MTU as i64 * (2 * wc - 100),
            dropped: Vec::new(),
        }
    }

    fn byt(&self) -> usize {
        self.lq.iter().chain(&self.cq).map(|packet| packet.bytes as usize).sum()
    }

    fn enqueue(&mut self, packet: Packet) {
        if self.lq.len() + self.cq.len() >= LIMIT {
            self.dropped.push(packet.token);
        } else if packet.ecn as u8 & 1 == 1 {
            self.lq.push_back(packet);
        } else {
            self.cq.push_back(packet);
        }
    }

    fn likely(&mut self, probability: f64) -> bool {
        self.draws.draw_unit() <= probability
    }

    /// Native AQM of the L queue.
    fn laqm(&self, qdelay: f64) -> f64 {
        if qdelay <= self.min_th {
            0.0
        } else if self.range == 0.0 {
            1.0
        } else {
            ((qdelay - self.min_th) / self.range).min(1.0)
        }
    }

    fn dequeue(&mut self, now: Nanos) -> Option<Packet> {
        while self.byt() > 0 {
            let both = !self.lq.is_empty() && !self.cq.is_empty();
            let from_l = if both { self.credit <= 0 } else { self.cq.is_empty() };
            let mut pkt = if from_l { self.lq.pop_front()? } else { self.cq.pop_front()? };
            let (p, is_busy) = (self.p_prime, self.byt() >= 2 * MTU && self.p_prime > 0.0);
            let p_cl = self.k * p;
            let overload = p_cl > 1.0;
            let mut mark = false;
            let drop = if from_l {
                let mut drop = false;
                if is_busy && overload {
                    drop = self.likely(p) && self.likely(p);
                    mark = !drop;
                } else if is_busy {
                    mark = self.likely(p_cl);
                }
                if !drop {
                    let p_l = self.laqm((now - pkt.entered) as f64 / 1e9);
                    mark |= p_l == 1.0 || p_l > 0.0 && self.likely(p_l);
                }
                drop
            } else {
                let signal = is_busy && self.likely(p) && self.likely(p);
                mark = signal && pkt.ecn != Ecn::NotEct && !overload;
                signal && !mark
            };
            if drop {
                self.dropped.push(pkt.token);
                continue;
            }
            if mark {
                pkt.mark_if_ecn_capable();
            }
            if both {
                let weight = if from_l { self.wc } else { self.wc - 100 };
                self.credit += weight * i64::from(pkt.bytes);
            }
            return Some(pkt);
        }
        self.credit = MTU as i64 * (2 * self.wc - 100);
        None
    }

    fn update(&mut self, now: Nanos, alpha: f64, beta: f64, target: f64) {
        let time = |queue: &VecDeque<Packet>| {
            queue.front().map_or(0.0, |packet| (now - packet.entered) as f64 / 1e9)
        };
        let curq = time(&self.cq).max(time(&self.lq));
        self.p_prime += alpha * (curq - target) + beta * (curq - self.prevq);
        self.p_prime = self.p_prime.clamp(0.0, 1.0);
        self.prevq = curq;
    }
}

type Arrivals = Vec<(Nanos, u32, u8)>;

/// Arrivals with a load above 1 for several hundred packets, separated by pauses.
fn arrivals() -> impl Strategy<Value = Arrivals> {
    let gap = prop_oneof![500 => 0..MS * 9 / 10, 1 => 0..2000 * MS];
    prop::collection::vec((gap, 40_u32..=1500, 0_u8..4), 1..4000)
}

/// Runs both implementations. Returns the numbers of dropped and of marked packets.
fn agree(arrivals: &Arrivals, ramp: bool, wc: u8, seed: u64) -> Result<[usize; 2], TestCaseError> {
    let config = DualPi2Config {
        ramp: if ramp { 2 * MS } else { 0 },
        classic_protection: wc,
        ..DualPi2Config::default()
    };
    // The queue of the RFC does not contain the packet in transmission.
    let limits = BufferLimits::limit_packets(LIMIT as u64 + 1);
    let mut queue = DualPi2::new(limits, config, RandomStream::from_seed(seed));
    let mut model = Rfc::new(seed, &config);
    let mut dropped: Vec<Packet> = Vec::new();
    let (mut now, mut free, mut marks) = (0, NEVER, 0);
    for (token, (gap, bytes, ecn)) in (0..).zip(arrivals) {
        now += gap;
        while free.min(queue.deadline()) <= now {
            let deadline = queue.deadline();
            if deadline <= free {
                queue.on_deadline(deadline);
                model.update(deadline, config.alpha, config.beta, 0.015);
                let error = (queue.probability() - model.p_prime).abs();
                prop_assert!(error < 1e-9, "{error}");
            } else {
                let packet = queue.dequeue(free, &mut dropped);
                prop_assert_eq!(packet, model.dequeue(free));
                marks += usize::from(packet.is_some_and(|packet| packet.marked));
                free = packet.map_or(NEVER, |packet| free + u64::from(packet.bytes) * 800);
            }
        }
        let packet = Packet::new(token, 0, *bytes).with_ecn(Ecn::from_bits(*ecn));
        let packet = Packet { entered: now, ..packet };
        queue.enqueue(now, packet, &mut dropped);
        model.enqueue(packet);
        prop_assert!(dropped.iter().map(|packet| packet.token).eq(model.dropped.iter().copied()));
        free = if free == NEVER { now } else { free };
    }
    Ok([dropped.len(), marks])
}

#[test]
fn rfc_9332_a_dualpi2_agrees_with_pseudo_code() {
    let sums = Cell::new([0; 2]);
    let case = |(arrivals, ramp, wc, seed)| {
        let [drops, marks] = agree(&arrivals, ramp, wc, seed)?;
        sums.set([sums.get()[0] + drops, sums.get()[1] + marks]);
        Ok(())
    };
    let inputs = (arrivals(), any::<bool>(), 0_u8..=100, any::<u64>());
    TestRunner::default().run(&inputs, case).unwrap();
    let [drops, marks] = sums.get();
    assert!(drops >= 5_000 && marks >= 20_000, "{drops} drops and {marks} marks are too few");
}
