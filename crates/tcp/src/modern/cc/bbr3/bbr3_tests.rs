//! One test per rule of draft-ietf-ccwg-bbr-06; test names begin with the section.

use super::loss::inflight_at_loss;
use super::*;
use crate::modern::cc::DeliveryTotals;
use crate::modern::cc::path_model::packets_carried_rounded_up;
use crate::modern::delivery_rate::{DeliveryRate, RateSample};
use crate::modern::presets::Preset;
use tcpcast_link::time::{MILLISECOND, SECOND};

/// A path with 100 packets per 50 ms.
const RTT: Nanos = 50 * MILLISECOND;
const BDP: u32 = 100;

/// A connection on this path with explicit acknowledgements.
struct Path {
    bbr: Bbr3,
    window: CongestionWindow,
    now: Nanos,
    delivered: u32,
    marked: u32,
    lost: u32,
    phase: PhaseName,
    rtt: Nanos,
}

/// Parameters of one acknowledgement.
#[derive(Clone, Copy)]
struct TestAck {
    delivered: u32,
    in_flight: u32,
    /// Delivery rate, in packets per round-trip time.
    rate: u32,
    /// Whether the acknowledgement ends a round.
    round: bool,
    /// Packets lost since the newest packet was sent, and packets in flight at that time.
    lost: u32,
    sent_in_flight: u32,
    /// Packets delivered with a mark.
    marked: u32,
    app_limited: bool,
    fills: bool,
}

const ROUND: TestAck = TestAck {
    delivered: BDP,
    in_flight: 150,
    rate: BDP,
    round: true,
    lost: 0,
    sent_in_flight: 150,
    marked: 0,
    app_limited: false,
    fills: false,
};

impl Path {
    fn new() -> Self {
        Self::with_seed(1)
    }

    fn with_seed(seed: u64) -> Self {
        let stack = Preset::Bbr3.stack();
        let bbr = Bbr3::new(&stack.control_rules(), 0, seed);
        let window = CongestionWindow::new(stack.initial_window);
        let phase = PhaseName::Open;
        Self { bbr, window, now: 0, delivered: 0, marked: 0, lost: 0, phase, rtt: RTT }
    }

    fn ack(&mut self, ack: TestAck) {
        let prior = if ack.round { self.delivered } else { self.bbr.round_end.wrapping_sub(1) };
        self.now += if ack.round { RTT } else { MILLISECOND };
        self.delivered += ack.delivered;
        self.marked += ack.marked;
        let rate = DeliveryRate { delivered: ack.rate, interval: RTT };
        let sample = AckSample {
            now: self.now,
            phase: self.phase,
            delivered: ack.delivered,
            lost: ack.lost,
            total_lost: self.lost,
            pace_at: self.now,
            acked: ack.delivered,
            prior_in_flight: ack.in_flight + ack.delivered,
            in_flight: ack.in_flight,
            rtt: Some(self.rtt),
            maybe_delayed: false,
            min_rtt: Some(RTT),
            srtt: Some(self.rtt),
            rate: RateSample {
                rate: Some(rate),
                prior_delivered: Some(prior),
                app_limited: ack.app_limited,
                retransmitted: false,
                prior_lost: self.lost.wrapping_sub(ack.lost),
                in_flight: ack.sent_in_flight,
            },
            total_delivered: self.delivered,
            total_delivered_ce: self.marked,
            una: u64::from(self.delivered),
            next: u64::from(self.delivered + ack.in_flight),
            cwnd_limited: ack.fills,
            fills_window: ack.fills,
            mss: 1448,
            out: ack.in_flight,
            paced: true,
        };
        self.bbr.on_ack(&mut self.window, &sample);
    }

    /// Reports a lost packet of `in_flight`, as the `since`th loss since it was sent.
    fn lose(&mut self, number: u32, in_flight: u32, since: u32) {
        self.lost += 1;
        let lost = LostPacket {
            now: self.now,
            number,
            in_flight,
            lost_since: since,
            app_limited: false,
            total_delivered: self.delivered,
        };
        self.bbr.on_lost_packet(&mut self.window, &lost);
    }

    /// Advances until startup finds that the rate no longer grows.
    fn in_drain() -> Self {
        let path = Self::new().after_startup();
        assert!(matches!(path.bbr.mode(), Bbr3Mode::Drain { .. }), "{:?}", path.bbr.mode());
        path
    }

