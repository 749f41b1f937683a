//! What a sandbox's folder is: the one record by which a start, an end, the minder and `clean` decide what becomes of it.
//!
//! It lies in the folder itself, which outlives a boot. A lock beside it says whether the folder is in use: its weir has it,
//! and the minder from then until everything is removed. Of a folder whose lock is free:
//!
//! | it says | a start | `clean` |
//! |---|---|---|
//! | nothing, and it is empty | makes data | - |
//! | nothing | refuses it | - |
//! | kept, no server runs | takes the data up where it may, and they stay kept | - |
//! | kept, its server runs | says that it was left | ends the server |
//! | not kept, or not whole | says that it was left | ends the server and removes the data |

use serde::{Deserialize, Serialize};

use super::Flavour;
use super::process::ProcessId;

/// Value of [`Identity::schema`].
pub(super) const SCHEMA: &str = "weir.sandbox/1";

/// Says that a folder is a sandbox's, and what of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The form of this record.
    pub schema: String,
    /// Whose data lie in it.
    pub flavour: Flavour,
    /// What the server that made the data calls itself.
    pub version: String,
    /// The data directory has been made.
    pub initialised: bool,
    /// Its data stay when the server goes, from the first call that said so on. A version that wrote nothing of it kept some.
    #[serde(default = "unsaid")]
    pub keep: bool,
    /// The folder itself is weir's.
    #[serde(default)]
    pub made_dir: bool,
    /// Device and inode of the folder above where that is weir's, too, and holds folders of sandboxes alone.
    #[serde(default)]
    pub above_id: Option<(u64, u64)>,
    /// Numbers that own data: several while they are handed over from one to the next.
    #[serde(default)]
    pub accounts: Vec<u32>,
    /// The server that was started last.
    #[serde(default)]
    pub server: Option<ProcessId>,
}

fn unsaid() -> bool {
    true
}

impl Identity {
    /// Whether it holds data that are to stay.
    pub fn is_kept(&self) -> bool {
        self.keep && self.initialised
    }

    /// Its server, if that runs.
    pub fn running(&self) -> Option<&ProcessId> {
        self.server.as_ref().filter(|server| server.is_alive())
    }
}
