//! Courses over a device, a limit and a law that do as the test says.

mod shares;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use weir_control::private::Hold;
use weir_control::{Action, Branch, Decision, DeviceFlow, Limits, Mood, Sensor, Syncs, Target};
use weir_core::target::DeviceNumber;
use weir_host::Host;
use weir_host::knob::{Actuator, KnobError, Move};

use super::super::exempt::Exempt;
use super::super::governing::{Governing, Shadow};
use super::super::group::Take;
use super::super::log::sentence;
use super::super::recorder::Recorder;
use super::super::throttle::{Choose, Switch};
use super::*;
use crate::guard::settings::Format;

const SAVED: u64 = 4_000_000_000;
const FLOOR: u64 = 4_000_000;
const LOOK_NS: u64 = 100_000_000;
const PROTECTED: u32 = 77;

/// A limit, and what becomes of it.
#[derive(Default)]
struct Knob {
    now: u64,
    /// What was done to it.
    done: Vec<String>,
    /// What the next beats say.
    beats: VecDeque<Move>,
    refuses: bool,
    /// The kernel refuses the next step of a way down.
    refuses_steps: usize,
    taken: usize,
}

struct TestGovernor(Rc<RefCell<Knob>>);

impl Governing for TestGovernor {
    fn limits(&mut self) -> Result<Limits, KnobError> {
        let now_bytes = self.0.borrow().now;
        Ok(Limits { now_bytes, saved_bytes: SAVED, floor_bytes: FLOOR })
    }

    fn set(&mut self, bytes: u64) -> Result<Move, KnobError> {
        let mut knob = self.0.borrow_mut();
        knob.done.push(format!("set {bytes}"));
        if knob.refuses {
            return Err(KnobError::NoGuardian(std::io::Error::from(std::io::ErrorKind::OutOfMemory)));
        }
        knob.now = bytes;
        Ok(Move::Written { bytes })
    }

    fn release(&mut self) -> Result<Move, KnobError> {
        let mut knob = self.0.borrow_mut();
        knob.done.push("release".to_string());
        knob.now = SAVED;
        Ok(Move::Written { bytes: SAVED })
    }

    fn beat(&mut self) -> Result<Move, KnobError> {
        let mut knob = self.0.borrow_mut();
        if knob.refuses_steps > 0 {
            knob.refuses_steps -= 1;
            let [setting, path, why] = ["x=1", "/x", "the kernel refuses the value"].map(String::from);
            return Err(KnobError::Refused { setting, path, why, hint: None });
        }
        let now = knob.now;
        Ok(knob.beats.pop_front().unwrap_or(Move::Written { bytes: now }))
    }

    fn stop(self: Box<Self>) -> Result<Vec<String>, KnobError> {
        self.0.borrow_mut().done.push("stop".to_string());
        Ok(Vec::new())
    }
}

/// What each device's law is to say next, and how often one was made.
#[derive(Default)]
struct Script {
    next: VecDeque<(Action, Branch)>,
    made: usize,
    changed: Vec<bool>,
    floods: bool,
    /// Whether a law was told so last that its disk is flooded, in the order of the devices.
    disturbed: VecDeque<bool>,
}

struct Scripted(Rc<RefCell<Script>>);

impl Law for Scripted {
    fn step(&mut self, sample: &Sample) -> Decision {
        let (action, branch) = self.0.borrow_mut().next.pop_front().unwrap_or((Action::Keep, Branch::Steady));
        let inputs = weir_control::Inputs { limit_bytes: sample.limits.now_bytes, ..Default::default() };
        let mood = if action == Action::Release { Mood::Released } else { Mood::Holding };
        Decision { at_ns: sample.at_ns, action, branch, inputs, mood }
    }

    fn change_actuator(&mut self, of_cgroup: bool) {
        self.0.borrow_mut().changed.push(of_cgroup);
    }

    fn floods_others(&self, _at_ns: u64) -> bool {
        self.0.borrow().floods
    }

    fn disturb(&mut self, is_disturbed: bool) {
        self.0.borrow_mut().disturbed.push_back(is_disturbed);
    }
}

/// What is said of cgroups next, and why they could not be turned.
#[derive(Clone, Default)]
struct Chosen {
    next: Rc<RefCell<Option<Switch>>>,
    refused: Rc<RefCell<Vec<String>>>,
}

