//! Sums of a run per equally long time slot, for statistics.

use crate::clock::Nanos;

macro_rules! cells {
    ($(#[$doc:meta])* $name:ident, $names:ident: $($(#[$cell_doc:meta])* $cell:ident = $text:literal,)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$cell_doc])* $cell,)+ }
        /// Names of the cells, in the order of the enum.
        pub const $names: [&str; [$($text,)+].len()] = [$($text,)+];
    };
}

cells! {
    /// Sums of the bottleneck.
    LinkCell, LINK_CELLS:
    /// Measured time.
    Time = "time_ns",
    /// Queue length integrated over time, in packet nanoseconds.
    QueueIntegral = "queue_integral",
    /// Busy time of the link.
    Busy = "busy_ns",
    /// Data packets dropped on other links.
    HopDrops = "hop_drops",
    /// Bytes that the bottleneck transmitted, if its rate varies.
    Carried = "carried_bytes",
    /// Bytes that the bottleneck could have transmitted, if its rate varies.
    Capacity = "capacity_bytes",
}

cells! {
    /// Sums of one class of sources.
    ClassCell, CLASS_CELLS:
    /// Finished transfers.
    Transfers = "transfers",
    /// Packets of finished transfers.
    TransferPackets = "transfer_packets",
    /// ON times of finished transfers: first packet sent to last acknowledgement received.
    OnTime = "on_time_ns",
    /// Delivery times of single transfers: first packet sent to last packet delivered.
    DeliveryTime = "delivery_time_ns",
    /// Data packets sent.
    Sent = "sent",
    /// Retransmissions among the sent packets.
    Retransmitted = "retransmitted",
    /// Distinct data packets delivered.
    Delivered = "delivered",
    /// Number of bytes by which delivered packets are shorter than full packets.
    Lacking = "lacking_bytes",
    /// Data packets that arrived at the bottleneck.
    Arrived = "arrived",
    /// Data packets that the bottleneck transmitted, if waiting times are recorded.
    Passed = "passed",
    /// Waiting times of these packets before their transmission.
    Waited = "waited_ns",
    /// Marked packets among these (RFC 3168).
    Marked = "marked",
    /// Drops of the bottleneck's queue: the queue was full, or RED or another discipline dropped
    /// the packet early.
    QueueDrops = "queue_drops",
    /// Random losses at the bottleneck.
    RandomDrops = "random_drops",
    /// Drops on access links.
    AccessDrops = "access_drops",
    /// Sum of the round-trip time samples.
    RttSum = "rtt_sum_ns",
    /// Number of round-trip time samples.
    RttSamples = "rtt_samples",
    /// Acknowledged packets of finished transfers and of endless flows.
    Acked = "acked",
    /// Times in flight of acknowledged packets, for senders without instantaneous loss feedback.
    InFlight = "in_flight_ns",
    /// Fast retransmits: started recoveries.
    FastRetransmits = "fast_retransmits",
    /// Recoveries that were undone as unnecessary.
    SpuriousRecoveries = "spurious_recoveries",
    /// Tail loss probes (RFC 8985).
    TailLossProbes = "tail_loss_probes",
    /// Tail loss probes that were retransmissions.
    TailRetransmissions = "tail_retransmissions",
    /// Retransmissions of data that the receiver already had (modern TCP).
    SpuriousRetransmissions = "spurious_retransmissions",
    /// Sequences of timeouts of one packet.
    TimeoutSequences = "timeout_sequences",
    /// Sequences of two or more timeouts.
    Reached2 = "sequences_of_2",
    /// Sequences of three or more timeouts.
    Reached3 = "sequences_of_3",
    /// Sequences of four or more timeouts.
    Reached4 = "sequences_of_4",
    /// Sequences of five or more timeouts.
    Reached5 = "sequences_of_5",
    /// Sequences of six or more timeouts.
    Reached6 = "sequences_of_6",
    /// Timeouts.
    Timeouts = "timeouts",
    /// Window reductions after timeouts that were undone as unnecessary.
    SpuriousTimeouts = "spurious_timeouts",
    /// Sum of the first timeouts of the sequences.
    FirstTimeout = "first_timeout_ns",
    /// Sum of the windows at loss indications.
    WindowAtLoss = "window_at_loss",
    /// Window resets after OFF times.
    IdleRestarts = "idle_restarts",
    /// Started OFF times (fixed point).
    OffTimes = "off_times",
    /// Lengths of these OFF times.
    OffTime = "off_time_ns",
    /// Packets of the same flow that arrivals found at the bottleneck (fixed point).
    OwnFound = "own_found",
    /// Aggregated service times of packets at the bottleneck (fixed point).
    Service = "service_ns",
    /// Time that packets spent at the bottleneck, evicted packets included (fixed point).
    Inside = "inside_ns",
    /// Times of transfers with a handshake: SYN sent to last packet delivered.
    TotalTime = "total_time_ns",
    /// Packets sent that do not count as data: SYN-ACKs, flights of TLS, and FINs without data.
    ControlSent = "control_sent",
    /// Messages and pings sent.
    Messages = "messages",
    /// Messages that arrived, and pings whose echo arrived.
    Received = "received",
    /// One-way delays of these messages, round-trip times of these pings.
    Delay = "delay_ns",
    /// Completed requests (one per barrier) and segments of streams.
    Requests = "requests",
    /// Times of these requests: first byte written to last byte of the answer received.
    Latency = "latency_ns",
    /// Streams that began to play.
    Startups = "startups",
    /// Times from their start to the beginning of playing.
    Startup = "startup_ns",
    /// Times at which the buffer of a playing stream became empty.
    Stalls = "stalls",
    /// Times of these stalls, up to the end of each.
    StalledPlay = "stalled_play_ns",
    /// Time for which streams played.
    Played = "played_ns",
    /// Bits of received segments of streams.
    VideoBits = "video_bits",
    /// Playing time of these segments.
    Video = "video_ns",
    /// Playing time of those whose rate differs from that of the previous segment.
    SwitchedVideo = "switched_video_ns",
    /// Complete pages.
    Pages = "pages",
    /// Times of these pages: first request wanted to last byte of all objects.
    PageTime = "page_time_ns",
}

cells! {
    /// Sums of one link of a network, over its instances.
    LinkTotalCell, LINK_TOTAL_CELLS:
    /// Packets in the queue and in transmission, integrated over time.
    PacketTime = "packet_ns",
    /// Bytes transmitted.
    CarriedBytes = "carried_bytes",
    /// Bytes that could have been transmitted; 0 if the rate is unlimited.
    CapacityBytes = "capacity_bytes",
}

cells! {
    /// Sums of the packets of one class on one link of a network.
    LinkClassCell, LINK_CLASS_CELLS:
    /// Packets that entered the link.
    Entered = "entered",
    /// Bytes of these packets.
    EnteredBytes = "entered_bytes",
    /// Packets that reached the next link or their host.
    Left = "left",
    /// Bytes of these packets.
    LeftBytes = "left_bytes",
    /// Packets dropped because the buffer was full or the policer had no tokens.
    FullDrops = "full_drops",
    /// Packets dropped early by the queue.
    EarlyDrops = "early_drops",
    /// Packets lost at random.
    RandomDrops = "random_drops",
    /// Acknowledgements dropped because a later one made them needless.
    Superseded = "superseded",
    /// Packets marked by the queue.
    Marks = "marked",
    /// Packets whose transmission began.
    Transmitted = "transmitted",
    /// Queueing delays of these packets.
    Wait = "waited_ns",
}

cells! {
    /// Sums of the transfers of one size interval.
    SizeCell, SIZE_CELLS:
    /// Finished transfers.
    Transfers = "transfers",
    /// Packets of finished transfers.
    Packets = "packets",
    /// ON times of finished transfers.
    OnTime = "on_time_ns",
    /// Sum of the rates of finished transfers (size divided by ON time), in `RATE_UNITS`.
    RateSum = "rate_sum",
    /// Packets that arrived at the bottleneck.
    Arrived = "arrived",
    /// Sum of the queue lengths that these packets found.
    QueueSeen = "queue_seen",
    /// Drops at the bottleneck.
    Drops = "drops",
    /// Timeouts.
    Timeouts = "timeouts",
    /// Times between the last transmission and a timeout.
    Stalled = "stalled_ns",
    /// Retransmissions in successful recoveries.
    Recovered = "recovered",
}

/// Maximum number of snapshots; then every second snapshot is dropped and the slot length doubles.
const MAX_SLOTS: usize = 128;
/// Initial length of a slot.
const INITIAL_SLOT_LENGTH: Nanos = 1_000_000;

/// Sums of a class. The alignment makes the row size a power of two, so that the frequent access by
/// class index is a shift.
#[derive(Clone, Debug)]
#[repr(align(256))]
struct ClassSums([u64; CLASS_CELLS.len()]);

/// Sums of a size interval, aligned for the same reason.
#[derive(Clone, Debug)]
#[repr(align(128))]
struct SizeSums([u64; SIZE_CELLS.len()]);

/// Cells of a run and their snapshots. All sums are modulo 2^64, because sums of times may
/// overflow.
///
/// A snapshot contains the sums since the warm-up, so snapshots can be dropped without loss of the
/// totals: a run of any length has 64 to 128 equally long slots.
#[derive(Clone, Debug)]
pub struct CounterTable {
    link: [u64; LINK_CELLS.len()],
    classes: Vec<ClassSums>,
    sizes: Vec<SizeSums>,
    /// Sums of a network of links: [`LINK_TOTAL_CELLS`] of each link, then [`LINK_CLASS_CELLS`] of
    /// each class on each link.
    network: Vec<u64>,
    began: Nanos,
    slot: Nanos,
    next: Nanos,
    snapshots: Vec<u64>,
    remainder: Vec<u64>,
}

impl CounterTable {
    /// Creates empty counters without a network of links.
    #[must_use]
    pub fn new(classes: usize, sizes: usize) -> Self {
        Self {
            link: [0; LINK_CELLS.len()],
            classes: vec![ClassSums([0; CLASS_CELLS.len()]); classes],
            sizes: vec![SizeSums([0; SIZE_CELLS.len()]); sizes],
            network: Vec::new(),
            began: 0,
            slot: INITIAL_SLOT_LENGTH,
            next: INITIAL_SLOT_LENGTH,
            snapshots: Vec::new(),
            remainder: Vec::new(),
        }
    }

    /// Resets all sums; time counts from `now`.
    pub fn reset_sums(&mut self, now: Nanos) {
        let (classes, sizes) = (self.classes.len(), self.sizes.len());
        let mut network = std::mem::take(&mut self.network);
        network.fill(0);
        let next = now + INITIAL_SLOT_LENGTH;
        *self = Self { began: now, next, network, ..Self::new(classes, sizes) };
    }

    /// Sets the sums of a network of links.
    pub fn set_network_sums(&mut self, sums: impl Iterator<Item = u64>) {
        self.network.clear();
        self.network.extend(sums);
    }

    /// Adds to a cell of a class.
    #[inline]
    pub fn add_to_class(&mut self, class: usize, cell: ClassCell, amount: u64) {
        let cell = &mut self.classes[class].0[cell as usize];
        *cell = cell.wrapping_add(amount);
    }

    /// Counts a further timeout of a sequence with `depth` earlier timeouts and increments `depth`.
    /// Does nothing if `depth` is 0, which marks sequences that are not counted.
    pub fn count_repeated_timeout(&mut self, class: usize, depth: &mut u8) {
        if *depth == 0 {
            return;
        }
        let reached = ClassCell::Reached2 as usize..=ClassCell::Reached6 as usize;
        if let Some(cell) = self.classes[class].0[reached].get_mut(usize::from(*depth) - 1) {
            *cell += 1;
        }
        *depth = depth.saturating_add(1);
    }

    /// Sets a cell of a class.
    pub fn set_class_cell(&mut self, class: usize, cell: ClassCell, value: u64) {
        self.classes[class].0[cell as usize] = value;
    }

    /// Adds to a cell of a size interval.
    #[inline]
    pub fn add_to_size(&mut self, size_interval: usize, cell: SizeCell, amount: u64) {
        let cell = &mut self.sizes[size_interval].0[cell as usize];
        *cell = cell.wrapping_add(amount);
    }

    /// Cells of a class.
    #[inline(always)]
    pub fn class_cells_mut(&mut self, class: usize) -> &mut [u64; CLASS_CELLS.len()] {
        &mut self.classes[class].0
    }

    /// Cells of a size interval.
    #[inline]
    pub fn size_cells_mut(&mut self, size_interval: usize) -> &mut [u64; SIZE_CELLS.len()] {
        &mut self.sizes[size_interval].0
    }

    /// Counts a drop at a hop other than the bottleneck.
    pub fn add_hop_drop(&mut self) {
        self.link[LinkCell::HopDrops as usize] += 1;
    }

    /// Sets a cell of the bottleneck.
    pub fn set_link_cell(&mut self, cell: LinkCell, value: u64) {
        self.link[cell as usize] = value;
    }

    /// Sum of a cell over all classes.
    #[must_use]
    pub fn total_over_classes(&self, cell: ClassCell) -> u64 {
        self.classes.iter().map(|class| class.0[cell as usize]).sum()
    }

    /// Cell of one class.
    #[must_use]
    pub fn class_cell(&self, class: usize, cell: ClassCell) -> u64 {
        self.classes[class].0[cell as usize]
    }

    /// End of the current slot.
    #[must_use]
    pub fn slot_end(&self) -> Nanos {
        self.next
    }

    /// Takes a snapshot at the end of a slot, or the `last` one at the end of the run. Returns true
    /// if pairs of slots were merged.
    pub fn snapshot_and_merge_if_full(&mut self, now: Nanos, last: bool) -> bool {
        self.link[LinkCell::Time as usize] = now - self.began;
        self.remainder.clear();
        let cells = self.link.iter().chain(self.classes.iter().flat_map(|row| &row.0));
        let cells = cells.chain(self.sizes.iter().flat_map(|row| &row.0)).chain(&self.network);
        if last {
            self.remainder.extend(cells);
            return false;
        }
        self.snapshots.extend(cells);
        let width = self.cells_per_snapshot();
        let full = self.snapshots.len() == MAX_SLOTS * width;
        if full {
            keep_every_second_row(&mut self.snapshots, width);
            self.slot *= 2;
        }
        self.next = now + self.slot;
        full
    }

    /// Number of cells per snapshot: link, classes, size intervals, network of links.
    #[must_use]
    pub fn cells_per_snapshot(&self) -> usize {
        LINK_CELLS.len()
            + self.classes.len() * CLASS_CELLS.len()
            + self.sizes.len() * SIZE_CELLS.len()
            + self.network.len()
    }

    /// All snapshots in sequence, starting with zeros and ending with the end of the run.
    #[must_use]
    pub fn snapshot_rows(&self) -> Vec<u64> {
        let mut rows = vec![0; self.cells_per_snapshot()];
        rows.extend_from_slice(&self.snapshots);
        rows.extend_from_slice(&self.remainder);
        rows
    }
}

/// Keeps every second row of `width` columns, starting with the second row.
pub(super) fn keep_every_second_row(rows: &mut Vec<u64>, width: usize) {
    let kept = rows.len() / width / 2;
    for row in 0..kept {
        let from = (2 * row + 1) * width;
        rows.copy_within(from..from + width, row * width);
    }
    rows.truncate(kept * width);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_sequences_count_at_each_depth() {
        let mut counters = CounterTable::new(2, 1);
        let reached = |counters: &CounterTable| {
            let first = ClassCell::Reached2 as usize;
            counters.classes[1].0[first..first + 5].to_vec()
        };
        let mut depth = 1;
        counters.count_repeated_timeout(1, &mut depth);
        counters.count_repeated_timeout(1, &mut depth);
        assert_eq!((depth, reached(&counters)), (3, vec![1, 1, 0, 0, 0]));
        depth = 1;
        (0..300).for_each(|_| counters.count_repeated_timeout(1, &mut depth));
        assert_eq!((depth, reached(&counters)), (255, vec![2, 2, 1, 1, 1]));
        depth = 0;
        counters.count_repeated_timeout(1, &mut depth);
        assert_eq!((depth, reached(&counters)), (0, vec![2, 2, 1, 1, 1]));
        assert!(counters.classes[0].0.iter().all(|cell| *cell == 0));
        assert_eq!(counters.total_over_classes(ClassCell::Timeouts), 0);
    }

    #[test]
    fn slots_are_equal_in_long_runs() {
        let mut counters = CounterTable::new(1, 1);
        counters.reset_sums(500);
        for _ in 0..1000 {
            let end = counters.slot_end();
            counters.add_to_class(
                0,
                ClassCell::Sent,
                end - 500 - counters.total_over_classes(ClassCell::Sent),
            );
            counters.snapshot_and_merge_if_full(end, false);
        }
        let width = counters.cells_per_snapshot();
        let rows = counters.snapshot_rows();
        let times: Vec<u64> = rows.chunks(width).map(|row| row[LinkCell::Time as usize]).collect();
        assert!(times.len() > MAX_SLOTS / 2 && times.len() <= MAX_SLOTS);
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == times[1]));
        let sent = LINK_CELLS.len() + ClassCell::Sent as usize;
        assert!(rows.chunks(width).all(|row| row[sent] == row[LinkCell::Time as usize]));
    }
}
