//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the client's side: both prove that they know the password, and nobody who
//! listens learns it. Pure: the nonce is an argument. postgres-protocol (0.6) draws its nonce itself, so that no published
//! example can be held against it, and would bring five crates for these 100 lines.

use std::borrow::Cow;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::base64;

/// A server may ask for as many rounds as it likes; more than this would keep the processor busy for seconds.
/// PostgreSQL's default is 4096.
const ROUNDS_MAX: u32 = 4_000_000;

/// Whether the proof is bound to the encrypted channel it goes through (RFC 5929, `tls-server-end-point`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// There is nothing to bind to.
    Impossible,
    /// This client could have, but the server did not offer it; a man in the middle who took the offer away is found
    /// out by saying so.
    NotOffered,
    /// The hash of the server's certificate.
    EndPoint(Vec<u8>),
}

impl Binding {
    /// The mechanism that goes with it.
    pub fn mechanism(&self) -> &'static str {
        match self {
            Binding::EndPoint(_) => "SCRAM-SHA-256-PLUS",
            Binding::Impossible | Binding::NotOffered => "SCRAM-SHA-256",
        }
    }

    fn header(&self) -> &'static str {
        match self {
            Binding::Impossible => "n,,",
            Binding::NotOffered => "y,,",
            Binding::EndPoint(_) => "p=tls-server-end-point,,",
        }
    }
}

/// A conversation that the client has begun.
#[derive(Debug)]
pub struct Scram {
    nonce: String,
    binding: Binding,
    first_bare: String,
}

/// A conversation in which the server has yet to prove itself.
#[derive(Debug)]
pub struct Proven {
    signature: Hmac<Sha256>,
}

impl Scram {
    /// Begins one. PostgreSQL takes the user from the start-up message and ignores `user`.
    pub fn new(user: &str, nonce: String, binding: Binding) -> Scram {
        Scram { first_bare: format!("n={user},r={nonce}"), nonce, binding }
    }

    /// The first message.
    pub fn client_first(&self) -> String {
        format!("{}{}", self.binding.header(), self.first_bare)
    }

    /// The last message, in answer to the server's first one; errors say what is wrong with that.
    pub fn client_final(self, server_first: &str, password: &str) -> Result<(String, Proven), &'static str> {
        let challenge = Challenge::read(server_first)?;
        if challenge.nonce.len() <= self.nonce.len() || !challenge.nonce.starts_with(&self.nonce) {
            return Err("the server's nonce does not continue this client's");
        }
        let mut bound = self.binding.header().as_bytes().to_vec();
        if let Binding::EndPoint(hash) = &self.binding {
            bound.extend_from_slice(hash);
        }
        let final_bare = format!("c={},r={}", base64::encode(&bound), challenge.nonce);
        let said = format!("{},{server_first},{final_bare}", self.first_bare);
        let salted = salted_password(prepared(password).as_bytes(), &challenge.salt, challenge.rounds);
        let client_key = keyed(&salted).chain_update(b"Client Key").finalize().into_bytes();
        let stored_key = Sha256::digest(client_key);
        let mut proof = keyed(&stored_key).chain_update(&said).finalize().into_bytes();
        proof.iter_mut().zip(client_key).for_each(|(byte, key)| *byte ^= key);
        let server_key = keyed(&salted).chain_update(b"Server Key").finalize().into_bytes();
        let signature = keyed(&server_key).chain_update(&said);
        Ok((format!("{final_bare},p={}", base64::encode(&proof)), Proven { signature }))
    }
}

impl Proven {
    /// Whether the server knows the password too, by its last message.
    pub fn verify(self, server_final: &str) -> Result<(), &'static str> {
        if server_final.starts_with("e=") {
            return Err("the server refused the proof");
        }
        let signature = server_final
            .strip_prefix("v=")
            .and_then(|rest| base64::decode(rest.split(',').next().unwrap_or(rest)))
            .ok_or("the server's last message of SCRAM is malformed")?;
        self.signature.verify_slice(&signature).map_err(|_| "the server does not know the password itself")
    }
}

/// The server's first message.
struct Challenge<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    rounds: u32,
}

impl<'a> Challenge<'a> {
    fn read(text: &'a str) -> Result<Challenge<'a>, &'static str> {
        let mut parts = text.split(',');
        let mut part = |prefix: &str| parts.next().and_then(|part| part.strip_prefix(prefix));
        let malformed = "the server's first message of SCRAM is malformed";
        let nonce = part("r=").ok_or(malformed)?;
        let salt = part("s=").and_then(base64::decode).ok_or(malformed)?;
        let rounds: u32 = part("i=").and_then(|it| it.parse().ok()).ok_or(malformed)?;
        match rounds {
            0 => Err("the server asks for no rounds of hashing at all"),
            1..=ROUNDS_MAX => Ok(Challenge { nonce, salt, rounds }),
            _ => Err("the server asks for more than 4,000,000 rounds of hashing (see its scram_iterations)"),
        }
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    // Keys longer than a block are hashed first, so every length does; a block of zeros is never used.
    Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default()))
}

