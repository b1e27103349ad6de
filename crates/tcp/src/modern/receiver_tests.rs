use super::super::kernel_version::KernelVersion;
use super::super::presets::Preset;
use super::super::stack::{ApplicationReading, ReceiverRules};
use super::*;

fn data(start: u64, len: u32) -> ArrivingData {
    ArrivingData {
        start,
        len,
        fin: false,
        ecn: Ecn::Ect0,
        cwr: false,
        push: false,
        timestamps: None,
    }
}

/// Stack of a preset with a fully grown window.
fn with_full_window(preset: Preset) -> Stack {
    let stack = preset.stack();
    Stack { receiving: ReceiverRules { window_growth: 0, ..stack.receiving }, ..stack }
}

fn arrive(receiver: &mut Receiver, now: Nanos, packet: ArrivingData, stack: &Stack) -> Vec<u64> {
    receiver.on_data(now, &packet, stack);
    std::iter::from_fn(|| receiver.poll_ack(stack)).map(|ack| ack.ack).collect()
}

#[test]
fn linux_acks_sixteen_packets_immediately_then_every_second() {
    let stack = with_full_window(Preset::LinuxCubic);
    let mut receiver = Receiver::new(1, &stack);
    let mut acks = 0;
    for number in 0..40 {
        let packet = data(1 + number * 1448, 1448);
        acks += arrive(&mut receiver, number * MILLISECOND, packet, &stack).len();
        assert_eq!(acks as u64, if number < 16 { number + 1 } else { 16 + (number - 15) / 2 });
    }
}

#[test]
fn linux_tcp_grow_window_acks_immediately_while_window_grows() {
    let stack = Preset::LinuxCubic.stack();
    let mut receiver = Receiver::new(1, &stack);
    let all: Vec<bool> = (0..210)
        .map(|number| {
            let packet = data(1 + number * 1448, 1448);
            !arrive(&mut receiver, number * MILLISECOND, packet, &stack).is_empty()
        })
        .collect();
    // An eighth of 4 MiB in steps of 2 x 1460 bytes, plus sixteen packets.
    let immediate = (4_usize << 20) / 8 / 2920 + 1 + 16;
    assert_eq!(all.iter().position(|acked| !acked), Some(immediate));
    // Packets above a gap are also acknowledged immediately: duplicates are not compressed.
    let mut receiver = Receiver::new(1, &stack);
    let held = (1..9).map(|number| data(1 + number * 1448, 1448));
    assert!(held.into_iter().all(|packet| !arrive(&mut receiver, 0, packet, &stack).is_empty()));
}

#[test]
fn window_followed_by_fin_gives_two_quick_acks() {
    let stack = with_full_window(Preset::LinuxCubic);
    let stack = Stack { receiving: ReceiverRules { buffer: 1448, ..stack.receiving }, ..stack };
    let mut receiver = Receiver::new(1, &stack);
    let last = ArrivingData { fin: true, ..data(1, 1448) };
    // At least two acknowledgements are immediate: Linux's `tcp_incr_quickack`.
    receiver.on_data(0, &last, &stack);
    assert_eq!(receiver.delay.quick, 2);
    assert_eq!(receiver.poll_ack(&stack).map(|ack| ack.ack), Some(1450));
    assert_eq!(receiver.delay.quick, 1);
}

#[test]
fn linux_delays_ack_by_40_ms() {
    let stack = with_full_window(Preset::LinuxCubic);
    let mut receiver = Receiver::new(1, &stack);
    for number in 0..17 {
        arrive(&mut receiver, 0, data(1 + number * 1448, 1448), &stack);
    }
    assert_eq!(receiver.deadline(), 40 * MILLISECOND);
    receiver.on_deadline(40 * MILLISECOND);
    assert_eq!(receiver.poll_ack(&stack).map(|ack| ack.ack), Some(1 + 17 * 1448));
    assert_eq!(receiver.deadline(), NEVER);
    // The timer expired, so the next delay is twice as long if packets are rare.
    arrive(&mut receiver, 100 * MILLISECOND, data(1 + 17 * 1448, 1448), &stack);
    assert_eq!(receiver.deadline(), 180 * MILLISECOND);
}

#[test]
fn linux_acks_pushed_packet_when_all_data_is_read() {
    let stack = with_full_window(Preset::LinuxCubic);
    let mut receiver = Receiver::new(1, &stack);
    for number in 0..16 {
        arrive(&mut receiver, 0, data(1 + number * 1448, 1448), &stack);
    }
    let packet = |number: u64, push| ArrivingData { push, ..data(1 + number * 1448, 1448) };
    assert_eq!(arrive(&mut receiver, 0, packet(16, false), &stack), []);
    assert_eq!(arrive(&mut receiver, 0, packet(17, false), &stack), [1 + 18 * 1448]);
    assert_eq!(arrive(&mut receiver, 0, packet(18, true), &stack), [1 + 19 * 1448]);
    // Data above a gap is not read.
    arrive(&mut receiver, 0, packet(20, false), &stack);
    for number in 22..26 {
        arrive(&mut receiver, 0, packet(number, false), &stack);
    }
    assert_eq!(arrive(&mut receiver, 0, packet(26, true), &stack), []);
}

