//! PostgreSQL's password file (`~/.pgpass`): `host:port:database:user:password`, `*` for any.

use crate::server::{Place, Secret};

/// The password of the first line that fits.
pub(super) fn find(
    text: &str,
    place: &Place,
    is_default_socket: bool,
    database: &str,
    user: &str,
) -> Option<Secret> {
    let (hosts, port) = match place {
        Place::Tcp { host, port } => (vec![host.clone()], port.to_string()),
        Place::Unix(path) => {
            let folder = path.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let port = name.rsplit_once('.').map(|(_, port)| port.to_string()).unwrap_or_default();
            // A socket in its usual folder is `localhost` here.
            let local = is_default_socket.then(|| "localhost".to_string());
            (local.into_iter().chain([folder]).collect(), port)
        }
    };
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [host, at, of, who, password] = <[String; 5]>::try_from(fields).ok()?;
        let fits = |field: &str, value: &str| field == "*" || field == value;
        let meant = hosts.iter().any(|name| fits(&host, name))
            && fits(&at, &port)
            && fits(&of, database)
            && fits(&who, user);
        meant.then(|| Secret::new(password))
    })
}

/// Five fields; a colon or a backslash in one is written behind a backslash, and the password may hold colons.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        let is_last = fields.len() == 5;
        match (c, fields.last_mut()) {
            (':', _) if !is_last => fields.push(String::new()),
            ('\\', Some(field)) => field.extend(characters.next()),
            (c, Some(field)) => field.push(c),
            (_, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_counts() {
        let text = "# comment\nshort:line\ndb1:5432:weir:ann:one\ndb1:*:*:ann:t\\:w\\\\o:rest\n*:5433:*:*:three\n\
                    localhost:*:*:bob:four\n/srv/pg:5432:*:eve:five\n";
        let tcp = |host: &str, port| Place::Tcp { host: host.to_string(), port };
        let unix = |path: &str| Place::Unix(path.into());
        for (place, usual, database, user, expected) in [
            (tcp("db1", 5432), false, "weir", "ann", Some("one")),
            (tcp("db1", 5432), false, "other", "ann", Some("t:w\\o:rest")),
            (tcp("db2", 5433), false, "x", "y", Some("three")),
            (tcp("db2", 5432), false, "x", "y", None),
            (unix("/run/postgresql/.s.PGSQL.5432"), true, "x", "bob", Some("four")),
            (unix("/srv/pg/.s.PGSQL.5432"), false, "x", "eve", Some("five")),
            (unix("/srv/pg/.s.PGSQL.5432"), false, "x", "bob", None),
        ] {
            let found = find(text, &place, usual, database, user);
            assert_eq!(found.as_ref().map(Secret::reveal), expected, "{place} {database} {user}");
        }
    }
}
