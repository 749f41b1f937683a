//! What SCRAM is bound to: the hash of the server's certificate (RFC 5929, section 4.1).

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// Tags of DER (X.690, section 8).
const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// What follows 1.2.840.113549.1.1 (RFC 8017) and 1.2.840.10045.4 (RFC 5758) in the name of a signature.
const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const ECDSA: [u8; 6] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];

/// Hash of a certificate (DER) by the function that its signature uses; SHA-256 in place of MD5 and SHA-1. `None` where
/// that function is not to be had from the signature's name (Ed25519, RSA-PSS): nothing can be bound to then.
pub fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (inside, _) = element(certificate, SEQUENCE)?;
    let (_, after_tbs) = element(inside, SEQUENCE)?;
    let (algorithm, _) = element(after_tbs, SEQUENCE)?;
    let (name, _) = element(algorithm, OBJECT_IDENTIFIER)?;
    let hash = |bits| match bits {
        224 => Sha224::digest(certificate).to_vec(),
        384 => Sha384::digest(certificate).to_vec(),
        512 => Sha512::digest(certificate).to_vec(),
        _ => Sha256::digest(certificate).to_vec(),
    };
    let bits = match (name.strip_prefix(&RSA), name.strip_prefix(&ECDSA)) {
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => 256,
        (Some([12]), _) | (_, Some([3, 3])) => 384,
        (Some([13]), _) | (_, Some([3, 4])) => 512,
        (Some([14]), _) | (_, Some([3, 1])) => 224,
        _ => return None,
    };
    Some(hash(bits))
}

/// Content of the element that `bytes` begin with, and what follows it; `None` where its tag is another.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[first, short], rest) = bytes.split_first_chunk()?;
    if first != tag {
        return None;
    }
    let (length, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
            (digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The frame of a certificate, signed by the algorithm of this name.
    fn signed_by(name: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| [&[tag, content.len() as u8][..], content].concat();
        let algorithm = wrap(SEQUENCE, &wrap(OBJECT_IDENTIFIER, name));
        wrap(SEQUENCE, &[wrap(SEQUENCE, b"to be signed"), algorithm, wrap(3, b"signature")].concat())
    }

    #[test]
    fn the_signature_says_which_hash() {
        for (prefix, last, bytes) in [
            (&RSA[..], &[5][..], Some(32)),
            (&RSA, &[11], Some(32)),
            (&RSA, &[12], Some(48)),
            (&RSA, &[13], Some(64)),
            (&RSA, &[14], Some(28)),
            (&RSA, &[10], None),
            (&ECDSA, &[1], Some(32)),
            (&ECDSA, &[3, 2], Some(32)),
            (&ECDSA, &[3, 4], Some(64)),
            (&[0x2b, 0x65, 0x70], &[], None),
        ] {
            let name = [prefix, last].concat();
            assert_eq!(end_point(&signed_by(&name)).map(|hash| hash.len()), bytes, "{name:?}");
        }
        let certificate = signed_by(&[&RSA[..], &[11]].concat());
        assert_eq!(end_point(&certificate), Some(Sha256::digest(&certificate).to_vec()));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), cut in 0_usize..40) {
            let whole = signed_by(&[&RSA[..], &[11]].concat());
            let _ = end_point(&bytes);
            let _ = end_point(&whole[..cut.min(whole.len())]);
            let _ = end_point(&[&[0x30, 0x82, 0xff, 0xff][..], &bytes].concat());
        }
    }
}
