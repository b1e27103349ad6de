//! Tests of the analysis with synthetic captures. Times are in ms, data in packets of 1000 bytes.

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::analysis::{
    ConnectionEnd, DirectionCounts, DirectionReport, IndicationKind, RetransCause, TapSide,
    TransferLimit,
};
use crate::connection::Connections;
use crate::segment::{Endpoint, Options};

const PACKET: u32 = 1000;
const SENDER: usize = 0;
const RECEIVER: usize = 1;
const ACK: Flags = Flags(Flags::ACK);

/// Generates a capture. The sender's ISN is shortly before the wrap.
struct Trace {
    connections: Connections,
    isn: [u32; 2],
    ids: [u16; 2],
    frame: u64,
    sack: bool,
    timestamps: bool,
    window: u16,
}

impl Trace {
    fn new() -> Self {
        Self {
            connections: Connections::default(),
            isn: [u32::MAX - 3500, 77],
            ids: [100, 100],
            frame: 0,
            sack: false,
            timestamps: false,
            window: 60_000,
        }
    }

    fn segment(&mut self, ms: f64, from: usize) -> Segment {
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]]
            .map(|address| Endpoint { address: IpAddr::from(address), port: 5001 });
        self.frame += 1;
        self.ids[from] += 1;
        let mut options = Options::default();
        if self.timestamps {
            options.timestamps = Some((ms as u32 + 1, 0));
        }
        Segment {
            frame: self.frame,
            time: (ms * 1e6) as u64 + 1_000_000_000_000,
            source: ends[from],
            destination: ends[1 - from],
            ip_id: Some(self.ids[from]),
            ttl: 64,
            ecn: 0,
            ip_bytes: 40,
            payload: 0,
            sequence: self.isn[from].wrapping_add(1),
            acknowledgement: self.isn[1 - from].wrapping_add(1),
            flags: ACK,
            ae: false,
            window: self.window,
            options,
            fragment: false,
        }
    }

    fn push(&mut self, segment: &Segment) {
        self.connections.push_segment(segment);
    }

    fn syn(&mut self, ms: f64, from: usize, answer: bool) {
        let mut syn = self.segment(ms, from);
        syn.sequence = self.isn[from];
        syn.flags = Flags(Flags::SYN | if answer { Flags::ACK } else { 0 });
        syn.options.mss = Some(1460);
        syn.options.sack_permitted = self.sack;
        self.push(&syn);
    }

    /// Adds a SYN at 0, a SYN-ACK at `answered`, and an ACK at `done`.
    fn handshake(&mut self, answered: f64, done: f64) {
        self.syn(0.0, SENDER, false);
        self.syn(answered, RECEIVER, true);
        let ack = self.segment(done, SENDER);
        self.push(&ack);
    }

    /// Returns a segment of `count` packets, starting with packet `n`.
    fn packet(&mut self, ms: f64, n: u32, count: u32) -> Segment {
        let mut data = self.segment(ms, SENDER);
        data.payload = count * PACKET;
        data.ip_bytes = 40 + data.payload;
        data.sequence = data.sequence.wrapping_add(n * PACKET);
        data
    }

    fn data(&mut self, ms: f64, packets: impl IntoIterator<Item = u32>) {
        for n in packets {
            let data = self.packet(ms, n, 1);
            self.push(&data);
        }
    }

    /// Acknowledges all packets below `n`.
    fn ack(&mut self, ms: f64, n: u32) {
        self.sack(ms, n, []);
    }

    /// Acknowledges all packets below `n`, with SACK blocks of half-open ranges.
    fn sack<const N: usize>(&mut self, ms: f64, n: u32, blocks: [(u32, u32); N]) {
        let mut ack = self.segment(ms, RECEIVER);
        let number = |n: u32| ack.acknowledgement.wrapping_add(n * PACKET);
        for (slot, (left, right)) in blocks.into_iter().enumerate() {
            ack.options.sack[slot] = (number(left), number(right));
        }
        ack.options.sack_blocks = N as u8;
        ack.acknowledgement = number(n);
        self.push(&ack);
    }

    fn reports(self) -> Vec<ConnectionReport> {
        self.connections.into_remaining_reports().collect()
    }

    /// Returns the report of the data direction of the only connection.
    fn report(self) -> DirectionReport {
        let [report] = <[_; 1]>::try_from(self.reports()).expect("one connection");
        let [data, _] = *report.directions;
        data
    }
}

/// A short segment arrives before the segment that precedes it and repeats it: the hole is one
/// packet.
#[test]
fn segment_filling_larger_hole_counts_one_packet() {
    let mut trace = Trace::new();
    trace.handshake(100.0, 100.1);
    let mut short = trace.packet(101.0, 1, 1);
    short.payload = PACKET / 3;
    trace.push(&short);
    let mut larger = trace.packet(300.0, 0, 1);
    larger.payload += PACKET / 3;
    trace.push(&larger);
    let mut ack = trace.segment(400.0, RECEIVER);
    ack.acknowledgement = ack.acknowledgement.wrapping_add(PACKET + PACKET / 3);
    trace.push(&ack);
    let counts = trace.report().counts;
    assert_eq!((counts.data_packets, counts.acknowledged_packets), (2, 2));
}

/// A transfer captured at the sender, with 100 ms RTT: ten packets sent, the first four
/// acknowledged.
fn started_transfer(sack: bool) -> Trace {
    let mut trace = Trace { sack, ..Trace::new() };
    trace.handshake(100.0, 100.1);
    trace.data(101.0, 0..4);
    trace.ack(201.0, 2);
    trace.data(201.1, 4..7);
    trace.ack(202.0, 4);
    trace.data(202.1, 7..10);
    trace
}

fn causes(report: &DirectionReport) -> Vec<RetransCause> {
    report.retransmitted.iter().map(|one| one.cause).collect()
}

#[test]
fn three_duplicates_classify_fast_retransmit() {
    let mut trace = started_transfer(false);
    (0..4).for_each(|n| trace.ack(302.0 + f64::from(n), 4));
    trace.data(304.2, [4]);
    trace.ack(405.0, 6); // a partial acknowledgement: 6 was also lost
    trace.data(405.1, [6]);
    trace.ack(505.0, 10);
    let report = trace.report();
    assert_eq!(causes(&report), [RetransCause::Duplicates, RetransCause::Duplicates]);
    assert_eq!((report.counts.retransmissions, report.counts.duplicate_acks), (2, 4));
    let indications = report.indications;
    assert_eq!((indications.td, indications.timeout_count()), (1, 0));
    assert_eq!((indications.td_paper, indications.to_paper), (1, 0));
    assert_eq!(report.loss_times.len(), 1);
    assert_eq!(report.loss_times[0].kind, IndicationKind::Td);
    assert_eq!((report.counts.bytes, report.counts.unique_bytes), (12_000, 10_000));
    assert_eq!(report.retransmitted[1].offset, 6000);
}

