//! How much a queue holds, and how much it may.

/// Packets, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many packets.
    pub packets: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Backlog {
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    #[inline]
    pub(crate) fn remove(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

/// Whether the packet in transmission takes room in the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InService {
    /// It does.
    #[default]
    Counts,
    /// It does not: the limits are of packets that wait, as in ns-2 and in Linux's disciplines.
    IsExtra,
}

/// How much a buffer holds at most; both limits hold where both are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Most packets; `None` is unlimited.
    pub packets: Option<u64>,
    /// Most bytes; `None` is unlimited.
    pub bytes: Option<u64>,
    /// Whether the packet in transmission is among them.
    pub in_service: InService,
}

impl Limits {
    /// A limit in packets, the one in transmission included.
    #[must_use]
    pub fn packets(most: u64) -> Self {
        Self { packets: Some(most), ..Self::default() }
    }

    /// A limit in bytes, those of the packet in transmission included.
    #[must_use]
    pub fn bytes(most: u64) -> Self {
        Self { bytes: Some(most), ..Self::default() }
    }
}

/// Limits as they are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    packets: u64,
    bytes: u64,
    pub(crate) service_counts: bool,
}

impl Most {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            packets: limits.packets.unwrap_or(u64::MAX),
            bytes: limits.bytes.unwrap_or(u64::MAX),
            service_counts: limits.in_service == InService::Counts,
        }
    }

    /// Whether a packet of `bytes` fits beside what counts already.
    #[inline]
    pub(crate) fn has_room(&self, counted: Backlog, bytes: u32) -> bool {
        counted.packets < self.packets && counted.bytes + u64::from(bytes) <= self.bytes
    }

    /// Whether so much may be there.
    #[inline]
    pub(crate) fn allows(&self, counted: Backlog) -> bool {
        counted.packets <= self.packets && counted.bytes <= self.bytes
    }
}

/// What waits and what is in transmission, beside the limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occupancy {
    pub most: Most,
    pub waiting: Backlog,
    /// The packet in transmission: none or one.
    pub in_service: Backlog,
}

impl Occupancy {
    pub fn new(limits: Limits) -> Self {
        Self {
            most: Most::new(limits),
            waiting: Backlog::default(),
            in_service: Backlog::default(),
        }
    }

    /// What is held, the packet in transmission included.
    #[inline]
    pub fn held(&self) -> Backlog {
        Backlog {
            packets: self.waiting.packets + self.in_service.packets,
            bytes: self.waiting.bytes + self.in_service.bytes,
        }
    }

    /// What the limits are compared with.
    #[inline]
    pub fn counted(&self) -> Backlog {
        if self.most.service_counts { self.held() } else { self.waiting }
    }

    /// Whether one more packet fits.
    #[inline]
    pub fn has_room(&self, bytes: u32) -> bool {
        self.most.has_room(self.counted(), bytes)
    }

    /// A packet that waited goes into transmission.
    #[inline]
    pub fn serve(&mut self, bytes: u32) {
        self.waiting.remove(bytes);
        self.transmit(bytes);
    }

    /// A packet that no longer counts as waiting goes into transmission.
    #[inline]
    pub fn transmit(&mut self, bytes: u32) {
        self.in_service = Backlog { packets: 1, bytes: u64::from(bytes) };
    }

    /// The transmitter has nothing to do.
    #[inline]
    pub fn idle(&mut self) {
        self.in_service = Backlog::default();
    }
}
