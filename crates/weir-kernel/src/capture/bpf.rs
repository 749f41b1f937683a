//! Loads and attaches the recorder's programs.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Enum;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, OpenProgramMut, ProgramMut};
use weir_blocktrace::recording::FlagBits;
use weir_core::target::DeviceNumber;

use super::ring::{Rings, SPILL_BYTES};
use super::{Events, Options};
use crate::probe::denial;
use crate::{Error, loading};

skeleton!("record");

/// As the program's `devices` can hold.
pub const DEVICES_MAX: usize = 16;
/// As `NAMES` in the program.
const NAMES: u32 = 256;
const PROGRAM: &str = "the recorder";

/// The programs at work; they end when this is dropped.
pub struct Programs {
    skeleton: skeleton::RecordSkel<'static>,
    links: Vec<Link>,
    /// What they write.
    pub rings: Rings,
}

impl Programs {
    /// Loads what `options` ask for. Nothing is attached yet.
    pub fn load(options: &Options, base_ns: u64, cpus: usize) -> Result<Programs, Error> {
        if let Some(denial) = denial("recording by programs in the kernel") {
            return Err(denial);
        }
        let failed = |action| move |source| Error::Program { action, program: PROGRAM, source };
        // The object lives as long as the process may need it, which is one small allocation a recording.
        let place = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = skeleton::RecordSkelBuilder::default().open(place).map_err(failed("open"))?;
        let ring_bytes = options.ring_bytes;
        if let Some(constants) = open.maps.rodata_data.as_deref_mut() {
            constants.base_ns = base_ns;
            constants.ring_mask = ring_bytes as u64 - 1;
            constants.devices_len = options.devices.len() as u32;
            for (place, device) in constants.devices.iter_mut().zip(&options.devices) {
                *place = kernel_number(*device);
            }
            constants.issue_tells_g = !options.events.has_bios();
        }
        let maps = &mut open.maps;
        maps.lanes.set_max_entries(cpus as u32).map_err(failed("size the maps of"))?;
        maps.names.set_max_entries(cpus as u32 * NAMES).map_err(failed("size the maps of"))?;
        maps.rings.set_max_entries(cpus as u32).map_err(failed("size the maps of"))?;
        maps.rings.set_value_size((ring_bytes + SPILL_BYTES) as u32).map_err(failed("size the maps of"))?;
        for (program, wanted) in wanted(&mut open.progs, options.events) {
            program.set_autoload(wanted);
        }
        loading::refuse_as_asked("record", open.open_object_mut());
        let skeleton = loading::quietly(|| open.load()).map_err(failed("load"))?;
        let rings = Rings::new(skeleton.maps.lanes.as_fd(), skeleton.maps.rings.as_fd(), cpus, ring_bytes)
            .map_err(|source| Error::System { what: "mapping the rings".to_string(), source })?;
        Ok(Programs { skeleton, links: Vec::new(), rings })
    }

    /// From here on events are recorded.
    pub fn attach(&mut self) -> Result<(), Error> {
        let failed = |source| Error::Program { action: "attach", program: PROGRAM, source };
        for program in loaded(&mut self.skeleton.progs) {
            if program.autoload() {
                self.links.push(program.attach().map_err(failed)?);
            }
        }
        self.record(true);
        Ok(())
    }

    fn record(&mut self, recording: bool) {
        if let Some(data) = self.skeleton.maps.bss_data.as_deref_mut() {
            data.recording = recording;
        }
    }

    /// No event comes after this.
    pub fn detach(&mut self) {
        self.record(false);
        self.links.clear();
    }

    /// Events that the kernel did not hand to a program because it was running on that CPU already.
    pub fn missed(&mut self) -> u64 {
        loaded(&mut self.skeleton.progs).iter().map(|program| missed(program.as_fd().as_raw_fd())).sum()
    }
}

/// Every program before it is loaded, and whether it is wanted.
fn wanted<'a, 'o>(
    programs: &'a mut skeleton::OpenRecordProgs<'o>,
    events: Events,
) -> Vec<(&'a mut OpenProgramMut<'o>, bool)> {
    let (bios, plugs) = (events.has_bios(), events.has_plugs());
    vec![
        (&mut programs.on_queue, bios),
        (&mut programs.on_getrq, bios),
        (&mut programs.on_backmerge, bios),
        (&mut programs.on_frontmerge, bios),
        (&mut programs.on_split, bios),
        (&mut programs.on_remap, bios),
        (&mut programs.on_bio_complete, bios),
        (&mut programs.on_insert, true),
        (&mut programs.on_issue, true),
        (&mut programs.on_requeue, true),
        (&mut programs.on_rq_merge, true),
        (&mut programs.on_complete, true),
        (&mut programs.on_plug, plugs),
        (&mut programs.on_unplug, plugs),
    ]
}

fn loaded<'a, 'o>(programs: &'a mut skeleton::RecordProgs<'o>) -> [&'a mut ProgramMut<'o>; 14] {
    [
        &mut programs.on_queue,
        &mut programs.on_getrq,
        &mut programs.on_backmerge,
        &mut programs.on_frontmerge,
        &mut programs.on_split,
        &mut programs.on_remap,
        &mut programs.on_bio_complete,
        &mut programs.on_insert,
        &mut programs.on_issue,
        &mut programs.on_requeue,
        &mut programs.on_rq_merge,
        &mut programs.on_complete,
        &mut programs.on_plug,
        &mut programs.on_unplug,
    ]
}

/// `major << 20 | minor` (linux/kdev_t.h).
fn kernel_number(device: DeviceNumber) -> u32 {
    device.major << 20 | device.minor & 0xf_ffff
}

/// Where this kernel has its request flags.
pub fn flag_bits() -> FlagBits {
    let newest = FlagBits::NEWEST;
    let Ok(types) = Btf::from_vmlinux() else { return newest };
    let Some(bits) = types.type_by_name::<Enum>("req_flag_bits") else { return newest };
    let bit = |name: &str, newest: u8| {
        let found = bits.iter().find(|value| value.name.is_some_and(|found| found == name));
        found.map_or(newest, |value| value.value as u8)
    };
    FlagBits {
        sync: bit("__REQ_SYNC", newest.sync),
        meta: bit("__REQ_META", newest.meta),
        fua: bit("__REQ_FUA", newest.fua),
        preflush: bit("__REQ_PREFLUSH", newest.preflush),
        rahead: bit("__REQ_RAHEAD", newest.rahead),
    }
}

/// `recursion_misses` of a program (bpf_prog_info, since 5.12).
fn missed(program: i32) -> u64 {
    if program < 0 {
        return 0;
    }
    // SAFETY: zeros are a valid value of this structure of numbers; the kernel writes at most `length` bytes into it.
    let (info, result) = unsafe {
        let mut info: libbpf_rs::libbpf_sys::bpf_prog_info = std::mem::zeroed();
        let mut length = size_of_val(&info) as u32;
        let result =
            libbpf_rs::libbpf_sys::bpf_obj_get_info_by_fd(program, (&raw mut info).cast(), &mut length);
        (info, result)
    };
    if result == 0 { info.recursion_misses } else { 0 }
}
