//! What can be typed after `weir fileio` and `weir sysbench`: sysbench's own options, which clap passes through untouched.

/// Arguments of both.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// sysbench's options, its test where weir does not name it, and one of prepare, run, cleanup, help
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "SYSBENCH-ARGS")]
    pub arguments: Vec<String>,
}
