//! What can be typed after `weir guard exec`.

const NOTES: &str = "\
A guard that runs on this machine (weir guard run) then holds the command alone, by memory.high, io.max and cpu.max of \
its cgroup, and no other writer with it. Where systemd runs, the cgroup is a scope of the system's manager, or of the user's \
without root; elsewhere it lies beside this process's own cgroup. What cannot be had is said, and the command runs all the \
same.

Standard input and output are the command's, and so is the exit code (128 + signal where a signal ended it). SIGTERM, SIGHUP, \
SIGUSR1 and SIGUSR2 are passed on to it.

Examples:
  weir guard exec -- pg_dump -f /backup/db.sql db
  weir guard exec --slice backup.slice -- tar cf /backup/home.tar /home";

/// Arguments of `weir guard exec`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The slice that the scope lies in; without systemd, the cgroup by its path below the root
    #[arg(long, value_name = "NAME")]
    pub slice: Option<String>,
    /// Say nothing while it runs
    #[arg(long, short)]
    pub quiet: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
