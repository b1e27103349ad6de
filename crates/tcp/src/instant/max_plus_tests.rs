//! Step-by-step tests of a sender with instantaneous loss feedback.

use super::*;
use proptest::prelude::*;
use tcpcast_link::time::SECOND;

struct EventLog(Vec<TcpEvent>);

impl TcpProbe for EventLog {
    fn on_tcp_event(&mut self, _now: Nanos, event: TcpEvent) {
        if !matches!(event, TcpEvent::Window { .. } | TcpEvent::RttSample { .. }) {
            self.0.push(event);
        }
    }
}

const RULES: InstantLossRules = InstantLossRules {
    growth: WindowGrowthCondition::AfterHalving,
    whole_halves: true,
    halve_once: false,
    timeout: true,
    retransmit: true,
};

fn tcp(instant: InstantLossRules) -> TcpConfig {
    TcpConfig {
        initial_window: 1,
        initial_ssthresh: 8,
        receiver_window: 10,
        instant: Some(instant),
        ..TcpConfig::default()
    }
}

/// A sender driven in milliseconds; transmissions are given as first and last packet number.
struct Bench {
    sender: InstantFeedbackSender,
    tcp: TcpConfig,
    log: EventLog,
    now_ms: u64,
}

fn packet_range(sent: PacketsToSend) -> Option<(u32, u32)> {
    (sent.count > 0).then(|| (sent.from, sent.from + sent.count - 1))
}

impl Bench {
    fn started(size: u32, tcp: TcpConfig) -> Self {
        let mut bench = Self {
            sender: InstantFeedbackSender::default(),
            tcp,
            log: EventLog(Vec::new()),
            now_ms: 0,
        };
        let sent = bench.sender.start_file_on_new_connection(0, size, &bench.tcp, &mut bench.log);
        assert_eq!(packet_range(sent), Some((1, sent.count)));
        bench
    }

    fn ack(&mut self, ms: u64, number: u32) -> Option<(u32, u32)> {
        self.now_ms = ms;
        packet_range(self.sender.on_ack(ms * SECOND / 1000, number, &self.tcp, &mut self.log))
    }

    fn loss(&mut self, ms: u64, number: u32) -> Option<(u32, u32)> {
        packet_range(self.sender.on_loss(ms * SECOND / 1000, number, &self.tcp, &mut self.log))
    }

    fn deadline_ms(&self) -> u64 {
        self.sender.timer_deadline() / (SECOND / 1000)
    }

    /// Acknowledges all packets in flight, once per round.
    fn rounds(&mut self, rounds: u64) {
        for _ in 0..rounds {
            let ms = self.now_ms + 100;
            let (last, out) = (self.sender.next, self.sender.sent_at.len() as u32);
            for number in last - out..last {
                self.ack(ms, number);
            }
        }
    }
}

#[test]
fn slow_start_ends_at_threshold_and_growth_at_receiver_window() {
    let mut bench = Bench::started(100, tcp(RULES));
    assert_eq!(bench.ack(100, 1), Some((2, 3)));
    assert_eq!(bench.ack(200, 2), Some((4, 5)));
    assert_eq!(bench.ack(200, 3), Some((6, 7)));
    bench.rounds(1);
    assert_eq!(bench.sender.window_packets(&bench.tcp), 8);
    bench.rounds(1);
    // Eight increments of less than 1/8 each.
    assert_eq!(bench.sender.window_packets(&bench.tcp), 8);
    bench.rounds(4);
    assert_eq!(bench.sender.window_packets(&bench.tcp), 10);
}

