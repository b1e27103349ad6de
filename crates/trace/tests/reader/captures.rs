//! Tests with captures outside the project: real ones, one in 38 variants, and hostile ones.
//!
//! The captures are read from `TCPCAST_CAPTURES` or from `shared/captures` next to the project.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tcpcast_trace::{CaptureReader, Options, ReadSummary, Segment};

/// Returns the directory; prints that `test` is skipped and returns `None` if there is none.
fn folder(test: &str) -> Option<PathBuf> {
    let given = std::env::var_os("TCPCAST_CAPTURES").map(PathBuf::from);
    let parents = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let result = given.or_else(|| {
        parents.map(|parent| parent.join("shared/captures")).find(|path| path.is_dir())
    });
    if result.is_none() {
        eprintln!("{test}: skipped, there are no captures");
    }
    result
}

fn read(path: &Path) -> (Vec<Segment>, ReadSummary) {
    let mut segments = Vec::new();
    let reader =
        CaptureReader::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let summary = reader.for_each(|segment| segments.push(*segment));
    assert_eq!(summary.frames, summary.segments + summary.skipped.total());
    (segments, summary)
}

/// Reads a table with some quoted columns; keys are the names in the first line.
fn table(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| {
        // Commas in quotes, that is in parts with odd numbers, are not separators.
        let parts = line.split('"').enumerate();
        let kept: Vec<_> = parts
            .map(|(index, part)| if index % 2 == 1 { part.replace(',', ";") } else { part.into() })
            .collect();
        kept.concat().split(',').map(String::from).collect::<Vec<_>>()
    });
    let names = lines.next().unwrap();
    lines.map(|row| names.iter().cloned().zip(row).collect()).collect()
}

#[test]
fn counts_match_the_manifest() {
    let Some(folder) = folder("counts") else { return };
    let mut differ = Vec::new();
    let mut count = 0;
    for row in table(&folder.join("MANIFEST.csv")) {
        let Ok(packets) = row["packets"].parse::<u64>() else { continue };
        let segments = row["tcp_packets"].parse::<u64>().unwrap();
        let (_, summary) = read(&folder.join(&row["file"]));
        count += 1;
        if (summary.frames, summary.segments) != (packets, segments) || summary.is_damaged() {
            differ.push((row["file"].clone(), summary.segments, summary.skipped.broken));
        }
    }
    assert!(count >= 52, "{count}");
    // Frame 95 has a TCP header with length 0.
    assert_eq!(differ, [("ndpi-reasm-sll.pcapng".into(), 208, 1)]);
}

/// Removes the fields that depend on the IP version and its position.
fn without_ip(mut segment: Segment, base: &Segment) -> Segment {
    segment.source.address = base.source.address;
    segment.destination.address = base.destination.address;
    segment.ip_id = base.ip_id;
    segment.ip_bytes = base.ip_bytes;
    segment
}

/// Reverts the intended changes of a variant.
fn undo(name: &str, segment: &Segment, base: &Segment) -> Segment {
    let mut segment = *segment;
    match name {
        "ipv6.pcap" | "ipv6-hbh.pcap" => segment = without_ip(segment, base),
        "seqwrap.pcap" => {
            segment.sequence = base.sequence;
            segment.acknowledgement = base.acknowledgement;
        }
        // The ticks are longer than a microsecond.
        "pow2res.pcapng" if segment.time.abs_diff(base.time) < 1000 => segment.time = base.time,
        _ if name.starts_with("snap") && segment.options.cut => segment.options = base.options,
        _ => {}
    }
    segment
}

#[test]
fn variants_give_the_same_segments() {
    let Some(folder) = folder("variants") else { return };
    let folder = folder.join("variants");
    let (base, _) = read(&folder.join("base-us-le.pcap"));
    assert_eq!(base.len(), 240);
    assert!(base.iter().all(|segment| !segment.options.cut));
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let (mut segments, summary) = read(&path);
        assert_eq!(summary.is_damaged(), name == "cut-last.pcap", "{name}");
        if name == "dup-capture.pcap" {
            assert_eq!(segments.len(), 480);
            segments.sort_by_key(|segment| segment.frame % 2 == 0);
            segments.truncate(240);
        }
        assert_eq!(segments.len(), 240, "{name}");
        for (number, (segment, base)) in (1..).zip(segments.iter().zip(&base)) {
            let base = Segment { frame: segment.frame, ..*base };
            assert_eq!(undo(name, segment, &base), base, "{name}: {number}");
        }
        count += 1;
    }
    assert_eq!(count, 38);
}

