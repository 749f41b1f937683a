//! Lists of options, in sysbench's layout and weir's words.

use super::options::{self, Known};

/// Lines of `  --name=FORM about [default]`, aligned, and an empty one.
pub fn list(options: &[Known]) -> String {
    let width = options.iter().map(|o| o.name.len() + o.kind.form().len()).max().unwrap_or(0);
    let mut text = String::new();
    for option in options {
        let shown = format!("{}{}", option.name, option.kind.form());
        text.push_str(&format!("  --{shown:<width$} {}", option.about));
        if let Some(default) = option.default {
            text.push_str(&format!(" [{default}]"));
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

/// What `fileio help` prints.
pub fn fileio() -> String {
    format!("fileio options:\n{}", list(options::FILEIO))
}

/// What `--help` prints.
pub fn general() -> String {
    format!(
        "Usage:\n  sysbench [options]... fileio [command]\n\nCommands: prepare run cleanup help\n\n\
         General options:\n{}Pseudo-Random Numbers Generator options:\n{}Log options:\n{}{}weir's options:\n{}\
         This is weir: it takes sysbench's fileio command lines, and no other test.\n\
         See 'sysbench fileio help' for the options of fileio, 'weir --help' for everything else.\n\n",
        list(options::GENERAL),
        list(options::RANDOM),
        list(options::LOG),
        list(options::LATENCY),
        list(options::WEIR),
    )
}
