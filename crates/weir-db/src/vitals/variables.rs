//! Variables.

use std::collections::BTreeMap;

use weir_oltp::Dialect;
use weir_oltp::vitals::that_matter;

use crate::connection::Connection;
use crate::error::DbError;

/// The server's variables that matter to what is measured, as it prints them; what it does not have, or does not show
/// this user, is absent.
///
/// # Errors
/// When the server does not answer.
pub fn variables_that_matter(connection: &mut Connection) -> Result<BTreeMap<String, String>, DbError> {
    let dialect = connection.dialect();
    let names: Vec<String> = that_matter(dialect).iter().map(|name| format!("'{name}'")).collect();
    let names = names.join(",");
    let rows = connection.query(&match dialect {
        Dialect::MySql => format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"),
        // Names that only some may see are left out of the view for all others.
        Dialect::Postgres => {
            format!("SELECT name, current_setting(name, true) FROM pg_settings WHERE name IN ({names})")
        }
    })?;
    Ok(rows.into_iter().filter_map(|row| asked_for(dialect, row)).collect())
}

/// The longest value that is kept, bytes: the record has them, and a server may say anything.
const VALUE_MAX: usize = 4 << 10;

fn asked_for(dialect: Dialect, row: Vec<Option<String>>) -> Option<(String, String)> {
    let [name, value] = <[Option<String>; 2]>::try_from(row).ok()?;
    let (name, value) = (name?, value?);
    let asked = that_matter(dialect).iter().find(|asked| asked.eq_ignore_ascii_case(&name))?;
    (value.len() <= VALUE_MAX).then(|| (asked.to_string(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_is_not_kept() {
        let row = |name: &str, value: &str| {
            asked_for(Dialect::Postgres, vec![Some(name.to_string()), Some(value.to_string())])
        };
        assert_eq!(row("fsync", "on"), Some(("fsync".to_string(), "on".to_string())));
        assert_eq!(row("other", "on"), None);
        assert_eq!(row("fsync", &"x".repeat(VALUE_MAX + 1)), None);
        assert_eq!(asked_for(Dialect::Postgres, vec![Some("fsync".to_string()), None]), None);
    }
}
