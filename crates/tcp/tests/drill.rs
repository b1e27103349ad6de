//! Runs the scripts of `tests/drill` (one file per rule, one directory per stack), and checks that
//! modified scripts fail.

#[path = "../examples/drill/mod.rs"]
mod drill;

use std::fs;
use std::path::PathBuf;

use drill::{Outcome, run};
use tcpcast_tcp::modern::Preset;

/// All scripts with stack and name.
fn scripts() -> Vec<(Preset, String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/drill");
    let mut scripts = Vec::new();
    for preset in Preset::ALL {
        let Ok(files) = fs::read_dir(folder.join(preset.name())) else { continue };
        let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let text = fs::read_to_string(&path).unwrap();
            scripts.push((preset, path.display().to_string(), text));
        }
    }
    assert!(scripts.len() >= 40, "{} scripts", scripts.len());
    scripts
}

#[test]
fn drill_scripts_pass() {
    for (preset, name, text) in scripts() {
        let outcome = run(&text, preset);
        assert!(matches!(outcome, Outcome::Passed { .. }), "{name}: {outcome}");
    }
}

/// Replaces a line of a script.
fn with_line(text: &str, index: usize, changed: &str) -> String {
    let lines = text.lines().enumerate();
    lines.map(|(n, line)| if n == index { changed } else { line }).collect::<Vec<_>>().join("\n")
}

/// Wrong variants of a line with an expectation.
fn wrong_versions(line: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some((time, packet)) = line.split_once(" > ") else {
        let calls = ["write(", "send", "read(", "recv", "poll(", "epoll_wait(", "connect("];
        if let (true, Some((call, result))) =
            (calls.iter().any(|call| line.contains(call)), line.rsplit_once(" = "))
        {
            wrong.push(format!("{call} = 7{result}"));
            if line.split_whitespace().next().is_some_and(|time| time.contains("...")) {
                wrong.push(line.replacen("...", "...9", 1));
            }
        }
        if line.starts_with("+0 getsockopt") || line.contains(" ioctl(") {
            wrong.push(line.replacen('[', "[7", 1));
        }
        if line.contains("assert") {
            for (what, instead) in [("==", "!="), ("<=", ">"), (">=", "<"), ("abs(", "1000 + (")] {
                if line.contains(what) {
                    wrong.push(line.replacen(what, instead, 1));
                    break;
                }
            }
        }
        return wrong;
    };
    wrong.push(format!("{time}.9 > {packet}"));
    let words: Vec<&str> = packet.split_whitespace().collect();
    for (index, word) in words.iter().enumerate() {
        let numbers = word.split_once(':').filter(|_| word.ends_with(')'));
        if let Some((start, rest)) = numbers {
            let (end, len) = rest.split_once('(').unwrap();
            let add = |text: &str| text.parse::<u64>().unwrap() + 1;
            let len = len.trim_end_matches(')');
            wrong.push(packet.replacen(word, &format!("{}:{}({len})", add(start), add(end)), 1));
            let longer = format!("{start}:{}({})", add(end), add(len));
            wrong.push(packet.replacen(word, &longer, 1));
        }
        if *word == "ack" {
            let ack: u64 = words[index + 1].parse().unwrap();
            wrong.push(packet.replacen(&format!("ack {ack}"), &format!("ack {}", ack + 1), 1));
        }
        if word.contains("sack") && !word.contains("sackOK") {
            wrong.push(packet.replacen("sack ", "sack 77:88 ", 1));
        }
        if *word == "val" {
            wrong.push(packet.replacen("val ", "val 7", 1));
        }
    }
    let flags = words[0];
    wrong.push(packet.replacen(
        flags,
        &format!("E{flags}").replace("EE", "").replace("ES", "S"),
        1,
    ));
    let changed = wrong.iter().skip(1).map(|packet| format!("{time} > {packet}"));
    std::iter::once(wrong[0].clone()).chain(changed).filter(|changed| changed != line).collect()
}

