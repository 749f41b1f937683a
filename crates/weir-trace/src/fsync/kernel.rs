//! The programs, fitted to the running kernel, loaded and attached.

use std::collections::HashMap;
use std::mem::MaybeUninit;

use libbpf_rs::OpenObject;
use libbpf_rs::btf::types::{FuncProto, Ptr, Typedef};
use libbpf_rs::btf::{Btf, BtfType};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use super::files;
use super::session::Options;
use crate::Error;
use crate::brackets::{self, Brackets};

skeleton!("fsync");

pub(super) use skeleton::FsyncSkel;
#[cfg(test)]
pub(super) use skeleton::types;
use skeleton::{FsyncSkelBuilder, OpenFsyncSkel};

const PROGRAM: &str = "the programs of the fsync trace";

/// System calls and what they are to the programs.
pub(crate) fn calls() -> HashMap<u64, u8> {
    let known = [
        (libc::SYS_fsync, 1),
        (libc::SYS_fdatasync, 2),
        (libc::SYS_write, 3),
        (libc::SYS_writev, 3),
        (libc::SYS_pwrite64, 3),
        (libc::SYS_pwritev, 3),
        (libc::SYS_pwritev2, 4),
        (libc::SYS_sync_file_range, 5),
        (libc::SYS_msync, 6),
        (libc::SYS_syncfs, 7),
        (libc::SYS_sync, 8),
    ];
    known.map(|(number, call)| (number as u64, call)).into()
}

/// Opens, fits and loads; nothing is attached yet.
pub(super) fn load<'a>(
    object: &'a mut MaybeUninit<OpenObject>,
    options: &Options,
    brackets: Brackets,
) -> Result<FsyncSkel<'a>, Error> {
    let failed = |action| move |source| Error::Program { action, program: PROGRAM, source };
    let btf = Btf::from_vmlinux().map_err(|_| Error::Unsupported {
        lacking: "a description of its own types (/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF)"
            .to_string(),
    })?;
    let mut open = FsyncSkelBuilder::default().open(object).map_err(failed("open"))?;
    brackets::choose(open.open_object_mut(), brackets).map_err(failed("fit"))?;
    fit(&mut open, &btf)?;
    narrow(&mut open, options)?;
    open.load().map_err(failed("load"))
}

/// Leaves out the programs whose tracepoints have another form here.
fn fit(open: &mut OpenFsyncSkel<'_>, btf: &Btf<'_>) -> Result<(), Error> {
    for needed in ["sys_enter", "sys_exit", "sched_switch", "block_rq_complete"] {
        if arguments(btf, needed).is_none() {
            return Err(Error::Unsupported { lacking: format!("the tracepoint {needed}") });
        }
    }
    let pause = arguments(btf, "balance_dirty_pages");
    open.progs.on_pause_12.set_autoload(pause == Some(12));
    open.progs.on_pause_8.set_autoload(pause == Some(8));
    open.progs.on_dirty_folio.set_autoload(arguments(btf, "writeback_dirty_folio").is_some());
    open.progs.on_dirty_page.set_autoload(arguments(btf, "writeback_dirty_page").is_some());
    open.progs.on_issue.set_autoattach(false);
    let ring = arguments(btf, "io_uring_queue_async_work");
    open.progs.on_ring_work_2.set_autoload(ring == Some(2));
    open.progs.on_ring_work_5.set_autoload(ring == Some(5));
    open.progs.on_ring_work_7.set_autoload(ring == Some(7));
    Ok(())
}

/// How many arguments a tracepoint has; `None` if the kernel has none of that name.
pub(crate) fn arguments(btf: &Btf<'_>, tracepoint: &str) -> Option<usize> {
    let named: Typedef<'_> = btf.type_by_name(&format!("btf_trace_{tracepoint}"))?;
    let pointer: BtfType<'_> =
        btf.type_by_id(libbpf_rs::btf::ReferencesType::referenced_type(&named).type_id())?;
    let pointer = Ptr::try_from(pointer).ok()?;
    let prototype = libbpf_rs::btf::ReferencesType::referenced_type(&pointer);
    // The first is the program's own context.
    Some(FuncProto::try_from(prototype).ok()?.len().saturating_sub(1))
}

/// Tells the programs which calls and tasks count.
fn narrow(open: &mut OpenFsyncSkel<'_>, options: &Options) -> Result<(), Error> {
    let Some(settings) = open.maps.rodata_data.as_deref_mut() else {
        return Err(Error::Unsupported { lacking: "maps that user space can set".to_string() });
    };
    for (number, call) in calls() {
        if let Some(slot) = settings.calls.get_mut(number as usize) {
            *slot = call;
        }
    }
    settings.only_tgid = options.pid.unwrap_or(0);
    settings.only_descendants_of = options.descendants_of.unwrap_or(0);
    settings.stack_every_ns = options.stack_every_ns;
    if let Some(path) = &options.cgroup {
        let (id, level) = files::cgroup(path)
            .map_err(|source| Error::System { what: format!("the cgroup {}", path.display()), source })?;
        settings.only_cgroup = id;
        settings.only_cgroup_level = level;
    }
    let comm = options.comm.as_deref().unwrap_or_default().as_bytes();
    for (slot, byte) in settings.only_comm.iter_mut().zip(comm.iter().take(15)) {
        *slot = *byte as _;
    }
    Ok(())
}
