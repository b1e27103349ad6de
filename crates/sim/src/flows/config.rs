//! Configuration of a run on a network of links: plain numbers, which the caller has validated.

use crate::clock::Nanos;
use crate::cross::{ArrivalProcess, FluidBins};
use crate::jitter::JitterConfig;
use crate::loss::LinkLossConfig;
use crate::probe::{LINK_CLASS_CELLS, LINK_TOTAL_CELLS, ProbeConfig};
use crate::queue::{LinkRate, TokenBucketConfig, disciplines};
use crate::random::{NamedStream, RandomSource, RandomStream, StreamPurpose, mix_bits};
use crate::traffic::{BulkStartTimes, Distribution, Traffic};
use serde::Deserialize;
use std::num::{NonZeroU32, NonZeroU64};
use tcpcast_link::Ecn;
use tcpcast_link::remark::EcnRemarkConfig;
use tcpcast_link::request_grant::RequestGrantConfig;
use tcpcast_tcp::TcpConfig;
use tcpcast_tcp::modern::ModernTcpConfig;

/// Instances of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkInstances {
    /// One link for all sources.
    #[default]
    All,
    /// One link per source.
    Sender,
    /// One link per member of the site with this number.
    Site(usize),
}

/// A change of a link during the run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkChangeConfig {
    /// A constant rate in bit/s; `None` is unlimited.
    Rate(Option<u64>),
    /// The propagation delay in nanoseconds.
    Delay(Nanos),
    /// Random loss.
    Loss(Option<LinkLossConfig>),
}

/// A change and its time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimedChange {
    /// Time of the change.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// The change.
    pub change: LinkChangeConfig,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkLinkConfig {
    /// Rate.
    pub rate: LinkRate,
    /// Rate above which packets are dropped on arrival.
    pub policer: Option<TokenBucketConfig>,
    /// Propagation delay.
    #[serde(rename = "delay_ns")]
    pub delay: Nanos,
    /// Buffer limit in packets, including the packet in transmission; `None` is unlimited.
    #[serde(rename = "limit_pkts")]
    pub limit: Option<u64>,
    /// Buffer limit in bytes, including the packet in transmission; `None` is unlimited.
    pub limit_bytes: Option<u64>,
    /// Queue discipline.
    pub queue: disciplines::QueueConfig,
    /// Change of the ECN field before the queue.
    pub remark: Option<EcnRemarkConfig>,
    /// Random loss.
    pub loss: Option<LinkLossConfig>,
    /// Random delay behind the transmitter.
    pub jitter: Option<JitterConfig>,
    /// Wait for grants of a cable network behind the transmitter; excludes jitter.
    pub docsis: Option<RequestGrantConfig>,
    /// Instances.
    pub each: LinkInstances,
    /// Changes in the order of time.
    pub changes: Vec<TimedChange>,
}

/// Hosts that share links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteConfig {
    /// Number of members.
    pub count: u32,
}

/// Ends that send data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SendingEnds {
    /// The server, over the route.
    Server,
    /// The client, over the return path.
    Client,
    /// Both.
    Both,
}

/// Requests of a client and answers of its server, one after the other.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestTraffic {
    /// Bytes of a request.
    pub request: Distribution,
    /// Bytes of an answer.
    pub answer: Distribution,
    /// Time from the whole request to the answer, in seconds.
    pub server_time: Distribution,
    /// Time from the end of the answer to the next request, in seconds.
    pub pause: Distribution,
    /// Consecutive sources that form one client, which sends all requests at once and waits for all
    /// answers.
    pub fan_in: NonZeroU32,
    /// Start times of the clients, in seconds.
    pub start: BulkStartTimes,
    /// Stop time in seconds.
    pub stop: Option<f64>,
}

/// Messages of one packet without acknowledgements.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageTraffic {
    /// Bytes of a packet, headers included.
    pub bytes: Distribution,
    /// Time between two messages, in seconds.
    pub interval: Distribution,
    /// ECN codepoint of the packets; the messages do not respond to marks.
    pub ecn: Ecn,
    /// Start times, in seconds.
    pub start: BulkStartTimes,
    /// Stop time in seconds.
    pub stop: Option<f64>,
}

