//! Every option that sysbench 1.0.20 takes with `fileio` and with databases, the spellings of 0.4.12, and weir's own
//! two.

/// How an option's value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bare, `on`, `true`, `1`; `off`, `false`, `0`.
    Flag,
    /// A whole decimal number of 32 bits.
    Int,
    /// Digits and one of `KMGT`.
    Size,
    /// A decimal number.
    Double,
    /// Anything.
    Text,
    /// Texts separated by commas.
    List,
    /// A file of options, read when met.
    File,
}

impl Kind {
    /// The form of the value in lists of options.
    pub fn form(self) -> &'static str {
        match self {
            Kind::Flag => "[=on|off]",
            Kind::Int | Kind::Double => "=N",
            Kind::Size => "=SIZE",
            Kind::Text => "=STRING",
            Kind::List => "=[LIST,...]",
            Kind::File => "=FILENAME",
        }
    }
}

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Name, with dashes.
    pub name: &'static str,
    /// How its value is read.
    pub kind: Kind,
    /// Its value when not given; `None` shows no default.
    pub default: Option<&'static str>,
    /// One line for lists of options.
    pub about: &'static str,
}

const fn known(name: &'static str, kind: Kind, default: Option<&'static str>, about: &'static str) -> Known {
    Known { name, kind, default, about }
}

use Kind::{Double, File, Flag, Int, List, Size, Text};

/// Options of every test.
pub const GENERAL: &[Known] = &[
    known("threads", Int, Some("1"), "threads, each with its own connection or files"),
    known("events", Int, Some("0"), "stop after this many events (0: no limit)"),
    known("time", Int, Some("10"), "stop after this many seconds (0: no limit)"),
    known(
        "forced-shutdown",
        Text,
        Some("off"),
        "give up on stuck I/O this long after --time: seconds, a percentage of --time, or off",
    ),
    known("thread-stack-size", Size, Some("64K"), "accepted; weir sizes its stacks itself"),
    known(
        "rate",
        Int,
        Some("0"),
        "events per second, arriving as a Poisson process (0: as fast as possible)",
    ),
    known("report-interval", Int, Some("0"), "print a line every so many seconds (0: none)"),
    known(
        "report-checkpoints",
        List,
        Some(""),
        "print a whole report at these seconds and count anew from there",
    ),
    known("debug", Flag, Some("off"), "print every request and what each thread did"),
    known("validate", Flag, Some("off"), "write checksums and check what is read"),
    known("help", Flag, Some("off"), "print this and exit"),
    known("version", Flag, Some("off"), "print the version and exit"),
    known("config-file", File, None, "read options from a file, one name=value a line"),
    known("tx-rate", Int, Some("0"), "old name of --rate"),
    known("max-requests", Int, Some("0"), "old name of --events"),
    known("max-time", Int, Some("0"), "old name of --time; 0 after --test= means no limit"),
    known("num-threads", Int, Some("1"), "old name of --threads"),
];

/// Options of random numbers. With fileio only the seed acts: its offsets are uniform.
pub const RANDOM: &[Known] = &[
    known(
        "rand-type",
        Text,
        Some("special"),
        "keys: uniform, gaussian, special or pareto; fileio is always uniform",
    ),
    known("rand-spec-iter", Int, Some("12"), "uniform numbers whose mean makes a bell"),
    known("rand-spec-pct", Int, Some("1"), "special: percentage of the keys in the middle"),
    known("rand-spec-res", Int, Some("75"), "special: percentage of the accesses that go there"),
    known("rand-seed", Int, Some("0"), "same seed, same operations in the same order (0: from the clock)"),
    known("rand-pareto-h", Double, Some("0.2"), "pareto: h of the keys get 1-h of the accesses"),
];

/// Options of the log.
pub const LOG: &[Known] =
    &[known("verbosity", Int, Some("3"), "0 fatal, 1 alert, 2 warning, 3 notice, 4 info, 5 debug")];

/// Options of latency statistics.
pub const LATENCY: &[Known] = &[
    known("percentile", Int, Some("95"), "percentile in sysbench's part of the report, 1-100 (0: none)"),
    known("histogram", Flag, Some("off"), "print the latency histogram"),
];

