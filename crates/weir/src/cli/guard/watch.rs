//! What can be typed after `weir guard watch`.

use weir_core::units::Nanos;

/// Arguments of `weir guard watch`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
On a terminal a screen that q ends; else plain lines. The guard is asked over its socket: $WEIR_RUN/guard.sock, or \
/run/weir/guard.sock; without root first that of the user's own, in $XDG_RUNTIME_DIR/weir or /tmp/weir-UID.

Examples:
  weir guard watch
  weir guard watch --duration 1m > course.txt
  weir guard watch --json | jq '.devices[].second'")]
pub struct Args {
    /// End after this time
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// As JSON Lines of schema weir.guard.state/1, one a second
    #[arg(long)]
    pub json: bool,
}
