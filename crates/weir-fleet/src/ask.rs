//! What is asked of the tables: which files, from when until when, and what becomes of damaged ones.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use anyhow::Context;
use jiff::Timestamp;
use rustix::system::sysinfo;
use serde::de::DeserializeOwned;
use weir_archive::Row;
use weir_cli::failure::usage;
use weir_core::units::Nanos;
use weir_fs::Private;
use weir_store::layout::MANY;
use weir_store::questions::{Parameters, Question};
use weir_store::tables::Fact;

use crate::archive::{Archive, Stored};
use crate::cells::{Answer, Failed};
use crate::cli::{Engine, Period};
use crate::engine::{self, Asked, Limits};
use crate::origin::Origin;
use crate::spark::Spark;

const DAY_S: i64 = 86_400;

/// Of so many days and weeks, for which there are files, the newest rows are looked for first.
const NEWEST_DAYS: usize = 2;

/// With fewer, a median deviation is chance.
const PEERS: u32 = 6;

/// The tables, opened for questions.
pub struct Asker {
    origin: Origin,
    /// As they were listed.
    listed: Vec<Stored>,
    /// Those that are not damaged.
    files: Vec<Stored>,
    memory_bytes: usize,
    /// Below it lies what does not fit into memory.
    spill: Archive,
    /// Where it is not the embedded engine that answers.
    spark: Option<Spark>,
}

/// Bytes.
fn machine_memory() -> u64 {
    let machine = sysinfo();
    machine.totalram * u64::from(machine.mem_unit)
}

impl Asker {
    /// Opens them. Damaged files are said and left out.
    ///
    /// # Errors
    /// Where there are none.
    pub fn open(results: &Path, engine: &Engine) -> anyhow::Result<Asker> {
        let origin = Origin::new(results, engine.bucket.as_deref())?;
        let files = origin.files()?;
        let memory = engine.memory.map_or_else(|| machine_memory() / 4, |memory| memory.0);
        let memory_bytes = usize::try_from(memory).unwrap_or(usize::MAX);
        let spark = Spark::new(&engine.spark, &origin)?;
        // Beside the tables: what is spilled may be as large as they are, and /tmp may be memory.
        let spill = Archive::below(results);
        Ok(Asker { origin, listed: files.clone(), files, memory_bytes, spill, spark })
    }

    /// Asks. Where a compaction took files away meanwhile, those in their place are asked; where a file turns out to be damaged inside, it
    /// is said, and all others are asked again.
    ///
    /// # Errors
    /// A mistake in the SQL, too little memory, a full disk.
    pub fn ask(&mut self, sql: &str) -> anyhow::Result<Answer> {
        self.answer(&Asked { sql, piecewise: &[] }, &|_| true)
    }

    /// Asks those files that are meant.
    fn answer(&mut self, asked: &Asked<'_>, is_meant: &dyn Fn(&Stored) -> bool) -> anyhow::Result<Answer> {
        engine::refuse_all_but_questions(asked.sql)?;
        loop {
            let meant: Vec<Stored> = self.files.iter().filter(|file| is_meant(file)).cloned().collect();
            let answer = self.once(asked, &meant);
            let again = match &answer {
                // The engine takes a file that is gone for an empty one.
                Ok(_) => !self.origin.has_all(&meant) && self.lists_anew()?,
                Err(Failed::Files(_)) => self.lists_anew()? || self.drops_damaged(&meant),
                Err(_) => false,
            };
            if !again {
                return Ok(answer?);
            }
        }
    }

    /// Whether there are other files now than those that were listed.
    fn lists_anew(&mut self) -> anyhow::Result<bool> {
        let listed = self.origin.files()?;
        let are_others = listed != self.listed;
        if are_others {
            (self.files, self.listed) = (listed.clone(), listed);
        }
        Ok(are_others)
    }

