//! From a path to its file system and the devices beneath.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use weir_core::target::{Bdi, DeviceNumber, FileSystem, LayerKind, TargetFacts};

use crate::error::HostError;
use crate::host::Host;
use crate::mounts::{self, Mount};
use crate::stack::{Stack, common_device};
use crate::view::Opened;
use crate::{bdi, block, cgroup, view};

/// How deep overlays in overlays are followed.
const NESTING_MAX: u32 = 8;

impl Host {
    /// Resolves a path (which need not exist yet) or a block device to its file system and device stack. A path through
    /// `/proc/PID/root` is looked at as that process sees it, with the limits of its cgroups.
    ///
    /// # Errors
    /// When the mount table cannot be read or understood, or no mount holds the path. Everything else that cannot
    /// be seen becomes a sentence in [`TargetFacts::blind`].
    pub fn target(&self, path: &Path) -> Result<TargetFacts, HostError> {
        let place = self.place(path)?;
        let mut stack = Stack::default();
        let tops = self.descend(&place, None, 0, &mut stack);
        let bdi = self.bdi(&place, &tops, &mut stack.blind);
        let (stack, mut blind) = stack.top_down();
        let device = common_device(&stack, &tops);
        if device.is_none() && tops.len() > 1 {
            blind.push(format!("spread over {}: no single device stands for it", tops.join(", ")));
        }
        let members = match view::process_of(path) {
            Some(process) => cgroup::memberships_of(&self.tree, process, &place.mounts, &mut Vec::new()),
            None => cgroup::memberships(&self.tree, &place.mounts, &mut Vec::new()),
        };
        let (throttles, notes) = cgroup::throttles(&self.tree, &members, &stack);
        blind.extend(notes);
        let path = place.path.display().to_string();
        Ok(TargetFacts { path, file_system: place.file_system, stack, device, bdi, throttles, blind })
    }

    /// The mounts this process sees.
    pub(crate) fn mounts(&self) -> Result<Vec<Mount>, HostError> {
        self.tree.parsed("/proc/self/mountinfo", mounts::parse)
    }

    /// What a path is: a block device, or a place in a mounted file system.
    fn place(&self, path: &Path) -> Result<Place, HostError> {
        let mounts = self.mounts()?;
        let located = if self.live { self.located(path, &mounts)? } else { self.named(path, &mounts)? };
        let Located { path, number, block_device, mount } = located;
        let file_system = mount.as_ref().map(|mount| self.file_system(mount, &path, number));
        Ok(Place { path, mounts, mount, file_system, block_device })
    }

    /// What the kernel says of a path, or of the nearest folder above it that exists.
    fn located(&self, path: &Path, mounts: &[Mount]) -> Result<Located, HostError> {
        let opened = Opened::nearest(path)?;
        let meta = opened.metadata()?;
        let number = split(meta.dev());
        if meta.file_type().is_block_device() {
            // A number that sysfs does not know stays a number; the stack then says that it cannot be read.
            let device = split(meta.rdev());
            let name = block::name_of(&self.tree, device).unwrap_or_else(|| device.to_string());
            return Ok(Located { path: opened.path, number, block_device: Some(name), mount: None });
        }
        let mount = Some(opened.mount(&self.tree, mounts)?);
        Ok(Located { path: opened.path, number, block_device: None, mount })
    }

    /// The same of a captured tree, by names alone.
    fn named(&self, path: &Path, mounts: &[Mount]) -> Result<Located, HostError> {
        let path = path.to_path_buf();
        let block_device = block::name_of_path(&self.tree, &path.to_string_lossy());
        if block_device.is_some() {
            return Ok(Located { path, number: DeviceNumber::default(), block_device, mount: None });
        }
        let mount = mounts::holding(mounts, &path).ok_or_else(|| HostError::NoMount(path.clone()))?.clone();
        Ok(Located { path, number: mount.number, block_device, mount: Some(mount) })
    }

    fn file_system(&self, mount: &Mount, path: &Path, number: DeviceNumber) -> FileSystem {
        let options = mount.options();
        let space = self.live.then(|| self.free_space(path).ok()).flatten();
        FileSystem {
            kind: mount.kind.clone(),
            mount_point: mount.mount_point.clone(),
            root: mount.root.clone(),
            source: mount.source.clone(),
            device_number: number,
            read_only: [&mount.mount_options, &mount.super_options]
                .iter()
                .any(|o| o.iter().any(|o| o == "ro")),
            options,
            size_bytes: space.map(|s| s.size_bytes),
            free_bytes: space.map(|s| s.free_bytes),
            block_bytes: space.map(|s| s.block_bytes),
            inodes_free: space.and_then(|s| s.inodes_free),
        }
    }

