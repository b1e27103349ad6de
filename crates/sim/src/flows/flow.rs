//! A flow: both ends of a connection, its routes, and its application.

use super::apps::AppState;
use super::config::{
    FlowClassConfig, FlowTcp, FlowTraffic, NetworkConfig, ReadingConfig, SendingEnds, WritingConfig,
};
use super::links::{allows_simultaneous_arrivals, unloaded_rtt};
use super::parcel::{CLIENT, NOT_WANTED, SERVER};
use crate::clock::{NEVER, Nanos};
use crate::probe::SourceRecord;
use crate::random::RandomStream;
use crate::traffic::Traffic;
use tcpcast_net::RouteId;
use tcpcast_tcp::modern::{ApplicationReading, EndpointRole, HandshakeKind, ModernTcpConfig};
use tcpcast_tcp::{End, EndTcp, PacketTcp};

/// Roles of the ends in the opening of a session.
pub(crate) const ROLES: [EndpointRole; 2] = [EndpointRole::Server, EndpointRole::Client];

/// One end of a flow.
#[derive(Debug)]
pub(crate) struct FlowEnd {
    pub endpoint: Option<End>,
    /// Connection of the flow to which the endpoint belongs.
    pub connection: u32,
    pub checks: ScheduledChecks,
}

/// Earliest scheduled check of the timer of a sender, of the timer of a receiver, and of a pacer.
#[derive(Debug)]
pub(crate) struct ScheduledChecks {
    pub timer: Nanos,
    pub ack_timer: Nanos,
    pub pacing: Nanos,
}

impl FlowEnd {
    fn new() -> Self {
        let checks = ScheduledChecks { timer: NEVER, ack_timer: NEVER, pacing: NEVER };
        Self { endpoint: None, connection: 0, checks }
    }
}

/// A source.
#[derive(Debug)]
pub(crate) struct Flow {
    pub record: SourceRecord,
    pub ends: [FlowEnd; 2],
    /// Routes of the current connection by the end that sends, and all alternatives.
    pub routes: [RouteId; 2],
    pub route_set: u32,
    /// Current or last connection; segments of earlier connections are ignored.
    pub connection: u32,
    /// Packets of the current file; 0 if there is none.
    pub size: u32,
    /// Bytes that an end writes as soon as its session is open.
    pub unwritten: [u64; 2],
    /// Start of a connection with a handshake, until its file ends.
    pub opened_at: Option<Nanos>,
    /// Number of received bytes for which the application of each end waits.
    pub wanted: [u64; 2],
    pub off_times: RandomStream,
    pub sizes: RandomStream,
    pub seeds: RandomStream,
    pub app: AppState,
    /// Whether the flow has stopped: an end that has unacknowledged data sends nothing more, and
    /// ignores acknowledgements.
    pub stopped: bool,
}

impl Flow {
    /// Creates a flow; `streams` are the random streams of OFF times, sizes and connections.
    pub fn new(
        record: SourceRecord,
        routes: [RouteId; 2],
        route_set: u32,
        streams: [RandomStream; 3],
        app: AppState,
    ) -> Self {
        let [off_times, sizes, seeds] = streams;
        Self {
            record,
            ends: [FlowEnd::new(), FlowEnd::new()],
            routes,
            route_set,
            connection: 0,
            size: 0,
            unwritten: [0; 2],
            opened_at: None,
            wanted: [NOT_WANTED; 2],
            off_times,
            sizes,
            seeds,
            app,
            stopped: false,
        }
    }
}

/// Statistics of delivered packets, in addition to their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveredStatistics {
    /// Arrival time of the last packet of each file.
    LastOfFile,
    /// Arrival time of the last packet, and of each block of packets of a file.
    BlocksOfFile,
    /// Number of delivered packets per source.
    Packets,
    /// Number of delivered packets, and packets delivered in order by given times.
    PacketsByTime,
}

/// What a host does with bursts of segmentation offload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OffloadRules {
    /// Packets that are sent together are one unit: TSO or GSO.
    pub sends_bursts: bool,
    /// A burst is one packet for the receiving TCP: GRO.
    pub receives_bursts: bool,
}