/// `Hi` of RFC 5802: PBKDF2 with HMAC-SHA-256 and one block of output.
fn salted_password(password: &[u8], salt: &[u8], rounds: u32) -> [u8; 32] {
    let hmac = keyed(password);
    let mut round = hmac.clone().chain_update(salt).chain_update([0, 0, 0, 1]).finalize().into_bytes();
    let mut salted = round;
    for _ in 1..rounds {
        round = hmac.clone().chain_update(round).finalize().into_bytes();
        salted.iter_mut().zip(round).for_each(|(byte, of_round)| *byte ^= of_round);
    }
    salted.into()
}

/// As PostgreSQL stored it (src/common/saslprep.c): by SASLprep (RFC 4013), or as it is where that forbids it.
fn prepared(password: &str) -> Cow<'_, str> {
    stringprep::saslprep(password).unwrap_or(Cow::Borrowed(password))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SERVER_FIRST: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    fn begun(binding: Binding) -> Scram {
        Scram::new("user", "rOprNGfwEbeRWgbNEkqO".to_string(), binding)
    }

    #[test]
    fn the_example_of_rfc_7677_section_3() {
        let scram = begun(Binding::Impossible);
        assert_eq!(scram.client_first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let (last, proven) = scram.client_final(SERVER_FIRST, "pencil").unwrap();
        assert_eq!(
            last,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        proven.verify("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").unwrap();
    }

    #[test]
    fn a_server_without_the_password_is_found_out() {
        for (last, expected) in [
            ("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=", "malformed"),
            ("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95Gw=", "does not know"),
            ("v=", "does not know"),
            ("e=other-error", "refused"),
            ("", "malformed"),
        ] {
            let (_, proven) = begun(Binding::Impossible).client_final(SERVER_FIRST, "pencil").unwrap();
            let error = proven.verify(last).unwrap_err();
            assert!(error.contains(expected), "{last}: {error}");
        }
    }

    #[test]
    fn challenges_that_are_not_in_order_are_refused() {
        for (challenge, expected) in [
            ("r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
            ("r=somebodyElsesNonceAltogether,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
            ("r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0", "no rounds"),
            ("r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4000000000", "more than"),
            ("r=rOprNGfwEbeRWgbNEkqOx,s=!,i=4096", "malformed"),
            ("s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "malformed"),
            ("", "malformed"),
        ] {
            let error = begun(Binding::Impossible).client_final(challenge, "pencil").unwrap_err();
            assert!(error.contains(expected), "{challenge}: {error}");
        }
    }

    #[test]
    fn a_proof_is_bound_to_the_certificate() {
        let scram = begun(Binding::EndPoint(vec![1, 2, 3]));
        assert_eq!(scram.binding.mechanism(), "SCRAM-SHA-256-PLUS");
        assert_eq!(scram.client_first(), "p=tls-server-end-point,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let (last, _) = scram.client_final(SERVER_FIRST, "pencil").unwrap();
        let bound = last.strip_prefix("c=").and_then(|rest| rest.split(',').next()).unwrap();
        assert_eq!(base64::decode(bound).unwrap(), b"p=tls-server-end-point,,\x01\x02\x03");
    }

    #[test]
    fn passwords_are_prepared() {
        for (typed, expected) in [
            ("pencil", "pencil"),
            ("a\u{a0}b\u{2003}c", "a b c"),
            ("I\u{ad}X", "IX"),
            ("\u{2168}", "IX"),
            ("e\u{301}\u{aa}", "\u{e9}a"),
            // Forbidden: a control character, and directions mixed.
            ("a\u{7}", "a\u{7}"),
            ("\u{627}1", "\u{627}1"),
        ] {
            assert_eq!(prepared(typed), expected, "{typed:?}");
        }
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic(first in "(r=rOprNGfwEbeRWgbNEkqO)?.{0,40}(,s=[A-Za-z0-9=]{0,9},i=[0-9]{1,3})?", last in ".{0,60}") {
            if let Ok((_, proven)) = begun(Binding::NotOffered).client_final(&first, "x") {
                prop_assert!(proven.verify(&last).is_err());
            }
        }
    }
}
