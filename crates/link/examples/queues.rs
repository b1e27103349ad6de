//! Cost of each discipline in nanoseconds per packet: an enqueue and a dequeue, in cache.
//!
//! `cargo run --release -p tcpcast-link --example queues [NAME]` measures the disciplines whose name
//! contains `NAME`.

use std::hint::black_box;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Instant;
use tcpcast_link::link::{FifoLink, HeldLink, Link, Offered};
use tcpcast_link::queue::{
    Admission, AnyQueue, Buffers, Codel, CodelConfig, DropPolicy, DropTail, Drr, DrrConfig, Fifo,
    FqCodel, FqCodelConfig, HeadDrop, Limits, Open, Pie, PieConfig, QueueConfig, QueueDiscipline,
    QueueProbe, Reason, Red, RedConfig, RedUnit, Ties,
};
use tcpcast_link::random::Stream;
use tcpcast_link::transmit::{ConstantRate, Transmitter};
use tcpcast_link::{Ecn, Nanos, Packet};

const PACKETS: u64 = 2_000_000;
/// Transmission time of 1500 bytes.
const TIME: Nanos = 12_000;
/// Buffer limit in packets.
const LIMIT: u64 = 1000;

#[derive(Default)]
struct Counts {
    dropped: u64,
}

impl QueueProbe<u32> for Counts {
    #[inline]
    fn dropped(&mut self, _now: Nanos, _packet: &Packet, _reason: Reason) {
        self.dropped += 1;
    }
}

fn rate() -> ConstantRate {
    ConstantRate::new(NonZeroU64::new(1_000_000_000))
}

/// Packets of a run: in bursts, so that queues build up, at a load slightly below or above 1.
#[inline]
fn arrival(packet: u64, flows: u32, load: f64) -> (Nanos, Packet) {
    let burst = packet / 64;
    let now = burst * (64.0 * TIME as f64 / load) as Nanos + (packet % 64) * 2000;
    let flow = (packet.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % flows;
    (now, Packet::new(packet as u32, flow, 1500).with_ecn(Ecn::Ect0))
}

/// Processor time so far in nanoseconds if the system provides it; otherwise elapsed time.
fn processor_time(begin: Instant) -> u64 {
    let schedule = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let on_processor = schedule.split(' ').next().and_then(|time| time.parse().ok());
    on_processor.unwrap_or_else(|| begin.elapsed().as_nanos() as u64)
}

/// Nanoseconds per packet, minimum of five runs, and the share of packets dropped.
fn measure(mut run: impl FnMut() -> Counts) -> (f64, f64) {
    let mut least = f64::INFINITY;
    let mut counts = Counts::default();
    let start = Instant::now();
    for _ in 0..5 {
        let begin = processor_time(start);
        counts = run();
        least = least.min((processor_time(start) - begin) as f64 / PACKETS as f64);
    }
    (least, counts.dropped as f64 / PACKETS as f64)
}

fn held<Q: QueueDiscipline<u32>>(queue: impl Fn() -> Q, flows: u32, load: f64) -> Counts {
    let mut link = HeldLink::new(queue(), rate());
    let mut counts = Counts::default();
    for packet in 0..PACKETS {
        let (now, packet) = arrival(packet, flows, load);
        loop {
            let (leaves, deadline) = (link.leaves(), Link::<u32>::deadline(&link));
            if leaves.min(deadline) > now {
                break;
            }
            if leaves <= deadline {
                black_box(link.serve(&mut counts));
            } else {
                Link::<u32>::on_deadline(&mut link, deadline);
            }
        }
        black_box(link.offer(now, packet, &mut counts));
    }
    counts
}

fn known<A: Admission>(admission: impl Fn() -> A, load: f64) -> Counts {
    let mut link = FifoLink::new(Limits::packets(LIMIT), admission(), rate());
    let mut counts = Counts::default();
    for packet in 0..PACKETS {
        let (now, packet) = arrival(packet, 1, load);
        black_box::<Offered>(link.offer(now, packet, &mut counts));
    }
    counts
}

/// Cost of the run without a queue.
fn nothing(load: f64) -> Counts {
    let mut transmitter = rate();
    for packet in 0..PACKETS {
        let (now, packet) = arrival(packet, 1, load);
        black_box(transmitter.transmit(now, packet.bytes));
    }
    Counts::default()
}

fn red() -> Red {
    let config = RedConfig {
        min_threshold: 50.0,
        max_threshold: 150.0,
        max_probability: 0.1,
        weight: 0.002,
        gentle: true,
        packets_per_second: 1e9 / TIME as f64,
        unit: RedUnit::Packets,
        ecn: false,
    };
    Red::new(config, Stream::of(1))
}

fn drr(drop: DropPolicy) -> Drr {
    let quantum_bytes = NonZeroU32::MIN.saturating_add(1499);
    let config = DrrConfig { quantum_bytes, buffers: Buffers::Shared, drop, ties: Ties::Latest };
    Drr::new(Limits::packets(LIMIT), config, Stream::of(1))
}

fn main() {
    let limits = Limits::packets(LIMIT);
    let no_marks = CodelConfig::default();
    let fq = || FqCodelConfig { codel: no_marks, ..FqCodelConfig::default() };
    println!("{:<34}{:>18}{:>18}", "", "load 0.95", "load 1.2");
    println!("{:<34}{:>9}{:>9}{:>9}{:>9}", "", "ns", "dropped", "ns", "dropped");
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let print = |name: &str, run: &dyn Fn(f64) -> Counts| {
        if !name.contains(&wanted) {
            return;
        }
        let (light, few) = measure(|| run(0.95));
        let (heavy, many) = measure(|| run(1.2));
        println!("{name:<34}{light:>9.1}{:>8.2}%{heavy:>9.1}{:>8.2}%", few * 1e2, many * 1e2);
    };
    print("no queue", &nothing);
    print("droptail, departure known", &|load| known(|| Open, load));
    print("red, departure known", &|load| known(red, load));
    print("droptail", &|load| held(|| DropTail::new(limits, Open), 1, load));
    print("head-drop", &|load| held(|| HeadDrop::new(limits), 1, load));
    print("red", &|load| held(|| Fifo::new(limits, red()), 1, load));
    print("pie", &|load| {
        held(|| Fifo::new(limits, Pie::new(PieConfig::default(), Stream::of(1))), 1, load)
    });
    print("codel", &|load| held(|| Codel::new(limits, no_marks), 1, load));
    print("codel, any queue", &|load| {
        let config = QueueConfig::Codel(no_marks);
        held(|| AnyQueue::new(config, limits, Stream::of(1)), 1, load)
    });
    for flows in [1, 100, 10_000] {
        print(&format!("fq_codel, {flows} flows"), &|load| {
            held(|| FqCodel::new(limits, fq()), flows, load)
        });
        print(&format!("drr, {flows} flows"), &|load| {
            held(|| drr(DropPolicy::Arriving), flows, load)
        });
        print(&format!("drr longest, {flows} flows"), &|load| {
            held(|| drr(DropPolicy::LongestTail), flows, load)
        });
    }
}
