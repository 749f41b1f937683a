//! RSA by a server's public key, with OAEP (RFC 8017): how a password travels where the connection is not encrypted.
//! Nothing but that one way, which needs no secret of its own.

use std::path::Path;

use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use sha1::{Digest, Sha1};

use crate::wire::der::{BIT_STRING, INTEGER, OBJECT_IDENTIFIER, SEQUENCE, element};

/// rsaEncryption, 1.2.840.113549.1.1.1.
const RSA: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// Bits of a modulus: MySQL makes 2048. A server's long one would keep the client busy.
const BITS: std::ops::RangeInclusive<usize> = 1024..=8192;
/// What SHA-1 comes to.
const HASH_BYTES: usize = 20;

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PublicKey {
    /// The modulus, its lowest part first.
    modulus: Vec<u32>,
    exponent: u32,
    bytes: usize,
}

impl PublicKey {
    /// Reads a file (PEM).
    pub(super) fn read(path: &Path) -> Result<PublicKey, String> {
        let text = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        PublicKey::parse(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Reads PEM: a SubjectPublicKeyInfo (RFC 5280, 4.1) with an RSAPublicKey in it (RFC 8017, A.1.1).
    pub(super) fn parse(pem: &[u8]) -> Result<PublicKey, String> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| "this is no public key (PEM)")?;
        PublicKey::from_der(&der).ok_or_else(|| "this is no public key of RSA that weir takes".to_string())
    }

    fn from_der(der: &[u8]) -> Option<PublicKey> {
        let (info, _) = element(der, SEQUENCE)?;
        let (algorithm, rest) = element(info, SEQUENCE)?;
        if element(algorithm, OBJECT_IDENTIFIER)?.0 != RSA {
            return None;
        }
        let (key, _) = element(rest, BIT_STRING)?;
        let (key, _) = element(key.strip_prefix(&[0])?, SEQUENCE)?;
        let (modulus, rest) = element(key, INTEGER)?;
        let (exponent, _) = element(rest, INTEGER)?;
        let zeros = modulus.iter().take_while(|&&byte| byte == 0).count();
        let modulus = &modulus[zeros..];
        let bits = modulus.len() * 8 - modulus.first()?.leading_zeros() as usize;
        let exponent = exponent
            .iter()
            .try_fold(0_u32, |number, &byte| Some(number.checked_mul(256)? + u32::from(byte)))?;
        if !BITS.contains(&bits) || modulus.last()? % 2 == 0 || exponent < 3 || exponent % 2 == 0 {
            return None;
        }
        Some(PublicKey { bytes: modulus.len(), modulus: limbs(modulus), exponent })
    }

    /// RSAES-OAEP-ENCRYPT (RFC 8017, 7.1.1) with SHA-1 and no label, as MySQL has it.
    pub(super) fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let mut seed = [0; HASH_BYTES];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut seed).map_err(|_| "this system has no randomness")?;
        let padded = self.padded(message, seed).ok_or("the password is too long for the server's key")?;
        Ok(bytes(&power(&limbs(&padded), self.exponent, &self.modulus), self.bytes))
    }

    fn padded(&self, message: &[u8], mut seed: [u8; HASH_BYTES]) -> Option<Vec<u8>> {
        let zeros = self.bytes.checked_sub(message.len() + 2 * HASH_BYTES + 2)?;
        let mut block = Sha1::digest(b"").to_vec();
        block.resize(block.len() + zeros, 0);
        block.push(1);
        block.extend_from_slice(message);
        mask(&mut block, &seed);
        mask(&mut seed, &block);
        Some([&[0][..], &seed, &block].concat())
    }
}

/// XOR with MGF1 of `seed` (RFC 8017, B.2.1).
fn mask(bytes: &mut [u8], seed: &[u8]) {
    for (counter, part) in (0_u32..).zip(bytes.chunks_mut(HASH_BYTES)) {
        let hash = Sha1::new().chain_update(seed).chain_update(counter.to_be_bytes()).finalize();
        part.iter_mut().zip(hash).for_each(|(byte, mask)| *byte ^= mask);
    }
}

/// A number's parts, the lowest first, of its bytes, the highest first.
fn limbs(bytes: &[u8]) -> Vec<u32> {
    bytes.rchunks(4).map(|part| part.iter().fold(0, |number, &byte| number << 8 | u32::from(byte))).collect()
}

