//! The sources that look at single requests: weir's programs in the kernel, and the kernel's own tracer.

use std::collections::BTreeMap;

use weir_blocktrace::{Kind, Moment, Piece, SlowIo, Source};
use weir_core::target::{DeviceNumber, Layer};
use weir_host::Host;
use weir_kernel::live::{Detail, Options, Slow, Snapshot, StageSession};
use weir_kernel::tracefs;

use super::source::{Counted, Opened, Wanted, Watch};

/// Devices that a remark names; a machine may have hundreds.
const NAMED_MOST: usize = 4;

fn numbers(wanted: &Wanted<'_>) -> Vec<DeviceNumber> {
    wanted.devices.iter().map(|device| device.number).collect()
}

/// Programs in the kernel.
pub fn bpf(wanted: &Wanted<'_>) -> Result<Opened, weir_kernel::Error> {
    let all = if wanted.devices.is_empty() { Host::live().devices() } else { Vec::new() };
    let (every_bio, of_devices) = follows_bios(wanted, &all);
    let options = Options {
        devices: numbers(wanted),
        pids: wanted.pids.clone(),
        cgroup: wanted.cgroup,
        detail: if every_bio { Detail::Full } else { Detail::Default },
        slow_ns: wanted.slow.map(|slow| slow.0),
        ..Options::default()
    };
    let mut session = StageSession::start(&options)?;
    let hooks = session.hooks();
    let (what, remark) = match options.needed() {
        Detail::Full => ("every bio from its Q", "not shown: waits before Q, as in cgroup throttling"),
        Detail::Default => (
            "requests from their G",
            "not shown without --detail: what lies before G, single stages in the queue, merged bios, senders",
        ),
    };
    let Snapshot { started_ns, start_stamp, .. } = session.snapshot();
    let remarks = [Some(remark), of_devices.as_deref(), start_stamp.caveat()];
    let remarks = remarks.into_iter().flatten().map(str::to_string).collect();
    let how = format!("{what}; {hooks} hook{}", if hooks == 1 { "" } else { "s" });
    Ok(Opened::new(Box::new(Programs { session, started_ns }), Source::Bpf, &how, remarks))
}

/// Whether every bio has to be followed, and what is to be said of devices without requests: those that were named are
/// seen no other way, and the others' I/O is seen on the devices beneath.
fn follows_bios(wanted: &Wanted<'_>, all: &[Layer]) -> (bool, Option<String>) {
    let without = |devices: &[Layer]| -> Option<String> {
        let names = devices.iter().filter(|device| !device.has_requests() && device.size_bytes > 0);
        let names: Vec<&str> = names.map(|device| device.name.as_str()).collect();
        let (named, more) = names.split_at(names.len().min(NAMED_MOST));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        (!names.is_empty()).then(|| named.join(", ") + &more)
    };
    if wanted.detail {
        return (true, None);
    }
    match (without(wanted.devices), without(all)) {
        (Some(named), _) => {
            (true, Some(format!("as with --detail, because of devices without requests: {named}")))
        }
        (None, Some(others)) => {
            let remark = format!("not shown without --detail, because they have no requests: {others}");
            (false, Some(remark))
        }
        (None, None) => (false, None),
    }
}

struct Programs {
    session: StageSession,
    started_ns: u64,
}

impl Watch for Programs {
    fn counted(&mut self) -> anyhow::Result<Counted> {
        let Snapshot { table, losses, overhead, .. } = self.session.snapshot();
        let all = [
            ("of devices and kinds beyond the limit", losses.cells),
            ("program runs skipped", losses.skipped),
            ("not seen, though the kernel's counters hold them", losses.unseen),
            ("under way at the start, whose earlier stages are unknown", losses.before_start),
            ("stamps pushed out by others", losses.stamps),
            ("on devices that keep no times", losses.untimed),
            ("bios beyond those a program may walk", losses.bios),
            ("slow requests without space in the table", losses.slow),
        ];
        Ok(Counted {
            table: Some(table),
            lost: all
                .into_iter()
                .filter(|(_, n)| *n > 0)
                .map(|(reason, n)| (reason.to_string(), n))
                .collect(),
            kernel_ns: overhead.programs_ns().map(|ns| ns as u64),
        })
    }

