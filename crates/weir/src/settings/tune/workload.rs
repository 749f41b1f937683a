//! What a trial measures: a job from flags, a job file or a fileio command line, a database's transactions, or a command.

use std::path::PathBuf;

use clap::Parser;
use weir_core::units::Bytes;
use weir_core::workload::Job;
use weir_core::workload::draft::Draft;
use weir_core::workload::spec::{Access, BlockSize, Distribution, SyncMode, Target};
use weir_experiment::{CommandSpec, Transactions, Workload};
use weir_oltp::OltpSpec;
use weir_sysbench::{Log, Request};

use crate::cli::bench;
use crate::cli::db::connect::ConnectArgs;
use crate::cli::db::workload::RunArgs;
use crate::cli::tune::CommonArgs;
use crate::databases::Named;
use crate::experiments::{Entry, Measured, check_command};
use crate::failure::Usage;
use crate::settings::bench::{self as bench_settings, Source};
use crate::settings::db::workload as db_workload;

/// The workload where none is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Random writes of 16 KiB, each followed by fsync, through the page cache, from 10 threads.
    Commits,
    /// Reads and writes of 16 KiB over two files, each write followed by fdatasync, from 2 threads.
    Mixed,
}

impl Base {
    fn draft(self) -> Draft {
        let commits = Draft {
            access: Some(Access::Random(Distribution::Uniform)),
            read_percent: Some(0.0),
            block: Some(BlockSize::Fixed(Bytes(16 << 10))),
            threads: Some(10),
            direct: Some(false),
            // Each trial finds the file in memory as the one before left it.
            invalidate: Some(false),
            sync_every: Some(1),
            sync_mode: Some(SyncMode::Fsync),
            name: Some("commits".to_string()),
            ..Draft::default()
        };
        match self {
            Base::Commits => commits,
            Base::Mixed => Draft {
                read_percent: Some(60.0),
                threads: Some(2),
                sync_mode: Some(SyncMode::Fdatasync),
                name: Some("mixed".to_string()),
                ..commits
            },
        }
    }

    /// Files where none are typed. The folder may be typed: only a file or device has a size of its own.
    fn files(self, draft: Draft, args: &CommonArgs) -> Draft {
        if self != Base::Mixed || args.workload.place.file.is_some() || args.workload.place.device.is_some() {
            return draft;
        }
        let files = Draft { files: Some(2), size: Some(Bytes(512 << 20)), ..Draft::default() };
        draft.over(&files)
    }
}

/// What the machine says of the workload that was typed.
#[derive(Debug)]
pub enum Origin {
    /// Nothing: what was typed says all.
    Typed,
    /// The job of `--job`.
    Job(Source),
    /// The servers of `--db`.
    Database {
        /// The rest of what was typed there.
        line: Box<DbLine>,
        /// Their log-in.
        named: Named,
        /// Their name, without a password.
        server: String,
    },
}

/// The workload that is meant.
pub fn read(
    args: &CommonArgs,
    base: Base,
    origin: Origin,
    notes: &mut Vec<String>,
) -> anyhow::Result<Measured> {
    let metrics = args.metric.iter().map(|text| metric(text)).collect::<anyhow::Result<Vec<_>>>()?;
    if let Some(command) = &args.command {
        return of_command(args, command, metrics);
    }
    let source = match origin {
        Origin::Database { line, named, server } => return Ok(of_db(*line, named, server, args)),
        Origin::Job(source) => Some(source),
        Origin::Typed => None,
    };
    if !metrics.is_empty() {
        let hint = Some("name a command with --command, or --a-command and --b-command".to_string());
        return Err(Usage { what: "--metric reads a command's output".to_string(), hint }.into());
    }
    let job = match (&args.fileio, source) {
        (Some(line), _) => of_fileio(line, args)?,
        (None, Some(source)) => of_bench(args, source, notes)?,
        (None, None) => of_flags(args, base)?,
    };
    let place = job.target.place().to_path_buf();
    Ok(Measured { workload: Workload::Job(Box::new(job)), place, database: None })
}

fn of_command(args: &CommonArgs, command: &str, metrics: Vec<(String, String)>) -> anyhow::Result<Measured> {
    if metrics.is_empty() {
        let hint = Some("such as --metric 'tps=tps = ([0-9.]+)'".to_string());
        return Err(Usage { what: "no --metric for the command's output".to_string(), hint }.into());
    }
    let spec = CommandSpec { command: command.to_string(), metrics };
    check_command(&spec).map_err(|what| Usage {
        what,
        hint: Some("the first group ( ) of the pattern is the number".to_string()),
    })?;
    let place = args.workload.place.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    Ok(Measured { workload: Workload::Command(spec), place, database: None })
}

/// `weir db run`'s command line, as clap takes it.
#[derive(Debug, clap::Parser)]
struct RunLine {
    #[command(flatten)]
    run: RunArgs,
}

/// What `--db` says.
#[derive(Debug)]
pub struct DbLine {
    /// The server.
    pub connect: ConnectArgs,
    spec: OltpSpec,
    any_maker: bool,
}

