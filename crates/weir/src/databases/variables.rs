//! The server's variables that matter to what is measured.

use std::collections::BTreeMap;

use weir_db::Connection;
use weir_db::vitals::variables_that_matter;

/// Reads them; what the server does not have or tell is absent.
pub fn read(connection: &mut Connection) -> BTreeMap<String, String> {
    variables_that_matter(connection).unwrap_or_default()
}
