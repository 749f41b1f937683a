//! Facts first: what the target is, what others do, whether there is room. Nothing is written here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_core::target::{Conditions, TargetFacts};
use weir_core::units::Bytes;
use weir_host::Host;
use weir_io::runner::Stop;
use weir_verdict::notes::Others;

use super::plan::{Mode, Plan};
use super::room::{self, Room};
use crate::failure::{Lacking, Usage};
use crate::machine;

/// What was found.
pub struct Survey {
    /// This machine.
    pub host: Host,
    /// The folder, canonical.
    pub path: PathBuf,
    /// What it stands on.
    pub target: TargetFacts,
    /// The machine.
    pub conditions: Conditions,
}

/// Looks at a folder; refuses what is none, or cannot be written.
pub fn look(path: &Path) -> anyhow::Result<Survey> {
    let host = machine::host();
    let path = host.resolved(path).map_err(|error| Lacking {
        what: format!("cannot examine {error}"),
        hint: Some("give a folder on the storage in question".to_string()),
    })?;
    if !path.is_dir() {
        let what = format!("{} is not a folder", path.display());
        let hint =
            Some("give a folder on the storage in question; weir makes its own files in it".to_string());
        return Err(Usage { what, hint }.into());
    }
    let target = host.target(&path).map_err(|error| Lacking {
        what: format!("cannot find out what {} stands on: {error}", path.display()),
        hint: None,
    })?;
    if target.file_system.as_ref().is_some_and(|fs| fs.read_only) {
        let what = format!("{} is on a file system that is mounted read-only", path.display());
        return Err(Lacking { what, hint: Some("choose a folder elsewhere".to_string()) }.into());
    }
    let conditions = host.conditions(Some(&target));
    Ok(Survey { host, path, target, conditions })
}

impl Survey {
    /// The kind of file system.
    pub fn kind(&self) -> &str {
        self.target.file_system.as_ref().map_or("unknown", |fs| fs.kind.as_str())
    }

    /// Whether it is memory.
    pub fn is_memory(&self) -> bool {
        ["tmpfs", "ramfs"].contains(&self.kind())
    }

    /// Size of a flood that could fill the dirty limit and more; 0 where none is wanted.
    pub fn flood_wanted(&self, mode: Mode, wanted: bool) -> Bytes {
        let most: u64 = match mode.name {
            "quick" => 8 << 30,
            "thorough" => 48 << 30,
            _ => 24 << 30,
        };
        let limit = self.conditions.vm.dirty_threshold_bytes.unwrap_or(4 << 30);
        let size = (limit / 4 * 5 + (512 << 20)).clamp(1 << 30, most);
        Bytes(if wanted { size >> 20 << 20 } else { 0 })
    }

    /// Room for the plan, or a refusal with the figures.
    pub fn room(&self, plan: &Plan, exact: bool, flood: Bytes) -> anyhow::Result<Room> {
        let space = self.host.free_space(&self.path).map_err(|error| Lacking {
            what: format!("cannot see how much room {} has: {error}", self.path.display()),
            hint: None,
        })?;
        if space.size_bytes == 0 {
            let what = format!("{} is on {}, which stores nothing", self.path.display(), self.kind());
            let hint = Some("give a folder on the storage in question".to_string());
            return Err(Lacking { what, hint }.into());
        }
        room::divide(space.size_bytes, space.free_bytes, plan.file_size, exact, flood).map_err(|full| {
            let what = format!(
                "{} is too full: weir needs {} and would leave {} free, but only {} is free",
                self.path.display(),
                full.needed,
                full.kept,
                Bytes(space.free_bytes),
            );
            let hint = Some("make room, give a smaller --size, or choose another folder".to_string());
            Lacking { what, hint }.into()
        })
    }

    /// What others do, watched for a while.
    pub fn others(&self, watch: Duration, stop: &Stop) -> Others {
        let before = self.host.sample(&self.target);
        let until = std::time::Instant::now() + watch;
        while std::time::Instant::now() < until && stop.requested().is_none() {
            std::thread::sleep(Duration::from_millis(50));
        }
        let load = self.host.sample(&self.target).since(&before);
        let device = self.target.device.as_ref().and_then(|name| load.devices.get(name));
        Others {
            observed_ns: load.elapsed_ns,
            read_iops: device.map(|d| d.reads_per_second),
            write_iops: device.map(|d| d.writes_per_second),
            bytes_per_second: device.map(|d| d.read_bytes_per_second + d.write_bytes_per_second),
            cpu_busy: load.cpu.busy_percent / 100.0,
            dirty: Bytes(load.memory.dirty_bytes + load.memory.writeback_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_core::units::Nanos;

    use super::*;
    use crate::doctor::plan;

    #[test]
    fn a_file_system_of_the_kernels_own_is_not_called_full() {
        let survey = look(Path::new("/proc")).unwrap();
        let plan = plan::plan(Mode::of(Nanos::from_secs(30)), None);
        let error = survey.room(&plan, false, Bytes(0)).unwrap_err();
        assert_eq!(error.to_string(), "/proc is on proc, which stores nothing");
    }
}
