//! The report of a connection: counters, timings and classified events per direction.

use super::exchanges::Exchange;
use super::failure::FailureDetails;
use super::intervals::Interval;
use super::limit_evidence::LimitEvidence;
use super::loss_indications::{LossIndication, LossIndicationCounts};
use super::recovery::RetransCause;
use super::rounds::Round;
use super::rtt::DurationReport;
use super::sequence_plot::PlotPoint;
use super::tap_side::TapSide;
use super::transfer_limits::TransferLimits;
use crate::segment::{Endpoint, Nanos};

/// How a connection ended, as far as captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The capture ended first.
    #[default]
    Open,
    /// Both ends sent a FIN.
    Closed,
    /// A RST ended the connection.
    Reset,
    /// Evicted because too many connections were alive; this connection had been idle the longest.
    Evicted,
}

/// Report of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionReport {
    /// Connection number, from 0 in the order of the first segments.
    pub number: u64,
    /// Frame number of the first segment.
    pub first_frame: u64,
    /// Time of the first segment, ns since 1970.
    pub first: Nanos,
    /// Time of the last segment.
    pub last: Nanos,
    /// True if the SYN or the SYN-ACK was captured.
    pub syn_captured: bool,
    /// How the connection ended.
    pub end: ConnectionEnd,
    /// Time from the SYN to the acknowledgement of the SYN-ACK, s: the RTT of the full path,
    /// wherever the tap is.
    pub handshake_rtt_s: Option<f64>,
    /// How the connection failed, or `None`.
    pub failure_details: Option<FailureDetails>,
    /// Index of the client in `directions`: the opener or, without a SYN, the end with the higher
    /// port.
    pub client: usize,
    /// Requests and responses in order, up to the limit.
    pub exchanges: Vec<Exchange>,
    /// Number of exchanges beyond the limit.
    pub omitted_exchanges: u64,
    /// Both directions; the first is from the opener or, without a SYN, from the sender of the
    /// first segment.
    pub directions: Box<[DirectionReport; 2]>,
}

/// Counters of a direction. Frames captured twice are counted only in `capture_duplicates`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)] // the fields that most packets change come first
pub struct DirectionCounts {
    /// Segments.
    pub packets: u64,
    /// Bytes of IP packets, including headers.
    pub ip_bytes: u64,
    /// Segments with payload.
    pub data_packets: u64,
    /// Payload bytes, including retransmissions.
    pub bytes: u64,
    /// Payload bytes, each counted once.
    pub unique_bytes: u64,
    /// Acknowledgements of new data of this direction.
    pub acks: u64,
    /// Data packets covered by `acks`.
    pub acknowledged_packets: u64,
    /// Duplicate acknowledgements (RFC 5681, section 2).
    pub duplicate_acks: u64,
    /// Data segments of which at least a part had been sent before.
    pub retransmissions: u64,
    /// Payload bytes of retransmissions.
    pub retransmitted_bytes: u64,
    /// Retransmitted SYNs.
    pub syn_retransmissions: u64,
    /// Retransmitted FINs.
    pub fin_retransmissions: u64,
    /// Segments reordered before the tap, but sent only once.
    pub out_of_order: u64,
    /// Packets that reached the receiver after later packets (which were SACKed before), but were
    /// never retransmitted: they were reordered, not lost.
    pub late_packets: u64,
    /// Probes of a closed window, which are not counted as losses.
    pub zero_window_probes: u64,
    /// Keepalive probes.
    pub keep_alives: u64,
    /// Keepalive probes without an answer.
    pub keep_alives_unanswered: u64,
    /// Frames captured twice.
    pub capture_duplicates: u64,
    /// Bytes that were acknowledged but not captured.
    pub missing_bytes: u64,
    /// Frames larger than the MSS because of segmentation offload. All other counters count the
    /// packets in such frames.
    pub super_segments: u64,
    /// Packets in these frames, not counting the first packet of each frame.
    pub aggregated: u64,
    /// IP packets analysed only by their first fragment.
    pub fragments: u64,
    /// Packets with the mark *congestion experienced*.
    pub ce_marks: u64,
    /// Segments with the ECN echo flag.
    pub ecn_echoes: u64,
    /// Segments with the flag *congestion window reduced*.
    pub window_reductions: u64,
    /// Number of times that the receiver closed its window.
    pub zero_windows: u64,
    /// Acknowledgements of no new data that only enlarge the receive window.
    pub window_updates: u64,
    /// Segments and acknowledgements with numbers more than 1 GiB away, beyond any window.
    pub out_of_window: u64,
}

/// Retransmissions by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetransCauses {
    /// After duplicate acknowledgements.
    pub duplicates: u64,
    /// After SACK.
    pub sack: u64,
    /// By RACK's timer or delayed by pacing.
    pub rack: u64,
    /// By the retransmission timer.
    pub timeout: u64,
    /// In slow start after a timeout.
    pub after_timeout: u64,
    /// Tail-loss probes.
    pub tail_loss_probe: u64,
    /// Without a visible cause.
    pub unexplained: u64,
}

