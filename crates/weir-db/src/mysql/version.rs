//! Which server it is.

use std::fmt;

/// Who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// MySQL, and what calls itself so: Percona, Aurora, TiDB.
    MySql,
    /// MariaDB.
    MariaDb,
}

/// A server's own words and what they mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    text: String,
    /// Who made it.
    pub family: Family,
    /// Its first two numbers.
    pub number: (u32, u32),
}

impl Version {
    /// Reads `8.0.35`, `10.11.6-MariaDB-0+deb12u1`, `5.5.5-10.3.39-MariaDB`. Errors say which versions weir knows.
    pub fn parse(words: &str) -> Result<Version, String> {
        let is_mariadb = words.to_ascii_lowercase().contains("mariadb");
        let family = if is_mariadb { Family::MariaDb } else { Family::MySql };
        // So that replicas of before MariaDB 10 do not stop at a version of two digits.
        let text = words.strip_prefix("5.5.5-").filter(|_| is_mariadb).unwrap_or(words).to_string();
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
            return Err(format!("a server that calls itself {words:?} is not known; {KNOWN}"));
        };
        let version = Version { text, family, number: (major, minor) };
        let oldest = match family {
            Family::MySql => (5, 7),
            Family::MariaDb => (10, 3),
        };
        if version.number < oldest { Err(format!("{version} is too old; {KNOWN}")) } else { Ok(version) }
    }

    /// The server's own words.
    pub fn text(&self) -> &str {
        &self.text
    }
}

const KNOWN: &str = "weir knows MySQL since 5.7 and MariaDB since 10.3";

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.family {
            Family::MySql => "MySQL",
            Family::MariaDb => "MariaDB",
        };
        write!(f, "{name} {}.{}", self.number.0, self.number.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_by_their_words() {
        let check = |words: &str, expected: Result<&str, &str>| match (Version::parse(words), expected) {
            (Ok(version), Ok(name)) => assert_eq!(version.to_string(), name, "{words}"),
            (Err(error), Err(part)) => assert!(error.contains(part), "{words}: {error}"),
            (got, _) => panic!("{words}: {got:?}"),
        };
        check("8.0.35", Ok("MySQL 8.0"));
        check("8.4.3-commercial", Ok("MySQL 8.4"));
        check("9.1.0", Ok("MySQL 9.1"));
        check("5.7.44-log", Ok("MySQL 5.7"));
        check("8.0.11-TiDB-v7.5.0", Ok("MySQL 8.0"));
        check("10.11.19-MariaDB-0+deb12u1", Ok("MariaDB 10.11"));
        check("5.5.5-10.3.39-MariaDB-log", Ok("MariaDB 10.3"));
        check("11.4.2-MariaDB", Ok("MariaDB 11.4"));
        check("5.6.51", Err("MySQL 5.6 is too old; weir knows MySQL since 5.7"));
        check("5.5.5-10.2.44-MariaDB", Err("MariaDB 10.2 is too old"));
        check("5.5.68-MariaDB", Err("MariaDB 5.5 is too old"));
        check("", Err("is not known"));
        check("dev", Err("\"dev\" is not known"));
        assert_eq!(Version::parse("5.5.5-10.6.1-MariaDB").unwrap().text(), "10.6.1-MariaDB");
    }
}
