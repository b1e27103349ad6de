//! Time: integer nanoseconds since whatever the caller began with.

/// A point in time, or a span of it, in nanoseconds.
pub type Nanos = u64;

/// A time that never comes: a timer that is off. Spans can be added to it without overflow.
pub const NEVER: Nanos = u64::MAX / 2;

/// Nanoseconds in a microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// Nanoseconds in a millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;
