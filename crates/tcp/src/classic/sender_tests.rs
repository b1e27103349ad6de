//! Packet traces of the sender. A line holds an event and the expected reaction:
//!
//! ```text
//!     time  event    ->  packets sent      |  expected state
//!     102   ack 1    ->  !1                |  cwnd 6 ssthresh 3 timer 1102 fast-retransmit
//! ```
//!
//! Times are in milliseconds; `!1` is a retransmission of packet 1. Events are `start`, `ack` with
//! the next packet expected, and `timer`. The state after the bar contains the window, the
//! threshold, the expiry of the timer (`off` if it is not running), a round-trip sample (`rtt`) and
//! the published loss events. Omitted values are not checked, except for loss events: all of them
//! must be listed.

use super::*;
use crate::cc::Reno;
use crate::packet_kind::PacketKind;
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};
use tcpcast_link::time::{MILLISECOND, SECOND};

/// Records the events of a sender.
#[derive(Default)]
struct Record(Vec<TcpEvent>);

impl TcpProbe for Record {
    fn on_tcp_event(&mut self, _: Nanos, event: TcpEvent) {
        self.0.push(event);
    }
}

impl Record {
    fn rtt(&self) -> Option<Nanos> {
        self.0.iter().find_map(|event| match event {
            TcpEvent::RttSample { rtt } => Some(*rtt),
            _ => None,
        })
    }

    fn loss_events(&self) -> Vec<String> {
        let name = |event: &TcpEvent| match event {
            TcpEvent::FastRetransmit { .. } => Some("fast-retransmit".to_owned()),
            TcpEvent::PartialAck => Some("partial".to_owned()),
            TcpEvent::Recovered { burst } => Some(format!("recovered({burst})")),
            TcpEvent::Timeout { state, .. } if state.repeated => Some("timeout-again".to_owned()),
            TcpEvent::Timeout { .. } => Some("timeout".to_owned()),
            TcpEvent::IdleRestart => Some("idle-restart".to_owned()),
            TcpEvent::RttSample { .. }
            | TcpEvent::TailLossProbe { .. }
            | TcpEvent::Undone { .. }
            | TcpEvent::Opened { .. }
            | TcpEvent::Acked { .. }
            | TcpEvent::Window { .. } => None,
        };
        self.0.iter().filter_map(name).collect()
    }
}

fn newreno() -> TcpConfig {
    TcpConfig { receiver_window: 100, initial_ssthresh: 100, ..TcpConfig::default() }
}

fn reno() -> TcpConfig {
    TcpConfig { recovery: LossRecovery::Reno, ..newreno() }
}

fn patient() -> TcpConfig {
    TcpConfig { recovery: LossRecovery::NewReno { restart_timer: false }, ..newreno() }
}

fn limited() -> TcpConfig {
    TcpConfig { limited_transmit: LimitedTransmit::EachDuplicate, ..newreno() }
}

const RULES: [LimitedTransmit; 3] =
    [LimitedTransmit::Off, LimitedTransmit::EachDuplicate, LimitedTransmit::OnSecond];

/// Formats the packets of a transmission as in a trace.
fn format_packets(sent: PacketsToSend) -> String {
    let packet = |(number, kind)| match kind {
        PacketKind::Retransmission => format!("!{number}"),
        _ => format!("{number}"),
    };
    sent.packets().map(packet).collect::<Vec<_>>().join(" ")
}

/// Runs a trace with a sender of `size` packets and checks its reactions.
fn trace(tcp: &TcpConfig, size: u32, script: &str) -> Sender<Reno> {
    let mut sender = Sender::<Reno>::default();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (cause, effect) = line.split_once("->").expect(line);
        let (packets, state) = effect.split_once('|').unwrap_or((effect, ""));
        let mut tokens = cause.split_whitespace();
        let now = tokens.next().expect(line).parse::<u64>().expect(line) * MILLISECOND;
        let mut record = Record::default();
        let sent = match (tokens.next(), tokens.next()) {
            (Some("start"), None) => {
                sender.start_file_on_new_connection(now, size, tcp, &mut record)
            }
            (Some("ack"), Some(ack)) => {
                sender.on_ack(now, ack.parse().expect(line), tcp, &mut record)
            }
            (Some("timer"), None) => {
                assert_eq!(sender.timer_deadline(), now, "the timer is not due: {line}");
                sender.on_timer(now, tcp, &mut record)
            }
            _ => panic!("no such event: {line}"),
        };
        let expected = packets.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(format_packets(sent), expected, "packets sent: {line}");
        check(&sender, &record, state, line);
    }
    sender
}

fn check(sender: &Sender<Reno>, record: &Record, state: &str, line: &str) {
    let mut expected_events = Vec::new();
    let mut tokens = state.split_whitespace();
    while let Some(key) = tokens.next() {
        let mut value = || tokens.next().expect(line);
        match key {
            "cwnd" => assert_eq!(sender.cc.cwnd().to_string(), value(), "cwnd: {line}"),
            "ssthresh" => assert_eq!(sender.cc.ssthresh().to_string(), value(), "ssthresh: {line}"),
            "timer" => assert_eq!(milliseconds(sender.timer_deadline()), value(), "timer: {line}"),
            "rtt" => {
                assert_eq!(record.rtt().map_or("none".into(), milliseconds), value(), "{line}")
            }
            event => expected_events.push(event.to_owned()),
        }
    }
    assert_eq!(record.loss_events(), expected_events, "loss events: {line}");
}

fn milliseconds(time: Nanos) -> String {
    if time == NEVER { "off".to_owned() } else { (time / MILLISECOND).to_string() }
}

#[test]
fn slow_start_doubles_up_to_the_receiver_window() {
    let tcp = TcpConfig { receiver_window: 6, ..newreno() };
    let sender = trace(
        &tcp,
        17,
        "
        0    start   -> 1 2    | cwnd 2 ssthresh 100 timer 1000
        100  ack 2   -> 3 4    | cwnd 3 rtt 100 timer 1100
        101  ack 3   -> 5 6    | cwnd 4 rtt none timer 1101
        200  ack 4   -> 7 8    | cwnd 5 rtt 100
        201  ack 5   -> 9 10   | cwnd 6
        202  ack 6   -> 11     | cwnd 7
        203  ack 7   -> 12     | cwnd 8
        300  ack 8   -> 13     | rtt 100
        301  ack 9   -> 14
        302  ack 10  -> 15
        303  ack 11  -> 16
        304  ack 12  -> 17
        305  ack 13  ->
        306  ack 18  ->        | timer off
        ",
    );
    assert!(sender.is_finished());
}

