//! Privileges that a command needs, and the GRANT for each one that is missing.

use weir_oltp::Dialect;

use super::{literal, quoted, value};
use crate::connection::Connection;
use crate::error::DbError;
use crate::server::Server;

/// What a command does in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Make the database itself.
    CreateDatabase,
    /// Make and fill tables.
    Prepare,
    /// Read rows.
    Read,
    /// Read and change rows.
    Write,
    /// Remove tables.
    Cleanup,
}

/// A privilege that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub privilege: String,
    /// The statement by which an administrator gives it.
    pub grant: String,
}

/// Privileges that the connection's user lacks. Empty where nothing is missing or the server does not tell.
///
/// # Errors
/// When the server does not answer.
pub fn missing(connection: &mut Connection, server: &Server, need: Need) -> Result<Vec<Missing>, DbError> {
    let told = match server.dialect {
        Dialect::MySql => of_mysql(connection, server, need),
        Dialect::Postgres => of_postgres(connection, server, need),
    };
    match told {
        Err(DbError::Server(_)) => Ok(Vec::new()),
        told => told,
    }
}

fn of_mysql(connection: &mut Connection, server: &Server, need: Need) -> Result<Vec<Missing>, DbError> {
    let user = value(connection, "SELECT CURRENT_USER()")?.unwrap_or_default();
    let grants: Vec<String> = connection.query("SHOW GRANTS")?.into_iter().flatten().flatten().collect();
    let names: &[&str] = match need {
        Need::CreateDatabase | Need::Prepare => {
            // ALTER writes into a table's comment that it is whole.
            &["CREATE", "DROP", "INDEX", "ALTER", "SELECT", "INSERT"]
        }
        Need::Read => &["SELECT"],
        Need::Write => &["SELECT", "INSERT", "UPDATE", "DELETE"],
        Need::Cleanup => &["DROP", "SELECT"],
    };
    let (user, host) = user.rsplit_once('@').unwrap_or((&user, "%"));
    // The server says who the user is, and whoever pastes the hint runs it elsewhere.
    let whom = format!("{}@{}", literal(server, user), literal(server, host));
    let on = quoted(Dialect::MySql, &server.database);
    let grant = |name: &&str| Missing {
        privilege: name.to_string(),
        grant: format!("GRANT {name} ON {on}.* TO {whom}"),
    };
    Ok(lacking(&grants, &server.database, names).iter().map(grant).collect())
}

/// Names of privileges that no grant gives on a database. A role's are not seen here: with one, nothing is missing.
fn lacking<'a>(grants: &[String], database: &str, names: &[&'a str]) -> Vec<&'a str> {
    let mut given: Vec<String> = Vec::new();
    for grant in grants {
        let Some(rest) = grant.strip_prefix("GRANT ") else { continue };
        let Some((list, rest)) = rest.split_once(" ON ") else { return Vec::new() };
        let object = rest.split(" TO ").next().unwrap_or_default();
        if covers(object, database) {
            given.extend(list.split(", ").map(|name| name.trim().to_ascii_uppercase()));
        }
    }
    let is_given =
        |name: &str| given.iter().any(|g| g == name || g.starts_with("ALL PRIVILEGES") || g == "ALL");
    names.iter().copied().filter(|name| !is_given(name)).collect()
}

/// Whether a grant's object covers all tables of a database. In its name `%` and `_` stand for any characters and for
/// one, unless a backslash stands before them.
fn covers(object: &str, database: &str) -> bool {
    let Some(name) = object.trim().strip_suffix(".*") else { return false };
    let name = name.trim_matches('`').replace("``", "`");
    name == "*" || fits(&name.chars().collect::<Vec<_>>(), &database.chars().collect::<Vec<_>>())
}

/// One pass, with a way back to the last `%` alone: the pattern is the server's choice, and may be long.
fn fits(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut in_text) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    loop {
        let step = match pattern[at..] {
            [] if in_text == text.len() => return true,
            ['%', ..] => {
                back = Some((at + 1, in_text));
                at += 1;
                continue;
            }
            ['\\', escaped, ..] => (text.get(in_text) == Some(&escaped)).then_some(2),
            ['_', ..] => (in_text < text.len()).then_some(1),
            [c, ..] => (text.get(in_text) == Some(&c)).then_some(1),
            [] => None,
        };
        match (step, back) {
            (Some(step), _) => (at, in_text) = (at + step, in_text + 1),
            // What the last `%` stands for is one character longer.
            (None, Some((after, from))) if from < text.len() => {
                (at, in_text, back) = (after, from + 1, Some((after, from + 1)));
            }
            (None, _) => return false,
        }
    }
}

