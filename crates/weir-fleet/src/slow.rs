//! Which hosts are slower than others of their kind, and why. Pure: figures in, judgements out.
//!
//! A host is held against the median of its peers, in units of the median absolute deviation (MAD), which a few slow hosts do not
//! move. The limit is that of Iglewicz and Hoaglin (How to Detect and Handle Outliers, 1993): 0.6745 · |x − median| / MAD > 3.5.

use serde::Serialize;
use weir_core::stats::change::median;

use crate::figures::{Examination, Figures};

/// Iglewicz and Hoaglin's limit.
const SCORE_MAX: f64 = 3.5;

/// Nothing closer to the median than this is called slow, however alike the peers are.
const FACTOR_MIN: f64 = 1.3;

/// Hosts that are all alike have a MAD of next to nothing: it counts as this part of the median at least.
const MAD_MIN: f64 = 0.025;

/// Writes and reads of others that matter, as the doctor has it: bytes a second.
const OTHERS_BYTES: f64 = 5e6;

/// Why a host is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A limit on IOPS or bandwidth.
    Throttled,
    /// I/O of other processes on the same device.
    Others,
    /// The wait in the device's queue.
    Queue,
    /// The device, its flushes included.
    Device,
    /// Page cache, file system, processors.
    Elsewhere,
    /// Its record does not say.
    Unknown,
}

impl Cause {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Cause::Throttled => "throttled",
            Cause::Others => "write-back of others",
            Cause::Queue => "queue",
            Cause::Device => "device",
            Cause::Elsewhere => "outside the block layer",
            Cause::Unknown => "not known",
        }
    }
}

/// One figure against those of the peers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Against {
    /// The host's.
    pub value: f64,
    /// The median of the group.
    pub median: f64,
    /// Its median absolute deviation.
    pub mad: f64,
    /// 0.6745 · (value − median) / MAD, positive where it is worse.
    pub score: f64,
}

/// A host, judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// Which.
    pub host: String,
    /// What its peers have in common.
    pub group: String,
    /// How many hosts the group has, itself included.
    pub peers: usize,
    /// Commits a second.
    pub rate: Against,
    /// 95th percentile in nanoseconds.
    pub p95_ns: Option<Against>,
    /// Whether it is slow.
    pub slow: bool,
    /// Why, if it is.
    pub cause: Option<Cause>,
    /// What that stands on.
    pub evidence: Option<String>,
    /// Its settings where its peers' are others.
    pub settings: Option<String>,
}

/// Judges every host that has figures and at least `least` peers, itself included; also the names of those that were left out.
pub fn judge(hosts: &[(&str, &Figures)], least: usize) -> (Vec<Judged>, Vec<String>) {
    let measured: Vec<&(&str, &Figures)> =
        hosts.iter().filter(|(_, figures)| figures.commits.is_some()).collect();
    let (mut judged, mut alone) = (Vec::new(), Vec::new());
    for host in &measured {
        let alike = |same: &dyn Fn(&Examination, &Examination) -> bool| -> Vec<(&str, &Figures)> {
            let fits = |other: &&&(&str, &Figures)| match (&host.1.examination, &other.1.examination) {
                (Some(one), Some(other)) => same(one, other),
                (None, None) => true,
                _ => false,
            };
            measured.iter().filter(fits).map(|other| **other).collect()
        };
        // Settings make a group where there are enough of them; else the model does, and what differs is said.
        let close = alike(&|one, other| one.model == other.model && one.settings == other.settings);
        let wide = alike(&|one, other| one.model == other.model);
        let peers = if close.len() >= least { &close } else { &wide };
        if peers.len() < least {
            alone.push(host.0.to_string());
        } else {
            judged.extend(one(host, peers, close.len() < wide.len() && close.len() < least));
        }
    }
    judged.sort_by(|a, b| b.slow.cmp(&a.slow).then(worst(b).total_cmp(&worst(a))));
    (judged, alone)
}

fn worst(judged: &Judged) -> f64 {
    judged.rate.score.max(judged.p95_ns.map_or(f64::MIN, |p95| p95.score))
}