/// Echo requests of a client.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PingTraffic {
    /// Bytes of a packet, headers included.
    pub bytes: u32,
    /// Time between two pings, in seconds.
    pub interval: Distribution,
    /// Start times, in seconds.
    pub start: BulkStartTimes,
    /// Stop time in seconds.
    pub stop: Option<f64>,
}

/// Rule by which a player chooses among the rates of its video.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QualityControl {
    /// By the buffered time: BBA-0 (Huang et al., SIGCOMM 2014, algorithm 1).
    Buffer,
    /// By the harmonic mean of the throughput of the last five segments: rule RB of Yin et al.
    /// (SIGCOMM 2015).
    Throughput,
}

/// A player that requests segments, each at one of several rates.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamTraffic {
    /// Rates of the media in bit/s, ascending.
    #[serde(deserialize_with = "crate::traffic::deserialize_non_empty")]
    pub rates_bps: Vec<u64>,
    /// Choice among several rates.
    pub control: QualityControl,
    /// Length of a segment in seconds.
    pub segment_s: f64,
    /// Buffered time with which playing begins, and resumes after a stall, in seconds.
    pub start_buffer_s: f64,
    /// The next segment is requested when the buffered time including it is at most this, in
    /// seconds.
    pub max_buffer_s: f64,
    /// Start times, in seconds.
    pub start: BulkStartTimes,
    /// Stop time in seconds.
    pub stop: Option<f64>,
}

/// An object of a page.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageObject {
    /// Bytes of the answer and of the request, headers of HTTP included; at least 1.
    pub bytes: u64,
    /// Bytes of the request.
    pub request: u64,
    /// Number of the host.
    pub host: usize,
    /// Number of an earlier object in which this one is found; `None` if it is requested at once.
    pub parent: Option<u32>,
    /// Bytes of the parent with which this object is found.
    pub found_at: u64,
    /// Time from then to the request, in seconds.
    pub delay_s: f64,
    /// Time from the request to the answer at the server, in seconds.
    pub server_time_s: f64,
    /// Urgency from 0, the most urgent, to 7 (RFC 9218).
    pub urgency: u8,
}

/// A page.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Vec<PageObject>")]
pub struct Page {
    /// Objects; the first one is the document.
    pub objects: Vec<PageObject>,
    /// Objects found in each object, in the order in which they are found.
    pub children: Vec<Vec<u32>>,
}

impl TryFrom<Vec<PageObject>> for Page {
    type Error = String;

    fn try_from(objects: Vec<PageObject>) -> Result<Self, String> {
        let mut children = vec![Vec::new(); objects.len()];
        for (index, object) in (0_u32..).zip(&objects) {
            if object.bytes == 0 || object.request == 0 {
                return Err(format!("object {index} has no bytes"));
            }
            if let Some(parent) = object.parent {
                let parent_object = objects.get(parent as usize).filter(|_| parent < index);
                if parent_object.is_none_or(|parent| object.found_at > parent.bytes) {
                    return Err(format!("the parent of object {index} is not an earlier object"));
                }
                children[parent as usize].push(index);
            }
        }
        for found in &mut children {
            found.sort_by_key(|index: &u32| objects[*index as usize].found_at);
        }
        Ok(Self { objects, children })
    }
}

/// A host of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageHost {
    /// Delay behind the last link of the route from the host.
    #[serde(rename = "delay_ns")]
    pub delay: Nanos,
    /// Delay behind the last link of the return path.
    #[serde(rename = "back_delay_ns")]
    pub back_delay: Nanos,
}

/// Order in which a server writes answers to one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerOrder {
    /// The most urgent answer first, answers of equal urgency one after the other.
    Priority,
    /// Frames of all answers in turn.
    InTurn,
}