impl Choose for Chosen {
    fn sample(
        &mut self,
        _at: usize,
        _seen: &mut Seen,
        _writers: &Writers,
        _limits: Limits,
        _time: Time,
        exempt: &dyn Fn() -> Exempt,
    ) -> Option<Switch> {
        assert_eq!(exempt().processes, [PROTECTED].into());
        self.next.borrow_mut().take()
    }

    fn is_back(&mut self, _at: usize) {}

    fn is_refused(&mut self, _at: usize, why: &str) {
        self.refused.borrow_mut().push(why.to_string());
    }

    fn why_not(&self, _at: usize) -> Option<&str> {
        None
    }
}

/// Which devices are there, the kernel's names of them, and whether other file systems of the first are mounted.
struct TestSampler(Rc<RefCell<Vec<bool>>>, Rc<RefCell<Vec<String>>>, Rc<Cell<bool>>);

impl Sampler for TestSampler {
    fn sample(&mut self, _now: Moment) -> Vec<Option<Seen>> {
        let seen = |minor: usize| Seen {
            number: DeviceNumber { major: 7, minor: minor as u32 },
            sensor: Sensor { source: SensorSource::Syscalls, silent_ns: 0, lost: 0 },
            syncs: Syncs::default(),
            bulk: Default::default(),
            flow: DeviceFlow { written_bytes: 1000, ..DeviceFlow::default() },
        };
        self.0.borrow().iter().enumerate().map(|(at, there)| there.then(|| seen(at))).collect()
    }

    fn name(&self, at: usize) -> String {
        self.1.borrow()[at].clone()
    }

    fn is_remounted(&mut self, at: usize) -> bool {
        at == 0 && self.2.take()
    }

    /// The first stands on the disk that is the second.
    fn neighbours(&self, at: usize) -> &[usize] {
        if at == 0 && self.1.borrow().len() > 1 { &[1] } else { &[] }
    }

    fn exempt(&self) -> Exempt {
        Exempt { processes: [PROTECTED].into(), are_not_all: false }
    }

    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A control loop over so many devices that share a limit, or have one alone.
struct Stage {
    control_loop: ControlLoop,
    knob: Rc<RefCell<Knob>>,
    /// The limit of a cgroup.
    throttle: Rc<RefCell<Knob>>,
    /// A device's share, where its limit is another one or that of another bdi.
    share: Rc<RefCell<Knob>>,
    /// Whose share that is, in words.
    bdi: Rc<RefCell<String>>,
    remounted: Rc<Cell<bool>>,
    chosen: Chosen,
    script: Rc<RefCell<Script>>,
    there: Rc<RefCell<Vec<bool>>>,
    names: Rc<RefCell<Vec<String>>>,
    now: Moment,
}

impl Stage {
    fn new(devices: usize, of_device: bool) -> Stage {
        let knob = Rc::new(RefCell::new(Knob { now: SAVED, ..Knob::default() }));
        let script = Rc::new(RefCell::new(Script::default()));
        let there = Rc::new(RefCell::new(vec![true; devices]));
        let (laws, actuators) = (script.clone(), knob.clone());
        let make_law = move || -> Box<dyn Law> {
            laws.borrow_mut().made += 1;
            Box::new(Scripted(laws.clone()))
        };
        let take = take(actuators);
        let throttle = Rc::new(RefCell::new(Knob { now: SAVED, ..Knob::default() }));
        let chosen = Chosen::default();
        let of_cgroup = throttle.clone();
        let share = Rc::new(RefCell::new(Knob { now: SAVED, ..Knob::default() }));
        let bdi = Rc::new(RefCell::new(if of_device { "knob" } else { "share" }.to_string()));
        let (find, is_refused, of_knob, of_share) = (bdi.clone(), share.clone(), knob.clone(), share.clone());
        let find_share = move |_: &str, _: DeviceNumber| match is_refused.borrow().refuses {
            true => Err("none here".to_string()),
            // In words it is the name alone.
            false => Ok(Actuator::Private {
                high: weir_knobs::KnobName::machine(&find.borrow()),
                pace: None,
                quota: None,
            }),
        };
        let take_share = move |actuator: Actuator, device: usize| {
            let knob = if actuator.to_string() == "knob" { &of_knob } else { &of_share };
            let take = super::tests::take(knob.clone());
            Group::begin(actuator.to_string(), true, vec![device], false, take)
        };
        let take_cgroup = move |actuator: Actuator, device: usize| {
            Group::begin(
                actuator.to_string(),
                true,
                vec![device],
                false,
                super::tests::take(of_cgroup.clone()),
            )
        };
        let guarded_writers =
            (0..devices).map(|_| Writers::new(&Host::at(std::path::Path::new("/nowhere")))).collect();
        let names: Vec<String> = (0..devices).map(|at| format!("loop{at}")).collect();
        let guarded =
            names.iter().map(|name| GuardedDevice::new(name, DeviceNumber::default(), make_law())).collect();
        let (names, remounted) = (Rc::new(RefCell::new(names)), Rc::new(Cell::new(false)));
        let all = (0..devices).collect();
        let group = Group::begin("knob".to_string(), of_device, all, false, take).unwrap();
        let recorder = Recorder::start(None, Box::new(|_| anyhow::bail!("no history here"))).unwrap();
        let control_loop = ControlLoop::begin(Parts {
            about: About {
                since: String::new(),
                shadow: false,
                parameters: Parameters {
                    target: Target::default(),
                    look_ns: LOOK_NS,
                    ..Parameters::default()
                },
                protect: "all".to_string(),
            },
            writers: guarded_writers,
            devices: guarded,
            groups: vec![group],
            cgroups: Some(Cgroups { choose: Box::new(chosen.clone()), take: Box::new(take_cgroup) }),
            privates: None,
            shares: Shares { find: Box::new(find_share), take: Box::new(take_share) },
            sampler: Box::new(TestSampler(there.clone(), names.clone(), remounted.clone())),
            make_law: Box::new(make_law),
            reporter: Reporter::new(recorder, Format::Text, false),
            history: false,
            board: Board::default(),
            manager: Manager::of_environment(),
        });
        let now = control_loop.last;
        Stage { control_loop, knob, throttle, share, bdi, remounted, chosen, script, there, names, now }
    }

