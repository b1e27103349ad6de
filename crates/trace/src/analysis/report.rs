//! The report of a connection: counters, timings and classified events per direction.

use super::direction_counts::DirectionCounts;
use super::direction_stats::{Retransmission, SpuriousRetransmissions};
use super::exchanges::RequestExchange;
use super::failure::{ConnectionEnd, FailureDetails};
use super::interruption_kinds::Interruption;
use super::intervals::IntervalCounts;
use super::limit_evidence::LimitEvidence;
use super::loss_indications::{LossIndication, LossIndicationCounts};
use super::negotiated_options::AnnouncedOptions;
use super::retransmission_cause::RetransCauses;
use super::round_record::Round;
use super::rtt::RttReport;
use super::sequence_plot::PlotPoint;
use super::slow_start::SlowStartGrowth;
use super::tap_side::TapSide;
use super::transfer_limits::TransferLimits;
use crate::segment::{Endpoint, Nanos};

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
    pub exchanges: Vec<RequestExchange>,
    /// Number of exchanges beyond the limit.
    pub omitted_exchanges: u64,
    /// Both directions; the first is from the opener or, without a SYN, from the sender of the
    /// first segment.
    pub directions: Box<[DirectionReport; 2]>,
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
    /// Options that apply to the data: those that both ends support. The MSS is the smaller of both;
    /// the window scale is that of the receiver's windows.
    pub options: AnnouncedOptions,
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
    /// Last receive window, bytes.
    pub window_last_bytes: u64,
    /// Time from the last packet of a receiver that answers neither data nor window probes to the last
    /// data or probe, ns; `None` if the receiver answers.
    pub receiver_silence: Option<Nanos>,
    /// True if the scale of that window is unknown.
    pub window_unscaled: bool,
    /// Time of the first data packet, ns since 1970.
    pub first_data: Option<Nanos>,
    /// Time of the last data packet or of the last acknowledgement of new data.
    pub last_data: Option<Nanos>,
    /// Intervals of 100 s.
    pub intervals: Vec<IntervalCounts>,
    /// Loss indications in order, up to the limit.
    pub loss_times: Vec<LossIndication>,
    /// Retransmissions in order, up to the limit.
    pub retransmitted: Vec<Retransmission>,
    /// Number of loss indications and retransmissions that exceed the limits of the two lists
    /// above.
    pub omitted: u64,
    /// Interruptions in order, up to a limit.
    pub interruptions: Vec<Interruption>,
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
