//! Compares captures at a Linux sender with the counters of its kernel.

use tcpcast_trace::TapSide;

use super::{captures, number, table, transfer, within};

#[test]
fn counters_match_kernel_on_emulated_path() {
    let Some(folder) = captures() else { return };
    println!("capture                     retransmissions  timeouts      RTT, ms         T0, ms");
    for row in table(&folder.join("truth/SUMMARY.csv")) {
        let name = &row["capture"];
        let (report, direction) = transfer(&folder.join(name));
        let truth = |column: &str| number(&row, column).unwrap();
        let rtt_ms = direction.rtt.over_time_s.unwrap() * 1e3;
        let t0_ms = direction.t0_s.map(|t0| t0 * 1e3);
        println!(
            "{name:36} {:4} {:4}   {:4} {:4}   {rtt_ms:6.1} {:6.1}   {:6.1} {:6.1}",
            direction.counts.retransmissions,
            truth("total_retrans"),
            direction.indications.timeouts,
            truth("total_rto"),
            truth("kernel_srtt_mean_ms"),
            t0_ms.unwrap_or(f64::NAN),
            truth("kernel_rto_backoff0_mean_ms"),
        );
        assert_eq!(direction.side, TapSide::Sender, "{name}");
        assert!(report.syn_captured && report.handshake_rtt_s.is_some());
        // The kernel was last sampled shortly before the end. Its drops and the capture agree.
        assert_eq!(direction.counts.retransmissions as f64, truth("naive_rexmt"), "{name}");
        let retransmitted = direction.counts.retransmissions as f64;
        assert!(
            (retransmitted - truth("total_retrans")).abs() <= 2.0_f64.max(0.01 * retransmitted)
        );
        assert!(
            (direction.indications.timeouts as f64 - truth("total_rto")).abs() <= 1.0,
            "{name}"
        );
        assert_eq!(direction.indications.timeout_count() as f64, truth("rto_recoveries"), "{name}");
        assert!(within(rtt_ms, truth("kernel_srtt_mean_ms"), 0.03), "{name}: {rtt_ms}");
        let karn_ms = direction.rtt.karn.unwrap().mean_s * 1e3;
        assert!(within(karn_ms, truth("karn_rtt_ms"), 0.001), "{name}: {karn_ms}");
        if let Some(t0_ms) = t0_ms {
            assert!(within(t0_ms, truth("kernel_rto_backoff0_mean_ms"), 0.10), "{name}: {t0_ms}");
        }
        let paper = direction.indications;
        assert_eq!(paper.td_paper as f64, truth("naive_3dupack_TD"), "{name}");
        assert!((paper.to_paper as f64 - truth("naive_3dupack_TO")).abs() <= 2.0, "{name}");
    }
}

#[test]
fn intervals_add_up_to_counters() {
    let Some(folder) = captures() else { return };
    let (_, direction) = transfer(&folder.join("own-reno-2pct-320s.pcap"));
    let rows = table(&folder.join("truth/own-reno-2pct-320s.intervals100s.csv"));
    assert_eq!(direction.intervals.len(), rows.len());
    let sum = |of: fn(&tcpcast_trace::IntervalCounts) -> u64| {
        direction.intervals.iter().map(of).sum::<u64>()
    };
    assert_eq!(sum(|i| i.data_packets), direction.counts.data_packets);
    assert_eq!(sum(|i| i.retransmissions), direction.counts.retransmissions);
    assert_eq!(sum(|i| i.indications.td), direction.indications.td);
    assert_eq!(sum(|i| i.indications.timeouts), direction.indications.timeouts);
    for (interval, row) in direction.intervals.iter().zip(&rows).take(3) {
        // The kernel was sampled at most once per second, so a second's packets may belong to
        // either interval.
        let packets = interval.data_packets as f64;
        assert!(within(packets, number(row, "data_segs_out").unwrap(), 0.02), "{packets}");
        let rtt_ms = interval.rtt_mean_s().unwrap() * 1e3;
        assert!(within(rtt_ms, number(row, "srtt_mean_ms").unwrap(), 0.03), "{rtt_ms}");
    }
}

#[test]
fn counters_match_kernel_between_network_namespaces() {
    let Some(folder) = captures() else { return };
    println!(
        "capture                                    data       retrans      TD        TO   RTT, ms"
    );
    for row in table(&folder.join("kernel/pcaps.csv")) {
        let name = &row["pcap_file"];
        let (_, direction) = transfer(&folder.join("kernel").join(name));
        let truth = |column: &str| number(&row, column).unwrap();
        let rtt_ms = direction.rtt.over_time_s.unwrap() * 1e3;
        println!(
            "{name:38} {:5} {:5}  {:3} {:3}  {:3} {:3}  {:2} {:2}   {rtt_ms:6.2} {:6.2}",
            direction.counts.data_packets,
            truth("tcpi_data_segs_out_count"),
            direction.counts.retransmissions,
            truth("retransmitted_segs_count"),
            direction.indications.td,
            truth("fast_recovery_episodes_count"),
            direction.indications.timeout_count(),
            truth("timeout_sequences_count"),
            truth("mean_srtt_ms"),
        );
        assert_eq!(direction.side, TapSide::Sender, "{name}");
        assert_eq!(
            direction.counts.data_packets as f64,
            truth("tcpi_data_segs_out_count"),
            "{name}"
        );
        assert_eq!(direction.counts.retransmissions as f64, truth("retransmitted_segs_count"));
        let recoveries = truth("fast_recovery_episodes_count");
        assert_eq!(direction.indications.td as f64, recoveries, "{name}");
        assert_eq!(
            direction.indications.timeout_count() as f64,
            truth("timeout_sequences_count"),
            "{name}"
        );
        assert_eq!(direction.indications.timeouts as f64, truth("timeouts_all_count"), "{name}");
        assert!(within(rtt_ms, truth("mean_srtt_ms"), 0.03), "{name}: {rtt_ms}");
    }
}