    /// One sample, a tenth of a second later, at which the laws say this in turn.
    fn sample(&mut self, says: &[(Action, Branch)]) {
        self.script.borrow_mut().next = says.iter().copied().collect();
        self.now.awake_ns += LOOK_NS;
        self.now.boot_ns += LOOK_NS;
        self.control_loop.sample(self.now);
    }

    fn done(&self) -> Vec<String> {
        std::mem::take(&mut self.knob.borrow_mut().done)
    }

    /// What was told since the last call, without its times.
    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.control_loop.decisions).iter().map(sentence).collect()
    }
}

/// Takes this limit over.
fn take(knob: Rc<RefCell<Knob>>) -> Take {
    Box::new(move || -> Result<Box<dyn Governing>, KnobError> {
        knob.borrow_mut().taken += 1;
        Ok(Box::new(TestGovernor(knob.clone())))
    })
}

const KEEP: (Action, Branch) = (Action::Keep, Branch::Steady);

fn set(bytes: u64) -> (Action, Branch) {
    (Action::Set { bytes }, Branch::Tail)
}

#[test]
fn a_share_is_counted_strictly_while_cgroups_are_held() {
    let mut stage = Stage::new(1, false);
    let hold = |stage: &mut Stage, holds: bool| {
        stage.now.awake_ns += LOOK_NS;
        stage.control_loop.lead_exact(0, holds, stage.now.awake_ns, 0);
        let done = std::mem::take(&mut stage.share.borrow_mut().done);
        (done, stage.told())
    };
    let whole = format!("set {}", u64::MAX);
    assert_eq!(hold(&mut stage, false), (vec![], vec![]));
    let (done, told) = hold(&mut stage, true);
    assert_eq!(
        (done, told),
        (vec![whole.clone()], vec!["loop0: turns share: the bounds of cgroups hold with it".into()])
    );
    assert_eq!(hold(&mut stage, true), (vec![], vec![]));
    assert_eq!(hold(&mut stage, false), (vec!["stop".to_string()], vec![]));
    // One that somebody else turns is left to them until the next time.
    hold(&mut stage, true);
    stage.share.borrow_mut().beats.push_back(Move::StoodDown { said: "it is 0 now".to_string() });
    assert_eq!(hold(&mut stage, true).1, ["loop0: share is left alone: it is 0 now"]);
    assert_eq!(hold(&mut stage, true), (vec![], vec![]));
    hold(&mut stage, false);
    // One that goes is taken again as another.
    hold(&mut stage, true);
    let taken = stage.share.borrow().taken;
    stage.share.borrow_mut().beats.push_back(Move::Gone { said: String::new() });
    hold(&mut stage, true);
    hold(&mut stage, true);
    assert_eq!(stage.share.borrow().taken, taken + 1);
    hold(&mut stage, false);
    // Where it is not to be had, that is said once.
    stage.share.borrow_mut().refuses = true;
    let (_, told) = hold(&mut stage, true);
    assert_eq!(told, ["loop0: cgroups may have more dirty than they are held to: none here"]);
    assert_eq!(hold(&mut stage, true).1, Vec::<String>::new());
    hold(&mut stage, false);
    stage.share.borrow_mut().refuses = false;
    hold(&mut stage, true);
    let (_, failed) = stage.control_loop.end();
    assert_eq!((failed.len(), stage.share.borrow().done.last().unwrap().as_str()), (0, "stop"));
}

