//! CAKE against a model written from "Piece of CAKE" (2018) with lists of flows and no hash: shaper
//! (section III-A), fair sharing among flows and hosts (III-B), traffic classes (III-C) and COBALT
//! (III-D). Where the paper leaves the arithmetic open, it is that of `sch_cake.c`: times per byte with
//! a fixed point, inverse square roots by Newton's method, and a random number per turn.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::collections::VecDeque;
use std::num::NonZeroU64;
use tcpcast_link::queue::{
    BufferLimits, Cake, CakeConfig, DropReason, Isolation, QueueDiscipline, QueueProbe, Tins,
};
use tcpcast_link::random::{RandomSource, RandomStream, mix_bits};
use tcpcast_link::{Ecn, NEVER, Nanos, Packet};

const MS: Nanos = 1_000_000;
const MTU: u64 = 1514;
/// Ethernet header, which the shaper counts.
const OVERHEAD: u32 = 14;
const MEMORY: u64 = 120_000;
const FLOWS: u32 = 6;

/// Source and destination host, and codepoint of each flow: three flows of the first source.
const HOSTS: [[u32; 2]; FLOWS as usize] = [[1, 8], [1, 8], [1, 9], [2, 8], [3, 9], [3, 9]];
const DSCPS: [u8; FLOWS as usize] = [0, 0, 46, 8, 0, 34];

/// Collects dropped packets.
#[derive(Default)]
struct Drops(Vec<u32>);

impl QueueProbe<u32> for Drops {
    fn on_drop(&mut self, _now: Nanos, packet: &Packet, _reason: DropReason) {
        self.0.push(packet.token);
    }
    fn hosts_of(&self, packet: &Packet) -> [u32; 2] {
        HOSTS[packet.flow as usize]
    }
    fn dscp_of(&self, packet: &Packet) -> u8 {
        DSCPS[packet.flow as usize]
    }
}

fn memory(packet: &Packet) -> u64 {
    u64::from(packet.bytes + 384).next_power_of_two() + 256
}

/// Time per byte as `nanos / 2^shift`.
#[derive(Clone, Copy)]
struct Rate(u64, u32);

impl Rate {
    fn new(bytes_per_s: u64) -> Self {
        let (mut nanos, mut shift) = ((1_000_000_000 << 34) / bytes_per_s, 34);
        while nanos >= 1 << 34 {
            (nanos, shift) = (nanos / 2, shift - 1);
        }
        Self(nanos, shift)
    }

    fn time(self, bytes: u64) -> Nanos {
        (bytes * self.0) >> self.1
    }
}

fn newton(root: u32, count: u32) -> u32 {
    let square = (u64::from(root) * u64::from(root)) >> 32;
    let rest = ((3_u64 << 32) - u64::from(count) * square) >> 2;
    ((rest * u64::from(root)) >> 31) as u32
}

/// State of COBALT.
#[derive(Clone, Copy, Default)]
struct Control {
    count: u32,
    root: u32,
    drop_next: Nanos,
    dropping: bool,
    p_drop: u32,
    blue_timer: Nanos,
}

#[derive(Clone, Copy)]
struct Params {
    target: Nanos,
    interval: Nanos,
    mtu_time: Nanos,
}

impl Control {
    fn control(&mut self, from: Nanos, p: &Params, counted: bool) {
        if counted {
            self.root = if self.count < 16 {
                let mut root = u32::MAX;
                for count in 1..=self.count {
                    root = (0..4).fold(root, |root, _| newton(root, count));
                }
                root
            } else {
                newton(self.root, self.count)
            };
        }
        let spacing = (u128::from(p.interval) * u128::from(self.root)) >> 32;
        self.drop_next = from + spacing as Nanos;
    }

    fn queue_full(&mut self, now: Nanos, p: &Params) {
        if now - self.blue_timer > p.target {
            self.p_drop = self.p_drop.saturating_add(1 << 24);
            self.blue_timer = now;
        }
        (self.dropping, self.drop_next, self.count) = (true, now, self.count.max(1));
    }

    fn queue_empty(&mut self, now: Nanos, p: &Params) {
        if self.p_drop > 0 && now - self.blue_timer > p.target {
            self.p_drop = self.p_drop.saturating_sub(1 << 20);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.control(self.drop_next, p, true);
        }
    }

