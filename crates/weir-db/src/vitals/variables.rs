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
    let pair = |row: Vec<Option<String>>| <[Option<String>; 2]>::try_from(row).ok();
    Ok(rows.into_iter().filter_map(pair).filter_map(|[name, value]| Some((name?, value?))).collect())
}
