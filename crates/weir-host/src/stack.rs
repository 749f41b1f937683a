//! From the top of a device stack to its bottom, and which device stands for the whole.

use std::collections::BTreeSet;

use weir_core::target::{Layer, LayerKind};

use crate::block;
use crate::tree::Tree;

/// A stack under construction.
#[derive(Debug, Default)]
pub(crate) struct Stack {
    /// Finished layers, lower ones before higher ones.
    bottom_up: Vec<Layer>,
    /// Loop devices whose backing file has been looked for.
    followed: BTreeSet<String>,
    /// Sentences: what could not be seen.
    pub blind: Vec<String>,
}

impl Stack {
    /// Adds a device and everything under it, unless it is there already. `beneath_loop` is carried downwards.
    pub fn add(&mut self, tree: &Tree, name: &str, beneath_loop: Option<&str>) {
        if self.bottom_up.iter().any(|layer| layer.name == name) {
            return;
        }
        match block::layer(tree, name, &mut self.blind) {
            Ok(mut layer) => {
                layer.beneath_loop = beneath_loop.map(str::to_string);
                for below in layer.over.iter().rev() {
                    self.add(tree, below, beneath_loop);
                }
                self.bottom_up.push(layer);
            }
            Err(error) => self.blind.push(format!("{name} cannot be read: {error}")),
        }
    }

    /// A loop device that has not been followed yet, with its backing file; it counts as followed from now on.
    pub fn next_loop(&mut self) -> Option<(String, String)> {
        let unfollowed = |layer: &Layer| match &layer.kind {
            LayerKind::Loop { backing_file, .. } if !self.followed.contains(&layer.name) => {
                Some((layer.name.clone(), backing_file.clone()))
            }
            _ => None,
        };
        let next = self.bottom_up.iter().find_map(unfollowed)?;
        self.followed.insert(next.0.clone());
        Some(next)
    }

    /// The layer of that name, to complete it.
    pub fn layer_mut(&mut self, name: &str) -> Option<&mut Layer> {
        self.bottom_up.iter_mut().find(|layer| layer.name == name)
    }

    /// Layers so far; a mark for [`Stack::sink`].
    pub fn len(&self) -> usize {
        self.bottom_up.len()
    }

    /// Moves the layers added since the mark under the loop device that stands on them.
    pub fn sink(&mut self, mark: usize, name: &str) {
        if let Some(at) = self.bottom_up.iter().position(|layer| layer.name == name) {
            let added = self.bottom_up.len() - mark;
            self.bottom_up[at..].rotate_right(added);
        }
    }

    /// The layers from the top down, and what could not be seen.
    pub fn top_down(mut self) -> (Vec<Layer>, Vec<String>) {
        self.bottom_up.reverse();
        let more: Vec<String> = self.bottom_up.iter().filter_map(what_it_hides).collect();
        self.blind.extend(more);
        (self.bottom_up, self.blind)
    }
}

/// What a layer hides by its nature.
fn what_it_hides(layer: &Layer) -> Option<String> {
    // What RAID controllers and hypervisors call the disks they present.
    const PRESENTED: [&str; 12] = [
        "PERC",
        "MegaRAID",
        "MR9",
        "LOGICAL VOLUME",
        "ServeRAID",
        "Smart Array",
        "Virtual disk",
        "VMware",
        "QEMU",
        "PersistentDisk",
        "Elastic Block Store",
        "MSFT",
    ];
    let name = &layer.name;
    match &layer.kind {
        LayerKind::Remote => {
            Some(format!("{name}: served by a driver or machine that shows nothing beneath it"))
        }
        LayerKind::Dm { dm_name, .. } if layer.over.is_empty() => {
            Some(format!("{name} ({dm_name}): its device-mapper table names no device beneath"))
        }
        LayerKind::Dm { dm_name, .. } if layer.over.len() > 1 => Some(format!(
            "{name} ({dm_name}) stands on {}: whether striped, mirrored, cached or one after the other is not read",
            layer.over.join(", ")
        )),
        LayerKind::Disk if matches!(layer.bus.as_deref(), Some("virtio" | "xen")) => Some(format!(
            "{name}: a virtual disk; what the hypervisor keeps behind it cannot be seen from here"
        )),
        LayerKind::Disk => {
            let model = layer.model.as_deref().filter(|model| PRESENTED.iter().any(|p| model.contains(p)))?;
            Some(format!(
                "{name} ({model}): a controller or hypervisor presents it; the disks behind cannot be seen"
            ))
        }
        _ => None,
    }
}

/// The lowest layer that every path from the tops to a bottom passes, loops being bottoms.
pub(crate) fn common_device(stack: &[Layer], tops: &[String]) -> Option<String> {
    let mut common: Option<BTreeSet<&str>> = None;
    for top in tops {
        let on_all = passed_by_all_paths(stack, top);
        common = Some(match common {
            None => on_all,
            Some(so_far) => so_far.intersection(&on_all).copied().collect(),
        });
    }
    let common = common?;
    stack.iter().rev().find(|layer| common.contains(layer.name.as_str())).map(|layer| layer.name.clone())
}

/// Layers on all paths down from `name`, itself included.
fn passed_by_all_paths<'a>(stack: &'a [Layer], name: &str) -> BTreeSet<&'a str> {
    let Some(layer) = stack.iter().find(|layer| layer.name == name) else { return BTreeSet::new() };
    let mut passed = BTreeSet::from([layer.name.as_str()]);
    if matches!(layer.kind, LayerKind::Loop { .. }) {
        return passed;
    }
    let below = layer.over.iter().map(|below| passed_by_all_paths(stack, below));
    let on_all = below.reduce(|a, b| a.intersection(&b).copied().collect());
    passed.extend(on_all.unwrap_or_default());
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, over: &[&str]) -> Layer {
        Layer { name: name.into(), over: over.iter().map(|o| o.to_string()).collect(), ..Layer::default() }
    }

    #[test]
    fn the_device_that_stands_for_all_is_the_lowest_that_all_pass() {
        let is_loop = |mut layer: Layer| {
            layer.kind = LayerKind::Loop {
                backing_file: "/f".into(),
                file_system: None,
                direct_io: false,
                offset_bytes: 0,
            };
            layer
        };
        let line = vec![layer("vda1", &["vda"]), layer("vda", &[])];
        let raid = vec![
            layer("dm-0", &["md0"]),
            layer("md0", &["sda", "sdb"]),
            layer("sdb", &[]),
            layer("sda", &[]),
        ];
        let converging = vec![
            layer("dm-0", &["sda1", "sda2"]),
            layer("sda1", &["sda"]),
            layer("sda2", &["sda"]),
            layer("sda", &[]),
        ];
        let looped = vec![is_loop(layer("loop0", &["vda"])), layer("vda", &[])];
        for (stack, tops, device) in [
            (&line, vec!["vda1"], Some("vda")),
            (&raid, vec!["dm-0"], Some("md0")),
            (&converging, vec!["dm-0"], Some("sda")),
            (&looped, vec!["loop0"], Some("loop0")),
            (&raid, vec!["sda", "sdb"], None),
            (&converging, vec!["sda1", "sda2"], Some("sda")),
            (&line, vec![], None),
        ] {
            let tops: Vec<String> = tops.into_iter().map(str::to_string).collect();
            assert_eq!(common_device(stack, &tops).as_deref(), device, "{tops:?}");
        }
    }
}
