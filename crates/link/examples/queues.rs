//! Benchmark of queue disciplines: nanoseconds per packet for an enqueue and a dequeue in cache.
//!
//! `cargo run --release -p tcpcast-link --example queues [NAME]`, where NAME selects the
//! disciplines whose name contains it.

use std::hint::black_box;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Instant;
use tcpcast_link::link::{FifoLink, QueueingLink};
use tcpcast_link::queue::{
    AdmitAll, AnyQueue, BufferAssignment, BufferLimits, Cake, CakeConfig, Codel, CodelConfig,
    DropPolicy, DropReason, DropTail, Drr, DrrConfig, EvictOldest, Fifo, FqCodel, FqCodelConfig,
    HeadDrop, HeadOfLine, Pie, PieConfig, QueueConfig, QueueDiscipline, QueueProbe, Red, RedConfig,
    RedRules, TieBreakRule,
};
use tcpcast_link::random::RandomStream;
use tcpcast_link::transmit::{ConstantRate, Transmitter};
use tcpcast_link::{Ecn, Nanos, Packet};

const PACKETS: u64 = 2_000_000;
/// Transmission time of 1500 bytes.
const TRANSMISSION_TIME: Nanos = 12_000;
/// Buffer limit in packets.
const BUFFER_PACKETS: u64 = 1000;

#[derive(Default)]
struct PacketCounts {
    dropped: u64,
}

impl QueueProbe<u32> for PacketCounts {
    #[inline]
    fn on_drop(&mut self, _now: Nanos, _packet: &Packet, _reason: DropReason) {
        self.dropped += 1;
    }
}

fn rate() -> ConstantRate {
    ConstantRate::new(NonZeroU64::new(1_000_000_000))
}

