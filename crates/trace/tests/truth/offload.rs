//! Captures of servers with segmentation offload, at the sender and behind it, beside the kernel's counts.

use tcpcast_trace::Limit;

use super::{captures, transfer};

#[test]
fn packets_are_the_same_with_offload_and_without() {
    let Some(folder) = captures() else { return };
    let folder = folder.join("offload");
    let truth = std::fs::read_to_string(folder.join("truth.csv")).expect("a table");
    for line in truth.lines().skip(1) {
        // A description in between may contain commas.
        let name = line.split(',').next().expect("a scenario");
        let Some(retransmitted) = line.rsplit(',').nth(2).and_then(|n| n.parse::<f64>().ok())
        else {
            continue;
        };
        let at = |tap: &str| transfer(&folder.join(format!("{name}-{tap}.pcap.gz"))).1;
        let (sender, middle) = (at("snd"), at("mid"));
        assert!(sender.counts.super_segments > 0, "{name}");
        assert_eq!(middle.counts.super_segments, 0, "{name}");
        // The tap in the middle misses a few packets.
        let few = sender.counts.data_packets / 100;
        assert!(sender.counts.data_packets.abs_diff(middle.counts.data_packets) <= few, "{name}");
        assert_eq!(sender.counts.retransmissions, middle.counts.retransmissions, "{name}");
        assert_eq!(sender.initial_window_packets, middle.initial_window_packets, "{name}");
        // The kernel sums up one of several flows, and was asked before the end.
        if !matches!(name, "four" | "bloat") {
            let again = sender.counts.retransmissions as f64;
            assert!((again - retransmitted).abs() <= 3.0, "{name}: {again} {retransmitted}");
        }
    }
}

#[test]
fn a_slow_reader_is_the_limit() {
    let Some(folder) = captures() else { return };
    for tap in ["snd", "mid"] {
        let (_, found) = transfer(&folder.join(format!("offload/slowreader-{tap}.pcap.gz")));
        let shares = found.limitation.shares.unwrap();
        // The kernel: 7.36 of 8.508 s.
        assert!((shares[Limit::ReceiverWindow as usize] - 0.865).abs() < 0.1, "{shares:?}");
        assert_eq!(found.limitation.limited_by, Limit::ReceiverWindow);
    }
}
