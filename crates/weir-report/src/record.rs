//! A record's reports: the one place where it is told what kind of run is shown how.

use serde_json::to_string_pretty;
use weir_blocktrace::replay::ReplayRecord;
use weir_control::History;
use weir_core::result::{self, RunResult};
use weir_experiment::Study;
use weir_oltp::{OltpRecord, OltpResult};
use weir_record::{Body, Record, Unread};
use weir_verdict::DoctorReport;

use crate::{csv, entry, html, json, text};

/// What was derived from a record, in every form that it is shown in.
pub trait Report {
    /// The report for people, at most 100 columns wide.
    fn text(&self) -> String;
    /// The result as JSON.
    ///
    /// # Errors
    /// When it cannot be written.
    fn json(&self) -> serde_json::Result<String>;
    /// The page.
    fn html(&self) -> String;
    /// The intervals of what ran as CSV.
    fn csv(&self) -> String;
    /// What ran as fio reports it, `at_ms` and `time` being its start; none where fio has no words for it.
    ///
    /// # Errors
    /// When it cannot be written.
    fn fio_json(&self, at_ms: i64, time: &str) -> serde_json::Result<Option<String>>;
    /// The row in the list of runs.
    fn entry(&self) -> entry::Entry;
}

/// Derives the result of a record. `path` is where it lies, if it does.
///
/// # Errors
/// When its body cannot be read, or does not hold together.
pub fn report<'a>(record: &'a Record, path: Option<String>) -> Result<Box<dyn Report + 'a>, Unread> {
    let head = &record.head;
    Ok(match &record.body {
        Body::Jobs => {
            Box::new(Jobs { head, result: RunResult { record_path: path, ..result::derive(head) } })
        }
        Body::Replay(replay) => {
            Box::new(Played { head, result: RunResult { record_path: path, ..result::derive(head) }, replay })
        }
        Body::Doctor(examined) => Box::new(Doctor { head, report: weir_verdict::report(head, examined) }),
        Body::Oltp(raw) => {
            let result = OltpResult { record_path: path, ..weir_oltp::derive(head, raw) };
            Box::new(Transactions { head, raw, result })
        }
        Body::Experiment(experiment) => {
            let study = Study::of(head, experiment, path).map_err(|why| record.unread(why))?;
            Box::new(Trials { study })
        }
        Body::Guard(history) => Box::new(Guarded { head, history, path }),
        Body::Unread(why) => return Err(record.unread(why)),
    })
}

struct Jobs<'a> {
    head: &'a result::Record,
    result: RunResult,
}

impl Report for Jobs<'_> {
    fn text(&self) -> String {
        text::run(&self.result, self.head)
    }

    fn json(&self) -> serde_json::Result<String> {
        json::run(&self.result)
    }

    fn html(&self) -> String {
        html::run(self.head)
    }

    fn csv(&self) -> String {
        csv::intervals(self.head)
    }

    fn fio_json(&self, at_ms: i64, time: &str) -> serde_json::Result<Option<String>> {
        json::fio(self.head, at_ms, time).map(Some)
    }

    fn entry(&self) -> entry::Entry {
        entry::of_run(self.head)
    }
}

struct Played<'a> {
    head: &'a result::Record,
    result: RunResult,
    replay: &'a ReplayRecord,
}

impl Report for Played<'_> {
    fn text(&self) -> String {
        text::replay(&self.result, self.head, self.replay)
    }

    fn json(&self) -> serde_json::Result<String> {
        json::replay(&self.result, self.replay)
    }

    fn html(&self) -> String {
        html::replay(self.head, self.replay)
    }

    fn csv(&self) -> String {
        csv::intervals(self.head)
    }

    fn fio_json(&self, at_ms: i64, time: &str) -> serde_json::Result<Option<String>> {
        json::fio(self.head, at_ms, time).map(Some)
    }

    fn entry(&self) -> entry::Entry {
        entry::of_run(self.head)
    }
}

struct Doctor<'a> {
    head: &'a result::Record,
    report: DoctorReport,
}

impl Report for Doctor<'_> {
    fn text(&self) -> String {
        text::doctor(&self.report)
    }

    fn json(&self) -> serde_json::Result<String> {
        Ok(to_string_pretty(&self.report)? + "\n")
    }

    fn html(&self) -> String {
        html::doctor(&self.report)
    }

    fn csv(&self) -> String {
        csv::intervals(self.head)
    }

    fn fio_json(&self, at_ms: i64, time: &str) -> serde_json::Result<Option<String>> {
        json::fio(self.head, at_ms, time).map(Some)
    }

    fn entry(&self) -> entry::Entry {
        entry::of_doctor(self.head, &self.report)
    }
}

struct Transactions<'a> {
    head: &'a result::Record,
    raw: &'a OltpRecord,
    result: OltpResult,
}

impl Report for Transactions<'_> {
    fn text(&self) -> String {
        text::oltp(&self.result, self.head)
    }

    fn json(&self) -> serde_json::Result<String> {
        json::oltp(&self.result)
    }

    fn html(&self) -> String {
        html::oltp(self.head, self.raw)
    }

    fn csv(&self) -> String {
        csv::oltp(self.raw)
    }

    fn fio_json(&self, _at_ms: i64, _time: &str) -> serde_json::Result<Option<String>> {
        Ok(None)
    }

    fn entry(&self) -> entry::Entry {
        entry::of_oltp(self.head, self.raw, &self.result)
    }
}

struct Trials<'a> {
    study: Study<'a>,
}

impl Report for Trials<'_> {
    fn text(&self) -> String {
        text::experiment(&self.study)
    }

    fn json(&self) -> serde_json::Result<String> {
        json::experiment(&self.study)
    }

    fn html(&self) -> String {
        html::experiment(&self.study)
    }

    fn csv(&self) -> String {
        csv::intervals(self.study.record)
    }

    fn fio_json(&self, at_ms: i64, time: &str) -> serde_json::Result<Option<String>> {
        json::fio(self.study.record, at_ms, time).map(Some)
    }

    fn entry(&self) -> entry::Entry {
        entry::of_experiment(&self.study)
    }
}

struct Guarded<'a> {
    head: &'a result::Record,
    history: &'a History,
    path: Option<String>,
}

impl Report for Guarded<'_> {
    fn text(&self) -> String {
        text::guard(self.head, self.history, self.path.as_deref())
    }

    fn json(&self) -> serde_json::Result<String> {
        Ok(to_string_pretty(self.history)? + "\n")
    }

    fn html(&self) -> String {
        html::guard(self.head, self.history)
    }

    fn csv(&self) -> String {
        csv::intervals(self.head)
    }

    fn fio_json(&self, at_ms: i64, time: &str) -> serde_json::Result<Option<String>> {
        json::fio(self.head, at_ms, time).map(Some)
    }

    fn entry(&self) -> entry::Entry {
        entry::of_guard(self.head, self.history)
    }
}
