//! Statistics as in `TCP_INFO`.

use super::connection::Connection;
use super::recovery_phase::PhaseName;
use tcpcast_link::time::Nanos;

/// Statistics as in `TCP_INFO`, for scripts and time series. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TcpInfo {
    pub snd_cwnd: u32,
    pub snd_ssthresh: u32,
    pub ca_state: PhaseName,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub total_retrans: u32,
    pub reordering: u32,
    pub reord_seen: u32,
    pub dsack_dups: u32,
    pub backoff: u32,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub rto: Nanos,
    pub rtt: Nanos,
    pub rttvar: Nanos,
    pub min_rtt: Nanos,
    pub busy_time: Nanos,
    pub rwnd_limited: Nanos,
    pub bytes_acked: u64,
    pub notsent_bytes: u64,
    pub data_segs_out: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub advmss: u32,
    pub sndbuf_limited: Nanos,
    pub last_data_recv: Nanos,
    pub last_data_sent: Nanos,
    pub probes: u32,
}

impl Connection {
    /// Statistics at `now`.
    #[must_use]
    pub fn tcp_info(&self, now: Nanos) -> TcpInfo {
        let sender = self.sender();
        let flight = sender.flight();
        let counters = sender.counters();
        TcpInfo {
            snd_cwnd: sender.cwnd(),
            snd_ssthresh: sender.ssthresh(),
            ca_state: sender.phase().name(),
            unacked: flight.packets_out(),
            sacked: flight.sacked,
            lost: flight.lost,
            retrans: flight.retransmitted,
            total_retrans: counters.retransmitted,
            reordering: sender.reordering_packets(),
            reord_seen: sender.reordering_count(),
            dsack_dups: counters.duplicates,
            backoff: sender.timeouts_without_progress(),
            delivered: sender.delivery_counter().delivered,
            delivered_ce: sender.delivery_counter().delivered_ce,
            rto: sender.rtt().rto(),
            rtt: sender.rtt().srtt().unwrap_or(0),
            rttvar: sender.rtt().deviation(),
            min_rtt: sender.rtt().min_rtt().unwrap_or(0),
            busy_time: sender.activity_durations().map_or(0, |times| times.busy_time(now)),
            rwnd_limited: sender
                .activity_durations()
                .map_or(0, |times| times.receiver_limited_time(now)),
            bytes_acked: sender.una() - 1,
            notsent_bytes: sender.unsent_bytes(),
            data_segs_out: counters.sent,
            snd_mss: self.stack().mss,
            rcv_mss: self.receiver().largest_packet().min(self.advertised_mss()),
            advmss: self.advertised_mss(),
            sndbuf_limited: sender
                .activity_durations()
                .map_or(0, |times| times.buffer_limited_time(now)),
            last_data_recv: now.saturating_sub(self.last_data_received()),
            last_data_sent: now.saturating_sub(sender.last_sent),
            probes: sender.unanswered_window_probes(),
        }
    }
}