#[test]
fn timeout_sequence_is_one_indication() {
    let mut trace = started_transfer(false);
    trace.data(502.0, [4]);
    trace.data(1102.0, [4]);
    trace.data(2302.0, [4]);
    trace.ack(2402.0, 5);
    trace.data(2402.1, [5, 6]); // slow start
    trace.ack(2502.0, 10);
    let report = trace.report();
    let timeout = |depth| RetransCause::Timeout { depth };
    let after = RetransCause::AfterTimeout;
    assert_eq!(causes(&report), [timeout(1), timeout(2), timeout(3), after, after]);
    assert_eq!(report.indications.by_depth, [0, 0, 1, 0, 0, 0]);
    assert_eq!((report.indications.timeouts, report.indications.td), (3, 0));
    assert_eq!((report.indications.td_paper, report.indications.to_paper), (0, 1));
    // T0 starts at the last acknowledgement of new data, not when segment 4 was sent.
    assert!((report.t0_s.unwrap() - 0.300).abs() < 1e-3, "{:?}", report.t0_s);
}

#[test]
fn lost_retransmission_is_timeout_despite_duplicates() {
    let mut trace = started_transfer(false);
    (0..3).for_each(|n| trace.ack(302.0 + f64::from(n), 4));
    trace.data(304.1, [4]);
    trace.ack(604.0, 4);
    trace.data(604.5, [4]);
    let report = trace.report();
    assert_eq!(causes(&report), [RetransCause::Duplicates, RetransCause::Timeout { depth: 1 }]);
    assert_eq!((report.indications.td, report.indications.timeout_count()), (1, 1));
}

#[test]
fn rfc8985_6_2_ack_of_later_retransmission_reveals_loss() {
    let mut trace = started_transfer(true);
    trace.sack(302.0, 4, [(5, 6)]);
    trace.data(302.1, [4]);
    trace.sack(303.0, 4, [(5, 10)]);
    trace.data(303.1, 10..12);
    trace.data(310.0, [12]);
    trace.sack(403.0, 4, [(5, 11)]);
    trace.data(403.1, [4]); // the first retransmission and packet 11 were lost
    trace.ack(503.0, 11);
    trace.data(503.1, [11]);
    trace.ack(603.0, 13);
    let report = trace.report();
    assert_eq!(causes(&report), [RetransCause::Sack, RetransCause::Sack, RetransCause::Rack]);
    assert_eq!((report.indications.td, report.indications.timeout_count()), (2, 0));
}

#[test]
fn sack_and_rack_are_not_timeouts() {
    let mut trace = started_transfer(true);
    trace.sack(302.0, 4, [(5, 6)]);
    trace.data(327.0, [4]); // a quarter of the RTT later: RACK
    trace.ack(427.0, 7);
    trace.data(427.1, 10..14);
    trace.sack(528.0, 10, [(11, 14)]);
    trace.data(528.2, [10]);
    trace.ack(628.0, 14);
    let report = trace.report();
    assert_eq!(causes(&report), [RetransCause::Rack, RetransCause::Sack]);
    assert_eq!((report.indications.td, report.indications.timeout_count()), (2, 0));
    // Without three duplicates, the paper's rule is wrong.
    assert_eq!((report.indications.td_paper, report.indications.to_paper), (0, 2));
}

#[test]
fn retransmitted_last_segment_is_tail_loss_probe() {
    let mut trace = started_transfer(true);
    trace.ack(302.0, 7);
    trace.data(510.0, [9]); // 7 to 9 are in flight; 9 is the probe
    trace.data(820.0, [7]); // the timer retransmits the oldest
    let report = trace.report();
    assert_eq!(causes(&report), [RetransCause::TailLossProbe, RetransCause::Timeout { depth: 1 }]);
    assert_eq!((report.indications.td, report.indications.timeout_count()), (0, 1));
}

#[test]
fn dsack_marks_spurious_retransmission() {
    let mut trace = started_transfer(true);
    trace.data(560.0, [4]);
    trace.sack(570.0, 10, []);
    trace.sack(660.0, 10, [(4, 5)]); // RFC 2883
    trace.sack(670.0, 10, [(5, 6)]); // duplicated by the network: 5 was sent once
    let report = trace.report();
    assert_eq!(causes(&report), [RetransCause::Timeout { depth: 1 }]);
    assert_eq!((report.spurious.dsack, report.spurious.unexplained_dsack), (1, 1));
    assert!(report.retransmitted[0].spurious);
}

#[test]
fn dsack_with_untranslated_numbers_marks_spurious_probe() {
    let mut trace = started_transfer(true);
    trace.data(510.0, [9]); // the probe repeats the last segment
    trace.ack(570.0, 10);
    trace.sack(660.0, 10, [(100_009, 100_010)]); // the receiver's numbers
    let report = trace.report();
    assert_eq!(causes(&report), [RetransCause::TailLossProbe]);
    assert_eq!((report.spurious.dsack, report.spurious.unexplained_dsack), (1, 0));
    assert_eq!(report.counts.untranslated_sacks, 1);
    // While data are missing, such a block may be a SACK.
    let mut trace = started_transfer(true);
    trace.data(510.0, [9]);
    trace.sack(570.0, 9, [(100_009, 100_010)]);
    let report = trace.report();
    assert_eq!((report.spurious.dsack, report.counts.untranslated_sacks), (0, 0));
}

#[test]
fn old_timestamp_echo_marks_spurious_retransmission() {
    for (echo, spurious) in [(203, 1), (561, 0)] {
        let mut trace = started_transfer(false);
        trace.timestamps = true;
        trace.data(560.0, [4]);
        let mut ack = trace.segment(580.0, RECEIVER);
        ack.acknowledgement = ack.acknowledgement.wrapping_add(10 * PACKET);
        ack.options.timestamps = Some((581, echo));
        trace.push(&ack);
        assert_eq!(trace.report().spurious.eifel, spurious, "echo {echo}");
    }
}

#[test]
fn window_probes_are_not_retransmissions() {
    let mut trace = started_transfer(false);
    trace.window = 0;
    trace.ack(303.0, 10);
    for ms in [600.0, 1200.0, 2400.0] {
        let mut probe = trace.packet(ms, 10, 1);
        probe.payload = 1;
        trace.push(&probe);
        trace.ack(ms + 100.0, 10);
    }
    trace.window = 60_000;
    trace.ack(2600.0, 10);
    trace.data(2600.1, 10..12);
    trace.ack(2700.0, 12);
    let report = trace.report();
    assert_eq!((report.counts.zero_window_probes, report.counts.retransmissions), (3, 0));
    assert_eq!((report.counts.bytes, report.counts.unique_bytes), (12_003, 12_000));
    assert_eq!((report.counts.zero_windows, report.counts.missing_bytes), (1, 0));
}

