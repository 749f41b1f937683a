//! What a command in a cgroup of its own writes, and why not more.

use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fs, io};

use weir_core::units::{Bytes, limit, megabytes_per_second};
use weir_host::Host;
use weir_knobs::Value;

use super::place::lacks_of;

/// What is said where there is no io.stat.
const NOT_COUNTED: &str = "its cgroup does not count what it writes (no io controller)";
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
    tells_lacks: bool,
    began: Instant,
    last: Option<(Instant, Counts)>,
    held_s: f64,
    written_bytes: Option<u64>,
}

/// What the cgroup counts since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    /// `None` where no io controller counts it.
    written_bytes: Option<u64>,
    io_stall_us: u64,
}

/// What is in force for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Limits {
    high: Option<u64>,
    pace: Option<u64>,
    /// Processor time in each period, in microseconds.
    quota: Option<(u64, u64)>,
}

impl Watch {
    /// Of a command that has just been started. `tells_lacks`: its cgroup is not known yet, nor what it lacks.
    pub fn begin(host: &Host, pid: u32, name: &str, tells_lacks: bool) -> Watch {
        let own = host.cgroup_folders().map(|(_, own)| own);
        let name = name.rsplit('/').next().unwrap_or(name).to_string();
        Watch {
            name,
            pid,
            host: host.clone(),
            own,
            folder: None,
            tells_lacks,
            began: Instant::now(),
            last: None,
            held_s: 0.0,
            written_bytes: None,
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
        let waits = counts.io_stall_us.saturating_sub(before.io_stall_us) as f64 / 1e6 / seconds;
        let writes = match counts.written_bytes {
            Some(bytes) => {
                let since = bytes.saturating_sub(before.written_bytes.unwrap_or(0));
                format!("writes {}, {} so far", megabytes_per_second(since as f64 / seconds), Bytes(bytes))
            }
            None => format!("runs; {NOT_COUNTED}"),
        };
        Some(format!("{} {writes}; {}", self.name, why(limits, waits)))
    }

    /// Which limits its cgroup does not have, once, as soon as it is there.
    pub fn lacks(&mut self) -> Vec<String> {
        match &self.folder {
            Some(folder) if std::mem::take(&mut self.tells_lacks) => {
                lacks_of(folder, folder.parent().unwrap_or(folder))
            }
            _ => Vec::new(),
        }
    }

    /// What became of it.
    pub fn last_words(&self) -> Vec<String> {
        if self.last.is_none() {
            return Vec::new();
        }
        let seconds = self.began.elapsed().as_secs_f64();
        let held = match self.held_s {
            0.0 => "nothing held it".to_string(),
            held => format!("held by a guard for {held:.0} s of it"),
        };
        let did = match self.written_bytes {
            Some(bytes) => {
                let rate = megabytes_per_second(bytes as f64 / seconds.max(1e-3));
                format!("wrote {} in {seconds:.0} s ({rate})", Bytes(bytes))
            }
            None => format!("took {seconds:.0} s; {NOT_COUNTED}"),
        };
        vec![format!("{} {did}; {held}", self.name)]
    }
}

/// Why it does not write more.
fn why(limits: Limits, waits: f64) -> String {
    match limits {
        Limits { quota: Some((quota, period)), .. } => {
            let percent = 100.0 * quota as f64 / period.max(1) as f64;
            format!(
                "a guard lets it run {percent:.1} % of a processor (cpu.max), so that syncs keep their rate"
            )
        }
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
    let most = |io: String| io.lines().filter_map(|line| word(line, "wbytes=")).max().unwrap_or(0);
    let written_bytes = text("io.stat").ok().map(most);
    let pressure = text("io.pressure").unwrap_or_default();
    let full = pressure.lines().find(|line| line.starts_with("full"));
    fs::metadata(folder)?;
    let io_stall_us = full.and_then(|line| word(line, "total=")).unwrap_or(0);
    Ok(Counts { written_bytes, io_stall_us })
}

fn limits(folder: &Path) -> Limits {
    let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    let pace = text("io.max").lines().filter_map(|line| word(line, "wbps=")).min();
    let quota = text("cpu.max").trim().parse().ok().and_then(|value: Value| value.quota());
    Limits { high: text("memory.high").trim().parse().ok(), pace, quota }
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
            ("cpu.max", "max 100000\n"),
        ] {
            fs::write(folder.path().join(file), text).unwrap();
        }
        assert_eq!(counts(folder.path()).unwrap(), Counts { written_bytes: Some(500), io_stall_us: 4 });
        assert_eq!(limits(folder.path()), Limits { pace: Some(30_000_000), ..Limits::default() });
        fs::write(folder.path().join("cpu.max"), "1003 200600\n").unwrap();
        assert_eq!(limits(folder.path()).quota, Some((1003, 200_600)));
        assert!(counts(Path::new("/gone")).is_err());
    }

    /// A user's manager that has no io controller.
    #[test]
    fn what_is_not_counted_is_not_said_to_be_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = Watch::begin(&Host::at(folder.path()), 1, "dd", false);
        watch.folder = Some(folder.path().to_path_buf());
        let said: Vec<String> = [watch.sample(), watch.sample()].into_iter().flatten().collect();
        assert_eq!(
            said,
            ["dd runs; its cgroup does not count what it writes (no io controller); nothing holds it"]
        );
        let last = watch.last_words().join("");
        assert!(last.starts_with("dd took 0 s; its cgroup does not count"), "{last}");
        fs::write(folder.path().join("io.stat"), "").unwrap();
        assert!(watch.sample().unwrap().contains("0 B so far"), "nothing yet");
    }

    #[test]
    fn why_not_more_is_said() {
        let paced = Limits { high: Some(1), pace: Some(30_000_000), ..Limits::default() };
        let bounded = Limits { high: Some(48_000_000), ..Limits::default() };
        let slowed = Limits { high: Some(1), quota: Some((1003, 200_600)), ..Limits::default() };
        for (limits, waits, says) in [
            (paced, 1.0, "lets 30.0 MB/s through"),
            (bounded, 1.0, "(memory.high 48 MB)"),
            (slowed, 1.0, "lets it run 0.5 % of a processor (cpu.max)"),
            (Limits::default(), 0.9, "nothing holds it but the device"),
            (Limits::default(), 0.1, "nothing holds it"),
        ] {
            assert!(why(limits, waits).contains(says), "{}", why(limits, waits));
        }
    }
}