#[test]
fn short_file_is_sent_in_one_burst() {
    let tcp = TcpConfig { initial_window: 10, ..newreno() };
    trace(
        &tcp,
        3,
        "
        0    start  -> 1 2 3  | cwnd 10 timer 1000
        100  ack 2  ->        | cwnd 11 timer 1100
        101  ack 4  ->        | timer off
        ",
    );
}

#[test]
fn congestion_avoidance_counts_a_window_of_acks() {
    // Slow start while cwnd < ssthresh, then one packet more per cwnd acknowledgements.
    let tcp = TcpConfig { initial_ssthresh: 3, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0    start   -> 1 2    | cwnd 2
        100  ack 2   -> 3 4    | cwnd 3
        101  ack 3   -> 5      | cwnd 3
        200  ack 4   -> 6      | cwnd 3
        201  ack 5   -> 7 8    | cwnd 4
        202  ack 6   -> 9      | cwnd 4
        300  ack 7   -> 10     | cwnd 4
        301  ack 8   -> 11     | cwnd 4
        302  ack 9   -> 12 13  | cwnd 5
        ",
    );
}

#[test]
fn slow_start_continues_at_threshold_by_option() {
    let tcp = TcpConfig { initial_ssthresh: 3, slow_start_at_ssthresh: true, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0    start   -> 1 2    | cwnd 2
        100  ack 2   -> 3 4    | cwnd 3
        101  ack 3   -> 5 6    | cwnd 4
        200  ack 4   -> 7      | cwnd 4
        ",
    );
    // The acknowledgement that ends a recovery acknowledges new data.
    let tcp = TcpConfig { initial_window: 6, slow_start_at_ssthresh: true, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0    start   -> 1 2 3 4 5 6
        100  ack 1   ->
        101  ack 1   ->
        102  ack 1   -> !1     | cwnd 6 ssthresh 3 fast-retransmit
        103  ack 1   -> 7      | cwnd 7
        104  ack 1   -> 8      | cwnd 8
        202  ack 7   -> 9 10   | cwnd 4 ssthresh 3 recovered(2)
        ",
    );
}

#[test]
fn ack_of_two_packets_counts_once() {
    let tcp = TcpConfig { initial_window: 4, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0    start  -> 1 2 3 4
        100  ack 3  -> 5 6 7   | cwnd 5
        101  ack 5  -> 8 9 10  | cwnd 6
        ",
    );
}

#[test]
fn newreno_repairs_two_losses_as_in_engset_figure_1() {
    // Packets 1 and 4 of a window of 6 are lost (Engset report, Figure 1).
    let tcp = TcpConfig { initial_window: 6, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0    start   -> 1 2 3 4 5 6
        100  ack 1   ->
        101  ack 1   ->
        102  ack 1   -> !1     | cwnd 6 ssthresh 3 timer 1102 fast-retransmit
        103  ack 1   -> 7      | cwnd 7 timer 1102
        202  ack 4   -> !4 8   | cwnd 5 timer 1202 partial
        203  ack 4   -> 9      | cwnd 6
        302  ack 8   -> 10     | cwnd 3 ssthresh 3 timer 1302 rtt none recovered(1)
        303  ack 9   -> 11     | cwnd 3
        304  ack 10  -> 12     | cwnd 3
        402  ack 11  -> 13 14  | cwnd 4 rtt 100
        ",
    );
}

#[test]
fn reno_repairs_one_loss() {
    let tcp = TcpConfig { initial_window: 8, ..reno() };
    trace(
        &tcp,
        100,
        "
        0    start   -> 1 2 3 4 5 6 7 8
        100  ack 1   ->        | cwnd 8
        101  ack 1   ->        | cwnd 8
        102  ack 1   -> !1     | cwnd 7 ssthresh 4 timer 1102 fast-retransmit
        103  ack 1   ->        | cwnd 8
        104  ack 1   -> 9      | cwnd 9
        105  ack 1   -> 10     | cwnd 10
        106  ack 1   -> 11     | cwnd 11
        202  ack 9   -> 12     | cwnd 4 timer 1202 recovered(1)
        204  ack 10  -> 13     | cwnd 4
        ",
    );
}

#[test]
fn reno_times_out_after_two_losses() {
    // Packets 1 and 4 of 8 are lost. The first new acknowledgement ends the recovery. Only two
    // duplicates for packet 4 follow, caused by the new data. The window of 4 is halved, not the 7
    // outstanding packets.
    let tcp = TcpConfig { initial_window: 8, ..reno() };
    trace(
        &tcp,
        100,
        "
        0     start   -> 1 2 3 4 5 6 7 8
        100   ack 1   ->
        101   ack 1   ->
        102   ack 1   -> !1      | cwnd 7 ssthresh 4 fast-retransmit
        103   ack 1   ->         | cwnd 8
        104   ack 1   -> 9       | cwnd 9
        105   ack 1   -> 10      | cwnd 10
        202   ack 4   ->         | cwnd 4 timer 1202 recovered(0)
        204   ack 4   ->
        205   ack 4   ->
        1202  timer   -> !4      | cwnd 1 ssthresh 2 timer 3202 timeout
        1302  ack 11  -> 11 12   | cwnd 2
        ",
    );
}

#[test]
fn reno_halves_twice_for_two_losses() {
    // Packets 1 and 8 of 12 are lost: the first recovery sends enough new packets.
    let tcp = TcpConfig { initial_window: 12, ..reno() };
    trace(
        &tcp,
        100,
        "
        0    start   -> 1 2 3 4 5 6 7 8 9 10 11 12
        100  ack 1   ->
        101  ack 1   ->
        102  ack 1   -> !1       | cwnd 9 ssthresh 6 fast-retransmit
        103  ack 1   ->          | cwnd 10
        104  ack 1   ->          | cwnd 11
        105  ack 1   ->          | cwnd 12
        106  ack 1   -> 13       | cwnd 13
        107  ack 1   -> 14       | cwnd 14
        108  ack 1   -> 15       | cwnd 15
        109  ack 1   -> 16       | cwnd 16
        202  ack 8   ->          | cwnd 6 recovered(0)
        206  ack 8   ->
        207  ack 8   ->
        208  ack 8   -> !8       | cwnd 6 ssthresh 3 fast-retransmit
        209  ack 8   ->          | cwnd 7
        308  ack 17  -> 17 18 19 | cwnd 3 recovered(3)
        ",
    );
}

/// Packets 1, 3 and 6 of 8 are lost; after the second, the round-trip time is 400 ms.
const THREE_LOSSES: &str = "
    0    start   -> 1 2 3 4 5 6 7 8
    100  ack 1   ->
    101  ack 1   ->
    102  ack 1   -> !1       | cwnd 7 ssthresh 4 timer 1102 fast-retransmit
    103  ack 1   ->          | cwnd 8
    104  ack 1   -> 9        | cwnd 9
