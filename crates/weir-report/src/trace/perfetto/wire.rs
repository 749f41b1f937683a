//! Protocol Buffers' wire format, as much of it as a trace takes: <https://protobuf.dev/programming-guides/encoding/>.

/// A message under way: its fields so far.
#[derive(Debug, Clone, Default)]
pub struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;

impl Message {
    /// A number; of a negative `int64` its two's complement.
    pub fn number(mut self, field: u32, value: u64) -> Message {
        self.key(field, VARINT);
        self.varint(value);
        self
    }

    /// A number of eight bytes.
    pub fn fixed(mut self, field: u32, value: u64) -> Message {
        self.key(field, FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// A text.
    pub fn text(self, field: u32, value: &str) -> Message {
        self.bytes(field, value.as_bytes())
    }

    /// A message in this one.
    pub fn message(self, field: u32, value: &Message) -> Message {
        self.bytes(field, &value.0)
    }

    /// All fields.
    pub fn encoded(&self) -> &[u8] {
        &self.0
    }

    fn bytes(mut self, field: u32, value: &[u8]) -> Message {
        self.key(field, LENGTH);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    fn key(&mut self, field: u32, kind: u64) {
        self.varint(u64::from(field) << 3 | kind);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the encoding's own guide.
    #[test]
    fn bytes_are_those_of_the_guide() {
        assert_eq!(Message::default().number(1, 150).encoded(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").encoded(), b"\x12\x07testing");
        let inner = Message::default().number(1, 150);
        assert_eq!(Message::default().message(3, &inner).encoded(), [0x1a, 3, 0x08, 0x96, 0x01]);
        assert_eq!(Message::default().fixed(1, 1).encoded(), [0x09, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Message::default().number(1, u64::MAX).encoded().len(), 11);
    }
}
