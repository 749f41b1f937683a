//! Reading of bytes that may be anything: every step says `None` where there is too little.

/// What is left of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// An integer of one to nine bytes; `None` also for what stands for NULL (0xfb) and an error (0xff).
    #[inline]
    pub(super) fn lenenc(&mut self) -> Option<u64> {
        match self.u8()? {
            small @ ..=0xfa => Some(u64::from(small)),
            0xfc => self.u16().map(u64::from),
            0xfd => self.array().map(|[a, b, c]: [u8; 3]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
            0xfe => self.u64(),
            _ => None,
        }
    }

    pub(super) fn lenenc_bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.lenenc()?).ok()?;
        self.take(length)
    }

    /// Up to a NUL, which is consumed too.
    pub(super) fn nul_bytes(&mut self) -> Option<&'a [u8]> {
        let at = self.0.iter().position(|&byte| byte == 0)?;
        let taken = self.take(at)?;
        self.u8()?;
        Some(taken)
    }
}

/// Appends an integer of one to nine bytes.
pub(super) fn push_lenenc(out: &mut Vec<u8>, value: usize) {
    let bytes = (value as u64).to_le_bytes();
    match value {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends bytes after their length.
pub(super) fn push_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_lenenc(out, bytes.len());
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back_and_short_ones_do_not() {
        for value in [0usize, 1, 250, 251, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, usize::MAX] {
            let mut bytes = Vec::new();
            push_lenenc(&mut bytes, value);
            assert_eq!(Cursor(&bytes).lenenc(), Some(value as u64));
            bytes.pop();
            assert_eq!(Cursor(&bytes).lenenc(), None, "{value} cut short");
        }
        assert_eq!(Cursor(&[0xfb]).lenenc(), None);
        assert_eq!(Cursor(&[0xff, 0, 0]).lenenc(), None);
        assert_eq!(Cursor(&[0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 1]).lenenc_bytes(), None);
        assert_eq!(Cursor(b"ab").nul_bytes(), None);
        assert_eq!(Cursor(b"ab\0c").nul_bytes(), Some(&b"ab"[..]));
    }
}
