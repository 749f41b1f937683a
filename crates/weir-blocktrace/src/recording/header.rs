//! What a recording says about itself.

use serde::{Deserialize, Serialize};

use crate::Flags;
use weir_core::target::DeviceNumber;

/// The header: one JSON object after the preamble. Readers ignore keys they do not know.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// What wrote it, such as `weir 0.1.0`.
    pub recorder: String,
    /// Kernel release.
    pub kernel: String,
    /// The boot the clock belongs to (`/proc/sys/kernel/random/boot_id`): recordings of one boot share a clock.
    pub boot_id: String,
    /// Clock of all times: `monotonic`, nanoseconds.
    pub clock: String,
    /// Time 0 of the records, on that clock, ns.
    pub base_ns: u64,
    /// Wall clock at `base_ns`, ns since the epoch.
    pub wall_ns: u64,
    /// From then on events were recorded, ns since `base_ns`.
    pub begun_ns: u64,
    /// Where the events came from: `bpf`, `ftrace` or `relay`.
    pub source: String,
    /// Devices that were recorded; empty: all of them.
    pub devices: Vec<NamedDevice>,
    /// Block devices there were at the start, by number and name.
    pub names: Vec<NamedDevice>,
    /// What was recorded: letters of blktrace.
    pub recorded: Vec<String>,
    /// What was not, and why.
    pub not_recorded: Vec<String>,
    /// What the flags word of a record holds: the kernel's `cmd_flags` with these bits, or blktrace's categories if absent.
    pub flag_bits: Option<FlagBits>,
    /// CPUs.
    pub cpus: u32,
    /// Ring of each CPU, bytes.
    pub ring_bytes: u64,
    /// The command that ran meanwhile, empty if none.
    pub command: Vec<String>,
}

/// A device's number and the kernel's name for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedDevice {
    /// Number.
    pub device: DeviceNumber,
    /// Name, such as `nvme0n1`.
    pub name: String,
}

/// Where the recording kernel has its request flags (`enum req_flag_bits`): bit numbers. The low 8 bits are the
/// operation (`enum req_op`), whose odd numbers write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlagBits {
    /// `REQ_SYNC`.
    pub sync: u8,
    /// `REQ_META`.
    pub meta: u8,
    /// `REQ_FUA`.
    pub fua: u8,
    /// `REQ_PREFLUSH`.
    pub preflush: u8,
    /// `REQ_RAHEAD`.
    pub rahead: u8,
}

/// `REQ_OP_FLUSH`, `REQ_OP_DISCARD`, `REQ_OP_SECURE_ERASE`, `REQ_OP_WRITE_ZEROES`, `REQ_OP_DRV_IN`, `REQ_OP_DRV_OUT`
/// (linux/blk_types.h): the same in all kernels, unlike those of zones, whose commands have no data.
const FLUSH: u32 = 2;
const DISCARD: u32 = 3;
const SECURE_ERASE: u32 = 5;
const WRITE_ZEROES: u32 = 9;
const DRIVER: [u32; 2] = [34, 35];

impl FlagBits {
    /// Of kernel 6.18; [`Header`] holds those of the recording kernel.
    pub const NEWEST: FlagBits = FlagBits { sync: 11, meta: 12, fua: 17, preflush: 18, rahead: 19 };

    /// blktrace's categories of a request's or bio's flags, as the kernel's blktrace makes them.
    #[inline]
    pub fn categories(self, cmd_flags: u32) -> Flags {
        let operation = cmd_flags & 0xff;
        let mut flags = if operation & 1 == 1 { Flags::WRITE.0 } else { Flags::READ.0 };
        flags |= match operation {
            FLUSH => Flags::FLUSH.0,
            DISCARD | SECURE_ERASE => Flags::DISCARD.0,
            WRITE_ZEROES => Flags::ZEROES.0,
            _ if DRIVER.contains(&operation) => Flags::PASSTHROUGH.0,
            _ => 0,
        };
        let mut take = |bit: u8, flag: Flags| flags |= (cmd_flags >> (bit & 31) & 1) * flag.0;
        take(self.sync, Flags::SYNC);
        take(self.meta, Flags::METADATA);
        take(self.fua, Flags::FUA);
        take(self.preflush, Flags::FLUSH);
        take(self.rahead, Flags::AHEAD);
        Flags(flags)
    }
}

/// How a recording ended; it lacks this block if its recorder was killed or the machine went down.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// Why: a signal, the duration, the size, the command's end, a full disk.
    pub reason: String,
    /// Events that found the ring full, by CPU.
    pub dropped_by_cpu: Vec<u64>,
    /// Events that the kernel did not hand over (programs interrupted by themselves).
    pub missed: u64,
    /// Events written.
    pub events: u64,
    /// Up to then events were recorded, ns since the header's `base_ns`; recorders before 0.2.0 do not say.
    pub ended_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_blktrace_s_categories() {
        let bits = FlagBits::NEWEST;
        let cases = [
            (0, Flags::READ.0),
            (1 | 1 << 11, Flags::WRITE.0 | Flags::SYNC.0),
            (1 | 1 << 11 | 1 << 18 | 1 << 17, Flags::WRITE.0 | Flags::SYNC.0 | Flags::FLUSH.0 | Flags::FUA.0),
            (2 | 1 << 18, Flags::READ.0 | Flags::FLUSH.0),
            (3, Flags::WRITE.0 | Flags::DISCARD.0),
            (5, Flags::WRITE.0 | Flags::DISCARD.0),
            (9, Flags::WRITE.0 | Flags::ZEROES.0),
            (1 << 12 | 1 << 19, Flags::READ.0 | Flags::METADATA.0 | Flags::AHEAD.0),
            (34, Flags::READ.0 | Flags::PASSTHROUGH.0),
            (35, Flags::WRITE.0 | Flags::PASSTHROUGH.0),
        ];
        for (cmd_flags, expected) in cases {
            assert_eq!(bits.categories(cmd_flags), Flags(expected), "{cmd_flags:#x}");
        }
    }
}
