//! `weir trace util`: a device's counters for a while, its stages where they can be seen, and the curve in the store.

use std::time::{Duration, Instant};

use weir_blocktrace::Row;
use weir_cli::signals::stop_on_signals;
use weir_core::target::{Layer, TargetFacts};
use weir_core::units::Nanos;
use weir_host::Host;
use weir_io::runner::Stop;
use weir_record::Record;
use weir_report::text::trace_util;
use weir_verdict::saturation::{self, Known};

use crate::cli::trace::util::{Args, Format};
use crate::devices::named;
use crate::failure::{Outcome, Usage};
use crate::output::{print, print_exact};
use crate::store::Store;

/// Below this, ticks of the kernel's clock are too coarse for %util.
const DURATION_MIN: Nanos = Nanos(500_000_000);

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    if args.duration < DURATION_MIN {
        let what = format!("--duration {} is too short for %util", args.duration);
        return Err(Usage { what, hint: Some(format!("the shortest is {DURATION_MIN}")) }.into());
    }
    let device = named(std::slice::from_ref(&args.device))?.remove(0);
    let known = match &args.against {
        Some(run) => Some(stated(run, &device)?),
        None => newest(&device),
    };
    let stop = stop_on_signals()?;
    let watched = watch(&device, args.duration, &stop);
    let load = watched.load.devices.get(&device.name).cloned().unwrap_or_default();
    let utilization =
        saturation::judge(&device, &load, watched.load.elapsed_ns, watched.stages, known.as_ref());
    match args.format {
        Format::Text => print(&trace_util::utilization(&utilization))?,
        Format::Json => print_exact(&(serde_json::to_string_pretty(&utilization)? + "\n"))?,
    }
    Ok(stop.requested().map_or(Outcome::Done, Outcome::Interrupted))
}

/// What was seen.
struct Watched {
    load: weir_core::target::Load,
    stages: Option<Row>,
}

fn watch(device: &Layer, duration: Nanos, stop: &Stop) -> Watched {
    let host = Host::live();
    let facts = TargetFacts { stack: vec![device.clone()], ..TargetFacts::default() };
    let mut stages = stages::Stages::of(device);
    let before = host.sample(&facts);
    let until = Instant::now() + Duration::from_nanos(duration.0);
    while Instant::now() < until && stop.requested().is_none() {
        let left = until.saturating_duration_since(Instant::now());
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
    let load = host.sample(&facts).since(&before);
    Watched { stages: stages.row(&load), load }
}

/// The curves of a run that was named; that it was another device's is said.
fn stated(run: &str, device: &Layer) -> anyhow::Result<Known> {
    let store = Store::open()?;
    let record = store.load(&store.resolve(run)?)?;
    if !saturation::is_about(&record.head, device) {
        say!("warning: run {} was measured on another device than {}", record.head.id, device.name);
    }
    record.curves().ok_or_else(|| {
        let what = format!("run {} holds no depth curve", record.head.id);
        let hint = "`weir doctor` measures curves, and so does `weir bench` with O_DIRECT and random access, without a rate";
        Usage { what, hint: Some(hint.to_string()) }.into()
    })
}

/// The newest run with a curve of this device, one of several depths first. A store that cannot be read is as good as
/// an empty one.
fn newest(device: &Layer) -> Option<Known> {
    let store = Store::open().ok()?;
    let ids = store.ids().ok()?;
    let mut single = None;
    for id in ids.iter().rev() {
        let record =
            store.load(&store.path_of(id)).ok().filter(|record| saturation::is_about(&record.head, device));
        let Some(known) = record.as_ref().and_then(Record::curves) else { continue };
        if known.curves.iter().any(|curve| curve.points.len() > 1) {
            return Some(known);
        }
        single = single.or(Some(known));
    }
    single
}

#[cfg(feature = "trace")]
mod stages {
    //! Stages by programs in the kernel, where they are allowed.

    use weir_blocktrace::{Class, DeviceFrame, Row};
    use weir_core::target::{Layer, Load};
    use weir_kernel::live::{Detail, Options, StageSession};

    /// A session, or none.
    pub struct Stages(Option<StageSession>, Layer);

    impl Stages {
        /// Watches a device from now on.
        pub fn of(device: &Layer) -> Stages {
            // Without requests a device is seen by its bios alone.
            let detail = if device.has_requests() { Detail::Default } else { Detail::Full };
            let options = Options { devices: vec![device.number], detail, ..Options::default() };
            let session = StageSession::start(&options);
            if let Err(why) = &session {
                say!("weir: the counters only, no stages: {why}");
            }
            Stages(session.ok(), device.clone())
        }

        /// All I/O so far.
        pub fn row(&mut self, load: &Load) -> Option<Row> {
            let table = self.0.as_mut()?.snapshot().table;
            let frame = DeviceFrame::new(&self.1, Default::default(), Some(&table), load.elapsed_ns);
            frame.row(Class::All).cloned()
        }
    }
}

#[cfg(not(feature = "trace"))]
mod stages {
    //! Built without programs for the kernel: no stages.

    use weir_blocktrace::Row;
    use weir_core::target::{Layer, Load};

    /// Nothing.
    pub struct Stages;

    impl Stages {
        /// Nothing to watch with.
        pub fn of(_device: &Layer) -> Stages {
            Stages
        }

        /// Nothing was seen.
        pub fn row(&mut self, _load: &Load) -> Option<Row> {
            None
        }
    }
}