#[test]
fn linux_acks_second_short_packet_of_an_interactive_connection_when_it_is_read() {
    let stack = with_full_window(Preset::LinuxCubic);
    let mut receiver = Receiver::new(1, &stack);
    for number in 0..16 {
        arrive(&mut receiver, 0, data(1 + number * 1448, 1448), &stack);
    }
    let end = 1 + 16 * 1448;
    let short = |number: u64| ArrivingData { push: true, ..data(end + number * 100, 100) };
    assert_eq!(arrive(&mut receiver, 0, short(0), &stack), [end + 100], "not interactive");
    receiver.on_data_sent(0, &stack, &mut SackBlocks::default());
    assert_eq!(arrive(&mut receiver, 0, short(1), &stack), []);
    assert_eq!(arrive(&mut receiver, 0, short(2), &stack), [end + 300]);
    assert_eq!(arrive(&mut receiver, 0, short(3), &stack), [], "the count restarts");
    let full = data(end + 400, 1448);
    assert_eq!(arrive(&mut receiver, 0, full, &stack), [end + 1848], "more than a full packet");
}

#[test]
fn linux_acks_packets_of_one_instant_when_they_are_read() {
    let stack = with_full_window(Preset::LinuxCubic);
    let receiving = ReceiverRules { reading: ApplicationReading::EachInstant, ..stack.receiving };
    let stack = Stack { receiving, ..stack };
    let mut receiver = Receiver::new(1, &stack);
    let packet = |number: u64, push| ArrivingData { push, ..data(1 + number * 1448, 1448) };
    let read = |receiver: &mut Receiver, now| {
        receiver.on_deadline(now);
        receiver.poll_ack(&stack).map(|ack| (ack.ack - 1) / 1448)
    };
    // The initial packets are acknowledged immediately, before they are read.
    for number in 0..16 {
        assert_eq!(arrive(&mut receiver, 1, packet(number, false), &stack).len(), 1);
    }
    // One acknowledgement for all packets of an instant.
    for number in 16..30 {
        assert_eq!(arrive(&mut receiver, MILLISECOND, packet(number, number % 2 == 1), &stack), []);
        assert_eq!(receiver.deadline(), MILLISECOND);
    }
    assert_eq!(read(&mut receiver, MILLISECOND), Some(30));
    assert_eq!(receiver.deadline(), NEVER);
    // A single packet is read, but its acknowledgement is delayed as usual.
    assert_eq!(arrive(&mut receiver, 2 * MILLISECOND, packet(30, false), &stack), []);
    assert_eq!(read(&mut receiver, 2 * MILLISECOND), None);
    assert_eq!(receiver.deadline(), 42 * MILLISECOND);
    // With the next packet two are unacknowledged, so the read causes an acknowledgement. A pushed
    // packet causes one alone.
    assert_eq!(arrive(&mut receiver, 3 * MILLISECOND, packet(31, false), &stack), []);
    assert_eq!(read(&mut receiver, 3 * MILLISECOND), Some(32));
    assert_eq!(arrive(&mut receiver, 4 * MILLISECOND, packet(32, true), &stack), []);
    assert_eq!(read(&mut receiver, 4 * MILLISECOND), Some(33));
    // A gap is acknowledged immediately, with unread data before it.
    assert_eq!(arrive(&mut receiver, 5 * MILLISECOND, packet(33, false), &stack), []);
    assert_eq!(arrive(&mut receiver, 5 * MILLISECOND, packet(35, false), &stack), [1 + 34 * 1448]);
    assert_eq!(receiver.deadline(), NEVER);
}