impl RetransCauses {
    pub(super) fn add(&mut self, cause: RetransCause, packets: u64) {
        let count = match cause {
            RetransCause::Duplicates => &mut self.duplicates,
            RetransCause::Sack => &mut self.sack,
            RetransCause::Rack => &mut self.rack,
            RetransCause::Timeout { .. } => &mut self.timeout,
            RetransCause::AfterTimeout => &mut self.after_timeout,
            RetransCause::TailLossProbe => &mut self.tail_loss_probe,
            RetransCause::Unexplained => &mut self.unexplained,
        };
        *count += packets;
    }

    /// Fast retransmits of any kind.
    #[must_use]
    pub fn fast_retransmits(&self) -> u64 {
        self.duplicates + self.sack + self.rack
    }

    /// All retransmissions.
    #[must_use]
    pub fn all_retransmissions(&self) -> u64 {
        let timers = self.timeout + self.after_timeout + self.tail_loss_probe;
        self.fast_retransmits() + timers + self.unexplained
    }
}

/// Options that the sender of this direction announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnnouncedOptions {
    /// Largest segment that the end accepts, bytes.
    pub mss: Option<u16>,
    /// Shift of the windows that the end announces.
    pub window_scale: Option<u8>,
    /// The end accepts SACK.
    pub sack: bool,
    /// The end sends timestamps.
    pub timestamps: bool,
    /// The end supports ECN.
    pub ecn: bool,
    /// True if the SYN was captured completely; if not, absent options may still have been
    /// negotiated.
    pub complete: bool,
}

/// Unnecessary retransmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpuriousRetransmissions {
    /// Reported by DSACK (RFC 2883).
    pub dsack: u64,
    /// Detected by the echoed timestamp (Eifel, RFC 3522).
    pub eifel: u64,
    /// DSACKs without a captured retransmission: the network duplicated a packet.
    pub unexplained_dsack: u64,
}

/// Round-trip times of a direction's data, measured at the tap.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RttReport {
    /// RTT by Karn's rule. Each acknowledgement gives one sample: the time since the newest segment
    /// that it acknowledges was sent.
    pub karn: Option<DurationReport>,
    /// Largest of these samples for acknowledgements of two or more segments, s, which receivers do
    /// not delay.
    pub undelayed_max_s: Option<f64>,
    /// RTT as the sender measures it: the time since the oldest newly acknowledged segment was
    /// sent; in recovery, the oldest newly SACKed segment. The RTT includes the delay of delayed
    /// acknowledgements.
    pub sender: Option<DurationReport>,
    /// Time average of `sender`, s: samples are first averaged per quarter of a second, so that
    /// simultaneous samples count once.
    pub over_time_s: Option<f64>,
    /// RTT by echoed timestamps, including retransmitted segments.
    pub timestamps: Option<DurationReport>,
    /// Minimum round-trip time between the tap and the sender of the data, s.
    pub tap_to_sender_s: Option<f64>,
    /// Number of samples that time one segment at a time and no retransmissions, as a sender
    /// without timestamps does.
    pub round_samples: u64,
    /// Mean of these samples, s.
    pub round_mean_s: Option<f64>,
    /// Correlation of the duration of these rounds with the data in flight at their start.
    pub flight_correlation: Option<f64>,
    /// True if the RTT is withheld, because the capture lacks acknowledgements without data, and
    /// acknowledgements with data came later than a receiver may delay an acknowledgement.
    pub withheld: bool,
}

/// Growth of the data in flight in slow starts without another limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowStartGrowth {
    /// Growth, bytes.
    pub grown_bytes: u64,
    /// Bytes acknowledged during this growth.
    pub acked_bytes: u64,
    /// Acknowledgements during this growth.
    pub acks: u64,
}

impl SlowStartGrowth {
    pub(super) fn add(&mut self, other: &Self) {
        self.grown_bytes += other.grown_bytes;
        self.acked_bytes += other.acked_bytes;
        self.acks += other.acks;
    }
}

/// A retransmitted segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// Capture time.
    pub time: Nanos,
    /// Offset of the first byte in this direction.
    pub offset: u64,
    /// Payload, bytes.
    pub bytes: u32,
    /// Cause of the retransmission.
    pub cause: RetransCause,
    /// True if the retransmission was unnecessary: the receiver had the data (DSACK), or
    /// acknowledged the original (Eifel).
    pub spurious: bool,
}

