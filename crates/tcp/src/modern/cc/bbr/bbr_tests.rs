use super::*;
use crate::modern::cc::path_model::{AckAggregationEpoch, chunk_packets};
use crate::modern::outstanding_packet::OutstandingPacket;
use crate::modern::presets::Preset;
use crate::modern::sender::{AllowedRetransmissions, Sender};
use crate::modern::stack::Stack;
use tcpcast_link::time::MILLISECOND;

#[test]
fn initial_rate_is_ten_packets_per_millisecond() {
    let stack = Preset::LinuxBbr.stack();
    let bbr = Bbr::new(&stack.control_rules(), 0, 1);
    let expected = 10.0 * 1448.0 * 1000.0 * (739.0 / 256.0) * 0.99;
    assert!((bbr.pacing_rate() as f64 / expected - 1.0).abs() < 1e-3, "{}", bbr.pacing_rate());
}

#[test]
fn packets_inverts_bandwidth() {
    let bw = bandwidth_of(100, 60 * MILLISECOND);
    assert_eq!(packets_carried_rounded_up(bw, 60 * MILLISECOND, GAIN_UNIT), 100);
    assert_eq!(packets_carried_rounded_up(bw, 60 * MILLISECOND, CWND_GAIN), 200);
}

#[test]
fn burst_is_data_of_a_millisecond() {
    assert_eq!(chunk_packets(100_000, 0, 1448), 1);
    assert_eq!(chunk_packets(2_500_000, 0, 1448), 2);
    assert_eq!(chunk_packets(12_500_000, 0, 1448), 8);
    assert_eq!(chunk_packets(u64::MAX, 0, 1448), 45);
}

#[test]
fn cycle_begins_at_any_phase_except_draining() {
    let stack = Preset::LinuxBbr.stack();
    let mut counts = [0; 8];
    for seed in 0..200 {
        let mut bbr = Bbr::new(&stack.control_rules(), 0, seed);
        bbr.enter_probe_bw(0);
        let BbrMode::ProbeBw { phase, .. } = bbr.mode() else { panic!("{:?}", bbr.mode()) };
        counts[usize::from(phase)] += 1;
    }
    assert_eq!(counts[1], 0);
    assert_eq!(counts.iter().filter(|&&n| n > 0).count(), 7);
}

#[test]
fn linux_bbr_init_sets_rate_from_handshake_rtt() {
    let stack = Preset::LinuxBbr.stack();
    let mut sender = Sender::new(0, 1, 1, &stack);
    sender.on_established(0, Some(80 * MILLISECOND), 1 << 40, &stack);
    let expected = 10.0 * 1448.0 / 0.08 * (739.0 / 256.0) * 0.99;
    let rate = sender.congestion_control().pacing_rate().unwrap() as f64;
    assert!((rate / expected - 1.0).abs() < 1e-3, "{rate}");
    // The rate is so low that chunks contain two packets from the beginning.
    sender.write_bytes(0, 1 << 20, &stack, &mut ());
    let sent: Vec<_> =
        std::iter::from_fn(|| sender.poll_transmit(0, &stack)).map(|sent| sent.push).collect();
    assert_eq!(sent, [false, true].repeat(5));
}

#[test]
fn linux_bbr_init_sets_min_rtt_from_handshake() {
    let stack = Preset::LinuxBbr.stack();
    let mut bbr = Bbr::new(&stack.control_rules(), 0, 1);
    let mut window = CongestionWindow::new(10);
    bbr.on_established(&window, 0, 20 * MILLISECOND);
    // The first packets waited in a queue.
    let queued =
        AckSample { rtt: Some(70 * MILLISECOND), ..AckSample::for_test(90 * MILLISECOND, 1, 9) };
    bbr.update_min_rtt(&mut window, &queued);
    let bw = bandwidth_of(10, 10 * MILLISECOND);
    assert_eq!(bbr.target_inflight(bw, GAIN_UNIT), 20 + 3 * bbr.pace.burst_packets().max(2));
}

