//! Files sent by a flow over the TCP of the kernel, with the distributions and random streams of
//! the sources in the simulator.

use std::num::NonZeroU32;
use tcpcast_emu::traffic::{File, Files, Session};
use tcpcast_link::time::Nanos;
use tcpcast_sim::clock::nanoseconds;
use tcpcast_sim::random::{Named, Purpose, Stream};
use tcpcast_sim::traffic::{Coupling, SourceStart, draw_start};
use tcpcast_sim::{Distribution, FileSize, Rounding, Traffic};

/// A source of the simulator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub class: u32,
    /// Index among the sources of its class.
    pub class_index: usize,
    /// Index among all sources.
    pub index: u32,
}

/// Transfers that run one at a time: `count` transfers per size, with pauses between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct IsolatedTransfers {
    pub pause: Nanos,
    pub count: u64,
}

/// Returns the files of a source, its use of connections, and its stop time. Packets contain up to
/// `payload` bytes of data.
pub(super) fn files(
    traffic: &Traffic,
    source: Source,
    (seed, replication): (u64, u32),
    (payload, isolated): (NonZeroU32, IsolatedTransfers),
) -> (Files, Session, Option<Nanos>) {
    let stream = |entity, purpose| Stream::named(seed, replication, entity, purpose);
    let source_stream = |purpose| stream(source.index, purpose);
    let (off_times, sizes) = (source_stream(Purpose::OffTime), source_stream(Purpose::Size));
    let bytes = move |file: FileSize| {
        let full = u64::from(file.packets) * u64::from(payload.get());
        Some(full - u64::from(file.lacking))
    };
    match traffic {
        Traffic::Bulk { stop, .. } => {
            let mut start = endless(traffic, source.class_index, off_times, sizes);
            let stop = stop.map(nanoseconds);
            (Files(Box::new(move || start.take())), Session::Endless, stop)
        }
        Traffic::Transfers { sizes } => {
            let (sizes, mut number) = (sizes.clone(), 0);
            let next = move || {
                let size = sizes[(number % sizes.len() as u64) as usize];
                let after = if number == 0 { 0 } else { isolated.pause };
                number += 1;
                let more = number <= isolated.count * sizes.len() as u64;
                more.then(|| File { after, bytes: bytes(size) })
            };
            (Files(Box::new(next)), Session::Each, None)
        }
        Traffic::Arrivals { gap, size, rounding } => {
            let class_stream = |purpose| stream(source.class, purpose);
            let (mut gaps, mut sizes) =
                (class_stream(Purpose::Arrival), class_stream(Purpose::ArrivalSize));
            let (gap, size, rounding) = (gap.clone(), size.clone(), *rounding);
            let next = move || {
                let after = nanoseconds(gap.draw(&mut gaps));
                Some(File { after, bytes: bytes(rounding.file(size.draw(&mut sizes))) })
            };
            (Files(Box::new(next)), Session::Arriving, None)
        }
        Traffic::OnOff { off, size, rounding, persistent, coupling, .. } => {
            let (coupling, by) = (Coupling::default(), *coupling);
            let mut random = OnOff { off_times, sizes, coupling, by };
            let OnOff { off_times, sizes, .. } = &mut random;
            let mut start = draw_start(traffic, source.class_index, false, off_times, sizes);
            let distributions = (off.clone(), size.clone(), *rounding);
            let next = move || {
                let (after, file) = random.next(&distributions, start.take());
                Some(File { after, bytes: bytes(file) })
            };
            let session = if *persistent { Session::Persistent } else { Session::Each };
            (Files(Box::new(next)), session, None)
        }
    }
}

fn endless(
    traffic: &Traffic,
    class_index: usize,
    mut off_times: Stream,
    mut sizes: Stream,
) -> Option<File> {
    match draw_start(traffic, class_index, false, &mut off_times, &mut sizes) {
        Some(SourceStart::Sends { after, .. }) => {
            Some(File { after: nanoseconds(after), bytes: None })
        }
        _ => None,
    }
}

/// Random state of an on/off source.
struct OnOff {
    off_times: Stream,
    sizes: Stream,
    coupling: Coupling,
    by: f64,
}

impl OnOff {
    /// Draws the next OFF time and the file after it.
    fn next(
        &mut self,
        (off, size, rounding): &(Distribution, Distribution, Rounding),
        start: Option<SourceStart>,
    ) -> (Nanos, FileSize) {
        let (seconds, left) = match start {
            Some(SourceStart::Sends { after, size }) => (after, size),
            Some(SourceStart::Off { left, .. }) => (left, 0),
            None => (self.coupling.off_time(0, off, self.by, &mut self.off_times), 0),
        };
        let file = match left {
            0 => rounding.file(self.coupling.size(0, size, self.by, &mut self.sizes)),
            left => FileSize::full(left),
        };
        (nanoseconds(seconds), file)
    }
}