    fn after_startup(mut self) -> Self {
        for rate in [25, 50, BDP, BDP, BDP, BDP] {
            self.ack(TestAck { rate, delivered: rate, ..ROUND });
        }
        self
    }

    fn in_cruise() -> Self {
        let mut path = Self::in_drain();
        path.ack(TestAck { in_flight: BDP, ..ROUND });
        path.ack(TestAck { in_flight: BDP, ..ROUND });
        assert_eq!(path.bbr.mode(), Bbr3Mode::Cruise);
        path
    }

    fn in_refill() -> Self {
        let mut path = Self::in_cruise();
        path.until(Bbr3Mode::Refill, 70);
        path
    }

    fn in_up() -> Self {
        let mut path = Self::in_refill();
        path.ack(ROUND);
        assert_eq!(path.bbr.mode(), Bbr3Mode::Up);
        path
    }

    /// A connection that uses ECN, after a round with this round-trip time.
    fn with_marks(rtt: Nanos) -> Self {
        let mut path = Self::new();
        path.bbr.marks = Marks::new(true);
        path.bbr.min_rtt = Some(rtt);
        path.ack(TestAck { rate: 10, delivered: 10, ..ROUND });
        path.bbr.min_rtt = Some(RTT);
        path
    }

    /// Acknowledges rounds until a mode begins; returns their number.
    fn until(&mut self, mode: Bbr3Mode, max: u32) -> u32 {
        for rounds in 0..max {
            if self.bbr.mode() == mode {
                return rounds;
            }
            self.ack(TestAck { in_flight: BDP, ..ROUND });
        }
        panic!("{:?} is not {mode:?}", self.bbr.mode());
    }

    fn bandwidth(&self) -> u32 {
        packets_carried_rounded_up(self.bbr.bw, RTT, GAIN_UNIT)
    }
}

#[test]
fn section_5_3_1_1_startup_gain_is_four_ln_two() {
    let path = Path::new();
    let expected = 10.0 * 1448.0 * 1000.0 * 4.0 * 2_f64.ln() * 0.99;
    let rate = path.bbr.pacing_rate() as f64;
    assert!((rate / expected - 1.0).abs() < 2e-3, "{rate}");
}

#[test]
fn section_5_3_1_2_pipe_is_full_after_three_rounds_without_growth() {
    let mut path = Path::new();
    for rate in [40, 50, 63, 70, 75] {
        path.ack(TestAck { rate, ..ROUND });
        assert_eq!(path.bbr.mode(), Bbr3Mode::Startup);
    }
    path.ack(TestAck { rate: 76, app_limited: true, ..ROUND });
    assert_eq!(path.bbr.mode(), Bbr3Mode::Startup, "limited by the application");
    path.ack(TestAck { rate: 76, ..ROUND });
    assert!(matches!(path.bbr.mode(), Bbr3Mode::Drain { .. }));
}

#[test]
fn section_5_3_1_3_six_ranges_and_two_percent_lost_end_startup() {
    for (ranges, lost, ends) in [(6, 4, true), (5, 4, false), (6, 3, false)] {
        let mut path = Path::new();
        path.ack(ROUND);
        for range in 0..ranges {
            path.lose(10 + 2 * range, 150, range + 1);
        }
        path.phase = PhaseName::Recovery;
        path.ack(TestAck { rate: 200, lost, ..ROUND });
        assert_eq!(path.bbr.mode() != Bbr3Mode::Startup, ends, "{ranges} ranges, {lost} lost");
        if ends {
            assert_eq!(path.bbr.inflight_longterm, Some(200), "delivered in a round");
        }
    }
}

#[test]
fn section_5_3_2_drain_paces_at_half_rate_until_bdp_is_in_flight() {
    let mut path = Path::in_drain();
    let rate = path.bbr.pace.pacing_rate_for_bandwidth(path.bbr.bw, GAIN_UNIT / 2);
    assert_eq!(path.bbr.pacing_rate(), rate);
    path.ack(TestAck { in_flight: BDP + 1, round: false, delivered: 1, ..ROUND });
    assert!(matches!(path.bbr.mode(), Bbr3Mode::Drain { .. }));
    path.ack(TestAck { in_flight: BDP, round: false, delivered: 1, ..ROUND });
    assert!(path.bbr.mode().is_cycle_phase(), "{:?}", path.bbr.mode());
}