    fn slow(&mut self) -> Vec<SlowIo> {
        self.session.slow().into_iter().map(|slow| slow_io(slow, self.started_ns)).collect()
    }
}

fn slow_io(slow: Slow, started_ns: u64) -> SlowIo {
    let merged = slow.times.get(Moment::Merge).is_some();
    let piece = Piece {
        device: slow.device,
        flags: slow.flags,
        sector: slow.sector,
        bytes: slow.bytes,
        request_bytes: slow.bytes,
        pid: slow.pid.unwrap_or(0),
        cgroup: slow.cgroup.unwrap_or(0),
        kind: if merged { Kind::Merged } else { Kind::Whole },
        times: slow.times,
        error: slow.error,
        requeues: 0,
        data_done_ns: None,
    };
    let end_ns = slow.times.get(Moment::Complete).unwrap_or(started_ns);
    SlowIo { at_ns: end_ns.saturating_sub(started_ns), piece, sender: slow.comm.unwrap_or_default() }
}

/// The kernel's tracer.
pub fn tracer(wanted: &Wanted<'_>) -> Result<Opened, weir_kernel::Error> {
    if wanted.cgroup.is_some() {
        let lacking = "cgroups in the tracer's events, which --cgroup needs".to_string();
        return Err(weir_kernel::Error::Unsupported { lacking });
    }
    let options = tracefs::Options {
        devices: numbers(wanted),
        pids: wanted.pids.clone(),
        slow_ns: wanted.slow.map(|slow| slow.0),
    };
    let watch = Tracer(tracefs::TracerSession::start(&options)?);
    let remarks = Source::Tracefs.loses().map(|what| format!("not shown, and at what price: {what}"));
    Ok(Opened::new(Box::new(watch), Source::Tracefs, "every bio, from its Q", remarks.into_iter().collect()))
}

struct Tracer(tracefs::TracerSession);

impl Watch for Tracer {
    fn counted(&mut self) -> anyhow::Result<Counted> {
        self.0.drain()?;
        let lost: BTreeMap<String, u64> = self.0.losses();
        Ok(Counted { table: Some(self.0.table().clone()), lost, kernel_ns: None })
    }

    fn slow(&mut self) -> Vec<SlowIo> {
        self.0.slow()
    }

    fn drain(&mut self) -> anyhow::Result<()> {
        Ok(self.0.drain()?)
    }
}

#[cfg(test)]
mod tests {
    use weir_core::target::LayerKind;

    use super::*;

    #[test]
    fn bios_are_followed_where_there_is_nothing_else_to_see() {
        let layer = |name: &str, kind, size_bytes| Layer {
            name: name.to_string(),
            kind,
            size_bytes,
            ..Layer::default()
        };
        let mapped = LayerKind::Dm { dm_name: "vg-db".into(), dm_type: "LVM".into() };
        let disk = || layer("sda", LayerKind::Disk, 1);
        let all = [disk(), layer("dm-0", mapped.clone(), 1), layer("zram0", LayerKind::Memory, 0)];
        let many: Vec<Layer> = (0..40).map(|n| layer(&format!("dm-{n}"), mapped.clone(), 1)).collect();
        for (devices, detail, expected, said) in [
            (&all[..1], false, false, None),
            (&all[..2], false, true, Some("devices without requests: dm-0")),
            (&all[..2], true, true, None),
            (&many, false, true, Some("devices without requests: dm-0, dm-1, dm-2, dm-3 and 36 more")),
            (&[], false, false, Some("not shown without --detail, because they have no requests: dm-0")),
        ] {
            let wanted = Wanted { devices, pids: Vec::new(), cgroup: None, slow: None, detail };
            let (follows, remark) = follows_bios(&wanted, if devices.is_empty() { &all } else { &[] });
            assert_eq!(follows, expected, "{remark:?}");
            assert_eq!(remark.is_some(), said.is_some(), "{remark:?}");
            assert!(said.is_none_or(|said| remark.unwrap().contains(said)), "{said:?}");
        }
    }
}