/// Report of one direction: the data from one end, and their acknowledgements.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionReport {
    /// Sender of the data.
    pub source: Endpoint,
    /// Receiver of the data.
    pub destination: Endpoint,
    /// Position of the tap.
    pub side: TapSide,
    /// Counters.
    pub counts: DirectionCounts,
    /// Options that the sender announced.
    pub announced: AnnouncedOptions,
    /// Retransmissions by cause.
    pub causes: RetransCauses,
    /// Unnecessary retransmissions.
    pub spurious: SpuriousRetransmissions,
    /// Loss indications.
    pub indications: LossIndicationCounts,
    /// Mean first duration of the retransmission timer, s: T0 in the papers.
    pub t0_s: Option<f64>,
    /// Round-trip times.
    pub rtt: RttReport,
    /// Size of a full segment, bytes: the largest payload that does not exceed the MSS.
    pub segment_bytes: u32,
    /// Bytes sent before the first acknowledgement, if the SYN was captured.
    pub initial_window_bytes: Option<u64>,
    /// Packets sent before the first acknowledgement, if the SYN was captured.
    pub initial_window_packets: Option<u64>,
    /// Maximum bytes in flight; 0 if no acknowledgement was captured.
    pub flight_max_bytes: u64,
    /// Mean bytes in flight when a data packet is sent, including that packet; `None` if no
    /// acknowledgement was captured.
    pub flight_mean_bytes: Option<f64>,
    /// Largest receive window, bytes, scaled if the SYNs were captured.
    pub window_max_bytes: u64,
    /// True if the scale of that window is unknown.
    pub window_unscaled: bool,
    /// Time of the first data packet, ns since 1970.
    pub first_data: Option<Nanos>,
    /// Time of the last data packet or of the last acknowledgement of new data.
    pub last_data: Option<Nanos>,
    /// Intervals of 100 s.
    pub intervals: Vec<Interval>,
    /// Loss indications in order, up to the limit.
    pub loss_times: Vec<LossIndication>,
    /// Retransmissions in order, up to the limit.
    pub retransmitted: Vec<Retransmission>,
    /// Number of loss indications and retransmissions that exceed the limits of the two lists
    /// above.
    pub omitted: u64,
    /// Number of segments of the other end that are missing from the capture, by IP identification;
    /// `None` if the identifications are not sequential.
    pub missing_answers: Option<u64>,
    /// Points of the time-sequence plot, if requested.
    pub sequence_plot: Vec<PlotPoint>,
    /// Growth of the window in slow start.
    pub slow_start: SlowStartGrowth,
    /// Limits of the transfer and their shares of time.
    pub limitation: TransferLimits,
    /// Further evidence for the cause of the rate.
    pub evidence: LimitEvidence,
    /// Rounds in order; in long transfers, consecutive rounds are merged.
    pub rounds: Vec<Round>,
}

impl DirectionReport {
    /// Time from the first data packet to the last data packet or its acknowledgement, s.
    #[must_use]
    pub fn duration_s(&self) -> Option<f64> {
        let (first, last) = (self.first_data?, self.last_data?);
        (last > first).then(|| (last - first) as f64 / 1e9)
    }

    /// Payload sent, including retransmissions, bit/s; `None` for a single data packet.
    #[must_use]
    pub fn throughput_bps(&self) -> Option<f64> {
        self.rate_bps(self.counts.bytes)
    }

    /// Payload, each byte counted once, bit/s; `None` for a single data packet.
    #[must_use]
    pub fn goodput_bps(&self) -> Option<f64> {
        self.rate_bps(self.counts.unique_bytes)
    }

    /// A single packet has no rate: its acknowledgement time is independent of the sending rate.
    fn rate_bps(&self, bytes: u64) -> Option<f64> {
        let duration = self.duration_s().filter(|_| self.counts.data_packets > 1)?;
        Some(bytes as f64 * 8.0 / duration)
    }

    /// Data packets per acknowledgement: b in the papers.
    #[must_use]
    pub fn packets_per_ack(&self) -> Option<f64> {
        let (packets, acks) = (self.counts.acknowledged_packets, self.counts.acks);
        (acks > 0).then(|| packets as f64 / acks as f64)
    }

    /// Bytes by which the flight grew in slow start per acknowledged byte: 1 if the window grows by
    /// the acknowledged bytes.
    #[must_use]
    pub fn slow_start_bytes_per_acked_byte(&self) -> Option<f64> {
        let SlowStartGrowth { grown_bytes, acked_bytes, .. } = self.slow_start;
        (acked_bytes > 0).then(|| grown_bytes as f64 / acked_bytes as f64)
    }

    /// Acknowledgements per acknowledged segment in slow start: the growth if the window grows by
    /// one segment per acknowledgement.
    #[must_use]
    pub fn slow_start_acks_per_segment(&self) -> Option<f64> {
        let SlowStartGrowth { acked_bytes, acks, .. } = self.slow_start;
        let segments = acked_bytes as f64 / f64::from(self.segment_bytes.max(1));
        (acked_bytes > 0).then(|| acks as f64 / segments)
    }

    /// Largest receive window in full segments: W_max in the papers; `None` if no window was open.
    #[must_use]
    pub fn w_max_packets(&self) -> Option<f64> {
        let bytes = f64::from(self.segment_bytes);
        (self.segment_bytes > 0 && self.window_max_bytes > 0 && !self.window_unscaled)
            .then(|| self.window_max_bytes as f64 / bytes)
    }
}