#[test]
fn section_5_3_2_drain_ends_after_three_rounds() {
    let mut path = Path::in_drain();
    for _ in 0..3 {
        path.ack(ROUND);
        assert!(matches!(path.bbr.mode(), Bbr3Mode::Drain { .. }));
    }
    path.ack(ROUND);
    assert_eq!(path.bbr.mode(), Bbr3Mode::Down);
}

#[test]
fn section_5_3_3_1_down_lasts_until_headroom_is_reached() {
    let mut path = Path::in_drain();
    path.bbr.inflight_longterm = Some(BDP);
    path.ack(TestAck { in_flight: BDP, sent_in_flight: BDP, ..ROUND });
    assert_eq!(path.bbr.mode(), Bbr3Mode::Down);
    path.ack(TestAck { in_flight: 86, sent_in_flight: BDP, ..ROUND });
    assert_eq!(path.bbr.mode(), Bbr3Mode::Down, "at most 85 of 100 may be in flight");
    path.ack(TestAck { in_flight: 85, sent_in_flight: BDP, ..ROUND });
    assert_eq!(path.bbr.mode(), Bbr3Mode::Cruise);
    assert_eq!(path.window.cwnd, 85);
}

#[test]
fn section_5_3_3_3_refill_lasts_one_round_without_short_term_bounds() {
    let mut path = Path::in_cruise();
    path.bbr.short_term = ShortTermBounds { bandwidth: Some(path.bbr.bw / 2), inflight: Some(50) };
    path.until(Bbr3Mode::Refill, 70);
    assert_eq!(path.bbr.short_term, ShortTermBounds::default());
    path.ack(TestAck { round: false, delivered: 1, ..ROUND });
    assert_eq!(path.bbr.mode(), Bbr3Mode::Refill);
    path.ack(ROUND);
    assert_eq!(path.bbr.mode(), Bbr3Mode::Up);
}

#[test]
fn section_5_3_3_5_up_raises_pacing_and_window_gain() {
    let path = Path::in_up();
    assert_eq!(
        path.bbr.pacing_rate(),
        path.bbr.pace.pacing_rate_for_bandwidth(path.bbr.bw, GAIN_UNIT * 5 / 4)
    );
    assert!(path.window.cwnd > 2 * BDP, "{}", path.window.cwnd);
}

#[test]
fn section_5_3_3_5_long_term_bound_grows_by_one_two_four() {
    let mut path = Path::in_up();
    let max = path.window.cwnd;
    path.bbr.inflight_longterm = Some(max);
    let full = |path: &Path| TestAck {
        delivered: path.window.cwnd,
        fills: true,
        sent_in_flight: BDP,
        ..ROUND
    };
    let mut grown = vec![];
    for _ in 0..4 {
        let before = path.bbr.inflight_longterm.unwrap();
        // The window allows the bound, as in probing.
        path.window.cwnd = before;
        path.ack(full(&path));
        let bound = path.bbr.inflight_longterm.unwrap();
        grown.push(bound - before);
        // While the bound limits the rate, the rate need not grow.
        path.window.cwnd = bound;
        path.ack(TestAck { delivered: 0, fills: true, round: false, sent_in_flight: BDP, ..ROUND });
    }
    assert_eq!(grown, [1, 2, 4, 8]);
}

#[test]
fn section_5_3_3_6_up_ends_at_level_that_was_too_high() {
    let mut path = Path::in_up();
    (path.bbr.went_too_high, path.bbr.inflight_longterm) = (true, Some(140));
    path.ack(TestAck { in_flight: 139, sent_in_flight: 100, ..ROUND });
    assert_eq!(path.bbr.mode(), Bbr3Mode::Up);
    path.ack(TestAck { in_flight: 140, sent_in_flight: 100, ..ROUND });
    assert_eq!(path.bbr.mode(), Bbr3Mode::Down);
    assert!(path.bbr.precautionary);
    // A round with little loss: the level was safe, and the next probe begins immediately.
    path.ack(TestAck { in_flight: 140, sent_in_flight: 140, ..ROUND });
    assert_eq!(path.bbr.mode(), Bbr3Mode::Refill);
    assert!(!path.bbr.precautionary);
}