/// Browsers that load pages.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageTraffic {
    /// Pages; each load draws one of them.
    #[serde(deserialize_with = "crate::traffic::deserialize_non_empty")]
    pub pages: Vec<Page>,
    /// Hosts.
    #[serde(deserialize_with = "crate::traffic::deserialize_non_empty")]
    pub hosts: Vec<PageHost>,
    /// Connections of a browser to each host.
    pub connections_per_host: NonZeroU32,
    /// Whether a connection carries several requests at once: HTTP/2 and HTTP/3.
    pub multiplexes: bool,
    /// Order of the answers on such a connection.
    pub order: AnswerOrder,
    /// Whether connections stay open between pages.
    pub persistent: bool,
    /// Bytes of each message that the server sends when a session opens, before all answers, in
    /// packets of its own: session tickets of TLS, SETTINGS of HTTP/2.
    pub opening: Vec<u64>,
    /// Largest record of TLS over TCP in bytes: the browser reads only complete records. 1 without
    /// TLS, and in QUIC.
    pub record: NonZeroU64,
    /// Further time from a request to its answer at the server, in seconds.
    pub server_time: Distribution,
    /// Time from a complete page to the next one, in seconds.
    pub pause: Distribution,
    /// Start times of the browsers, in seconds.
    pub start: BulkStartTimes,
    /// Stop time in seconds.
    pub stop: Option<f64>,
}

impl PageTraffic {
    /// Connections of a browser.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.hosts.len() * self.connections_per_host.get() as usize
    }
}

/// Time between two reads of an application.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadPause {
    /// The time that the bytes of the read take at this rate in bit/s.
    RateBps(u64),
    /// A time in seconds.
    Time(Distribution),
}

/// An application that reads in steps.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadingConfig {
    /// Largest number of bytes of a read.
    pub size: u64,
    /// Time until the next read.
    pub pause: ReadPause,
}

/// An application that writes in steps.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WritingConfig {
    /// Bytes of a chunk.
    pub size: Distribution,
    /// Time from the write of a whole chunk to the next one, in seconds.
    pub gap: Distribution,
    /// Time until which the application always has data.
    #[serde(rename = "after_ns")]
    pub after: Nanos,
}

/// Traffic of a class.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowTraffic {
    /// Requests and answers.
    Requests(RequestTraffic),
    /// One-way messages.
    Messages(MessageTraffic),
    /// Echo requests.
    Ping(PingTraffic),
    /// Segments for a player.
    Stream(StreamTraffic),
    /// Pages of browsers; the sources of a browser are its connections.
    Page(PageTraffic),
    /// Files in one direction.
    Files(Traffic),
}

impl FlowTraffic {
    /// Consecutive sources that form one user.
    #[must_use]
    pub fn sources_per_user(&self) -> usize {
        match self {
            Self::Requests(requests) => requests.fan_in.get() as usize,
            Self::Page(page) => page.connections(),
            _ => 1,
        }
    }

    /// Whether the sources of a user share the links that exist once per source.
    pub(crate) fn shares_links(&self) -> bool {
        matches!(self, Self::Page(_))
    }

    /// Host of the server of a source that is at `in_user` of its user; 0 if there is only one.
    pub(crate) fn host_of(&self, in_user: usize) -> usize {
        match self {
            Self::Page(page) => in_user / page.connections_per_host.get() as usize,
            _ => 0,
        }
    }

    /// Stop time in seconds.
    #[must_use]
    pub fn stop_time(&self) -> Option<f64> {
        match self {
            Self::Requests(RequestTraffic { stop, .. })
            | Self::Messages(MessageTraffic { stop, .. })
            | Self::Ping(PingTraffic { stop, .. })
            | Self::Stream(StreamTraffic { stop, .. })
            | Self::Page(PageTraffic { stop, .. })
            | Self::Files(Traffic::Bulk { stop, .. }) => *stop,
            Self::Files(_) => None,
        }
    }
}

/// TCP of a class.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "there is one per class")]
pub enum FlowTcp {
    /// Modern TCP, whose sequence numbers count bytes.
    Modern(ModernTcpConfig),
    /// Classic TCP, whose sequence numbers count packets: one end sends files.
    Packets(TcpConfig),
}

impl FlowTcp {
    /// Modern TCP; `None` for classic TCP.
    #[must_use]
    pub fn modern(&self) -> Option<&ModernTcpConfig> {
        match self {
            Self::Modern(tcp) => Some(tcp),
            Self::Packets(_) => None,
        }
    }
}

