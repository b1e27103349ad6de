//! Tests with captured transfers with a single limit.

use tcpcast_trace::TransferLimit;

use super::{captures, number, table, transfer};

#[test]
fn limits_of_linux_transfers_are_identified() {
    let Some(folder) = captures() else { return };
    for (name, limit, min) in [
        ("own-reno-rwnd-limited-120s", TransferLimit::ReceiverWindow, 0.9),
        // The queue never empties: the link is busy.
        ("own-reno-droptail-40s", TransferLimit::Bottleneck, 0.7),
        ("kernel/classic_droptail_2mbit_b20", TransferLimit::Bottleneck, 0.8),
        ("own-reno-2pct-320s", TransferLimit::CongestionWindow, 0.7),
        ("own-cubic-sack-5pct-320s", TransferLimit::CongestionWindow, 0.7),
        ("kernel/classic_rtt60_p0.01", TransferLimit::CongestionWindow, 0.8),
        ("kernel/cubic_rtt60_p0.01", TransferLimit::CongestionWindow, 0.8),
    ] {
        let (_, direction) = transfer(&folder.join(format!("{name}.pcap")));
        let shares = direction.limitation.shares.unwrap();
        println!("{name:36} {:?} {shares:.3?}", direction.limitation.limited_by);
        assert_eq!(direction.limitation.limited_by, limit, "{name}");
        assert!(shares[limit as usize] > min, "{name}: {shares:?}");
        let full = direction.limitation.bottleneck_rate_bps;
        assert_eq!(full.is_some(), limit == TransferLimit::Bottleneck, "{name}: {full:?}");
    }
}

/// Outages of 36 s in 130 s: otherwise the queue is usually full, and the outages cause the
/// timeouts.
#[test]
fn outages_are_classified_as_timeouts() {
    let Some(folder) = captures() else { return };
    let name = "own-reno-blackouts-130s.pcap";
    let (_, direction) = transfer(&folder.join(name));
    let rows = table(&folder.join("truth/SUMMARY.csv"));
    let row = rows.iter().find(|row| row["capture"] == name).unwrap();
    // The kernel counts from the first timeout to the recovery: without the first wait, but with
    // the last round trip.
    let kernel_s = number(row, "rto_time_ms").unwrap() / 1e3;
    let shares = direction.limitation.shares.unwrap();
    let waited_s = shares[TransferLimit::Timeout as usize] * direction.duration_s().unwrap();
    assert!((waited_s / kernel_s - 1.0).abs() < 0.05, "{waited_s} {kernel_s}");
    let second = TransferLimit::ALL
        .iter()
        .zip(shares)
        .filter(|(limit, _)| **limit != TransferLimit::Bottleneck);
    let (limit, _) = second.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert_eq!(*limit, TransferLimit::Timeout);
}

#[test]
fn window_reduction_matches_algorithm() {
    let Some(folder) = captures() else { return };
    for (name, expected) in [
        ("classic_rtt60_p0.01", 0.5),
        ("classic_rtt20_p0.001", 0.5),
        ("classic_quickack_rtt60_p0.01", 0.5),
        ("classic_droptail_2mbit_b20", 0.5),
        ("cubic_rtt60_p0.01", 0.7),
    ] {
        let (_, direction) = transfer(&folder.join(format!("kernel/{name}.pcap")));
        let reduction = direction.limitation.window_reduction.unwrap();
        assert!((reduction - expected).abs() < 0.05, "{name}: {reduction}");
    }
}
