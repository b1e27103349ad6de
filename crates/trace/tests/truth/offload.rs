//! Compares captures at and after servers with segmentation offload with the kernel's counters.

use tcpcast_trace::TransferLimit;

use super::{captures, transfer};

#[test]
fn counters_are_independent_of_offload() {
    let Some(folder) = captures() else { return };
    let folder = folder.join("offload");
    let truth = std::fs::read_to_string(folder.join("truth.csv")).expect("a table");
    for line in truth.lines().skip(1) {
        // A description between the columns may contain commas.
        let name = line.split(',').next().expect("a scenario");
        let Some(retransmitted) = line.rsplit(',').nth(2).and_then(|n| n.parse::<f64>().ok())
        else {
            continue;
        };
        let at_tap = |tap: &str| transfer(&folder.join(format!("{name}-{tap}.pcap.gz"))).1;
        let (sender, middle) = (at_tap("snd"), at_tap("mid"));
        assert!(sender.counts.super_segments > 0, "{name}");
        assert_eq!(middle.counts.super_segments, 0, "{name}");
        // The tap in the middle lacks a few packets.
        let few = sender.counts.data_packets / 100;
        assert!(sender.counts.data_packets.abs_diff(middle.counts.data_packets) <= few, "{name}");
        assert_eq!(sender.counts.retransmissions, middle.counts.retransmissions, "{name}");
        assert_eq!(sender.initial_window_packets, middle.initial_window_packets, "{name}");
        // The kernel value covers one of several flows, and was sampled before the end.
        if !matches!(name, "four" | "bloat") {
            let retransmitted_count = sender.counts.retransmissions as f64;
            assert!(
                (retransmitted_count - retransmitted).abs() <= 3.0,
                "{name}: {retransmitted_count} {retransmitted}"
            );
        }
    }
}

#[test]
fn limit_of_slow_reader_is_receive_window() {
    let Some(folder) = captures() else { return };
    for tap in ["snd", "mid"] {
        let (_, direction) = transfer(&folder.join(format!("offload/slowreader-{tap}.pcap.gz")));
        let shares = direction.limitation.shares.unwrap();
        // Kernel: 7.36 of 8.508 s.
        assert!((shares[TransferLimit::ReceiverWindow as usize] - 0.865).abs() < 0.1, "{shares:?}");
        assert_eq!(direction.limitation.limited_by, TransferLimit::ReceiverWindow);
    }
}
