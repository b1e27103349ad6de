//! The scripts of `tests/drill` hold, a file a rule, in a folder a stack; and the runner can fail:
//! whatever is changed in one of them, it does not pass any more.

#[path = "../examples/drill/mod.rs"]
mod drill;

use std::fs;
use std::path::PathBuf;

use drill::{Outcome, run};
use tcpcast_sim::tcp::modern::Preset;

/// The scripts of each stack, with their names.
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
fn scripts_hold() {
    for (preset, name, text) in scripts() {
        let outcome = run(&text, preset);
        assert!(matches!(outcome, Outcome::Passed { .. }), "{name}: {outcome}");
    }
}

/// A script with another line in the place of one.
fn with_line(text: &str, at: usize, changed: &str) -> String {
    let lines = text.lines().enumerate();
    lines.map(|(n, line)| if n == at { changed } else { line }).collect::<Vec<_>>().join("\n")
}

/// Wrong versions of a line that says what must be.
fn wrong_versions(line: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some((time, packet)) = line.split_once(" > ") else {
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
    for (at, word) in words.iter().enumerate() {
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
            let ack: u64 = words[at + 1].parse().unwrap();
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
fn whatever_is_changed_a_script_does_not_hold() {
    let mut tried = 0;
    for (preset, name, text) in scripts() {
        for (at, line) in text.lines().enumerate() {
            // The first stamp of a script says only what the others are compared with.
            let first_stamp =
                line.contains("TS val") && line.contains("S. ") || line.contains(" S ");
            for wrong in wrong_versions(line) {
                if first_stamp && wrong.contains("val 7") {
                    continue;
                }
                tried += 1;
                let outcome = run(&with_line(&text, at, &wrong), preset);
                let passes = matches!(outcome, Outcome::Passed { .. });
                assert!(!passes, "{name}:{}: {wrong}", at + 1);
            }
        }
    }
    assert!(tried > 400, "{tried} wrong scripts");
}

#[test]
fn without_a_packet_that_arrives_most_scripts_do_not_hold() {
    let (mut tried, mut noticed) = (0, 0);
    for (preset, _, text) in scripts() {
        for (at, line) in text.lines().enumerate() {
            if line.contains(" < ") {
                tried += 1;
                let outcome = run(&with_line(&text, at, ""), preset);
                noticed += u32::from(!matches!(outcome, Outcome::Passed { .. }));
            }
        }
    }
    assert!(noticed * 10 >= tried * 9, "{noticed} of {tried}");
}

/// A connection on which packets can be exchanged.
const OPEN: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 7>
+.1 < . 1:1(0) ack 1 win 1000
+0 accept(3, ..., ...) = 4
";

#[test]
fn what_is_not_read_is_not_passed() {
    for (lines, what) in [
        ("+0 sendmsg(4, ..., 0) = 1", "sendmsg"),
        ("+0 write(4, ..., 1000) = -1 EAGAIN (Resource temporarily unavailable)", "write"),
        ("+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0", "TCP_CORK"),
        ("+0 `tc qdisc replace dev tun0 root pfifo limit 0`", "tc qdisc"),
        ("+0 %{ assert tcpi_sndbuf_limited == 0 }%", "tcpi_sndbuf_limited"),
        ("+0 %{ for a in b: pass }%", "for a in b"),
        ("+0 < icmp unreachable [1:1001(1000)]", "icmp"),
        ("+0 < . 1:1(0) ack 1 win 257 <md5 ab>", "md5"),
        ("+0 close(7) = 0", "file 7"),
        ("what is this", "what"),
        ("+0 < S 0:0(0) win 65535 <mss 1000>", "second connection"),
    ] {
        let outcome = run(&format!("{OPEN}{lines}\n"), Preset::LinuxCubic);
        match &outcome {
            Outcome::NotChecked { line: 7, what: said } if said.contains(what) => (),
            _ => panic!("{lines}: {outcome}"),
        }
    }
    let outcome = run("`sysctl -q net.ipv4.tcp_no_such=1`\n", Preset::LinuxCubic);
    assert!(matches!(outcome, Outcome::NotChecked { line: 1, .. }), "{outcome}");
    let outcome = run("--unknown_option\n", Preset::LinuxCubic);
    assert!(matches!(outcome, Outcome::NotChecked { line: 1, .. }), "{outcome}");
}

#[test]
fn a_script_without_events_is_not_passed() {
    for text in ["", "\n\n", "// A comment.\n"] {
        let outcome = run(text, Preset::LinuxCubic);
        assert!(matches!(outcome, Outcome::NotChecked { .. }), "{text:?}: {outcome}");
    }
}

#[test]
fn a_packet_that_no_rule_sends_is_missed() {
    let script = format!("{OPEN}+0 > . 1:1001(1000) ack 1\n");
    let outcome = run(&script, Preset::LinuxCubic);
    assert!(matches!(outcome, Outcome::Failed { line: 7, .. }), "{outcome}");
    assert!(
        outcome.to_string().starts_with("failed at line 7: expected . 1:1001(1000) ack 1, got")
    );
}
