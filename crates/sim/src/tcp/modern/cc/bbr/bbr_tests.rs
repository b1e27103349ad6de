use super::*;
use crate::tcp::modern::cc::path_model::{AckEpoch, burst_packets};
use crate::tcp::modern::packet::Packet;
use crate::tcp::modern::sender::{Repair, Sender};
use crate::tcp::modern::stack::{MILLISECOND, Preset};

#[test]
fn the_first_rate_is_that_of_ten_packets_in_a_millisecond() {
    let stack = Preset::LinuxBbr.stack();
    let bbr = Bbr::new(&stack, 0, 1);
    let expected = 10.0 * 1448.0 * 1000.0 * (739.0 / 256.0) * 0.99;
    assert!((bbr.pacing_rate() as f64 / expected - 1.0).abs() < 1e-3, "{}", bbr.pacing_rate());
}

#[test]
fn a_bandwidth_carries_what_it_was_measured_with() {
    let bw = bandwidth(100, 60 * MILLISECOND);
    assert_eq!(packets(bw, 60 * MILLISECOND, UNIT), 100);
    assert_eq!(packets(bw, 60 * MILLISECOND, CWND_GAIN), 200);
}

#[test]
fn a_burst_is_what_the_rate_sends_in_a_millisecond() {
    assert_eq!(burst_packets(100_000, 1448), 1);
    assert_eq!(burst_packets(2_500_000, 1448), 2);
    assert_eq!(burst_packets(12_500_000, 1448), 8);
    assert_eq!(burst_packets(u64::MAX, 1448), 45);
}

#[test]
fn the_cycle_begins_anywhere_but_where_it_drains() {
    let stack = Preset::LinuxBbr.stack();
    let mut sample = [0; 8];
    for seed in 0..200 {
        let mut bbr = Bbr::new(&stack, 0, seed);
        bbr.enter_probe_bw(0);
        let Mode::ProbeBw { phase, .. } = bbr.mode() else { panic!("{:?}", bbr.mode()) };
        sample[usize::from(phase)] += 1;
    }
    assert_eq!(sample[1], 0);
    assert_eq!(sample.iter().filter(|&&n| n > 0).count(), 7);
}

#[test]
fn linux_s_bbr_init_makes_the_first_rate_of_the_handshake_s_round_trip_time() {
    let stack = Preset::LinuxBbr.stack();
    let mut sender = Sender::new(0, 1, 1, &stack);
    sender.establish(0, Some(80 * MILLISECOND), 1 << 40, &stack);
    let expected = 10.0 * 1448.0 / 0.08 * (739.0 / 256.0) * 0.99;
    let rate = sender.control().pacing_rate().unwrap() as f64;
    assert!((rate / expected - 1.0).abs() < 1e-3, "{rate}");
    // So little is sent in a millisecond that there are two packets in a chunk from the first on.
    sender.write(0, 1 << 20, &stack, &mut ());
    let sent: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(0, &stack, &mut ()))
        .map(|sent| sent.push)
        .collect();
    assert_eq!(sent, [false, true].repeat(5));
}

#[test]
fn linux_s_bbr_init_has_the_handshake_s_round_trip_time_as_the_smallest() {
    let stack = Preset::LinuxBbr.stack();
    let mut bbr = Bbr::new(&stack, 0, 1);
    let mut window = Window::new(10);
    bbr.on_established(&window, 0, 20 * MILLISECOND);
    // The first packets met a queue.
    let queued = AckSample { rtt: Some(70 * MILLISECOND), ..AckSample::of(90 * MILLISECOND, 1, 9) };
    bbr.update_min_rtt(&mut window, &queued);
    let bw = bandwidth(10, 10 * MILLISECOND);
    assert_eq!(bbr.inflight(bw, UNIT), 20 + 3 * bbr.burst().max(2));
}

