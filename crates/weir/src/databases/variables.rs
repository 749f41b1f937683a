//! The server's variables that matter to what is measured.

use std::collections::BTreeMap;

use weir_db::vitals::variables_that_matter;
use weir_db::{Connection, Server};

/// Reads them; what the server does not have or tell is absent.
pub fn read(connection: &mut Connection) -> BTreeMap<String, String> {
    variables_that_matter(connection).unwrap_or_default()
}

/// Those of further servers, by place, where they differ from the first's; none of one that does not answer.
pub fn differing<'a>(
    first: &BTreeMap<String, String>,
    servers: impl Iterator<Item = &'a Server>,
) -> BTreeMap<String, BTreeMap<String, String>> {
    let of = |server: &Server| Connection::open(server).map(|mut it| read(&mut it)).unwrap_or_default();
    let all = servers.map(|server| (server.place.to_string(), of(server)));
    all.filter(|(_, variables)| variables != first).collect()
}