    /// Whether some of these are damaged inside.
    fn drops_damaged(&mut self, asked: &[Stored]) -> bool {
        let damaged = self.origin.damaged(asked);
        self.files.retain(|file| !damaged.contains(file));
        !damaged.is_empty()
    }

    fn once(&mut self, asked: &Asked<'_>, files: &[Stored]) -> Result<Answer, Failed> {
        if let Some(spark) = &mut self.spark {
            return spark.ask(files, asked.sql);
        }
        let spill = self
            .spill
            .make("")
            .and_then(|folder| Private::make(&folder, SPILL))
            .context("no folder for what does not fit into memory")
            .map_err(Failed::Other)?;
        // By its descriptor: whoever owns a folder above it may lead its path elsewhere meanwhile.
        let open = format!("/proc/self/fd/{}", spill.dir().as_fd().as_raw_fd());
        let limits = Limits { memory_bytes: self.memory_bytes, spill: open.into() };
        let answer = engine::ask(&self.origin, files, asked, &limits);
        spill.remove().map_err(|error| Failed::Other(error.into()))?;
        answer
    }

    /// The rows of a question, as a type.
    ///
    /// # Errors
    /// As [`Asker::ask`].
    pub fn rows<T: DeserializeOwned>(
        &mut self,
        question: Question,
        with: &Parameters,
    ) -> anyhow::Result<Vec<T>> {
        let asked = Asked { sql: &question.sql(with), piecewise: question.piecewise() };
        // Facts hold until they change, and clocks may be off by a day.
        let facts_only = question == Question::Drift;
        let answer = self.answer(&asked, &|file| {
            let in_time = file.place.day_s < with.until_s && file.place.end_s() > with.from_s - DAY_S;
            file.place.kind == Fact::TABLE.name || (!facts_only && in_time)
        })?;
        let rows = answer.objects().into_iter().map(serde_json::from_value);
        rows.collect::<Result<Vec<T>, _>>()
            .with_context(|| format!("rows of `{}` that do not fit", question.name()))
    }

    /// From when until when, as was typed; else until the newest hour that half of the hosts have.
    ///
    /// # Errors
    /// A time that is none.
    pub fn parameters(&mut self, period: &Period, question: Question) -> anyhow::Result<Parameters> {
        let until_s = match &period.until {
            Some(time) => seconds(time)?,
            None => self.newest()? + 3_600,
        };
        let last = period.last.unwrap_or(Nanos(1_000_000_000 * DAY_S as u64 * days(question)));
        let from_s = match &period.since {
            Some(time) => seconds(time)?,
            None => until_s - (last.0 / 1_000_000_000) as i64,
        };
        // Rows are of whole hours.
        let (from_s, until_s) = (from_s - from_s.rem_euclid(3_600), until_s);
        if from_s >= until_s {
            return Err(usage("the time ends before it begins", "--since TIME --until TIME, or --last 3d"));
        }
        Ok(Parameters {
            from_s,
            until_s,
            at_s: from_s + (until_s - from_s) / 2,
            peers: period.peers.unwrap_or(PEERS),
        })
    }

