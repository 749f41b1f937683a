//! What is asked of the tables: which files, from when until when, and what becomes of damaged ones.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use anyhow::Context;
use jiff::Timestamp;
use rustix::system::sysinfo;
use serde::de::DeserializeOwned;
use weir_cli::failure::usage;
use weir_core::units::Nanos;
use weir_fs::Private;
use weir_store::layout::MANY;
use weir_store::questions::{Parameters, Question};

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
        Ok(Asker { origin, files, memory_bytes, spill, spark })
    }

    /// Asks. Where a file turns out to be damaged inside, it is said, and all others are asked again.
    ///
    /// # Errors
    /// A mistake in the SQL, too little memory, a full disk.
    pub fn ask(&mut self, sql: &str) -> anyhow::Result<Answer> {
        self.answer(&Asked { sql, piecewise: &[] })
    }

    fn answer(&mut self, asked: &Asked<'_>) -> anyhow::Result<Answer> {
        engine::refuse_all_but_questions(asked.sql)?;
        match self.once(asked) {
            Err(Failed::Files(_)) if self.origin.drop_damaged(&mut self.files) > 0 => Ok(self.once(asked)?),
            answer => Ok(answer?),
        }
    }

    fn once(&mut self, asked: &Asked<'_>) -> Result<Answer, Failed> {
        if let Some(spark) = &mut self.spark {
            return spark.ask(&self.files, asked.sql);
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
        let answer = engine::ask(&self.origin, &self.files, asked, &limits);
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
        self.only(question, with);
        let asked = Asked { sql: &question.sql(with), piecewise: question.piecewise() };
        let answer = self.answer(&asked)?;
        let rows = answer.objects().into_iter().map(serde_json::from_value);
        rows.collect::<Result<Vec<T>, _>>()
            .with_context(|| format!("rows of `{}` that do not fit", question.name()))
    }

    /// Leaves out files in which there can be nothing for a question. Facts hold until they change, and clocks may be off by a day.
    fn only(&mut self, question: Question, with: &Parameters) {
        let facts_only = question == Question::Drift;
        self.files.retain(|file| {
            let facts = file.place.kind == "facts";
            let in_time = file.place.day_s < with.until_s && file.place.end_s() > with.from_s - DAY_S;
            facts || (!facts_only && in_time)
        });
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
        let with_facts = self.number("SELECT COUNT(DISTINCT host) AS n FROM facts")?.unwrap_or(0);
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
            let rest: Vec<Stored> = self.files.extract_if(.., |file| !is_new(file)).collect();
            let asked = self.number(&of_half);
            self.files.extend(rest);
            newest = asked?;
            // A file of a week may end after those of single days that hold later rows.
            if oldest.is_none() || newest >= oldest {
                break;
            }
        }
        let newest = newest.or(days.first().copied()).unwrap_or(0);
        Ok(newest - newest.rem_euclid(3_600))
    }

    fn number(&mut self, sql: &str) -> anyhow::Result<Option<i64>> {
        Ok(self.ask(sql)?.rows.first().and_then(|row| row.first()?.as_i64()))
    }
}

/// The folder for what is spilled.
const SPILL: &str = "spill";

fn days(question: Question) -> u64 {
    match question {
        Question::Latency => 1,
        Question::Slow | Question::Windows | Question::Loads => 3,
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
