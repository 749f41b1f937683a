//! The text of statements. A template has `?` for each value; PostgreSQL's numbered placeholders and the emulation of
//! prepared statements, with the values in the text, are made from it. Templates have no `?` but these.

use std::fmt::Write;

use super::schema::table_name;
use super::{Dialect, Kind, OltpSpec, Script, Value};

/// The template of a statement against a table; `None` for what has no fixed text: many rows in one INSERT, and
/// the statements of users' scripts.
pub fn template(spec: &OltpSpec, dialect: Dialect, kind: Kind, table: u32) -> Option<String> {
    let t = table_name(table);
    Some(match kind {
        Kind::Begin => "BEGIN".to_string(),
        Kind::Commit => "COMMIT".to_string(),
        Kind::Rollback => "ROLLBACK".to_string(),
        Kind::PointSelect => format!("SELECT c FROM {t} WHERE id=?"),
        Kind::SimpleRange => format!("SELECT c FROM {t} WHERE id BETWEEN ? AND ?"),
        Kind::SumRange => format!("SELECT SUM(k) FROM {t} WHERE id BETWEEN ? AND ?"),
        Kind::OrderRange => format!("SELECT c FROM {t} WHERE id BETWEEN ? AND ? ORDER BY c"),
        Kind::DistinctRange => format!("SELECT DISTINCT c FROM {t} WHERE id BETWEEN ? AND ? ORDER BY c"),
        Kind::RandomPoints => {
            format!("SELECT id, k, c, pad FROM {t} WHERE k IN ({})", repeated("?", ", ", spec.random_points))
        }
        Kind::RandomRanges => format!(
            "SELECT count(k) FROM {t} WHERE {}",
            repeated("k BETWEEN ? AND ?", " OR ", spec.number_of_ranges)
        ),
        Kind::IndexUpdate => format!("UPDATE {t} SET k=k+1 WHERE id=?"),
        Kind::NonIndexUpdate => format!("UPDATE {t} SET c=? WHERE id=?"),
        Kind::Delete => format!("DELETE FROM {t} WHERE id=?"),
        Kind::Insert if !numbered_by_server(spec) => {
            format!("INSERT INTO {t} (id, k, c, pad) VALUES (?, ?, ?, ?)")
        }
        Kind::Insert => match dialect {
            Dialect::MySql => format!("INSERT INTO {t} (id, k, c, pad) VALUES (0, ?, ?, ?)"),
            Dialect::Postgres => format!("INSERT INTO {t} (k, c, pad) VALUES (?, ?, ?)"),
        },
        Kind::Transaction | Kind::BulkInsert | Kind::Read | Kind::Write | Kind::Other => return None,
    })
}

/// Whether a new row gets its number from the server: not where it takes the place of a row just deleted.
pub fn numbered_by_server(spec: &OltpSpec) -> bool {
    spec.script == Script::Insert && spec.auto_inc
}

/// Whether a statement's text is the same whatever the table.
pub fn is_tableless(kind: Kind) -> bool {
    matches!(kind, Kind::Begin | Kind::Commit | Kind::Rollback)
}

fn repeated(piece: &str, between: &str, times: u32) -> String {
    vec![piece; times as usize].join(between)
}

/// A template with the placeholders of a dialect: `?`, or `$1`, `$2`, …
pub fn with_placeholders(dialect: Dialect, template: &str) -> String {
    if dialect == Dialect::MySql {
        return template.to_string();
    }
    let mut out = String::with_capacity(template.len() + 16);
    for (index, piece) in template.split('?').enumerate() {
        if index > 0 {
            let _ = write!(out, "${index}");
        }
        out.push_str(piece);
    }
    out
}

/// Appends a template to `out` with the values in their places, quoted as the dialect wants it. Allocates only where
/// `out` must grow.
pub fn with_values(dialect: Dialect, template: &str, values: &[Value<'_>], out: &mut String) {
    let mut values = values.iter();
    for (index, piece) in template.split('?').enumerate() {
        if index > 0 {
            write_value(dialect, values.next().unwrap_or(&Value::Null), out);
        }
        out.push_str(piece);
    }
}

/// Appends a value as a literal.
pub fn write_value(dialect: Dialect, value: &Value<'_>, out: &mut String) {
    // Writing to a String cannot fail.
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Int(number) => {
            let _ = write!(out, "{number}");
        }
        Value::Float(number) => {
            let _ = write!(out, "{number:?}");
        }
        Value::Text(text) => {
            out.push('\'');
            for piece in text.split_inclusive(['\'', '\\']) {
                out.push_str(piece);
                if piece.ends_with('\'') || (piece.ends_with('\\') && dialect == Dialect::MySql) {
                    // Either is doubled; a backslash means itself in PostgreSQL's standard strings.
                    out.push_str(&piece[piece.len() - 1..]);
                }
            }
            out.push('\'');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: &OltpSpec, dialect: Dialect, kind: Kind, expected: &str) {
        let text = template(spec, dialect, kind, 1).unwrap();
        assert_eq!(with_placeholders(dialect, &text), expected);
    }

    #[test]
    fn statements_are_sysbenchs() {
        let spec = OltpSpec { random_points: 3, number_of_ranges: 2, ..OltpSpec::default() };
        let insert = OltpSpec { script: Script::Insert, ..OltpSpec::default() };
        let own = OltpSpec { auto_inc: false, ..insert.clone() };
        use Dialect::{MySql, Postgres};
        check(&spec, MySql, Kind::PointSelect, "SELECT c FROM sbtest2 WHERE id=?");
        check(&spec, Postgres, Kind::PointSelect, "SELECT c FROM sbtest2 WHERE id=$1");
        check(
            &spec,
            Postgres,
            Kind::DistinctRange,
            "SELECT DISTINCT c FROM sbtest2 WHERE id BETWEEN $1 AND $2 ORDER BY c",
        );
        check(&spec, MySql, Kind::RandomPoints, "SELECT id, k, c, pad FROM sbtest2 WHERE k IN (?, ?, ?)");
        check(
            &spec,
            Postgres,
            Kind::RandomRanges,
            "SELECT count(k) FROM sbtest2 WHERE k BETWEEN $1 AND $2 OR k BETWEEN $3 AND $4",
        );
        check(&spec, MySql, Kind::Insert, "INSERT INTO sbtest2 (id, k, c, pad) VALUES (?, ?, ?, ?)");
        check(&insert, MySql, Kind::Insert, "INSERT INTO sbtest2 (id, k, c, pad) VALUES (0, ?, ?, ?)");
        check(&insert, Postgres, Kind::Insert, "INSERT INTO sbtest2 (k, c, pad) VALUES ($1, $2, $3)");
        check(&own, Postgres, Kind::Insert, "INSERT INTO sbtest2 (id, k, c, pad) VALUES ($1, $2, $3, $4)");
        assert_eq!(template(&spec, MySql, Kind::BulkInsert, 0), None);
    }

    #[test]
    fn values_in_the_text_are_quoted_as_the_dialect_wants() {
        let check = |dialect, expected: &str| {
            let mut out = String::new();
            let values = [Value::Int(-7), Value::Text("o'b\\c"), Value::Null, Value::Float(1.5)];
            with_values(dialect, "a=? b=? c=? d=?!", &values, &mut out);
            assert_eq!(out, expected);
        };
        check(Dialect::MySql, r"a=-7 b='o''b\\c' c=NULL d=1.5!");
        check(Dialect::Postgres, r"a=-7 b='o''b\c' c=NULL d=1.5!");
    }
}
