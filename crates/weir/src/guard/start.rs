//! From settings to a control loop: devices, actuators, sockets, log; what cannot be had is said before anything is touched.

use weir_control::{Guard, Limits, Parameters};
use weir_fs::Output;
use weir_host::Host;
use weir_host::knob::{Actuator, BdiOf, Governor, Journal, KnobError, recover_stale};

use super::block_device::{self, BlockDevice};
use super::control_loop::{About, Cgroups, ControlLoop, Parts, Shares, TakeAlone};
use super::device::{GuardedDevice, Law};
use super::governing::{Governing, Shadow};
use super::group::{Group, Take};
use super::history::Chapter;
use super::listen::Doors;
use super::private::{Privates, take_pair};
use super::recorder::Recorder;
use super::reporter::Reporter;
use super::sampler::{Machine, Sampler};
use super::throttle::Throttles;
use super::writers::Writers;
use crate::change_journal::{failed, the_journal};
use crate::clock::rfc3339;
use crate::daemon::Board;
use crate::daemon::notify::Manager;
use crate::daemon::socket::Files;
use crate::failure::Lacking;
use crate::guard::settings::{ActuatorChoice, GuardSettings, May};
use crate::machine::{self, root_or};
use crate::session::{Ran, Session};
use crate::store::Store;

/// The least limit, however fast the device and however few its processors.
const FLOOR_BYTES: u64 = 1 << 20;
/// Each processor may dirty so much before the kernel looks: 16 pages of 4 KiB (mm/percpu_counter), in two counters.
const FLOOR_OF_PROCESSOR: u64 = 2 * 16 * 4096;

/// A cgroup may write at least this in a tenth of a second: a megabyte a second.
const FLOOR_OF_CGROUP: u64 = 100_000;

/// A control loop about to run.
pub struct Begun {
    /// It.
    pub control_loop: ControlLoop,
    /// Whether a service manager started it.
    pub is_service: bool,
    /// The files of its sockets, which go with this.
    _files: Files,
}

/// Takes everything over.
///
/// # Errors
/// When there is nothing to guard, a privilege is lacking, or another guard has one of the limits.
pub fn begin(settings: &GuardSettings, command: &[String]) -> anyhow::Result<Begun> {
    let host = machine::host();
    let (block_devices, not_followed) = block_device::find_all(&host, &settings.devices)?;
    let journal = the_journal();
    if !settings.shadow {
        root_or("turning limits", "--shadow only looks")?;
        recover_stale(&host, &journal).iter().for_each(|sentence| say!("weir: {sentence}"));
    }
    let doors = Doors::open(settings.metrics.as_ref())?;
    let log = settings.log.as_ref().map(|path| {
        let opened = Output::append(path, 0o644);
        opened.map_err(|error| Lacking {
            what: format!("cannot write the log {}: {error}", path.display()),
            hint: Some("name another file with --log".to_string()),
        })
    });
    let log = log.transpose()?;
    let has_log = log.is_some();
    let source = settings.sensor.source();
    let sampler =
        Machine::watch(&host, &block_devices, &settings.protect, source).map_err(|error| Lacking {
            what: format!("{error:#}"),
            hint: Some("--sensor auto takes the best there is".to_string()),
        })?;
    let groups = groups(&host, &journal, settings, &block_devices)?;
    let recorder = Recorder::start(log, begin_chapter(command, &block_devices))?;
    let mut reporter = Reporter::new(recorder, settings.format, has_log);
    groups.iter().for_each(|(_, remark)| reporter.remark(remark));
    not_followed.iter().for_each(|remark| reporter.remark(remark));
    sampler.remarks().iter().for_each(|remark| reporter.remark(remark));
    let about = About {
        since: rfc3339(),
        shadow: settings.shadow,
        parameters: Parameters { target: settings.target, ..Parameters::default() },
        protect: protected(settings),
    };
    let parameters = about.parameters.clone();
    let law = if settings.shadow { Guard::shadow } else { Guard::new };
    let make_law = move || -> Box<dyn Law> { Box::new(law(parameters.clone())) };
    let devices = block_devices
        .iter()
        .map(|block_device| GuardedDevice::new(&block_device.name, block_device.number, make_law()))
        .collect();
    let (board, manager) = (Board::default(), Manager::of_environment());
    let files = doors.serve(board.clone(), unix_seconds())?;
    let is_service = manager.is_there();
    let control_loop = ControlLoop::begin(Parts {
        about,
        devices,
        groups: groups.into_iter().map(|(group, _)| group).collect(),
        cgroups: settings
            .may
            .contains(&May::Cgroup)
            .then(|| cgroups(&host, &journal, settings, block_devices.len())),
        privates: settings.may_be_private().then(|| {
            let take = take_pair(&host, &journal, settings.shadow);
            let names: Vec<&str> = block_devices.iter().map(|device| device.name.as_str()).collect();
            Privates::new(&host, take, &settings.spare, settings.shadow, settings.target.keep, &names)
        }),
        shares: shares(&host, &journal, settings.shadow),
        writers: block_devices.iter().map(|_| Writers::new(&host)).collect(),
        sampler: Box::new(sampler),
        make_law: Box::new(make_law),
        reporter,
        history: settings.history,
        board,
        manager,
    });
    Ok(Begun { control_loop, is_service, _files: files })
}

