//! Writes of many packets to a device by one system call (io_uring(7)), which is half of what they
//! take.

use super::frame;
use crate::path::Slab;
use io_uring::{IoUring, opcode, types};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Most writes of a call.
const MAX_WRITES: usize = 64;
/// The file as the ring knows it.
const DEVICE: types::Fixed = types::Fixed(0);
/// Where a file has no offset.
const NOWHERE: u64 = u64::MAX;

/// A ring of one thread, for one device.
pub(super) struct Batch(IoUring);

impl Batch {
    /// A ring of the calling thread; `None` where the kernel has none, or forbids it to this process.
    pub(super) fn new(device: BorrowedFd<'_>) -> Option<Self> {
        // Rings of one thread came with Linux 6.0; before 5.11 a write to TAP went to another thread.
        let ring = IoUring::builder().setup_single_issuer().build(MAX_WRITES as u32).ok()?;
        ring.submitter().register_files(&[device.as_raw_fd()]).ok()?;
        Some(Self(ring))
    }

    /// Writes the packets in some cells with their headers; which were not taken, by their place.
    pub(super) fn write(&mut self, slab: &Slab, cells: &[u32], lost: &mut Vec<usize>) {
        for (batch, cells) in cells.chunks(MAX_WRITES).enumerate() {
            let mut left = cells.len();
            for (at, cell) in cells.iter().enumerate() {
                let bytes = frame::of(slab, *cell);
                let write = opcode::Write::new(DEVICE, bytes.as_ptr(), bytes.len() as u32);
                let entry = write.offset(NOWHERE).build().user_data((batch * MAX_WRITES + at) as u64);
                // SAFETY: the bytes are in the slab, which is borrowed until all writes are done.
                #[allow(unsafe_code)]
                let pushed = unsafe { self.0.submission().push(&entry) };
                if pushed.is_err() {
                    lost.push(batch * MAX_WRITES + at);
                    left -= 1;
                }
            }
            while left > 0 {
                // A signal ends the wait early, and what was not submitted is the next time.
                let _ = self.0.submit_and_wait(left);
                for done in self.0.completion() {
                    left -= 1;
                    if done.result() < 0 {
                        lost.push(done.user_data() as usize);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn packets_are_written_in_their_order_and_those_that_are_refused_are_named() {
        let (near, far) = UnixDatagram::pair().unwrap();
        let Some(mut batch) = Batch::new(near.as_fd()) else { return };
        let (mut slab, mut cells) = (Slab::new(1 << 20), Vec::new());
        for number in 0..5_u8 {
            let cell = slab.take().unwrap();
            slab.room(cell)[0] = 0x40 + number;
            slab.set_length(cell, 1);
            frame::address(&mut slab, cell);
            cells.push(cell);
        }
        let mut lost = Vec::new();
        batch.write(&slab, &cells, &mut lost);
        let mut seen = Vec::new();
        far.set_nonblocking(true).unwrap();
        let mut room = [0; 100];
        while let Ok(bytes) = far.recv(&mut room) {
            assert_eq!(bytes, 15);
            seen.push(room[14]);
        }
        assert_eq!((lost.clone(), seen), (vec![], vec![0x40, 0x41, 0x42, 0x43, 0x44]));
        drop(far);
        batch.write(&slab, &cells, &mut lost);
        assert_eq!(lost, [0, 1, 2, 3, 4]);
    }
}