/// A class of identical sources: pairs of a server and a client.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowClassConfig {
    /// Number of the site of the clients.
    pub site: Option<usize>,
    /// Number of sources, per member of the site if there is one.
    pub flows: u32,
    /// Links from the server to the client; one of several equal routes per connection.
    #[serde(deserialize_with = "crate::traffic::deserialize_non_empty")]
    pub routes: Vec<Vec<usize>>,
    /// Links from the client to the server.
    #[serde(deserialize_with = "crate::traffic::deserialize_non_empty")]
    pub back: Vec<Vec<usize>>,
    /// Delay of the rest of the route, behind its last link.
    #[serde(rename = "delay_ns")]
    pub delay: Nanos,
    /// Delay of the rest of the return path.
    #[serde(rename = "back_delay_ns")]
    pub back_delay: Nanos,
    /// Bytes of a full data packet, headers included; maximum length of a message.
    pub packet_bytes: u32,
    /// Bytes of a packet without data; SACK blocks make it longer.
    pub ack_bytes: u32,
    /// Whether packets that a host sends together are one unit on links: segmentation offload.
    pub tso: bool,
    /// Whether a host receives such a unit as one packet.
    pub gro: bool,
    /// Ends that send data; requests and streams are sent by both, and count for the server.
    pub sends: SendingEnds,
    /// Traffic of each source.
    pub traffic: FlowTraffic,
    /// Reads of files and endless data; `None` if each packet is read on arrival.
    pub reading: Option<ReadingConfig>,
    /// Writes of endless data; `None` if all data is written at the start.
    pub writing: Option<WritingConfig>,
    /// TCP of both ends; `None` for messages and pings.
    pub tcp: Option<FlowTcp>,
    /// Mean processing delay of each host per packet or timer; 0 for none.
    #[serde(rename = "host_noise_ns")]
    pub host_noise: Nanos,
    /// Number of the client, for queues that are fair among hosts: classes with the same number
    /// have the same client, on each member of a site. `None`: the member of the site is the
    /// client, and without a site each source has a client of its own.
    pub host: Option<u16>,
    /// Differentiated services codepoint of the packets in both directions, from 0 to 63.
    pub dscp: u8,
    /// Scale factor of a scaled population (on/off traffic only): sources of the population per
    /// simulated source. The configured rates and buffers must already be scaled down by this
    /// factor.
    pub scale: Option<f64>,
}

impl FlowClassConfig {
    /// Delays behind the last link of a route and of a return path, for a host of the class.
    pub(crate) fn rest_delays(&self, host: usize) -> [Nanos; 2] {
        match &self.traffic {
            FlowTraffic::Page(page) => {
                let PageHost { delay, back_delay } = page.hosts[host];
                [delay, back_delay]
            }
            _ => [self.delay, self.back_delay],
        }
    }

    /// Sources that share a link that exists once per source.
    pub(crate) fn sources_per_link(&self) -> u32 {
        let shares = self.traffic.shares_links();
        if shares { self.traffic.sources_per_user() as u32 } else { 1 }
    }

    /// Number of hosts with delays of their own.
    pub(crate) fn host_count(&self) -> usize {
        if let FlowTraffic::Page(page) = &self.traffic { page.hosts.len() } else { 1 }
    }

    /// Identifies the host of the client of a source, which belongs to a member of the site.
    #[must_use]
    pub fn client_host(&self, source: u32, member: u32) -> u32 {
        let number = match (self.host, self.site) {
            (Some(host), _) => (1 << 31) + u64::from(host),
            (None, Some(site)) => 1 + site as u64,
            (None, None) => 0,
        };
        let place = if number == 0 { source } else { member };
        mix_bits(number << 32 | u64::from(place)) as u32
    }
}

/// Cross traffic on each instance of a link: packets, or a fluid on a link of one source.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossStreamConfig {
    /// Number of the link.
    pub link: usize,
    /// Bytes of a packet, headers included.
    pub packet_bytes: u32,
    /// Arrival process.
    pub process: ArrivalProcess,
    /// Series of the fluid, equal for all streams of a link; `None` for packets.
    pub fluid: Option<FluidBins>,
}

