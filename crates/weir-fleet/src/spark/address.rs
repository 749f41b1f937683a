//! `sc://HOST[:PORT][/;use_ssl=true;user_id=NAME]`, as Spark's own clients write where a server is.

use std::net::IpAddr;

use weir_cli::failure::usage;

/// The port of Spark Connect.
const PORT: u16 = 15_002;

const FORM: &str = "sc://HOST[:PORT][/;use_ssl=true;user_id=NAME]";

/// Where a server is, and who asks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Whether to speak TLS.
    pub tls: bool,
    /// The user's name there.
    pub user: Option<String>,
}

impl Address {
    /// Reads it.
    ///
    /// # Errors
    /// What does not fit the form; a token, which everybody would see in the list of processes.
    pub fn parse(text: &str) -> anyhow::Result<Address> {
        let wrong = |why: &str| usage(format!("--spark: {why}"), &format!("expected {FORM}"));
        let rest =
            text.strip_prefix("sc://").ok_or_else(|| wrong("the address does not begin with sc://"))?;
        let (place, parameters) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = split(place).ok_or_else(|| wrong("expected HOST or HOST:PORT"))?;
        let mut address = Address { host, port, tls: false, user: None };
        for parameter in parameters.split(';').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("use_ssl", value @ ("true" | "false"))) => address.tls = value == "true",
                Some(("user_id", name)) if !name.is_empty() => address.user = Some(name.to_string()),
                Some(("token", _)) => {
                    return Err(usage(
                        "--spark: a token in the address is seen by every account of this machine",
                        "put it into a file that only you can read, and name that with --spark-token",
                    ));
                }
                _ => return Err(wrong(&format!("expected KEY=VALUE of a known key, got `{parameter}`"))),
            }
        }
        Ok(address)
    }

    /// What it is called in messages.
    pub fn name(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// As a URL, for HTTP/2.
    pub fn url(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.name())
    }

    /// Whether nobody but this machine hears what is said.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

fn split(place: &str) -> Option<(String, u16)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if behind.is_empty() { None } else { Some(behind.strip_prefix(':')?) })
        }
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    let port = port.map_or(Some(PORT), |port| port.parse().ok())?;
    (!host.is_empty() && host.chars().all(plain)).then(|| (host.to_string(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_sparks_clients_read_it() {
        for (text, host, port, tls, user) in [
            ("sc://spark", "spark", 15_002, false, None),
            ("sc://spark:443/;use_ssl=true;user_id=ada", "spark", 443, true, Some("ada")),
            ("sc://[::1]:7077/", "::1", 7_077, false, None),
            ("sc://[::1]/;use_ssl=false", "::1", 15_002, false, None),
        ] {
            let user = user.map(String::from);
            let expected = Address { host: host.into(), port, tls, user };
            assert_eq!(Address::parse(text).unwrap(), expected, "{text}");
        }
        for text in [
            "spark:15002",
            "sc://",
            "sc://a:x",
            "sc://a b",
            "sc://[x]",
            "sc://[::1",
            "sc://a/;k",
            "sc://a/;k=v",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
        assert!(
            Address::parse("sc://a/;token=secret").unwrap_err().to_string().contains("seen by every account")
        );
    }

    #[test]
    fn only_this_machine_hears_a_loopback() {
        for (text, is) in [
            ("localhost", true),
            ("127.0.0.2", true),
            ("[::1]", true),
            ("10.0.0.1", false),
            ("localhost.evil.org", false),
        ] {
            assert_eq!(Address::parse(&format!("sc://{text}")).unwrap().is_loopback(), is, "{text}");
        }
    }
}