#[test]
fn linux_bbr_update_ack_aggregation_rounds_expected_packets_down() {
    // Two packets per millisecond.
    let bw = bandwidth_of(2, MILLISECOND);
    let mut epoch = AckAggregationEpoch::new(0);
    assert_eq!(epoch.extra_acked_packets(&AckSample::for_test(0, 2, 10), bw, 100), 2);
    // 1.5 packets are expected since then, rounded down to 1.
    assert_eq!(
        epoch.extra_acked_packets(&AckSample::for_test(MILLISECOND * 3 / 4, 1, 10), bw, 100),
        2
    );
    // Three were acknowledged and three are expected, so the epoch ends.
    assert_eq!(
        epoch.extra_acked_packets(&AckSample::for_test(MILLISECOND * 8 / 5, 1, 10), bw, 100),
        1
    );
}

#[test]
fn linux_bbr_update_min_rtt_keeps_larger_saved_window() {
    let stack = Preset::LinuxBbr.stack();
    let mut bbr = Bbr::new(&stack.control_rules(), 0, 1);
    let mut window = CongestionWindow::new(60);
    bbr.saved_cwnd = 80;
    bbr.update_min_rtt(&mut window, &AckSample::for_test(MIN_RTT_WINDOW + 1, 1, 50));
    assert!(bbr.is_probing_rtt());
    assert_eq!(bbr.saved_cwnd, 80);
}

#[test]
fn linux_bbr_sndbuf_expand_allows_three_windows_during_recovery() {
    let room = |preset: Preset| {
        let stack = preset.stack();
        let mut sender = Sender::new(0, 1, 1, &stack);
        sender.on_established(0, Some(20 * MILLISECOND), 1 << 40, &stack);
        while sender.may_send_new_data(&stack) {
            sender.flight.push_packet(OutstandingPacket::default(), stack.mss);
        }
        sender.flight.packets_out()
    };
    // Linux's `tcp_sendmsg_locked` fills another 64 KiB if one byte of space is left.
    assert_eq!(room(Preset::LinuxBbr), 30 + 45);
    assert_eq!(room(Preset::LinuxCubic), 20 + 45);
}

#[test]
fn linux_bbr_set_state_samples_policer_at_timeout() {
    let stack = Preset::LinuxBbr.stack();
    let mut bbr = Bbr::new(&stack.control_rules(), 0, 1);
    // A timeout counts as a round with losses; fractions of a millisecond are ignored.
    let mut time_out = |n: u32| {
        let at = Nanos::from(n) * 100 * MILLISECOND + Nanos::from(n % 2) * 900_000;
        let (delivered, lost) = (100 + n * 20, 10 + n * 10);
        let totals = DeliveryTotals { at, delivered, lost };
        let change = RecoveryPhaseChange { phase: PhaseName::Loss, now: at, next: 0, totals };
        bbr.on_recovery_phase_change(&mut CongestionWindow::new(10), &change);
        bbr.policer.policer_bandwidth()
    };
    let detected: Vec<_> = (0..8).map(|n| time_out(n).is_some()).collect();
    assert_eq!(detected, [false, false, false, false, false, false, false, true]);
    assert_eq!(bbr.policer.policer_bandwidth(), Some(bandwidth_of(20, 100 * MILLISECOND)));
}

/// Creates a sender with `cwnd` packets outstanding, at a time when the pacer allows the next.
fn sender_with_flight(rtt: Nanos, cwnd: u32, stack: &Stack) -> (Nanos, Sender) {
    let mut sender = Sender::new(0, 1, 1, stack);
    sender.on_established(0, Some(rtt), 1 << 40, stack);
    sender.window.cwnd = cwnd;
    sender.write_bytes(0, 1 << 30, stack, &mut ());
    // A partial chunk waits at most one millisecond after the last one.
    let mut now = 0;
    while sender.flight.packets_out() < cwnd {
        now = sender.pacer.next_send_time() + 2 * MILLISECOND;
        while sender.poll_transmit(now, stack).is_some() {}
    }
    (now.max(sender.pacer.next_send_time()), sender)
}