fn unix_seconds() -> f64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0.0, |time| time.as_millis() as f64 / 1e3)
}

fn protected(settings: &GuardSettings) -> String {
    let names: Vec<String> = settings.protect.iter().map(ToString::to_string).collect();
    if names.is_empty() { "all".to_string() } else { names.join(", ") }
}

/// A record for the store, with the conditions of the moment.
fn begin_chapter(command: &[String], block_devices: &[BlockDevice]) -> super::recorder::Begin {
    let (command, place) =
        (command.to_vec(), block_devices.first().map(|block_device| block_device.asked.clone()));
    Box::new(move |history| {
        let place = place.clone().filter(|place| place.contains('/')).unwrap_or("/".to_string());
        let session = Session::begin("guard", &command, place.as_ref());
        let nothing = Ran::default();
        let record = session.record(nothing, &weir_io::runner::Stop::default());
        let chapter = Chapter::begin(Store::open()?, record, history)?;
        say!("weir: history: {}", chapter.path().display());
        Ok(chapter)
    })
}

/// Which actuator for which devices, each with a sentence about it.
fn groups(
    host: &Host,
    journal: &Journal,
    settings: &GuardSettings,
    block_devices: &[BlockDevice],
) -> anyhow::Result<Vec<(Group, String)>> {
    let mut actuators: Vec<(Actuator, Vec<usize>, String)> = Vec::new();
    for (at, block_device) in block_devices.iter().enumerate() {
        let (actuator, why) = match settings.actuator {
            ActuatorChoice::Vm => (Actuator::Dirty, "as asked for".to_string()),
            ActuatorChoice::Bdi => {
                let bdi = BdiOf::pages_on(host, &block_device.name, block_device.number);
                let bdi = bdi.map_err(|what| Lacking {
                    what,
                    hint: Some("--actuator vm turns the limit of the machine".to_string()),
                })?;
                (Actuator::Bdi(bdi), "as asked for".to_string())
            }
            ActuatorChoice::Auto => {
                let choice = Actuator::best(host, &block_device.name, block_device.number);
                (choice.actuator, choice.why)
            }
        };
        match actuators.iter_mut().find(|(known, _, _)| *known == actuator) {
            Some((_, devices, _)) => devices.push(at),
            None => actuators.push((actuator, vec![at], why)),
        }
    }
    let group = |(actuator, devices, why): (Actuator, Vec<usize>, String)| {
        let names: Vec<&str> = devices.iter().map(|at| block_devices[*at].name.as_str()).collect();
        let verb = if settings.shadow { "would turn" } else { "turns" };
        let remark = format!("{}: {verb} {actuator}, {why}", names.join(", "));
        let of_device = actuator != Actuator::Dirty;
        let take = take(host.clone(), journal.clone(), actuator.clone(), settings.shadow);
        let begun = Group::begin(actuator.to_string(), of_device, devices, settings.shadow, take);
        Ok((begun.map_err(failed)?, remark))
    };
    actuators.into_iter().map(group).collect()
}