#[test]
fn lost_packet_is_replaced_when_window_allows() {
    let mut bench = Bench::started(7, tcp(RULES));
    bench.ack(100, 1);
    bench.ack(200, 2);
    bench.ack(200, 3);
    // Packets 4 to 7 are outstanding with a window of four; the loss halves the window to two.
    assert_eq!(bench.loss(210, 6), None);
    assert_eq!(bench.ack(300, 4), None);
    assert_eq!(bench.ack(300, 5), Some((8, 8)), "replaces the lost packet");
    assert_eq!(bench.ack(300, 7), None);
    assert!(!bench.sender.is_finished());
    bench.ack(400, 8);
    assert!(bench.sender.is_finished());
    assert_eq!(bench.deadline_ms(), NEVER / (SECOND / 1000));
    assert_eq!(bench.log.0, [TcpEvent::FastRetransmit { window: 4 }]);
}

#[test]
fn halving_keeps_at_least_one_packet_and_a_threshold_of_two() {
    for (whole_halves, halves) in [(true, [3.0_f64, 1.0, 1.0]), (false, [3.5, 1.75, 1.0])] {
        let mut bench = Bench::started(100, tcp(InstantLossRules { whole_halves, ..RULES }));
        bench.rounds(3);
        bench.sender.cwnd = 7.0;
        for (number, half) in (8..).zip(halves) {
            bench.loss(310, number);
            assert_eq!((bench.sender.cwnd, bench.sender.ssthresh), (half, half.max(2.0)));
        }
    }
}

#[test]
fn losses_of_one_flight_halve_once_or_each_time() {
    for (halve_once, window) in [(false, 2.0), (true, 4.0)] {
        let mut bench = Bench::started(100, tcp(InstantLossRules { halve_once, ..RULES }));
        bench.rounds(3);
        bench.loss(310, 8);
        bench.loss(310, 9);
        assert_eq!(bench.sender.cwnd, window);
        assert_eq!(bench.log.0.len(), if halve_once { 1 } else { 2 });
    }
}

#[test]
fn acks_of_packets_sent_before_halving_grow_window_by_option() {
    for (growth, window) in
        [(WindowGrowthCondition::AfterHalving, 4.0), (WindowGrowthCondition::EveryAck, 4.25)]
    {
        let mut bench = Bench::started(100, tcp(InstantLossRules { growth, ..RULES }));
        bench.rounds(3);
        bench.loss(310, 8);
        bench.ack(400, 9);
        assert_eq!(bench.sender.cwnd, window);
    }
}

#[test]
fn timeout_reduces_window_to_one_and_retransmits_timed_packet() {
    let mut bench = Bench::started(100, tcp(RULES));
    assert_eq!(bench.deadline_ms(), 1000, "before the first sample");
    bench.rounds(3);
    assert_eq!(bench.deadline_ms(), 1300, "sent at 300 ms, plus the minimum of one second");
    let sent = bench.sender.on_timer(13 * SECOND / 10, &bench.tcp, &mut bench.log);
    assert_eq!((packet_range(sent), bench.sender.cwnd, bench.sender.ssthresh), (None, 1.0, 4.0));
    assert_eq!(sent.retransmit, 8);
    assert_eq!(bench.sender.timer_deadline(), NEVER, "packets in flight are not timed again");
    for number in 8..15 {
        assert_eq!(bench.ack(1400, number), None, "more than a window is still outstanding");
    }
    assert_eq!(bench.ack(1400, 15), Some((16, 16)));
    assert_eq!(bench.sender.timer_deadline(), 1400 * SECOND / 1000 + bench.sender.rto.rto());
    bench.tcp.instant = Some(InstantLossRules { retransmit: false, ..RULES });
    let again = bench.sender.on_timer(bench.sender.timer_deadline(), &bench.tcp, &mut bench.log);
    assert_eq!(again.retransmit, 0);
    assert!(matches!(
        bench.log.0[..],
        [
            TcpEvent::Timeout {
                number: 8,
                state: TimeoutState { window: 8, all_sent: false, .. },
                ..
            },
            TcpEvent::Timeout { number: 16, state: TimeoutState { window: 1, .. }, .. },
        ]
    ));
    let mut never = Bench::started(100, tcp(InstantLossRules { timeout: false, ..RULES }));
    never.rounds(3);
    assert_eq!(never.sender.timer_deadline(), NEVER);
}