#[test]
fn keep_alive_is_not_retransmission() {
    let mut trace = started_transfer(false);
    trace.ack(303.0, 10);
    for (ms, payload) in [(60_000.0, 1), (120_000.0, 0)] {
        let mut probe = trace.packet(ms, 10, 1);
        probe.sequence = probe.sequence.wrapping_sub(1);
        probe.payload = payload;
        trace.push(&probe);
        trace.ack(ms + 100.0, 10);
    }
    let report = trace.report();
    assert_eq!((report.counts.keep_alives, report.counts.retransmissions), (2, 0));
}

/// The byte of a keepalive probe is not data, however soon the probe follows. A segment of one byte
/// may be retransmitted, because its acknowledgement was lost.
#[test]
fn byte_of_keep_alive_is_not_data() {
    for (last, pause, keep_alives) in [(PACKET, 80.0, 1), (1, 80.0, 0), (1, 75_000.0, 1)] {
        let mut trace = started_transfer(false);
        let mut data = trace.packet(303.0, 10, 1);
        data.payload = last;
        trace.push(&data);
        let mut ack = trace.segment(403.0, RECEIVER);
        ack.acknowledgement = ack.acknowledgement.wrapping_add(10 * PACKET + last);
        trace.push(&ack);
        let mut probe = trace.packet(403.0 + pause, 10, 1);
        (probe.sequence, probe.payload) = (probe.sequence.wrapping_add(last - 1), 1);
        trace.push(&probe);
        ack.time = probe.time + 100_000_000;
        trace.push(&ack);
        let report = trace.report();
        assert_eq!(report.counts.keep_alives, keep_alives, "{last} {pause}");
        assert_eq!(report.counts.retransmissions, 1 - keep_alives);
        assert_eq!(report.counts.data_packets, 11 + 1 - keep_alives);
        assert_eq!(report.counts.bytes, u64::from(10 * PACKET + last) + 1 - keep_alives);
    }
}

/// A capture that begins with a closed window: a window of 0 needs no scale.
#[test]
fn probes_of_window_closed_before_capture_are_no_keep_alives() {
    for payload in [0, 1] {
        let mut trace = Trace { window: 0, ..Trace::new() };
        trace.data(0.0, [0]);
        trace.ack(0.3, 1);
        for ms in [400.0, 1200.0, 2800.0, 6000.0] {
            let mut probe = trace.packet(ms, 1, 1);
            probe.sequence = probe.sequence.wrapping_sub(1 - payload);
            probe.payload = payload;
            trace.push(&probe);
            trace.ack(ms + 0.3, 1);
        }
        let report = trace.report();
        assert_eq!((report.counts.zero_window_probes, report.counts.keep_alives), (4, 0));
        assert_eq!((report.counts.zero_windows, report.counts.retransmissions), (1, 0));
        assert_eq!(report.limitation.limited_by, TransferLimit::ReceiverWindow);
        assert!((report.limitation.window_closed_s - 6.0).abs() < 0.01);
    }
}

#[test]
fn frame_captured_twice_counts_once() {
    let mut trace = started_transfer(false);
    let mut twice = trace.packet(203.0, 10, 1);
    trace.push(&twice);
    twice.time += 2_000_000;
    twice.ttl -= 1;
    trace.push(&twice);
    // The retransmission has a new identification.
    twice.ip_id = Some(30_000);
    trace.push(&twice);
    let report = trace.report();
    assert_eq!((report.counts.capture_duplicates, report.counts.data_packets), (1, 12));
    assert_eq!(report.counts.retransmissions, 1);
}

/// A tap at the receiver, which does not see losses on the path.
fn at_receiver() -> Trace {
    let mut trace = Trace::new();
    trace.handshake(0.1, 100.0);
    trace.data(101.0, 0..6);
    trace.ack(101.1, 6);
    trace
}

#[test]
fn late_segment_with_early_id_is_reordered() {
    let mut trace = at_receiver();
    let late = trace.packet(202.5, 6, 1);
    trace.data(202.0, 7..9);
    trace.push(&late);
    trace.ack(202.6, 9);
    let report = trace.report();
    assert_eq!(report.side, TapSide::Receiver);
    assert_eq!((report.counts.out_of_order, report.counts.retransmissions), (1, 0));
    assert_eq!(report.counts.unique_bytes, 9000);
}

#[test]
fn segment_lost_before_tap_is_retransmission() {
    let mut trace = at_receiver();
    trace.data(202.0, 7..10);
    (0..3).for_each(|n| trace.ack(202.1 + f64::from(n), 6));
    trace.data(304.2, [6]);
    trace.ack(304.3, 10);
    let report = trace.report();
    assert_eq!((report.counts.out_of_order, report.counts.retransmissions), (0, 1));
    assert_eq!(causes(&report), [RetransCause::Duplicates]);
    assert_eq!((report.indications.td, report.counts.missing_bytes), (1, 0));
}

/// Only empty segments show that data were lost before the tap, or that they are late.
#[test]
fn gap_before_empty_segment_is_loss_unless_reordered() {
    for (filled, id_step, lost) in [(20_000.0, 1, 1), (250.0, -1, 0), (450.0, -1, 0)] {
        let mut trace = at_receiver();
        trace.ack(202.0, 6);
        let mut empty = trace.segment(203.0, SENDER);
        empty.sequence = empty.sequence.wrapping_add(7 * PACKET);
        trace.push(&empty);
        let mut late = trace.packet(filled, 6, 1);
        late.ip_id = empty.ip_id.map(|id| id.wrapping_add_signed(id_step));
        trace.push(&late);
        trace.ack(filled + 0.1, 7);
        let report = trace.report();
        // A segment within a round trip to the sender is new.
        let reordered = u64::from(filled == 450.0);
        assert_eq!((report.counts.retransmissions, report.counts.out_of_order), (lost, reordered));
        assert_eq!((report.indications.timeouts, report.counts.missing_bytes), (lost, 0));
        if lost > 0 {
            assert!(report.t0_s.is_some_and(|t0| (t0 - 19.7).abs() < 0.01), "{:?}", report.t0_s);
        }
    }
}

/// The capture begins during a recovery: SACK shows data that were sent before.
#[test]
fn hole_before_capture_is_loss_if_filled() {
    for (ms, cause) in [(0.3, RetransCause::Sack), (30.0, RetransCause::Rack)] {
        let mut trace = Trace { sack: true, ..Trace::new() };
        for n in 0..4 {
            trace.sack(f64::from(n) / 10.0, 0, [(1, 2 + n)]);
        }
        trace.data(0.3 + ms, [0]);
        trace.ack(100.0 + ms, 5);
        trace.data(100.1 + ms, 5..8);
        trace.ack(200.0 + ms, 8);
        // The first segment comes from the receiver.
        let [_, report] = *trace.reports().remove(0).directions;
        assert_eq!(causes(&report), [cause]);
        assert_eq!((report.indications.td, report.counts.data_packets), (1, 4));
        assert_eq!(report.counts.unique_bytes, 4000);
    }
    // A wrong SACK block, as of a firewall that changes only sequence numbers.
    let mut wrong = Trace { sack: true, ..Trace::new() };
    wrong.sack(0.0, 0, [(900_000, 900_001)]);
    wrong.data(1.0, 0..3);
    wrong.ack(101.0, 3);
    assert_eq!(wrong.reports().remove(0).directions[1].counts.retransmissions, 0);
}

