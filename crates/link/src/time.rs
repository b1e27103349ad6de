//! Time in integer nanoseconds, from an origin chosen by the caller.

/// A point in time or a duration in nanoseconds.
pub type Nanos = u64;

/// A time that is never reached, for example of an inactive timer. Adding a duration does not
/// overflow.
pub const NEVER: Nanos = u64::MAX / 2;

/// One microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// One millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// One second.
pub const SECOND: Nanos = 1_000_000_000;