#[test]
fn section_5_3_3_7_up_ends_when_rate_stops_growing() {
    let mut path = Path::in_up();
    for _ in 0..2 {
        path.ack(ROUND);
        assert_eq!(path.bbr.mode(), Bbr3Mode::Up);
    }
    path.ack(ROUND);
    assert_eq!(path.bbr.mode(), Bbr3Mode::Down);
    assert_eq!(
        path.bbr.pacing_rate(),
        path.bbr.pace.pacing_rate_for_bandwidth(path.bbr.bw, GAIN_UNIT * 90 / 100)
    );
}

#[test]
fn section_5_3_3_7_up_continues_while_bound_limits_rate() {
    let mut path = Path::in_up();
    path.bbr.inflight_longterm = Some(path.window.cwnd);
    for _ in 0..6 {
        path.window.cwnd = path.bbr.inflight_longterm.unwrap();
        path.ack(TestAck { fills: true, sent_in_flight: BDP, delivered: 1, ..ROUND });
        assert_eq!(path.bbr.mode(), Bbr3Mode::Up);
    }
}

#[test]
fn section_5_3_3_8_wait_is_random_between_2_and_3_s() {
    let waits: Vec<_> = (0..100)
        .map(|seed| {
            let mut path = Path::with_seed(seed);
            path.bbr.start_down(0);
            path.bbr.cycle
        })
        .map(|cycle| (cycle.wait, cycle.rounds))
        .collect();
    assert!(
        waits.iter().all(|&(wait, rounds)| (2 * SECOND..3 * SECOND).contains(&wait) && rounds <= 1)
    );
    let (min, max) = (waits.iter().min().unwrap().0, waits.iter().max().unwrap().0);
    assert!(min < 2 * SECOND + SECOND / 10 && max > 3 * SECOND - SECOND / 10);
}

#[test]
fn section_5_3_3_8_small_bdp_is_probed_as_often_as_reno_recovers() {
    let mut path = Path::in_cruise();
    let before = path.bbr.cycle.rounds;
    let rounds = path.until(Bbr3Mode::Refill, 70);
    // The wait of 2 to 3 s ends first: 40 to 60 rounds of 50 ms.
    assert!((38..=60).contains(&rounds), "{rounds}");
    let mut path = Path::in_cruise();
    // At a bandwidth of 20 packets per round-trip time, the wait of 20 rounds ends first.
    path.bbr.short_term.bandwidth = Some(bandwidth_of(20, RTT));
    path.bbr.bw = bandwidth_of(20, RTT);
    let rounds = path.until(Bbr3Mode::Refill, 70);
    assert!((19..=21).contains(&(rounds + before)), "{rounds} after {before}");
}

#[test]
fn section_5_3_4_probe_holds_half_a_bdp_for_200_ms() {
    let mut path = Path::in_cruise();
    let began = path.now;
    path.rtt = RTT + MILLISECOND;
    while !path.bbr.is_probing_rtt() {
        path.ack(TestAck { in_flight: BDP, ..ROUND });
        assert!(path.now < began + 6 * SECOND);
    }
    assert!(path.now > 5 * SECOND, "{}", path.now);
    assert_eq!(path.window.cwnd, path.bbr.probe_rtt_cwnd());
    assert!((BDP / 2..=BDP / 2 + 2).contains(&path.window.cwnd), "{}", path.window.cwnd);
    let began = path.now;
    while path.bbr.is_probing_rtt() {
        path.ack(TestAck { in_flight: BDP / 2, delivered: BDP / 2, ..ROUND });
    }
    assert!((200 * MILLISECOND..=300 * MILLISECOND).contains(&(path.now - began)));
    assert_eq!(path.bbr.mode(), Bbr3Mode::Cruise);
    assert!(path.window.cwnd >= 2 * BDP, "the window is restored: {}", path.window.cwnd);
}

#[test]
fn section_5_4_1_paces_at_bandwidth_after_idle_time() {
    let mut path = Path::in_up();
    let start = TransmitStart { idle: SECOND, app_limited: true };
    path.bbr.on_transmit_start(&mut path.window, path.now, start);
    assert_eq!(
        path.bbr.pacing_rate(),
        path.bbr.pace.pacing_rate_for_bandwidth(path.bbr.bw, GAIN_UNIT)
    );
}

