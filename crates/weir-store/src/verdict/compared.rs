//! Which devices and hosts could not be compared with others, and why: of them nobody may say that they are not slow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::slow::{BINS_MIN, Figure};

/// A device or host of the time that is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Host.
    pub host: String,
    /// Device; empty for the host itself.
    pub device: String,
    /// 1 where facts say what it is, else 0.
    pub is_known: i64,
    /// 1 where they name its model.
    pub has_model: i64,
    /// How many there are of its kind, itself among them.
    pub kind_n: i64,
}

/// Why one is compared with none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Facts do not say what it is.
    ModelNotKnown,
    /// There are too few of its kind.
    FewOfItsKind,
    /// It has in no window of time a thousand requests at one load.
    FewRequests,
    /// Where it has, too few of its kind have.
    FewAtItsLoad,
    /// It could be compared, in too few windows and loads.
    FewBins,
}

/// One that is compared with none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotCompared {
    /// Host.
    pub host: String,
    /// Device; empty for the host itself.
    pub device: String,
    /// Why.
    pub why: Why,
}

impl Subject {
    /// Whether it is a device, and not a host.
    pub fn is_device(&self) -> bool {
        !self.device.is_empty()
    }
}

impl NotCompared {
    /// It is not, for this reason.
    pub fn of(subject: &Subject, why: Why) -> NotCompared {
        NotCompared { host: subject.host.clone(), device: subject.device.clone(), why }
    }
}

/// Those of which the figures of slow devices say nothing.
pub fn not_compared(subjects: &[Subject], figures: &[Figure], peers: u32) -> Vec<NotCompared> {
    let mut bins: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for figure in figures.iter().filter(|figure| !figure.is_of_waits()) {
        let most = bins.entry((&figure.host, &figure.device)).or_default();
        *most = figure.bins.max(*most);
    }
    let why = |subject: &Subject| match bins.get(&(subject.host.as_str(), subject.device.as_str())) {
        _ if subject.is_known == 0 => Some(Why::ModelNotKnown),
        _ if subject.kind_n < i64::from(peers) => Some(Why::FewOfItsKind),
        None => Some(Why::FewRequests),
        Some(0) => Some(Why::FewAtItsLoad),
        Some(bins) if *bins < BINS_MIN => Some(Why::FewBins),
        Some(_) => None,
    };
    subjects.iter().filter_map(|subject| Some(NotCompared::of(subject, why(subject)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_that_is_not_compared_has_its_reason() {
        let figure = |what: &str, permille, bins| Figure {
            peers: "NV-A1, 1.0, none".into(),
            host: "db1".into(),
            device: "sda".into(),
            what: what.into(),
            permille,
            bins,
            slow_bins: 0,
            peers_n: 9,
            own_ns: 0.0,
            usual_ns: 0.0,
        };
        let known =
            Subject { host: "db1".into(), device: "sda".into(), is_known: 1, has_model: 1, kind_n: 6 };
        let waits = figure("wait device", 0, 9);
        for (subject, figures, expected) in [
            (
                Subject { is_known: 0, ..known.clone() },
                vec![figure("read d2c", 500, 9)],
                Some(Why::ModelNotKnown),
            ),
            (Subject { kind_n: 5, ..known.clone() }, vec![], Some(Why::FewOfItsKind)),
            (known.clone(), vec![waits], Some(Why::FewRequests)),
            (
                Subject { device: "sdb".into(), ..known.clone() },
                vec![figure("read d2c", 500, 9)],
                Some(Why::FewRequests),
            ),
            (known.clone(), vec![figure("read d2c", 500, 0)], Some(Why::FewAtItsLoad)),
            (
                known.clone(),
                vec![figure("read d2c", 500, 2), figure("write d2c", 990, 1)],
                Some(Why::FewBins),
            ),
            (known.clone(), vec![figure("read d2c", 500, 0), figure("write d2c", 990, 3)], None),
        ] {
            let found = not_compared(std::slice::from_ref(&subject), &figures, 6);
            assert_eq!(found.first().map(|one| one.why), expected, "{subject:?} {figures:?}");
        }
    }
}