/// Arrival time and packet number `packet`. Packets arrive in bursts so that queues build up.
#[inline]
fn arrival(packet: u64, flows: u32, load: f64) -> (Nanos, Packet) {
    let burst = packet / 64;
    let now = burst * (64.0 * TRANSMISSION_TIME as f64 / load) as Nanos + (packet % 64) * 2000;
    let flow = (packet.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % flows;
    (now, Packet::new(packet as u32, flow, 1500).with_ecn(Ecn::Ect0))
}

/// CPU time of the process in nanoseconds, or elapsed time if the system does not report CPU time.
fn processor_time(begin: Instant) -> u64 {
    let schedule = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let on_processor = schedule.split(' ').next().and_then(|time| time.parse().ok());
    on_processor.unwrap_or_else(|| begin.elapsed().as_nanos() as u64)
}

/// Nanoseconds per packet (minimum of five runs) and fraction of dropped packets.
fn measure(mut run: impl FnMut() -> PacketCounts) -> (f64, f64) {
    let mut min = f64::INFINITY;
    let mut counts = PacketCounts::default();
    let start = Instant::now();
    for _ in 0..5 {
        let begin = processor_time(start);
        counts = run();
        min = min.min((processor_time(start) - begin) as f64 / PACKETS as f64);
    }
    (min, counts.dropped as f64 / PACKETS as f64)
}

fn run_held<Q: QueueDiscipline<u32>>(queue: impl Fn() -> Q, flows: u32, load: f64) -> PacketCounts {
    let mut link = QueueingLink::new(queue(), rate());
    let mut counts = PacketCounts::default();
    for packet in 0..PACKETS {
        let (now, packet) = arrival(packet, flows, load);
        loop {
            let (leaves, deadline) = (link.next_departure(), link.queue().deadline());
            if leaves.min(deadline) > now {
                break;
            }
            if leaves <= deadline {
                black_box(link.transmit_next_packet(&mut counts));
            } else {
                link.queue_mut().on_deadline(deadline);
            }
        }
        black_box(link.offer(now, packet, &mut counts));
    }
    counts
}

fn run_fifo(load: f64) -> PacketCounts {
    let mut link = FifoLink::new(BufferLimits::limit_packets(BUFFER_PACKETS), rate());
    let mut counts = PacketCounts::default();
    for packet in 0..PACKETS {
        let (now, packet) = arrival(packet, 1, load);
        black_box(link.offer(now, packet, &mut counts));
    }
    counts
}

/// Baseline without a queue.
fn run_without_queue(load: f64) -> PacketCounts {
    let mut transmitter = rate();
    for packet in 0..PACKETS {
        let (now, packet) = arrival(packet, 1, load);
        black_box(transmitter.transmit(now, packet.bytes));
    }
    PacketCounts::default()
}

fn red() -> Red {
    let config = RedConfig {
        min_threshold: 50.0,
        max_threshold: 150.0,
        max_probability: 0.1,
        weight: 0.002,
        gentle: true,
        adaptive: false,
        rules: RedRules::Ns2,
        packets_per_second: 1e9 / TRANSMISSION_TIME as f64,
        ecn: false,
    };
    Red::new(config, RandomStream::from_seed(1))
}

fn drr(drop: DropPolicy) -> Drr {
    let quantum_bytes = NonZeroU32::MIN.saturating_add(1499);
    let config = DrrConfig {
        quantum_bytes,
        buffers: BufferAssignment::Shared,
        drop,
        ties: TieBreakRule::Latest,
        head_of_line: HeadOfLine::InBuffer,
        heavy: None,
    };
    Drr::new(BufferLimits::limit_packets(BUFFER_PACKETS), config, RandomStream::from_seed(1))
}

fn main() {
    let limits = BufferLimits::limit_packets(BUFFER_PACKETS);
    let no_marks = CodelConfig::default();
    let fq = || FqCodelConfig { codel: no_marks, ..FqCodelConfig::default() };
    println!("{:<34}{:>18}{:>18}", "", "load 0.95", "load 1.2");
    println!("{:<34}{:>9}{:>9}{:>9}{:>9}", "", "ns", "dropped", "ns", "dropped");
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let print = |name: &str, run: &dyn Fn(f64) -> PacketCounts| {
        if !name.contains(&wanted) {
            return;
        }
        let (light, few) = measure(|| run(0.95));
        let (heavy, many) = measure(|| run(1.2));
        println!("{name:<34}{light:>9.1}{:>8.2}%{heavy:>9.1}{:>8.2}%", few * 1e2, many * 1e2);
    };
    print("no queue", &run_without_queue);
    print("droptail, departure known", &run_fifo);
    print("droptail", &|load| run_held(|| DropTail::new(limits, AdmitAll), 1, load));
    print("head-drop", &|load| run_held(|| HeadDrop::new(limits, EvictOldest), 1, load));
    print("red", &|load| run_held(|| Fifo::new(limits, red()), 1, load));
    print("pie", &|load| {
        run_held(
            || Fifo::new(limits, Pie::new(PieConfig::default(), RandomStream::from_seed(1))),
            1,
            load,
        )
    });
    print("codel", &|load| run_held(|| Codel::new(limits, no_marks), 1, load));
    print("codel, any queue", &|load| {
        let config = QueueConfig::Codel(no_marks);
        run_held(|| AnyQueue::new(config, limits, RandomStream::from_seed(1)), 1, load)
    });
    for flows in [1, 100, 10_000] {
        print(&format!("fq_codel, {flows} flows"), &|load| {
            run_held(|| FqCodel::new(limits, fq()), flows, load)
        });
        print(&format!("cake, {flows} flows"), &|load| {
            let config = CakeConfig::default();
            run_held(|| Cake::new(limits, config, RandomStream::from_seed(1)), flows, load)
        });
        print(&format!("drr, {flows} flows"), &|load| {
            run_held(|| drr(DropPolicy::Arriving), flows, load)
        });
        print(&format!("drr longest, {flows} flows"), &|load| {
            run_held(|| drr(DropPolicy::LongestTail), flows, load)
        });
    }
}
