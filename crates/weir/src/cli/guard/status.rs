//! What can be typed after `weir guard status`.

/// Arguments of `weir guard status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The guard is asked over its socket: $WEIR_RUN/guard.sock, or /run/weir/guard.sock; without root first that of the user's own, in $XDG_RUNTIME_DIR/weir or /tmp/weir-UID.

Examples:
  weir guard status
  weir guard status --json | jq '.devices[].second'")]
pub struct Args {
    /// As JSON of schema weir.guard.state/1
    #[arg(long)]
    pub json: bool,
}