#[test]
fn a_share_that_is_the_limit_itself_is_whole_while_cgroups_are_held() {
    let mut stage = Stage::new(1, true);
    stage.control_loop.lead_exact(0, true, stage.now.awake_ns, 0);
    stage.sample(&[KEEP]);
    assert_eq!(stage.done(), [format!("set {}", u64::MAX)]);
    stage.sample(&[set(20)]);
    assert_eq!(stage.done(), ["set 20"], "what its law asks for comes first");
    stage.sample(&[(Action::Release, Branch::Idle)]);
    assert_eq!(stage.done(), [format!("set {}", u64::MAX)]);
    stage.control_loop.lead_exact(0, false, stage.now.awake_ns, 0);
    stage.sample(&[KEEP]);
    assert_eq!((stage.done(), stage.share.borrow().taken), (vec!["release".to_string()], 0));
}

#[test]
fn a_whole_share_is_never_asked_of_a_cgroup() {
    let mut stage = Stage::new(1, true);
    let knob = "cgroup:/backup/io.max/7:0/wbps".parse().unwrap();
    let turned = Switch::Cgroup { actuator: Actuator::Cgroup(knob), why: "dd is past it".to_string() };
    *stage.chosen.next.borrow_mut() = Some(turned);
    stage.sample(&[set(9)]);
    stage.done();
    stage.control_loop.lead_exact(0, true, stage.now.awake_ns, 0);
    stage.sample(&[(Action::Release, Branch::Idle)]);
    let of_cgroup = stage.throttle.borrow().done.clone();
    assert_eq!(
        (stage.done(), of_cgroup),
        (vec![format!("set {}", u64::MAX)], vec!["set 9".into(), "release".into()])
    );
    // What becomes of it there is told, though another limit is turned.
    stage.told();
    stage.knob.borrow_mut().beats.push_back(Move::Gone { said: String::new() });
    stage.sample(&[KEEP]);
    assert_eq!(stage.told(), ["loop0: turns knob again: the device is gone", "loop0: the device is gone"]);
    assert_eq!(stage.throttle.borrow().done.last().cloned(), Some("stop".into()));
}

#[test]
fn the_least_wish_is_set_and_the_last_to_let_go_releases() {
    let mut stage = Stage::new(2, false);
    stage.sample(&[KEEP, KEEP]);
    assert!(stage.done().is_empty() && stage.told().is_empty());
    for (says, done) in [
        ([set(20), KEEP], &["set 20"][..]),
        ([KEEP, set(30)], &[]),
        ([set(40), KEEP], &["set 30"]),
        ([KEEP, KEEP], &[]),
        ([KEEP, (Action::Release, Branch::Idle)], &["set 40"]),
        ([(Action::Release, Branch::Idle), KEEP], &["release"]),
    ] {
        stage.sample(&says);
        assert_eq!(stage.done(), done, "{says:?}");
    }
    let (state, failed) = stage.control_loop.end();
    assert_eq!((failed.len(), stage.knob.borrow().done.as_slice()), (0, &["stop".to_string()][..]));
    let counts = |device: usize| -> u64 {
        let totals = &state.devices[device].totals;
        totals.cuts.iter().chain(&totals.raises).map(|count| count.times).sum()
    };
    // Each is counted with the device for which it was done.
    assert_eq!((counts(0), counts(1)), (3, 1));
}