fn of_postgres(connection: &mut Connection, server: &Server, need: Need) -> Result<Vec<Missing>, DbError> {
    let user = quoted(Dialect::Postgres, &value(connection, "SELECT current_user")?.unwrap_or_default());
    let mut missing = Vec::new();
    let mut ask = |question: &str, privilege: &str, grant: String| -> Result<(), DbError> {
        if value(connection, question)?.as_deref() == Some("f") {
            missing.push(Missing { privilege: privilege.to_string(), grant });
        }
        Ok(())
    };
    match need {
        Need::CreateDatabase => ask(
            "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user",
            "CREATEDB",
            format!("ALTER ROLE {user} CREATEDB"),
        )?,
        Need::Prepare => {
            let database = quoted(Dialect::Postgres, &server.database);
            let question =
                "SELECT coalesce(has_schema_privilege(current_user, current_schema(), 'CREATE'), false)";
            ask(question, "CREATE on the schema", format!("ALTER DATABASE {database} OWNER TO {user}"))?;
        }
        Need::Read => ask_tables(&mut ask, server, &["SELECT"], &user)?,
        Need::Write => ask_tables(&mut ask, server, &["SELECT", "INSERT", "UPDATE", "DELETE"], &user)?,
        // Only the owner of a table removes it; there is no grant to ask for.
        Need::Cleanup => {}
    }
    Ok(missing)
}

fn ask_tables(
    ask: &mut impl FnMut(&str, &str, String) -> Result<(), DbError>,
    server: &Server,
    names: &[&str],
    user: &str,
) -> Result<(), DbError> {
    for name in names {
        let table = literal(server, "sbtest1");
        // A table that is not there is missed later, with a better sentence.
        let question = format!(
            "SELECT has_table_privilege(current_user, oid, '{name}') FROM pg_class WHERE oid = to_regclass({table})"
        );
        ask(&question, name, format!("GRANT {name} ON ALL TABLES IN SCHEMA public TO {user}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pattern_of_a_servers_takes_long_or_much() {
        let fit = |pattern: &str, text: &str| {
            fits(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>())
        };
        for (pattern, text, expected) in [
            ("", "", true),
            ("%", "", true),
            ("a%b%c", "axxbyybc", true),
            ("a%b%c", "axxbyyc", true),
            ("a%b%c", "axxcyyb", false),
            ("%_", "", false),
            ("_%", "x", true),
            ("a\\%", "a%", true),
            ("a\\%", "ab", false),
            ("a\\", "a\\", true),
            ("ab", "a", false),
            ("a", "ab", false),
        ] {
            assert_eq!(fit(pattern, text), expected, "{pattern} {text}");
        }
        assert!(!fit(&"%a".repeat(1 << 20), &"a".repeat(64)));
        assert!(!fit(&("%".repeat(1 << 20) + "x"), "weir"));
    }

    #[test]
    fn grants_say_what_is_lacking() {
        for (grants, expected) in [
            (&["GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION"][..], &[][..]),
            (&["GRANT USAGE ON *.* TO `u`@`%`"], &["SELECT", "INSERT"]),
            (&["GRANT USAGE ON *.* TO `u`@`%`", "GRANT SELECT ON `weir`.* TO `u`@`%`"], &["INSERT"]),
            (&["GRANT SELECT, INSERT ON `we%`.* TO `u`@`%`"], &[]),
            (&["GRANT SELECT, INSERT ON `w\\_ir`.* TO `u`@`%`"], &["SELECT", "INSERT"]),
            (&["GRANT SELECT, INSERT ON `other`.* TO `u`@`%`"], &["SELECT", "INSERT"]),
            (&["GRANT SELECT, INSERT ON `weir`.`sbtest1` TO `u`@`%`"], &["SELECT", "INSERT"]),
            (&["GRANT `reader`@`%` TO `u`@`%`", "GRANT USAGE ON *.* TO `u`@`%`"], &[]),
        ] {
            let grants: Vec<String> = grants.iter().map(|grant| grant.to_string()).collect();
            assert_eq!(lacking(&grants, "weir", &["SELECT", "INSERT"]), expected, "{grants:?}");
        }
    }
}
