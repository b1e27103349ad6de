//! What is said about a connection in the end.

use super::exchanges::Exchange;
use super::failure::FailureDetails;
use super::indications::{Indication, Indications};
use super::intervals::Interval;
use super::limits::Limitation;
use super::recovery::Cause;
use super::rounds::Round;
use super::rtt::Durations;
use super::side::Side;
use super::evidence::Evidence;
use super::sequence_plot::Point;
use crate::segment::{Endpoint, Nanos};

/// How a connection ended, as far as the capture shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The capture ended first.
    #[default]
    Open,
    /// Both ends have sent a FIN.
    Closed,
    /// A RST cut it.
    Reset,
    /// Too many connections were alive: this one had been idle for long and was taken out.
    Evicted,
}

/// A connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionReport {
    /// Connections are numbered from 0 by their first segment.
    pub number: u64,
    /// Frame of its first segment.
    pub first_frame: u64,
    /// Time of its first segment, ns since 1970.
    pub first: Nanos,
    /// Time of its last.
    pub last: Nanos,
    /// The capture has its SYN, or the answer to it.
    pub syn_captured: bool,
    /// How it ended.
    pub end: End,
    /// From the SYN to the acknowledgement of its answer, s: the whole path, wherever the tap is.
    pub handshake_rtt_s: Option<f64>,
    /// How it failed, if it did.
    pub failure_details: Option<FailureDetails>,
    /// Place in `directions` of the client: the opener or, without a SYN, the end with the higher port.
    pub client: usize,
    /// Requests and their responses in order, as many as are kept.
    pub exchanges: Vec<Exchange>,
    /// How many of these are not kept.
    pub omitted_exchanges: u64,
    /// Both directions; the first is that of who opened it or, without a SYN, of its first segment.
    pub directions: Box<[DirectionReport; 2]>,
}

/// Plain counts of a direction. What was captured twice is in `capture_duplicates` only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)] // what most packets change comes first
pub struct Counts {
    /// Segments.
    pub packets: u64,
    /// Bytes of IP packets, headers included.
    pub ip_bytes: u64,
    /// Segments with payload.
    pub data_packets: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Bytes of payload, each counted once.
    pub unique_bytes: u64,
    /// Acknowledgements of this direction's data, those that acknowledge new data.
    pub acks: u64,
    /// Data packets that these acknowledged.
    pub acknowledged_packets: u64,
    /// Duplicate acknowledgements of this direction's data (RFC 5681, section 2).
    pub duplicate_acks: u64,
    /// Segments with payload of which a part, at least, had been sent before.
    pub retransmissions: u64,
    /// Bytes of these segments.
    pub retransmitted_bytes: u64,
    /// Retransmitted SYNs.
    pub syn_retransmissions: u64,
    /// Retransmitted FINs.
    pub fin_retransmissions: u64,
    /// Segments that came late to the tap, but were sent only once.
    pub out_of_order: u64,
    /// Packets that reached the receiver after later ones, by SACK, without a retransmission.
    pub late_packets: u64,
    /// Probes of a closed window. They are no loss.
    pub zero_window_probes: u64,
    /// Segments that only ask whether the peer is there.
    pub keep_alives: u64,
    /// Those of them without an answer.
    pub keep_alives_unanswered: u64,
    /// Frames captured twice.
    pub capture_duplicates: u64,
    /// Bytes that were acknowledged though the capture does not have them.
    pub missing_bytes: u64,
    /// Frames larger than the MSS, by segmentation offload. All other counts are of the packets in them.
    pub super_segments: u64,
    /// Packets of these frames after the first of each: so many packets had no frame of their own.
    pub aggregated: u64,
    /// IP packets of which only the first fragment could be read.
    pub fragments: u64,
    /// Packets marked *congestion experienced*.
    pub ce_marks: u64,
    /// Segments that echo such a mark.
    pub ecn_echoes: u64,
    /// Segments that say that the window was reduced.
    pub window_reductions: u64,
    /// How often the receiver closed its window.
    pub zero_windows: u64,
    /// Acknowledgements of no new data that only raise the receiver's window.
    pub window_updates: u64,
    /// Segments and acknowledgements whose numbers are more than 1 GiB away, which no window allows.
    pub out_of_window: u64,
}

/// Retransmissions by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// After duplicates.
    pub duplicates: u64,
    /// After SACK.
    pub sack: u64,
    /// By RACK's timer, or paced.
    pub rack: u64,
    /// By the retransmission timer.
    pub timeout: u64,
    /// In slow start after a timeout.
    pub after_timeout: u64,
    /// Tail-loss probes.
    pub tail_loss_probe: u64,
    /// Nobody knows.
    pub unexplained: u64,
}