/// The law decided neither, and raised nothing.
#[test]
fn a_limit_that_private_ones_take_the_place_of_is_told_once_and_not_counted() {
    let mut stage = Stage::new(1, false);
    stage.sample(&[set(20)]);
    stage.done();
    stage.told();
    let by = Hold { covers: true, ..Hold::default() };
    for told in [vec!["loop0: lets go of knob: the cgroups of bulk writers are held"], vec![]] {
        stage.control_loop.set_aside(0, by, 0);
        stage.sample(&[set(10)]);
        assert_eq!(stage.told(), told);
    }
    assert_eq!(stage.done(), ["release"]);
    let counts = |stage: &mut Stage| {
        let totals = stage.control_loop.state(stage.now, 0).devices[0].totals.clone();
        (totals.cuts.len(), totals.raises.len())
    };
    assert_eq!(counts(&mut stage), (1, 0));
    stage.control_loop.set_aside(0, Hold::default(), 0);
    stage.sample(&[set(10)]);
    assert_eq!((stage.done(), stage.told().len()), (vec!["set 10".to_string()], 1));
}

#[test]
fn somebody_elses_limit_is_left_alone_until_told_otherwise() {
    let mut stage = Stage::new(1, false);
    stage.sample(&[set(20)]);
    stage.told();
    stage.knob.borrow_mut().beats.push_back(Move::StoodDown { said: "it is 9 now".to_string() });
    stage.sample(&[KEEP]);
    assert_eq!(stage.told(), ["loop0: yielded: it is 9 now"]);
    stage.done();
    for _ in 0..20 {
        stage.sample(&[set(10)]);
    }
    assert!(stage.done().is_empty(), "a limit that is not the guard's was turned");
    let state = stage.control_loop.state(stage.now, 0);
    assert!(matches!(&state.devices[0].standing, Standing::StoodDown { why } if why == "it is 9 now"));
    assert_eq!(state.devices[0].totals.stood_down, 1);
    // It still measures.
    assert_eq!(state.devices[0].second.written_bytes, 10_000);
    stage.control_loop.rearm(0);
    stage.sample(&[set(10)]);
    assert_eq!((stage.done(), stage.knob.borrow().taken), (vec!["set 10".to_string()], 2));
}

#[test]
fn a_device_that_comes_back_is_guarded_anew() {
    let mut stage = Stage::new(1, true);
    stage.sample(&[set(20)]);
    let made = stage.script.borrow().made;
    stage.told();
    stage.there.borrow_mut()[0] = false;
    for _ in 0..15 {
        stage.sample(&[set(10)]);
    }
    assert_eq!(stage.told(), ["loop0: the device is gone"]);
    assert_eq!(stage.control_loop.state(stage.now, 0).devices[0].standing, Standing::Gone);
    stage.done();
    stage.there.borrow_mut()[0] = true;
    for _ in 0..10 {
        stage.sample(&[KEEP]);
    }
    assert_eq!(stage.told(), ["loop0: the device is back"]);
    assert_eq!((stage.script.borrow().made, stage.knob.borrow().taken), (made + 1, 2));
    // What was asked for before it went is not asked for now.
    assert!(stage.done().is_empty());
    stage.sample(&[set(10)]);
    assert_eq!(stage.done(), ["set 10"]);
}

#[test]
fn a_flood_on_the_same_disk_disturbs_and_is_told_once() {
    let mut stage = Stage::new(2, false);
    for (floods, disturbed, tells) in
        [(false, [false, false], false), (true, [true, false], true), (true, [true, false], false)]
    {
        stage.script.borrow_mut().floods = floods;
        stage.script.borrow_mut().disturbed.clear();
        stage.sample(&[KEEP, KEEP]);
        assert_eq!(stage.script.borrow().disturbed, disturbed);
        let said = "loop0: it stands on the same disk as loop1, which somebody floods";
        assert_eq!(stage.told(), if tells { vec![said] } else { vec![] });
    }
}