/// Configuration of a run on a network of links.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// Seed of the random streams.
    pub seed: u64,
    /// Links.
    pub links: Vec<NetworkLinkConfig>,
    /// Sites.
    pub sites: Vec<SiteConfig>,
    /// Classes of sources.
    pub classes: Vec<FlowClassConfig>,
    /// Streams of cross traffic.
    pub cross: Vec<CrossStreamConfig>,
    /// Probability of correlated loss on the headline link: if a packet of a round of a flow is
    /// lost, the rest of the round is lost too.
    pub round_loss: Option<f64>,
    /// Largest relative difference of the delays of a replication from those of the configuration.
    /// Without random events, a small change of a delay decides which packet meets a full queue, so
    /// that equal delays would give all replications the same timing of packets.
    pub rtt_spread: f64,
    /// Link whose packets the counters of the bottleneck count.
    pub headline: usize,
    /// Duration of the warm-up, which the statistics exclude.
    #[serde(rename = "warmup_ns")]
    pub warmup: Nanos,
    /// Recorded data.
    pub probes: ProbeConfig,
}

/// Fractional part of the golden ratio: its multiples modulo 1 fill an interval evenly, whatever
/// their number.
const GOLDEN_STEP: f64 = 0.618_033_988_749_894_9;

impl NetworkConfig {
    /// Multiplies all delays by the factor of a replication, which depends on the seed.
    pub(crate) fn spread_delays(&mut self, replication: u32) {
        let purpose = StreamPurpose::RttSpread;
        let offset = RandomStream::for_entity(self.seed, 0, 0, purpose).draw_unit();
        let place = (offset + f64::from(replication) * GOLDEN_STEP).fract();
        let factor = 1.0 + self.rtt_spread * (2.0 * place - 1.0);
        let multiply = |delay: &mut Nanos| *delay = libm::round(*delay as f64 * factor) as Nanos;
        for link in &mut self.links {
            multiply(&mut link.delay);
            for TimedChange { change, .. } in &mut link.changes {
                if let LinkChangeConfig::Delay(delay) = change {
                    multiply(delay);
                }
            }
        }
        for class in &mut self.classes {
            multiply(&mut class.delay);
            multiply(&mut class.back_delay);
            if let FlowTraffic::Page(page) = &mut class.traffic {
                for host in &mut page.hosts {
                    multiply(&mut host.delay);
                    multiply(&mut host.back_delay);
                }
            }
        }
    }

    /// Members of the site of a class; 1 without a site.
    pub(crate) fn member_count(&self, class: &FlowClassConfig) -> u32 {
        class.site.map_or(1, |site| self.sites[site].count)
    }

    /// Number of initial sources of a class.
    pub(crate) fn source_count(&self, class: &FlowClassConfig) -> u32 {
        self.member_count(class) * class.flows
    }

    /// Largest scale factor of all classes.
    pub(crate) fn max_population_scale(&self) -> f64 {
        self.classes.iter().filter_map(|class| class.scale).fold(1.0, f64::max)
    }

    /// Whether transfers that start during the run use a link.
    pub(crate) fn has_arrivals_on(&self, link: usize) -> bool {
        let arrive = |class: &&FlowClassConfig| {
            matches!(class.traffic, FlowTraffic::Files(Traffic::Arrivals { .. }))
        };
        let mut routes = self
            .classes
            .iter()
            .filter(arrive)
            .flat_map(|class| class.routes.iter().chain(&class.back));
        routes.any(|route| route.contains(&link))
    }

    /// Links of each class: pairs of link and class in ascending order.
    #[must_use]
    pub fn link_classes(&self) -> Vec<(usize, usize)> {
        let passes = |link: usize, class: &FlowClassConfig| {
            class.routes.iter().chain(&class.back).any(|route| route.contains(&link))
        };
        let of_link = |link| {
            let classes = self.classes.iter().enumerate();
            classes.filter(move |(_, class)| passes(link, class)).map(move |(n, _)| (link, n))
        };
        (0..self.links.len()).flat_map(of_link).collect()
    }

    /// Number of counters of all links.
    pub(crate) fn sum_count(&self) -> usize {
        self.links.len() * LINK_TOTAL_CELLS.len()
            + self.link_classes().len() * LINK_CLASS_CELLS.len()
    }
}