#[test]
fn segments_missing_from_capture_are_not_losses() {
    let mut trace = started_transfer(false);
    trace.data(203.0, [12, 13]); // 10 and 11 are not captured
    trace.ack(303.0, 15); // nor is 14
    let late = trace.packet(303.1, 14, 1);
    trace.push(&late);
    trace.data(303.2, [15]);
    let report = trace.report();
    assert_eq!((report.counts.missing_bytes, report.counts.retransmissions), (2000, 0));
    assert_eq!((report.counts.out_of_order, report.counts.unique_bytes), (1, 14_000));
}

#[test]
fn rtt_excludes_ambiguous_samples() {
    let mut trace = started_transfer(false);
    trace.ack(311.0, 7); // 4 to 6 were sent at 201.1
    trace.data(700.0, [7]);
    trace.ack(701.0, 10);
    let report = trace.report();
    let karn = report.rtt.karn.unwrap();
    assert_eq!(karn.samples, 3);
    // Packets 0 and 1 took 100 ms, 2 and 3 101 ms, 4 to 6 109.9 ms.
    assert!((karn.mean_s - 0.310_9 / 3.0).abs() < 1e-9, "{karn:?}");
    assert!((karn.min_s - 0.100).abs() < 1e-9 && (karn.max_s - 0.109_9).abs() < 1e-9);
    assert_eq!(report.packets_per_ack(), Some(10.0 / 4.0));
}

#[test]
fn undelayed_max_excludes_delayed_acknowledgement() {
    let mut trace = started_transfer(false);
    trace.ack(302.5, 7); // three packets, after 101.4 ms
    trace.ack(303.7, 9); // two packets, after 101.6 ms
    trace.ack(342.1, 10); // one packet, after 140 ms: RFC 9293, section 3.8.6.3
    let rtt = trace.report().rtt;
    assert!((rtt.karn.unwrap().max_s - 0.140).abs() < 1e-9, "{rtt:?}");
    assert!((rtt.undelayed_max_s.unwrap() - 0.101_6).abs() < 1e-9, "{rtt:?}");
    let mut single = Trace::new();
    single.handshake(100.0, 100.1);
    single.data(101.0, 0..2);
    single.ack(201.0, 1);
    single.ack(241.0, 2);
    assert_eq!(single.report().rtt.undelayed_max_s, None);
}

#[test]
fn side_is_end_with_immediate_response() {
    for (answered, side) in
        [(100.0, TapSide::Sender), (0.1, TapSide::Receiver), (50.0, TapSide::Middle)]
    {
        let mut trace = Trace::new();
        trace.handshake(answered, 100.1);
        trace.data(101.0, 0..2);
        trace.ack(101.0 + answered, 2);
        let [report] = <[_; 1]>::try_from(trace.reports()).unwrap();
        assert_eq!(report.directions[0].side, side, "{answered}");
        assert!((report.handshake_rtt_s.unwrap() - 0.1001).abs() < 1e-9);
    }
    let mut without_handshake = Trace::new();
    without_handshake.data(0.0, 0..2);
    without_handshake.ack(100.0, 2);
    assert_eq!(without_handshake.report().side, TapSide::Unknown);
}

#[test]
fn w_max_is_none_without_open_window() {
    let mut silent = Trace::new();
    silent.data(0.0, 0..2);
    assert_eq!(silent.report().w_max_packets(), None);
    let mut closed = Trace { window: 0, ..Trace::new() };
    closed.data(0.0, 0..2);
    closed.ack(100.0, 2);
    assert_eq!(closed.report().w_max_packets(), None);
}

#[test]
fn windows_are_scaled_only_with_option_from_both_ends() {
    for (peer, window, unscaled) in [(Some(7), 128_000, false), (None, 1000, false)] {
        let mut trace = Trace { window: 1000, ..Trace::new() };
        let mut syn = trace.segment(0.0, SENDER);
        syn.sequence = trace.isn[SENDER];
        syn.flags = Flags(Flags::SYN);
        syn.options.window_scale = Some(2);
        trace.push(&syn);
        let mut answer = trace.segment(1.0, RECEIVER);
        answer.sequence = trace.isn[RECEIVER];
        answer.flags = Flags(Flags::SYN | Flags::ACK);
        answer.options.window_scale = peer;
        answer.window = 500;
        trace.push(&answer);
        trace.data(2.0, 0..3);
        trace.ack(3.0, 3);
        trace.data(3.1, 3..5);
        trace.ack(4.1, 5);
        let report = trace.report();
        assert_eq!((report.window_max_bytes, report.window_unscaled), (window, unscaled));
        assert_eq!(report.w_max_packets(), Some(window as f64 / 1000.0));
        assert_eq!(report.initial_window_packets, Some(3));
    }
}

#[test]
fn ends_are_reused_after_close() {
    let mut trace = started_transfer(false);
    trace.ack(303.0, 10);
    let mut fin = trace.packet(304.0, 10, 1);
    fin.payload = 0;
    fin.flags = Flags(Flags::FIN | Flags::ACK);
    trace.push(&fin);
    let mut fin = trace.segment(305.0, RECEIVER);
    fin.flags = Flags(Flags::FIN | Flags::ACK);
    trace.push(&fin);
    trace.isn = [5, 6];
    trace.syn(400.0, SENDER, false);
    trace.syn(3400.0, SENDER, false); // retransmitted, not a third connection
    let mut reset = trace.segment(3500.0, RECEIVER);
    reset.flags = Flags(Flags::RST | Flags::ACK);
    trace.push(&reset);
    let reports = trace.reports();
    let ends: Vec<_> = reports.iter().map(|report| report.end).collect();
    assert_eq!(ends, [ConnectionEnd::Closed, ConnectionEnd::Reset]);
    assert_eq!(reports[1].directions[0].counts.syn_retransmissions, 1);
    assert_eq!(reports[1].directions[0].counts.packets, 2);
}

#[test]
fn sender_of_syn_ack_is_not_opener() {
    let mut trace = Trace::new();
    trace.syn(1.0, RECEIVER, true);
    let reports = trace.reports();
    assert!(reports[0].syn_captured);
    assert_eq!(reports[0].directions[0].counts.packets, 0);
}

#[test]
fn idle_connections_are_evicted() {
    let limits = MemoryLimits { connections: 10, events: 10, points: 0 };
    let mut trace = Trace::new();
    trace.connections = Connections::new(limits);
    for port in 1000..1100 {
        let mut segment = trace.segment(f64::from(port), SENDER);
        segment.source.port = port;
        trace.push(&segment);
        assert!(trace.connections.table_mut().index.len() <= 10);
    }
    let evicted = trace.connections.take_finished();
    assert_eq!(evicted.len(), 90);
    assert!(evicted.iter().all(|report| report.end == ConnectionEnd::Evicted));
    // The oldest connection is evicted first.
    assert!(evicted.iter().map(|report| report.number).eq(0..90));
}