/// A report finds a device's decisions by its name in the record.
#[test]
fn a_record_has_one_name_of_a_device_until_the_next_begins() {
    let mut stage = Stage::new(1, false);
    stage.control_loop.pages = Some(Pages::new(1));
    let mut history = stage.control_loop.history();
    (stage.there.borrow_mut()[0], stage.names.borrow_mut()[0]) = (false, "loop7".to_string());
    stage.sample(&[KEEP]);
    stage.there.borrow_mut()[0] = true;
    (0..10).for_each(|_| stage.sample(&[KEEP]));
    stage.sample(&[set(10)]);
    let told = stage.told();
    assert!(told[3].starts_with("loop7: "), "{told:?}");
    let lines = stage.control_loop.pages.as_mut().unwrap().take(0);
    assert!(history.take_in(std::str::from_utf8(&lines).unwrap()));
    let name = history.devices[0].name.clone();
    let found: Vec<&str> = history.decisions.iter().map(|noted| noted.device.as_str()).collect();
    assert_eq!((found, name.as_str()), (vec!["loop0"; told.len()], "loop0"));
    stage.now.boot_ns += 25 * 3_600_000_000_000;
    (0..11).for_each(|_| stage.sample(&[KEEP]));
    assert_eq!(stage.control_loop.history().devices[0].name, "loop7");
}

#[test]
fn a_device_that_was_swapped_is_another_one() {
    let mut stage = Stage::new(1, true);
    stage.sample(&[set(20)]);
    stage.told();
    stage.knob.borrow_mut().beats.push_back(Move::Gone { said: String::new() });
    stage.sample(&[KEEP]);
    assert_eq!(stage.told(), ["loop0: the device is gone"]);
    for _ in 0..10 {
        stage.sample(&[KEEP]);
    }
    assert_eq!((stage.told(), stage.knob.borrow().taken), (vec!["loop0: the device is back".to_string()], 2));
}

/// What is turned for a device.
fn actuator(stage: &mut Stage, device: usize) -> String {
    stage.control_loop.state(stage.now, 0).devices[device].actuator.clone()
}

#[test]
fn a_cgroups_limit_takes_the_place_of_the_devices_and_gives_it_back() {
    let mut stage = Stage::new(2, false);
    stage.sample(&[set(20), set(30)]);
    assert_eq!(stage.done(), ["set 20"]);
    stage.told();
    let knob: weir_knobs::KnobName = "cgroup:/backup/io.max/7:0/wbps".parse().unwrap();
    let of_cgroup =
        || Switch::Cgroup { actuator: Actuator::Cgroup(knob.clone()), why: "dd is past it".to_string() };
    *stage.chosen.next.borrow_mut() = Some(of_cgroup());
    // The other device's limit is what is left of the shared one.
    stage.sample(&[KEEP, set(9)]);
    assert_eq!(
        (stage.done(), stage.throttle.borrow().done.clone()),
        (vec!["set 30".into()], vec!["set 9".into()])
    );
    let turns = "loop0: turns cgroup:/backup/io.max/7:0/wbps (in a tenth of a second): dd is past it";
    assert!(stage.told().contains(&turns.to_string()));
    assert_eq!(actuator(&mut stage, 0), "cgroup:/backup/io.max/7:0/wbps (in a tenth of a second)");
    assert_eq!(
        (actuator(&mut stage, 1), stage.script.borrow().changed.clone()),
        ("knob".to_string(), vec![true])
    );
    *stage.chosen.next.borrow_mut() = Some(Switch::Back { why: "it ended".to_string() });
    stage.sample(&[KEEP, set(5)]);
    assert_eq!(
        (stage.done(), stage.throttle.borrow().done.last().cloned()),
        (vec!["set 5".into()], Some("stop".into()))
    );
    assert!(stage.told().contains(&"loop0: turns knob again: it ended".to_string()));
    assert_eq!(
        (actuator(&mut stage, 0), stage.script.borrow().changed.clone()),
        ("knob".to_string(), vec![true, false])
    );
    // It goes while it is turned: the device has not.
    *stage.chosen.next.borrow_mut() = Some(of_cgroup());
    stage.sample(&[KEEP, set(9)]);
    stage.told();
    stage.throttle.borrow_mut().beats.push_back(Move::Gone { said: String::new() });
    stage.sample(&[KEEP, KEEP]);
    assert_eq!(stage.told(), ["loop0: turns knob again: the cgroup is gone"]);
    assert_eq!((actuator(&mut stage, 0), stage.throttle.borrow().taken), ("knob".to_string(), 2));
    // The device goes while a cgroup's limit is in use.
    *stage.chosen.next.borrow_mut() = Some(of_cgroup());
    stage.sample(&[KEEP, KEEP]);
    stage.told();
    stage.there.borrow_mut()[0] = false;
    stage.sample(&[KEEP]);
    assert_eq!(stage.told(), ["loop0: turns knob again: the device is gone", "loop0: the device is gone"]);
    assert_eq!(stage.throttle.borrow().done.last().cloned(), Some("stop".into()));
}