fn one(host: &(&str, &Figures), peers: &[(&str, &Figures)], settings_differ: bool) -> Option<Judged> {
    let commits = host.1.commits?;
    let rates: Vec<f64> = peers.iter().filter_map(|(_, figures)| Some(figures.commits?.rate)).collect();
    let tails: Vec<f64> =
        peers.iter().filter_map(|(_, figures)| Some(figures.commits?.p95_ns? as f64)).collect();
    let rate = against(commits.rate, &rates, -1.0);
    let p95_ns = commits.p95_ns.map(|p95| against(p95 as f64, &tails, 1.0));
    let slow_rate = rate.score > SCORE_MAX && rate.value * FACTOR_MIN < rate.median;
    let slow_tail = p95_ns.is_some_and(|p95| p95.score > SCORE_MAX && p95.value > p95.median * FACTOR_MIN);
    let slow = slow_rate || slow_tail;
    let (cause, evidence) = if slow { cause(host, peers) } else { (None, None) };
    let examined = host.1.examination.as_ref();
    Some(Judged {
        host: host.0.to_string(),
        group: examined.map_or_else(|| "the same run".to_string(), |examined| examined.model.clone()),
        peers: peers.len(),
        rate,
        p95_ns,
        slow,
        cause,
        evidence,
        settings: examined.filter(|_| settings_differ).map(|examined| examined.settings.clone()),
    })
}

/// `worse` is 1 where more is worse, and −1 where less is.
fn against(value: f64, all: &[f64], worse: f64) -> Against {
    let middle = median(all);
    let mad = median_of(all.iter().map(|other| (other - middle).abs()));
    let floor = (middle * MAD_MIN).max(f64::MIN_POSITIVE);
    Against { value, median: middle, mad, score: worse * 0.6745 * (value - middle) / mad.max(floor) }
}

fn median_of(values: impl Iterator<Item = f64>) -> f64 {
    median(&values.collect::<Vec<_>>())
}

