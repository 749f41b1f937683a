//! Job files: TOML with several jobs, written by people. `docs/reference/jobfile.md` documents every key.

mod keys;
mod print;

use toml::de::{DeTable, DeValue};

use crate::workload::draft::{Draft, PREFIX, Place};
use crate::workload::spec::Job;
use crate::workload::text::nearest;
use crate::workload::validate::{self, SpecError};

pub use print::print;

/// A mistake in a job file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct JobFileError {
    /// Where, counted from 1.
    pub line: usize,
    /// The mistake.
    pub what: String,
    /// What may help.
    pub hint: Option<String>,
}

/// A parsed file whose jobs are not yet finished, so that flags can be laid over them.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftedJob {
    /// What the file states, defaults included.
    pub draft: Draft,
    /// Line of its `[[job]]`.
    pub line: usize,
}

const TABLES: &[&str] = &["defaults", "job"];

/// The jobs of a file, validated.
pub fn parse(text: &str) -> Result<Vec<Job>, JobFileError> {
    let finish = |drafted: DraftedJob| drafted.draft.finish().map_err(|error| at_line(drafted.line, error));
    let jobs: Vec<Job> = parse_drafts(text)?.into_iter().map(finish).collect::<Result<_, _>>()?;
    validate::together(&jobs).map_err(|error| at_line(1, error))?;
    Ok(jobs)
}

/// The jobs of a file as far as it states them. Each has a name of its own, and its files are named after it.
pub fn parse_drafts(text: &str) -> Result<Vec<DraftedJob>, JobFileError> {
    let document = DeTable::parse(text).map_err(|error| JobFileError {
        line: line_of(text, error.span().map_or(0, |span| span.start)),
        what: error.message().to_string(),
        hint: Some("a job file is TOML with the tables [defaults] and [[job]]".to_string()),
    })?;
    let mut defaults = Draft::default();
    let mut jobs = Vec::new();
    for (key, value) in document.get_ref() {
        let line = line_of(text, key.span().start);
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("defaults", DeValue::Table(table)) => defaults = draft(text, table)?,
            ("job", DeValue::Array(tables)) => jobs = tables.iter().collect(),
            ("job", DeValue::Table(_)) => jobs = vec![value],
            (other, _) => return Err(at_line(line, wrong_table(other))),
        }
    }
    if jobs.is_empty() {
        return Err(at_line(1, SpecError::new("the file has no job").hint("begin each job with [[job]]")));
    }
    let mut drafted = Vec::with_capacity(jobs.len());
    for job in jobs {
        let line = line_of(text, job.span().start);
        let DeValue::Table(table) = job.get_ref() else {
            return Err(at_line(
                line,
                SpecError::new("a job is a table").hint("begin each job with [[job]]"),
            ));
        };
        drafted.push(DraftedJob { draft: draft(text, table)?.over(&defaults), line });
    }
    name_all(&mut drafted)?;
    Ok(drafted)
}

fn draft(text: &str, table: &DeTable<'_>) -> Result<Draft, JobFileError> {
    let mut draft = Draft::default();
    for (key, value) in table {
        keys::set(&mut draft, key.get_ref(), value.get_ref())
            .map_err(|error| at_line(line_of(text, key.span().start), error))?;
    }
    Ok(draft)
}

fn wrong_table(name: &str) -> SpecError {
    let hint = if keys::KEYS.contains(&name) {
        format!("`{name}` goes under [defaults] or [[job]]")
    } else {
        match nearest(name, TABLES) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "a job file has the tables [defaults] and [[job]]".to_string(),
        }
    };
    SpecError::new(format!("expected a table [defaults] or [[job]], got `{name}`")).hint(hint)
}

/// Gives each job a name, and files that are its own unless it states a prefix.
fn name_all(jobs: &mut [DraftedJob]) -> Result<(), JobFileError> {
    let mut names: Vec<String> = Vec::with_capacity(jobs.len());
    for (index, DraftedJob { draft, line }) in jobs.iter_mut().enumerate() {
        let name = draft.name.get_or_insert_with(|| format!("job{}", index + 1)).clone();
        if names.contains(&name) {
            let error = SpecError::new(format!("two jobs are called `{name}`"));
            return Err(at_line(*line, error.hint("give each job a name of its own")));
        }
        if draft.prefix.is_none() && matches!(draft.place, None | Some(Place::Dir(_))) {
            draft.prefix = Some(prefix_of(&name));
        }
        names.push(name);
    }
    Ok(())
}

/// The name as part of a file name.
fn prefix_of(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = name.chars().take(64).map(plain).collect();
    format!("{PREFIX}-{name}")
}

fn at_line(line: usize, error: SpecError) -> JobFileError {
    JobFileError { line, what: error.what, hint: error.hint }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests;