";

#[test]
fn newreno_repairs_three_losses_and_restarts_timer_each_time() {
    let tcp = TcpConfig { initial_window: 8, ..newreno() };
    let rest = "
        502  ack 3   -> !3 10    | cwnd 8 timer 1502 partial
        504  ack 3   -> 11       | cwnd 9 timer 1502
        902  ack 6   -> !6 12    | cwnd 7 timer 1902 partial
        904  ack 6   -> 13       | cwnd 8
        905  ack 6   -> 14       | cwnd 9
       1302  ack 12  -> 15       | cwnd 4 ssthresh 4 timer 2302 recovered(1)
    ";
    trace(&tcp, 100, &format!("{THREE_LOSSES}{rest}"));
}

#[test]
fn patient_variant_times_out_from_first_retransmission() {
    let tcp = TcpConfig { initial_window: 8, ..patient() };
    let rest = "
        502  ack 3   -> !3 10    | cwnd 8 timer 1102 partial
        504  ack 3   -> 11       | cwnd 9 timer 1102
        902  ack 6   -> !6 12    | cwnd 7 timer 1102 partial
        904  ack 6   -> 13       | cwnd 8
       1102  timer   -> !6       | cwnd 1 ssthresh 2 timer 3102 timeout
       1302  ack 12  -> !12 !13  | cwnd 2 timer 3302
    ";
    trace(&tcp, 100, &format!("{THREE_LOSSES}{rest}"));
}

#[test]
fn lost_retransmission_causes_timeout() {
    // The window is halved a second time, without its inflation by duplicates: 8, 4, 2.
    let tcp = TcpConfig { initial_window: 8, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0     start   -> 1 2 3 4 5 6 7 8
        100   ack 1   ->
        101   ack 1   ->
        102   ack 1   -> !1       | timer 1102 fast-retransmit
        103   ack 1   ->          | cwnd 8
        104   ack 1   -> 9
        105   ack 1   -> 10
        106   ack 1   -> 11       | cwnd 11
        204   ack 1   -> 12
        205   ack 1   -> 13
        206   ack 1   -> 14       | cwnd 14
        1102  timer   -> !1       | cwnd 1 ssthresh 2 timer 3102 timeout
        1202  ack 15  -> 15 16    | cwnd 2
        ",
    );
}

#[test]
fn two_duplicates_send_nothing_without_limited_transmit() {
    // Even if the receiver window allows more.
    let tcp = TcpConfig { initial_window: 4, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0    start  -> 1 2 3 4
        100  ack 1  ->            | cwnd 4 timer 1000
        101  ack 1  ->            | cwnd 4 timer 1000
        102  ack 5  -> 5 6 7 8 9  | cwnd 5 timer 1102
        ",
    );
}

#[test]
fn limited_transmit_finds_a_loss_in_a_window_of_two() {
    let tcp = limited();
    trace(
        &tcp,
        100,
        "
        0    start  -> 1 2  | cwnd 2 timer 1000
        100  ack 1  -> 3    | cwnd 2 ssthresh 100 timer 1000
        200  ack 1  -> 4    | cwnd 2 ssthresh 100 timer 1000
        300  ack 1  -> !1 5 | cwnd 5 ssthresh 2 timer 1300 fast-retransmit
        400  ack 5  -> 6    | cwnd 2 timer 1400 recovered(1)
        ",
    );
}

#[test]
fn packets_of_limited_transmit_are_not_halved() {
    // RFC 5681, section 3.2, step 2: half of 8, although 10 are outstanding. New packets are sent
    // two duplicates later than without limited transmit.
    let tcp = TcpConfig { initial_window: 8, ..limited() };
    trace(
        &tcp,
        100,
        "
        0    start   -> 1 2 3 4 5 6 7 8
        100  ack 1   -> 9      | cwnd 8
        101  ack 1   -> 10     | cwnd 8
        102  ack 1   -> !1     | cwnd 7 ssthresh 4 timer 1102 fast-retransmit
        103  ack 1   ->        | cwnd 8
        104  ack 1   ->        | cwnd 9
        105  ack 1   ->        | cwnd 10
        106  ack 1   -> 11     | cwnd 11
        200  ack 1   -> 12     | cwnd 12
        201  ack 1   -> 13     | cwnd 13
        202  ack 11  -> 14     | cwnd 4 ssthresh 4 recovered(1)
        ",
    );
    // The same holds after a timeout.
    let sender = trace(
        &tcp,
        100,
        "
        0     start   -> 1 2 3 4 5 6 7 8
        100   ack 1   -> 9
        101   ack 1   -> 10
        1000  timer   -> !1    | cwnd 1 ssthresh 4 timer 3000 timeout
        ",
    );
    assert_eq!(sender.guard, 11);
}

#[test]
fn limited_transmit_respects_receiver_window_and_file_size() {
    let start = "
        0    start  -> 1 2
        100  ack 1  ->";
    for (receiver_window, first, second) in [(2, "", ""), (3, "3", ""), (4, "3", "4")] {
        let tcp = TcpConfig { receiver_window, ..limited() };
        trace(&tcp, 100, &format!("{start} {first}\n 200 ack 1 -> {second}"));
    }
    for (size, first, second) in [(2, "", ""), (3, "3", ""), (4, "3", "4")] {
        trace(&limited(), size, &format!("{start} {first}\n 200 ack 1 -> {second}"));
    }
}

#[test]
fn limited_transmit_sends_at_most_two_packets_beyond_window() {
    let tcp = TcpConfig { initial_window: 4, initial_ssthresh: 4, ..limited() };
    trace(
        &tcp,
        100,
        "
        0    start  -> 1 2 3 4
        100  ack 1  -> 5
        101  ack 1  -> 6
        102  ack 2  ->         | cwnd 4
        103  ack 2  -> 7       | cwnd 4
        104  ack 2  ->         | cwnd 4
        ",
    );
}

#[test]
fn nothing_is_sent_after_limited_transmit_until_window_allows() {
    let tcp = TcpConfig { initial_window: 4, initial_ssthresh: 4, ..limited() };
    trace(
        &tcp,
        100,
        "
        0    start  -> 1 2 3 4
        100  ack 1  -> 5
        101  ack 1  -> 6
        102  ack 2  ->         | cwnd 4
        103  ack 3  ->         | cwnd 4
        104  ack 4  -> 7       | cwnd 4
        105  ack 5  -> 8 9     | cwnd 5
        ",
    );
}

