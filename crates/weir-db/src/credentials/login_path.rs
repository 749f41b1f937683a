//! MySQL's `~/.mylogin.cnf`: an option file that `mysql_config_editor` hides from a glance. Its key lies beside it, so
//! this protects from nobody who may read the file.

use aes::Aes128Dec;
use aes::cipher::{Array, BlockCipherDecrypt, KeyInit};

/// Unused bytes at the beginning.
const UNUSED: usize = 4;
/// Bytes of the key as stored.
const STORED_KEY: usize = 20;
/// Bytes of a cipher block and of the key in use.
const BLOCK: usize = 16;

/// The text of an option file. `None`: this is no such file, or it is damaged.
pub(super) fn reveal(file: &[u8]) -> Option<String> {
    let stored = file.get(UNUSED..UNUSED + STORED_KEY)?;
    let mut key = [0_u8; BLOCK];
    stored.iter().enumerate().for_each(|(i, byte)| key[i % BLOCK] ^= byte);
    let cipher = Aes128Dec::new(&Array::from(key));
    let mut rest = &file[UNUSED + STORED_KEY..];
    let mut text = Vec::new();
    // Each line by itself: its length in four bytes, little-endian, then whole blocks (ECB, padded by PKCS #7).
    while !rest.is_empty() {
        let (length, tail) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let line = tail.get(..length).filter(|line| line.len() % BLOCK == 0 && !line.is_empty())?;
        let start = text.len();
        for block in line.chunks_exact(BLOCK) {
            let mut block: [u8; BLOCK] = block.try_into().ok()?;
            let mut array = Array::from(block);
            cipher.decrypt_block(&mut array);
            block.copy_from_slice(&array);
            text.extend(block);
        }
        let padding = usize::from(*text.last()?);
        if padding == 0 || padding > BLOCK || text.len() - start < padding {
            return None;
        }
        text.truncate(text.len() - padding);
        rest = &tail[length..];
    }
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use aes::Aes128Enc;
    use aes::cipher::BlockCipherEncrypt;

    use super::*;

    /// The file of a text, line by line.
    pub fn hide(text: &str, stored: [u8; STORED_KEY]) -> Vec<u8> {
        let mut key = [0_u8; BLOCK];
        stored.iter().enumerate().for_each(|(i, byte)| key[i % BLOCK] ^= byte);
        let cipher = Aes128Enc::new(&Array::from(key));
        let mut file = vec![0; UNUSED];
        file.extend(stored);
        for line in text.split_inclusive('\n') {
            let padding = BLOCK - line.len() % BLOCK;
            let mut padded = line.as_bytes().to_vec();
            padded.extend(vec![padding as u8; padding]);
            file.extend((padded.len() as u32).to_le_bytes());
            for block in padded.chunks_exact(BLOCK) {
                let mut array = Array::from(<[u8; BLOCK]>::try_from(block).unwrap());
                cipher.encrypt_block(&mut array);
                file.extend_from_slice(&array);
            }
        }
        file
    }

    #[test]
    fn what_is_hidden_is_revealed_and_damage_is_seen() {
        let text = "[client]\nuser = \"dba\"\npassword = \"a very long word indeed\"\n";
        let file = hide(text, *b"01234567890123456789");
        assert_eq!(reveal(&file).as_deref(), Some(text));
        for end in [0, 3, 23, 25, file.len() - 1] {
            assert_ne!(reveal(&file[..end]).as_deref(), Some(text), "{end}");
        }
        let mut damaged = file;
        damaged[24] = 0xff;
        assert_eq!(reveal(&damaged), None);
    }

    /// FIPS 197, appendix B: the cipher is the one that the file names.
    #[test]
    fn the_cipher_is_aes_128() {
        let bytes = |hex: &str| -> [u8; BLOCK] {
            std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        };
        let cipher = Aes128Dec::new(&Array::from(bytes("2b7e151628aed2a6abf7158809cf4f3c")));
        let mut block = Array::from(bytes("3925841d02dc09fbdc118597196a0b32"));
        cipher.decrypt_block(&mut block);
        assert_eq!(block[..], bytes("3243f6a8885a308d313198a2e0370734"));
    }
}
