//! What a flow sends with the network stack of the kernel, with the distributions and random streams
//! of the sources in the simulator.

use std::num::NonZeroU32;
use tcpcast_emu::traffic::{
    ConnectionUse, Exchange, ExchangeGenerator, FileGenerator, FileToSend, FlowApp,
    MessageGenerator, StreamConfig,
};
use tcpcast_link::time::Nanos;
use tcpcast_sim::clock::seconds_to_nanos;
use tcpcast_sim::flows::{FlowClassConfig, FlowTraffic, SendingEnds};
use tcpcast_sim::random::{NamedStream, RandomStream, StreamPurpose};
use tcpcast_sim::traffic::{SizeOffTimeCoupling, SourceStart, draw_source_start};
use tcpcast_sim::{Distribution, FileSize, SizeRounding, Traffic};

/// A source of the simulator.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedSourceId {
    pub class: u32,
    /// Index among the sources of its class.
    pub class_index: usize,
    /// Index among all sources.
    pub index: u32,
    /// Index among the emulated flows.
    pub flow: usize,
}

/// Transfers that run one at a time: `count` transfers per size, with pauses between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct IsolatedTransfers {
    pub pause: Nanos,
    pub count: u64,
}

/// What a source sends, and its start time if it sends no files; `None` for pages, which sockets
/// do not load.
pub(super) fn flow_app(
    class: &FlowClassConfig,
    source: SimulatedSourceId,
    (seed, replication): (u64, u32),
    (payload, isolated): (NonZeroU32, IsolatedTransfers),
) -> Option<(FlowApp, Option<Nanos>)> {
    let stream = |purpose| RandomStream::for_entity(seed, replication, source.index, purpose);
    let mut times = stream(StreamPurpose::OffTime);
    let mut sizes = stream(StreamPurpose::Size);
    let start = class.traffic.draw_start_time(source.class_index, &mut times);
    let app = match &class.traffic {
        FlowTraffic::Files(traffic) => {
            let sender = usize::from(class.sends == SendingEnds::Client);
            let draws = (seed, replication);
            let (files, session) = file_generator(traffic, source, draws, (payload, isolated));
            FlowApp::Files { sender, files, session }
        }
        FlowTraffic::Requests(requests) => {
            let fan_in = requests.fan_in.get() as usize;
            let first = source.flow - source.class_index % fan_in;
            let requests = requests.clone();
            let mut draw_bytes =
                move |of: &Distribution| of.draw_value(&mut sizes).round().max(1.0) as u64;
            let next = move || {
                let (request, answer) =
                    (draw_bytes(&requests.request), draw_bytes(&requests.answer));
                let server_time = seconds_to_nanos(requests.server_time.draw_value(&mut times));
                let pause = seconds_to_nanos(requests.pause.draw_value(&mut times));
                Exchange { request, answer, server_time, pause }
            };
            let exchanges = ExchangeGenerator(Box::new(next));
            FlowApp::Requests { exchanges, client: (first, fan_in) }
        }
        FlowTraffic::Page(_) => return None,
        // Python has refused several rates.
        FlowTraffic::Stream(stream) => FlowApp::Stream(StreamConfig {
            segment_bytes: ((*stream.rates_bps.first()? as f64 * stream.segment_s / 8.0).round()
                as u64)
                .max(1),
            segment: seconds_to_nanos(stream.segment_s),
            start_buffer: seconds_to_nanos(stream.start_buffer_s),
            max_buffer: seconds_to_nanos(stream.max_buffer_s),
        }),
        FlowTraffic::Messages(messages) => {
            let (bytes, interval) = (messages.bytes.clone(), messages.interval.clone());
            let next = move || {
                let bytes = bytes.draw_value(&mut sizes).round().max(1.0) as u32;
                (bytes, seconds_to_nanos(interval.draw_value(&mut times)).max(1))
            };
            let sends =
                [SendingEnds::Client, SendingEnds::Server].map(|other| class.sends != other);
            FlowApp::Messages(MessageGenerator(Box::new(next)), sends)
        }
        FlowTraffic::Ping(ping) => {
            let (bytes, interval) = (ping.bytes, ping.interval.clone());
            let next = move || (bytes, seconds_to_nanos(interval.draw_value(&mut times)).max(1));
            FlowApp::Ping(MessageGenerator(Box::new(next)))
        }
    };
    Some((app, start.map(seconds_to_nanos)))
}