#[test]
fn limited_transmit_restarts_timer_with_restart_on_send() {
    for (timer_restart, due) in
        [(TimerRestartEvent::Ack, "1000"), (TimerRestartEvent::Send, "1100")]
    {
        let tcp = TcpConfig { timer_restart, ..limited() };
        let script = format!("0 start -> 1 2 | timer 1000 \n 100 ack 1 -> 3 | timer {due}");
        trace(&tcp, 100, &script);
        // A duplicate that causes no transmission does not set the timer.
        trace(&tcp, 2, "0 start -> 1 2 | timer 1000 \n 100 ack 1 -> | timer 1000");
    }
}

#[test]
fn second_duplicate_sends_two_packets_by_option() {
    // Ayesta and Avrachenkov, section 2.1: no packet is sent on the first duplicate, two on the
    // second.
    let tcp =
        TcpConfig { limited_transmit: LimitedTransmit::OnSecond, initial_window: 3, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0    start  -> 1 2 3
        100  ack 1  ->
        101  ack 1  -> 4 5     | cwnd 3 timer 1000
        201  ack 1  -> !1      | cwnd 5 ssthresh 2 timer 1201 fast-retransmit
        202  ack 1  -> 6       | cwnd 6
        ",
    );
    let tcp = TcpConfig { receiver_window: 4, ..tcp };
    trace(
        &tcp,
        100,
        "
        0    start  -> 1 2 3
        100  ack 1  ->
        101  ack 1  -> 4
        ",
    );
}

#[test]
fn threshold_of_one_detects_loss_at_first_duplicate() {
    // No duplicate is below the threshold, so there is no limited transmit. cwnd is ssthresh + 1.
    for limited_transmit in RULES {
        let tcp = TcpConfig {
            duplicate_threshold: 1,
            last_packets_threshold: 1,
            limited_transmit,
            initial_window: 4,
            ..newreno()
        };
        trace(
            &tcp,
            100,
            "
            0    start  -> 1 2 3 4
            100  ack 1  -> !1      | cwnd 3 ssthresh 2 timer 1100 fast-retransmit
            101  ack 1  ->         | cwnd 4
            102  ack 1  -> 5       | cwnd 5
            200  ack 5  -> 6       | cwnd 2 ssthresh 2 recovered(1)
            ",
        );
    }
}

#[test]
fn fast_retransmit_sends_new_packets_if_inflated_window_allows() {
    // RFC 5681, section 3.2, step 5. The last of three packets is sent before the lost packet is
    // acknowledged.
    let early = TcpConfig { duplicate_threshold: 1, last_packets_threshold: 1, ..reno() };
    for recovery in [LossRecovery::Reno, LossRecovery::NewReno { restart_timer: true }] {
        trace(
            &TcpConfig { recovery, ..early.clone() },
            3,
            "
            0    start  -> 1 2
            100  ack 1  -> !1 3    | cwnd 3 ssthresh 2 fast-retransmit
            200  ack 3  ->         | cwnd 2 recovered(0)
            201  ack 4  ->         | timer off
            ",
        );
    }
    // The receiver window is respected.
    trace(
        &TcpConfig { receiver_window: 4, initial_window: 4, ..newreno() },
        100,
        "
        0    start  -> 1 2 3 4
        100  ack 1  ->
        101  ack 1  ->
        102  ack 1  -> !1  | cwnd 5 ssthresh 2 fast-retransmit
        ",
    );
}

#[test]
fn tahoe_restarts_slow_start_from_one_packet_after_three_duplicates() {
    let tahoe = TcpConfig { recovery: LossRecovery::Tahoe, initial_window: 6, ..newreno() };
    // Packets 1 and 3 are lost. Half of six packets is the threshold.
    trace(
        &tahoe,
        100,
        "
        0    start  -> 1 2 3 4 5 6
        100  ack 1  ->
        101  ack 1  ->
        102  ack 1  -> !1     | cwnd 1 ssthresh 3 fast-retransmit
        103  ack 1  ->        | cwnd 1 ssthresh 3
        202  ack 3  -> !3 !4  | cwnd 2
        302  ack 7  -> 7 8 9  | cwnd 3
        402  ack 8  -> 10     | cwnd 3 rtt 100
        403  ack 9  -> 11     | cwnd 3
        404  ack 10 -> 12 13  | cwnd 4
        ",
    );
    // Duplicates of packets sent twice indicate no loss, but the timer is set.
    let sender = trace(
        &tahoe,
        100,
        "
        0    start  -> 1 2 3 4 5 6
        100  ack 1  ->
        101  ack 1  ->
        102  ack 1  -> !1     | cwnd 1 fast-retransmit
        110  ack 1  ->
        111  ack 1  ->
        112  ack 1  ->
        ",
    );
    assert_eq!(sender.timer_deadline(), 1102 * MILLISECOND);
}

#[test]
fn burst_limit_spreads_packets_over_acks() {
    let tcp = TcpConfig { max_burst: 2, initial_window: 6, ..newreno() };
    trace(
        &tcp,
        20,
        "0   start  ->  1 2    |  cwnd 6
         100 ack 2  ->  3 4    |  cwnd 7 rtt 100
         100 ack 3  ->  5 6    |  cwnd 8
         200 ack 7  ->  7 8    |  cwnd 9 rtt 100",
    );
}

#[test]
fn threshold_above_three_allows_two_new_packets() {
    let tcp = TcpConfig {
        duplicate_threshold: 5,
        last_packets_threshold: 5,
        initial_window: 6,
        ..limited()
    };
    trace(
        &tcp,
        100,
        "
        0    start  -> 1 2 3 4 5 6
        100  ack 1  -> 7
        101  ack 1  -> 8
        102  ack 1  ->             | cwnd 6
        103  ack 1  ->             | cwnd 6
        104  ack 1  -> !1          | cwnd 8 ssthresh 3 timer 1104 fast-retransmit
        ",
    );
}

#[test]
fn last_packets_have_their_own_threshold() {
    // Ayesta and Avrachenkov, section 3.1: packets 4, 5 and 6 of 6 are the last three. cwnd is
    // ssthresh plus the one duplicate.
    let tcp = TcpConfig { last_packets_threshold: 1, initial_window: 6, ..limited() };
    trace(
        &tcp,
        6,
        "
        0    start  -> 1 2 3 4 5 6
        100  ack 2  ->
        101  ack 3  ->
        102  ack 3  ->
        103  ack 3  ->
        104  ack 3  -> !3          | cwnd 5 ssthresh 2 fast-retransmit
        204  ack 7  ->             | timer off recovered(0)
        ",
    );
    trace(
        &tcp,
        6,
        "
        0    start  -> 1 2 3 4 5 6
        100  ack 2  ->
        101  ack 3  ->
        102  ack 4  ->
        103  ack 4  -> !4          | cwnd 3 ssthresh 2 timer 1103 fast-retransmit
        104  ack 4  ->             | cwnd 4
        203  ack 7  ->             | timer off recovered(0)
        ",
    );
    // No packet follows the last one.
    trace(
        &tcp,
        2,
        "
        0     start  -> 1 2
        100   ack 2  ->            | timer 1100
        1100  timer  -> !2         | timeout
        ",
    );
}

