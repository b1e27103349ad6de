//! Prints the analysis of captures, a few lines per direction with data, and the reading rate.

use std::path::Path;
use std::time::Instant;

use tcpcast_trace::{
    CaptureReader, ConnectionReport, Connections, DirectionReport, DurationReport, MemoryLimits,
    TransferLimit,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let quiet = std::env::var_os("QUIET").is_some();
    let show = |report: &ConnectionReport| {
        if !quiet {
            show(report)
        }
    };
    for name in std::env::args().skip(1) {
        let start = Instant::now();
        let mut reader = CaptureReader::open(Path::new(&name))?;
        let mut connections = connections();
        let mut segments = 0_u64;
        while let Some(segment) = reader.next_segment() {
            connections.push_segment(segment);
            segments += 1;
            if segments % 1024 == 0 {
                connections.take_finished().iter().for_each(show);
            }
        }
        let count = connections.connection_count();
        connections.into_remaining_reports().for_each(|report| show(&report));
        let rate = segments as f64 / start.elapsed().as_secs_f64() / 1e6;
        println!(
            "{name}: {count} connections, {segments} segments, {rate:.2} million per second\n"
        );
    }
    Ok(())
}

/// Uses an additional thread unless `THREADS` is 0 or there is one processor.
fn connections() -> Connections {
    let threads = std::env::var("THREADS").ok().and_then(|text| text.parse().ok());
    threads.map_or_else(Connections::default, |threads: usize| {
        Connections::with_thread(MemoryLimits::default(), threads > 0)
    })
}

fn show(report: &ConnectionReport) {
    for direction in report.directions.iter().filter(|direction| direction.counts.data_packets > 0)
    {
        show_direction(report, direction);
    }
}

fn show_direction(report: &ConnectionReport, direction: &DirectionReport) {
    let counts = &direction.counts;
    let ms =
        |durations: Option<DurationReport>| durations.map(|d| (d.samples, (d.mean_s * 1e6) as u64));
    println!(
        "#{} {}:{} > {}:{} {:?} {:?}",
        report.number,
        direction.source.address,
        direction.source.port,
        direction.destination.address,
        direction.destination.port,
        direction.side,
        report.end,
    );
    println!("  {counts:?}");
    println!(
        "  {:?} spurious {} {}",
        direction.causes, direction.spurious.dsack, direction.spurious.eifel
    );
    println!("  {:?} T0 {:?}", direction.indications, direction.t0_s);
    println!(
        "  RTT us: Karn {:?} sender {:?} over time {:?} timestamps {:?} handshake {:?}",
        ms(direction.rtt.karn),
        ms(direction.rtt.sender),
        direction.rtt.over_time_s,
        ms(direction.rtt.timestamps),
        report.handshake_rtt_s,
    );
    if std::env::var_os("EACH").is_some() {
        for again in &direction.retransmitted {
            let time = (again.time - report.first) as f64 / 1e9;
            println!(
                "    {time:.6} {} +{} {:?} {}",
                again.offset, again.bytes, again.cause, again.spurious
            );
        }
    }
    show_limits(direction);
    println!(
        "  b {:?} W_max {:?} initial {:?} flight {} {:?}",
        direction.packets_per_ack(),
        direction.w_max_packets(),
        direction.initial_window_packets,
        direction.flight_max_bytes,
        direction.flight_mean_bytes,
    );
}

fn show_limits(direction: &DirectionReport) {
    let limitation = &direction.limitation;
    let shares = limitation.shares.unwrap_or_default();
    let shown: Vec<_> = TransferLimit::ALL
        .iter()
        .zip(shares)
        .filter(|(_, share)| *share > 0.0)
        .map(|(limit, share)| format!("{limit:?} {:.1} %", 100.0 * share))
        .collect();
    println!("  limited by {:?}: {}", limitation.limited_by, shown.join(", "));
    println!(
        "  idle {:?} s, bottleneck {:?} bit/s, window cut to {:?}, rounds {:?} x {}, correlation {:?}",
        limitation.idle_s,
        limitation.bottleneck_rate_bps,
        limitation.window_reduction,
        direction.rtt.round_mean_s,
        direction.rtt.round_samples,
        direction.rtt.flight_correlation,
    );
    if std::env::var_os("ROUNDS").is_some() {
        for round in &direction.rounds {
            println!("    {round:?}");
        }
    }
}