    /// Adds the devices under a place to the stack; the names of the topmost ones.
    fn descend(
        &self,
        place: &Place,
        beneath_loop: Option<&str>,
        nesting: u32,
        stack: &mut Stack,
    ) -> Vec<String> {
        let tops = match (&place.block_device, &place.mount) {
            (Some(name), _) => vec![name.clone()],
            (None, Some(mount)) => self.devices_of_mount(mount, place, nesting, stack),
            (None, None) => Vec::new(),
        };
        // The stack grows from the bottom, so the first of several comes last.
        for top in tops.iter().rev() {
            stack.add(&self.tree, top, beneath_loop);
        }
        while let Some((name, file)) = stack.next_loop() {
            self.descend_through_loop(&name, &file, nesting, stack);
        }
        tops
    }

    /// Finds the file system that holds a loop's backing file, and its devices.
    fn descend_through_loop(&self, name: &str, file: &str, nesting: u32, stack: &mut Stack) {
        let place = match file.strip_suffix(" (deleted)") {
            Some(gone) => Err(format!(
                "{name}: its backing file {gone} is deleted; the file system under it is unknown"
            )),
            // Whoever asks it may wait for ever.
            None if self.is_served(Path::new(file)) => Err(format!(
                "{name}: its backing file {file} is served by a program or another machine, which is not asked; what it stands on is unknown"
            )),
            None => self.place(Path::new(file)).map_err(|error| format!("{name}: backing file {error}")),
        };
        match place {
            Err(sentence) => stack.blind.push(sentence),
            Ok(place) => {
                let mark = stack.len();
                let below = self.descend(&place, Some(name), nesting + 1, stack);
                stack.sink(mark, name);
                if let Some(layer) = stack.layer_mut(name) {
                    layer.over = below;
                    if let LayerKind::Loop { file_system, .. } = &mut layer.kind {
                        *file_system = place.file_system.map(Box::new);
                    }
                }
            }
        }
    }

    /// The topmost block devices of a mounted file system.
    fn devices_of_mount(&self, mount: &Mount, place: &Place, nesting: u32, stack: &mut Stack) -> Vec<String> {
        for option in ["logdev", "rtdev", "journal_path", "journal_dev"] {
            if let Some(device) = mount.super_option(option) {
                stack
                    .blind
                    .push(format!("{option}={device}: part of this file system lies on another device"));
            }
        }
        match mount.kind.as_str() {
            "btrfs" => self.btrfs_devices(mount, stack),
            "overlay" => self.overlay_devices(mount, place, nesting, stack),
            _ if !mount.number.is_anonymous() => self.device_by_number(mount.number, stack),
            _ => {
                stack.blind.push(why_no_device(mount));
                Vec::new()
            }
        }
    }

    fn device_by_number(&self, number: DeviceNumber, stack: &mut Stack) -> Vec<String> {
        let name = block::name_of(&self.tree, number);
        if name.is_none() {
            stack.blind.push(format!("device {number} is not under /sys/dev/block; a container may hide it"));
        }
        name.into_iter().collect()
    }

    fn btrfs_devices(&self, mount: &Mount, stack: &mut Stack) -> Vec<String> {
        let all = self.devices_of_btrfs(mount);
        if all.is_empty() {
            stack
                .blind
                .push(format!("btrfs: its device {} is not visible under /sys/class/block", mount.source));
        }
        if all.len() > 1 {
            stack.blind.push(format!(
                "btrfs over {}: which of them holds a block (its data and metadata profiles) is not read",
                all.join(", ")
            ));
        }
        all
    }

    /// btrfs has a device number that belongs to no device; its members are listed under /sys/fs/btrfs.
    pub(crate) fn devices_of_btrfs(&self, mount: &Mount) -> Vec<String> {
        let source = if self.live { real_path(&mount.source) } else { mount.source.clone() };
        let Some(first) = block::name_of_path(&self.tree, &source) else { return Vec::new() };
        let members = |uuid: &String| self.tree.names(&format!("/sys/fs/btrfs/{uuid}/devices"));
        let all =
            self.tree.names("/sys/fs/btrfs").iter().map(members).find(|members| members.contains(&first));
        all.unwrap_or_else(|| vec![first])
    }

