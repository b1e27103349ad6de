//! Compares the analysis with tcptrace, tshark and an independent count, and the results for the
//! same packets in many containers with each other.

use std::collections::HashMap;
use std::path::Path;

use tcpcast_trace::DirectionReport;

use super::{Row, captures, number, reports, table};

/// Captures in which the other tools are wrong, and the reason.
const DIFFERENT: [(&str, &str); 10] = [
    ("arkime-retrans.pcap", "every frame four times, up to 50 ms apart: all are one"),
    (
        "tt-hardware-dups.pcap",
        "every frame twice with one IP id, up to 19 ms apart: none was retransmitted",
    ),
    ("zeek-ssh-dups.pcap", "every frame four times, without IP ids"),
    ("ndpi-tcp-ack-payload.pcap", "frames twice; a RST's payload is no data; probes of 2 bytes"),
    ("tt-discard-solaris.pcap", "every frame of a connection twice"),
    ("ndpi-reasm-sll.pcapng", "two connections: the ends meet retransmitted after a RST"),
    ("ppp-maxseq.pcap", "one is a keep-alive"),
    ("bigtcp-ipv6-hbh.pcap", "the extension header is no payload"),
    ("zeek-pppoe-qinq.pcap", "padding that the IP header counts and the PPPoE header does not"),
    ("tt-urgent.pcap", "47 repeats are probes of a closed window; 4 were lost before the tap"),
];

/// Returns the directions of a capture by their ends; a pair of ports may have had several
/// connections.
fn directions(path: &Path) -> HashMap<[String; 4], Vec<DirectionReport>> {
    let mut directions: HashMap<_, Vec<_>> = HashMap::new();
    for direction in reports(path).into_iter().flat_map(|report| *report.directions) {
        let (from, to) = (direction.source, direction.destination);
        let ends = [
            from.address.to_string(),
            from.port.to_string(),
            to.address.to_string(),
            to.port.to_string(),
        ];
        directions.entry(ends).or_default().push(direction);
    }
    directions
}

fn ends(row: &Row) -> [String; 4] {
    ["src", "sport", "dst", "dport"].map(|column| row[column].clone())
}

/// Returns the independent count or, if there is none, that of tcptrace.
fn expected(row: &Row, column: &str) -> Option<u64> {
    let own = number(row, &format!("{column}_own"));
    own.or_else(|| number(row, &format!("{column}_tcptrace"))).map(|value| value as u64)
}

#[test]
fn counters_match_other_tools() {
    let Some(folder) = captures() else { return };
    let mut files: HashMap<String, HashMap<[String; 4], Vec<DirectionReport>>> = HashMap::new();
    let mut compared = 0;
    for row in table(&folder.join("reference.csv")) {
        let file = &row["file"];
        if DIFFERENT.iter().any(|different| different.0 == file) {
            continue;
        }
        let known = files.entry(file.clone()).or_insert_with(|| directions(&folder.join(file)));
        let Some(reports) = known.get_mut(&ends(&row)).filter(|reports| !reports.is_empty()) else {
            continue;
        };
        let counts = reports.remove(0).counts;
        if expected(&row, "data_pkts").is_none_or(|data| data == 0) {
            continue;
        }
        compared += 1;
        // The other tools count frames, regardless of offload.
        let (frames, data) =
            (counts.packets - counts.aggregated, counts.data_packets - counts.aggregated);
        assert_eq!(Some(frames), expected(&row, "packets"), "{row:?}");
        assert_eq!(Some(data), expected(&row, "data_pkts"), "{row:?}");
        assert_eq!(Some(counts.bytes), expected(&row, "bytes"), "{row:?}");
        let retransmitted =
            counts.retransmissions + counts.zero_window_probes + counts.out_of_order;
        // tcptrace includes SYNs; the independent count includes probes in retransmissions.
        let with_syns = counts.retransmissions + counts.syn_retransmissions;
        let theirs = [number(&row, "rexmt_own"), number(&row, "rexmt_tcptrace")];
        let agrees = |theirs: f64| {
            [retransmitted, with_syns, counts.retransmissions].contains(&(theirs as u64))
        };
        assert!(theirs.into_iter().flatten().any(agrees), "{counts:?} {row:?}");
    }
    assert!(compared > 80, "{compared}");
}

#[test]
fn frames_captured_twice_are_not_retransmissions() {
    let Some(folder) = captures() else { return };
    for (file, duplicates, data, retransmitted) in
        [("tt-hardware-dups.pcap", 486, 483, 0), ("arkime-retrans.pcap", 48, 8, 0)]
    {
        let all = reports(&folder.join(file));
        let directions = all.iter().flat_map(|report| &*report.directions);
        let busiest = directions.max_by_key(|direction| direction.counts.bytes).unwrap();
        let counts = busiest.counts;
        assert_eq!(counts.capture_duplicates, duplicates, "{file}");
        assert_eq!((counts.data_packets, counts.retransmissions), (data, retransmitted), "{file}");
    }
}

#[test]
fn window_probes_are_not_retransmissions() {
    let Some(folder) = captures() else { return };
    for (file, probes, retransmitted) in
        [("tt-urgent.pcap", 47, 5), ("tt-zwnd.pcap", 6, 0), ("zeek-206b.pcap", 0, 108)]
    {
        let all = reports(&folder.join(file));
        let directions = all.iter().flat_map(|report| &*report.directions);
        let busiest = directions.max_by_key(|direction| direction.counts.bytes).unwrap();
        let counts = busiest.counts;
        assert_eq!(
            (counts.zero_window_probes, counts.retransmissions),
            (probes, retransmitted),
            "{file}"
        );
    }
}

#[test]
fn counters_are_independent_of_container() {
    let Some(folder) = captures() else { return };
    let mut files = 0;
    for row in table(&folder.join("variants.csv")) {
        let file = &row["file"];
        let path = folder.join("variants").join(file);
        let Some(truth) = number(&row, "own_data").filter(|_| path.is_file()) else { continue };
        let all = reports(&path);
        let directions = all.iter().flat_map(|report| &*report.directions);
        let Some(busiest) = directions.max_by_key(|direction| direction.counts.bytes) else {
            panic!("{file}: no data direction")
        };
        files += 1;
        let counts = busiest.counts;
        assert_eq!(counts.data_packets as f64, truth, "{file}");
        assert_eq!(Some(counts.retransmissions as f64), number(&row, "own_rexmt"), "{file}");
        let karn = busiest.rtt.karn.unwrap();
        assert_eq!(Some(karn.samples as f64), number(&row, "own_rtt_n"), "{file}");
        let theirs = number(&row, "own_rtt_avg_ms").unwrap();
        assert!((karn.mean_s * 1e3 - theirs).abs() < 0.002, "{file}: {karn:?}");
    }
    assert!(files >= 36, "{files}");
}
