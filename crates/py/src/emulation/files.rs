//! What a flow over the kernel's TCP sends: the distributions of the simulator's sources, drawn from the
//! same streams of random numbers.

use std::num::NonZeroU32;
use tcpcast_emu::traffic::{File, Files, Session};
use tcpcast_link::time::Nanos;
use tcpcast_sim::clock::nanoseconds;
use tcpcast_sim::random::{Named, Purpose, Stream};
use tcpcast_sim::traffic::{Coupling, SourceStart, draw_start};
use tcpcast_sim::{Distribution, FileSize, Rounding, Traffic};

/// Which of the simulator's sources it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub class: u32,
    /// Among those of its class.
    pub place: usize,
    /// Among all.
    pub index: u32,
}

/// Transfers that are each alone: so many of each size, with pauses between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone {
    pub pause: Nanos,
    pub count: u64,
}

/// What a source sends, over which connections, and when it stops; packets have room for `payload`
/// bytes.
pub(super) fn files(
    traffic: &Traffic,
    source: Source,
    (seed, replication): (u64, u32),
    (payload, alone): (NonZeroU32, Alone),
) -> (Files, Session, Option<Nanos>) {
    let stream = |entity, purpose| Stream::named(seed, replication, entity, purpose);
    let own = |purpose| stream(source.index, purpose);
    let (off_times, sizes) = (own(Purpose::OffTime), own(Purpose::Size));
    let bytes = move |file: FileSize| {
        let whole = u64::from(file.packets) * u64::from(payload.get());
        Some(whole - u64::from(file.lacking))
    };
    match traffic {
        Traffic::Bulk { stop, .. } => {
            let mut start = endless(traffic, source.place, off_times, sizes);
            let stop = stop.map(nanoseconds);
            (Files(Box::new(move || start.take())), Session::Endless, stop)
        }
        Traffic::Transfers { sizes } => {
            let (sizes, mut number) = (sizes.clone(), 0);
            let next = move || {
                let size = sizes[(number % sizes.len() as u64) as usize];
                let after = if number == 0 { 0 } else { alone.pause };
                number += 1;
                let more = number <= alone.count * sizes.len() as u64;
                more.then(|| File { after, bytes: bytes(size) })
            };
            (Files(Box::new(next)), Session::Each, None)
        }
        Traffic::Arrivals { gap, size, rounding } => {
            let of_class = |purpose| stream(source.class, purpose);
            let (mut gaps, mut sizes) =
                (of_class(Purpose::Arrival), of_class(Purpose::ArrivalSize));
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
            let mut begins = draw_start(traffic, source.place, false, off_times, sizes);
            let distributions = (off.clone(), size.clone(), *rounding);
            let next = move || {
                let (after, file) = random.next(&distributions, begins.take());
                Some(File { after, bytes: bytes(file) })
            };
            let session = if *persistent { Session::Persistent } else { Session::Each };
            (Files(Box::new(next)), session, None)
        }
    }
}

fn endless(
    traffic: &Traffic,
    place: usize,
    mut off_times: Stream,
    mut sizes: Stream,
) -> Option<File> {
    match draw_start(traffic, place, false, &mut off_times, &mut sizes) {
        Some(SourceStart::Sends { after, .. }) => {
            Some(File { after: nanoseconds(after), bytes: None })
        }
        _ => None,
    }
}

/// An on/off source's random numbers.
struct OnOff {
    off_times: Stream,
    sizes: Stream,
    coupling: Coupling,
    by: f64,
}

impl OnOff {
    /// The OFF time that is next, and the file behind it.
    fn next(
        &mut self,
        (off, size, rounding): &(Distribution, Distribution, Rounding),
        begins: Option<SourceStart>,
    ) -> (Nanos, FileSize) {
        let (seconds, left) = match begins {
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
