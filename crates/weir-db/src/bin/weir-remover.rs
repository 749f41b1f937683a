//! What does away with throw-away servers of this crate's own tests when they end; elsewhere weir itself is it.

use std::process::ExitCode;

use weir_db::sandbox::{ARGUMENT, remover_main};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.as_slice() {
        [_, argument, rest @ ..] if argument == ARGUMENT => remover_main(rest),
        _ => ExitCode::from(2),
    }
}