#[test]
fn linux_s_bbr_update_ack_aggregation_expects_no_part_of_a_packet() {
    // Two packets a millisecond.
    let bw = bandwidth(2, MILLISECOND);
    let mut epoch = AckEpoch::new(0);
    assert_eq!(epoch.extra(&AckSample::of(0, 2, 10), bw, 100), 2);
    // One and a half are expected since, which is one.
    assert_eq!(epoch.extra(&AckSample::of(MILLISECOND * 3 / 4, 1, 10), bw, 100), 2);
    // Three were acknowledged, and three are expected: the epoch is over.
    assert_eq!(epoch.extra(&AckSample::of(MILLISECOND * 8 / 5, 1, 10), bw, 100), 1);
}

#[test]
fn linux_s_bbr_update_min_rtt_saves_the_larger_window_for_the_end_of_the_probe() {
    let stack = Preset::LinuxBbr.stack();
    let mut bbr = Bbr::new(&stack, 0, 1);
    let mut window = Window::new(60);
    bbr.saved_cwnd = 80;
    bbr.update_min_rtt(&mut window, &AckSample::of(MIN_RTT_WINDOW + 1, 1, 50));
    assert!(bbr.is_probing_rtt());
    assert_eq!(bbr.saved_cwnd, 80);
}

#[test]
fn linux_s_bbr_sndbuf_expand_lets_three_windows_be_out_while_a_hole_is_repaired() {
    let room = |preset: Preset| {
        let stack = preset.stack();
        let mut sender = Sender::new(0, 1, 1, &stack);
        sender.establish(0, Some(20 * MILLISECOND), 1 << 40, &stack);
        while sender.may_send_new(&stack) {
            sender.flight.push(Packet::default(), stack.mss);
        }
        sender.flight.out()
    };
    // And 64 KiB that Linux's `tcp_sendmsg_locked` fills once there was room for a byte of them.
    assert_eq!(room(Preset::LinuxBbr), 30 + 45);
    assert_eq!(room(Preset::LinuxCubic), 20 + 45);
}

#[test]
fn linux_s_bbr_set_state_takes_a_timeout_for_a_sample_of_the_policer() {
    let stack = Preset::LinuxBbr.stack();
    let mut bbr = Bbr::new(&stack, 0, 1);
    // A timeout is a round in which something was lost; a part of a millisecond does not count.
    let mut time_out = |at: u32| {
        let since = Nanos::from(at) * 100 * MILLISECOND + Nanos::from(at % 2) * 900_000;
        let (delivered, lost) = (100 + at * 20, 10 + at * 10);
        let totals = Totals { at: since, delivered, lost };
        let change = PhaseChange { phase: PhaseName::Loss, now: since, next: 0, totals };
        bbr.on_phase(&mut Window::new(10), &change);
        bbr.policer.bandwidth()
    };
    let found: Vec<_> = (0..8).map(|at| time_out(at).is_some()).collect();
    assert_eq!(found, [false, false, false, false, false, false, false, true]);
    assert_eq!(bbr.policer.bandwidth(), Some(bandwidth(20, 100 * MILLISECOND)));
}

/// A sender with packets out, and all of the first window's pace behind it.
fn sends(rtt: Nanos, cwnd: u32, stack: &Stack) -> (Nanos, Sender) {
    let mut sender = Sender::new(0, 1, 1, stack);
    sender.establish(0, Some(rtt), 1 << 40, stack);
    sender.window.cwnd = cwnd;
    sender.write(0, 1 << 30, stack, &mut ());
    // A part of a chunk waits no longer than a millisecond after the last one.
    let mut now = 0;
    while sender.flight.out() < cwnd {
        now = sender.pacer.next_at() + 2 * MILLISECOND;
        while sender.poll_transmit(now, stack, &mut ()).is_some() {}
    }
    (now.max(sender.pacer.next_at()), sender)
}

