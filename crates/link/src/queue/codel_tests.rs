//! Tests of CoDel with traces of 1500-byte packets, one per millisecond.

use super::*;
use crate::packet::Ecn;

const MS: Nanos = MILLISECOND;

/// A queue that is filled in advance and sends one packet per millisecond.
struct Trace {
    queue: Codel,
    dropped: Vec<Packet>,
    now: Nanos,
}

impl Trace {
    fn new(config: CodelConfig) -> Self {
        let limits = BufferLimits::default();
        Self { queue: Codel::new(limits, config), dropped: Vec::new(), now: 0 }
    }

    fn arrive(&mut self, packets: u32, ecn: Ecn) {
        for token in 0..packets {
            let packet = Packet::new(token, 0, 1500).with_ecn(ecn);
            self.queue.enqueue(self.now, packet, &mut self.dropped);
        }
    }

    /// Serves one packet per millisecond until `end`; returns the times of drops and marks in ms.
    fn serve_until(&mut self, end: Nanos) -> (Vec<u64>, Vec<u64>) {
        let (mut drops, mut marks) = (Vec::new(), Vec::new());
        while self.now < end {
            let before = self.dropped.len();
            let packet = self.queue.dequeue(self.now, &mut self.dropped);
            drops.extend((before..self.dropped.len()).map(|_| self.now / MS));
            marks.extend(packet.filter(|packet| packet.marked).map(|_| self.now / MS));
            self.now += MS;
        }
        (drops, marks)
    }
}

fn rfc() -> CodelConfig {
    CodelConfig { rules: CodelRules::Rfc8289, ..CodelConfig::default() }
}

#[test]
fn rfc_8289_5_1_no_drops_within_first_interval() {
    let mut trace = Trace::new(rfc());
    trace.arrive(100, Ecn::NotEct);
    // 100 packets leave within 100 ms, before the end of the interval that begins at 5 ms.
    assert_eq!(trace.serve_until(150 * MS).0, []);
}

#[test]
fn rfc_8289_5_5_drop_spacing_is_interval_over_sqrt_count() {
    let mut trace = Trace::new(rfc());
    trace.arrive(2000, Ecn::NotEct);
    let (drops, _) = trace.serve_until(600 * MS);
    // Sojourn times exceed the target from 5 ms onwards, so the first drop is at 105 ms and the
    // second one interval later. The following spacings are 100 / sqrt(2) = 70.7, 100 / sqrt(3) =
    // 57.7, 50, 44.7 ... ms, each rounded up to the next departure.
    let mut due = 105.0;
    let expected: Vec<u64> = (0..8)
        .map(|count| {
            if count > 0 {
                due += 100.0 / f64::from(count).sqrt();
            }
            due.ceil() as u64
        })
        .collect();
    assert_eq!(drops[..8], expected);
}

#[test]
fn rfc_8289_5_6_linux_drops_after_interval_is_exceeded() {
    let mut trace = Trace::new(CodelConfig::default());
    trace.arrive(2000, Ecn::NotEct);
    // Linux's first Newton step yields 1/2 instead of 0.71, so the third drop is 50 ms after the
    // second.
    assert_eq!(trace.serve_until(300 * MS).0, [106, 206, 256]);
}

#[test]
fn rfc_8289_5_6_last_full_packet_is_never_dropped() {
    for backlog in [1, 2] {
        let mut trace = Trace::new(rfc());
        let mut drops = Vec::new();
        for _ in 0..100 {
            // The sojourn time of 50 ms is above the target, but at most one packet is behind each
            // packet.
            trace.arrive(backlog, Ecn::NotEct);
            trace.now += 50 * MS;
            for _ in 0..backlog {
                drops.extend(trace.serve_until(trace.now + MS).0);
            }
        }
        assert_eq!(drops, []);
    }
    // The same holds if there is always one full-sized packet behind.
    let mut trace = Trace::new(rfc());
    trace.arrive(1, Ecn::NotEct);
    for _ in 0..100 {
        trace.arrive(1, Ecn::NotEct);
        trace.now += 50 * MS;
        assert_eq!(trace.serve_until(trace.now + MS).0, []);
    }
}

#[test]
fn rfc_8289_5_6_short_sojourn_time_ends_dropping_state() {
    let mut trace = Trace::new(rfc());
    trace.arrive(220, Ecn::NotEct);
    let (drops, _) = trace.serve_until(230 * MS);
    assert_eq!(drops, [105, 205]);
    // After an empty queue, the target must again be exceeded for an interval before a drop.
    trace.arrive(300, Ecn::NotEct);
    let (drops, _) = trace.serve_until(360 * MS);
    assert_eq!(drops, [335]);
}