impl Causes {
    pub(super) fn add(&mut self, cause: Cause, packets: u64) {
        let count = match cause {
            Cause::Duplicates => &mut self.duplicates,
            Cause::Sack => &mut self.sack,
            Cause::Rack => &mut self.rack,
            Cause::Timeout { .. } => &mut self.timeout,
            Cause::AfterTimeout => &mut self.after_timeout,
            Cause::TailLossProbe => &mut self.tail_loss_probe,
            Cause::Unexplained => &mut self.unexplained,
        };
        *count += packets;
    }

    /// Fast retransmits of any kind.
    #[must_use]
    pub fn fast(&self) -> u64 {
        self.duplicates + self.sack + self.rack
    }

    /// All.
    #[must_use]
    pub fn all(&self) -> u64 {
        let timers = self.timeout + self.after_timeout + self.tail_loss_probe;
        self.fast() + timers + self.unexplained
    }
}

/// What the end announced that sends this direction's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    /// Largest segment that it takes, bytes.
    pub mss: Option<u16>,
    /// Shift of the windows that it announces.
    pub window_scale: Option<u8>,
    /// It takes SACK.
    pub sack: bool,
    /// It sends timestamps.
    pub timestamps: bool,
    /// It takes ECN.
    pub ecn: bool,
    /// Its SYN was captured whole; if not, what is absent here may have been agreed on.
    pub complete: bool,
}

/// Retransmissions that were not needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spurious {
    /// By the receiver's DSACK (RFC 2883).
    pub dsack: u64,
    /// By the timestamp that the acknowledgement echoes (Eifel, RFC 3522).
    pub eifel: u64,
    /// DSACKs that no captured retransmission explains: the network made a copy.
    pub unexplained_dsack: u64,
}

/// Round-trip times of a direction's data, as the tap saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundTrips {
    /// RTT by Karn's rule, a sample an acknowledgement: since the newest segment that it acknowledges.
    pub karn: Option<Durations>,
    /// The greatest of these of acknowledgements of two segments and more, s: no receiver delays those.
    pub undelayed_max_s: Option<f64>,
    /// RTT as the sender takes it: since the oldest segment acknowledged or, in recovery, held by SACK. A
    /// delayed acknowledgement's delay belongs to it.
    pub sender: Option<Durations>,
    /// Mean over time of the latter, s: samples averaged by quarter second first, so that samples at one time count once.
    pub over_time_s: Option<f64>,
    /// RTT by echoed timestamps, retransmitted segments included.
    pub timestamps: Option<Durations>,
    /// Round trip between the tap and the sender of the data at best, s.
    pub tap_to_sender_s: Option<f64>,
    /// Samples of one segment at a time, without those with retransmissions: as a sender without
    /// timestamps takes them.
    pub round_samples: u64,
    /// Their mean, s.
    pub round_mean_s: Option<f64>,
    /// Correlation of the duration of such a round and what was in flight when it began.
    pub flight_correlation: Option<f64>,
    /// Nothing is said of it: acknowledgements without data are missing from the capture, and those with data came
    /// later than any receiver waits.
    pub withheld: bool,
}

/// Growth of the flight in slow starts without another limit, and the data acknowledged meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowStart {
    /// By so many bytes.
    pub grown_bytes: u64,
    /// While so many were acknowledged,
    pub acked_bytes: u64,
    /// By so many acknowledgements.
    pub acks: u64,
}

impl SlowStart {
    pub(super) fn add(&mut self, other: &Self) {
        self.grown_bytes += other.grown_bytes;
        self.acked_bytes += other.acked_bytes;
        self.acks += other.acks;
    }
}

/// A retransmitted segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// When it was captured.
    pub time: Nanos,
    /// Bytes of this direction before it.
    pub offset: u64,
    /// Its payload, bytes.
    pub bytes: u32,
    /// Why.
    pub cause: Cause,
    /// It was needless: the receiver had it (DSACK), or acknowledged the original (Eifel).
    pub spurious: bool,
}