#[test]
fn a_second_says_whether_its_limit_is_a_cgroups() {
    let mut stage = Stage::new(1, false);
    let knob = "cgroup:/backup/io.max/7:0/wbps".parse().unwrap();
    let to_cgroup = Switch::Cgroup { actuator: Actuator::Cgroup(knob), why: "dd is past it".to_string() };
    for (switch, of_cgroup) in [(to_cgroup, true), (Switch::Back { why: "it ended".to_string() }, false)] {
        *stage.chosen.next.borrow_mut() = Some(switch);
        (0..10).for_each(|_| stage.sample(&[set(9)]));
        let second = stage.control_loop.state(stage.now, 0).devices[0].second;
        assert_eq!((second.of_cgroup, second.limit_bytes), (of_cgroup, 9));
        assert_eq!(stage.control_loop.history().devices[0].actuator, "knob");
    }
}

/// The owner of a cgroup may turn its limit, and flood the device through the page cache after that.
#[test]
fn a_cgroups_limit_in_other_hands_gives_the_devices_back() {
    let mut stage = Stage::new(1, false);
    let knob = "cgroup:/user/io.max/7:0/wbps".parse().unwrap();
    *stage.chosen.next.borrow_mut() =
        Some(Switch::Cgroup { actuator: Actuator::Cgroup(knob), why: "dd is past it".to_string() });
    stage.sample(&[set(9)]);
    stage.told();
    stage.throttle.borrow_mut().beats.push_back(Move::StoodDown { said: "it is max now".to_string() });
    stage.sample(&[KEEP]);
    let told = stage.told();
    assert_eq!(told[0], "loop0: yielded: it is max now");
    assert_eq!(told[1], "loop0: turns knob again: another program changed the cgroup's limit");
    assert_eq!(actuator(&mut stage, 0), "knob");
    assert_eq!(stage.chosen.refused.borrow().as_slice(), ["another program changed the cgroup's limit"]);
    stage.done();
    stage.sample(&[set(8)]);
    assert_eq!(stage.done(), ["set 8"]);
}

#[test]
fn sleep_makes_windows_begin_anew() {
    let mut stage = Stage::new(2, false);
    stage.sample(&[set(20), KEEP]);
    stage.told();
    let made = stage.script.borrow().made;
    stage.now.boot_ns += 3_600_000_000_000;
    stage.sample(&[set(10), KEEP]);
    assert_eq!(stage.told(), ["the machine slept for 60.0 min"]);
    assert_eq!(stage.script.borrow().made, made + 2);
    // The first look after it counts for nothing; what follows does.
    stage.done();
    stage.sample(&[set(10), KEEP]);
    assert_eq!(stage.done(), ["set 10"]);
}

/// A cgroup's limit is in other units than one of dirty pages.
#[test]
fn after_sleep_a_law_knows_whose_limit_is_turned() {
    let mut stage = Stage::new(1, false);
    let knob = "cgroup:/backup/io.max/7:0/wbps".parse().unwrap();
    let to_cgroup = Switch::Cgroup { actuator: Actuator::Cgroup(knob), why: "dd is past it".to_string() };
    for (switch, of_cgroup) in [(to_cgroup, true), (Switch::Back { why: "it ended".to_string() }, false)] {
        *stage.chosen.next.borrow_mut() = Some(switch);
        stage.sample(&[KEEP]);
        let made = stage.script.borrow().made;
        stage.script.borrow_mut().changed.clear();
        stage.now.boot_ns += 3_600_000_000_000;
        stage.sample(&[KEEP]);
        assert_eq!(
            (stage.script.borrow().made, &stage.script.borrow().changed[..]),
            (made + 1, &[of_cgroup][..])
        );
    }
}