/// Returns the files of a source and its use of connections. Packets contain up to `payload` bytes
/// of data.
fn file_generator(
    traffic: &Traffic,
    source: SimulatedSourceId,
    (seed, replication): (u64, u32),
    (payload, isolated): (NonZeroU32, IsolatedTransfers),
) -> (FileGenerator, ConnectionUse) {
    let stream = |entity, purpose| RandomStream::for_entity(seed, replication, entity, purpose);
    let source_stream = |purpose| stream(source.index, purpose);
    let (off_times, sizes) =
        (source_stream(StreamPurpose::OffTime), source_stream(StreamPurpose::Size));
    let bytes = move |file: FileSize| {
        let full = u64::from(file.packets) * u64::from(payload.get());
        Some(full - u64::from(file.lacking))
    };
    match traffic {
        Traffic::Bulk { .. } => {
            let mut start =
                draw_start_of_endless_file(traffic, source.class_index, off_times, sizes);
            (FileGenerator(Box::new(move || start.take())), ConnectionUse::Endless)
        }
        Traffic::Transfers { sizes } => {
            let (sizes, mut number) = (sizes.clone(), 0);
            let next = move || {
                let size = sizes[(number % sizes.len() as u64) as usize];
                let after = if number == 0 { 0 } else { isolated.pause };
                number += 1;
                let more = number <= isolated.count * sizes.len() as u64;
                more.then(|| FileToSend { after, bytes: bytes(size) })
            };
            (FileGenerator(Box::new(next)), ConnectionUse::Each)
        }
        Traffic::Arrivals { gap, size, rounding } => {
            let class_stream = |purpose| stream(source.class, purpose);
            let (mut gaps, mut sizes) =
                (class_stream(StreamPurpose::Arrival), class_stream(StreamPurpose::ArrivalSize));
            let (gap, size, rounding) = (gap.clone(), size.clone(), *rounding);
            let next = move || {
                let after = seconds_to_nanos(gap.draw_value(&mut gaps));
                let file = rounding.round_to_file_size(size.draw_value(&mut sizes));
                Some(FileToSend { after, bytes: bytes(file) })
            };
            (FileGenerator(Box::new(next)), ConnectionUse::Arriving)
        }
        Traffic::OnOff { off, size, rounding, persistent, coupling, .. } => {
            let (coupling, by) = (SizeOffTimeCoupling::default(), *coupling);
            let mut random = OnOffFiles { off_times, sizes, coupling, by };
            let OnOffFiles { off_times, sizes, .. } = &mut random;
            let mut start = draw_source_start(traffic, source.class_index, false, off_times, sizes);
            let distributions = (off.clone(), size.clone(), *rounding);
            let next = move || {
                let (after, file) = random.next_file(&distributions, start.take());
                Some(FileToSend { after, bytes: bytes(file) })
            };
            let session = if *persistent { ConnectionUse::Persistent } else { ConnectionUse::Each };
            (FileGenerator(Box::new(next)), session)
        }
    }
}

fn draw_start_of_endless_file(
    traffic: &Traffic,
    class_index: usize,
    mut off_times: RandomStream,
    mut sizes: RandomStream,
) -> Option<FileToSend> {
    match draw_source_start(traffic, class_index, false, &mut off_times, &mut sizes) {
        Some(SourceStart::Sends { after, .. }) => {
            Some(FileToSend { after: seconds_to_nanos(after), bytes: None })
        }
        _ => None,
    }
}

/// Random state of an on/off source.
struct OnOffFiles {
    off_times: RandomStream,
    sizes: RandomStream,
    coupling: SizeOffTimeCoupling,
    by: f64,
}

impl OnOffFiles {
    /// Draws the next OFF time and the file after it.
    fn next_file(
        &mut self,
        (off, size, rounding): &(Distribution, Distribution, SizeRounding),
        start: Option<SourceStart>,
    ) -> (Nanos, FileSize) {
        let (seconds, left) = match start {
            Some(SourceStart::Sends { after, size }) => (after, size),
            Some(SourceStart::Off { left, .. }) => (left, 0),
            None => (self.coupling.draw_off_time(0, off, self.by, &mut self.off_times), 0),
        };
        let file = match left {
            0 => rounding.round_to_file_size(self.coupling.draw_file_size(
                0,
                size,
                self.by,
                &mut self.sizes,
            )),
            left => FileSize::of_full_packets(left),
        };
        (seconds_to_nanos(seconds), file)
    }
}
