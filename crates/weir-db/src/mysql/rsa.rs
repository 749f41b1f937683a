//! RSA by a server's public key, with OAEP (RFC 8017): how a password travels where the connection is not encrypted.

use std::path::Path;

use rsa::pkcs8::DecodePublicKey;
use sha1::Sha1;

/// A public key, of 1024 to 8192 bits: MySQL makes 2048, and a server's long one would keep the client busy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PublicKey(rsa::PublicKey);

impl PublicKey {
    /// Reads a file (PEM).
    pub(super) fn read(path: &Path) -> Result<PublicKey, String> {
        let text = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        PublicKey::parse(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Reads PEM: a SubjectPublicKeyInfo (RFC 5280, 4.1).
    pub(super) fn parse(pem: &[u8]) -> Result<PublicKey, String> {
        let text = std::str::from_utf8(pem).map_err(|_| "expected a public key (PEM)")?;
        let key = rsa::PublicKey::from_public_key_pem(text.trim_end_matches(['\0', '\n', '\r', ' ']));
        key.map(PublicKey).map_err(|why| format!("expected a public key of RSA: {why}"))
    }

    /// RSAES-OAEP-ENCRYPT (RFC 8017, 7.1.1) with SHA-1 and no label, as MySQL has it.
    pub(super) fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        self.0.oaep_encrypt::<Sha1>(message).map_err(|why| match why {
            rsa::Error::MessageTooLong => "the password is too long for the server's key".to_string(),
            other => format!("the password could not be encrypted: {other}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    /// A key pair that openssl makes in a folder; its public half.
    fn key(folder: &Path, bits: &str) -> Vec<u8> {
        let script =
            "set -e; openssl genrsa -out key.pem \"$1\"; openssl rsa -in key.pem -pubout -out public.pem";
        let made = Command::new("sh").args(["-c", script, "sh", bits]).current_dir(folder).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        std::fs::read(folder.join("public.pem")).unwrap()
    }

    #[test]
    fn the_owner_of_the_key_reads_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        for bits in ["1024", "1031", "2048"] {
            let public = PublicKey::parse(&key(folder.path(), bits)).unwrap();
            for message in [&b"x"[..], b"\0\0geheim\0", &[0xff; 60]] {
                let sealed = public.encrypt(message).unwrap();
                std::fs::write(folder.path().join("sealed"), &sealed).unwrap();
                let script =
                    "openssl pkeyutl -decrypt -inkey key.pem -in sealed -pkeyopt rsa_padding_mode:oaep";
                let read =
                    Command::new("sh").args(["-c", script]).current_dir(folder.path()).output().unwrap();
                assert!(read.status.success(), "{bits}: {}", String::from_utf8_lossy(&read.stderr));
                assert_eq!(read.stdout, message, "{bits}");
                assert_ne!(public.encrypt(message).unwrap(), sealed, "{bits}: the same again");
            }
            let modulus_bytes = bits.parse::<usize>().unwrap().div_ceil(8);
            assert!(public.encrypt(&vec![1; modulus_bytes - 41]).unwrap_err().contains("too long"));
        }
    }

    #[test]
    fn keys_that_are_none_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let weak = key(folder.path(), "512");
        let script = "openssl ecparam -name prime256v1 -genkey | openssl ec -pubout";
        let other = Command::new("sh").args(["-c", script]).output().unwrap().stdout;
        for (what, pem) in [
            ("weak", weak.as_slice()),
            ("of another kind", &other),
            ("nothing", b""),
            ("no PEM", b"\x01\x02"),
            ("empty", b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n"),
        ] {
            assert!(PublicKey::parse(pem).is_err(), "{what}");
        }
        assert!(PublicKey::read(&folder.path().join("gone.pem")).unwrap_err().contains("gone.pem"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (rsa::PublicKey::from_public_key_der(&bytes), PublicKey::parse(&bytes));
        }
    }
}