#[test]
fn last_packets_threshold_applies_to_all_packets_of_short_file() {
    let tcp = TcpConfig { last_packets_threshold: 1, ..newreno() };
    trace(
        &tcp,
        2,
        "
        0    start  -> 1 2
        101  ack 1  -> !1  | cwnd 3 ssthresh 2 fast-retransmit
        201  ack 3  ->     | timer off recovered(0)
        ",
    );
}

#[test]
fn bulk_flow_has_no_last_packets() {
    let tcp = TcpConfig { last_packets_threshold: 1, initial_window: 4, ..newreno() };
    trace(
        &tcp,
        u32::MAX - 1,
        "
        0    start  -> 1 2 3 4
        100  ack 1  ->
        101  ack 1  ->
        102  ack 1  -> !1 5  | cwnd 5 ssthresh 2 fast-retransmit
        ",
    );
}

#[test]
fn new_ack_resets_duplicate_count() {
    let tcp = TcpConfig { initial_window: 4, initial_ssthresh: 4, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0    start  -> 1 2 3 4
        100  ack 1  ->
        101  ack 1  ->
        102  ack 2  -> 5
        103  ack 2  ->
        104  ack 2  ->
        105  ack 2  -> !2 6  | fast-retransmit
        ",
    );
}

#[test]
fn old_acks_are_ignored() {
    let tcp = TcpConfig { initial_window: 4, initial_ssthresh: 4, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0    start  -> 1 2 3 4
        100  ack 4  -> 5 6 7  | timer 1100
        101  ack 2  ->        | timer 1100
        102  ack 2  ->
        103  ack 2  ->
        104  ack 2  ->        | cwnd 4 ssthresh 4 timer 1100
        ",
    );
}

#[test]
fn timeout_goes_back_to_first_unacknowledged_packet() {
    // Packets 2, 3 and 4 are lost. Karn's rule: retransmitted packets are not timed, and the
    // timeout stays backed off until packet 5, which was sent once, gives a sample.
    let tcp = TcpConfig { initial_ssthresh: 8, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0     start  -> 1 2     | timer 1000
        100   ack 2  -> 3 4     | cwnd 3 rtt 100 timer 1100
        1100  timer  -> !2      | cwnd 1 ssthresh 2 timer 3100 timeout
        1200  ack 3  -> !3 !4   | cwnd 2 rtt none timer 3200
        1300  ack 4  -> 5       | cwnd 2 rtt none timer 3300
        1301  ack 5  -> 6 7     | cwnd 3 rtt none timer 3301
        1400  ack 6  -> 8       | cwnd 3 rtt 100 timer 2400
        ",
    );
}

#[test]
fn received_packets_are_retransmitted_until_ack_jumps() {
    // Only packet 1 of 6 is lost, but all duplicates arrive after the timeout.
    let tcp = TcpConfig { initial_window: 6, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0     start  -> 1 2 3 4 5 6
        1000  timer  -> !1      | cwnd 1 ssthresh 3 timer 3000 timeout
        1001  ack 1  ->
        1002  ack 1  ->
        1003  ack 1  ->
        1004  ack 1  ->         | cwnd 1 ssthresh 3
        1100  ack 7  -> 7 8     | cwnd 2 timer 3100
        ",
    );
}

#[test]
fn timeout_doubles_up_to_64_s_and_ssthresh_is_reduced_once() {
    let tcp = TcpConfig { initial_window: 8, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0       start  -> 1 2 3 4 5 6 7 8
        1000    timer  -> !1       | cwnd 1 ssthresh 4 timer 3000 timeout
        3000    timer  -> !1       | cwnd 1 ssthresh 4 timer 7000 timeout-again
        7000    timer  -> !1       | ssthresh 4 timer 15000 timeout-again
        15000   timer  -> !1       | ssthresh 4 timer 31000 timeout-again
        31000   timer  -> !1       | ssthresh 4 timer 63000 timeout-again
        63000   timer  -> !1       | ssthresh 4 timer 127000 timeout-again
        127000  timer  -> !1       | ssthresh 4 timer 191000 timeout-again
        191000  timer  -> !1       | ssthresh 4 timer 255000 timeout-again
        191100  ack 2  -> !2 !3    | cwnd 2 rtt none timer 255100
        255100  timer  -> !2       | cwnd 1 ssthresh 2 timer 319100 timeout
        255200  ack 9  -> 9 10     | cwnd 2 rtt none timer 319200
        255300  ack 10 -> 11       | cwnd 2 rtt 100 timer 256300
        ",
    );
}

#[test]
fn back_off_ends_with_sample_or_any_new_ack_by_option() {
    // Packets 1 and 2 are lost, and 2 a second time: retransmitted packets give no sample (Karn).
    let script = |second: u64, third: u64| {
        format!(
            "
            0     start   -> 1 2    | timer 1000
            1000  timer   -> !1     | timer 3000 timeout
            1100  ack 2   -> !2 3   | rtt none timer {second}
            1201  ack 2   ->        | timer {second}
            {second}  timer   -> !2     | timer {third} timeout
            "
        )
    };
    trace(&newreno(), 9, &script(3100, 7100));
    let timestamps = TcpConfig { backoff_until: BackoffEndEvent::Ack, ..newreno() };
    let sender = trace(&timestamps, 9, &script(2100, 4100));
    assert_eq!(sender.timed, BACK_OFF_PENDING);
}

#[test]
fn fast_retransmit_keeps_timeout_back_off() {
    // After the second timeout of a packet its duplicates count again.
    for (until, due) in [(BackoffEndEvent::Sample, 7204), (BackoffEndEvent::Ack, 4204)] {
        let tcp = TcpConfig { backoff_until: until, initial_window: 4, ..newreno() };
        trace(
            &tcp,
            9,
            &format!(
                "
                0     start   -> 1 2 3 4  | timer 1000
                1000  timer   -> !1       | timer 3000 timeout
                3000  timer   -> !1       | timer 7000 timeout-again
                3101  ack 1   ->
                3102  ack 1   ->
                3103  ack 1   -> !1       | timer 7103 fast-retransmit
                3204  ack 5   -> 5 6      | rtt none timer {due} recovered(2)
                "
            ),
        );
    }
}

