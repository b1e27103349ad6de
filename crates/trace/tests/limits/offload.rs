//! Tests with frames of several packets, as captured at a host with segmentation offload.

use crate::path::{Capture, FULL};

#[test]
fn frame_is_acknowledged_in_parts() {
    let mut capture = Capture::new(64);
    capture.handshake(50.0, 50.01);
    for round in 0..3 {
        let (ms, sent) = (60.0 + 50.0 * f64::from(round), 10 * FULL * round);
        capture.data(ms, 10 * FULL);
        for part in 1..=5 {
            capture.ack_bytes(ms + 49.0 + 0.1 * f64::from(part), sent + 2 * part * FULL);
        }
    }
    let report = capture.report();
    let counts = report.counts;
    assert_eq!((counts.data_packets, counts.super_segments, counts.aggregated), (30, 3, 27));
    assert_eq!((counts.acks, counts.acknowledged_packets), (15, 30));
    assert_eq!((report.initial_window_packets, report.segment_bytes), (Some(10), FULL));
    let acked: u64 = report.rounds.iter().map(|round| round.acked_bytes).sum();
    assert_eq!(acked, u64::from(30 * FULL));
}

#[test]
fn partial_packet_of_frame_counts_as_packet() {
    let mut capture = Capture::new(64);
    capture.handshake(50.0, 50.01);
    capture.data(60.0, 3 * FULL + 1);
    capture.ack_bytes(110.0, 3 * FULL + 1);
    let counts = capture.report().counts;
    assert_eq!((counts.data_packets, counts.acknowledged_packets), (4, 4));
}