#[test]
fn rfc_7323_5_3_packet_with_old_timestamp_is_rejected() {
    let stack = with_full_window(Preset::LinuxCubic);
    let mut receiver = Receiver::new(1, &stack);
    let packet = |number: u64, value| ArrivingData {
        timestamps: Some(Timestamps { value, echo: 0 }),
        ..data(1 + number * 1448, 1448)
    };
    receiver.on_data(0, &packet(0, 100), &stack);
    receiver.poll_ack(&stack);
    // Packet 1 is retransmitted and arrives before originals sent earlier.
    receiver.on_data(0, &packet(3, 100), &stack);
    receiver.poll_ack(&stack);
    assert!(receiver.on_data(0, &packet(1, 130), &stack));
    assert_eq!(receiver.poll_ack(&stack).map(|ack| (ack.ack, ack.echo)), Some((2897, Some(130))));
    assert!(!receiver.on_data(0, &packet(2, 101), &stack), "29 ms older");
    let ack = receiver.poll_ack(&stack).unwrap();
    assert_eq!((ack.ack, ack.sacks.as_slice().len()), (2897, 1), "not a duplicate");
    assert!(!receiver.on_data(0, &packet(1, 101), &stack));
    assert_eq!(receiver.poll_ack(&stack).unwrap().sacks.as_slice().len(), 2, "a duplicate");
    assert!(!receiver.on_data(0, &packet(0, 150), &stack));
    assert_eq!(receiver.poll_ack(&stack).unwrap().echo, Some(130), "old data is not echoed");
    assert!(receiver.on_data(0, &packet(2, 129), &stack), "Linux tolerates one tick");
    let ack = receiver.poll_ack(&stack).unwrap();
    assert_eq!((ack.ack, ack.echo), (1 + 4 * 1448, Some(130)));
}

#[test]
fn rfc_7323_4_3_first_of_two_timestamps_is_echoed() {
    let stack = with_full_window(Preset::LinuxCubic);
    let mut receiver = Receiver::new(1, &stack);
    for number in 0..16 {
        arrive(&mut receiver, 0, data(1 + number * 1448, 1448), &stack);
    }
    for (number, value) in [(16, 100), (17, 105)] {
        let timestamps = Some(Timestamps { value, echo: 0 });
        receiver.on_data(0, &ArrivingData { timestamps, ..data(1 + number * 1448, 1448) }, &stack);
    }
    assert_eq!(receiver.poll_ack(&stack).and_then(|ack| ack.echo), Some(100));
}

#[test]
fn rfc_5681_section_4_2_gaps_are_acked_immediately() {
    for preset in Preset::ALL {
        let stack = with_full_window(preset);
        let mut receiver = Receiver::new(1, &stack);
        for number in 0..30 {
            arrive(&mut receiver, 0, data(1 + number * 1000, 1000), &stack);
        }
        arrive(&mut receiver, 0, data(30_001, 1000), &stack);
        receiver.on_deadline(SECOND_LATER);
        receiver.poll_ack(&stack);
        assert_eq!(arrive(&mut receiver, 0, data(33_001, 1000), &stack), [31_001]);
        assert_eq!(arrive(&mut receiver, 0, data(31_001, 2000), &stack), [34_001]);
    }
}

const SECOND_LATER: Nanos = 1_000_000_000;

