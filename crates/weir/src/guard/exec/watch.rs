//! What a command in a cgroup of its own writes, and why not more.

use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fs, io};

use weir_core::units::{Bytes, limit, megabytes_per_second};
use weir_host::Host;

/// From this share of the time on it is told what a command waits for.
const WAITS: f64 = 0.5;

/// A command, looked at once a second.
pub struct Watch {
    name: String,
    pid: u32,
    host: Host,
    /// Of this process: the command is elsewhere once it is not there.
    own: Option<PathBuf>,
    folder: Option<PathBuf>,
    began: Instant,
    last: Option<(Instant, Counts)>,
    held_s: f64,
    written_bytes: u64,
}

/// What the cgroup counts since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    written_bytes: u64,
    io_stall_us: u64,
}

/// What is in force for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Limits {
    high: Option<u64>,
    pace: Option<u64>,
}

impl Watch {
    /// Of a command that has just been started.
    pub fn begin(host: &Host, pid: u32, name: &str) -> Watch {
        let own = host.cgroup_folders().map(|(_, own)| own);
        let name = name.rsplit('/').next().unwrap_or(name).to_string();
        Watch {
            name,
            pid,
            host: host.clone(),
            own,
            folder: None,
            began: Instant::now(),
            last: None,
            held_s: 0.0,
            written_bytes: 0,
        }
    }

    /// A line about the last second, once the command is in its cgroup.
    pub fn sample(&mut self) -> Option<String> {
        if self.folder.is_none() {
            let folder = self.host.cgroup_folder_of(self.pid);
            self.folder = folder.filter(|folder| Some(folder) != self.own.as_ref());
        }
        let folder = self.folder.as_ref()?;
        let (now, counts) = (Instant::now(), counts(folder).ok()?);
        self.written_bytes = counts.written_bytes;
        let (then, before) = self.last.replace((now, counts))?;
        let seconds = now.duration_since(then).as_secs_f64().max(1e-3);
        let limits = limits(folder);
        if limits != Limits::default() {
            self.held_s += seconds;
        }
        let written = counts.written_bytes.saturating_sub(before.written_bytes);
        let waits = counts.io_stall_us.saturating_sub(before.io_stall_us) as f64 / 1e6 / seconds;
        Some(format!(
            "{} writes {}, {} so far; {}",
            self.name,
            megabytes_per_second(written as f64 / seconds),
            Bytes(counts.written_bytes),
            why(limits, waits)
        ))
    }

    /// What became of it.
    pub fn last_words(&self) -> Vec<String> {
        if self.last.is_none() {
            return Vec::new();
        }
        let seconds = self.began.elapsed().as_secs_f64();
        let rate = megabytes_per_second(self.written_bytes as f64 / seconds.max(1e-3));
        let held = match self.held_s {
            0.0 => "nothing held it".to_string(),
            held => format!("held by a guard for {held:.0} s of it"),
        };
        vec![format!("{} wrote {} in {seconds:.0} s ({rate}); {held}", self.name, Bytes(self.written_bytes))]
    }
}

/// Why it does not write more.
fn why(limits: Limits, waits: f64) -> String {
    match limits {
        Limits { pace: Some(pace), .. } => {
            format!(
                "a guard lets {} through (io.max), so that syncs keep their rate",
                megabytes_per_second(pace as f64)
            )
        }
        Limits { high: Some(high), .. } => {
            format!(
                "a guard bounds its dirty pages (memory.high {}), so that syncs keep their rate",
                limit(Bytes(high))
            )
        }
        _ if waits > WAITS => "nothing holds it but the device".to_string(),
        _ => "nothing holds it".to_string(),
    }
}

fn counts(folder: &Path) -> io::Result<Counts> {
    let text = |file: &str| fs::read_to_string(folder.join(file));
    // A device and one mapped over it count the same bytes.
    let io = text("io.stat").unwrap_or_default();
    let written = io.lines().filter_map(|line| word(line, "wbytes=")).max();
    let pressure = text("io.pressure").unwrap_or_default();
    let full = pressure.lines().find(|line| line.starts_with("full"));
    fs::metadata(folder)?;
    let io_stall_us = full.and_then(|line| word(line, "total=")).unwrap_or(0);
    Ok(Counts { written_bytes: written.unwrap_or(0), io_stall_us })
}

fn limits(folder: &Path) -> Limits {
    let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    let pace = text("io.max").lines().filter_map(|line| word(line, "wbps=")).min();
    Limits { high: text("memory.high").trim().parse().ok(), pace }
}

/// The number of a word `key=number`.
fn word(line: &str, key: &str) -> Option<u64> {
    line.split_whitespace().find_map(|word| word.strip_prefix(key)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_writes_and_what_holds_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("io.stat", "7:0 rbytes=1 wbytes=500 rios=1\n253:0 rbytes=1 wbytes=400"),
            ("io.pressure", "some avg10=0 avg60=0 avg300=0 total=9\nfull avg10=0 avg60=0 avg300=0 total=4"),
            ("io.max", "7:0 rbps=max wbps=30000000 riops=max wiops=max"),
            ("memory.high", "max\n"),
        ] {
            fs::write(folder.path().join(file), text).unwrap();
        }
        assert_eq!(counts(folder.path()).unwrap(), Counts { written_bytes: 500, io_stall_us: 4 });
        assert_eq!(limits(folder.path()), Limits { high: None, pace: Some(30_000_000) });
        assert!(counts(Path::new("/gone")).is_err());
    }

    #[test]
    fn why_not_more_is_said() {
        let (paced, bounded) =
            (Limits { high: Some(1), pace: Some(30_000_000) }, Limits { high: Some(48_000_000), pace: None });
        for (limits, waits, says) in [
            (paced, 1.0, "lets 30.0 MB/s through"),
            (bounded, 1.0, "(memory.high 48 MB)"),
            (Limits::default(), 0.9, "nothing holds it but the device"),
            (Limits::default(), 0.1, "nothing holds it"),
        ] {
            assert!(why(limits, waits).contains(says), "{}", why(limits, waits));
        }
    }
}
