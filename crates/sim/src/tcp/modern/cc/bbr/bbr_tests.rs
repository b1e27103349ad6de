use super::*;
use crate::tcp::modern::cc::path_model::burst_packets;
use crate::tcp::modern::stack::{MILLISECOND, Preset};

#[test]
fn the_first_rate_is_that_of_ten_packets_in_a_millisecond() {
    let stack = Preset::LinuxBbr.stack();
    let bbr = Bbr::new(&stack, 0, 1);
    let expected = 10.0 * 1448.0 * 1000.0 * (739.0 / 256.0) * 0.99;
    assert!((bbr.pacing_rate() as f64 / expected - 1.0).abs() < 1e-3, "{}", bbr.pacing_rate());
}

#[test]
fn a_bandwidth_carries_what_it_was_measured_with() {
    let bw = bandwidth(100, 60 * MILLISECOND);
    assert_eq!(packets(bw, 60 * MILLISECOND, UNIT), 100);
    assert_eq!(packets(bw, 60 * MILLISECOND, CWND_GAIN), 200);
}

#[test]
fn a_burst_is_what_the_rate_sends_in_a_millisecond() {
    assert_eq!(burst_packets(100_000, 1448), 1);
    assert_eq!(burst_packets(2_500_000, 1448), 2);
    assert_eq!(burst_packets(12_500_000, 1448), 8);
    assert_eq!(burst_packets(u64::MAX, 1448), 45);
}

#[test]
fn the_cycle_begins_anywhere_but_where_it_drains() {
    let stack = Preset::LinuxBbr.stack();
    let mut seen = [0; 8];
    for seed in 0..200 {
        let mut bbr = Bbr::new(&stack, 0, seed);
        bbr.enter_probe_bw(0);
        let Mode::ProbeBw { phase, .. } = bbr.mode() else { panic!("{:?}", bbr.mode()) };
        seen[usize::from(phase)] += 1;
    }
    assert_eq!(seen[1], 0);
    assert_eq!(seen.iter().filter(|&&n| n > 0).count(), 7);
}