#[test]
fn event_quota_limits_all_connections() {
    let mut trace = Trace::new();
    trace.connections.table_mut().quota = EventQuota::new(5);
    // Each connection has two retransmissions; the first is a loss indication.
    let lossy = |trace: &mut Trace, port: u16| {
        for (ms, n) in [(0.0, 0), (1.0, 1), (2000.0, 0), (2001.0, 1)] {
            let mut data = trace.packet(f64::from(port) * 5000.0 + ms, n, 1);
            data.source.port = port;
            trace.push(&data);
            if n == 0 {
                let mut ack = trace.segment(f64::from(port) * 5000.0 + ms + 0.5, RECEIVER);
                ack.destination.port = port;
                trace.push(&ack);
            }
        }
        if port == 1 {
            let mut reset = trace.segment(f64::from(port) * 5000.0 + 2500.0, SENDER);
            reset.source.port = port;
            reset.flags = Flags(Flags::RST);
            trace.push(&reset);
        }
    };
    (1..=3).for_each(|port| lossy(&mut trace, port));
    // Much later: the quota of the first connection is available again once it is reported.
    for n in 0..100 {
        let mut other = trace.segment(140_000.0 + f64::from(n), SENDER);
        other.source.port = 9;
        trace.push(&other);
    }
    (30..=32).for_each(|port| lossy(&mut trace, port));
    let ended = trace.connections.take_finished();
    let reports: Vec<_> = ended.into_iter().chain(trace.reports()).collect();
    let kept = |report: &ConnectionReport| {
        let data = &report.directions[0];
        let kept = data.loss_times.len() + data.retransmitted.len();
        let events = data.causes.all_retransmissions()
            + data.indications.td
            + data.indications.timeout_count();
        assert_eq!(kept as u64 + data.omitted, events, "{data:?}");
        (report.number, kept)
    };
    let mut kept: Vec<_> = reports.iter().map(kept).collect();
    kept.sort_unstable();
    // The fourth connection had no losses.
    assert_eq!(kept, [(0, 3), (1, 2), (2, 0), (3, 0), (4, 3), (5, 0), (6, 0)]);
}

#[test]
fn ended_connection_is_reported_before_end_of_capture() {
    let mut trace = started_transfer(false);
    let mut reset = trace.segment(300.0, RECEIVER);
    reset.flags = Flags(Flags::RST);
    trace.push(&reset);
    for n in 0..100 {
        let mut other = trace.segment(200_000.0 + f64::from(n), SENDER);
        other.source.port = 9;
        trace.push(&other);
    }
    let ended = trace.connections.take_finished();
    assert_eq!(
        ended.iter().map(|report| (report.number, report.end)).collect::<Vec<_>>(),
        [(0, ConnectionEnd::Reset)]
    );
}

#[test]
fn batched_and_immediate_analysis_agree() {
    let reports = |limit: usize| {
        let mut trace = Trace::new();
        trace.connections.table_mut().small_limit = limit;
        for n in 0..150 {
            for port in 0..50 {
                let mut data = trace.packet(f64::from(n * 50 + u32::from(port)), n, 1);
                data.source.port = port;
                trace.push(&data);
                if n % 2 == 1 {
                    // Some acknowledgements are too low, so that later ones are duplicates.
                    let mut ack =
                        trace.segment(f64::from(n * 50 + u32::from(port)) + 0.5, RECEIVER);
                    let arrived = n + 1 - (n / 10 % 3) * u32::from(port % 3);
                    ack.acknowledgement = ack.acknowledgement.wrapping_add(arrived * PACKET);
                    ack.destination.port = port;
                    trace.push(&ack);
                }
            }
        }
        assert_eq!(trace.connections.connection_count(), 50);
        trace.reports()
    };
    let (batched, immediate) = (reports(0), reports(usize::MAX));
    assert_eq!(batched, immediate);
    assert!(batched.iter().all(|report| report.directions[0].counts.data_packets == 150));
    assert!(batched.iter().any(|report| report.directions[0].counts.duplicate_acks > 0));
}

prop_compose! {
    /// Arbitrary segments, with numbers near each other and near the limits.
    fn any_segment()(
        from in 0_usize..2,
        port in 0_u16..3,
        step in prop_oneof![Just(0), Just(u64::MAX / 2), 0_u64..2_000_000_000],
        number in prop_oneof![any::<u32>(), 0_u32..5000, (u32::MAX - 5000)..=u32::MAX],
        answer in prop_oneof![any::<u32>(), 0_u32..5000, (u32::MAX - 5000)..=u32::MAX],
        payload in prop_oneof![Just(0), Just(1), 0_u32..3000, Just(u32::MAX)],
        flags in prop_oneof![Just(Flags::ACK), any::<u8>()],
        window: u16,
        blocks in prop::collection::vec((any::<u32>(), 0_u32..9000), 0..=4),
        timestamps in prop::option::of((any::<u32>(), any::<u32>())),
        ip_id in prop::option::of(0_u16..50),
        scale in prop::option::of(any::<u8>()),
    ) -> (u64, Segment) {
        let mut segment = Trace::new().segment(0.0, from);
        let mut options = Options { timestamps, window_scale: scale, ..Options::default() };
        options.sack_blocks = blocks.len() as u8;
        for (slot, (left, length)) in blocks.into_iter().enumerate() {
            options.sack[slot] = (left, left.wrapping_add(length));
        }
        segment.source.port += port;
        segment.sequence = number;
        segment.acknowledgement = answer;
        (segment.payload, segment.ip_bytes) = (payload, payload);
        (segment.flags, segment.window) = (Flags(flags), window);
        (segment.options, segment.ip_id) = (options, ip_id);
        (step, segment)
    }
}

