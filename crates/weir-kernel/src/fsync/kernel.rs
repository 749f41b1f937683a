//! The programs, fitted to the running kernel, loaded and attached.

use std::collections::HashMap;
use std::mem::MaybeUninit;

use libbpf_rs::OpenObject;
use libbpf_rs::btf::Btf;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use super::options::Options;
use super::{files, skims};
use crate::brackets::{self, Brackets};
use crate::tracepoints::{arguments, place_of};
use crate::{Error, loading};

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

const PAUSES: &str = "pauses of buffered writers";
const DIRTIERS: &str = "writers of files that no process has open any more";
const RINGS: &str = "the number of syncs through io_uring";

/// Programs that the trace can do without, and what it does not know then.
const OPTIONAL: [(&[&str], &str); 7] = [
    (&["on_pause_12", "on_pause_8"], PAUSES),
    (&["on_dirty_folio", "on_dirty_page"], DIRTIERS),
    (&["on_queue"], "a sync's own I/O, and the senders of reads, direct writes and discards"),
    (&["on_issue"], "the times of issue on devices that keep none"),
    (&["on_complete"], "the block layer's and the devices' work, and the owners of other I/O"),
    (&["on_ring_work_2", "on_ring_work_5", "on_ring_work_7"], RINGS),
    (&["enter_msync", "exit_msync"], "syncs of mapped memory (msync)"),
];

/// How the programs go into this kernel.
pub(super) struct Fitted {
    pub brackets: Brackets,
    /// What is not known because the kernel did not take the program for it, with its reason.
    pub unknown: Vec<(&'static str, String)>,
}

impl Fitted {
    /// The cheapest way of which this kernel takes the programs; where it takes some of them only, those.
    pub fn find(options: &Options) -> Result<Fitted, Error> {
        let ways: &[Brackets] = match Brackets::here() {
            Brackets::OwnCalls => &[Brackets::OwnCalls, Brackets::AllCalls],
            Brackets::AllCalls => &[Brackets::AllCalls],
        };
        let takes = |brackets, without: &[&str]| {
            load(&mut MaybeUninit::uninit(), options, brackets, without).map(drop)
        };
        let mut refused = None;
        for &brackets in ways {
            match takes(brackets, &[]) {
                Ok(()) => return Ok(Fitted { brackets, unknown: formless() }),
                Err(why) => refused = Some(why),
            }
        }
        let names = |but: &str| {
            let groups = OPTIONAL.iter().filter(|(_, what)| *what != but);
            groups.flat_map(|(programs, _)| programs.iter().copied()).collect::<Vec<_>>()
        };
        let Some(&brackets) = ways.iter().find(|brackets| takes(**brackets, &names("")).is_ok()) else {
            return Err(refused.unwrap_or(Error::Unsupported { lacking: PROGRAM.to_string() }));
        };
        let reason = |what| takes(brackets, &names(what)).err().map(|why| (what, why.to_string()));
        let refused = OPTIONAL.iter().filter_map(|(_, what)| reason(what));
        Ok(Fitted { brackets, unknown: refused.chain(formless()).collect() })
    }

    /// Loads them.
    pub fn load<'a>(
        &self,
        object: &'a mut MaybeUninit<OpenObject>,
        options: &Options,
    ) -> Result<FsyncSkel<'a>, Error> {
        let is_unknown = |what: &str| self.unknown.iter().any(|(unknown, _)| *unknown == what);
        let without = OPTIONAL.iter().filter(|(_, what)| is_unknown(what));
        let without: Vec<_> = without.flat_map(|(programs, _)| programs.iter().copied()).collect();
        load(object, options, self.brackets, &without)
    }
}

/// What is not known because a tracepoint has a form here that no program is for.
fn formless() -> Vec<(&'static str, String)> {
    let Ok(btf) = Btf::from_vmlinux() else { return Vec::new() };
    let count = |tracepoint| arguments(&btf, tracepoint);
    let has_dirtiers =
        ["writeback_dirty_folio", "writeback_dirty_page"].iter().any(|name| count(name).is_some());
    let known = [
        (PAUSES, "balance_dirty_pages", matches!(count("balance_dirty_pages"), Some(8 | 12))),
        (DIRTIERS, "writeback_dirty_folio", has_dirtiers),
        // A kernel without io_uring has no such syncs.
        (
            RINGS,
            "io_uring_queue_async_work",
            !matches!(count("io_uring_queue_async_work"), Some(n) if ![2, 5, 7].contains(&n)),
        ),
    ];
    let unknown = known.into_iter().filter(|(.., is_known)| !is_known);
    unknown
        .map(|(what, tracepoint, _)| (what, format!("the tracepoint {tracepoint} has no form known here")))
        .collect()
}

/// Opens, fits and loads all programs but those in `without`; nothing is attached yet.
fn load<'a>(
    object: &'a mut MaybeUninit<OpenObject>,
    options: &Options,
    brackets: Brackets,
    without: &[&str],
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
    let places = skims::places(libbpf_rs::num_possible_cpus().unwrap_or(1));
    open.maps.skims.set_max_entries(places).map_err(failed("size the table of short syncs of"))?;
    if let Some(bytes) = options.ring_bytes {
        open.maps.events.set_max_entries(bytes).map_err(failed("size the ring of"))?;
    }
    for mut program in open.open_object_mut().progs_mut() {
        if without.iter().any(|name| program.name() == *name) {
            program.set_autoload(false);
        }
    }
    loading::refuse_as_asked("fsync", open.open_object_mut());
    loading::quietly(|| open.load()).map_err(failed("load"))
}

/// Leaves out the programs whose tracepoints have another form here.
fn fit(open: &mut OpenFsyncSkel<'_>, btf: &Btf<'_>) -> Result<(), Error> {
    for needed in ["sys_enter", "sys_exit", "sched_switch"] {
        if arguments(btf, needed).is_none() {
            return Err(Error::Unsupported { lacking: format!("the tracepoint {needed}") });
        }
    }
    let pause = arguments(btf, "balance_dirty_pages");
    open.progs.on_pause_12.set_autoload(pause == Some(12));
    open.progs.on_pause_8.set_autoload(pause == Some(8));
    open.progs.on_dirty_folio.set_autoload(arguments(btf, "writeback_dirty_folio").is_some());
    open.progs.on_dirty_page.set_autoload(arguments(btf, "writeback_dirty_page").is_some());
    // The session attaches these when they are needed.
    open.progs.on_queue.set_autoattach(false);
    open.progs.on_issue.set_autoattach(false);
    open.progs.on_complete.set_autoattach(false);
    let ring = arguments(btf, "io_uring_queue_async_work");
    open.progs.on_ring_work_2.set_autoload(ring == Some(2));
    open.progs.on_ring_work_5.set_autoload(ring == Some(5));
    open.progs.on_ring_work_7.set_autoload(ring == Some(7));
    if let Some(settings) = open.maps.rodata_data.as_deref_mut() {
        settings.bio_at_queue = place_of(btf, "block_bio_queue", "bio").unwrap_or(0);
        settings.request_at_issue = place_of(btf, "block_rq_issue", "request").unwrap_or(0);
    }
    Ok(())
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
