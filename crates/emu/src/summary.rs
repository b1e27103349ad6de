//! The result of a run of programs, as lines with a key and a value, for the calling process.

use crate::command::LinkResult;
use crate::path::DirectionCounters;
use std::fmt::Write;

impl LinkResult {
    /// Returns one line per value: key, space, and an integer or text. Times are in nanoseconds.
    #[must_use]
    pub fn to_summary_lines(&self) -> String {
        let mut text = String::new();
        let outcome = &self.outcome;
        // Writing to a string cannot fail.
        let mut put = |key: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(text, "{key} {value}");
        };
        put("status", &self.program.status);
        put("way", &self.device.name());
        put("program_ns", &self.program.elapsed);
        put("elapsed_ns", &outcome.elapsed);
        put("away_ns", &outcome.paused);
        put("pauses", &outcome.pause_count);
        put("longest_pause_ns", &outcome.longest_pause);
        put("missed", &outcome.missed);
        put("cpu_ns", &outcome.cpu);
        let directions = [("forward", &outcome.path.forward), ("back", &outcome.path.back)];
        for ((name, counters), bytes) in directions.into_iter().zip(self.program.delivered_bytes) {
            put(&format!("{name}.program_bytes"), &bytes);
            write_direction_counters(&mut put, name, counters);
        }
        if let Some(reason) = outcome.unreliable_result_reason() {
            put("distortion", &reason);
        }
        if let Some(error) = &self.capture_error {
            put("capture_fault", error);
        }
        text
    }
}

fn write_direction_counters(
    put: &mut impl FnMut(&str, &dyn std::fmt::Display),
    name: &str,
    counters: &DirectionCounters,
) {
    let DirectionCounters { link, waits, lateness, .. } = counters;
    let numbers = [
        ("entered", link.entered.packets),
        ("entered_bytes", link.entered.bytes),
        ("delivered", counters.delivered.packets),
        ("delivered_bytes", counters.delivered.bytes),
        ("full_drops", link.full_drops),
        ("early_drops", link.early_drops),
        ("random_drops", link.random_drops),
        ("machinery_drops", counters.host_drops),
        ("misaddressed", counters.misaddressed),
        ("marked", link.marked),
        ("in_transit", counters.in_transit()),
        ("wait_mean_ns", waits.mean()),
        ("wait_p95_ns", waits.quantile(0.95)),
        ("wait_max_ns", waits.max()),
        ("late_mean_ns", lateness.mean()),
        ("late_p50_ns", lateness.quantile(0.5)),
        ("late_p99_ns", lateness.quantile(0.99)),
        ("late_max_ns", lateness.max()),
    ];
    for (key, number) in numbers {
        put(&format!("{name}.{key}"), &number);
    }
}
