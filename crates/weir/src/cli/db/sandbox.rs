//! `weir db sandbox`.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};
use weir_core::units::Bytes;

/// Options of `sandbox`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The server listens on a Unix socket only, takes its superuser without a password, and ends with its data when \
weir ends, by Ctrl-C, with the command after `--`, or killed. Data that --keep left stay until you remove the folder. Variables have the server's defaults, except the buffer pool. Run by root it runs under a number that no account has, without any capability.

With --root the server comes from a folder, made by mmdebstrap or unpacked from a container's image, and sees \
nothing but that, its data and its socket. Nothing is written to the folder.

Examples:
  weir db sandbox mariadb /mnt/test/db
  weir db sandbox postgres /mnt/test/pg --memory 1G --keep \\
      --set max_wal_size=4GB
  weir db sandbox mysql /mnt/test/my --root /srv/trees/mysql-9.7
  weir db sandbox mariadb /dev/shm/db -- \\
      sh -c 'mariadb -u root -S \"$MYSQL_UNIX_PORT\" -e \"SHOW ENGINES\"'
  weir db sandbox list
  weir db sandbox clean
  weir db sandbox clean /mnt/test/db")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a throw-away MariaDB
    Mariadb(ServerArgs),
    /// Start a throw-away MySQL
    Mysql(ServerArgs),
    /// Start a throw-away PostgreSQL
    #[command(visible_alias = "postgresql")]
    Postgres(ServerArgs),
    /// Show running throw-away servers, and those that a killed weir left
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// End and remove servers that a killed weir left; data marked to keep stay
    Clean {
        /// The folder of one that the list does not show: the machine has crashed since
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: Option<PathBuf>,
    },
}

/// Options of a server.
#[derive(Debug, clap::Args)]
pub struct ServerArgs {
    /// The folder for its data: one that does not exist, an empty one, or one that --keep left
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "dir")]
    pub folder: Option<PathBuf>,
    /// The same
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "folder")]
    pub dir: Option<PathBuf>,
    /// A variable of the server; again for more
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub set: Vec<(String, String)>,
    /// Size of its buffer pool
    #[arg(long, value_name = "SIZE", default_value = "128M")]
    pub memory: Bytes,
    /// Leave the data where they are, for the next time; from then on they stay without it, too
    #[arg(long)]
    pub keep: bool,
    /// The server's binary [default: the one that is installed]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::ExecutablePath)]
    pub binary: Option<PathBuf>,
    /// A tree with a server that is not installed: the contents of a small /
    #[arg(long, value_name = "TREE", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
    /// Run this with MYSQL_UNIX_PORT or PGHOST, PGPORT, PGUSER and PGDATABASE set, and end with its exit code
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<String>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_string(), value.trim().to_string()))
        }
        _ => Err("a variable is set as NAME=VALUE".to_string()),
    }
}
