//! Ways to prove who one is.

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// A way to log in that weir goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plugin {
    /// MySQL's before 8.0 and MariaDB's: two SHA-1.
    Native,
    /// MySQL's since 8.0: two SHA-256, and the password itself where the server has forgotten it.
    CachingSha2,
    /// MySQL's `sha256_password`: the password itself.
    Sha256,
    /// The password itself, for PAM and LDAP behind the server.
    Clear,
}

/// Why an answer cannot be given.
const NOT_IN_THE_CLEAR: &str = "would send the password readable by everybody on the way; \
     use TLS (--tls required) or the server's Unix socket";

impl Plugin {
    /// By the server's name for it. Errors say what to do instead.
    pub(super) fn by_name(name: &str) -> Result<Plugin, String> {
        match name {
            "mysql_native_password" => Ok(Plugin::Native),
            "caching_sha2_password" => Ok(Plugin::CachingSha2),
            "sha256_password" => Ok(Plugin::Sha256),
            "mysql_clear_password" => Ok(Plugin::Clear),
            other => Err(format!(
                "the account logs in by {other:?}, which weir does not know; give weir an account of its own, \
                 IDENTIFIED VIA mysql_native_password (MariaDB) or WITH caching_sha2_password (MySQL)"
            )),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Plugin::Native => "mysql_native_password",
            Plugin::CachingSha2 => "caching_sha2_password",
            Plugin::Sha256 => "sha256_password",
            Plugin::Clear => "mysql_clear_password",
        }
    }

    /// The first answer. `private`: nobody on the way can read along. `encrypted`: not even on this machine.
    pub(super) fn answer(
        self,
        password: &str,
        scramble: &[u8],
        private: bool,
        encrypted: bool,
    ) -> Result<Vec<u8>, String> {
        let secret = password.as_bytes();
        match self {
            Plugin::Native if secret.is_empty() => Ok(Vec::new()),
            Plugin::Native => Ok(native(secret, scramble)),
            Plugin::CachingSha2 if secret.is_empty() => Ok(Vec::new()),
            Plugin::CachingSha2 => Ok(caching_sha2(secret, scramble)),
            Plugin::Sha256 if secret.is_empty() => Ok(vec![0]),
            Plugin::Sha256 if private => Ok(readable(password)),
            Plugin::Clear if encrypted => Ok(readable(password)),
            Plugin::Sha256 | Plugin::Clear => Err(format!("{} {NOT_IN_THE_CLEAR}", self.name())),
        }
    }

    /// The password itself, after the server has asked for it.
    pub(super) fn full_answer(self, password: &str, private: bool) -> Result<Vec<u8>, String> {
        if private {
            Ok(readable(password))
        } else {
            Err(format!("{} has to see this password once and {NOT_IN_THE_CLEAR}", self.name()))
        }
    }
}

fn readable(password: &str) -> Vec<u8> {
    let mut bytes = password.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// SHA1(password) XOR SHA1(scramble + SHA1(SHA1(password))).
fn native(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    let once = Sha1::digest(password);
    let twice = Sha1::digest(once);
    let mask = Sha1::new().chain_update(scramble).chain_update(twice).finalize();
    xor(&once, &mask)
}

/// SHA256(password) XOR SHA256(SHA256(SHA256(password)) + scramble).
fn caching_sha2(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let mask = Sha256::new().chain_update(twice).chain_update(scramble).finalize();
    xor(&once, &mask)
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server does: it knows only the hash of the hash, and gets the hash out of the answer.
    #[test]
    fn a_server_that_knows_the_twice_hashed_password_accepts_the_proof() {
        let scramble = b"abcdefghijklmnopqrst";
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let mask = Sha1::new().chain_update(scramble).chain_update(stored).finalize();
        let once = xor(&native(b"secret", scramble), &mask);
        assert_eq!(Sha1::digest(once), stored);

        let stored = Sha256::digest(Sha256::digest(b"secret"));
        let mask = Sha256::new().chain_update(stored).chain_update(scramble).finalize();
        let once = xor(&caching_sha2(b"secret", scramble), &mask);
        assert_eq!(Sha256::digest(once), stored);
    }

    #[test]
    fn passwords_are_readable_only_where_nobody_reads() {
        let check = |plugin: Plugin, private, encrypted, expected: Option<&[u8]>| {
            let answer = plugin.answer("pw", &[1; 20], private, encrypted);
            match expected {
                Some(bytes) => assert_eq!(answer.unwrap(), bytes),
                None => {
                    let error = answer.unwrap_err();
                    assert!(error.contains("TLS") && !error.contains("pw "), "{error}");
                }
            }
        };
        check(Plugin::Clear, true, true, Some(b"pw\0"));
        check(Plugin::Clear, true, false, None);
        check(Plugin::Clear, false, false, None);
        check(Plugin::Sha256, true, false, Some(b"pw\0"));
        check(Plugin::Sha256, false, false, None);
        assert!(Plugin::CachingSha2.full_answer("pw", false).unwrap_err().contains("--tls required"));
        assert_eq!(Plugin::CachingSha2.full_answer("pw", true).unwrap(), b"pw\0");
        for plugin in [Plugin::Native, Plugin::CachingSha2] {
            assert!(plugin.answer("", &[1; 20], false, false).unwrap().is_empty());
        }
    }
}
