//! Lists of options, in sysbench's layout and weir's words.

use super::options::{self, Kind, Known};
use super::script::ScriptOption;

/// Lines of `  --name=FORM about [default]`, aligned, and an empty one.
pub fn list(options: &[Known]) -> String {
    lines(options.iter().map(|o| (o.name, o.kind, o.about, o.default)))
}

/// The options of a script, by name.
pub fn script(test: &str, options: &[ScriptOption]) -> String {
    let options = options.iter().map(|o| (o.name.as_str(), o.kind, o.about.as_str(), o.default.as_deref()));
    format!("{test} options:\n{}", lines(options))
}

fn lines<'a>(options: impl Iterator<Item = (&'a str, Kind, &'a str, Option<&'a str>)> + Clone) -> String {
    let width = options.clone().map(|(name, kind, ..)| name.len() + kind.form().len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, kind, about, default) in options {
        let shown = format!("{name}{}", kind.form());
        text.push_str(&format!("  --{shown:<width$} {about}"));
        if let Some(default) = default {
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
        "Usage:\n  sysbench [options]... [testname] [command]\n\nCommands implemented by most tests: prepare run \
         cleanup help\n\nGeneral options:\n{}Pseudo-Random Numbers Generator options:\n{}Log options:\n{}{}\
         General database options:\n\n{}\nCompiled-in database drivers:\n  mysql - MySQL driver\n  pgsql - \
         PostgreSQL driver\n\nmysql options:\n{}pgsql options:\n{}weir's options:\n{}\
         This is weir: of sysbench's built-in tests it takes fileio; and it takes sysbench's database scripts, by \
         name, and Lua scripts, by path:\n  {}\n\n\
         See 'sysbench <testname> help' for a list of options for each test, 'weir --help' for everything else.\n\n",
        list(options::GENERAL),
        list(options::RANDOM),
        list(options::LOG),
        list(options::LATENCY),
        list(options::DATABASE),
        list(options::MYSQL),
        list(options::PGSQL),
        list(options::WEIR),
        SCRIPTS.join(" "),
    )
}

/// The scripts that sysbench brings along.
pub const SCRIPTS: [&str; 11] = [
    "oltp_read_write",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
    "bulk_insert",
    "select_random_points",
    "select_random_ranges",
];
