//! Whole verdicts on made-up devices, and what every verdict must keep.

use super::doctor::{DoctorReport, Grade, PhaseKind, Statement, Topic};
use super::from_record;
use super::notes::{Bar, BarRule, StepKind, SyncPath};
use super::synthetic::{Behaviour, Lab, throttled_and_flooded};
use weir_core::result::record::Class;
use weir_core::target::{Layer, LayerKind};
use weir_core::units::Nanos;

fn report(lab: Lab) -> DoctorReport {
    from_record(&lab.record(Vec::new())).unwrap()
}

fn finding(report: &DoctorReport, topic: Topic) -> &super::doctor::Finding {
    report.findings.iter().find(|f| f.topic == topic).unwrap_or_else(|| panic!("no finding on {topic:?}"))
}

/// A fast disk: commits in 60 µs side by side, a flood that takes a tenth.
fn healthy() -> Lab {
    let mut lab = Lab::new();
    lab.limits();
    let rates = [(1, 11_000.0), (4, 44_000.0), (16, 160_000.0), (64, 400_000.0), (128, 410_000.0)];
    lab.curve(StepKind::ReadDepth, &rates);
    let fast = Behaviour { iops: 15_000.0, usual_ns: 60_000, slow_ns: 900_000 };
    lab.commits(SyncPath::Buffered, 1, &fast);
    lab.commits(SyncPath::Direct, 1, &Behaviour { iops: 15_050.0, ..fast });
    lab.commits(SyncPath::Buffered, 10, &Behaviour { iops: 90_000.0, usual_ns: 110_000, slow_ns: 900_000 });
    lab.phase(PhaseKind::Idle, 10, None, &Behaviour { iops: 90_000.0, usual_ns: 110_000, slow_ns: 900_000 });
    lab.phase(
        PhaseKind::Flood,
        10,
        None,
        &Behaviour { iops: 80_000.0, usual_ns: 125_000, slow_ns: 2_000_000 },
    );
    lab
}

#[test]
fn the_collapse_and_the_rescue_are_told_with_figures() {
    let report = report(throttled_and_flooded());
    assert_eq!(report.headline.grade, Grade::Poor);
    assert!(finding(&report, Topic::Class).summary.contains("throttled to 1,500 write IOPS"));
    assert!(finding(&report, Topic::Utilization).summary.contains("misleads"));
    let flood = finding(&report, Topic::Flood);
    assert_eq!(flood.grade, Some(Grade::Poor));
    let text = &flood.statements[0].text;
    assert!(text.contains("from 758") && text.contains("33.8") && text.contains("22× fewer"), "{text}");
    let advice = &report.advice[0];
    assert!(advice.measured && advice.effect.text.contains("703") && advice.effect.text.contains("93 %"));
    assert_eq!(advice.command, "sysctl -w vm.dirty_bytes=15000000");
    assert_eq!(advice.undo, "sysctl -w vm.dirty_ratio=20");
    assert!(
        advice.cost.text.contains("200 MB/s") && advice.cost.text.contains("180 MB/s"),
        "{}",
        advice.cost.text
    );
}

/// A limit of bytes is a limit, and reads are judged without a curve of writes.
#[test]
fn a_cgroups_limit_is_named_whatever_it_counts() {
    use StepKind::{ReadDepth, WriteDepth};
    for (key, limit, kind, summary, says) in [
        ("wbps", 50_000_000, WriteDepth, "throttled to 50.0 MB/s of writes", "this is the limit"),
        ("rbps", 50_000_000, ReadDepth, "throttled to 50.0 MB/s of reads", "this is the limit"),
        ("wiops", 12_000, WriteDepth, "throttled to 12,000 write IOPS", "this is the limit"),
        ("riops", 12_000, ReadDepth, "throttled to 12,000 read IOPS", "this is the limit"),
        (
            "wbps",
            900_000_000,
            WriteDepth,
            "that seems limited to 12,200 write IOPS",
            "no cgroup's limit is near",
        ),
        (
            "wbps",
            50_000_000,
            ReadDepth,
            "that seems limited to 12,200 read IOPS",
            "no cgroup's limit is near",
        ),
    ] {
        let mut lab = Lab::new();
        lab.throttle(key, limit);
        lab.curve(kind, &[(1, 12_200.0), (4, 12_200.0), (16, 12_200.0)]);
        let report = report(lab);
        let found = finding(&report, Topic::Class);
        assert_eq!(found.summary, format!("a volume {summary}"), "{key} {limit}");
        assert!(found.statements[0].text.contains(says), "{}", found.statements[0].text);
    }
    let mut lab = Lab::new();
    lab.curve(WriteDepth, &[(1, 12_200.0), (4, 12_200.0), (16, 12_200.0)]);
    let report = report(lab);
    let text = &finding(&report, Topic::Class).statements[0].text;
    assert!(text.contains("no limit can be read here"), "{text}");
}