#[test]
fn linux_compresses_duplicate_acks_after_the_third() {
    let stack = with_full_window(Preset::LinuxCubic);
    let mut receiver = Receiver::new(1, &stack);
    receiver.on_established(Some(100 * MILLISECOND), None);
    let mut sent = vec![];
    arrive(&mut receiver, 0, data(1, 1448), &stack);
    receiver.delay.quick = 0;
    for number in 2..10 {
        let acks = arrive(&mut receiver, 0, data(1 + number * 1448, 1448), &stack);
        sent.push(acks.len());
    }
    assert_eq!(sent, [1, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(receiver.deadline(), MILLISECOND);
    receiver.on_deadline(MILLISECOND);
    assert!(receiver.poll_ack(&stack).is_some());
}

#[test]
fn linux_tcp_ack_snd_check_acks_partly_filled_gap_immediately() {
    let stack = with_full_window(Preset::LinuxCubic);
    let mut receiver = Receiver::new(1, &stack);
    receiver.on_established(Some(100 * MILLISECOND), None);
    arrive(&mut receiver, 0, data(1, 1448), &stack);
    receiver.delay.quick = 0;
    // Three packets are missing; five follow them, and the last two acknowledgements wait.
    for number in 4..9 {
        arrive(&mut receiver, 0, data(1 + number * 1448, 1448), &stack);
    }
    assert_eq!(receiver.deadline(), MILLISECOND);
    assert_eq!(arrive(&mut receiver, 0, data(1 + 1448, 1448), &stack), [1 + 2 * 1448]);
    assert_eq!(receiver.deadline(), NEVER, "covers the acknowledgements that waited");
    // Two more duplicates are not delayed.
    let after = (9..12).map(|number| data(1 + number * 1448, 1448));
    let acks: Vec<_> = after.map(|packet| arrive(&mut receiver, 0, packet, &stack).len()).collect();
    assert_eq!(acks, [1, 1, 0]);
}

#[test]
fn rfc_3168_section_6_1_3_marks_are_echoed_until_cwr() {
    let stack = Stack { ecn: true, ..with_full_window(Preset::LinuxCubic) };
    let mut receiver = Receiver::new(1, &stack);
    let mut echoes = vec![];
    for (number, ecn, cwr) in [
        (0, Ecn::Ect0, false),
        (1, Ecn::Ce, false),
        (2, Ecn::Ect0, false),
        (3, Ecn::Ect0, true),
        (4, Ecn::Ect0, false),
    ] {
        let packet = ArrivingData { ecn, cwr, ..data(1 + number * 1000, 1000) };
        receiver.on_data(0, &packet, &stack);
        echoes.push(receiver.poll_ack(&stack).unwrap().ece);
    }
    assert_eq!(echoes, [false, true, true, false, false]);
}

#[test]
fn rfc_8257_section_3_2_change_of_marks_is_acked_immediately() {
    let stack = with_full_window(Preset::Dctcp);
    let mut receiver = Receiver::new(1, &stack);
    for number in 0..16 {
        arrive(&mut receiver, 0, data(1 + number * 1000, 1000), &stack);
    }
    // `largest` is a full packet, so the next acknowledgement waits.
    assert_eq!(arrive(&mut receiver, 0, data(16_001, 1000), &stack), [0_u64; 0]);
    let packet = ArrivingData { ecn: Ecn::Ce, ..data(17_001, 1000) };
    receiver.on_data(0, &packet, &stack);
    let acks: Vec<_> = std::iter::from_fn(|| receiver.poll_ack(&stack)).collect();
    let echoes: Vec<_> = acks.iter().map(|ack| (ack.ack, ack.ece)).collect();
    assert_eq!(echoes, [(17_001, false), (18_001, true)]);
}

/// A receiver of `packets` full packets, whose application reads on request.
fn unread(packets: u64) -> (Receiver, Stack) {
    let mut stack = Preset::LinuxCubic.stack();
    stack.receiving.reading = ApplicationReading::OnRequest;
    stack.receiving.buffer = 16 * u64::from(stack.mss);
    stack.receiving.window_growth = 0;
    let mut receiver = Receiver::new(1, &stack);
    for number in 0..packets {
        arrive(&mut receiver, 0, data(1 + number * 1448, 1448), &stack);
    }
    (receiver, stack)
}

#[test]
fn linux_tcp_cleanup_rbuf_updates_the_window_when_it_has_doubled() {
    let (mut receiver, stack) = unread(16);
    assert_eq!(receiver.window_end() - receiver.next_expected(), 0);
    receiver.on_read(1, 1447, &stack);
    assert!(receiver.poll_ack(&stack).is_none(), "less than a packet is free");
    receiver.on_read(2, 1, &stack);
    assert_eq!(receiver.poll_ack(&stack).map(|ack| ack.window), Some(1448));
    receiver.on_read(3, 1447, &stack);
    assert!(receiver.poll_ack(&stack).is_none(), "the window would be less than twice as large");
    receiver.on_read(4, 1, &stack);
    assert_eq!(receiver.poll_ack(&stack).map(|ack| ack.window), Some(2 * 1448));
}

#[test]
fn linux_tcp_select_window_does_not_advertise_a_small_part_of_the_buffer() {
    let (mut receiver, stack) = unread(16);
    receiver.on_read(1, 1000, &stack);
    receiver.make_ack_due();
    assert_eq!(receiver.poll_ack(&stack).map(|ack| ack.window), Some(0));
}

#[test]
fn linux_compresses_acks_since_4_18_and_since_6_19_for_a_third_of_the_rtt() {
    let deadline = |version: KernelVersion| {
        let stack = Stack { kernel: version.rules(), ..with_full_window(Preset::LinuxCubic) };
        let mut receiver = Receiver::new(1, &stack);
        receiver.on_established(Some(2 * MILLISECOND), None);
        arrive(&mut receiver, 0, data(1, 1448), &stack);
        receiver.delay.quick = 0;
        for number in 2..7 {
            arrive(&mut receiver, 0, data(1 + number * 1448, 1448), &stack);
        }
        receiver.deadline()
    };
    assert_eq!(deadline(KernelVersion::V4_14), NEVER);
    assert_eq!(deadline(KernelVersion::V6_18), 100_000);
    assert_eq!(deadline(KernelVersion::V7_0), 660_000);
}

#[test]
fn linux_sends_two_quick_acks_after_a_mark_and_16_until_4_17() {
    let quick = |version: KernelVersion| {
        let stack =
            Stack { kernel: version.rules(), ecn: true, ..with_full_window(Preset::LinuxCubic) };
        let mut receiver = Receiver::new(1, &stack);
        receiver.on_established(Some(2 * MILLISECOND), None);
        arrive(&mut receiver, 0, data(1, 1448), &stack);
        receiver.delay.quick = 0;
        let marked = ArrivingData { ecn: Ecn::Ce, ..data(1449, 1448) };
        arrive(&mut receiver, 0, marked, &stack);
        receiver.delay.quick
    };
    // The mark itself has been acknowledged.
    assert_eq!([KernelVersion::V5_4, KernelVersion::V4_14].map(quick), [1, 15]);
}
