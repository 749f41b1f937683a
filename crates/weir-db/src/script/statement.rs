//! Statements as text: what they do, and their placeholders.

use weir_oltp::Dialect;

use crate::value::Value;

/// First words of statements whose answer has rows.
const READING: [&str; 12] = [
    "SELECT", "SHOW", "WITH", "VALUES", "TABLE", "DESCRIBE", "DESC", "EXPLAIN", "CALL", "CHECK", "FETCH",
    "CHECKSUM",
];
/// Those of MySQL alone.
const READING_MYSQL: [&str; 3] = ["ANALYZE", "OPTIMIZE", "REPAIR"];

/// Whether a statement answers with rows, by its first word.
pub fn returns_rows(sql: &str, dialect: Dialect) -> bool {
    let word = first_word(sql);
    let holds = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
    holds(&READING) || (dialect == Dialect::MySql && holds(&READING_MYSQL))
}

/// The first word after blanks, comments and parentheses.
fn first_word(sql: &str) -> &str {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '(' || c == ';');
        if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.find("*/").map_or("", |end| &comment[end + 2..]);
        } else if rest.starts_with("--") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            return &rest[..end];
        }
    }
}

/// A piece of a statement between placeholders.
fn pieces(sql: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, c) in sql.char_indices() {
        match (quote, c) {
            (None, '?') => {
                pieces.push(&sql[start..at]);
                start = at + 1;
            }
            (None, '\'' | '"' | '`') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    pieces.push(&sql[start..]);
    pieces
}

/// The statement with the dialect's placeholders for `?`.
pub fn placeholders(sql: &str, dialect: Dialect) -> String {
    if dialect == Dialect::MySql {
        return sql.to_string();
    }
    let mut text = String::with_capacity(sql.len() + 8);
    for (index, piece) in pieces(sql).into_iter().enumerate() {
        if index > 0 {
            text.push_str(&format!("${index}"));
        }
        text.push_str(piece);
    }
    text
}

/// The statement with its values written into it. A placeholder without a value stays.
pub fn with_values(sql: &str, values: &[Value<'_>], dialect: Dialect) -> String {
    let mut text = String::with_capacity(sql.len() + 16 * values.len());
    for (index, piece) in pieces(sql).into_iter().enumerate() {
        match index.checked_sub(1).map(|before| values.get(before)) {
            None => {}
            Some(None) => text.push('?'),
            Some(Some(value)) => write_value(value, dialect, &mut text),
        }
        text.push_str(piece);
    }
    text
}

fn write_value(value: &Value<'_>, dialect: Dialect, text: &mut String) {
    match value {
        Value::Null => text.push_str("NULL"),
        Value::Int(number) => text.push_str(&number.to_string()),
        Value::Float(number) => text.push_str(&format!("{number:.6}")),
        Value::Text(content) => {
            text.push('\'');
            for c in content.chars() {
                match c {
                    '\'' => text.push_str("''"),
                    '\\' if dialect == Dialect::MySql => text.push_str("\\\\"),
                    other => text.push(other),
                }
            }
            text.push('\'');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_apart_by_their_first_word() {
        let cases = [
            ("SELECT 1", true),
            ("  (select 1)", true),
            ("/* a */ -- b\n SHOW TABLES", true),
            ("WITH a AS (SELECT 1) SELECT * FROM a", true),
            ("UPDATE t SET a=1", false),
            ("BEGIN", false),
            ("selection", false),
            ("", false),
            ("/* never closed", false),
        ];
        for (sql, expected) in cases {
            assert_eq!(returns_rows(sql, Dialect::MySql), expected, "{sql}");
        }
        assert!(returns_rows("ANALYZE TABLE t", Dialect::MySql));
        assert!(!returns_rows("ANALYZE t", Dialect::Postgres));
    }

    #[test]
    fn placeholders_become_the_dialects_or_values() {
        let sql = "SELECT '?', \"a?\" FROM t WHERE a=? AND b BETWEEN ? AND ?";
        assert_eq!(placeholders(sql, Dialect::MySql), sql);
        assert_eq!(
            placeholders(sql, Dialect::Postgres),
            "SELECT '?', \"a?\" FROM t WHERE a=$1 AND b BETWEEN $2 AND $3"
        );
        let values = [Value::Int(-3), Value::Text("it's \\"), Value::Null];
        assert_eq!(with_values("(?, ?, ?, ?)", &values, Dialect::MySql), "(-3, 'it''s \\\\', NULL, ?)");
        assert_eq!(with_values("(?)", &[Value::Text("a\\")], Dialect::Postgres), "('a\\')");
        assert_eq!(with_values("?", &[Value::Float(0.5)], Dialect::Postgres), "0.500000");
    }
}