#[test]
fn rfc_8289_5_6_early_reentry_into_dropping_state_keeps_count() {
    let mut trace = Trace::new(rfc());
    trace.arrive(620, Ecn::NotEct);
    let (drops, _) = trace.serve_until(640 * MS);
    let count = drops.len() as u32;
    assert_eq!(trace.queue.control.count, count);
    trace.arrive(500, Ecn::NotEct);
    let (drops, _) = trace.serve_until(1000 * MS);
    // The count of the last dropping state, minus its initial count.
    let begins = f64::from(count - 1);
    assert_eq!(drops[0], 745);
    assert_eq!(drops[1], (745.0 + 100.0 / begins.sqrt()).ceil() as u64);

    // 16 intervals after the last scheduled drop, the count begins at 1.
    trace.now = 5000 * MS;
    trace.serve_until(5001 * MS);
    trace.now = 5000 * MS;
    trace.arrive(300, Ecn::NotEct);
    assert_eq!(trace.serve_until(5250 * MS).0, [5105, 5205]);
}

#[test]
fn restart_resets_count_of_drops() {
    let mut trace = Trace::new(rfc());
    trace.arrive(620, Ecn::NotEct);
    trace.serve_until(640 * MS);
    trace.queue.reset_when_empty(640 * MS);
    trace.arrive(500, Ecn::NotEct);
    assert_eq!(trace.serve_until(900 * MS).0, [745, 845]);
}

#[test]
fn rfc_8289_5_6_several_drops_are_due_after_a_stall() {
    let mut trace = Trace::new(rfc());
    trace.arrive(50_000, Ecn::NotEct);
    trace.serve_until(20_000 * MS);
    // After a stall, several drops are due at the next departure.
    let before = trace.dropped.len();
    trace.now += 40 * MS;
    trace.serve_until(trace.now + MS);
    assert!(trace.dropped.len() > before + 3, "{}", trace.dropped.len() - before);
}

#[test]
fn rfc_8289_3_capable_packets_are_marked_instead_of_dropped() {
    let config = CodelConfig { ecn: true, ..rfc() };
    let mut trace = Trace::new(config);
    trace.arrive(2000, Ecn::Ect0);
    let (drops, marks) = trace.serve_until(300 * MS);
    assert_eq!(drops, []);
    assert_eq!(marks, [105, 205, 276]);
    let mut trace = Trace::new(config);
    trace.arrive(2000, Ecn::NotEct);
    let (drops, marks) = trace.serve_until(300 * MS);
    assert_eq!((drops, marks), (vec![105, 205, 276], vec![]));
}

#[test]
fn linux_ce_threshold_marks_packets_with_longer_sojourn() {
    let config = CodelConfig { ce_threshold: Some(3 * MS), ..CodelConfig::default() };
    let mut trace = Trace::new(config);
    trace.arrive(6, Ecn::Ect1);
    assert_eq!(trace.serve_until(10 * MS), (vec![], vec![4, 5]));
    for (ecn, marks) in [(Ecn::Ect1, vec![4, 5]), (Ecn::Ect0, vec![])] {
        let mut trace = Trace::new(CodelConfig { ce_threshold_ect1: true, ..config });
        trace.arrive(6, ecn);
        assert_eq!(trace.serve_until(10 * MS), (vec![], marks));
    }
}

#[test]
fn linux_newton_steps_approximate_inverse_root() {
    let mut control = CodelState { inverse_root: u16::MAX, count: 1, ..CodelState::INITIAL };
    for count in 2..400_u32 {
        control.count = count;
        control.newton_step();
        let exact = 65536.0 / f64::from(count).sqrt();
        let error = (f64::from(control.inverse_root) - exact).abs() / exact;
        // One step from the value of the preceding count is inaccurate for small counts.
        assert!(error < if count < 5 { 0.3 } else { 0.02 }, "{count}: {error}");
    }
}

#[test]
fn full_buffer_drops_arriving_packet() {
    let mut queue = Codel::new(BufferLimits::limit_packets(2), CodelConfig::default());
    let mut dropped = Vec::new();
    let mut offer = |token| queue.enqueue(0, Packet::new(token, 0, 1500), &mut dropped);
    assert_eq!([offer(0), offer(1)], [EnqueueOutcome::Accepted; 2]);
    assert_eq!(offer(2), EnqueueOutcome::Dropped(DropReason::Full));
    assert_eq!(dropped[0].token, 2);
}
