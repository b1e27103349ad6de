//! CoDel as traces of packets: times in milliseconds, a packet of 1500 bytes a millisecond.

use super::*;
use crate::packet::Ecn;

const MS: Nanos = MILLISECOND;

/// A queue that a packet leaves in each millisecond, filled beforehand.
struct Trace {
    queue: Codel,
    dropped: Vec<Packet>,
    now: Nanos,
}

impl Trace {
    fn new(config: CodelConfig) -> Self {
        let limits = Limits::default();
        Self { queue: Codel::new(limits, config), dropped: Vec::new(), now: 0 }
    }

    fn arrive(&mut self, packets: u32, ecn: Ecn) {
        for token in 0..packets {
            let packet = Packet::new(token, 0, 1500).with_ecn(ecn);
            self.queue.enqueue(self.now, packet, &mut self.dropped);
        }
    }

    /// Serves a packet each millisecond until `end`; when packets were dropped, and when marked.
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
fn rfc_8289_5_1_nothing_is_dropped_within_an_interval() {
    let mut trace = Trace::new(rfc());
    trace.arrive(100, Ecn::NotEct);
    // 100 packets take 100 ms: they are gone before the interval that begins at 5 ms is over.
    assert_eq!(trace.serve_until(150 * MS).0, []);
}

#[test]
fn rfc_8289_5_5_drops_come_at_the_interval_over_the_square_root_of_their_count() {
    let mut trace = Trace::new(rfc());
    trace.arrive(2000, Ecn::NotEct);
    let (drops, _) = trace.serve_until(600 * MS);
    // Above target from 5 ms on, so the first at 105 ms, the next one interval later, then after
    // 100 / sqrt(2) = 70.7, 100 / sqrt(3) = 57.7, 50, 44.7 ... ms, at the next departure each.
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
fn rfc_8289_5_6_linux_drops_when_the_interval_has_passed_and_not_when_it_ends() {
    let mut trace = Trace::new(CodelConfig::default());
    trace.arrive(2000, Ecn::NotEct);
    // And its first Newton step takes 1 to 1/2 where 0.71 is right: 50 ms after the second.
    assert_eq!(trace.serve_until(300 * MS).0, [106, 206, 256]);
}

#[test]
fn rfc_8289_5_6_the_last_full_packet_is_never_dropped() {
    for backlog in [1, 2] {
        let mut trace = Trace::new(rfc());
        let mut drops = Vec::new();
        for _ in 0..100 {
            // They wait for 50 ms, far above the target, but at most one more is behind them.
            trace.arrive(backlog, Ecn::NotEct);
            trace.now += 50 * MS;
            for _ in 0..backlog {
                drops.extend(trace.serve_until(trace.now + MS).0);
            }
        }
        assert_eq!(drops, []);
    }
    // Nor where one of full size is behind each of them.
    let mut trace = Trace::new(rfc());
    trace.arrive(1, Ecn::NotEct);
    for _ in 0..100 {
        trace.arrive(1, Ecn::NotEct);
        trace.now += 50 * MS;
        assert_eq!(trace.serve_until(trace.now + MS).0, []);
    }
}

#[test]
fn rfc_8289_5_6_a_short_wait_ends_the_dropping_state() {
    let mut trace = Trace::new(rfc());
    trace.arrive(220, Ecn::NotEct);
    let (drops, _) = trace.serve_until(230 * MS);
    assert_eq!(drops, [105, 205]);
    // The queue has been empty: a new one is above target for an interval before a packet goes.
    trace.arrive(300, Ecn::NotEct);
    let (drops, _) = trace.serve_until(360 * MS);
    assert_eq!(drops, [335]);
}

#[test]
fn rfc_8289_5_6_a_cycle_soon_after_the_last_begins_with_its_count() {
    let mut trace = Trace::new(rfc());
    trace.arrive(620, Ecn::NotEct);
    let (drops, _) = trace.serve_until(640 * MS);
    let count = drops.len() as u32;
    assert_eq!(trace.queue.control.count, count);
    trace.arrive(500, Ecn::NotEct);
    let (drops, _) = trace.serve_until(1000 * MS);
    // The count of the last cycle, less the one that it began with.
    let begins = f64::from(count - 1);
    assert_eq!(drops[0], 745);
    assert_eq!(drops[1], (745.0 + 100.0 / begins.sqrt()).ceil() as u64);

    // 16 intervals after the last drop would have been due, it begins with one.
    trace.now = 5000 * MS;
    trace.serve_until(5001 * MS);
    trace.now = 5000 * MS;
    trace.arrive(300, Ecn::NotEct);
    assert_eq!(trace.serve_until(5250 * MS).0, [5105, 5205]);
}

#[test]
fn a_cycle_after_a_restart_begins_with_one_drop() {
    let mut trace = Trace::new(rfc());
    trace.arrive(620, Ecn::NotEct);
    trace.serve_until(640 * MS);
    trace.queue.restart(640 * MS);
    trace.arrive(500, Ecn::NotEct);
    assert_eq!(trace.serve_until(900 * MS).0, [745, 845]);
}

#[test]
fn rfc_8289_5_6_a_large_backlog_makes_several_drops_due_at_once() {
    let mut trace = Trace::new(rfc());
    trace.arrive(50_000, Ecn::NotEct);
    trace.serve_until(20_000 * MS);
    // A stall: the next departure finds several drops due.
    let before = trace.dropped.len();
    trace.now += 40 * MS;
    trace.serve_until(trace.now + MS);
    assert!(trace.dropped.len() > before + 3, "{}", trace.dropped.len() - before);
}

#[test]
fn rfc_8289_3_marks_take_the_place_of_drops_one_a_departure() {
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
fn linux_ce_threshold_marks_what_waited_longer() {
    let config = CodelConfig { ce_threshold: Some(3 * MS), ..CodelConfig::default() };
    let mut trace = Trace::new(config);
    trace.arrive(6, Ecn::Ect1);
    assert_eq!(trace.serve_until(10 * MS), (vec![], vec![4, 5]));
}

#[test]
fn linux_newton_steps_come_near_the_inverse_root() {
    let mut control = Control { inverse_root: u16::MAX, count: 1, ..Control::START };
    for count in 2..400_u32 {
        control.count = count;
        control.newton_step();
        let exact = 65536.0 / f64::from(count).sqrt();
        let off = (f64::from(control.inverse_root) - exact).abs() / exact;
        // One step from the value for the count before: rough for the first few.
        assert!(off < if count < 5 { 0.3 } else { 0.02 }, "{count}: {off}");
    }
}

#[test]
fn a_full_buffer_drops_what_arrives() {
    let mut queue = Codel::new(Limits::packets(2), CodelConfig::default());
    let mut dropped = Vec::new();
    let mut offer = |token| queue.enqueue(0, Packet::new(token, 0, 1500), &mut dropped);
    assert_eq!([offer(0), offer(1)], [Verdict::Accepted; 2]);
    assert_eq!(offer(2), Verdict::Dropped(Reason::Full));
    assert_eq!(dropped[0].token, 2);
}
