//! Base64 (RFC 4648, section 4), as SCRAM's messages hold it: a few dozen bytes, with padding.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of some bytes.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, i| bits << 8 | u32::from(*group.get(i).unwrap_or(&0)));
        for place in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The bytes of a text; `None` where it is not one that [`encode`] makes.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.as_bytes().chunks(4) {
        let padding = group.iter().rev().take_while(|&&byte| byte == b'=').count().min(2);
        let mut bits = 0;
        for byte in &group[..group.len() - padding] {
            bits = bits << 6 | ALPHABET.iter().position(|digit| digit == byte)? as u32;
        }
        bits <<= 6 * padding;
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    // Whatever is wrong with a text, in length, padding or spare bits, encoding does not lead back to it.
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_rfc_4648_section_10() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        for wrong in ["Z", "Zg", "Zg=", "Zh==", "Z===", "====", "Zm8=Zg==", "Zm 9v", "Zm9vé"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn decoding_leads_back(bytes in proptest::collection::vec(any::<u8>(), 0..50), text in ".{0,20}") {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
            let _ = decode(&text);
        }
    }
}
