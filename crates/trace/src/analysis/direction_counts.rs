//! Counters of one direction.

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
    /// Payload bytes of packets with this mark.
    pub ce_bytes: u64,
    /// Packets and bytes with this mark that accurate ECN reports.
    pub reported_ce_packets: u64,
    /// Bytes with this mark that the option of accurate ECN reports: see `reported_ce_packets`.
    pub reported_ce_bytes: u64,
    /// Acknowledgements of this direction with the ECN echo flag, without SYNs; with accurate ECN,
    /// those that report marks.
    pub ecn_echoes: u64,
    /// Segments with the flag *congestion window reduced*, without SYNs.
    pub window_reductions: u64,
    /// Packets of the handshake that belong to an old connection between the same ends:
    /// acknowledgements that answer a SYN, and RSTs that answer them. Part of `packets` only.
    pub old_connection_packets: u64,
    /// Number of times that the receiver closed its window.
    pub zero_windows: u64,
    /// Acknowledgements of no new data that only enlarge the receive window.
    pub window_updates: u64,
    /// Segments and acknowledgements with numbers more than 1 GiB away, beyond any window.
    pub out_of_window: u64,
    /// SACK blocks with sequence numbers that a middlebox did not translate.
    pub untranslated_sacks: u64,
}