#[test]
fn duplicates_of_packets_sent_before_timeout_indicate_no_loss() {
    // RFC 6582, section 3.2, step 4: recover is 8 after the timeout. No packets are sent either.
    for limited_transmit in RULES {
        let tcp = TcpConfig { limited_transmit, initial_window: 8, ..newreno() };
        trace(
            &tcp,
            100,
            "
            0     start  -> 1 2 3 4 5 6 7 8
            1000  timer  -> !1       | ssthresh 4 timeout
            1100  ack 4  -> !4 !5    | cwnd 2
            1101  ack 4  ->
            1102  ack 4  ->
            1103  ack 4  ->          | cwnd 2 ssthresh 4
            1104  ack 4  ->          | cwnd 2
            ",
        );
    }
}

#[test]
fn duplicates_of_spurious_retransmissions_indicate_no_loss() {
    // The timeout was spurious: all 8 packets arrive late, and then the 8 retransmissions. Each
    // retransmission is acknowledged with 9, which covers packet 8 and so does not exceed recover.
    for limited_transmit in RULES {
        let tcp = TcpConfig { limited_transmit, initial_window: 8, ..newreno() };
        trace(
            &tcp,
            100,
            "
            0     start  -> 1 2 3 4 5 6 7 8
            1000  timer  -> !1       | cwnd 1 ssthresh 4 timeout
            1010  ack 2  -> !2 !3    | cwnd 2
            1011  ack 3  -> !4 !5    | cwnd 3
            1012  ack 4  -> !6 !7    | cwnd 4
            1013  ack 5  -> !8       | cwnd 4
            1014  ack 6  -> 9
            1015  ack 7  -> 10
            1016  ack 8  -> 11 12    | cwnd 5
            1017  ack 9  -> 13
            1018  ack 9  ->
            1019  ack 9  ->
            1020  ack 9  ->          | cwnd 5 ssthresh 4
            1021  ack 9  ->          | cwnd 5
            1022  ack 10 -> 14
            ",
        );
    }
}

#[test]
fn losses_of_packets_sent_after_timeout_are_detected() {
    let tcp = TcpConfig { initial_window: 8, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0     start   -> 1 2 3 4 5 6 7 8
        1000  timer   -> !1          | ssthresh 4 timeout
        1100  ack 9   -> 9 10        | cwnd 2
        1200  ack 10  -> 11 12       | cwnd 3
        1201  ack 11  -> 13 14       | cwnd 4
        1300  ack 12  -> 15          | cwnd 4
        1301  ack 12  ->
        1302  ack 12  ->
        1400  ack 12  -> !12 16      | cwnd 5 ssthresh 2 fast-retransmit
        1500  ack 16  -> 17          | cwnd 2 recovered(1)
        ",
    );
}

#[test]
fn loss_of_first_packet_is_detected() {
    let tcp = TcpConfig { initial_window: 4, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0    start  -> 1 2 3 4
        100  ack 1  ->
        101  ack 1  ->
        102  ack 1  -> !1 5  | cwnd 5 ssthresh 2 fast-retransmit
        ",
    );
}

#[test]
fn duplicates_count_again_after_second_timeout_of_packet() {
    // Engset report, section 3.1: recover is then 0. No new packet is sent, since all packets must
    // be retransmitted first.
    for limited_transmit in RULES {
        let tcp = TcpConfig { limited_transmit, initial_window: 8, ..newreno() };
        trace(
            &tcp,
            100,
            "
            0     start  -> 1 2 3 4 5 6 7 8
            1000  timer  -> !1       | ssthresh 4 timeout
            3000  timer  -> !1       | ssthresh 4 timeout-again
            3001  ack 1  ->
            3002  ack 1  ->
            3003  ack 1  -> !1       | cwnd 5 ssthresh 2 timer 7003 fast-retransmit
            ",
        );
    }
}

#[test]
fn partial_ack_sends_no_packet_twice() {
    // After the second timeout, packet 2 is the next to send. The acknowledgement of 1 to 4 makes
    // it packet 5, which the recovery retransmits.
    let tcp = TcpConfig { initial_window: 8, ..newreno() };
    trace(
        &tcp,
        100,
        "
        0     start  -> 1 2 3 4 5 6 7 8
        1000  timer  -> !1       | ssthresh 4 timeout
        3000  timer  -> !1       | ssthresh 4 timeout-again
        3001  ack 1  ->
        3002  ack 1  ->
        3003  ack 1  -> !1       | cwnd 5 ssthresh 2 fast-retransmit
        3100  ack 5  -> !5 !6    | cwnd 2 partial
        ",
    );
}

#[test]
fn only_the_receiver_window_bounds_a_recovery() {
    // RFC 6582, section 3.2, step 2. The first packet of a window of 8 is lost; duplicates keep
    // arriving.
    for (receiver_window, outstanding) in [(u32::MAX, 104), (12, 12), (1000, 104)] {
        let tcp = TcpConfig { initial_window: 8, receiver_window, ..newreno() };
        let mut sender = trace(
            &tcp,
            1000,
            "
            0    start  -> 1 2 3 4 5 6 7 8
            100  ack 1  ->
            101  ack 1  ->
            102  ack 1  -> !1  | cwnd 7 ssthresh 4 fast-retransmit
            ",
        );
        for _ in 0..97 {
            sender.on_ack(200 * MILLISECOND, 1, &tcp, &mut Record::default());
        }
        assert_eq!(sender.outstanding_packets(), outstanding, "{receiver_window}");
    }
}

#[test]
fn transfer_can_end_during_recovery() {
    for tcp in [reno(), newreno(), patient()] {
        let tcp = TcpConfig { initial_window: 8, ..tcp };
        let sender = trace(
            &tcp,
            8,
            "
            0    start  -> 1 2 3 4 5 6 7 8
            100  ack 1  ->
            101  ack 1  ->
            102  ack 1  -> !1  | timer 1102 fast-retransmit
            103  ack 1  ->
            202  ack 9  ->     | timer off recovered(0)
            203  ack 9  ->     | timer off
            ",
        );
        assert!(sender.is_finished());
    }
}

#[test]
fn timer_restarts_on_ack_or_on_send_by_option() {
    let script = "
        0    start  -> 1 2    | timer 1000
        100  ack 2  -> 3      | timer 1100
        150  ack 3  ->        | timer ";
    for (timer_restart, due) in
        [(TimerRestartEvent::Ack, "1150"), (TimerRestartEvent::Send, "1100")]
    {
        let tcp = TcpConfig { timer_restart, receiver_window: 2, ..newreno() };
        trace(&tcp, 3, &format!("{script}{due}"));
    }
}