#[test]
fn a_flood_that_was_ended_for_a_stuck_commit_gives_a_lower_bound() {
    let mut lab = throttled_and_flooded();
    let phases = lab.notes.flood.phases.iter_mut();
    phases.filter(|phase| phase.kind == PhaseKind::Flood).for_each(|phase| phase.cut_short = true);
    let report = report(lab);
    let texts: Vec<&str> =
        finding(&report, Topic::Flood).statements.iter().map(|s| s.text.as_str()).collect();
    let bounds: Vec<bool> = texts.iter().map(|text| text.contains("the longest took at least ")).collect();
    assert!(bounds[0] && bounds.iter().filter(|bound| **bound).count() == 1, "{texts:?}");
    assert!(report.flood.is_some_and(|story| story.effects[0].flood.cut_short));
}

#[test]
fn a_healthy_disk_needs_no_change() {
    let report = report(healthy());
    assert_eq!(report.headline.grade, Grade::Good);
    assert!(report.headline.text.contains("NVMe") && report.headline.text.contains("Nothing to change"));
    assert!(report.advice.is_empty(), "{:?}", report.advice);
    assert!(finding(&report, Topic::GroupCommit).summary.starts_with("6.0×"));
    assert!(finding(&report, Topic::SyncPath).summary.contains("no way beats"));
    assert_eq!((report.curves[0].knee_depth, report.curves[0].saturated), (64, true));
}

/// PostgreSQL's open_datasync and MySQL's innodb_flush_method = O_DIRECT write a log through the page cache.
#[test]
fn a_faster_way_past_the_page_cache_is_advised_where_a_server_has_it() {
    let behaviour = |iops: f64| Behaviour { iops, usual_ns: 1_300_000, slow_ns: 2_600_000 };
    for (direct, dsync, set) in [
        (700.0, 1_100.0, "SET GLOBAL innodb_log_file_write_through = ON"),
        (1_100.0, 700.0, "SET GLOBAL innodb_log_file_buffering = OFF"),
    ] {
        let mut lab = Lab::new();
        lab.commits(SyncPath::Buffered, 1, &behaviour(700.0));
        lab.commits(SyncPath::Direct, 1, &behaviour(direct));
        lab.commits(SyncPath::DirectDsync, 1, &behaviour(dsync));
        let advice = report(lab).advice;
        let [advice] = advice.as_slice() else { panic!("{advice:?}") };
        assert!(advice.command.starts_with(set) && advice.knob.contains("MariaDB"), "{advice:?}");
        for wrong in ["wal_sync_method", "innodb_flush_method"] {
            assert!(!format!("{advice:?}").contains(wrong), "{advice:?}");
        }
        assert!(advice.cost.text.contains("`weir doctor --for postgres /srv/db`"), "{advice:?}");
    }
}

#[test]
fn a_flood_that_did_not_press_proves_nothing() {
    let mut lab = healthy();
    lab.notes.flood.background_limit = weir_core::units::Bytes(64 << 30);
    let bar = Bar { text: "flood=50%".into(), rule: BarRule::FloodPercent(50.0) };
    let report = from_record(&lab.record(vec![bar])).unwrap();
    assert_eq!(finding(&report, Topic::Flood).grade, Some(Grade::Unknown));
    assert!(report.headline.text.contains("caused no collapse"), "{}", report.headline.text);
    assert_eq!(report.bars[0].met, None);
    let text = &report.bars[0].statement.text;
    assert_eq!(text, "flood=50% could not be judged: nothing follows from this bulk writer.");
}