#[test]
fn drill_scripts_with_wrong_expectations_fail() {
    let mut tried = 0;
    for (preset, name, text) in scripts() {
        for (index, line) in text.lines().enumerate() {
            // The first timestamp of a script is only the reference for the others.
            let first_timestamp =
                line.contains("TS val") && line.contains("S. ") || line.contains(" S ");
            for wrong in wrong_versions(line) {
                if first_timestamp && wrong.contains("val 7") {
                    continue;
                }
                tried += 1;
                let outcome = run(&with_line(&text, index, &wrong), preset);
                let passes = matches!(outcome, Outcome::Passed { .. });
                assert!(!passes, "{name}:{}: {wrong}", index + 1);
            }
        }
    }
    assert!(tried > 400, "{tried} wrong scripts");
}

#[test]
fn most_drill_scripts_fail_without_an_arriving_packet() {
    let (mut tried, mut failed) = (0, 0);
    for (preset, _, text) in scripts() {
        for (index, line) in text.lines().enumerate() {
            if line.contains(" < ") {
                tried += 1;
                let outcome = run(&with_line(&text, index, ""), preset);
                failed += u32::from(!matches!(outcome, Outcome::Passed { .. }));
            }
        }
    }
    assert!(failed * 10 >= tried * 9, "{failed} of {tried}");
}

/// Script that establishes a connection.
const OPEN: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 7>
+.1 < . 1:1(0) ack 1 win 1000
+0 accept(3, ..., ...) = 4
";

#[test]
fn drill_reports_unsupported_lines_as_unchecked() {
    for (lines, what) in [
        ("+0 sendmsg(4, ..., 0) = 1", "sendmsg"),
        ("+0 writev(4, ..., 2) = 1000", "writev"),
        ("+0 recv(4, ..., 1000, MSG_PEEK) = 1", "MSG_PEEK"),
        ("+0 setsockopt(4, SOL_TCP, TCP_MD5SIG, [1], 4) = 0", "TCP_MD5SIG"),
        ("+0...0.1 < . 1:1(0) ack 1 win 257", "not a call"),
        ("+0 `tc qdisc replace dev tun0 root pfifo limit 0`", "tc qdisc"),
        ("+0 %{ assert tcpi_pmtu == 0 }%", "tcpi_pmtu"),
        ("+0 %{ for a in b: pass }%", "for a in b"),
        ("+0 < icmp unreachable [1:1001(1000)]", "icmp"),
        ("+0 < . 1:1(0) ack 1 win 257 <md5 ab>", "md5"),
        ("+0 close(7) = 0", "file 7"),
        ("what is this", "what"),
        ("+0 < S 0:0(0) win 65535 <mss 1000>", "second connection"),
    ] {
        let outcome = run(&format!("{OPEN}{lines}\n"), Preset::LinuxCubic);
        match &outcome {
            Outcome::NotChecked { line: 7, what: message } if message.contains(what) => (),
            _ => panic!("{lines}: {outcome}"),
        }
    }
    let outcome = run("`sysctl -q net.ipv4.tcp_no_such=1`\n", Preset::LinuxCubic);
    assert!(matches!(outcome, Outcome::NotChecked { line: 1, .. }), "{outcome}");
    let outcome = run("--unknown_option\n", Preset::LinuxCubic);
    assert!(matches!(outcome, Outcome::NotChecked { line: 1, .. }), "{outcome}");
}

#[test]
fn drill_reports_scripts_without_events_as_unchecked() {
    for text in ["", "\n\n", "// A comment.\n"] {
        let outcome = run(text, Preset::LinuxCubic);
        assert!(matches!(outcome, Outcome::NotChecked { .. }), "{text:?}: {outcome}");
    }
}

#[test]
fn drill_bounds_memory_of_writes_without_a_send_buffer() {
    let script = format!("{OPEN}+0 write(4, ..., 4000000000000000000) = 4000000000000000000\n");
    let outcome = run(&script, Preset::LinuxCubic);
    assert!(matches!(outcome, Outcome::Passed { .. }), "{outcome}");
}

#[test]
fn drill_scripts_fail_on_missing_packets() {
    let script = format!("{OPEN}+0 > . 1:1001(1000) ack 1\n");
    let outcome = run(&script, Preset::LinuxCubic);
    assert!(matches!(outcome, Outcome::Failed { line: 7, .. }), "{outcome}");
    assert!(
        outcome.to_string().starts_with("failed at line 7: expected . 1:1001(1000) ack 1, got")
    );
}