/// One direction: the data from one end, and the acknowledgements that answer them.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionReport {
    /// Who sends the data.
    pub source: Endpoint,
    /// Who takes them.
    pub destination: Endpoint,
    /// Where the tap is.
    pub side: Side,
    /// Counts.
    pub counts: Counts,
    /// What the sender of the data announced.
    pub announced: Announced,
    /// Retransmissions by cause.
    pub causes: Causes,
    /// Of these, needless.
    pub spurious: Spurious,
    /// Loss indications.
    pub indications: Indications,
    /// Mean first duration of the retransmission timer, s: the papers' T0.
    pub t0_s: Option<f64>,
    /// Round-trip times.
    pub rtt: RoundTrips,
    /// Size of a full segment, bytes: payload of the largest that is not larger than the MSS.
    pub segment_bytes: u32,
    /// Bytes sent before the first was acknowledged; only where the capture has the SYN.
    pub initial_window_bytes: Option<u64>,
    /// The same in segments.
    pub initial_window_packets: Option<u64>,
    /// The most bytes in flight; 0 if no acknowledgement was captured.
    pub flight_max_bytes: u64,
    /// Mean bytes in flight as a data packet was sent, itself included; `None` if no acknowledgement was captured.
    pub flight_mean_bytes: Option<f64>,
    /// The largest window that the receiver announced, bytes, scaled if the SYNs were captured.
    pub window_max_bytes: u64,
    /// The scale of that window is not known.
    pub window_unscaled: bool,
    /// First data packet, ns since 1970.
    pub first_data: Option<Nanos>,
    /// Last data packet, or the last new acknowledgement of one.
    pub last_data: Option<Nanos>,
    /// Stretches of 100 s.
    pub intervals: Vec<Interval>,
    /// Loss indications in order, as many as are kept.
    pub loss_times: Vec<Indication>,
    /// Retransmissions in order, as many as are kept.
    pub retransmitted: Vec<Retransmission>,
    /// How many of these two are not kept.
    pub omitted: u64,
    /// Segments of the other end that the capture lacks, by their IP identifications; `None` if these do not count.
    pub missing_answers: Option<u64>,
    /// Points of a time-sequence plot, if they were asked for.
    pub sequence_plot: Vec<Point>,
    /// How its window grew in slow start.
    pub slow_start: SlowStart,
    /// What limited it, and for how long.
    pub limitation: Limitation,
    /// Further evidence for its cause.
    pub evidence: Evidence,
    /// Rounds in order; of long transfers, several that follow each other as one.
    pub rounds: Vec<Round>,
}

impl DirectionReport {
    /// From the first data packet to the end of the last one, or its acknowledgement, s.
    #[must_use]
    pub fn duration_s(&self) -> Option<f64> {
        let (first, last) = (self.first_data?, self.last_data?);
        (last > first).then(|| (last - first) as f64 / 1e9)
    }

    /// Payload sent, retransmissions included, bit/s; `None` for a single data packet.
    #[must_use]
    pub fn throughput_bps(&self) -> Option<f64> {
        self.rate_bps(self.counts.bytes)
    }

    /// Payload, each byte counted once, bit/s; `None` for a single data packet.
    #[must_use]
    pub fn goodput_bps(&self) -> Option<f64> {
        self.rate_bps(self.counts.unique_bytes)
    }

    /// One packet has no rate: how soon it was acknowledged says nothing of how fast it was sent.
    fn rate_bps(&self, bytes: u64) -> Option<f64> {
        let duration = self.duration_s().filter(|_| self.counts.data_packets > 1)?;
        Some(bytes as f64 * 8.0 / duration)
    }

    /// Data packets per acknowledgement: the papers' b.
    #[must_use]
    pub fn packets_per_ack(&self) -> Option<f64> {
        let (packets, acks) = (self.counts.acknowledged_packets, self.counts.acks);
        (acks > 0).then(|| packets as f64 / acks as f64)
    }

    /// Bytes that a flight grew by in slow start for each that was acknowledged: 1 if the window grows by what is
    /// acknowledged.
    #[must_use]
    pub fn start_growth(&self) -> Option<f64> {
        let SlowStart { grown_bytes, acked_bytes, .. } = self.slow_start;
        (acked_bytes > 0).then(|| grown_bytes as f64 / acked_bytes as f64)
    }

    /// The same if it grows by a segment an acknowledgement: acknowledgements by segments that they acknowledge.
    #[must_use]
    pub fn start_acks(&self) -> Option<f64> {
        let SlowStart { acked_bytes, acks, .. } = self.slow_start;
        let segments = acked_bytes as f64 / f64::from(self.segment_bytes.max(1));
        (acked_bytes > 0).then(|| acks as f64 / segments)
    }

    /// The receiver's largest window in full segments: the papers' W_max; none if none was open.
    #[must_use]
    pub fn w_max_packets(&self) -> Option<f64> {
        let bytes = f64::from(self.segment_bytes);
        (self.segment_bytes > 0 && self.window_max_bytes > 0 && !self.window_unscaled)
            .then(|| self.window_max_bytes as f64 / bytes)
    }
}