/// Properties of all flows of a class.
#[derive(Clone, Debug)]
pub(crate) struct FlowClass {
    pub traffic: FlowTraffic,
    pub reading: Option<ReadingConfig>,
    pub writing: Option<WritingConfig>,
    /// Whether the application of a sender waits for space in the send buffer.
    pub waits_for_space: bool,
    /// TCP of each end.
    tcp: Option<[EndTcp; 2]>,
    /// Whether the network notifies senders of each loss instantaneously.
    pub has_loss_feedback: bool,
    /// Whether a sent packet needs more processing than being passed to the network.
    pub prepares_packets: bool,
    /// Ends whose packets count as data.
    pub sends: [bool; 2],
    pub packet_bytes: u32,
    /// Bytes of the payload of a full packet.
    pub payload_bytes: u32,
    pub ack_bytes: u32,
    pub offload: OffloadRules,
    pub statistics: DeliveredStatistics,
    /// Ends at which the host delays arriving packets.
    pub delays: [bool; 2],
    /// Index of the first flow, members of the site, and flows per member.
    pub first: usize,
    pub members: u32,
    pub flows: u32,
}

impl FlowClass {
    pub fn new(config: &NetworkConfig, index: usize, first: usize) -> Self {
        let class = &config.classes[index];
        let sends = data_ends(class);
        let tcp = class.tcp.as_ref().map(|tcp| match tcp {
            FlowTcp::Modern(tcp) => {
                let simultaneous = allows_simultaneous_arrivals(config, index);
                let rtt = unloaded_rtt(config, index);
                [SERVER, CLIENT]
                    .map(|end| EndTcp::Modern(tcp_of_end(*tcp, class, rtt, end, simultaneous[end])))
            }
            FlowTcp::Packets(rules) => sends.map(|sends| {
                let (rules, packet_bytes) = (rules.clone(), class.packet_bytes);
                EndTcp::Packets(PacketTcp { rules, packet_bytes, sends })
            }),
        });
        let is_endless = !matches!(
            class.traffic,
            FlowTraffic::Files(
                Traffic::OnOff { .. } | Traffic::Arrivals { .. } | Traffic::Transfers { .. }
            )
        );
        let statistics = match is_endless {
            true if config.probes.report_at.is_empty() => DeliveredStatistics::Packets,
            true => DeliveredStatistics::PacketsByTime,
            false if config.probes.goodput_packets > 0 => DeliveredStatistics::BlocksOfFile,
            false => DeliveredStatistics::LastOfFile,
        };
        let payload_bytes = match &class.tcp {
            Some(FlowTcp::Modern(tcp)) => tcp.stack.mss,
            _ => class.packet_bytes,
        };
        let has_loss_feedback = matches!(
            &class.tcp,
            Some(FlowTcp::Packets(rules)) if rules.instant.is_some()
        );
        Self {
            traffic: class.traffic.clone(),
            reading: class.reading.clone(),
            writing: class.writing.clone(),
            waits_for_space: waits_for_space(class),
            tcp,
            has_loss_feedback,
            prepares_packets: has_loss_feedback
                || class.tso
                || config.round_loss.is_some()
                || !config.probes.captures.is_empty(),
            sends,
            packet_bytes: class.packet_bytes,
            payload_bytes,
            ack_bytes: class.ack_bytes,
            offload: OffloadRules { sends_bursts: class.tso, receives_bursts: class.gro },
            statistics,
            delays: delayed_ends(class),
            first,
            members: config.member_count(class),
            flows: class.flows,
        }
    }

    /// TCP of an end, if the traffic uses TCP.
    #[inline(always)]
    pub fn tcp(&self, end: usize) -> Option<&EndTcp> {
        self.tcp.as_ref().map(|tcp| &tcp[end])
    }

    /// Whether an application reads or writes in steps instead of at once.
    #[inline(always)]
    pub fn has_stepped_application(&self) -> bool {
        self.reading.is_some() || self.writing.is_some()
    }