#[test]
fn section_5_5_6_bandwidth_is_maximum_of_two_cycles() {
    let mut path = Path::in_up();
    path.ack(TestAck { rate: 120, ..ROUND });
    assert_eq!(path.bandwidth(), 120);
    path.until(Bbr3Mode::Down, 5);
    // A new minimum round-trip time, so that no probe for it is due.
    path.rtt -= 1000;
    path.until(Bbr3Mode::Up, 80);
    assert_eq!(path.bandwidth(), 120, "from the previous cycle");
    path.until(Bbr3Mode::Down, 5);
    path.ack(ROUND);
    assert_eq!(path.bandwidth(), BDP);
}

#[test]
fn section_5_5_9_window_has_room_for_aggregated_acks() {
    let mut path = Path::in_cruise();
    let before = path.window.cwnd;
    for _ in 0..3 {
        path.ack(TestAck { round: false, delivered: 20, in_flight: BDP, ..ROUND });
    }
    assert!(path.window.cwnd > before + 30, "{} and {before}", path.window.cwnd);
}

#[test]
fn section_5_5_10_2_two_percent_loss_in_probe_sets_long_term_bound() {
    let mut path = Path::in_up();
    path.lose(1000, 150, 3);
    assert_eq!((path.bbr.mode(), path.bbr.inflight_longterm), (Bbr3Mode::Up, None), "3 of 150");
    path.lose(1001, 150, 4);
    assert_eq!((path.bbr.mode(), path.bbr.inflight_longterm), (Bbr3Mode::Down, Some(149)));
    path.lose(1002, 90, 9);
    assert_eq!(path.bbr.inflight_longterm, Some(149), "once per probe");
}

#[test]
fn section_5_5_10_2_bound_is_reduced_by_at_most_cubic_factor() {
    let mut path = Path::in_up();
    path.lose(1000, 30, 4);
    assert_eq!(path.bbr.inflight_longterm, Some(BDP * 7 / 10));
}

#[test]
fn section_5_5_10_2_level_is_where_losses_reached_two_percent() {
    assert_eq!(inflight_at_loss(150, 4), 149);
    assert_eq!(inflight_at_loss(101, 3), 100);
    assert_eq!(inflight_at_loss(1, 1), 0);
}

#[test]
fn section_5_5_10_3_losses_in_cruise_set_short_term_bounds() {
    let mut path = Path::in_cruise();
    let slower = TestAck { rate: 90, delivered: 90, in_flight: BDP, ..ROUND };
    path.lose(1000, 150, 1);
    path.ack(TestAck { round: false, delivered: 1, ..slower });
    assert_eq!(path.bbr.short_term, ShortTermBounds::default(), "set at the end of the round");
    let cwnd = path.window.cwnd;
    path.ack(slower);
    let carried = |path: &Path| {
        packets_carried_rounded_up(path.bbr.short_term.bandwidth.unwrap(), RTT, GAIN_UNIT)
    };
    assert_eq!(carried(&path), BDP, "delivered in a round");
    assert_eq!(path.bbr.short_term.inflight, Some((cwnd * 7 / 10).max(BDP)));
    path.lose(1001, 150, 1);
    path.ack(slower);
    assert_eq!(carried(&path), 90);
    path.lose(1002, 150, 1);
    path.ack(TestAck { rate: 20, ..slower });
    path.lose(1003, 150, 1);
    path.ack(TestAck { rate: 20, ..slower });
    assert_eq!(carried(&path), 63, "at least 0.7 of the previous bound");
    assert_eq!(path.bbr.inflight_longterm, None);
}

#[test]
fn section_5_5_11_2_undo_of_spurious_recovery_resumes_probe() {
    let mut path = Path::in_up();
    // The fourth loss ends the probe. Later losses must not replace the saved state.
    for since in 1..=9 {
        path.lose(1000 + since, 150, since);
    }
    path.bbr.ssthresh(&path.window);
    assert_eq!((path.bbr.mode(), path.bbr.inflight_longterm), (Bbr3Mode::Down, Some(149)));
    let cwnd = path.bbr.undo_cwnd(&CongestionWindow { cwnd: 20, ..path.window });
    assert_eq!((path.bbr.mode(), path.bbr.inflight_longterm), (Bbr3Mode::Refill, None));
    assert_eq!(cwnd, path.window.cwnd);
}

