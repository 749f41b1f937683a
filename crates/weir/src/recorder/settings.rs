//! What a recorder is to do.

use std::path::PathBuf;

use weir_core::units::{Bytes, Nanos};

use crate::daemon::MetricsAt;

/// Where root's recorder keeps its archive.
pub const OF_ROOT: &str = "/var/lib/weir/recorder";

/// What a recorder is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct RecorderSettings {
    /// The archive's folder.
    pub dir: PathBuf,
    /// Length of an interval.
    pub interval: Nanos,
    /// Devices, by their kernel's names; none means all.
    pub devices: Vec<String>,
    /// Syncs at least this long are kept one by one.
    pub slow: Nanos,
    /// Files older than this go.
    pub max_age: Nanos,
    /// The oldest files go while all have more than this.
    pub max_bytes: Bytes,
    /// A segment is closed when it is this old.
    pub segment: Nanos,
    /// A device that has I/O in flight and completes nothing for so long stands still.
    pub stall: Nanos,
    /// End after this long.
    pub duration: Option<Nanos>,
    /// Where metrics are offered.
    pub metrics: Option<MetricsAt>,
    /// Whether that may be an address that others can reach.
    pub metrics_for_others: bool,
}

/// The archive where none is named: `$WEIR_RECORDER`, of root `/var/lib/weir/recorder`, else
/// `$XDG_STATE_HOME/weir/recorder` or `~/.local/state/weir/recorder`.
pub fn default_dir() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(named) = variable("WEIR_RECORDER") {
        return Some(named);
    }
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from(OF_ROOT));
    }
    let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    Some(state.join("weir/recorder"))
}
