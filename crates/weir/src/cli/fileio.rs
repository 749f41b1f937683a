//! What can be typed after `weir fileio`: sysbench's own options, which clap passes through untouched.

/// Arguments of `weir fileio`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// sysbench's options and one of prepare, run, cleanup, help
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "SYSBENCH-ARGS")]
    pub arguments: Vec<String>,
}
