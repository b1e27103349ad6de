//! Reusable cells of fixed size for packets: memory is limited, and packets are not copied.

/// Bytes per cell: a packet of the usual 1500 bytes and a device's header.
pub const CELL_BYTES: usize = 2048;
/// Bytes before a packet in its cell, for a link-layer header.
pub const HEADROOM: usize = 64;
/// Maximum packet length, bytes.
pub const MAX_BYTES: usize = CELL_BYTES - HEADROOM;
const CHUNK_CELLS: usize = 512;

/// Cells in chunks, which are allocated when needed.
#[derive(Debug)]
pub struct PacketSlab {
    chunks: Vec<Box<[u8]>>,
    lengths: Vec<u16>,
    free: Vec<u32>,
    max: usize,
}

impl PacketSlab {
    /// Creates an empty slab for at most `max_bytes` of memory.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        let max = (max_bytes / CELL_BYTES).clamp(CHUNK_CELLS, u32::MAX as usize);
        Self { chunks: Vec::new(), lengths: Vec::new(), free: Vec::new(), max }
    }

    /// Takes a cell with unspecified contents; `None` if all are in use.
    #[inline]
    pub fn take_cell(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            self.allocate_chunk();
        }
        self.free.pop()
    }

    #[cold]
    fn allocate_chunk(&mut self) {
        let begin = self.lengths.len();
        let end = (begin + CHUNK_CELLS).min(self.max);
        if end == begin {
            return;
        }
        self.chunks.push(vec![0; CHUNK_CELLS * CELL_BYTES].into_boxed_slice());
        self.lengths.resize(end, 0);
        self.free.extend((begin as u32..end as u32).rev());
    }

    /// Returns a cell to the slab.
    #[inline]
    pub fn return_cell(&mut self, cell: u32) {
        self.free.push(cell);
    }

    /// Number of cells in use.
    #[must_use]
    pub fn cells_in_use(&self) -> usize {
        self.lengths.len() - self.free.len()
    }

    #[inline]
    fn chunk_and_offset(cell: u32) -> (usize, usize) {
        let cell = cell as usize;
        (cell / CHUNK_CELLS, cell % CHUNK_CELLS * CELL_BYTES)
    }

    /// Memory for a packet.
    #[inline]
    pub fn cell_memory_mut(&mut self, cell: u32) -> &mut [u8] {
        let (chunk, begin) = Self::chunk_and_offset(cell);
        &mut self.chunks[chunk][begin + HEADROOM..begin + CELL_BYTES]
    }

    /// Sets the length of the packet in a cell, at most [`MAX_BYTES`].
    #[inline]
    pub fn set_length(&mut self, cell: u32, bytes: usize) {
        self.lengths[cell as usize] = bytes.min(MAX_BYTES) as u16;
    }

    /// Returns the packet in a cell.
    #[inline]
    #[must_use]
    pub fn packet(&self, cell: u32) -> &[u8] {
        self.packet_with_headroom(cell, 0)
    }

    /// Returns the packet in a cell for modification.
    #[inline]
    pub fn packet_mut(&mut self, cell: u32) -> &mut [u8] {
        let length = usize::from(self.lengths[cell as usize]);
        &mut self.cell_memory_mut(cell)[..length]
    }

    /// Returns the packet with `header` bytes of headroom before it, at most [`HEADROOM`].
    #[inline]
    #[must_use]
    pub fn packet_with_headroom(&self, cell: u32, header: usize) -> &[u8] {
        let (chunk, begin) = Self::chunk_and_offset(cell);
        let packet = begin + HEADROOM;
        let length = usize::from(self.lengths[cell as usize]);
        &self.chunks[chunk][packet - header.min(HEADROOM)..packet + length]
    }

    /// Writes a link-layer header before the packet in a cell, at most [`HEADROOM`] bytes.
    #[inline]
    pub fn set_header(&mut self, cell: u32, header: &[u8]) {
        let (chunk, begin) = Self::chunk_and_offset(cell);
        let end = begin + HEADROOM;
        self.chunks[chunk][end - header.len()..end].copy_from_slice(header);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_limited_and_reused() {
        let mut slab = PacketSlab::new(CHUNK_CELLS * CELL_BYTES + CELL_BYTES);
        let cells: Vec<u32> = std::iter::from_fn(|| slab.take_cell()).collect();
        assert_eq!((cells.len(), slab.cells_in_use()), (CHUNK_CELLS + 1, CHUNK_CELLS + 1));
        slab.return_cell(7);
        assert_eq!((slab.take_cell(), slab.take_cell()), (Some(7), None));
    }

    #[test]
    fn cell_has_packet_length_and_headroom() {
        let mut slab = PacketSlab::new(0);
        let cell = slab.take_cell().unwrap();
        slab.cell_memory_mut(cell)[..3].copy_from_slice(&[1, 2, 3]);
        slab.set_length(cell, 3);
        slab.set_header(cell, &[9, 8]);
        assert_eq!(slab.packet(cell), [1, 2, 3]);
        assert_eq!(slab.packet_with_headroom(cell, 2), [9, 8, 1, 2, 3]);
        slab.packet_mut(cell)[0] = 7;
        assert_eq!(slab.packet(cell), [7, 2, 3]);
        assert_eq!(slab.cell_memory_mut(cell).len(), MAX_BYTES);
    }
}
