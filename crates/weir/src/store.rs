//! The store of records: one JSON file a run in a folder under the XDG state home, written beside and renamed into
//! place, so that a kill at any moment leaves either the whole record or none.

use std::path::PathBuf;

use weir_core::result::Record;

/// A folder of records.
pub struct Store {
    /// The folder.
    pub dir: PathBuf,
}

impl Store {
    /// `$WEIR_STORE`, else `$XDG_STATE_HOME/weir/runs`, else `~/.local/state/weir/runs`.
    pub fn open() -> anyhow::Result<Store> {
        anyhow::bail!("the store is not there yet")
    }

    /// Saves a record durably and returns its path.
    pub fn save(&self, record: &Record) -> anyhow::Result<PathBuf> {
        let _ = (record, &self.dir);
        anyhow::bail!("the store is not there yet")
    }
}
