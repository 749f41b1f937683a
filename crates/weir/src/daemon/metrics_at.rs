//! Where metrics are offered.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::failure::Usage;

/// Where metrics are offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricsAt {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl FromStr for MetricsAt {
    type Err = String;

    fn from_str(text: &str) -> Result<MetricsAt, String> {
        match text.strip_prefix("unix:") {
            Some(path) if Path::new(path).is_absolute() => Ok(MetricsAt::Unix(PathBuf::from(path))),
            Some(path) => Err(format!("expected an absolute path, got `{path}`")),
            None => text
                .parse()
                .map(MetricsAt::Tcp)
                .map_err(|_| "expected an address and port such as 127.0.0.1:9750, or unix:PATH".to_string()),
        }
    }
}

impl fmt::Display for MetricsAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetricsAt::Tcp(address) => write!(f, "{address}"),
            MetricsAt::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl MetricsAt {
    /// Refuses an address that other hosts can reach, unless it is `for_others`.
    ///
    /// # Errors
    /// When they can.
    pub fn check(&self, for_others: bool) -> Result<(), Usage> {
        match self {
            MetricsAt::Tcp(address) if !address.ip().is_loopback() && !for_others => Err(Usage {
                what: format!(
                    "metrics on {address} are readable by every host that reaches it, without a \
                     log-in"
                ),
                hint: Some("use 127.0.0.1 or unix:PATH, or add --metrics-for-others".to_string()),
            }),
            _ => Ok(()),
        }
    }
}
