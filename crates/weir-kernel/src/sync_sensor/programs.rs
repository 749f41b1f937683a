//! The programs, fitted to the running kernel and to whose syncs count, loaded and attached.

use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use libbpf_rs::btf::Btf;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapHandle, Object, ProgramType, libbpf_sys};

use super::Whose;
use super::tables::{DeviceSyncs, Flight, Process, Shared, State, Table};
use crate::brackets::{self, Brackets};
use crate::fsync::{files, kernel};
use crate::live::overhead::{ProgramFigures, figures};
use crate::{Error, loading, probe, tracepoints};

mod by_btf {
    skeleton!("syncs");
    pub use skeleton::SyncsSkelBuilder;
}
mod raw {
    skeleton!("syncs_raw");
    pub use skeleton::SyncsRawSkelBuilder;
}

const PROGRAM: &str = "the programs that time syncs";
/// Asked for writers instead of attached to an event.
const TELLS: &str = "tell_writers";

/// The tracepoint of a program that every operation of io_uring passes; `None` of all other programs.
fn every_operation(program: &OsStr) -> Option<&'static CStr> {
    match program.to_str()? {
        "on_enter_ring_sqe" => Some(c"io_uring_submit_sqe"),
        "on_enter_ring_req" => Some(c"io_uring_submit_req"),
        "on_exit_ring" => Some(c"io_uring_complete"),
        _ => None,
    }
}

/// Programs attached to the kernel, and their tables; both go away with this.
pub struct Programs {
    _links: Vec<Link>,
    at_calls: AtCalls,
    writers: Option<Link>,
    programs: Vec<OwnedFd>,
    listed: MapHandle,
    ring_flights: MapHandle,
    memory_bytes: u64,
    brackets: Brackets,
    pub flights: Table<Flight>,
    pub processes: Table<Process>,
    pub devices: Table<DeviceSyncs>,
    states: Table<State>,
}

/// The programs that every call of the machine, and of io_uring, passes: it pays for them only while they are attached.
#[derive(Default)]
struct AtCalls {
    /// The one that sees ends first. With the tracepoint's name, where the program itself does not name it.
    programs: Vec<(OwnedFd, Option<&'static CStr>)>,
    links: Vec<OwnedFd>,
}

impl AtCalls {
    fn attach(&mut self) -> std::io::Result<()> {
        for (program, tracepoint) in &self.programs {
            let name = tracepoint.map_or(std::ptr::null(), CStr::as_ptr);
            // SAFETY: the descriptor is a program's, and the name a string or null.
            let link = unsafe { libbpf_sys::bpf_raw_tracepoint_open(name, program.as_raw_fd()) };
            if link < 0 {
                self.detach();
                return Err(std::io::Error::from_raw_os_error(-link));
            }
            // SAFETY: a descriptor that nobody else has.
            self.links.push(unsafe { OwnedFd::from_raw_fd(link) });
        }
        Ok(())
    }

