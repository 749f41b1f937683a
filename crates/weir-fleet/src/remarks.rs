//! What an answer says of devices and hosts that its table does not name.

use std::collections::BTreeMap;

use weir_store::questions::Parameters;
use weir_store::verdict::{NotCompared, Why};

/// Names of each remark that are shown on a terminal: `--json` has all.
pub const NAMES_SHOWN: usize = 6;
/// The same on a page.
pub const NAMES_ON_A_PAGE: usize = 200;

/// Devices and hosts of which one thing is to be said.
pub struct Remark {
    label: &'static str,
    why: String,
    devices: usize,
    names: Vec<String>,
}

impl Remark {
    /// `label: 2 devices WHY: db1 sda, db1 sdb`; none of nobody. A host has an empty device.
    pub fn of(why: &str, label: &'static str, who: &[(&str, &str)]) -> Option<Remark> {
        let [devices, _] = count(who.iter().map(|(_, device)| *device));
        let name = |(host, device): &(&str, &str)| format!("{host} {device}").trim().to_string();
        let names: Vec<String> = who.iter().map(name).collect();
        (!names.is_empty()).then(|| Remark { label, why: why.to_string(), devices, names })
    }

    /// In words, with so many names at most.
    pub fn words(&self, most: usize) -> String {
        let who = counted(self.devices, self.names.len() - self.devices).unwrap_or_default();
        let named = self.names.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
        let more = match self.names.len().saturating_sub(most) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        format!("{}: {who} {}: {named}{more}", self.label, self.why)
    }
}

/// A remark for each reason.
pub fn not_judged(all: &[NotCompared], with: &Parameters) -> Vec<Remark> {
    let mut of: BTreeMap<Why, Vec<(&str, &str)>> = BTreeMap::new();
    for one in all {
        of.entry(one.why).or_default().push((&one.host, &one.device));
    }
    of.into_iter().filter_map(|(why, who)| Remark::of(&words(why, with), "not judged", &who)).collect()
}

fn words(why: Why, with: &Parameters) -> String {
    let peers = with.peers;
    match why {
        Why::ModelNotKnown => "without facts that say what they are".to_string(),
        Why::FewOfItsKind => format!("with fewer than {peers} of their kind"),
        Why::FewRequests => "without a thousand requests or syncs at one load".to_string(),
        Why::FewAtItsLoad => format!("with fewer than {peers} of their kind at the same time and load"),
        Why::FewBins => "with too few times and loads at which they could be compared".to_string(),
    }
}

/// How many of them are devices, and how many hosts, whose device is empty.
pub fn count<'a>(devices: impl Iterator<Item = &'a str>) -> [usize; 2] {
    let (hosts, devices): (Vec<&str>, Vec<&str>) = devices.partition(|device| device.is_empty());
    [devices.len(), hosts.len()]
}

/// `2 devices and 1 host`; none of nobody.
pub fn counted(devices: usize, hosts: usize) -> Option<String> {
    let one_kind = |(count, one): (usize, &str)| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {one}s")),
    };
    let kinds: Vec<String> =
        [(devices, "device"), (hosts, "host")].into_iter().filter_map(one_kind).collect();
    (!kinds.is_empty()).then(|| kinds.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_names_some_and_counts_the_rest() {
        let who = [("db1", ""), ("db1", "sda"), ("db2", "sda")];
        let remark = Remark::of("with nothing", "not judged", &who).unwrap();
        assert_eq!(remark.words(3), "not judged: 2 devices and 1 host with nothing: db1, db1 sda, db2 sda");
        assert_eq!(remark.words(1), "not judged: 2 devices and 1 host with nothing: db1 and 2 more");
        assert!(Remark::of("with nothing", "not judged", &[]).is_none());
    }
}
