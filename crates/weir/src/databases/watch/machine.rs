//! The machine: its processors, its pressure, and the device under the server's data.

use std::path::Path;

use weir_blocktrace::{Class, Stage, StageTable};
use weir_core::target::{DeviceLoad, Load, TargetFacts};
use weir_host::{Host, Sample};
use weir_oltp::limits::DeviceUse;

use crate::stages::StageWatch;

/// File systems that lie in memory.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// The device under a folder, and its counters at the start.
pub struct Device {
    target: TargetFacts,
    first: Option<Sample>,
    stages: StageWatch,
}

impl Device {
    /// Looks up what is under the folder.
    pub fn under(host: &Host, folder: &Path, trace: bool) -> Result<Device, String> {
        let target = host.target(folder).map_err(|error| error.to_string())?;
        let stages = StageWatch::begin(&target, trace && !is_in_memory(&target));
        Ok(Device { target, first: None, stages })
    }

    /// Measuring begins.
    pub fn begin(&mut self, host: &Host) {
        self.first = Some(host.sample(&self.target));
        self.stages.step();
    }

    /// What happened since: the machine's load, and the device's part.
    pub fn end(&mut self, host: &Host) -> Option<(Load, DeviceUse)> {
        let load = host.sample(&self.target).since(self.first.as_ref()?);
        let name = self.target.device.clone();
        if self.is_memory() {
            let kind = self.target.file_system.as_ref().map(|fs| fs.kind.clone());
            let device =
                DeviceUse { name: kind.unwrap_or_default(), is_memory: true, ..DeviceUse::default() };
            return Some((load, device));
        }
        let counted = name.as_ref().and_then(|name| load.devices.get(name)).cloned().unwrap_or_default();
        let stages = self.stages.taken().and_then(|table| stages(&table));
        let device = device_use(name.unwrap_or_default(), &counted, stages);
        Some((load, device))
    }

    /// Whether the folder lies in memory.
    pub fn is_memory(&self) -> bool {
        is_in_memory(&self.target)
    }

    /// Why stages were not seen, if they were not.
    pub fn unseen(&self) -> Option<String> {
        let why = self.stages.unseen().filter(|_| !self.is_memory())?;
        Some(format!("where requests wait: {why}"))
    }
}

fn is_in_memory(target: &TargetFacts) -> bool {
    target.file_system.as_ref().is_some_and(|fs| IN_MEMORY.contains(&fs.kind.as_str()))
}

fn device_use(name: String, load: &DeviceLoad, stages: Option<(f64, f64)>) -> DeviceUse {
    DeviceUse {
        name,
        is_memory: false,
        util: load.util_percent / 100.0,
        reads_per_second: load.reads_per_second,
        read_ns: load.read_wait_ms * 1e6,
        writes_per_second: load.writes_per_second,
        write_ns: load.write_wait_ms * 1e6,
        flushes_per_second: load.flushes_per_second,
        write_bytes_per_second: load.write_bytes_per_second,
        stages,
    }
}

/// Means, over all devices, of the time before a request is handed over and of the time in the device. A session in its
/// default detail sees requests from when they are made; what came before is not in it.
fn stages(table: &StageTable) -> Option<(f64, f64)> {
    let all = table.sum(|key| key.classes.has(Class::All));
    let inside = all.stage(Stage::D2C);
    let whole =
        [Stage::Q2C, Stage::G2C].map(|stage| all.stage(stage)).into_iter().find(|whole| !whole.is_empty())?;
    (!inside.is_empty()).then(|| ((whole.mean_ns() - inside.mean_ns()).max(0.0), inside.mean_ns()))
}