/// How cgroups of bulk writers are throttled.
fn cgroups(host: &Host, journal: &Journal, settings: &GuardSettings, devices: usize) -> Cgroups {
    let choose = Box::new(Throttles::new(host, devices));
    Cgroups { choose, take: take_alone(host, journal, settings.shadow) }
}

/// How devices' own shares are found and taken.
fn shares(host: &Host, journal: &Journal, shadow: bool) -> Shares {
    let take = take_alone(host, journal, shadow);
    let host = host.clone();
    Shares {
        find: Box::new(move |name, number| BdiOf::pages_on(&host, name, number).map(Actuator::Bdi)),
        take,
    }
}

fn take_alone(host: &Host, journal: &Journal, shadow: bool) -> TakeAlone {
    let (host, journal) = (host.clone(), journal.clone());
    Box::new(move |actuator: Actuator, device: usize| {
        let take = take(host.clone(), journal.clone(), actuator.clone(), shadow);
        Group::begin(actuator.to_string(), true, vec![device], shadow, take)
    })
}

fn take(host: Host, journal: Journal, actuator: Actuator, shadow: bool) -> Take {
    Box::new(move || -> Result<Box<dyn Governing>, KnobError> {
        let floor_bytes = if matches!(actuator, Actuator::Cgroup(_)) { FLOOR_OF_CGROUP } else { floor() };
        if shadow {
            return Ok(Box::new(Shadow::of(shadow_limits(&host, &actuator, floor_bytes)?)));
        }
        Ok(Box::new(Governor::start(&journal, &host, &actuator, floor_bytes)?))
    })
}

/// What there is before anything is turned.
fn shadow_limits(host: &Host, actuator: &Actuator, floor_bytes: u64) -> Result<Limits, KnobError> {
    let saved_bytes = match actuator {
        // Where the kernel does not say, there is no room to turn anything in.
        Actuator::Dirty => host.vm_settings().dirty_threshold_bytes.unwrap_or(floor_bytes),
        Actuator::Bdi(_) | Actuator::Cgroup(_) | Actuator::Private { .. } => {
            Governor::baseline_bytes(host, actuator)?
        }
    };
    Ok(Limits { now_bytes: saved_bytes, saved_bytes, floor_bytes: floor_bytes.min(saved_bytes) })
}

fn floor() -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    FLOOR_BYTES.max(processors * FLOOR_OF_PROCESSOR)
}

#[cfg(test)]
mod tests {
    use weir_core::target::DeviceNumber;

    use super::*;
    use crate::guard::testing::Disks;

    /// Before Linux 6.2 there is no `strict_limit`.
    #[test]
    fn a_shadow_would_turn_no_share_that_the_kernel_does_not_have() {
        let disks = Disks::of(&["sda"]);
        let (host, number) = (disks.host(), DeviceNumber { major: 8, minor: 0 });
        let mut shares = shares(&host, &Journal::at(&disks.path("journal")), true);
        let mut take = || shares.take_over(0, "sda", number);
        for (file, text) in [("max_ratio_fine", "500000"), ("max_bytes", "0")] {
            disks.write(&format!("sys/class/bdi/8:0/{file}"), text);
        }
        disks.write("proc/vmstat", "nr_dirty_threshold 1000\n");
        let refused = take().map(|group| group.actuator).unwrap_err();
        assert!(refused.contains("strict_limit"), "{refused}");
        for (strict, share) in [("0", 1), ("1", 2)] {
            disks.write("sys/class/bdi/8:0/strict_limit", strict);
            let group = take().unwrap();
            assert_eq!(group.limits.saved_bytes, 1000 * 4096 / share, "strict_limit {strict}");
        }
    }
}
