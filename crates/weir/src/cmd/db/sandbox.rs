//! `weir db sandbox`: a throw-away server in the foreground, for as long as the user or a command wants it.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command as Process, ExitStatus};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use weir_cli::signals::{Unheard, hand_on, stop_on_signals};
use weir_core::stop::Stop;
use weir_db::sandbox::{self, Fate, Flavour, Listed, Sandbox, SandboxSpec};
use weir_report::text::table;

use crate::cli::db::sandbox::{Args, Command, ServerArgs};
use crate::databases::sandbox::{failed, mention_account, start};
use crate::failure::{Lacking, Outcome, ServerFailed, Usage};
use crate::output;

/// How often server and command are looked at.
const POLL: Duration = Duration::from_millis(50);

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    match args.command {
        Command::Mariadb(args) => serve(Flavour::Mariadb, &args),
        Command::Mysql(args) => serve(Flavour::Mysql, &args),
        Command::Postgres(args) => serve(Flavour::Postgres, &args),
        Command::List { json } => list(json),
        Command::Clean { folder: None } => clean(),
        Command::Clean { folder: Some(folder) } => clean_folder(&folder),
    }
}

/// Says what killed runs have left, and how it goes away.
pub fn mention_abandoned() {
    for left in sandbox::list().iter().filter(|listed| listed.abandoned) {
        let (flavour, dir) = (left.identity.flavour, left.dir.display());
        say!("weir: a killed weir left a {flavour} in {dir}: `weir db sandbox clean` removes it");
    }
}

fn serve(flavour: Flavour, args: &ServerArgs) -> anyhow::Result<Outcome> {
    let spec = SandboxSpec {
        flavour,
        dir: args.folder.clone().or_else(|| args.dir.clone()).unwrap_or_default(),
        above_id: None,
        take_up: true,
        variables: args.set.iter().cloned().collect(),
        memory: args.memory,
        keep: args.keep,
        binary: args.binary.clone(),
        root: args.root.clone(),
    };
    mention_abandoned();
    let stop = stop_on_signals()?;
    say!("weir: starts {flavour} in {}", spec.dir.display());
    let mut sandbox = start(&spec, &stop)?;
    mention_account(&sandbox);
    match args.command.split_first() {
        Some((program, arguments)) => beside(&mut sandbox, program, arguments, &stop),
        None => foreground(&mut sandbox, &stop),
    }
}

/// Until the user ends it.
fn foreground(sandbox: &mut Sandbox, stop: &Stop) -> anyhow::Result<Outcome> {
    output::print(&format!("socket   {}\nclient   {}\n", sandbox.socket().display(), sandbox.client()))?;
    let fate = if sandbox.keeps() { "ends the server and keeps its data" } else { "ends and removes it" };
    say!("weir: {} runs (process {}); Ctrl-C {fate}", sandbox.version(), sandbox.pid().unwrap_or_default());
    loop {
        if let Some(signal) = stop.requested() {
            return Ok(Outcome::Interrupted(signal));
        }
        if let Some(status) = sandbox.ended()? {
            return Err(gone(sandbox, status));
        }
        std::thread::sleep(POLL);
    }
}

/// As long as a command runs, whose exit code becomes weir's.
fn beside(
    sandbox: &mut Sandbox,
    program: &str,
    arguments: &[String],
    stop: &Stop,
) -> anyhow::Result<Outcome> {
    let started = Process::new(program).args(arguments).envs(sandbox.environment()).spawn();
    let mut child = started.map_err(|error| {
        let hint = (error.kind() == ErrorKind::NotFound).then(|| "is it installed, and on PATH?".to_string());
        Usage { what: format!("cannot start `{program}`: {error}"), hint }
    })?;
    let (mut unheard, mut told) = (Unheard::default(), false);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(match (stop.requested(), status.code(), status.signal()) {
                (Some(signal), _, _) => Outcome::Interrupted(signal),
                (None, Some(code), _) => Outcome::Code(code as u8),
                (None, None, signal) => Outcome::Code(128 + signal.unwrap_or(0) as u8),
            });
        }
        if let Some(signal) = unheard.signal(stop).filter(|_| !told) {
            hand_on(&child, if signal == 2 { SIGINT } else { SIGTERM });
            told = true;
        }
        if let Some(status) = sandbox.ended()? {
            hand_on(&child, SIGTERM);
            child.wait()?;
            return Err(gone(sandbox, status));
        }
        std::thread::sleep(POLL);
    }
}