/// What is graded is not called too little to judge by in the same finding.
#[test]
fn a_flood_is_graded_or_too_little_to_judge_by() {
    for (lab, grade, too_little) in
        [(throttled_and_flooded(), Grade::Poor, false), (healthy(), Grade::Unknown, true)]
    {
        let mut lab = lab;
        lab.notes.flood.background_limit = weir_core::units::Bytes(64 << 30);
        let report = report(lab);
        assert!(report.flood.as_ref().is_some_and(|story| !story.provoked));
        let found = finding(&report, Topic::Flood);
        let said = found.statements.iter().any(|s| s.text.contains("too little to judge by"));
        assert_eq!((found.grade, said), (Some(grade), too_little), "{:?}", found.statements);
    }
}

/// A rate a little above the idle one is chance, and nobody is left with more than all.
#[test]
fn a_flood_leaves_no_more_than_all() {
    let mut lab = Lab::new();
    lab.limits();
    for (kind, iops) in [(PhaseKind::Idle, 9_000.0), (PhaseKind::Flood, 10_000.0)] {
        lab.phase(kind, 10, None, &Behaviour { iops, usual_ns: 110_000, slow_ns: 900_000 });
    }
    let bar = Bar { text: "flood=50%".into(), rule: BarRule::FloodPercent(50.0) };
    let report = from_record(&lab.record(vec![bar])).unwrap();
    let flood = finding(&report, Topic::Flood);
    assert_eq!(flood.grade, Some(Grade::Good));
    assert_eq!(flood.summary, "a bulk writer leaves 100 % of 10 threads' commits");
    assert!(flood.statements.iter().any(|said| said.text.starts_with("100 % of the commits remain, ")));
    assert_eq!(report.bars[0].statement.text, "flood=50% is met: 100 % kept.");
}

#[test]
fn without_a_rescue_the_experiment_is_advised_unless_the_limit_is_low() {
    for (name, value, current) in [
        ("vm.dirty_ratio", 20, Some("vm.dirty_ratio = 20 (4 GiB now)")),
        ("vm.dirty_bytes", 15_000_001, Some("15 MB")),
        ("vm.dirty_bytes", 15_000_000, None),
        ("vm.dirty_bytes", 8_000_000, None),
    ] {
        let mut lab = throttled_and_flooded();
        lab.notes.flood.limits_found = vec![(name.into(), value)];
        lab.notes.flood.phases.retain(|p| p.kind != PhaseKind::Rescue);
        let advice = report(lab).advice;
        assert_eq!(
            advice.first().map(|advice| advice.current.as_str()),
            current,
            "{name} {value}: {advice:?}"
        );
        for advice in advice {
            assert!(!advice.measured && advice.command.starts_with("sudo weir doctor"), "{advice:?}");
            assert_eq!(advice.proposed, "15 MB");
        }
    }
}

/// What a trial changed is said, and why it is not advised.
#[test]
fn a_trial_that_is_not_advised_is_told_with_what_it_lacks() {
    for (iops, words) in [
        (
            36.0,
            "vm.dirty_bytes = 40 MB left 4.7 % of 10 threads' commits instead of 4.5 %, less than the fifth more",
        ),
        (33.0, "No measured change helps; the next steps are below."),
    ] {
        let mut lab = throttled_and_flooded();
        lab.notes.flood.phases.retain(|p| p.kind != PhaseKind::Rescue);
        lab.phase(PhaseKind::Rescue, 10, Some(40_000_000), &Behaviour { iops, ..rescued() });
        let report = report(lab);
        assert!(
            report.closing.starts_with(words) && report.headline.text.contains(words),
            "{}",
            report.closing
        );
    }
}

