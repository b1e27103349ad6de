//! Packets in cells of one size, reused: memory is bounded, and a packet is copied by nobody.

/// Bytes of a cell: a packet of the usual 1500 bytes, and room for a device's header.
pub const CELL_BYTES: usize = 2048;
/// Bytes before a packet in its cell, for a link-layer header.
pub const HEADROOM: usize = 64;
/// The longest packet.
pub const MOST_BYTES: usize = CELL_BYTES - HEADROOM;
const CHUNK_CELLS: usize = 512;

/// Cells, in chunks that are made when they are needed first.
#[derive(Debug)]
pub struct Slab {
    chunks: Vec<Box<[u8]>>,
    lengths: Vec<u16>,
    free: Vec<u32>,
    most: usize,
}

impl Slab {
    /// No cell yet, and at most as many as fit into `most_bytes` of memory.
    #[must_use]
    pub fn new(most_bytes: usize) -> Self {
        let most = (most_bytes / CELL_BYTES).clamp(CHUNK_CELLS, u32::MAX as usize);
        Self { chunks: Vec::new(), lengths: Vec::new(), free: Vec::new(), most }
    }

    /// A cell whose contents are left from before; `None` if all are taken.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            self.grow();
        }
        self.free.pop()
    }

    #[cold]
    fn grow(&mut self) {
        let begin = self.lengths.len();
        let end = (begin + CHUNK_CELLS).min(self.most);
        if end == begin {
            return;
        }
        self.chunks.push(vec![0; CHUNK_CELLS * CELL_BYTES].into_boxed_slice());
        self.lengths.resize(end, 0);
        self.free.extend((begin as u32..end as u32).rev());
    }

    /// A cell is free again.
    #[inline]
    pub fn give(&mut self, cell: u32) {
        self.free.push(cell);
    }

    /// Cells that are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.lengths.len() - self.free.len()
    }

    #[inline]
    fn place(cell: u32) -> (usize, usize) {
        let cell = cell as usize;
        (cell / CHUNK_CELLS, cell % CHUNK_CELLS * CELL_BYTES)
    }

    /// Room for a packet.
    #[inline]
    pub fn room(&mut self, cell: u32) -> &mut [u8] {
        let (chunk, begin) = Self::place(cell);
        &mut self.chunks[chunk][begin + HEADROOM..begin + CELL_BYTES]
    }

    /// The packet in a cell has so many bytes, at most [`MOST_BYTES`].
    #[inline]
    pub fn set_length(&mut self, cell: u32, bytes: usize) {
        self.lengths[cell as usize] = bytes.min(MOST_BYTES) as u16;
    }

    /// The packet in a cell.
    #[inline]
    #[must_use]
    pub fn packet(&self, cell: u32) -> &[u8] {
        self.framed(cell, 0)
    }

    /// The packet in a cell, to be changed.
    #[inline]
    pub fn packet_mut(&mut self, cell: u32) -> &mut [u8] {
        let length = usize::from(self.lengths[cell as usize]);
        &mut self.room(cell)[..length]
    }

    /// The packet with `header` bytes of headroom before it, at most [`HEADROOM`].
    #[inline]
    #[must_use]
    pub fn framed(&self, cell: u32, header: usize) -> &[u8] {
        let (chunk, begin) = Self::place(cell);
        let packet = begin + HEADROOM;
        let length = usize::from(self.lengths[cell as usize]);
        &self.chunks[chunk][packet - header.min(HEADROOM)..packet + length]
    }

    /// Writes a link-layer header before the packet in a cell; at most [`HEADROOM`] bytes.
    #[inline]
    pub fn set_header(&mut self, cell: u32, header: &[u8]) {
        let (chunk, begin) = Self::place(cell);
        let end = begin + HEADROOM;
        self.chunks[chunk][end - header.len()..end].copy_from_slice(header);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_reused_and_bounded() {
        let mut slab = Slab::new(CHUNK_CELLS * CELL_BYTES + CELL_BYTES);
        let cells: Vec<u32> = std::iter::from_fn(|| slab.take()).collect();
        assert_eq!((cells.len(), slab.taken()), (CHUNK_CELLS + 1, CHUNK_CELLS + 1));
        slab.give(7);
        assert_eq!((slab.take(), slab.take()), (Some(7), None));
    }

    #[test]
    fn a_packet_has_its_length_and_room_for_a_header() {
        let mut slab = Slab::new(0);
        let cell = slab.take().unwrap();
        slab.room(cell)[..3].copy_from_slice(&[1, 2, 3]);
        slab.set_length(cell, 3);
        slab.set_header(cell, &[9, 8]);
        assert_eq!(slab.packet(cell), [1, 2, 3]);
        assert_eq!(slab.framed(cell, 2), [9, 8, 1, 2, 3]);
        slab.packet_mut(cell)[0] = 7;
        assert_eq!(slab.packet(cell), [7, 2, 3]);
        assert_eq!(slab.room(cell).len(), MOST_BYTES);
    }
}
