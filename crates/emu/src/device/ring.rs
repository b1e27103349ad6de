//! The ring of a packet socket: frames that the kernel fills and this end gives back.

use super::packet_socket::set_option;
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

const FRAME_BYTES: usize = 2048;
const BLOCK_BYTES: usize = 1 << 16;
/// Frames of a block.
const BLOCK: usize = BLOCK_BYTES / FRAME_BYTES;

/// Frames of a packet socket in memory that the kernel shares, in the second version of its format.
#[derive(Debug)]
pub(super) struct Ring {
    frames: NonNull<u8>,
    count: usize,
    next: usize,
}

// SAFETY: the memory is the ring's alone in this process, and only `&mut self` reads it.
#[allow(unsafe_code)]
unsafe impl Send for Ring {}

impl Ring {
    /// Makes the ring of a socket that is not bound yet, of at least so many frames of 2 KiB.
    pub(super) fn new(socket: &OwnedFd, frames: usize) -> io::Result<Self> {
        let blocks = frames.div_ceil(BLOCK).max(1);
        let version: libc::c_int = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: (blocks * BLOCK) as u32,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: the kernel chooses where the socket's ring is mapped, over its whole length; the
        // result is checked.
        #[allow(unsafe_code)]
        let memory = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let length = blocks * BLOCK_BYTES;
            let nowhere = std::ptr::null_mut();
            libc::mmap(nowhere, length, access, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        match NonNull::new(memory.cast()) {
            Some(frames) if memory != libc::MAP_FAILED => {
                Ok(Self { frames, count: blocks * BLOCK, next: 0 })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Copies the IP packet of the next frame into `room`, as much as has room there, and gives the
    /// frame back; how long the packet is. `None` if the kernel has filled none.
    pub(super) fn take(&mut self, room: &mut [u8]) -> Option<usize> {
        // SAFETY: `next` is below `count`, so all of the frame is in the mapped memory, and a frame
        // begins with its header, aligned to its length.
        #[allow(unsafe_code)]
        let (frame, status) = unsafe {
            let frame = self.frames.add(self.next * FRAME_BYTES);
            // The status is the header's first word, which both ends write.
            (frame, AtomicU32::from_ptr(frame.cast().as_ptr()))
        };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has given the frame to this end, so nobody writes it; its header says
        // where the packet is, and the copy is kept within the frame and within `room`.
        #[allow(unsafe_code)]
        let bytes = unsafe {
            let header: libc::tpacket2_hdr = frame.cast().read();
            let begin = usize::from(header.tp_net).min(FRAME_BYTES);
            let link_header = usize::from(header.tp_net).saturating_sub(header.tp_mac.into());
            let kept = (header.tp_snaplen as usize).saturating_sub(link_header);
            let copied = kept.min(FRAME_BYTES - begin).min(room.len());
            frame.add(begin).copy_to_nonoverlapping(NonNull::from(&mut *room).cast(), copied);
            (header.tp_len as usize).saturating_sub(link_header)
        };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.count;
        Some(bytes)
    }

    /// Packets that found the ring full since the last call.
    pub(super) fn missed(&self, socket: &OwnedFd) -> u64 {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the kernel writes at max `length` bytes, those of `stats`.
        #[allow(unsafe_code)]
        let result = unsafe {
            let value = std::ptr::from_mut(&mut stats).cast();
            let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
            libc::getsockopt(socket.as_raw_fd(), level, option, value, &mut length)
        };
        if result == 0 { u64::from(stats.tp_drops) } else { 0 }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made, and nobody has references into it.
        #[allow(unsafe_code)]
        unsafe {
            libc::munmap(self.frames.as_ptr().cast(), self.count * FRAME_BYTES);
        }
    }
}
