//! How parts of a workload are written by people: the same words in options and reports.

use std::fmt;
use std::str::FromStr;

use super::record::ServerRecord;
use super::spec::{OltpSpec, Script};
use weir_core::dialect::Dialect;
use weir_core::units::{grouped, per_second};
use weir_core::workload::SpecError;
use weir_core::workload::spec::{Arrival, Distribution};
use weir_core::workload::text::unknown;

impl Script {
    /// All scripts with their names: sysbench's without `oltp_`.
    pub const ALL: [(&'static str, Script); 12] = [
        ("read_write", Script::ReadWrite),
        ("read_only", Script::ReadOnly),
        ("write_only", Script::WriteOnly),
        ("point_select", Script::PointSelect),
        ("update_index", Script::UpdateIndex),
        ("update_non_index", Script::UpdateNonIndex),
        ("insert", Script::Insert),
        ("delete", Script::Delete),
        ("bulk_insert", Script::BulkInsert),
        ("select_random_points", Script::SelectRandomPoints),
        ("select_random_ranges", Script::SelectRandomRanges),
        ("commit", Script::Commit),
    ];

    /// Whether it changes rows.
    pub fn writes(self) -> bool {
        !matches!(
            self,
            Script::ReadOnly | Script::PointSelect | Script::SelectRandomPoints | Script::SelectRandomRanges
        )
    }
}

impl FromStr for Script {
    type Err = SpecError;

    /// `read_write`, `read-write` or `oltp_read_write`.
    fn from_str(text: &str) -> Result<Script, SpecError> {
        let typed = text.trim().to_ascii_lowercase().replace('-', "_");
        let typed = typed.strip_prefix("oltp_").unwrap_or(&typed);
        let known = || Script::ALL.map(|(name, _)| name);
        let found = Script::ALL.into_iter().find(|(name, _)| *name == typed);
        found.map(|(_, script)| script).ok_or_else(|| unknown("script", text, &known()))
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Script::ALL.into_iter().find(|(_, script)| script == self);
        f.pad(found.map_or("", |(name, _)| name))
    }
}

/// What a server calls itself, with its family where it does not say: `MariaDB 10.11.14`, `PostgreSQL 15.10`.
pub fn family(server: &ServerRecord) -> String {
    let version = server.version.as_str();
    match server.dialect {
        Some(Dialect::MySql) if crate::vitals::is_mariadb(version) => {
            let number = version.split('-').find(|part| part.starts_with(|c: char| c.is_ascii_digit()));
            format!("MariaDB {}", number.unwrap_or(version))
        }
        Some(Dialect::MySql) => format!("MySQL {version}"),
        Some(Dialect::Postgres) if !version.starts_with("PostgreSQL") => format!("PostgreSQL {version}"),
        _ => version.to_string(),
    }
}

/// A workload as a phrase: `read_write on 10 tables of 10,000 rows, 8 connections, closed loop, …`.
pub fn describe(spec: &OltpSpec, script_path: Option<&str>) -> String {
    let plural = |n: u64, one: &str| format!("{} {one}{}", grouped(n), if n == 1 { "" } else { "s" });
    let mut parts = match script_path {
        Some(path) => vec![path.to_string()],
        None if spec.script == Script::BulkInsert => {
            vec![format!("{} into {}", spec.script, plural(u64::from(spec.threads), "table"))]
        }
        None => {
            let tables = plural(u64::from(spec.tables), "table");
            vec![format!("{} on {tables} of {}", spec.script, plural(spec.table_size, "row"))]
        }
    };
    parts.push(plural(u64::from(spec.threads), "connection"));
    parts.push(match spec.rate {
        None => "closed loop".to_string(),
        Some(rate) => {
            let arrival = if rate.arrival == Arrival::Poisson { "Poisson" } else { "constant" };
            format!("open loop at {}/s ({arrival})", per_second(rate.iops))
        }
    });
    if script_path.is_none() {
        if spec.keys != Distribution::Uniform {
            parts.push(format!("keys {}", spec.keys));
        }
        parts.extend((!spec.prepared).then(|| "values in the text of statements".to_string()));
        parts.extend(spec.skip_trx.then(|| "each statement by itself".to_string()));
    }
    if spec.warmup.0 > 0 {
        parts.push(format!("after {} of warm-up", spec.warmup));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_known_by_both_names() {
        for (name, script) in Script::ALL {
            assert_eq!(name.parse::<Script>().unwrap(), script);
            assert_eq!(format!("oltp_{name}").replace('_', "-").parse::<Script>().unwrap(), script);
            assert_eq!(script.to_string(), name);
            let json = serde_json::to_string(&script).unwrap();
            assert_eq!(json, format!("\"{name}\""), "the record says the same");
        }
        let error = "read_wrte".parse::<Script>().unwrap_err();
        assert!(error.hint.unwrap().contains("did you mean `read_write`"));
    }
}
