//! Ways to prove who one is.

use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::rsa::PublicKey;
use crate::server::{Place, Tls};
use crate::wire::Wire;

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

/// How the password itself may travel.
#[derive(Debug)]
pub(super) enum Disclosure {
    /// As it is.
    Readable,
    /// Encrypted by this key of the server's.
    ByKey(PublicKey),
    /// Encrypted by the key that the server is asked for.
    ByAskedKey,
}

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

    /// What proves to the server that one knows the password, without the password; `None` where there is no such way.
    pub(super) fn proof(self, password: &str, scramble: &[u8]) -> Option<Vec<u8>> {
        let secret = password.as_bytes();
        match self {
            Plugin::Native | Plugin::CachingSha2 if secret.is_empty() => Some(Vec::new()),
            Plugin::Native => Some(native(secret, scramble)),
            Plugin::CachingSha2 => Some(caching_sha2(secret, scramble)),
            Plugin::Sha256 | Plugin::Clear if secret.is_empty() => Some(vec![0]),
            Plugin::Sha256 | Plugin::Clear => None,
        }
    }

    /// How the password itself may go to this server. Errors say what would be a way.
    pub(super) fn disclosure(self, wire: &Wire, tls: &Tls) -> Result<Disclosure, String> {
        let anybodys = wire.is_trusted() || tls.allow_cleartext;
        if !self.wants_key(wire) {
            return if anybodys { Ok(Disclosure::Readable) } else { Err(self.distrusts(wire)) };
        }
        match &tls.server_key {
            Some(path) => PublicKey::read(path).map(Disclosure::ByKey),
            // The key of whoever made a socket where everybody may make one is no better than none.
            None if anybodys || (tls.ask_server_key && !wire.is_local()) => Ok(Disclosure::ByAskedKey),
            None => Err(self.distrusts(wire)),
        }
    }

    /// Whether the server wants the password encrypted by its key: beside TLS it does not, and a Unix socket is enough
    /// for caching_sha2_password.
    fn wants_key(self, wire: &Wire) -> bool {
        match self {
            Plugin::CachingSha2 => !wire.is_private(),
            Plugin::Sha256 => !wire.is_encrypted(),
            Plugin::Native | Plugin::Clear => false,
        }
    }

    /// Why the password itself is not sent.
    fn distrusts(self, wire: &Wire) -> String {
        let why = match wire.place() {
            Place::Unix(_) => "any account may have made this socket, since its folder is open to all",
            Place::Tcp { .. } => "this server has not proven its identity",
        };
        let key = if self.wants_key(wire) { "its public key (--server-public-key), " } else { "" };
        format!(
            "{} asks for the password itself, and {why}; give the authority of its certificate (--tls-ca), \
             {key}\
             its Unix socket in a folder of its own, or send it to any server that answers (--allow-cleartext-password)",
            self.name()
        )
    }

    /// What asks for the server's public key.
    pub(super) fn key_request(self) -> Option<u8> {
        match self {
            Plugin::CachingSha2 => Some(2),
            Plugin::Sha256 => Some(1),
            Plugin::Native | Plugin::Clear => None,
        }
    }
}

/// The password and the NUL that ends it.
pub(super) fn readable(password: &str) -> Vec<u8> {
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

/// The password by the server's key: XOR with the scramble, again and again, so that no two look alike.
pub(super) fn sealed(password: &str, scramble: &[u8], key: &PublicKey) -> Result<Vec<u8>, String> {
    let mask = scramble.iter().cycle();
    let masked: Vec<u8> = readable(password).iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
    key.encrypt(&masked)
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
    fn no_proof_holds_the_password() {
        for plugin in [Plugin::Native, Plugin::CachingSha2] {
            assert!(plugin.proof("", &[1; 20]).unwrap().is_empty());
            assert!(plugin.proof("pw", &[1; 20]).unwrap().len() >= 20);
        }
        for plugin in [Plugin::Sha256, Plugin::Clear] {
            assert_eq!(plugin.proof("pw", &[1; 20]), None);
            assert_eq!(plugin.proof("", &[1; 20]).unwrap(), [0]);
        }
    }
}
