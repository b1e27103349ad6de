//! Prints what is found in captures, a few lines for each direction that carries data, and how fast it was read.

use std::path::Path;
use std::time::Instant;

use tcpcast_trace::{ConnectionReport, Connections, DirectionReport, Durations, Reader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let quiet = std::env::var_os("QUIET").is_some();
    let show = |report: &ConnectionReport| {
        if !quiet {
            show(report)
        }
    };
    for name in std::env::args().skip(1) {
        let start = Instant::now();
        let mut reader = Reader::open(Path::new(&name))?;
        let mut connections = Connections::default();
        let mut segments = 0_u64;
        while let Some(segment) = reader.next_segment() {
            connections.push(segment);
            segments += 1;
            if segments % 1024 == 0 {
                connections.finished().iter().for_each(show);
            }
        }
        let count = connections.count();
        connections.finish().for_each(|report| show(&report));
        let rate = segments as f64 / start.elapsed().as_secs_f64() / 1e6;
        println!("{name}: {count} connections, {segments} segments, {rate:.2} million a second\n");
    }
    Ok(())
}

fn show(report: &ConnectionReport) {
    for direction in report.directions.iter().filter(|direction| direction.counts.data_packets > 0)
    {
        show_direction(report, direction);
    }
}

fn show_direction(report: &ConnectionReport, direction: &DirectionReport) {
    let counts = &direction.counts;
    let ms = |durations: Option<Durations>| durations.map(|d| (d.samples, (d.mean_s * 1e6) as u64));
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
    println!(
        "  b {:?} W_max {:?} initial {:?} flight {} {:.0}",
        direction.packets_per_ack(),
        direction.w_max_packets(),
        direction.initial_window_packets,
        direction.flight_max_bytes,
        direction.flight_mean_bytes,
    );
}