#[test]
fn restart_on_send_times_out_while_acks_arrive() {
    // End of a file behind a queue that has grown beyond the timeout.
    let tcp = TcpConfig {
        timer_restart: TimerRestartEvent::Send,
        initial_window: 4,
        initial_ssthresh: 4,
        ..newreno()
    };
    trace(
        &tcp,
        5,
        "
        0     start  -> 1 2 3 4  | timer 1000
        400   ack 2  -> 5        | rtt 400 timer 1600
        800   ack 3  ->          | timer 1600
        1200  ack 4  ->          | timer 1600
        1600  timer  -> !4       | cwnd 1 ssthresh 2 timer 4000 timeout
        1601  ack 5  -> !5       | timer 4001
        2001  ack 6  ->          | timer off
        ",
    );
}

#[test]
fn one_packet_of_each_flight_is_timed() {
    // Engset report, section 4.2: the timed segments are 1, 3, 7, 15, 31, 63, 107 for WR = 44.
    let tcp = TcpConfig { receiver_window: 44, initial_ssthresh: 44, ..newreno() };
    let mut sender = Sender::<Reno>::default();
    let mut record = Record::default();
    let mut in_flight = VecDeque::new();
    let mut timed = Vec::new();
    let mut sent = sender.start_file_on_new_connection(0, 200, &tcp, &mut record);
    while !sender.is_finished() {
        in_flight.extend(sent.packets().map(|(number, _)| number));
        if sender.timed != NOT_TIMED && timed.last() != Some(&sender.timed) {
            timed.push(sender.timed);
        }
        let number: u32 = in_flight.pop_front().expect("a packet is in flight");
        sent = sender.on_ack(u64::from(number), number + 1, &tcp, &mut record);
    }
    assert_eq!(timed, [1, 3, 7, 15, 31, 63, 107, 151, 195]);
    let samples = record.0.iter().filter(|e| matches!(e, TcpEvent::RttSample { .. })).count();
    assert_eq!(samples, timed.len());
}

#[test]
fn timeout_events_describe_sender_state() {
    let tcp = TcpConfig { initial_window: 4, ..newreno() };
    let mut sender = Sender::<Reno>::default();
    let mut record = Record::default();
    sender.start_file_on_new_connection(0, 9, &tcp, &mut record);
    for _ in 0..3 {
        sender.on_ack(MILLISECOND, 1, &tcp, &mut record);
    }
    sender.on_timer(sender.timer_deadline(), &tcp, &mut record);
    sender.on_timer(sender.timer_deadline(), &tcp, &mut record);
    let timeouts: Vec<_> =
        record.0.iter().filter(|e| matches!(e, TcpEvent::Timeout { .. })).copied().collect();
    let first = TimeoutState {
        all_sent: false,
        window: 5,
        slow_start: false,
        repeated: false,
        in_recovery: true,
        rto: SECOND,
    };
    let second = TimeoutState {
        window: 1,
        slow_start: true,
        repeated: true,
        in_recovery: false,
        rto: 2 * SECOND,
        ..first
    };
    let timeout = |state| TcpEvent::Timeout { number: 1, left: 8, state };
    assert_eq!(timeouts, [first, second].map(timeout));
}

/// A receiver behind a pipe that loses selected packets.
struct FarEnd {
    held: BTreeSet<u32>,
    next: u32,
    acks: VecDeque<(Nanos, u32)>,
    lost: VecDeque<bool>,
}

impl FarEnd {
    fn receive(&mut self, now: Nanos, sent: PacketsToSend) {
        for (number, _) in sent.packets() {
            if self.lost.pop_front().unwrap_or(false) {
                continue;
            }
            self.held.insert(number);
            while self.held.contains(&self.next) {
                self.next += 1;
            }
            self.acks.push_back((now + 100 * MILLISECOND, self.next));
        }
    }
}

/// Packets of a file whose loss causes a timeout if no other packet is lost.
fn timeouts_after_one_loss(tcp: &TcpConfig, size: u32) -> Vec<u32> {
    let ends_in_a_timeout = |lost: u32| {
        let mut far = FarEnd {
            held: BTreeSet::new(),
            next: 1,
            acks: VecDeque::new(),
            lost: (1..=size).map(|number| number == lost).collect(),
        };
        let mut sender = Sender::<Reno>::default();
        let mut record = Record::default();
        far.receive(0, sender.start_file_on_new_connection(0, size, tcp, &mut record));
        while let Some((now, ack)) = far.acks.pop_front() {
            far.receive(now, sender.on_ack(now, ack, tcp, &mut record));
        }
        !sender.is_finished()
    };
    (1..=size).filter(|&number| ends_in_a_timeout(number)).collect()
}

#[test]
fn single_loss_causes_timeout_only_near_start_and_end_of_file() {
    // Ayesta and Avrachenkov, Table 1, slow start: losses of the first y_to packets cause timeouts,
    // since too small a window follows, and losses of the last dup_t packets, since no packets
    // follow. The table's columns are without limited transmit and with theirs. RFC 3042 needs one
    // duplicate less, as in their proposal with dup_LT = 1 (section 3.1). With the other half of
    // the proposal only the loss of the last packet causes a timeout.
    use LimitedTransmit::{EachDuplicate, Off, OnSecond};
    let table = [
        (Off, 3, [3, 2, 1, 0]),
        (OnSecond, 3, [2, 1, 0, 0]),
        (EachDuplicate, 3, [1, 0, 0, 0]),
        (EachDuplicate, 1, [1, 0, 0, 0]),
    ];
    for (limited_transmit, last_packets_threshold, beginning) in table {
        for (initial_window, y_to) in (1..).zip(beginning) {
            let tcp = TcpConfig {
                limited_transmit,
                last_packets_threshold,
                initial_window,
                receiver_window: 30,
                initial_ssthresh: 30,
                ..newreno()
            };
            for size in 1_u32..50 {
                let last = size.saturating_sub(last_packets_threshold);
                let expected: Vec<_> =
                    (1..=size).filter(|&number| number <= y_to || number > last).collect();
                let lost = timeouts_after_one_loss(&tcp, size);
                assert_eq!(lost, expected, "{size} packets, {tcp:?}");
            }
        }
    }
}