    /// Whether the application of an end reads in steps.
    pub fn reads_in_steps(&self, end: usize) -> bool {
        self.reading.is_some() && self.sends[SERVER + CLIENT - end]
    }

    /// Numbers of received bytes for which the applications of a new flow wait.
    pub fn first_wanted_bytes(&self) -> [u64; 2] {
        [SERVER, CLIENT].map(|end| if self.reads_in_steps(end) { 0 } else { NOT_WANTED })
    }

    /// Modern TCP of the server; `None` for classic TCP.
    fn modern_tcp(&self) -> Option<&ModernTcpConfig> {
        match self.tcp(SERVER)? {
            EndTcp::Modern(tcp) => Some(tcp),
            EndTcp::Packets(_) => None,
        }
    }

    /// Whether connections begin with a handshake.
    pub fn has_handshake(&self) -> bool {
        self.modern_tcp().is_some_and(|tcp| tcp.handshake != HandshakeKind::None)
    }

    /// Whether the flows send one stream of data instead of files.
    #[inline(always)]
    pub fn is_endless(&self) -> bool {
        matches!(self.statistics, DeliveredStatistics::Packets | DeliveredStatistics::PacketsByTime)
    }

    /// Whether connections are closed after a file.
    pub fn traffic_closes(&self) -> bool {
        self.modern_tcp().is_some_and(|tcp| tcp.closes)
    }

    /// The end that sends files.
    #[inline(always)]
    pub fn file_sender(&self) -> usize {
        if self.sends[SERVER] { SERVER } else { CLIENT }
    }

    /// Length of a packet with `data` bytes of data.
    #[inline(always)]
    pub fn packet_length(&self, data: u32) -> u32 {
        data + (self.packet_bytes - self.payload_bytes)
    }

    /// Member of the site to which a flow belongs.
    pub fn member_of(&self, flow: usize) -> u32 {
        ((flow - self.first) as u32 / self.flows.max(1)) % self.members
    }
}

/// Whether the application of a sender waits for space in the send buffer.
fn waits_for_space(class: &FlowClassConfig) -> bool {
    matches!(&class.traffic, FlowTraffic::Page(page) if page.multiplexes) || class.writing.is_some()
}

/// Ends whose packets count as data.
pub(crate) fn data_ends(class: &FlowClassConfig) -> [bool; 2] {
    match (&class.traffic, class.sends) {
        (FlowTraffic::Requests(_) | FlowTraffic::Stream(_) | FlowTraffic::Page(_), _) => {
            [true, false]
        }
        (FlowTraffic::Ping(_), _) | (_, SendingEnds::Both) => [true, true],
        (_, SendingEnds::Server) => [true, false],
        (_, SendingEnds::Client) => [false, true],
    }
}

/// Ends at which the host delays an arriving packet: the receiver of data, also on behalf of the
/// sender for the acknowledgement, or both ends.
pub(crate) fn delayed_ends(class: &FlowClassConfig) -> [bool; 2] {
    let ends = data_ends(class);
    let has_requests = matches!(
        class.traffic,
        FlowTraffic::Requests(_) | FlowTraffic::Stream(_) | FlowTraffic::Page(_)
    );
    [SERVER, CLIENT]
        .map(|end| class.host_noise > 0 && (has_requests || ends[SERVER + CLIENT - end]))
}

fn tcp_of_end(
    mut tcp: ModernTcpConfig,
    class: &FlowClassConfig,
    rtt: Nanos,
    end: usize,
    simultaneous: bool,
) -> ModernTcpConfig {
    let sends = data_ends(class);
    if !waits_for_space(class) || !sends[end] {
        tcp.stack.socket = None;
    }
    let receiving = &mut tcp.stack.receiving;
    if receiving.reading == ApplicationReading::EachPacket && simultaneous {
        receiving.reading = ApplicationReading::EachInstant;
    }
    if class.reading.is_some() && sends[SERVER + CLIENT - end] {
        receiving.reading = ApplicationReading::OnRequest;
    }
    tcp.rtt = rtt;
    tcp.closes = match &class.traffic {
        FlowTraffic::Files(traffic) => traffic.closes_after_file(),
        _ => false,
    };
    tcp
}