#[test]
fn a_limit_that_is_refused_is_tried_again_ever_less_often() {
    let mut stage = Stage::new(1, false);
    stage.knob.borrow_mut().refuses = true;
    stage.sample(&[set(20)]);
    assert!(stage.told()[0].contains("the kernel refused"));
    for _ in 0..600 {
        stage.sample(&[KEEP]);
    }
    // After 1, 2, 4, 8, 16 and 32 seconds, of which the last is not over.
    assert_eq!(stage.done().len(), 6);
    stage.knob.borrow_mut().refuses = false;
    for _ in 0..320 {
        stage.sample(&[KEEP]);
    }
    assert_eq!(stage.done(), ["set 20"]);
    assert_eq!(stage.control_loop.state(stage.now, 0).devices[0].totals.refused, 6);
}

/// As a share below what the device is promised. The baseline is in force then, whatever was asked for.
#[test]
fn a_step_that_is_refused_is_no_other_programs_change() {
    let mut stage = Stage::new(1, false);
    stage.sample(&[set(20)]);
    stage.told();
    stage.done();
    for seconds in [1, 2] {
        stage.knob.borrow_mut().refuses_steps = 1;
        stage.sample(&[KEEP]);
        assert!(stage.told().join("; ").contains("the kernel refused: x=1: /x"), "{seconds}");
        (0..10 * seconds - 1).for_each(|_| stage.sample(&[KEEP]));
        assert!(stage.done().is_empty(), "{seconds}");
        stage.sample(&[KEEP]);
        assert_eq!(stage.done(), ["set 20"], "the same wish again, after {seconds} s");
    }
    let state = stage.control_loop.state(stage.now, 0);
    assert_eq!((state.devices[0].standing.clone(), state.devices[0].totals.refused), (Standing::Guarding, 2));
    // What was refused long ago counts no more.
    (0..100).for_each(|_| stage.sample(&[KEEP]));
    stage.knob.borrow_mut().refuses_steps = 1;
    (0..11).for_each(|_| stage.sample(&[KEEP]));
    assert_eq!(stage.done(), ["set 20"]);
    // The baseline, written by others, is their wish.
    stage.knob.borrow_mut().beats.push_back(Move::Reset { said: String::new() });
    stage.sample(&[KEEP]);
    assert!(stage.told().contains(&"loop0: yielded: another program wrote the baseline".to_string()));
}

#[test]
fn an_error_that_lasts_is_told_once_in_each_wait() {
    let mut stage = Stage::new(1, false);
    stage.sample(&[set(20)]);
    stage.done();
    stage.knob.borrow_mut().refuses_steps = 8;
    (0..10).for_each(|_| stage.sample(&[KEEP]));
    assert_eq!(stage.control_loop.state(stage.now, 0).devices[0].totals.refused, 1);
    (0..2).for_each(|_| stage.sample(&[KEEP]));
    assert_eq!(stage.done(), ["set 20"], "after a second, not after a minute");
}

#[test]
fn a_whole_share_is_no_decision() {
    let mut stage = Stage::new(1, true);
    for holds in [true, false] {
        stage.control_loop.lead_exact(0, holds, stage.now.awake_ns, 0);
        stage.sample(&[KEEP]);
        assert!(stage.told().is_empty(), "{holds}");
    }
    assert_eq!(stage.done(), [format!("set {}", u64::MAX), "release".to_string()]);
    let totals = stage.control_loop.state(stage.now, 0).devices[0].totals.clone();
    assert!(totals.cuts.is_empty() && totals.raises.is_empty(), "{totals:?}");
}

#[test]
fn a_shadow_turns_nothing_and_shows_the_limit_in_force() {
    let mut shadow = Shadow::of(Limits { now_bytes: 7, saved_bytes: SAVED, floor_bytes: FLOOR });
    assert_eq!(shadow.limits().unwrap().now_bytes, SAVED);
    for (asked, would_be) in [(1, FLOOR), (8_000_000, 8_000_000), (u64::MAX, SAVED)] {
        assert_eq!(shadow.set(asked).unwrap(), Move::Written { bytes: would_be });
        assert_eq!(shadow.limits().unwrap().now_bytes, SAVED);
    }
    shadow.release().unwrap();
    assert_eq!(shadow.limits().unwrap().now_bytes, SAVED);
}