    /// The newest hour that half of the hosts have: one whose clock is months ahead does not decide what is now. The newest files are
    /// asked first, since a fleet's months are long to read.
    fn newest(&mut self) -> anyhow::Result<i64> {
        // How many there are: those with facts, or with files of their own. Files of many without facts say nothing: then all rows are
        // looked at.
        let named = self.files.iter().map(|file| &file.place.host).filter(|host| *host != MANY);
        let named = named.collect::<BTreeSet<_>>().len() as i64;
        let with_facts = self.number("SELECT COUNT(DISTINCT host) AS n FROM facts", &|_| true)?.unwrap_or(0);
        let is_unsaid = with_facts == 0 && self.files.iter().any(|file| file.place.host == MANY);
        let hosts = if is_unsaid { 0 } else { named.max(with_facts) };
        // Each table by itself first: the engine takes a fifth of the time for that.
        let of_table = |table| format!("SELECT host, MAX(ts) AS m FROM {table} GROUP BY host");
        let of_tables = ["stages", "syncs", "facts"].map(of_table).join(" UNION ALL ");
        let of_half = format!(
            "SELECT m FROM (SELECT m, ROW_NUMBER() OVER (ORDER BY m DESC, host) AS rn, COUNT(*) OVER () AS n
                FROM (SELECT host, MAX(m) AS m FROM ({of_tables}) t GROUP BY host) t) t
            WHERE 2 * rn > CASE WHEN n > {hosts} THEN n ELSE {hosts} END ORDER BY rn LIMIT 1"
        );
        let mut days: Vec<i64> = self.files.iter().map(|file| file.place.end_s()).collect();
        days.sort_unstable_by(|one, other| other.cmp(one));
        days.dedup();
        let mut newest = None;
        for some in (0..).map(|power| NEWEST_DAYS << power) {
            let oldest = days.get(some).copied().filter(|_| hosts > 0);
            let is_new = |file: &Stored| oldest.is_none_or(|oldest| file.place.end_s() > oldest);
            newest = self.number(&of_half, &is_new)?;
            // A file of a week may end after those of single days that hold later rows.
            if oldest.is_none() || newest >= oldest {
                break;
            }
        }
        let newest = newest.or(days.first().copied()).unwrap_or(0);
        Ok(newest - newest.rem_euclid(3_600))
    }

    fn number(&mut self, sql: &str, is_meant: &dyn Fn(&Stored) -> bool) -> anyhow::Result<Option<i64>> {
        let answer = self.answer(&Asked { sql, piecewise: &[] }, is_meant)?;
        Ok(answer.rows.first().and_then(|row| row.first()?.as_i64()))
    }
}

/// The folder for what is spilled.
const SPILL: &str = "spill";

fn days(question: Question) -> u64 {
    match question {
        Question::Latency => 1,
        Question::Slow | Question::Windows | Question::Loads | Question::Peers => 3,
        Question::Change => 14,
        Question::Drift | Question::Capacity | Question::Tails => 30,
    }
}

/// A day, or a time of RFC 3339, as s since 1970.
pub fn seconds(text: &str) -> anyhow::Result<i64> {
    let day = weir_store::layout::day_s(text);
    let time = || text.parse::<Timestamp>().ok().map(|time| time.as_second());
    day.or_else(time).ok_or_else(|| {
        usage(format!("expected a time such as 2026-11-25 or 2026-11-25T02:30:00Z, got `{text}`"), "")
    })
}

#[cfg(test)]
mod tests {
    use weir_store::layout::Place;
    use weir_store::tables::Sync;

    use super::*;
    use crate::archive;
    use crate::cli::{FolderArgs, SparkArgs};

    #[test]
    fn a_compaction_meanwhile_takes_no_row_from_an_answer() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::below(folder.path());
        for n in 0..3 {
            let host = format!("db{n}");
            let place = Place::of(Sync::TABLE, 0, &host);
            let file = archive.make(&place.folder()).unwrap().beside("a.parquet", 0o600).unwrap();
            let mut writer = archive::writer(file, Sync::TABLE).unwrap();
            let row = Sync { host, n: 1, ..Sync::default() };
            writer.group(&Sync::batch(&[row])).unwrap();
            writer.finish().unwrap().commit().unwrap();
        }
        let spark = SparkArgs { spark: None, spark_token: None, spark_ca: None, spark_store: None };
        let engine = Engine { memory: None, bucket: None, spark, folder: FolderArgs { into: None } };
        let mut asker = Asker::open(folder.path(), &engine).unwrap();
        let mut hosts = || asker.ask("SELECT host FROM syncs ORDER BY host").unwrap().rows.len();
        assert_eq!(hosts(), 3);
        let compacted = archive.lock().unwrap().compact().unwrap();
        assert_eq!((compacted.from, compacted.to), (3, 1));
        assert_eq!(hosts(), 3);
    }
}
