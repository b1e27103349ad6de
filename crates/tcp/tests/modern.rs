//! Modern senders and receivers over a link with loss, delay, reordering, duplication and marks.

#[path = "modern/link.rs"]
mod link;
#[path = "modern/startup.rs"]
mod startup;

use link::{Faults, Link};
use proptest::prelude::*;
use tcpcast_link::time::{MILLISECOND, NEVER};
use tcpcast_tcp::modern::{
    ArrivingAck, PacketMarks, Preset, SackBlock, SendReason, Sender, Stack, Timestamps,
};

/// Checks the invariants of a sender.
fn check(sender: &Sender, now: u64) {
    let flight = sender.flight();
    assert!(sender.cwnd() >= 1, "the window is at least one packet");
    let (mut sacked, mut lost, mut retransmitted) = (0, 0, 0);
    for number in flight.first_number()..flight.next_number() {
        let marks = flight.packet(number).marks;
        sacked += u32::from(marks.contains_any(PacketMarks::SACKED));
        lost += u32::from(marks.contains_any(PacketMarks::LOST));
        retransmitted += u32::from(marks.contains_any(PacketMarks::RETRANSMITTED));
        assert!(
            !(marks.contains_any(PacketMarks::SACKED) && marks.contains_any(PacketMarks::LOST)),
            "a packet is both SACKed and lost"
        );
    }
    if sacked > 0 {
        assert_eq!(flight.sacked, sacked);
    }
    assert_eq!((flight.lost, flight.retransmitted), (lost, retransmitted));
    assert!(flight.packets_left_network() <= flight.packets_out() + flight.retransmitted);
    if flight.packets_out() > 0 {
        assert!(sender.deadline() < NEVER, "a timer is set while packets are outstanding");
    }
    assert!(
        sender.deadline() >= now && sender.next_paced_time() >= now,
        "timers are not in the past"
    );
}

fn presets() -> impl Strategy<Value = (usize, bool, bool, u64)> {
    (0..Preset::ALL.len(), any::<bool>(), any::<bool>(), 1_u64..200)
}

fn stack_of(preset: usize, timestamps: bool, ecn: bool, window: u64) -> Stack {
    let mut stack = Preset::ALL[preset].stack();
    stack.timestamps = timestamps;
    stack.ecn |= ecn;
    stack.receiving.buffer = window * u64::from(stack.mss);
    stack
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// All bytes arrive over any link, and the invariants hold at any time.
    #[test]
    fn all_bytes_arrive_over_faulty_links(
        (preset, timestamps, ecn, window) in presets(),
        bytes in 1_u64..400_000,
        seed in any::<u64>(),
        (loss, ack_loss, duplicates) in (0_u32..35, 0_u32..35, 0_u32..15),
        (reorder, marks) in (0_u32..30, 0_u32..30),
        delay_ms in 1_u64..120,
        rate_mbit in prop::option::of(1_u64..100),
    ) {
        let stack = stack_of(preset, timestamps, ecn, window);
        let faults = Faults { loss, ack_loss, duplicates, reorder, marks };
        let mut link = Link::new(stack, faults, delay_ms * MILLISECOND, rate_mbit, seed);
        link.write(bytes);
        for _ in 0..200_000 {
            if link.sender.is_finished() {
                break;
            }
            link.step();
            check(&link.sender, link.now);
        }
        prop_assert!(link.sender.is_finished());
        prop_assert_eq!(link.receiver.next_expected(), 1 + bytes);
        prop_assert_eq!(link.sender.flight().packets_out(), 0);
    }

    /// The invariants hold for any acknowledgements, including invalid ones.
    #[test]
    fn invariants_hold_for_arbitrary_acknowledgements(
        (preset, timestamps, ecn, window) in presets(),
        acks in prop::collection::vec(
            (0_u64..80, prop::collection::vec((0_u64..90, 0_u64..30), 0..4), any::<bool>(),
                0_u64..150, 0_u64..40, 0_u64..400),
            1..120,
        ),
    ) {
        let stack = stack_of(preset, timestamps, ecn, window);
        let mss = u64::from(stack.mss);
        let mut now = MILLISECOND;
        let mut sender = Sender::new(now, 1, 7, &stack);
        sender.on_established(now, Some(10 * MILLISECOND), window * mss, &stack);
        sender.write_bytes(now, 1 << 40, &stack, &mut ());
        for (ack, blocks, ece, wait, window, echo) in acks {
            now += wait * MILLISECOND / 4;
            let mut probes = 0;
            while sender.deadline().min(sender.next_paced_time()) <= now {
                let at = sender.deadline().min(sender.next_paced_time());
                if sender.deadline() <= at {
                    sender.on_deadline(at, &stack, &mut ());
                    probes += 1;
                }
                drain(&mut sender, at, &stack, 1);
                prop_assert!(probes < 100);
            }
            let una = sender.una();
            // Multiples of half a packet: within packets, below the window, and beyond sent data.
            let ack = (una + ack * mss / 2).saturating_sub(20 * mss);
            let blocks = blocks.into_iter().map(|(start, len)| {
                let start = (ack + start * mss / 2).saturating_sub(10 * mss);
                SackBlock { start, end: start + len * mss / 2 }
            });
            let ack = ArrivingAck {
                ack,
                window: window * mss,
                seq: 1,
                carries_data: false,
                sacks: blocks.collect(),
                timestamps: timestamps.then_some(Timestamps { value: 5, echo: echo as u32 }),
                ece,
                ace: 0,
                accurate_ecn: None,
            };
            sender.on_ack(now, &ack, &stack, &mut ());
            drain(&mut sender, now, &stack, 0);
            check(&sender, now);
        }
    }
}

/// Sends all packets that may be sent now; up to `forced` packets may exceed the window.
fn drain(sender: &mut Sender, now: u64, stack: &Stack, forced: u32) {
    let mut beyond = 0;
    for count in 0.. {
        let (room, allowed) = (sender.in_flight() < sender.cwnd(), sender.receive_window_end());
        let Some(sent) = sender.poll_transmit(now, stack) else { break };
        if sent.sending == SendReason::New {
            assert!(sent.start + u64::from(sent.len) <= allowed, "data exceed the receiver window");
        }
        beyond += u32::from(!room);
        assert!(beyond <= forced, "packets exceed the congestion window");
        assert!(count < 100_000, "the sender does not stop");
    }
}

#[test]
fn runs_with_the_same_seed_are_identical() {
    let run = |seed| {
        let stack = Preset::LinuxBbr.stack();
        let faults = Faults { loss: 3, reorder: 5, ..Faults::default() };
        let mut link = Link::new(stack, faults, 10 * MILLISECOND, Some(20), seed);
        link.write(1_000_000);
        while !link.sender.is_finished() {
            link.step();
        }
        (link.now, link.packets)
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}