    /// New and changed files of an overlay land in its upper folder.
    fn overlay_devices(&self, mount: &Mount, place: &Place, nesting: u32, stack: &mut Stack) -> Vec<String> {
        let Some(upper) = mount.super_option("upperdir") else {
            stack.blind.push(
                "overlay without upperdir: read-only layers, whose devices are not followed".to_string(),
            );
            return Vec::new();
        };
        let visible = if self.live { Path::new(upper).is_dir() } else { self.tree.exists(upper) };
        let below = if visible && nesting < NESTING_MAX { self.place(Path::new(upper)).ok() } else { None };
        let Some(below) = below.filter(|below| is_beneath(below, place)) else {
            stack.blind.push(format!(
                "overlay: its upper folder {upper} is not visible here, so neither is its device"
            ));
            return Vec::new();
        };
        stack.blind.push(format!(
            "overlay: writes land in {upper}, which is followed; unchanged files are read from its lower layers, which are not"
        ));
        self.descend(&below, None, nesting + 1, stack)
    }

    /// The writeback domain: that of the disk for a partition, of the device for LVM and md, an anonymous one for
    /// file systems that make their own.
    fn bdi(&self, place: &Place, tops: &[String], notes: &mut Vec<String>) -> Option<Bdi> {
        let mut names = Vec::new();
        if let Some(number) = place.mount.as_ref().map(|mount| mount.number) {
            names.extend([format!("{number}"), format!("{number}-fuse"), format!("{number}-fuseblk")]);
        }
        if place.mount.as_ref().is_some_and(|mount| mount.kind == "btrfs") {
            let bdi = tops.first().and_then(|member| bdi::of_btrfs(&self.tree, member));
            if bdi.is_none() {
                notes.push("btrfs: which bdi is its own cannot be told".to_string());
            }
            return bdi::read(&self.tree, &bdi?, notes);
        }
        for top in tops {
            let whole = self.whole_device(top);
            names.extend(block::number_of(&self.tree, &whole).map(|number| number.to_string()));
        }
        names.iter().find_map(|name| bdi::read(&self.tree, name, notes))
    }

    /// A partition's disk, or the device itself.
    pub(crate) fn whole_device(&self, name: &str) -> String {
        match block::layer(&self.tree, name, &mut Vec::new()).map(|layer| layer.kind) {
            Ok(LayerKind::Partition { disk, .. }) => disk,
            _ => name.to_string(),
        }
    }
}

struct Located {
    path: PathBuf,
    /// Of the file system, as stat reports it.
    number: DeviceNumber,
    block_device: Option<String>,
    mount: Option<Mount>,
}

/// A resolved path.
struct Place {
    path: PathBuf,
    mounts: Vec<Mount>,
    mount: Option<Mount>,
    file_system: Option<FileSystem>,
    block_device: Option<String>,
}

/// Whether an overlay can stand on the folder that its mount option names. The process that mounted it may see another folder by
/// that name. A folder that the overlay itself holds is none it stands on, and an overlay has the size of what it writes to.
fn is_beneath(folder: &Place, overlay: &Place) -> bool {
    let size =
        |place: &Place| place.file_system.as_ref().map(|system| (system.size_bytes, system.block_bytes));
    folder.mount != overlay.mount && size(folder) == size(overlay)
}

fn why_no_device(mount: &Mount) -> String {
    let (kind, source) = (&mount.kind, &mount.source);
    match kind.as_str() {
        "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" => {
            format!("{kind}: in memory and swap, on no device")
        }
        "zfs" => {
            format!("zfs: pool and devices of {source} are not read; ZFS has its own cache and scheduler")
        }
        "9p" | "virtiofs" => {
            format!("{kind}: the hypervisor's host serves {source}; its devices cannot be seen")
        }
        kind if is_network(kind) => {
            format!("{kind}: {source} is served over the network; its storage cannot be seen")
        }
        kind if kind.starts_with("fuse") => {
            format!("{kind}: a program serves {source}; what it stands on is unknown")
        }
        kind => format!("{kind}: stands on no block device that the kernel shows"),
    }
}

/// Whether files of such a file system come from a server or a program.
pub(crate) fn is_served(kind: &str) -> bool {
    is_network(kind) || kind.starts_with("fuse") || ["9p", "virtiofs", "autofs"].contains(&kind)
}

fn is_network(kind: &str) -> bool {
    ["nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "lustre", "gfs2", "beegfs"].contains(&kind)
        || ["fuse.glusterfs", "fuse.sshfs", "fuse.s3fs"].contains(&kind)
}

fn real_path(path: &str) -> String {
    Path::new(path).canonicalize().map_or_else(|_| path.to_string(), |real| real.display().to_string())
}

/// A `dev_t` as two numbers.
pub(crate) fn split(device: u64) -> DeviceNumber {
    DeviceNumber { major: libc::major(device), minor: libc::minor(device) }
}