/// Options of fileio.
pub const FILEIO: &[Known] = &[
    known("file-num", Int, Some("128"), "number of files"),
    known("file-block-size", Int, Some("16384"), "bytes of each read and write; takes K and M"),
    known("file-total-size", Size, Some("2G"), "size of all files together"),
    known("file-test-mode", Text, None, "one of {seqwr, seqrewr, seqrd, rndrd, rndwr, rndrw}"),
    known("file-io-mode", Text, Some("sync"), "one of {sync,async,mmap}"),
    known("file-async-backlog", Int, Some("128"), "async: requests in flight per thread"),
    known("file-extra-flags", List, Some(""), "open files with {sync,dsync,direct}"),
    known("file-fsync-freq", Int, Some("100"), "sync all files after this many requests (0: do not)"),
    known("file-fsync-all", Flag, Some("off"), "sync after each write"),
    known("file-fsync-end", Flag, Some("on"), "sync all files at the end"),
    known("file-fsync-mode", Text, Some("fsync"), "one of {fsync, fdatasync}"),
    known("file-merged-requests", Int, Some("0"), "blocks in one sequential request (0: one)"),
    known("file-rw-ratio", Double, Some("1.5"), "rndrw: reads for each write"),
];

/// weir's own, and what 0.4.12 took and 1.0.20 refuses.
pub const WEIR: &[Known] = &[
    known("legacy-report", Flag, Some("off"), "report in the layout of sysbench 0.4.12"),
    known("weir-extra", Flag, Some("on"), "what weir adds after sysbench's report"),
    known("init-rng", Flag, Some("off"), "0.4.12: seed from the clock"),
    known("seed-rng", Int, Some("0"), "0.4.12: old name of --rand-seed"),
    known("batch", Flag, Some("off"), "0.4.12: accepted without effect; see --report-interval"),
    known("batch-delay", Int, Some("300"), "0.4.12: accepted without effect"),
];

/// Options of every database. Accepted with fileio too, without effect.
pub const DATABASE: &[Known] = &[
    known("db-driver", Text, Some("mysql"), "mysql (MariaDB too) or pgsql"),
    known("db-ps-mode", Text, Some("auto"), "prepared statements {auto, disable}"),
    known("db-debug", Flag, Some("off"), "print what the databases' drivers have measured"),
];

/// Options of `--db-driver=mysql`.
pub const MYSQL: &[Known] = &[
    known("mysql-host", List, Some("localhost"), "servers; connections take them in turn"),
    known("mysql-port", List, Some("3306"), "their ports"),
    known("mysql-socket", List, None, "Unix sockets, instead of hosts and ports"),
    known("mysql-user", Text, Some("sbtest"), "who logs in"),
    known("mysql-password", Text, Some(""), "the password; better left to an option file or MYSQL_PWD"),
    known("mysql-db", Text, Some("sbtest"), "the database"),
    known("mysql-ssl", Flag, Some("off"), "encrypted connections"),
    known("mysql-ssl-cipher", Text, Some(""), "accepted; weir's ciphers are those of TLS 1.2 and 1.3"),
    known("mysql-compression", Flag, Some("off"), "accepted; weir does not compress"),
    known("mysql-debug", Flag, Some("off"), "accepted without effect"),
    known(
        "mysql-ignore-errors",
        List,
        Some("1213,1020,1205"),
        "errors after which an event runs again, or all",
    ),
    known("mysql-dry-run", Flag, Some("off"), "send nothing, take every statement for done"),
];

/// Options of `--db-driver=pgsql`.
pub const PGSQL: &[Known] = &[
    known("pgsql-host", Text, Some("localhost"), "the server, or the folder of its socket"),
    known("pgsql-port", Int, Some("5432"), "its port"),
    known("pgsql-user", Text, Some("sbtest"), "who logs in"),
    known("pgsql-password", Text, Some(""), "the password; better left to PGPASSWORD or a password file"),
    known("pgsql-db", Text, Some("sbtest"), "the database"),
];

/// The options of databases.
pub fn database() -> impl Iterator<Item = &'static Known> {
    DATABASE.iter().chain(MYSQL).chain(PGSQL)
}

/// The options that are read before the test is known.
pub fn general() -> impl Iterator<Item = &'static Known> {
    GENERAL.iter().chain(RANDOM).chain(LOG).chain(LATENCY).chain(WEIR)
}

/// How the value of a general option is read; `-` and `_` are the same in names.
pub fn general_kind(name: &str) -> Option<Kind> {
    general().chain(database()).find(|known| same_name(known.name, name)).map(|known| known.kind)
}

/// How the value of an option of fileio is read.
pub fn fileio_kind(name: &str) -> Option<Kind> {
    FILEIO.iter().find(|known| same_name(known.name, name)).map(|known| known.kind)
}

/// Name and value of `name=value` or `name`.
pub(super) fn split(option: &str) -> (&str, Option<&str>) {
    match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    }
}

/// Whether two spellings are one name: `-` and `_` are the same.
pub(super) fn same_name(a: &str, b: &str) -> bool {
    let dash = |c: u8| if c == b'_' { b'-' } else { c };
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(x, y)| dash(x) == dash(y))
}
