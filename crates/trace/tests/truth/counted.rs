//! Captures taken at a Linux sender, beside the counts of its kernel.

use tcpcast_trace::Side;

use super::{captures, number, table, transfer, within};

#[test]
fn transfers_over_an_emulated_path() {
    let Some(folder) = captures() else { return };
    println!("capture                     retransmissions  timeouts      RTT, ms         T0, ms");
    for row in table(&folder.join("truth/SUMMARY.csv")) {
        let name = &row["capture"];
        let (report, found) = transfer(&folder.join(name));
        let truth = |column: &str| number(&row, column).unwrap();
        let rtt_ms = found.rtt.over_time_s.unwrap() * 1e3;
        let t0_ms = found.t0_s.map(|t0| t0 * 1e3);
        println!(
            "{name:36} {:4} {:4}   {:4} {:4}   {rtt_ms:6.1} {:6.1}   {:6.1} {:6.1}",
            found.counts.retransmissions,
            truth("total_retrans"),
            found.indications.timeouts,
            truth("total_rto"),
            truth("kernel_srtt_mean_ms"),
            t0_ms.unwrap_or(f64::NAN),
            truth("kernel_rto_backoff0_mean_ms"),
        );
        assert_eq!(found.side, Side::Sender, "{name}");
        assert!(report.syn_captured && report.handshake_rtt_s.is_some());
        // The last samples of the kernel were taken a little before the end. Its drops and the capture agree.
        assert_eq!(found.counts.retransmissions as f64, truth("naive_rexmt"), "{name}");
        let sent_again = found.counts.retransmissions as f64;
        assert!((sent_again - truth("total_retrans")).abs() <= 2.0_f64.max(0.01 * sent_again));
        assert!((found.indications.timeouts as f64 - truth("total_rto")).abs() <= 1.0, "{name}");
        assert_eq!(found.indications.to() as f64, truth("rto_recoveries"), "{name}");
        assert!(within(rtt_ms, truth("kernel_srtt_mean_ms"), 0.03), "{name}: {rtt_ms}");
        let karn_ms = found.rtt.karn.unwrap().mean_s * 1e3;
        assert!(within(karn_ms, truth("karn_rtt_ms"), 0.001), "{name}: {karn_ms}");
        if let Some(t0_ms) = t0_ms {
            assert!(within(t0_ms, truth("kernel_rto_backoff0_mean_ms"), 0.10), "{name}: {t0_ms}");
        }
        let paper = found.indications;
        assert_eq!(paper.td_paper as f64, truth("naive_3dupack_TD"), "{name}");
        assert!((paper.to_paper as f64 - truth("naive_3dupack_TO")).abs() <= 2.0, "{name}");
    }
}

#[test]
fn intervals_of_100_seconds_add_up() {
    let Some(folder) = captures() else { return };
    let (_, found) = transfer(&folder.join("own-reno-2pct-320s.pcap"));
    let rows = table(&folder.join("truth/own-reno-2pct-320s.intervals100s.csv"));
    assert_eq!(found.intervals.len(), rows.len());
    let sum = |of: fn(&tcpcast_trace::Interval) -> u64| found.intervals.iter().map(of).sum::<u64>();
    assert_eq!(sum(|i| i.data_packets), found.counts.data_packets);
    assert_eq!(sum(|i| i.retransmissions), found.counts.retransmissions);
    assert_eq!(sum(|i| i.indications.td), found.indications.td);
    assert_eq!(sum(|i| i.indications.timeouts), found.indications.timeouts);
    for (interval, row) in found.intervals.iter().zip(&rows).take(3) {
        // The kernel was asked once a second at best, so that a second's packets are here or there.
        let packets = interval.data_packets as f64;
        assert!(within(packets, number(row, "data_segs_out").unwrap(), 0.02), "{packets}");
        let rtt_ms = interval.rtt_mean_s().unwrap() * 1e3;
        assert!(within(rtt_ms, number(row, "srtt_mean_ms").unwrap(), 0.03), "{rtt_ms}");
    }
}

#[test]
fn transfers_between_network_namespaces() {
    let Some(folder) = captures() else { return };
    println!(
        "capture                                    data       again      TD        TO   RTT, ms"
    );
    for row in table(&folder.join("kernel/pcaps.csv")) {
        let name = &row["pcap_file"];
        let (_, found) = transfer(&folder.join("kernel").join(name));
        let truth = |column: &str| number(&row, column).unwrap();
        let rtt_ms = found.rtt.over_time_s.unwrap() * 1e3;
        println!(
            "{name:38} {:5} {:5}  {:3} {:3}  {:3} {:3}  {:2} {:2}   {rtt_ms:6.2} {:6.2}",
            found.counts.data_packets,
            truth("tcpi_data_segs_out_count"),
            found.counts.retransmissions,
            truth("retransmitted_segs_count"),
            found.indications.td,
            truth("fast_recovery_episodes_count"),
            found.indications.to(),
            truth("timeout_sequences_count"),
            truth("mean_srtt_ms"),
        );
        assert_eq!(found.side, Side::Sender, "{name}");
        assert_eq!(found.counts.data_packets as f64, truth("tcpi_data_segs_out_count"), "{name}");
        assert_eq!(found.counts.retransmissions as f64, truth("retransmitted_segs_count"));
        let recoveries = truth("fast_recovery_episodes_count");
        assert_eq!(found.indications.td as f64, recoveries, "{name}");
        assert_eq!(found.indications.to() as f64, truth("timeout_sequences_count"), "{name}");
        assert_eq!(found.indications.timeouts as f64, truth("timeouts_all_count"), "{name}");
        assert!(within(rtt_ms, truth("mean_srtt_ms"), 0.03), "{name}: {rtt_ms}");
    }
}