    fn should_drop(
        &mut self,
        now: Nanos,
        p: &Params,
        packet: &mut Packet,
        draws: &mut RandomStream,
    ) -> bool {
        let sojourn = now - packet.entered;
        let mut schedule = now as i64 - self.drop_next as i64;
        let over_target = sojourn > p.target && sojourn > 4 * p.mtu_time;
        let mut next_due = self.count > 0 && schedule >= 0;
        if over_target {
            if !self.dropping {
                self.dropping = true;
                self.control(now, p, false);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let mut drop = false;
        if next_due && self.dropping {
            drop = !packet.mark_if_ecn_capable();
            self.count += 1;
            self.control(self.drop_next, p, true);
            schedule = now as i64 - self.drop_next as i64;
        } else {
            while next_due {
                self.count -= 1;
                self.control(self.drop_next, p, true);
                schedule = now as i64 - self.drop_next as i64;
                next_due = self.count > 0 && schedule >= 0;
            }
        }
        if self.p_drop > 0 {
            drop |= (draws.next_bits() as u32) < self.p_drop;
        }
        if self.count == 0 {
            self.drop_next = now + p.interval;
        } else if schedule > 0 && !drop {
            self.drop_next = now;
        }
        drop
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Set {
    None,
    Sparse,
    SparseWait,
    Bulk,
    Decaying,
}

struct Flow {
    number: u32,
    packets: VecDeque<Packet>,
    deficit: i64,
    control: Control,
    set: Set,
}

impl Flow {
    fn bytes(&self) -> u64 {
        self.packets.iter().map(|packet| u64::from(packet.bytes)).sum()
    }
}

struct Class {
    rate: Rate,
    quantum: i64,
    params: Params,
    next: Nanos,
    /// In the order in which they appeared.
    flows: Vec<Flow>,
    /// Lists of flow numbers; the first flow of a list is served next.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    decaying: VecDeque<u32>,
}

impl Class {
    fn new(bytes_per_s: u64, rtt: Nanos) -> Self {
        let rate = Rate::new(bytes_per_s);
        let mtu_time = rate.time(MTU);
        let target = (mtu_time * 3 / 2).max(rtt / 20);
        let interval = (rtt + target - rtt / 20).max(2 * target);
        Self {
            rate,
            quantum: (bytes_per_s >> 12).clamp(300, MTU) as i64,
            params: Params { target, interval, mtu_time },
            next: 0,
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
        }
    }

    fn flow(&mut self, number: u32) -> &mut Flow {
        let known = self.flows.iter().position(|flow| flow.number == number);
        let at = known.unwrap_or_else(|| {
            let (deficit, control) = (0, Control::default());
            self.flows.push(Flow {
                number,
                packets: VecDeque::new(),
                deficit,
                control,
                set: Set::None,
            });
            self.flows.len() - 1
        });
        &mut self.flows[at]
    }

    fn backlog(&self) -> u64 {
        self.flows.iter().map(Flow::bytes).sum()
    }

    /// Share of a quantum, in units of 2^-16: the host with more bulk flows divides it among them.
    fn share(&self, number: u32, shares_hosts: bool) -> i64 {
        let mut load = 1;
        for (side, host) in HOSTS[number as usize].iter().enumerate() {
            let is_counted =
                |flow: &&Flow| flow.set == Set::Bulk && HOSTS[flow.number as usize][side] == *host;
            let of_host = self.flows.iter().filter(is_counted).count() as i64;
            load = load.max(if shares_hosts { of_host } else { 1 });
        }
        self.quantum * (65_535 / load)
    }

    fn unlist(&mut self, number: u32) {
        for list in [&mut self.new, &mut self.old, &mut self.decaying] {
            list.retain(|each| *each != number);
        }
    }
}

struct Model {
    classes: Vec<Class>,
    is_diffserv: bool,
    shares_hosts: bool,
    rate: Rate,
    next: Nanos,
    failsafe: Nanos,
    draws: RandomStream,
    dropped: Vec<u32>,
    /// Memory of the packet in transmission, which counts towards the limit.
    in_transmission: u64,
}

impl Model {
    fn new(config: &CakeConfig, mut draws: RandomStream) -> Self {
        let bytes_per_s = config.rate_bps.unwrap().get() / 8;
        let is_diffserv = config.tins == Tins::Diffserv4;
        let divisors: &[u64] = if is_diffserv { &[1, 16, 2, 4] } else { &[1] };
        draws.next_bits(); // the perturbation of the hash
        Self {
            classes: divisors.iter().map(|d| Class::new(bytes_per_s / d, config.rtt)).collect(),
            is_diffserv,
            shares_hosts: config.isolation == Isolation::TripleIsolate,
            rate: Rate::new(bytes_per_s),
            next: 0,
            failsafe: 0,
            draws,
            dropped: Vec::new(),
            in_transmission: 0,
        }
    }

    fn class_of(&self, number: u32) -> usize {
        match DSCPS[number as usize] {
            8 if self.is_diffserv => 1,
            34 if self.is_diffserv => 2,
            46 if self.is_diffserv => 3,
            _ => 0,
        }
    }

    fn packets(&self) -> usize {
        let flows = self.classes.iter().flat_map(|class| &class.flows);
        flows.map(|flow| flow.packets.len()).sum()
    }

    fn memory(&self) -> u64 {
        let flows = self.classes.iter().flat_map(|class| &class.flows);
        flows.flat_map(|flow| &flow.packets).map(memory).sum()
    }

    fn enqueue(&mut self, now: Nanos, packet: Packet) {
        let (is_idle, at) = (self.packets() == 0, self.class_of(packet.flow));
        let class = &mut self.classes[at];
        if class.backlog() == 0 {
            class.next = class.next.max(now);
            if is_idle && self.next < now {
                (self.next, self.failsafe) = (now, now);
            }
        }
        class.flow(packet.flow).packets.push_back(packet);
        match class.flow(packet.flow).set {
            Set::None | Set::Decaying => {
                class.unlist(packet.flow);
                class.new.push_back(packet.flow);
                let deficit = class.share(packet.flow, self.shares_hosts) >> 16;
                let flow = class.flow(packet.flow);
                (flow.set, flow.deficit) = (Set::Sparse, deficit);
            }
            Set::SparseWait => class.flow(packet.flow).set = Set::Bulk,
            Set::Sparse | Set::Bulk => {}
        }
        while self.memory() + self.in_transmission > MEMORY {
            let mut longest = (0, 0, 0);
            for (number, class) in self.classes.iter().enumerate() {
                for flow in &class.flows {
                    if flow.bytes() > longest.0 {
                        longest = (flow.bytes(), number, flow.number);
                    }
                }
            }
            let class = &mut self.classes[longest.1];
            let params = class.params;
            let flow = class.flow(longest.2);
            self.dropped.push(flow.packets.pop_front().unwrap().token);
            flow.control.queue_full(now, &params);
        }
    }

    /// The class with the highest number that is within its rate, or else the one that will be
    /// within its rate first.
    fn choose(&self, now: Nanos) -> Option<usize> {
        let has_turns = |class: &Class| {
            class.flows.iter().any(|flow| !matches!(flow.set, Set::None | Set::Decaying))
        };
        let mut best = None;
        let mut soonest = NEVER;
        for (at, class) in self.classes.iter().enumerate().filter(|(_, class)| has_turns(class)) {
            let wait = class.next.saturating_sub(now);
            if wait <= soonest {
                (best, soonest) = (Some(at), wait);
            }
        }
        best
    }

    fn dequeue(&mut self, now: Nanos) -> Option<Packet> {
        let mut is_first = true;
        'begin: while self.packets() > 0 && (now >= self.next || now >= self.failsafe) {
            let at = self.choose(now)?;
            loop {
                let class = &mut self.classes[at];
                let decaying = class.decaying.front();
                let served = class.new.front().or(class.old.front());
                let turn = if is_first { decaying.or(served) } else { served.or(decaying) };
                let Some(number) = turn.copied() else { continue 'begin };
                is_first = false;
                if class.flow(number).deficit <= 0 {
                    let flow = class.flow(number);
                    if flow.set == Set::Sparse {
                        let is_empty = flow.packets.is_empty();
                        flow.set = if is_empty { Set::SparseWait } else { Set::Bulk };
                    }
                    let dither = (self.draws.next_bits() >> 48) as i64;
                    let share = (class.share(number, self.shares_hosts) + dither) >> 16;
                    class.flow(number).deficit += share;
                    class.unlist(number);
                    class.old.push_back(number);
                    continue;
                }
                let params = class.params;
                let flow = class.flow(number);
                let Some(mut packet) = flow.packets.pop_front() else {
                    flow.control.queue_empty(now, &params);
                    let state = flow.control;
                    let rests = state.p_drop == 0 && state.count == 0 && now >= state.drop_next;
                    flow.set = if rests { Set::None } else { Set::Decaying };
                    class.unlist(number);
                    if !rests {
                        class.decaying.push_back(number);
                    }
                    continue 'begin;
                };
                let draws = &mut self.draws;
                let drops = flow.control.should_drop(now, &params, &mut packet, draws);
                if drops && !flow.packets.is_empty() {
                    self.dropped.push(packet.token);
                    continue;
                }
                let length = u64::from(packet.bytes + OVERHEAD);
                flow.deficit -= length as i64;
                let (in_class, on_link) = (class.rate.time(length), self.rate.time(length));
                class.next = if class.next < now {
                    class.next + in_class
                } else {
                    class.next.max(now + in_class)
                };
                self.next += on_link;
                self.failsafe += on_link + on_link / 2;
                return Some(packet);
            }
        }
        None
    }
}

type Arrivals = Vec<(Nanos, u32, u32, bool)>;

/// Arrivals of several flows with a load above 1, separated by pauses.
fn arrivals() -> impl Strategy<Value = Arrivals> {
    let gap = prop_oneof![800 => 0..MS * 9 / 10, 3 => 0..150 * MS, 1 => 0..2000 * MS];
    prop::collection::vec((gap, 0..FLOWS, 40_u32..=1500, any::<bool>()), 1..2500)
}

/// Runs both implementations. Returns the numbers of dropped and of marked packets.
fn agree(
    arrivals: &Arrivals,
    isolation: Isolation,
    tins: Tins,
    seed: u64,
) -> Result<[usize; 2], TestCaseError> {
    let stream = RandomStream::from_seed(seed);
    let perturbation = stream.clone().next_bits();
    let bucket = |flow| mix_bits(u64::from(flow) ^ perturbation) as u32 % 1024 / 8;
    let mut buckets: Vec<u32> = (0..FLOWS).map(bucket).collect();
    buckets.sort_unstable();
    buckets.dedup();
    prop_assume!(buckets.len() == FLOWS as usize); // the model has no hash
    let rate_bps = NonZeroU64::new(8_000_000);
    let config = CakeConfig { rate_bps, isolation, tins, ..CakeConfig::default() };
    let mut queue = Cake::new(BufferLimits::limit_bytes(MEMORY), config, stream.clone());
    let mut model = Model::new(&config, stream);
    let (mut drops, mut now, mut free, mut marks) = (Drops::default(), 0, NEVER, 0);
    for (token, (gap, flow, bytes, is_capable)) in (0..).zip(arrivals) {
        now += gap;
        while free <= now {
            let packet = queue.dequeue(free, &mut drops);
            prop_assert_eq!(packet, model.dequeue(free));
            model.in_transmission = packet.as_ref().map_or(0, memory);
            marks += usize::from(packet.is_some_and(|packet| packet.marked));
            // The link below has a rate of 10 Mbit/s. If the shaper holds all packets, it
            // determines the next time.
            free = packet.map_or(queue.next_release(), |each| free + u64::from(each.bytes) * 800);
        }
        let ecn = if *is_capable { Ecn::Ect0 } else { Ecn::NotEct };
        let packet = Packet { entered: now, ..Packet::new(token, *flow, *bytes).with_ecn(ecn) };
        queue.enqueue(now, packet, &mut drops);
        model.enqueue(now, packet);
        prop_assert_eq!(&drops.0, &model.dropped);
        free = if free == NEVER { now } else { free };
    }
    Ok([drops.0.len(), marks])
}

#[test]
fn cake_agrees_with_a_model_of_the_paper() {
    let sums = Cell::new([0; 2]);
    let isolations = prop_oneof![Just(Isolation::Flows), Just(Isolation::TripleIsolate)];
    let tins = prop_oneof![Just(Tins::Besteffort), Just(Tins::Diffserv4)];
    let case = |(arrivals, isolation, tins, seed)| {
        let [drops, marks] = agree(&arrivals, isolation, tins, seed)?;
        sums.set([sums.get()[0] + drops, sums.get()[1] + marks]);
        Ok(())
    };
    TestRunner::default().run(&(arrivals(), isolations, tins, any::<u64>()), case).unwrap();
    let [drops, marks] = sums.get();
    assert!(drops >= 5_000 && marks >= 5_000, "{drops} drops and {marks} marks are too few");
}