    fn detach(&mut self) {
        // Beginnings first, as no end is seen any more after that.
        while self.links.pop().is_some() {}
    }
}

/// What the programs are told before they are loaded.
struct Settings {
    seed: u64,
    calls: Vec<(usize, u8)>,
    only_descendants_of: u32,
    cgroup: (u64, u32),
    comm: [u8; 15],
    is_everybody: bool,
    only_listed: bool,
    /// Arguments of the tracepoint of pauses.
    pause: Option<usize>,
    /// The tracepoints of io_uring whose forms are known.
    ring: Vec<&'static CStr>,
}

/// Opens, settles and loads one of the two skeletons, whose types have the same fields.
macro_rules! load {
    ($name:literal, $builder:expr, $settings:expr, $brackets:expr) => {{
        let settings: &Settings = $settings;
        let mut room = MaybeUninit::uninit();
        let mut open = $builder.open(&mut room).map_err(failed("open"))?;
        brackets::choose(open.open_object_mut(), $brackets).map_err(failed("fit"))?;
        loading::refuse_as_asked($name, open.open_object_mut());
        open.progs.on_pause_12.set_autoload(settings.pause == Some(12));
        open.progs.on_pause_8.set_autoload(settings.pause == Some(8));
        for mut program in open.open_object_mut().progs_mut() {
            if let Some(tracepoint) = every_operation(program.name()) {
                program.set_autoload(settings.ring.contains(&tracepoint));
            }
        }
        let Some(said) = open.maps.rodata_data.as_deref_mut() else {
            return Err(Error::Unsupported { lacking: "maps that user space can set".to_string() });
        };
        for &(number, call) in &settings.calls {
            if let Some(slot) = said.calls.get_mut(number) {
                *slot = call;
            }
        }
        said.own_tgid = std::process::id();
        said.seed = settings.seed;
        said.only_descendants_of = settings.only_descendants_of;
        (said.only_cgroup, said.only_cgroup_level) = settings.cgroup;
        said.is_everybody = u8::from(settings.is_everybody);
        said.only_listed = u8::from(settings.only_listed);
        said.bulk_bytes = super::debt::BULK_ABOVE;
        said.told_bytes = super::account::TOLD_BYTES;
        for (slot, byte) in said.only_comm.iter_mut().zip(settings.comm) {
            *slot = byte as _;
        }
        let skeleton = open.load().map_err(failed("load"))?;
        Programs::attach(skeleton.object(), $brackets)
    }};
}

impl Programs {
    /// Loads and attaches.
    pub fn start(whose: &Whose) -> Result<Programs, Error> {
        if let Some(error) = probe::denial("timing syncs by BPF") {
            return Err(error);
        }
        let settings = Settings::new(whose)?;
        let loaded = loading::quietly(|| {
            with_btf(&settings, Brackets::here())
                .or_else(|_| with_btf(&settings, Brackets::AllCalls))
                .or_else(|refused| without_btf(&settings).map_err(|_| refused))
        });
        brackets::give_memory_back();
        let programs = loaded?;
        if let Whose::Listed(processes) = whose {
            programs.list(processes)?;
        }
        Ok(programs)
    }

    fn attach(object: &Object, brackets: Brackets) -> Result<Programs, Error> {
        let map = |name: &'static str| {
            let found = object.maps().find(|map| map.name() == name);
            let map = found.ok_or(Error::Unsupported { lacking: format!("the map {name}") })?;
            MapHandle::try_from(&map).map_err(failed("open the maps of"))
        };
        let (mut links, mut writers, mut programs) = (Vec::new(), None, Vec::new());
        let mut at_calls = AtCalls::default();
        // Ends come first: a sync is not begun before its end can be seen.
        let mut order: Vec<_> = object.progs_mut().filter(|program| program.autoload()).collect();
        order.sort_by_key(|program| brackets::is_begin(program.name()));
        for program in order {
            let copied = || program.as_fd().try_clone_to_owned().map_err(system("copy a descriptor"));
            programs.push(copied()?);
            let of_ring = every_operation(program.name()).filter(|_| brackets == Brackets::AllCalls);
            if let Some(tracepoint) = brackets::every_call(program.name()).or(of_ring) {
                let names_it = program.prog_type() != ProgramType::RawTracepoint;
                at_calls.programs.push((copied()?, (!names_it).then_some(tracepoint)));
                continue;
            }
            let link = program.attach();
            if program.name() == TELLS {
                writers = link.ok();
            } else {
                links.push(link.map_err(failed("attach"))?);
            }
        }
        at_calls.attach().map_err(system("attach programs to system calls"))?;
        let size =
            |map: libbpf_rs::Map<'_>| u64::from(map.value_size().max(1)) * u64::from(map.max_entries());
        Ok(Programs {
            _links: links,
            at_calls,
            writers,
            programs,
            listed: map("listed")?,
            ring_flights: map("ring_flights")?,
            memory_bytes: object.maps().map(size).sum(),
            brackets,
            flights: table(&map("flights")?)?,
            processes: table(&map("processes")?)?,
            devices: table(&map("devices")?)?,
            states: table(&map("states")?)?,
        })
    }

    /// Who may be asked who writes; `None` where the kernel cannot say (no BPF iterators).
    pub fn writers(&self) -> Option<&Link> {
        self.writers.as_ref()
    }

    /// What they count of themselves.
    pub fn state(&self) -> &State {
        &self.states.places()[0]
    }

    /// How they learn of calls.
    pub fn brackets(&self) -> Brackets {
        self.brackets
    }

    /// Detaches what every call of the machine passes, if that is how calls are learnt of.
    pub fn rest(&mut self) {
        self.at_calls.detach();
    }

