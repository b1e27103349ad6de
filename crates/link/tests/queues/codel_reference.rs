//! CoDel against two reference models: the pseudo-code of RFC 8289, section 5, and Linux.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::collections::VecDeque;
use tcpcast_link::queue::{BufferLimits, Codel, CodelConfig, CodelRules, QueueDiscipline};
use tcpcast_link::{Ecn, NEVER, Nanos, Packet};

const MS: Nanos = 1_000_000;

/// State common to both models: a queue with time stamps, and the dropped packets.
#[derive(Default)]
struct Line {
    queue: VecDeque<Packet>,
    bytes: u64,
    dropped: Vec<u32>,
}

impl Line {
    fn deque(&mut self) -> Option<Packet> {
        let packet = self.queue.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }
}

trait Model {
    fn line(&mut self) -> &mut Line;
    fn deque(&mut self, now: Nanos) -> Option<Packet>;
}

/// RFC 8289, sections 5.3 to 5.6, with the names of the RFC.
struct Rfc {
    line: Line,
    target: Nanos,
    interval: Nanos,
    maxpacket: u64,
    first_above_time: Nanos, // 0: not above
    drop_next: Nanos,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

impl Rfc {
    fn new(config: CodelConfig) -> Self {
        Self {
            line: Line::default(),
            target: config.target,
            interval: config.interval,
            maxpacket: u64::from(config.mtu_bytes),
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
        }
    }

    fn dodequeue(&mut self, now: Nanos) -> (Option<Packet>, bool) {
        let Some(packet) = self.line.deque() else {
            self.first_above_time = 0;
            return (None, false);
        };
        let mut ok_to_drop = false;
        if now - packet.entered < self.target || self.line.bytes <= self.maxpacket {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.interval;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(packet), ok_to_drop)
    }

    fn control_law(&self, t: Nanos, count: u32) -> Nanos {
        t + (self.interval as f64 / f64::from(count).sqrt()) as Nanos
    }

    fn drop(&mut self, packet: Option<Packet>) {
        self.line.dropped.extend(packet.map(|packet| packet.token));
    }
}

impl Model for Rfc {
    fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    fn deque(&mut self, now: Nanos) -> Option<Packet> {
        let (mut p, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.drop(p);
                self.count += 1;
                (p, ok_to_drop) = self.dodequeue(now);
                if !ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                }
            }
        } else if ok_to_drop {
            self.drop(p);
            (p, _) = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now as i64 - (self.drop_next as i64) < 16 * self.interval as i64 {
                self.count = delta;
            }
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        p
    }
}

/// Independent implementation of Linux's CoDel.
struct Linux {
    line: Line,
    config: CodelConfig,
    above_since: Option<Nanos>,
    dropping: bool,
    next: Nanos,
    count: u64,
    last: u64,
    root: u64,
}

impl Linux {
    fn new(config: CodelConfig) -> Self {
        let line = Line::default();
        Self {
            line,
            config,
            above_since: None,
            dropping: false,
            next: 0,
            count: 0,
            last: 0,
            root: 0,
        }
    }

    fn is_late(&mut self, now: Nanos, packet: Option<Packet>) -> bool {
        let long = |packet: Packet| now - packet.entered >= self.config.target;
        if !packet.is_some_and(long) || self.line.bytes <= u64::from(self.config.mtu_bytes) {
            self.above_since = None;
            return false;
        }
        let since = *self.above_since.get_or_insert(now);
        now > since + self.config.interval
    }

    fn newton(&mut self) {
        let x = self.root << 16;
        let square = (x * x) >> 32;
        let three = 3_i128 << 32;
        let wrapped = (three - i128::from(self.count * square)).rem_euclid(1 << 64) as u64;
        let product = i128::from(wrapped >> 2) * i128::from(x);
        self.root = ((product.rem_euclid(1 << 64) >> 31) as u64 & 0xffff_ffff) >> 16;
    }

    /// Marks or drops a packet; returns the marked packet or the next one, and whether it was
    /// marked.
    fn signal(&mut self, packet: Packet) -> (Option<Packet>, bool) {
        if self.config.ecn && packet.ecn != Ecn::NotEct {
            return (Some(Packet { ecn: Ecn::Ce, marked: true, ..packet }), true);
        }
        self.line.dropped.push(packet.token);
        (self.line.deque(), false)
    }