/// The cause by what the host's own doctor says, and where that says nothing of a cause, by the stage that takes more than at its peers.
fn cause(host: &(&str, &Figures), peers: &[(&str, &Figures)]) -> (Option<Cause>, Option<String>) {
    let Some(own) = &host.1.examination else { return (Some(Cause::Unknown), None) };
    let others: Vec<&Examination> =
        peers.iter().filter(|peer| peer.0 != host.0).filter_map(|peer| peer.1.examination.as_ref()).collect();
    if let Some(words) = &own.throttled
        && others.iter().filter(|peer| peer.throttled.as_ref() == Some(words)).count() * 2 <= others.len()
    {
        return (Some(Cause::Throttled), Some(words.clone()));
    }
    let usual = median_of(others.iter().filter_map(|peer| peer.others_bytes_per_second));
    if own.others_bytes_per_second.is_some_and(|bytes| bytes >= OTHERS_BYTES && bytes > 5.0 * usual) {
        return (Some(Cause::Others), own.others.clone());
    }
    let Some(stages) = own.stages else { return (Some(Cause::Unknown), None) };
    let usual = |part: fn(&crate::figures::Stages) -> f64| {
        median_of(others.iter().filter_map(|peer| peer.stages.as_ref().map(part)))
    };
    let parts = [
        (Cause::Queue, stages.queue_ns, usual(|s| s.queue_ns)),
        (Cause::Device, stages.device_ns, usual(|s| s.device_ns)),
        (Cause::Elsewhere, stages.elsewhere_ns, usual(|s| s.elsewhere_ns)),
    ];
    let most = parts.into_iter().max_by(|a, b| (a.1 - a.2).total_cmp(&(b.1 - b.2)));
    let Some((cause, own_ns, usual_ns)) = most.filter(|(_, own_ns, usual_ns)| own_ns > usual_ns) else {
        return (Some(Cause::Unknown), None);
    };
    let said = |ns: f64| weir_core::units::Nanos(ns as u64).to_string();
    let evidence = format!("{} of a commit there, {} at its peers (median)", said(own_ns), said(usual_ns));
    (Some(cause), Some(evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Commits, Stages};

    fn host(rate: f64, change: impl FnOnce(&mut Examination)) -> Figures {
        let mean_ns = 1e9 / rate;
        let mut examined = Examination {
            model: "ext4 on disk, nvme".to_string(),
            settings: "scheduler none".to_string(),
            others_bytes_per_second: Some(1e4),
            others: Some("quiet".to_string()),
            stages: Some(Stages {
                queue_ns: 0.02 * mean_ns,
                device_ns: 0.7 * mean_ns,
                elsewhere_ns: 0.28 * mean_ns,
            }),
            ..Examination::default()
        };
        change(&mut examined);
        let p95_ns = Some((2.0 * mean_ns) as u64);
        let commits = Some(Commits { rate, p50_ns: Some(mean_ns as u64), p95_ns, p99_ns: None });
        Figures { verdict: "GOOD".to_string(), headline: None, commits, examination: Some(examined) }
    }

    /// Twenty hosts with a few percent between them.
    fn fleet() -> Vec<(String, Figures)> {
        (0..20).map(|n| (format!("db{n:02}"), host(1000.0 + 7.0 * f64::from(n % 9), |_| {}))).collect()
    }

    fn judged(fleet: &[(String, Figures)]) -> Vec<Judged> {
        let all: Vec<(&str, &Figures)> =
            fleet.iter().map(|(name, figures)| (name.as_str(), figures)).collect();
        judge(&all, 4).0
    }

    #[test]
    fn in_a_fleet_of_equals_none_is_slow() {
        assert!(judged(&fleet()).iter().all(|host| !host.slow && host.peers == 20));
    }

    #[test]
    fn each_cause_is_named() {
        let slow_stage = |queue: f64, device: f64, elsewhere: f64| {
            host(200.0, |e| {
                e.stages = Some(Stages {
                    queue_ns: queue * 1e6,
                    device_ns: device * 1e6,
                    elsewhere_ns: elsewhere * 1e6,
                })
            })
        };
        for (figures, cause, words) in [
            (
                host(150.0, |e| e.throttled = Some("a volume throttled to 150 write IOPS".into())),
                Cause::Throttled,
                "150 write IOPS",
            ),
            (
                host(300.0, |e| (e.others_bytes_per_second, e.others) = (Some(2e8), Some("200 MB/s".into()))),
                Cause::Others,
                "200 MB/s",
            ),
            (slow_stage(4.0, 0.7, 0.3), Cause::Queue, "4.00 ms of a commit there"),
            (slow_stage(0.1, 4.5, 0.3), Cause::Device, "4.50 ms of a commit there"),
            (slow_stage(0.1, 0.7, 4.2), Cause::Elsewhere, "4.20 ms of a commit there"),
            (host(200.0, |e| e.stages = None), Cause::Unknown, ""),
        ] {
            let mut fleet = fleet();
            fleet[7].1 = figures;
            let judged = judged(&fleet);
            let slow: Vec<&Judged> = judged.iter().filter(|host| host.slow).collect();
            assert_eq!(slow.len(), 1, "{cause:?}");
            assert_eq!((slow[0].host.as_str(), slow[0].cause), ("db07", Some(cause)));
            assert!(slow[0].evidence.clone().unwrap_or_default().contains(words), "{:?}", slow[0].evidence);
            assert_eq!(judged[0].host, "db07", "the slow come first");
        }
    }

    #[test]
    fn a_limit_that_all_have_is_nobodys_cause() {
        let limit = "a volume throttled to 3,000 write IOPS";
        let mut fleet: Vec<(String, Figures)> =
            (0..10).map(|n| (format!("db{n}"), host(1000.0, |e| e.throttled = Some(limit.into())))).collect();
        fleet[0].1 = host(100.0, |e| e.throttled = Some(limit.into()));
        let judged = judged(&fleet);
        assert_eq!(judged[0].cause, Some(Cause::Device));
    }

    #[test]
    fn only_peers_count_and_too_few_are_left_out() {
        let mut fleet = fleet();
        // A slower model is a group of its own, and two of them are none.
        for n in [3, 4] {
            fleet[n].1 = host(80.0, |e| e.model = "xfs on disk, rotating".to_string());
        }
        // Other settings: held against the model, and said.
        fleet[5].1 = host(90.0, |e| e.settings = "scheduler bfq".to_string());
        let all: Vec<(&str, &Figures)> =
            fleet.iter().map(|(name, figures)| (name.as_str(), figures)).collect();
        let (judged, alone) = judge(&all, 4);
        assert_eq!(alone, ["db03", "db04"]);
        assert!(judged[0].slow && judged[0].host == "db05");
        assert_eq!(judged[0].settings.as_deref(), Some("scheduler bfq"));
        assert!(judged[1..].iter().all(|host| !host.slow && host.settings.is_none()));
    }

    #[test]
    fn a_third_of_slow_hosts_is_still_found() {
        let mut fleet = fleet();
        for (_, figures) in fleet.iter_mut().take(6) {
            *figures = host(300.0, |_| {});
        }
        assert_eq!(judged(&fleet).iter().filter(|host| host.slow).count(), 6);
    }

    #[test]
    fn without_examinations_the_run_makes_the_group() {
        let plain = |rate: f64| Figures {
            commits: Some(Commits { rate, ..Commits::default() }),
            ..Figures::default()
        };
        let figures: Vec<Figures> = [100.0, 101.0, 99.0, 20.0, 100.0].map(plain).to_vec();
        let all: Vec<(&str, &Figures)> = ["a", "b", "c", "d", "e"].into_iter().zip(&figures).collect();
        let (judged, _) = judge(&all, 4);
        assert_eq!(
            (judged[0].host.as_str(), judged[0].slow, judged[0].cause),
            ("d", true, Some(Cause::Unknown))
        );
        assert_eq!(judge(&[], 4).0.len(), 0);
    }
}