/// Reads the command line of `--db`.
pub fn db_line(line: &str) -> anyhow::Result<DbLine> {
    let words = std::iter::once("run")
        .chain(line.split_whitespace().skip_while(|word| ["weir", "db", "run"].contains(word)));
    let RunLine { run } = RunLine::try_parse_from(words).map_err(|error| {
        let said = error.to_string();
        let first = said.lines().next().unwrap_or_default().trim_start_matches("error: ").to_string();
        Usage {
            what: format!("--db: {first}"),
            hint: Some("it takes the options of `weir db run`".to_string()),
        }
    })?;
    let unused = [
        ("--script", run.lua.is_some(), "a user's script is measured with --command"),
        (
            "--transactions",
            run.workload.course.transactions.unwrap_or(0) > 0,
            "a trial ends after its time: --time",
        ),
        ("--no-trace", run.no_trace, "`weir tune --no-trace` is for all trials"),
    ];
    if let Some((option, _, instead)) = unused.into_iter().find(|(_, typed, _)| *typed) {
        let what = format!("--db: {option} has no effect in an experiment");
        return Err(Usage { what, hint: Some(instead.to_string()) }.into());
    }
    let spec = db_workload::spec(run.script, &run.workload);
    weir_oltp::validate::spec(&spec).map_err(bench_settings::usage)?;
    Ok(DbLine { connect: run.connect, spec, any_maker: run.workload.tables.sysbench_tables })
}

/// Transactions of a server that is there.
fn of_db(line: DbLine, named: Named, server: String, args: &CommonArgs) -> Measured {
    let typed = args.workload.place.dir.clone();
    let database = Some(Entry { named, any_maker: line.any_maker, at_data: typed.is_none() });
    let place = typed.unwrap_or_default();
    let workload = Workload::Transactions(Box::new(Transactions { spec: line.spec, server }));
    Measured { workload, place, database }
}

fn metric(text: &str) -> anyhow::Result<(String, String)> {
    let plain =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_.-".contains(c));
    match text.split_once('=') {
        Some((name, pattern)) if plain(name) => Ok((name.to_string(), pattern.to_string())),
        _ => Err(Usage {
            what: format!("expected NAME=REGEX, got `{text}`"),
            hint: Some("such as --metric 'tps=tps = ([0-9.]+)'".to_string()),
        }
        .into()),
    }
}

/// The job that flags mean, over the base's where they do not describe one of their own.
fn of_flags(args: &CommonArgs, base: Base) -> anyhow::Result<Job> {
    let own = args.workload.pattern.rw.is_some()
        || args.workload.pattern.read_percent.is_some()
        || args.workload.engine.engine.is_some();
    let draft = bench_settings::draft(&bench_args(args));
    let draft = if own { draft } else { base.files(draft.over(&base.draft()), args) };
    let mut job = draft.finish().map_err(bench_settings::usage)?;
    bench_settings::round_size(&mut job);
    Ok(job)
}

fn of_bench(args: &CommonArgs, source: Source, notes: &mut Vec<String>) -> anyhow::Result<Job> {
    let settings = bench_settings::bench(bench_args(args), source)?;
    notes.extend(settings.notes);
    if let [job] = &settings.jobs[..] {
        return Ok(job.clone());
    }
    let what = format!("an experiment measures one job, and the file has {}", settings.jobs.len());
    Err(Usage { what, hint: Some("leave one job in it; bulk writers beside it are --flood".to_string()) }
        .into())
}

fn bench_args(args: &CommonArgs) -> bench::Args {
    bench::Args { path: args.job.clone(), job: args.workload.clone(), ..bench::Args::default() }
}

/// Collects what the parser of sysbench's options says.
#[derive(Default)]
struct Said(String);

impl weir_sysbench::Console for Said {
    fn out(&mut self, text: &str) {
        self.0.push_str(text);
    }
    fn err(&mut self, text: &str) {
        self.0.push_str(text);
    }
}

/// sysbench's files are made in our folder and removed again: what `prepare` left is not needed.
fn of_fileio(line: &str, args: &CommonArgs) -> anyhow::Result<Job> {
    let mut words: Vec<String> = line.split_whitespace().map(String::from).collect();
    if words.first().is_some_and(|word| word.ends_with("sysbench")) {
        words.remove(0);
    }
    if !words.iter().any(|word| word == "fileio" || word == "--test=fileio") {
        words.insert(0, "fileio".to_string());
    }
    if words.last().is_none_or(|word| word != "run") {
        words.push("run".to_string());
    }
    let mut said = Said::default();
    let no_file = |path: &str| Err(format!("{path} is not read here"));
    let parsed = weir_sysbench::parse(&words, &no_file, &mut Log::new(&mut said));
    let Ok(Request::Run(settings)) = parsed else {
        let what = format!("--fileio: {}", said.0.trim().replace('\n', " "));
        return Err(Usage {
            what,
            hint: Some("it takes the options of `sysbench fileio … run`".to_string()),
        }
        .into());
    };
    let mut job = weir_sysbench::job::job(&settings, args.workload.pattern.seed.unwrap_or(1));
    if let Target::Files { dir, keep, .. } = &mut job.target {
        *dir = args.workload.place.dir.clone().unwrap_or_else(|| dir.clone());
        *keep = false;
    }
    Ok(job)
}
