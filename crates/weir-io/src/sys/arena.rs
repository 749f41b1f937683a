//! Page-aligned memory for I/O buffers: one anonymous mapping, cut into equal slots, so that every operation in
//! flight owns its buffer and the whole can be registered with io_uring as one region.

use std::io;

/// Buffers of one thread.
pub struct Arena {
    base: *mut u8,
    slot_bytes: usize,
    bytes: usize,
    unmapped_on_drop: bool,
}

// SAFETY: the mapping belongs to this value alone and moves with it.
unsafe impl Send for Arena {}

impl Arena {
    /// `slots` buffers of at least `slot_bytes` each, page-aligned, zeroed.
    pub fn new(slots: usize, slot_bytes: usize) -> io::Result<Arena> {
        let slot_bytes = slot_bytes.max(1).next_multiple_of(4096);
        let bytes = slots.max(1) * slot_bytes;
        // SAFETY: an anonymous private mapping of a non-zero length; the result is checked below.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Arena { base: base.cast(), slot_bytes, bytes, unmapped_on_drop: true })
    }

    /// Start of a slot's buffer, for the kernel.
    #[inline(always)]
    pub fn pointer(&self, slot: u32) -> *mut u8 {
        debug_assert!((slot as usize + 1) * self.slot_bytes <= self.bytes);
        // SAFETY: slots are numbered below the count given at creation, so this stays inside the mapping.
        unsafe { self.base.add(slot as usize * self.slot_bytes) }
    }

    /// A slot's buffer, `len` bytes of it. The caller sees to it that the kernel is not using it meanwhile.
    #[inline(always)]
    pub fn slice_mut(&mut self, slot: u32, len: usize) -> &mut [u8] {
        assert!(len <= self.slot_bytes && (slot as usize) < self.bytes / self.slot_bytes);
        // SAFETY: in bounds by the assertion, initialised (anonymous memory is zeroed), and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(slot), len) }
    }

    /// Keeps the mapping when this value is dropped, for a kernel that may still write to it.
    pub fn leave_mapped(&mut self) {
        self.unmapped_on_drop = false;
    }

    /// The whole region, for registration: start and length in bytes.
    pub fn region(&self) -> (*mut u8, usize) {
        (self.base, self.bytes)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if !self.unmapped_on_drop {
            return;
        }
        // SAFETY: base and length are those of the mapping made in `new`, unmapped once.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}