proptest! {
    #[test]
    fn counters_are_consistent_for_any_segments(segments in prop::collection::vec(any_segment(), 0..200)) {
        let mut connections = Connections::new(MemoryLimits { connections: 2, events: 5, points: 0 });
        let mut time = 0_u64;
        let pushed = segments.len() as u64;
        for (step, mut segment) in segments {
            time = time.wrapping_add(step);
            segment.time = time;
            connections.push_segment(&segment);
        }
        let mut reports = connections.take_finished();
        reports.extend(connections.into_remaining_reports());
        let mut counted = 0;
        for direction in reports.iter().flat_map(|report| &*report.directions) {
            let counts = &direction.counts;
            counted += counts.packets - counts.aggregated + counts.capture_duplicates;
            prop_assert!(counts.unique_bytes <= counts.bytes);
            prop_assert!(counts.retransmissions <= counts.data_packets);
            prop_assert_eq!(direction.causes.all_retransmissions(), counts.retransmissions);
            prop_assert!(direction.causes.timeout >= direction.indications.timeouts);
            if let Some(mean) = direction.flight_mean_bytes {
                prop_assert!(mean >= 0.0, "{mean}");
            }
            let sum: u64 = direction.intervals.iter().map(|interval| interval.data_packets).sum();
            prop_assert_eq!(sum, counts.data_packets);
            prop_assert!(direction.retransmitted.len() <= 5);
            if let Some(shares) = direction.limitation.shares {
                prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
                prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            }
            let sent: u64 = direction.rounds.iter().map(|round| round.sent_bytes).sum();
            prop_assert!(sent <= counts.bytes);
            let retransmitted: u32 = direction.rounds.iter().map(|round| round.retransmissions).sum();
            prop_assert_eq!(u64::from(retransmitted), counts.retransmissions);
        }
        prop_assert_eq!(counted, pushed);
    }

    /// Segments of delayed logs are analysed in the same order.
    #[test]
    fn delayed_analysis_gives_same_reports(segments in prop::collection::vec(any_segment(), 0..200)) {
        let reports = |limit: usize| {
            let mut connections = Connections::new(MemoryLimits { connections: 2, events: 5, points: 0 });
            connections.table_mut().small_limit = limit;
            let mut time = 0_u64;
            for (step, mut segment) in segments.clone() {
                time = time.wrapping_add(step);
                segment.time = time;
                connections.push_segment(&segment);
            }
            let mut reports = connections.take_finished();
            reports.extend(connections.into_remaining_reports());
            reports
        };
        prop_assert_eq!(reports(0), reports(usize::MAX));
    }

}

proptest! {
    // Each case starts a thread.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A thread produces the same reports in the same order.
    #[test]
    fn thread_gives_same_reports(
        segments in prop::collection::vec(any_segment(), 0..300),
        few in 0_usize..3,
    ) {
        let reports = |threaded: bool| {
            let limits = MemoryLimits { connections: 2, events: 5, points: 8 };
            let mut connections = Connections::with_thread(limits, threaded);
            connections.large = 40;
            connections.table_mut().small_limit = few;
            let mut time = 0_u64;
            for (step, mut segment) in segments.clone() {
                time = time.wrapping_add(step);
                segment.time = time;
                connections.push_segment(&segment);
            }
            let mut reports = connections.take_finished();
            reports.extend(connections.into_remaining_reports());
            reports
        };
        prop_assert_eq!(reports(false), reports(true));
    }
}

#[test]
fn raised_duplicate_threshold_classifies_fast_retransmit() {
    for raised in [4, 5, 8] {
        let mut trace = started_transfer(false);
        trace.data(202.2, 10..14);
        // The duplicates are so late that, by the RTT estimate, the timer could have expired.
        (0..raised).for_each(|n| trace.ack(500.0 + 20.0 * f64::from(n), 4));
        trace.data(500.2 + 20.0 * f64::from(raised - 1), [4]);
        trace.ack(900.0, 14);
        let report = trace.report();
        assert_eq!(causes(&report), [RetransCause::Duplicates], "{raised}");
        assert_eq!((report.indications.td, report.indications.timeout_count()), (1, 0), "{raised}");
    }
    // The last duplicate has no reaction.
    let mut trace = started_transfer(false);
    (0..5).for_each(|n| trace.ack(302.0 + f64::from(n), 4));
    trace.data(602.0, [4]);
    assert_eq!(causes(&trace.report()), [RetransCause::Timeout { depth: 1 }]);
}

#[test]
fn out_of_window_segment_is_ignored() {
    let mut trace = started_transfer(false);
    let mut outside = trace.packet(203.0, 10, 1);
    outside.sequence = outside.sequence.wrapping_add(2_000_000_000);
    trace.push(&outside);
    trace.data(204.0, 10..12);
    trace.ack(304.0, 12);
    let report = trace.report();
    assert_eq!((report.counts.out_of_window, report.counts.missing_bytes), (1, 0));
    assert_eq!((report.counts.unique_bytes, report.counts.bytes), (12_000, 13_000));
    assert_eq!((report.counts.retransmissions, report.flight_max_bytes), (0, 8000));
}

#[test]
fn sequence_jump_is_followed() {
    let mut trace = started_transfer(false);
    let far = 1_500_000; // packets
    trace.data(203.0, far..far + 4);
    trace.ack(303.0, far + 4);
    trace.ack(303.1, far + 4);
    trace.data(303.2, far + 4..far + 6);
    trace.ack(403.2, far + 6);
    let report = trace.report();
    assert_eq!(report.counts.out_of_window, 2);
    assert_eq!((report.counts.bytes, report.counts.unique_bytes), (16_000, 16_000));
    assert_eq!((report.counts.missing_bytes, report.counts.retransmissions), (0, 0));
    assert!(report.flight_max_bytes <= 8000, "{}", report.flight_max_bytes);
}

#[test]
fn flight_is_limited_to_maximum_window() {
    let mut trace = Trace::new();
    trace.handshake(100.0, 100.1);
    // The following acknowledgements are missing.
    for n in 0..40 {
        let mut data = trace.packet(101.0 + f64::from(n), n * 60_000, 1);
        data.payload = 60_000_000;
        trace.push(&data);
    }
    let report = trace.report();
    assert_eq!((report.flight_max_bytes, report.counts.out_of_window), (1 << 30, 0));
}

#[test]
fn single_packet_has_no_rate() {
    for (packets, rate) in [(1, None), (2, Some(16_000.0 / 0.101))] {
        let mut trace = Trace::new();
        trace.handshake(100.0, 100.1);
        trace.data(101.0, 0..packets);
        trace.ack(202.0, packets);
        let report = trace.report();
        assert!((report.duration_s().expect("acknowledged") - 0.101).abs() < 1e-9);
        assert_eq!(report.throughput_bps().map(f64::round), rate.map(f64::round));
        assert_eq!(report.goodput_bps(), report.throughput_bps());
    }
}

#[test]
fn constant_identification_does_not_identify_copies() {
    let constant = |mut segment: Segment| {
        segment.ip_id = Some(7);
        segment
    };
    let mut trace = Trace::new();
    trace.handshake(1.0, 1.1);
    for n in 0..5 {
        let data = constant(trace.packet(2.0 + f64::from(n), n, 1));
        trace.push(&data);
    }
    let repeated = constant(trace.packet(9.0, 2, 1)); // 5 ms after the first transmission
    trace.push(&repeated);
    let copy = constant(trace.packet(9.001, 2, 1)); // 1 µs later
    trace.push(&copy);
    let report = trace.report();
    assert_eq!((report.counts.retransmissions, report.counts.capture_duplicates), (1, 1));
}