#[test]
fn linux_s_tcp_tso_autosize_makes_larger_chunks_of_bbr_s_where_the_path_is_short() {
    let stack = Preset::LinuxBbr.stack();
    let chunk = |rtt| {
        let (now, mut sender) = sends(rtt, 60, &stack);
        sender.window.cwnd = 120;
        std::iter::from_fn(|| sender.poll_transmit(now, &stack, &mut ())).count()
    };
    // What 10 packets in 2 ms are in 1/1024 s, with the gain of startup, and 64 KiB / 2^3.
    assert_eq!(chunk(2 * MILLISECOND), 19);
    assert_eq!(chunk(20 * MILLISECOND), 2);
}

#[test]
fn linux_s_tcp_xmit_retransmit_queue_paces_each_run_of_lost_packets() {
    let stack = Preset::LinuxBbr.stack();
    let (mut now, mut sender) = sends(20 * MILLISECOND, 40, &stack);
    for lost in [2, 3, 7, 9] {
        sender.flight.mark_lost(lost);
    }
    sender.enter_recovery(now, false, &stack, &mut ());
    sender.repair = Repair::Lost;
    let mut sent = vec![];
    for _ in 0..4 {
        let burst = std::iter::from_fn(|| sender.poll_transmit(now, &stack, &mut ()));
        sent.push(burst.map(|packet| packet.number).collect::<Vec<_>>());
        now = sender.pacer.next_at();
    }
    assert_eq!(sent, [vec![2, 3], vec![7], vec![9], vec![]]);
}

#[test]
fn linux_s_bbr_pacing_gain_is_that_of_the_mode_and_of_the_phase_of_the_cycle() {
    let mut bbr = Bbr::new(&Preset::LinuxBbr.stack(), 0, 1);
    let mut gain = |mode| {
        bbr.mode = mode;
        bbr.pacing_gain()
    };
    // 2885/1000 and its inverse; 5/4, 3/4 and six times 1; in units of 1/256.
    assert_eq!([gain(Mode::Startup), gain(Mode::Drain)], [739, 88]);
    let cycle: Vec<u64> = (0..8).map(|phase| gain(Mode::ProbeBw { phase, since: 0 })).collect();
    assert_eq!(cycle, [320, 192, 256, 256, 256, 256, 256, 256]);
    assert_eq!(gain(Mode::ProbeRtt(RttProbe::Emptying)), 256);
}

/// A flow of which so many packets are lost for each 256 delivered, every 10 ms, a round each.
fn policed(bbr: &mut Bbr, lost: u32, rounds: std::ops::Range<u32>) {
    bbr.round_start = true;
    for round in rounds {
        let at = Nanos::from(round) * 10 * MILLISECOND;
        let totals = Totals { at, delivered: 256 * round, lost: lost * round };
        bbr.watch_policer(&PolicerSample { totals, lost: lost > 0, app_limited: false });
    }
}

#[test]
fn linux_s_bbr_lt_bw_sampling_finds_a_policer_in_two_intervals_that_lose_50_of_256() {
    let found = |lost| {
        let mut bbr = Bbr::new(&Preset::LinuxBbr.stack(), 0, 1);
        policed(&mut bbr, lost, 0..16);
        bbr.policer.bandwidth()
    };
    assert_eq!(found(49), None);
    assert_eq!(found(50), Some(bandwidth(256, 10 * MILLISECOND)));
}

#[test]
fn linux_s_bbr_lt_bw_max_rtts_ends_the_use_of_a_policer_s_rate_after_48_rounds() {
    let mut bbr = Bbr::new(&Preset::LinuxBbr.stack(), 0, 1);
    policed(&mut bbr, 60, 0..16);
    assert!(bbr.policer.bandwidth().is_some());
    // Rounds of startup do not count.
    policed(&mut bbr, 0, 16..80);
    bbr.enter_probe_bw(0);
    policed(&mut bbr, 0, 80..127);
    assert!(bbr.policer.bandwidth().is_some());
    policed(&mut bbr, 0, 127..128);
    assert!(bbr.policer.bandwidth().is_none());
}