#[test]
fn the_highest_limit_near_the_best_is_proposed() {
    let mut lab = throttled_and_flooded();
    lab.phase(PhaseKind::Rescue, 10, Some(5_000_000), &Behaviour { iops: 722.0, ..rescued() });
    lab.phase(PhaseKind::Rescue, 10, Some(60_000_000), &Behaviour { iops: 388.0, ..rescued() });
    assert_eq!(report(lab).advice[0].proposed, "15 MB");
}

fn rescued() -> Behaviour {
    Behaviour { iops: 700.0, usual_ns: 14_000_000, slow_ns: 20_000_000 }
}

#[test]
fn a_fast_device_may_lose_most_of_its_commits_and_still_serve() {
    let mut lab = healthy();
    lab.phase(PhaseKind::Idle, 1, None, &Behaviour { iops: 20_000.0, usual_ns: 50_000, slow_ns: 60_000 });
    lab.phase(PhaseKind::Flood, 1, None, &Behaviour { iops: 2_000.0, usual_ns: 400_000, slow_ns: 900_000 });
    let report = report(lab);
    let flood = finding(&report, Topic::Flood);
    assert_eq!(
        (flood.grade, flood.summary.as_str()),
        (Some(Grade::Good), "a bulk writer leaves 10 % of one thread's commits")
    );
}

#[test]
fn a_server_with_its_data_here_is_offered_to_be_examined() {
    let mut record = healthy().record(Vec::new());
    record.extra["databases"] = serde_json::json!([{"family": "postgres", "data_dir": "/srv/db/pg"}]);
    let offered = from_record(&record).unwrap().next;
    assert_eq!(offered.len(), 1);
    assert_eq!(offered[0].command, "weir db doctor --postgres");
    assert!(offered[0].why.contains("/srv/db/pg"), "{}", offered[0].why);
}

#[test]
fn sweep_and_guard_are_offered_where_commits_collapse_and_nowhere_else() {
    assert!(report(healthy()).next.is_empty());
    assert!(report(Lab::new()).next.is_empty());
    let offered = report(throttled_and_flooded()).next;
    assert_eq!(offered.len(), 2);
    assert_eq!(offered[1].command, "sudo weir guard run --shadow");
    assert_eq!(offered[0].command, "sudo weir tune sweep vm.dirty_bytes --dir /srv/db");
    assert!(offered[0].why.starts_with("A bulk writer leaves "), "{}", offered[0].why);
    let mut elsewhere = throttled_and_flooded().record(Vec::new());
    elsewhere.extra["path"] = "/srv/it's".into();
    let command = from_record(&elsewhere).unwrap().next[0].command.clone();
    assert_eq!(command, r"sudo weir tune sweep vm.dirty_bytes --dir '/srv/it'\''s'");
}

#[test]
fn nothing_measured_gives_no_verdict() {
    let report = report(Lab::new());
    assert_eq!(report.headline.grade, Grade::Unknown);
    assert!(report.headline.text.starts_with("Too little was measured"));
    assert!(report.findings.is_empty());
}

#[test]
fn commits_are_graded_at_the_stated_thresholds() {
    for (slow_ns, grade) in [(4_900_000, Grade::Good), (5_100_000, Grade::Fair), (21_000_000, Grade::Poor)] {
        let mut lab = Lab::new();
        // One in fifty is slow, so p99 is the slow one.
        let how = Behaviour { iops: 400.0, usual_ns: slow_ns, slow_ns };
        lab.commits(SyncPath::Buffered, 1, &how);
        assert_eq!(finding(&report(lab), Topic::Commit).grade, Some(grade), "{slow_ns} ns");
    }
}

#[test]
fn bars_are_met_missed_or_not_judged() {
    let bar = |text: &str, rule| Bar { text: text.into(), rule };
    let bars = vec![
        bar("commit-p99=1ms", BarRule::CommitP99(Nanos::from_millis(1))),
        bar("commit-p99=50us", BarRule::CommitP99(Nanos(50_000))),
        bar("flood=50%", BarRule::FloodPercent(50.0)),
        bar("write-iops=1", BarRule::WriteIops(1.0)),
    ];
    let report = from_record(&healthy().record(bars)).unwrap();
    let met: Vec<Option<bool>> = report.bars.iter().map(|b| b.met).collect();
    assert_eq!(met, [Some(true), Some(false), Some(true), None]);
}