/// The other way; `count` bytes.
fn bytes(limbs: &[u32], count: usize) -> Vec<u8> {
    let all: Vec<u8> = limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
    let excess = all.len() - count.min(all.len());
    all[excess..].to_vec()
}

/// `base` to the `exponent` modulo an odd `modulus` of as many parts, above `base`.
fn power(base: &[u32], exponent: u32, modulus: &[u32]) -> Vec<u32> {
    let one = {
        let mut one = vec![0; modulus.len()];
        one[0] = 1;
        one
    };
    // 2^(2 * 32 * parts), which brings a number into Montgomery's form.
    let mut square = one.clone();
    (0..64 * modulus.len()).for_each(|_| double(&mut square, modulus));
    let base = product(base, &square, modulus);
    let mut result = base.clone();
    for bit in (0..31 - exponent.leading_zeros()).rev() {
        result = product(&result, &result, modulus);
        if exponent >> bit & 1 == 1 {
            result = product(&result, &base, modulus);
        }
    }
    product(&result, &one, modulus)
}

/// Twice a number below `modulus`.
fn double(number: &mut [u32], modulus: &[u32]) {
    let mut carry = 0;
    for limb in number.iter_mut() {
        let high = *limb >> 31;
        *limb = *limb << 1 | carry;
        carry = high;
    }
    reduce(number, carry, modulus);
}

/// Takes `modulus` away once, where the number, with what was carried out of it, is not below it.
fn reduce(number: &mut [u32], carry: u32, modulus: &[u32]) {
    let below = number.iter().rev().lt(modulus.iter().rev());
    if carry == 0 && below {
        return;
    }
    let mut borrow = 0;
    for (limb, part) in number.iter_mut().zip(modulus) {
        let difference = i64::from(*limb) - i64::from(*part) + borrow;
        *limb = difference as u32;
        borrow = difference >> 32;
    }
}

/// a · b / 2^(32 · parts) (P. L. Montgomery, Modular Multiplication Without Trial Division, 1985), part by part.
fn product(a: &[u32], b: &[u32], modulus: &[u32]) -> Vec<u32> {
    let parts = modulus.len();
    let inverse = negative_inverse(modulus[0]);
    let mut sum = vec![0_u32; parts + 2];
    for &factor in a {
        add(&mut sum, b, factor);
        let quotient = sum[0].wrapping_mul(inverse);
        add(&mut sum, modulus, quotient);
        // The lowest part is zero now.
        sum.remove(0);
        sum.push(0);
    }
    let carry = sum[parts];
    sum.truncate(parts);
    reduce(&mut sum, carry, modulus);
    sum
}

/// sum + b · factor.
fn add(sum: &mut [u32], b: &[u32], factor: u32) {
    let mut carry = 0_u64;
    for (at, limb) in sum.iter_mut().enumerate() {
        let part = b.get(at).map_or(0, |&limb| u64::from(limb) * u64::from(factor));
        let total = u64::from(*limb) + part + carry;
        *limb = total as u32;
        carry = total >> 32;
    }
}

/// -1 / odd modulo 2^32, by Newton: each step doubles the bits that are right.
fn negative_inverse(odd: u32) -> u32 {
    let mut inverse = odd;
    for _ in 0..4 {
        inverse = inverse.wrapping_mul(2_u32.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse.wrapping_neg()
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
            assert!(public.encrypt(&vec![1; public.bytes - 41]).unwrap_err().contains("too long"));
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
        fn powers_are_those_of_small_numbers(base in any::<u64>(), exponent in 3_u32..100_000, modulus in any::<u64>()) {
            let modulus = modulus | 1 | 1 << 63;
            let base = base % modulus;
            let wide = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(modulus)) as u64;
            let mut expected = 1;
            for bit in (0..32).rev() {
                expected = wide(expected, expected);
                if exponent >> bit & 1 == 1 {
                    expected = wide(expected, base);
                }
            }
            let got = power(&limbs(&base.to_be_bytes()), exponent, &limbs(&modulus.to_be_bytes()));
            prop_assert_eq!(bytes(&got, 8), expected.to_be_bytes());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (PublicKey::from_der(&bytes), PublicKey::parse(&bytes));
        }
    }
}