#[test]
fn rtt_is_withheld_without_bare_acknowledgements() {
    let report = |bare: bool| {
        let mut trace = Trace::new();
        trace.handshake(20.0, 20.1);
        for n in 0..4 {
            let since = 1000.0 + 5000.0 * f64::from(n);
            trace.data(since, [n]);
            if bare {
                trace.ack(since + 40.0, n + 1);
            }
            // The next request, seconds later.
            let mut request = trace.segment(since + 4900.0, RECEIVER);
            request.payload = 100;
            request.sequence = request.sequence.wrapping_add(100 * n);
            request.acknowledgement = request.acknowledgement.wrapping_add((n + 1) * PACKET);
            trace.push(&request);
        }
        trace.report()
    };
    let complete = report(true).rtt;
    assert!(!complete.withheld && (complete.karn.expect("samples").mean_s - 0.040).abs() < 1e-6);
    let without = report(false).rtt;
    assert!(without.withheld);
    assert_eq!((without.karn, without.sender, without.over_time_s), (None, None, None));
}

#[test]
fn rtt_excludes_acknowledgement_of_uncaptured_bytes() {
    let mut trace = started_transfer(false);
    trace.ack(302.0, 10);
    trace.data(303.0, [10, 12, 13]); // 11 is lost before the tap, and its retransmission is not captured
    (0..3).for_each(|_| trace.ack(403.0, 11));
    trace.ack(463.0, 14);
    let report = trace.report();
    assert_eq!(report.counts.missing_bytes, 1000);
    let karn = report.rtt.karn.expect("samples");
    assert!(karn.max_s < 0.102, "{karn:?}");
}

#[test]
fn rtt_excludes_acknowledgement_with_uncaptured_newest_bytes() {
    let mut trace = started_transfer(false);
    trace.ack(302.0, 10);
    trace.data(303.0, [10]);
    trace.data(9000.0, [500]); // the data between are missing
    trace.ack(9000.1, 500);
    trace.ack(9100.0, 501);
    let report = trace.report();
    assert_eq!(report.counts.missing_bytes, 489_000);
    let karn = report.rtt.karn.expect("samples");
    assert!(karn.max_s < 0.102, "{karn:?}");
}

/// Rounds of 100 ms; each acknowledgement covers two packets and triggers `more` packets beyond
/// those.
fn slow_start(more: u32) -> DirectionReport {
    let mut trace = Trace::new();
    trace.handshake(100.0, 100.1);
    let (mut acked, mut sent, mut flight) = (0, 10, 10);
    trace.data(200.0, 0..10);
    for round in 1..5 {
        let ms = 200.0 + 100.0 * f64::from(round);
        for pair in 0..flight / 2 {
            acked += 2;
            trace.ack(ms + 0.01 * f64::from(pair), acked);
            trace.data(ms + 0.01 * f64::from(pair) + 0.001, sent..sent + 2 + more);
            sent += 2 + more;
        }
        flight = sent - acked;
    }
    trace.report()
}

#[test]
fn slow_start_growth_distinguishes_bytes_from_acknowledgements() {
    for (more, min, max) in [(2, 0.9, 1.1), (1, 0.4, 0.6)] {
        let report = slow_start(more);
        let growth = report.slow_start_bytes_per_acked_byte().expect("no other limit");
        assert!(growth > min && growth < max, "{growth}");
        assert!((report.slow_start_acks_per_segment().expect("acknowledged") - 0.5).abs() < 0.05);
    }
}

/// The first packet is lost or late: the receiver acknowledges the others without new data.
#[test]
fn initial_window_ends_at_duplicate_acknowledgement() {
    for sack in [false, true] {
        let mut trace = Trace { sack, ..Trace::new() };
        trace.handshake(100.0, 100.1);
        trace.ack(150.0, 0); // nothing was sent yet
        trace.data(200.0, 0..10);
        if sack {
            trace.window += 100; // not a duplicate as defined in RFC 5681
            trace.sack(300.0, 0, [(1, 2)]);
        } else {
            trace.ack(300.0, 0);
        }
        trace.data(300.1, 10..12);
        trace.data(310.0, [0]);
        trace.ack(410.0, 12);
        assert_eq!(trace.report().initial_window_packets, Some(10), "SACK {sack}");
    }
}

#[test]
fn simultaneous_open_with_data_has_no_losses() {
    let mut trace = Trace::new();
    for (ms, from, answer) in
        [(0.0, SENDER, false), (1.0, RECEIVER, false), (50.0, SENDER, true), (51.0, RECEIVER, true)]
    {
        let mut syn = trace.segment(ms, from);
        syn.sequence = trace.isn[from];
        syn.flags = Flags(Flags::SYN | if answer { Flags::ACK } else { 0 });
        syn.payload = 100;
        syn.ip_bytes = 140;
        syn.acknowledgement = trace.isn[1 - from].wrapping_add(101);
        trace.push(&syn);
    }
    for (ms, from) in [(100.0, SENDER), (101.0, RECEIVER)] {
        let mut ack = trace.segment(ms, from);
        ack.sequence = trace.isn[from].wrapping_add(101);
        ack.acknowledgement = trace.isn[1 - from].wrapping_add(101);
        ack.payload = 10;
        trace.push(&ack);
    }
    let [report] = <[_; 1]>::try_from(trace.reports()).expect("one connection");
    for direction in *report.directions {
        let DirectionCounts { unique_bytes, missing_bytes, syn_retransmissions, .. } =
            direction.counts;
        assert_eq!((unique_bytes, missing_bytes, syn_retransmissions), (110, 0, 0));
        assert_eq!((direction.indications.timeout_count(), direction.indications.to_paper), (0, 0));
    }
}

#[test]
fn unacknowledged_syn_data_are_not_losses() {
    let mut trace = Trace::new();
    for (ms, from, answer) in [(0.0, SENDER, false), (50.0, RECEIVER, true)] {
        let mut syn = trace.segment(ms, from);
        syn.sequence = trace.isn[from];
        syn.flags = Flags(Flags::SYN | if answer { Flags::ACK } else { 0 });
        syn.payload = if answer { 0 } else { PACKET };
        trace.push(&syn); // the SYN-ACK covers only the SYN
    }
    trace.data(50.1, [0, 1]);
    trace.ack(100.1, 2);
    let report = trace.report();
    assert_eq!((report.counts.retransmissions, report.counts.unique_bytes), (1, 2000));
    assert_eq!((report.indications.timeout_count(), report.indications.timeouts), (0, 0));
    assert_eq!((report.indications.td_paper, report.indications.to_paper), (0, 0));
}

#[test]
fn connections_of_one_packet_are_counted() {
    let max = 1000;
    let limits = MemoryLimits { connections: max, ..MemoryLimits::default() };
    let mut connections = Connections::new(limits);
    let mut trace = Trace::new();
    let mut packets = 0;
    for n in 0..10_000_u16 {
        let mut data = trace.packet(f64::from(n), 0, 1);
        data.source.port = n;
        connections.push_segment(&data);
        packets += connections.take_finished().iter().map(one_data_packet).sum::<u64>();
    }
    assert_eq!(connections.connection_count(), 10_000);
    assert!(connections.table_mut().entries.iter().all(|entry| entry.has_bit(SINGLE)));
    assert!(connections.table_mut().entries.len() <= max);
    packets +=
        connections.into_remaining_reports().map(|report| one_data_packet(&report)).sum::<u64>();
    assert_eq!(packets, 10_000);
}