/// An array that is checked or lacks a member weakens the figures; no setting puts data at risk.
#[test]
fn an_array_at_work_is_a_caveat_and_no_risk() {
    let misses = "md0 (raid1) misses 1 of its members: it survives fewer failures";
    for (degraded, sync_action, says) in [
        (0, "check", &["md0 (raid1) is doing `check`: these figures are not its usual ones."][..]),
        (1, "recover", &[misses, "md0 (raid1) is doing `recover`"]),
        (1, "idle", &[misses]),
        (0, "idle", &[]),
    ] {
        let mut lab = healthy();
        let md = Layer {
            name: "md0".into(),
            kind: LayerKind::Md {
                level: "raid1".into(),
                raid_disks: 2,
                degraded,
                chunk_bytes: 0,
                state: "clean".into(),
                sync_action: sync_action.into(),
            },
            ..Layer::default()
        };
        lab.conditions.target.as_mut().unwrap().stack.push(md);
        let report = report(lab);
        assert!(report.closing.starts_with("Nothing to change"), "{}", report.closing);
        let about: Vec<_> = report.caveats.iter().filter(|caveat| caveat.text.starts_with("md0")).collect();
        assert_eq!(about.len(), says.len(), "{about:?}");
        assert!(about.iter().zip(says).all(|(about, says)| about.text.starts_with(says)), "{about:?}");
    }
}

/// A folder in memory is called that, and has no network.
#[test]
fn a_folder_in_memory_has_no_network() {
    for (kind, says) in [
        ("tmpfs", "This is memory, not storage (tmpfs)."),
        ("nfs4", "This is a network file system (nfs4): its figures include the network."),
    ] {
        let mut lab = healthy();
        lab.conditions.target.as_mut().unwrap().file_system.as_mut().unwrap().kind = kind.into();
        assert_eq!(finding(&report(lab), Topic::Class).statements[0].text, says);
    }
}

/// Every sentence of a finding or of measured advice stands on something that exists.
#[test]
fn every_sentence_names_its_evidence() {
    for report in [report(throttled_and_flooded()), report(healthy())] {
        let of_findings = report.findings.iter().flat_map(|f| &f.statements);
        let of_advice = report.advice.iter().filter(|a| a.measured).map(|a| &a.effect);
        for statement in of_findings.chain(of_advice) {
            check_evidence(&report, statement);
        }
    }
}

fn check_evidence(report: &DoctorReport, statement: &Statement) {
    assert!(!statement.evidence.is_empty(), "no evidence: {}", statement.text);
    for evidence in &statement.evidence {
        let known = report.measurements.iter().any(|m| m.id == evidence.source)
            || evidence.source.starts_with("fact:")
            || evidence.source == "flood timeline";
        assert!(known, "{} stands on unknown {}", statement.text, evidence.source);
        assert!(!evidence.figure.is_empty());
    }
}

#[test]
fn a_failed_operation_outweighs_good_figures() {
    let mut record = healthy().record(Vec::new());
    record.jobs[2].error = Some("write of /srv/db/test: Input/output error".into());
    let headline = from_record(&record).unwrap().headline;
    assert_eq!(headline.grade, Grade::Poor);
    assert!(headline.text.contains("Input/output error"), "{}", headline.text);
}

#[test]
fn a_measurement_keeps_quantiles_only_with_enough_samples() {
    let mut lab = Lab::new();
    let how = Behaviour { iops: 50.0, usual_ns: 1_000_000, slow_ns: 9_000_000 };
    lab.step("few", StepKind::ReadDepth, Class::Read, (4096, 1, 1), &how);
    let latency = &report(lab).measurements[0].latency;
    assert_eq!((latency.n, latency.p99_ns, latency.p95_ns), (200, None, Some(1_000_447)));
}
