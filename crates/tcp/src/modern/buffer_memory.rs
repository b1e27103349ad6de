//! Memory of the receive buffers of releases of Linux.

/// Memory of a receive buffer that grows with the data that the application reads, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferMemory {
    /// At the start of a connection: second value of `tcp_rmem`.
    pub initial: u64,
    /// Maximum: third value of `tcp_rmem`.
    pub max: u64,
    /// Share of the memory that is advertised, in 1/256: `tcp_adv_win_scale` or `scaling_ratio`.
    pub advertised: u32,
}

impl BufferMemory {
    /// Linux 5.15: half of at most 6 MiB is advertised.
    pub const LINUX_5_15: Self = Self { initial: 131_072, max: 6 << 20, advertised: 128 };
    /// Linux 6.18: at most 32 MiB, in which packets of 1500 bytes occupy 2304 bytes.
    pub const LINUX_6_18: Self = Self { initial: 131_072, max: 32 << 20, advertised: 160 };

    /// Window at the start of a connection, before packets show their share of the memory.
    #[must_use]
    pub fn initial_window(&self) -> u64 {
        self.initial.min(self.max) / 2
    }

    /// Largest window.
    #[must_use]
    pub fn max_window(&self) -> u64 {
        self.max / 256 * u64::from(self.advertised)
    }
}