    fn after(&self, from: Nanos) -> Nanos {
        from + ((self.config.interval * self.root) >> 16)
    }
}

impl Model for Linux {
    fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    fn deque(&mut self, now: Nanos) -> Option<Packet> {
        let mut packet = self.line.deque();
        if packet.is_none() {
            self.dropping = false;
            return None;
        }
        let is_late = self.is_late(now, packet);
        if self.dropping && !is_late {
            self.dropping = false;
        } else if self.dropping {
            while self.dropping && now >= self.next {
                self.count += 1;
                self.newton();
                let (next, marked) = self.signal(packet?);
                packet = next;
                if marked {
                    self.next = self.after(self.next);
                    break;
                }
                self.dropping = self.is_late(now, packet);
                if self.dropping {
                    self.next = self.after(self.next);
                }
            }
        } else if is_late {
            let (next, marked) = self.signal(packet?);
            packet = next;
            if !marked {
                self.is_late(now, packet);
            }
            self.dropping = true;
            let delta = self.count - self.last;
            if delta > 1 && now < self.next + 16 * self.config.interval {
                self.count = delta;
                self.newton();
            } else {
                (self.count, self.root) = (1, 0xffff);
            }
            self.last = self.count;
            self.next = self.after(now);
        }
        packet
    }
}

type Arrivals = Vec<(Nanos, u32, bool)>;

/// Arrivals with a load above 1 for several hundred packets, separated by pauses.
fn arrivals() -> impl Strategy<Value = Arrivals> {
    let gap = prop_oneof![200 => 0..MS, 1 => 0..600 * MS];
    prop::collection::vec((gap, 300_u32..=1500, any::<bool>()), 1..2500)
}

fn agree(
    config: CodelConfig,
    mut model: impl Model,
    arrivals: &Arrivals,
) -> Result<usize, TestCaseError> {
    let mut codel = Codel::new(BufferLimits::default(), config);
    let (mut dropped, mut now, mut free) = (Vec::new(), 0, NEVER);
    for (token, (gap, bytes, capable)) in (0..).zip(arrivals) {
        now += gap;
        while free <= now {
            let packet = codel.dequeue(free, &mut dropped);
            prop_assert_eq!(packet, model.deque(free));
            prop_assert!(
                dropped.iter().map(|p: &Packet| p.token).eq(model.line().dropped.iter().copied())
            );
            // 1 ms per 1500 bytes
            free = packet.map_or(NEVER, |packet| free + u64::from(packet.bytes) * MS / 1500);
        }
        let ecn = if *capable { Ecn::Ect0 } else { Ecn::NotEct };
        let packet = Packet { entered: now, ..Packet::new(token, 0, *bytes).with_ecn(ecn) };
        codel.enqueue(now, packet, &mut dropped);
        model.line().bytes += u64::from(*bytes);
        model.line().queue.push_back(packet);
        if free == NEVER {
            free = now;
        }
    }
    Ok(dropped.len())
}

fn config(rules: CodelRules, ecn: bool) -> CodelConfig {
    // Short times, so that a case contains many dropping states.
    CodelConfig { target: 2 * MS, interval: 20 * MS, rules, ecn, ..CodelConfig::default() }
}

/// Runs random cases, which must contain at least `min_drops` drops in total.
fn agree_often<M: Model>(new: impl Fn(CodelConfig) -> M, config: CodelConfig, min_drops: usize) {
    let drops = Cell::new(0);
    let case = |arrivals| {
        drops.set(drops.get() + agree(config, new(config), &arrivals)?);
        Ok(())
    };
    TestRunner::default().run(&arrivals(), case).unwrap();
    assert!(drops.get() >= min_drops, "{} drops", drops.get());
}

#[test]
fn rfc_8289_5_codel_agrees_with_pseudo_code() {
    agree_often(Rfc::new, config(CodelRules::Rfc8289, false), 5_000);
}

#[test]
fn linux_drops_agree_with_reference_model() {
    agree_often(Linux::new, config(CodelRules::Linux, false), 5_000);
}

#[test]
fn linux_marks_agree_with_reference_model() {
    agree_often(Linux::new, config(CodelRules::Linux, true), 2_000);
}