#[test]
fn section_5_6_4_4_recovery_saves_and_restores_window() {
    let mut path = Path::in_cruise();
    let cwnd = path.window.cwnd;
    path.bbr.ssthresh(&path.window);
    let totals = DeliveryTotals { at: path.now, delivered: path.delivered, lost: path.lost };
    let change = RecoveryPhaseChange { phase: PhaseName::Loss, now: path.now, next: 0, totals };
    path.bbr.on_recovery_phase_change(&mut path.window, &change);
    path.window.cwnd = 1;
    path.phase = PhaseName::Loss;
    path.ack(TestAck { delivered: 1, in_flight: 1, ..ROUND });
    assert_eq!(path.window.cwnd, 4, "MinPipeCwnd");
    path.phase = PhaseName::Open;
    path.ack(TestAck { delivered: 1, in_flight: 1, ..ROUND });
    assert!(path.window.cwnd + 2 >= cwnd, "{} of {cwnd}", path.window.cwnd);
}

#[test]
fn section_5_6_4_7_bounds_depend_on_phase() {
    let mut path = Path::in_cruise();
    path.bbr.inflight_longterm = Some(100);
    path.ack(TestAck { sent_in_flight: 100, in_flight: 80, ..ROUND });
    assert_eq!((path.bbr.mode(), path.window.cwnd), (Bbr3Mode::Cruise, 85));
    path.bbr.short_term.inflight = Some(60);
    path.ack(TestAck { sent_in_flight: 100, in_flight: 80, ..ROUND });
    assert_eq!(path.window.cwnd, 60);
    path.until(Bbr3Mode::Refill, 80);
    path.ack(TestAck { sent_in_flight: 100, in_flight: 80, ..ROUND });
    assert_eq!((path.bbr.mode(), path.window.cwnd), (Bbr3Mode::Up, 150), "this level was safe");
}

#[test]
fn two_rounds_with_half_of_the_packets_marked_end_startup_of_short_paths() {
    for (rtt, ends) in [(4 * MILLISECOND, true), (6 * MILLISECOND, false)] {
        let mut path = Path::with_marks(rtt);
        path.ack(TestAck { rate: 25, delivered: 25, marked: 13, ..ROUND });
        assert_eq!(path.bbr.mode(), Bbr3Mode::Startup);
        path.ack(TestAck { rate: 50, delivered: 50, marked: 25, ..ROUND });
        assert_eq!(path.bbr.mode() != Bbr3Mode::Startup, ends);
        assert_eq!(path.bbr.inflight_longterm.is_some(), ends);
    }
}

#[test]
fn marks_reduce_the_packets_in_flight_but_not_the_bandwidth() {
    let mut path = Path::with_marks(4 * MILLISECOND).after_startup();
    path.until(Bbr3Mode::Cruise, 3);
    let cwnd = path.window.cwnd;
    path.ack(TestAck { in_flight: BDP, marked: 1, ..ROUND });
    let bound = path.bbr.short_term.inflight.unwrap();
    assert!((cwnd * 2 / 3..cwnd * 9 / 10).contains(&bound), "{bound} of {cwnd}");
    assert_eq!(path.bbr.short_term.bandwidth, None);
    path.ack(TestAck { in_flight: BDP, ..ROUND });
    assert_eq!(path.bbr.short_term.inflight, Some(bound), "a round without marks");
}

#[test]
fn probe_ends_if_more_than_half_of_the_packets_are_marked() {
    let mut path = Path::with_marks(4 * MILLISECOND).after_startup();
    path.until(Bbr3Mode::Up, 80);
    path.ack(TestAck { marked: BDP / 2, ..ROUND });
    assert_eq!((path.bbr.mode(), path.bbr.went_too_high), (Bbr3Mode::Up, false));
    path.ack(TestAck { marked: BDP / 2 + 1, ..ROUND });
    assert_eq!((path.bbr.mode(), path.bbr.went_too_high), (Bbr3Mode::Down, true));
    assert_eq!(path.bbr.inflight_longterm, Some(150));
}