fn one_data_packet(report: &ConnectionReport) -> u64 {
    assert!(matches!(report.end, ConnectionEnd::Evicted | ConnectionEnd::Open));
    let [data, back] = &*report.directions;
    assert_eq!((data.counts.bytes, back.counts.packets), (1000, 0));
    data.counts.data_packets
}

#[test]
fn scan_is_evicted_before_transfer() {
    let mut connections =
        Connections::new(MemoryLimits { connections: 50, ..MemoryLimits::default() });
    let mut trace = Trace::new();
    for n in 0..3 {
        let data = trace.packet(f64::from(n), n, 1);
        connections.push_segment(&data);
    }
    for n in 0..1000_u16 {
        let mut syn = trace.segment(10.0 + f64::from(n), SENDER);
        syn.flags = Flags(Flags::SYN);
        syn.source.port = 10_000 + n;
        connections.push_segment(&syn);
    }
    let data = trace.packet(2000.0, 3, 1);
    connections.push_segment(&data);
    let reports: Vec<_> = connections
        .take_finished()
        .into_iter()
        .chain(connections.into_remaining_reports())
        .collect();
    let transfer = reports.iter().find(|report| report.number == 0).expect("followed");
    assert_eq!(transfer.directions[0].counts.data_packets, 4);
    assert_eq!(reports.len(), 1001);
}

/// Regression: each evicted SYN counted as unanswered, although its answer could still come.
#[test]
fn evicted_syn_is_unanswered_only_after_the_first_rto() {
    for (apart_ms, unanswered) in [(1.0, 0), (200.0, 990)] {
        let mut connections =
            Connections::new(MemoryLimits { connections: 10, ..MemoryLimits::default() });
        let mut trace = Trace::new();
        for n in 0..1000_u16 {
            let mut syn = trace.segment(apart_ms * f64::from(n), SENDER);
            syn.flags = Flags(Flags::SYN);
            syn.source.port = 10_000 + n;
            connections.push_segment(&syn);
        }
        let evicted = connections.take_finished();
        let reports = evicted.into_iter().chain(connections.into_remaining_reports());
        let failed = reports.filter(|report| report.failure_details.is_some()).count();
        assert!(failed.abs_diff(unanswered) < 10, "{failed} failures");
    }
}

/// Part of an aggregated frame is acknowledged before its other copy is captured.
#[test]
fn flight_of_acknowledged_frame_is_not_negative() {
    let mut trace = started_transfer(false);
    let frame = trace.packet(203.0, 10, 8);
    trace.push(&frame);
    trace.ack(303.0, 18);
    for n in 0..20 {
        let again = trace.packet(310.0 + f64::from(n), 10, 8);
        trace.push(&again);
    }
    let report = trace.report();
    assert!(report.flight_mean_bytes.is_some_and(|mean| mean > 0.0));
}

/// The options of a direction are those that both ends support.
#[test]
fn options_of_direction_are_those_of_both_ends() {
    for (announced, sack, mss) in
        [(Some(1200), true, 1200), (Some(9000), false, 1460), (None, true, 536)]
    {
        let mut trace = Trace::new();
        for (ms, from) in [(0.0, SENDER), (1.0, RECEIVER)] {
            let mut syn = trace.segment(ms, from);
            syn.sequence = trace.isn[from];
            syn.flags = Flags(if from == SENDER { Flags::SYN } else { Flags::SYN | Flags::ACK });
            syn.options.mss = if from == SENDER { Some(1460) } else { announced };
            syn.options.sack_permitted = from == SENDER || sack;
            syn.options.window_scale = (from == SENDER).then_some(7);
            trace.push(&syn);
        }
        trace.data(2.0, 0..2);
        trace.ack(3.0, 2);
        let options = trace.report().options;
        assert_eq!((options.mss, options.sack), (Some(mss), sack));
        assert_eq!((options.window_scale, options.timestamps), (None, false));
    }
}

/// All data were sent at once, so that no window was a limit; the sender may have had more room.
#[test]
fn single_flight_is_not_limited_by_slow_start() {
    for (rounds, limit) in [(1, TransferLimit::Unknown), (4, TransferLimit::SlowStart)] {
        let mut trace = Trace::new();
        trace.handshake(100.0, 100.1);
        let mut sent = 0;
        for round in 0..rounds {
            let start = 101.0 + 100.0 * f64::from(round);
            trace.data(start, sent..sent + (2 << round));
            sent += 2 << round;
            trace.ack(start + 99.9, sent);
        }
        let report = trace.report();
        assert_eq!(report.limitation.limited_by, limit);
        assert_eq!(report.initial_window_packets, (rounds > 1).then_some(2));
    }
}

/// Away from the sender, a hidden loss explains one timeout, and not all pauses of the application.
#[test]
fn single_loss_does_not_hide_application() {
    for (losses, shares) in [(1, 0.9..1.0), (12, 0.5..0.7)] {
        let mut trace = Trace { sack: true, ..Trace::new() };
        trace.handshake(0.3, 20.3);
        let mut n = 0;
        for message in 0..20 {
            let start = 5000.0 * (message + 1) as f64;
            if message < losses {
                trace.data(start, [n + 1]);
                trace.sack(start + 0.1, n, [(n + 1, n + 2)]);
                trace.data(start + 1500.0, [n]);
                trace.ack(start + 1500.1, n + 2);
                n += 2;
            } else {
                trace.data(start, [n]);
                trace.ack(start + 0.1, n + 1);
                n += 1;
            }
        }
        let report = trace.report();
        assert_eq!(report.counts.retransmissions, losses);
        assert_ne!(report.side, TapSide::Sender);
        let application = report.limitation.shares.expect("time passed")[0];
        assert!(shares.contains(&application), "{application}");
    }
}

/// Responses to requests, each in one flight, are not limited by slow start; the same data as one
/// transfer are.
#[test]
fn responses_of_one_flight_are_not_limited_by_slow_start() {
    for requests in [true, false] {
        let mut trace = Trace::new();
        trace.handshake(100.0, 100.1);
        for n in 0..4 {
            let start = 101.0 + 100.0 * f64::from(n);
            trace.data(start, 3 * n..3 * n + 3);
            let mut ack = trace.segment(start + 99.9, RECEIVER);
            ack.acknowledgement = ack.acknowledgement.wrapping_add((3 * n + 3) * PACKET);
            if requests {
                ack.sequence = ack.sequence.wrapping_add(100 * n);
                ack.payload = 100;
            }
            trace.push(&ack);
        }
        let limit = trace.report().limitation.limited_by;
        assert_eq!(limit == TransferLimit::Unknown, requests, "{limit:?}");
    }
}