    /// Attaches it again. Syncs that were under way are forgotten: their ends may not have been seen.
    pub fn wake(&mut self) -> Result<(), Error> {
        if self.at_calls.programs.is_empty() {
            return Ok(());
        }
        for flight in self.flights.places() {
            flight.release();
        }
        self.state().under_way.store(0, Ordering::Relaxed);
        // Ended by itself is as good.
        self.ring_flights.keys().for_each(|key| drop(self.ring_flights.delete(&key)));
        self.at_calls.attach().map_err(system("attach programs to system calls"))
    }

    /// From now on these are the listed processes, the first [`super::LISTED`] of them.
    pub fn list(&self, processes: &[u32]) -> Result<(), Error> {
        use libbpf_rs::MapFlags;
        let fitting = processes.iter().take(super::LISTED);
        let wanted: Vec<[u8; 4]> = fitting.map(|process| process.to_ne_bytes()).collect();
        for gone in self.listed.keys().filter(|key| !wanted.iter().any(|wanted| wanted[..] == key[..])) {
            // Gone by itself is as good.
            let _ = self.listed.delete(&gone);
        }
        let set = |key: &[u8; 4]| self.listed.update(key, &1_u32.to_ne_bytes(), MapFlags::ANY);
        wanted.iter().try_for_each(set).map_err(failed("list processes for"))
    }

    /// The kernel's figures of all programs together; run times only while its statistics are on.
    pub fn figures(&self) -> ProgramFigures {
        self.programs.iter().map(|program| figures(program.as_fd())).fold(
            ProgramFigures::default(),
            |mut sum, figures| {
                sum.run_time_ns += figures.run_time_ns;
                sum.runs += figures.runs;
                sum.skipped += figures.skipped;
                sum
            },
        )
    }

    /// Memory of all maps.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }
}

fn with_btf(settings: &Settings, brackets: Brackets) -> Result<Programs, Error> {
    load!("syncs", by_btf::SyncsSkelBuilder::default(), settings, brackets)
}

fn without_btf(settings: &Settings) -> Result<Programs, Error> {
    load!("syncs_raw", raw::SyncsRawSkelBuilder::default(), settings, Brackets::AllCalls)
}

impl Settings {
    fn new(whose: &Whose) -> Result<Settings, Error> {
        // sync_file_range, syncfs and sync are no commits.
        const NO_COMMITS: [u8; 3] = [5, 7, 8];
        let calls = kernel::calls().into_iter().filter(|(_, call)| !NO_COMMITS.contains(call));
        let types = Btf::from_vmlinux().map_err(failed("read the types for"))?;
        let mut settings = Settings {
            seed: weir_fs::random().map_err(system("draw a random number"))?,
            calls: calls.map(|(number, call)| (number as usize, call)).collect(),
            only_descendants_of: 0,
            cgroup: (0, 0),
            comm: [0; 15],
            is_everybody: *whose == Whose::Everybody,
            only_listed: matches!(whose, Whose::Listed(_)),
            pause: tracepoints::arguments(&types, "balance_dirty_pages"),
            ring: ring(&types),
        };
        match whose {
            Whose::Everybody | Whose::Listed(_) => {}
            Whose::Comm(name) => {
                settings.comm.iter_mut().zip(name.bytes()).for_each(|(slot, byte)| *slot = byte);
            }
            Whose::Descendants(process) => settings.only_descendants_of = *process,
            Whose::Cgroup(path) => {
                let what = || format!("the cgroup {}", path.display());
                settings.cgroup =
                    files::cgroup(path).map_err(|source| Error::System { what: what(), source })?;
            }
        }
        Ok(settings)
    }
}

/// The tracepoints between which an operation of io_uring is under way, where both tell of which they are. Before 6.0 they do
/// not: then its syncs are not seen.
fn ring(types: &Btf<'_>) -> Vec<&'static CStr> {
    let begins = [c"io_uring_submit_req", c"io_uring_submit_sqe"].into_iter().find(|begins| {
        begins.to_str().is_ok_and(|name| tracepoints::place_of(types, name, "io_kiocb") == Some(0))
    });
    let tells_end = matches!(tracepoints::arguments(types, "io_uring_complete"), Some(3 | 5 | 7));
    begins.filter(|_| tells_end).map_or_else(Vec::new, |begins| vec![begins, c"io_uring_complete"])
}

fn table<T: Shared>(map: &MapHandle) -> Result<Table<T>, Error> {
    Table::map(map).map_err(system("map the tables of the programs"))
}

fn failed(action: &'static str) -> impl Fn(libbpf_rs::Error) -> Error {
    move |source| Error::Program { action, program: PROGRAM, source }
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::System { what: what.to_string(), source }
}