#[test]
fn linux_tcp_tso_autosize_enlarges_bbr_chunks_on_short_paths() {
    let stack = Preset::LinuxBbr.stack();
    let chunk = |rtt| {
        let (now, mut sender) = sender_with_flight(rtt, 60, &stack);
        sender.window.cwnd = 120;
        std::iter::from_fn(|| sender.poll_transmit(now, &stack)).count()
    };
    // 10 packets per 2 ms with the startup gain, in 1/1024 s, plus 64 KiB / 2^3.
    assert_eq!(chunk(2 * MILLISECOND), 19);
    assert_eq!(chunk(20 * MILLISECOND), 2);
}

#[test]
fn linux_tcp_xmit_retransmit_queue_paces_each_run_of_lost_packets() {
    let stack = Preset::LinuxBbr.stack();
    let (mut now, mut sender) = sender_with_flight(20 * MILLISECOND, 40, &stack);
    for lost in [2, 3, 7, 9] {
        sender.flight.mark_lost(lost);
    }
    sender.enter_recovery(now, false, &stack, &mut ());
    sender.repair = AllowedRetransmissions::Lost;
    let mut sent = vec![];
    for _ in 0..4 {
        let burst = std::iter::from_fn(|| sender.poll_transmit(now, &stack));
        sent.push(burst.map(|packet| packet.number).collect::<Vec<_>>());
        now = sender.pacer.next_send_time();
    }
    assert_eq!(sent, [vec![2, 3], vec![7], vec![9], vec![]]);
}

#[test]
fn linux_bbr_pacing_gain_depends_on_mode_and_phase() {
    let mut bbr = Bbr::new(&Preset::LinuxBbr.stack().control_rules(), 0, 1);
    let mut gain = |mode| {
        bbr.mode = mode;
        bbr.pacing_gain()
    };
    // The gains are 2885/1000 and its inverse, then 5/4, 3/4, and six times 1, in units of 1/256.
    assert_eq!([gain(BbrMode::Startup), gain(BbrMode::Drain)], [739, 88]);
    let cycle: Vec<u64> = (0..8).map(|phase| gain(BbrMode::ProbeBw { phase, since: 0 })).collect();
    assert_eq!(cycle, [320, 192, 256, 256, 256, 256, 256, 256]);
    assert_eq!(gain(BbrMode::ProbeRtt(MinRttProbe::Emptying)), 256);
}

/// A flow that loses `lost` packets per 256 delivered, with one round every 10 ms.
fn policed(bbr: &mut Bbr, lost: u32, rounds: std::ops::Range<u32>) {
    bbr.round_start = true;
    for round in rounds {
        let at = Nanos::from(round) * 10 * MILLISECOND;
        let totals = DeliveryTotals { at, delivered: 256 * round, lost: lost * round };
        bbr.detect_policer(&PolicerSample { totals, lost: lost > 0, app_limited: false });
    }
}

#[test]
fn linux_bbr_lt_bw_sampling_detects_policer_in_two_intervals() {
    let detected = |lost| {
        let mut bbr = Bbr::new(&Preset::LinuxBbr.stack().control_rules(), 0, 1);
        policed(&mut bbr, lost, 0..16);
        bbr.policer.policer_bandwidth()
    };
    assert_eq!(detected(49), None);
    assert_eq!(detected(50), Some(bandwidth_of(256, 10 * MILLISECOND)));
}

#[test]
fn linux_bbr_lt_bw_max_rtts_ends_policer_rate_after_48_rounds() {
    let mut bbr = Bbr::new(&Preset::LinuxBbr.stack().control_rules(), 0, 1);
    policed(&mut bbr, 60, 0..16);
    assert!(bbr.policer.policer_bandwidth().is_some());
    // Rounds of startup do not count.
    policed(&mut bbr, 0, 16..80);
    bbr.enter_probe_bw(0);
    policed(&mut bbr, 0, 80..127);
    assert!(bbr.policer.policer_bandwidth().is_some());
    policed(&mut bbr, 0, 127..128);
    assert!(bbr.policer.policer_bandwidth().is_none());
}
