//! Loads a session's programs and holds them.

use std::os::fd::AsFd;

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};
use weir_blocktrace::Stage;

use super::cells::{Cells, cell_bytes};
use super::control::{BIOS_WALKED, Control, Settings};
use super::overhead::{ProgramFigures, figures};
use crate::{Error, loading, probe};

/// Memory for cells by CPU, and bounds of it.
const CELL_BYTES_PER_CPU: usize = 2 << 20;
const CELL_BYTES_MAX: usize = 128 << 20;
const CELL_BYTES_MIN: usize = 8 << 20;
const RING_BYTES: u32 = 256 << 10;

/// One set of programs: the object file, twice, and what its cells hold.
pub struct Kind {
    pub name: &'static str,
    /// Attaches to BTF tracepoints.
    pub by_btf: &'static [u8],
    /// Attaches to raw tracepoints.
    pub raw: &'static [u8],
    pub stages: &'static [Stage],
    /// How many bios a completion follows: the first that the verifier takes.
    pub bios_walked: &'static [u32],
}

/// By request, from G.
pub const DEFAULT: Kind = Kind {
    name: "stages",
    by_btf: include_bytes!(concat!(env!("OUT_DIR"), "/stages.bpf.o")),
    raw: include_bytes!(concat!(env!("OUT_DIR"), "/stages_raw.bpf.o")),
    stages: &[Stage::G2DAll, Stage::D2C, Stage::G2C],
    bios_walked: &[0],
};

/// By piece, from Q.
pub const FULL: Kind = Kind {
    name: "pieces",
    by_btf: include_bytes!(concat!(env!("OUT_DIR"), "/pieces.bpf.o")),
    raw: include_bytes!(concat!(env!("OUT_DIR"), "/pieces_raw.bpf.o")),
    stages: &[
        Stage::Q2G,
        Stage::G2I,
        Stage::G2D,
        Stage::I2D,
        Stage::Q2M,
        Stage::M2D,
        Stage::D2C,
        Stage::Q2C,
        Stage::Q2D,
    ],
    bios_walked: &BIOS_WALKED,
};

/// The program that stamps D, where the request does not tell it, and what it is told: `issues` in stages.bpf.c.
const ISSUE: &str = "on_issue";
const ISSUES: &str = ".data.issues";

/// Programs in the kernel, attached.
pub struct Programs {
    object: Object,
    links: Vec<Link>,
    issue: Option<Link>,
    /// `issues` of the program at D, if there is one.
    issues: Option<MapHandle>,
    issues_each: u32,
    /// Since when what it stamps stands for `issues_each`.
    issues_from_ns: u64,
    stages: &'static [Stage],
}

impl Programs {
    /// Loads the programs, all but those in `leave_out`, and attaches them. They count from [`Programs::begin`] on.
    pub fn load(kind: &Kind, mut settings: Settings, leave_out: &[&str]) -> Result<Programs, Error> {
        if let Some(error) = probe::denial("a live session") {
            return Err(error);
        }
        let mut first_refusal = None;
        let mut in_a_form = |bios| {
            settings.walk(bios);
            let forms = [("", kind.by_btf), ("_raw", kind.raw)];
            forms.into_iter().find_map(|(suffix, object)| {
                let loaded = load(kind, suffix, object, &settings, leave_out);
                loaded.map_err(|refused| first_refusal.get_or_insert(refused)).ok()
            })
        };
        let loaded = loading::quietly(|| kind.bios_walked.iter().find_map(|&bios| in_a_form(bios)));
        let lacking = || Error::Unsupported { lacking: format!("what {} need", kind.name) };
        loaded.ok_or_else(|| first_refusal.unwrap_or_else(lacking))
    }

    /// From now on they count.
    pub fn begin(&mut self, now_ns: u64) -> Result<(), Error> {
        let control = Control { started_ns: now_ns, ..Control::default() };
        let map = self.map(".data.control")?;
        let written = map.update(&0_u32.to_ne_bytes(), &control.bytes(), MapFlags::ANY);
        written.map_err(|source| Error::Program { action: "start", program: "live sessions", source })
    }

    /// What the programs said of themselves.
    pub fn control(&self) -> Control {
        let Ok(map) = self.map(".data.control") else { return Control::default() };
        let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        value.ok().flatten().map_or_else(Control::default, |value| Control::parse(&value))
    }

    /// All cells taken so far.
    pub fn cells(&self, taken: u64) -> Cells {
        let mut cells = Cells::new(self.stages);
        let Ok(map) = self.map("cells") else { return cells };
        for number in 1..=taken as u32 {
            if let Ok(Some(value)) = map.lookup(&number.to_ne_bytes(), MapFlags::ANY) {
                cells.add(&value);
            }
        }
        cells
    }