proptest! {
    /// For any losses, every file arrives, the timer runs until then, and window limits hold.
    #[test]
    fn files_complete_for_any_losses(
        size in 1_u32..120,
        lost in prop::collection::vec(prop::bool::weighted(0.25), 0..120),
        window in 1_u32..40,
        initial_window in 1_u32..12,
        kind in 0_usize..3,
        by_send in any::<bool>(),
        (duplicate_threshold, fewer) in (1_u32..6, 0_u32..6),
        rule in 0_usize..3,
    ) {
        let tcp = TcpConfig {
            receiver_window: window,
            initial_ssthresh: window,
            initial_window,
            timer_restart: if by_send { TimerRestartEvent::Send } else { TimerRestartEvent::Ack },
            duplicate_threshold,
            last_packets_threshold: duplicate_threshold.saturating_sub(fewer).max(1),
            limited_transmit: RULES[rule],
            ..[reno(), newreno(), patient()][kind].clone()
        };
        let mut far = FarEnd {
            held: BTreeSet::new(),
            next: 1,
            acks: VecDeque::new(),
            lost: lost.into(),
        };
        let mut sender = Sender::<Reno>::default();
        let mut record = Record::default();
        let mut once = BTreeSet::new();
        let mut now = 0;
        let mut sent = sender.start_file_on_new_connection(now, size, &tcp, &mut record);
        for _ in 0..20_000 {
            for (number, kind) in sent.packets() {
                prop_assert!(number >= sender.una && number <= size);
                prop_assert!(number < sender.una + window);
                prop_assert_eq!(once.insert(number), kind == PacketKind::Data);
            }
            far.receive(now, sent);
            if sender.is_finished() {
                break;
            }
            prop_assert!(sender.timer_deadline() >= now && sender.timer_deadline() < NEVER);
            prop_assert!(sender.cc.cwnd() >= 1);
            prop_assert!(sender.cc.ssthresh() >= window.min(2));
            prop_assert!(sender.outstanding_packets() > 0);
            let answer = far.acks.front().copied().filter(|(at, _)| *at <= sender.timer_deadline());
            if let Some((at, ack)) = answer {
                far.acks.pop_front();
                now = at;
                sent = sender.on_ack(now, ack, &tcp, &mut record);
            } else {
                now = sender.timer_deadline();
                sent = sender.on_timer(now, &tcp, &mut record);
            }
        }
        prop_assert!(sender.is_finished());
        prop_assert_eq!(sender.timer_deadline(), NEVER);
        prop_assert_eq!(once.len(), size as usize);
    }
}

/// Sends 14 packets, which grow the window to 7, then 20 more after an idle time.
fn resumed(tcp: &TcpConfig, since_ack_ms: u64, since_sent_ms: u64) -> (String, u32, u32) {
    let mut sender = trace(
        tcp,
        14,
        "    0    start   ->  1 2
           100   ack 2   ->  3 4
           100   ack 3   ->  5 6
           200   ack 4   ->  7 8
           200   ack 5   ->  9 10
           200   ack 6   ->  11 12
           200   ack 7   ->  13
           300   ack 8   ->  14
           400   ack 15  ->         | cwnd 7 timer off",
    );
    let idle =
        IdleTime { since_ack: since_ack_ms * MILLISECOND, since_sent: since_sent_ms * MILLISECOND };
    let now = 400 * MILLISECOND + idle.since_ack;
    let mut record = Record::default();
    let sent = sender.send_file_on_open_connection(now, 20, idle, tcp, &mut record);
    assert_eq!(sender.timer_deadline(), now + 1000 * MILLISECOND, "the estimate is kept");
    let restarted = tcp.idle_restart.is_restart_due(idle, SECOND);
    assert_eq!(record.loss_events(), vec!["idle-restart"; usize::from(restarted)]);
    (format_packets(sent), sender.cc.cwnd(), sender.cc.ssthresh())
}

#[test]
fn resumed_connection_keeps_window_and_numbers() {
    let tcp = TcpConfig { initial_ssthresh: 7, ..newreno() };
    assert_eq!(resumed(&tcp, 90_000, 90_100), ("15 16 17 18 19 20 21".into(), 7, 7));
}

#[test]
fn idle_restart_begins_with_initial_window() {
    let rule = |idle_restart| TcpConfig { idle_restart, initial_ssthresh: 7, ..newreno() };
    let kept = ("15 16 17 18 19 20 21".into(), 7, 7);
    let restarted = ("15 16".to_owned(), 2, 7);
    let after = rule(IdleRestart::After(10 * SECOND));
    assert_eq!(resumed(&after, 10_000, 10_100), kept);
    assert_eq!(resumed(&after, 10_001, 10_101), restarted);
    // The timeout is one second from the last packet sent.
    let rto = rule(IdleRestart::AfterTimeout);
    assert_eq!(resumed(&rto, 900, 1000), kept);
    assert_eq!(resumed(&rto, 900, 1001), restarted);
    // RFC 5681 keeps a lower threshold; a new session has the threshold of a new connection.
    for (idle_restart, ssthresh) in
        [(IdleRestart::AfterTimeout, 3), (IdleRestart::After(SECOND), 100)]
    {
        let tcp = TcpConfig { idle_restart, ..newreno() };
        let mut sender = repaired_at_end(&tcp);
        let idle = IdleTime { since_ack: 2 * SECOND, since_sent: 2 * SECOND };
        sender.send_file_on_open_connection(4 * SECOND, 20, idle, &tcp, &mut Record::default());
        assert_eq!((sender.cc.cwnd(), sender.cc.ssthresh()), (2, ssthresh));
    }
}

/// A sender whose last packets are acknowledged during a recovery.
fn repaired_at_end(tcp: &TcpConfig) -> Sender<Reno> {
    trace(
        tcp,
        10,
        "    0    start   ->  1 2
           100   ack 2   ->  3 4
           100   ack 3   ->  5 6
           200   ack 4   ->  7 8
           200   ack 5   ->  9 10
           300   ack 5   ->
           300   ack 5   ->
           300   ack 5   ->  !5     | fast-retransmit
           300   ack 5   ->
           400   ack 11  ->         | timer off recovered(0)",
    )
}

#[test]
fn inflated_window_is_deflated_before_next_file() {
    let mut sender = repaired_at_end(&newreno());
    let ssthresh = sender.cc.ssthresh();
    assert!(sender.cc.cwnd() > ssthresh, "inflated by duplicates");
    let tcp = newreno();
    let idle = IdleTime { since_ack: 0, since_sent: SECOND / 10 };
    let sent = sender.send_file_on_open_connection(
        500 * MILLISECOND,
        20,
        idle,
        &tcp,
        &mut Record::default(),
    );
    assert_eq!((sender.cc.cwnd(), sent.count), (ssthresh, ssthresh));
    assert_eq!(sent.from, 11);
}

#[test]
fn has_numbers_until_packet_numbers_are_exhausted() {
    let tcp = newreno();
    let sender = trace(&tcp, 14, "0 start -> 1 2");
    assert!(sender.has_packet_numbers_left(u32::MAX - 16));
    assert!(!sender.has_packet_numbers_left(u32::MAX - 15));
}