/// The server ended without being told to.
fn gone(sandbox: &Sandbox, status: ExitStatus) -> anyhow::Error {
    let what = format!("{} ended by itself ({status})", sandbox.spec().flavour);
    let hint = sandbox.keeps().then(|| format!("its log: {}", sandbox.log().display()));
    ServerFailed { what, hint }.into()
}

fn list(json: bool) -> anyhow::Result<Outcome> {
    let all = sandbox::list();
    if json {
        let entry = |listed: &Listed| {
            serde_json::json!({
                "flavour": listed.identity.flavour,
                "dir": listed.dir,
                "run": listed.run,
                "pid": listed.identity.server.as_ref().map(|server| server.pid),
                "keep": listed.identity.keep,
                "abandoned": listed.abandoned,
            })
        };
        let text = serde_json::to_string_pretty(&all.iter().map(entry).collect::<Vec<_>>())?;
        output::print_exact(&format!("{text}\n"))?;
        return Ok(Outcome::Done);
    }
    if all.is_empty() {
        say!("weir: no throw-away server runs, and none was left");
        return Ok(Outcome::Done);
    }
    let heading = ["server", "state", "process", "folder"].map(str::to_string).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(all.iter().map(row)).collect();
    let mut text = String::new();
    table(&mut text, &rows, 4);
    output::print(&text)?;
    Ok(Outcome::Done)
}

fn row(listed: &Listed) -> Vec<String> {
    let server = listed.identity.running();
    let state = match (listed.abandoned, server) {
        (true, Some(_)) => "left, runs",
        (true, None) => "left",
        (false, _) => "in use",
    };
    let pid = server.map_or("-".to_string(), |server| server.pid.to_string());
    vec![listed.identity.flavour.to_string(), state.to_string(), pid, listed.dir.display().to_string()]
}

fn clean() -> anyhow::Result<Outcome> {
    let left: Vec<Listed> = sandbox::list().into_iter().filter(|listed| listed.abandoned).collect();
    if left.is_empty() {
        say!("weir: nothing was left");
    }
    let mut stay = Vec::new();
    for listed in &left {
        match sandbox::clean(listed) {
            Ok(fate) => {
                let what = format!("{} in {}", listed.identity.flavour, listed.dir.display());
                output::print(&removed(&what, fate))?;
            }
            Err(error) => {
                say!("weir: {error}");
                stay.push(listed);
            }
        }
    }
    if stay.is_empty() {
        return Ok(Outcome::Done);
    }
    let named = |path: fn(&Listed) -> &Path| {
        stay.iter().map(|listed| path(listed).display().to_string()).collect::<Vec<_>>().join(" ")
    };
    let what = format!("could not be ended or removed: {}", named(|listed| &listed.dir));
    let hint = format!(
        "run it again once that is possible; `rm -r {}` forgets what is left",
        named(|listed| &listed.run)
    );
    Err(Lacking { what, hint: Some(hint) }.into())
}

fn clean_folder(folder: &Path) -> anyhow::Result<Outcome> {
    let fate = sandbox::clean_folder(folder).map_err(failed)?;
    output::print(&removed(&format!("what was left in {}", folder.display()), fate))?;
    Ok(Outcome::Done)
}

fn removed(what: &str, fate: Fate) -> String {
    match fate {
        Fate::Removed => format!("removed {what}\n"),
        Fate::Kept => format!("removed {what}; its data stay\n"),
    }
}