#[test]
fn shortest_snaplen_loses_only_options() {
    let Some(folder) = folder("snaplen") else { return };
    let cut = |name: &str| read(&folder.join("variants").join(name)).1.cut_options;
    assert_eq!(cut("snap54.pcap"), 240);
    assert_eq!(cut("snap96.pcap"), 0);
    assert_eq!(cut("base-us-le.pcap"), 0);
}

/// Returns the counts and the first damage, or the error, of a hostile file.
fn outcome(path: &Path) -> String {
    match CaptureReader::open(path) {
        Err(error) => error.to_string(),
        Ok(reader) => {
            let summary = reader.for_each(|_| {});
            assert_eq!(summary.frames, summary.segments + summary.skipped.total());
            let damage = summary.damage.first().map(|damage| damage.kind.to_string());
            let ReadSummary { frames, segments, .. } = summary;
            format!("{frames} {segments} {}", damage.unwrap_or_default()).trim().into()
        }
    }
}

#[test]
fn hostile_files_give_errors_or_partial_results() {
    let Some(folder) = folder("malformed") else { return };
    let folder = folder.join("malformed");
    for entry in fs::read_dir(&folder).unwrap() {
        outcome(&entry.unwrap().path());
    }
    for (name, expected) in [
        ("err-buffertoosmall.pcapng", "27 27"),
        ("err-eof.bin", "not a capture in pcap or pcapng format, but an unknown format"),
        ("own-caplen-gt-len.pcap", "1 1"),
        ("own-gzipped.pcap", "1 1"),
        ("own-header-only.pcap", "0 0"),
        ("own-ihl-0.pcap", "1 0"),
        ("own-many-flows.pcap", "20000 20000"),
        (
            "own-ng-bad-bom.pcapng",
            "0 0 a section has no valid byte order: 0xefbeadde instead of 0x1a2b3c4d",
        ),
        (
            "own-ng-bad-ifid.pcapng",
            "2 1 a frame refers to interface 7, which the file does not describe",
        ),
        ("own-ng-block-len0.pcapng", "0 0 a block declares an invalid length of 0 bytes"),
        ("own-ng-opt-overrun.pcapng", "1 1 an option extends beyond its block"),
        (
            "own-ng-trailer-mismatch.pcapng",
            "0 0 a block declares 88 bytes at its start, but 255 bytes at its end",
        ),
        ("own-rec-header-cut.pcap", "1 1 the file ends within a header"),
        (
            "own-text.pcap",
            "not a capture in pcap or pcapng format, but a text file; use tcpdump -w for captures, \
             and iperf3 -J or ss -tin for logs",
        ),
        ("own-version-9.pcap", "1 1 format version 9.9 is not supported"),
        ("own-vlan-deep.pcap", "1 1"),
        ("own-vlan-cut.pcap", "1 0"),
        ("truncated-header.pcap", "24 24"),
    ] {
        assert_eq!(outcome(&folder.join(name)), expected, "{name}");
    }
}

#[test]
fn hostile_options_are_marked_as_cut() {
    let Some(folder) = folder("options") else { return };
    let options = |name: &str| -> Vec<Options> {
        let (segments, _) = read(&folder.join("malformed").join(name));
        segments.iter().map(|segment| segment.options).collect()
    };
    for name in ["own-opt-len0.pcap", "own-opt-len1.pcap", "own-opt-overrun.pcap"] {
        assert!(options(name)[0].cut, "{name}");
    }
    let scales = options("own-wscale-255.pcap");
    assert!(scales.iter().all(|options| options.window_scale.is_none_or(|shift| shift <= 14)));
    assert!(scales.iter().any(|options| options.window_scale == Some(14)));
}