#[test]
fn every_ack_is_an_rtt_sample() {
    let slow = TcpConfig { initial_rto: 3 * SECOND, min_rto: 0, ..tcp(RULES) };
    let mut bench = Bench::started(100, slow);
    assert_eq!(bench.deadline_ms(), 3000);
    // First sample 300 ms, then 400 ms twice in one window: RFC 6298 (2.2) and (2.3).
    bench.ack(300, 1);
    assert_eq!(bench.deadline_ms(), 300 + 300 + 4 * 150);
    bench.ack(700, 2);
    bench.ack(700, 3);
    // RTTVAR 150, 137.5, 125; SRTT 300, 312.5, 323.4375, truncated to whole nanoseconds.
    let rttvar = (137.5 * 3.0 + (400.0 - 312.5)) / 4.0;
    assert_eq!(bench.deadline_ms() - 700, (323.4375 + 4.0 * rttvar) as u64);
}

#[test]
fn idle_restart_resets_window_and_estimate_by_option() {
    let resumed = |idle_restart, since_ack: u64, since_sent: u64| {
        let initial_rto = 3 * SECOND;
        let mut bench = Bench::started(15, TcpConfig { idle_restart, initial_rto, ..tcp(RULES) });
        bench.rounds(4);
        bench.sender.ssthresh = 3.0;
        let idle = IdleTime { since_ack: since_ack * SECOND, since_sent: since_sent * SECOND };
        let Bench { sender, tcp, log, .. } = &mut bench;
        let first = sender.send_file_on_open_connection(100 * SECOND, 9, idle, tcp, log).count;
        let restarts = log.0.iter().filter(|event| **event == TcpEvent::IdleRestart).count();
        assert_eq!(restarts, usize::from(sender.cwnd < 8.0));
        assert!(!sender.is_finished());
        (first, sender.cwnd as u32, sender.ssthresh as u32, sender.rto.rto() / SECOND)
    };
    let kept = (8, 8, 3, 1);
    assert_eq!(resumed(IdleRestart::Never, 99, 99), kept);
    assert_eq!(resumed(IdleRestart::After(10 * SECOND), 10, 11), kept);
    assert_eq!(resumed(IdleRestart::After(10 * SECOND), 11, 11), (1, 1, 8, 3));
    assert_eq!(resumed(IdleRestart::AfterTimeout, 1, 1), kept);
    assert_eq!(resumed(IdleRestart::AfterTimeout, 1, 2), (1, 1, 3, 1));
}

proptest! {
    /// For any losses and any order of feedback, at most one window is outstanding, and a file is
    /// complete when all of its packets are acknowledged.
    #[test]
    fn files_complete_for_any_losses(
        size in 1_u32..60,
        fates in prop::collection::vec((any::<usize>(), 0_u8..4), 1..400),
    ) {
        let mut bench = Bench::started(size, tcp(RULES));
        let mut out: Vec<u32> = (1..bench.sender.next).collect();
        let mut delivered = 0;
        let fates = fates.into_iter().chain(std::iter::repeat((0, 0)));
        for (ms, (which, fate)) in (1..).zip(fates) {
            if out.is_empty() {
                break;
            }
            let number = out.remove(which % out.len());
            let sent = if fate == 3 { bench.loss(ms, number) } else { bench.ack(ms, number) };
            delivered += u32::from(fate != 3);
            if let Some((from, to)) = sent {
                out.extend(from..=to);
                prop_assert!(out.len() as u32 <= bench.sender.window_packets(&bench.tcp));
            }
            prop_assert_eq!(bench.sender.out as usize, out.len());
            prop_assert_eq!(bench.ack(ms, number), None, "the packet is no longer in flight");
        }
        prop_assert_eq!((delivered, bench.sender.is_finished()), (size, true));
    }
}