    /// Attaches or detaches the program at D; an issue that it sees from now on stands for `each`. Whether there is such a program:
    /// requests may tell D themselves, or be followed in full.
    pub fn watch_issues(&mut self, each: u32, are_watched: bool, now_ns: u64) -> Result<bool, Error> {
        let failed = |action| move |source| Error::Program { action, program: ISSUE, source };
        let Some(map) = &self.issues else { return Ok(false) };
        if (each, are_watched) == (self.issues_each, self.issue.is_some()) {
            return Ok(true);
        }
        if are_watched && self.issue.is_none() {
            let program = self.object.progs_mut().find(|program| program.name() == ISSUE);
            self.issue = program.map(|program| program.attach()).transpose().map_err(failed("attach"))?;
        }
        // What is stamped already belongs to the time before; of a part, what is under way at its end may complete later.
        let until_ns = if are_watched { u64::MAX } else { now_ns };
        if are_watched || each != self.issues_each {
            self.issues_from_ns = now_ns;
        }
        let issues = [self.issues_from_ns, until_ns, u64::from(each)].map(u64::to_ne_bytes).concat();
        map.update(&0_u32.to_ne_bytes(), &issues, MapFlags::ANY).map_err(failed("set"))?;
        self.issues_each = each;
        if !are_watched {
            self.issue = None;
        }
        Ok(true)
    }

    /// A map of theirs.
    pub fn map(&self, name: &'static str) -> Result<MapHandle, Error> {
        let found = self.object.maps().find(|map| map.name() == name);
        let map = found.ok_or(Error::Unsupported { lacking: format!("the map {name}") })?;
        MapHandle::try_from(&map).map_err(|source| Error::Program { action: "open", program: name, source })
    }

    /// The kernel's figures of all attached programs together, and of the one at C.
    pub fn figures(&self) -> ProgramFigures {
        let mut sum = ProgramFigures::default();
        for program in self.object.progs() {
            let figures = figures(program.as_fd());
            sum.run_time_ns += figures.run_time_ns;
            sum.runs += figures.runs;
            sum.skipped += figures.skipped;
        }
        sum
    }

    /// The kernel's figures of the program at C.
    pub fn figures_at_completion(&self) -> ProgramFigures {
        let mut programs = self.object.progs();
        let program = programs.find(|program| program.name() == "on_complete");
        program.map_or_else(ProgramFigures::default, |program| figures(program.as_fd()))
    }

    /// Memory of all maps, as they were made.
    pub fn memory_bytes(&self) -> u64 {
        let size =
            |map: libbpf_rs::Map<'_>| u64::from(map.value_size().max(1)) * u64::from(map.max_entries());
        self.object.maps().map(size).sum()
    }

    /// How many hooks there are.
    pub fn hooks(&self) -> usize {
        self.links.len() + usize::from(self.issue.is_some())
    }
}

fn load(
    kind: &Kind,
    suffix: &str,
    object: &[u8],
    settings: &Settings,
    leave_out: &[&str],
) -> Result<Programs, Error> {
    let failed = |action| move |source| Error::Program { action, program: kind.name, source };
    let mut object = ObjectBuilder::default().open_memory(object).map_err(failed("open"))?;
    let cells = prepare(&mut object, kind, settings).map_err(failed("prepare"))?;
    for mut program in object.progs_mut() {
        if leave_out.iter().any(|name| program.name() == *name) {
            program.set_autoload(false);
        }
    }
    loading::refuse_as_asked(&format!("{}{suffix}", kind.name), &mut object);
    let object = object.load().map_err(failed("load"))?;
    let mut programs = Programs {
        object,
        links: Vec::new(),
        issue: None,
        issues: None,
        issues_each: 1,
        issues_from_ns: 0,
        stages: kind.stages,
    };
    let free = programs.map("free_cells")?;
    // The last one pushed is the first one taken, and number 0 stands for none.
    for number in (1..cells).rev() {
        free.update(&[], &number.to_ne_bytes(), MapFlags::ANY).map_err(failed("fill"))?;
    }
    // C comes last: what completes is not counted before its earlier moments can be seen.
    let mut order: Vec<_> = programs.object.progs_mut().filter(|program| program.autoload()).collect();
    order.sort_by_key(|program| program.name() == "on_complete");
    for program in order {
        let link = program.attach().map_err(failed("attach"))?;
        if program.name() == ISSUE { programs.issue = Some(link) } else { programs.links.push(link) }
    }
    programs.issues = programs.issue.as_ref().and_then(|_| programs.map(ISSUES).ok());
    Ok(programs)
}

/// Sets sizes and settings; how many cells there are.
fn prepare(object: &mut OpenObject, kind: &Kind, settings: &Settings) -> libbpf_rs::Result<u32> {
    let cpus = libbpf_rs::num_possible_cpus()?;
    let bytes = (cpus * CELL_BYTES_PER_CPU).clamp(CELL_BYTES_MIN, CELL_BYTES_MAX);
    let cells = (bytes / cell_bytes(kind.stages.len())) as u32;
    for mut map in object.maps_mut() {
        match map.name().to_str() {
            Some("cells" | "free_cells") => map.set_max_entries(cells)?,
            Some("directories") => map.set_max_entries(cpus as u32)?,
            Some("slow_requests") => map.set_max_entries(RING_BYTES)?,
            Some(".rodata.settings") => map.set_initial_value(settings.bytes())?,
            _ => {}
        }
    }
    Ok(cells)
}
