//! Reads integers in either byte order.

/// Byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// Reads two bytes at `offset`; panics if they are missing.
    #[inline(always)]
    pub(super) fn u16(self, bytes: &[u8], offset: usize) -> u16 {
        let pair = [bytes[offset], bytes[offset + 1]];
        match self {
            Self::Little => u16::from_le_bytes(pair),
            Self::Big => u16::from_be_bytes(pair),
        }
    }

    /// Reads four bytes at `offset`; panics if they are missing.
    #[inline(always)]
    pub(super) fn u32(self, bytes: &[u8], offset: usize) -> u32 {
        let word = [bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]];
        match self {
            Self::Little => u32::from_le_bytes(word),
            Self::Big => u32::from_be_bytes(word),
        }
    }

    /// Reads eight bytes at `offset`; panics if they are missing.
    pub(super) fn u64(self, bytes: &[u8], offset: usize) -> u64 {
        let (first, second) = (self.u32(bytes, offset), self.u32(bytes, offset + 4));
        match self {
            Self::Little => u64::from(second) << 32 | u64::from(first),
            Self::Big => u64::from(first) << 32 | u64::from(second),
        }
    }
}
