//! The machine as weir reads it.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use weir_core::target::VmSettings;

use crate::HostError;
use crate::knob::Servers;
use crate::mounts::Mount;
use crate::tree::Tree;
use crate::vm;

/// A machine: this one, or the captured tree of another.
#[derive(Debug, Clone)]
pub struct Host {
    pub(crate) tree: Tree,
    /// Whether system calls (stat, statvfs) may be asked as well as files.
    pub(crate) live: bool,
    /// Where cgroup version 2 and version 1's controller of block devices are mounted, once they were found.
    pub(crate) cgroup_mounts: [Arc<OnceLock<Mount>>; 2],
}

impl Host {
    /// This machine.
    pub fn live() -> Self {
        Host { tree: Tree::new(Path::new("/")), live: true, cgroup_mounts: Default::default() }
    }

    /// The same machine with its database servers, whose variables are knobs, too.
    #[must_use]
    pub fn reaching(mut self, servers: &'static dyn Servers) -> Self {
        self.tree.servers = Some(servers);
        self
    }

    /// A captured tree with `proc` and `sys` inside. Only files are read: no sizes of file systems, and a path is
    /// found by its mount point alone. Counters in pages are taken as pages of 4 KiB.
    pub fn at(root: &Path) -> Self {
        Host { tree: Tree::new(root), live: false, cgroup_mounts: Default::default() }
    }

    /// The same machine, for one who reads the same few files many times a second: they stay open.
    pub(crate) fn keeping_open(&self) -> Host {
        Host { tree: self.tree.keeping_open(), ..self.clone() }
    }

    /// Bytes of page cache, shared memory left out.
    ///
    /// # Errors
    /// When `/proc/meminfo` cannot be read or understood.
    pub fn page_cache_bytes(&self) -> Result<u64, HostError> {
        Ok(vm::memory(&self.tree)?.page_cache_bytes)
    }

    /// Bytes of memory that programs could get without swapping.
    ///
    /// # Errors
    /// When `/proc/meminfo` cannot be read or understood.
    pub fn available_memory_bytes(&self) -> Result<u64, HostError> {
        Ok(vm::memory(&self.tree)?.available_bytes)
    }

    /// Settings of virtual memory, and the limits of dirty pages that the kernel makes of them; what cannot be read is
    /// absent.
    pub fn vm_settings(&self) -> VmSettings {
        vm::settings(&self.tree, self.page_bytes(), &mut Vec::new())
    }

    /// Writes out what is dirty, then drops the page cache, dentries and inodes: the next reads are cold. Nothing is
    /// lost, and there is nothing to restore.
    ///
    /// # Errors
    /// When `/proc/sys/vm/drop_caches` cannot be written, as without root.
    pub fn drop_caches(&self) -> Result<(), HostError> {
        // SAFETY: sync takes nothing, returns nothing and cannot fail.
        unsafe { libc::sync() };
        let path = self.tree.real("/proc/sys/vm/drop_caches");
        std::fs::write(&path, "3").map_err(|error| HostError::io(&path, error))
    }

    pub(crate) fn page_bytes(&self) -> u64 {
        if !self.live {
            return 4096;
        }
        // SAFETY: sysconf reads a constant of the system and touches no memory of ours.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        u64::try_from(bytes).unwrap_or(4096)
    }
}
