//! Prepared statements as bytes: what an execution sends is made once, except for the values.

use crate::value::Value;

use super::message;
use super::parameters::{TEXT, Wanted};

/// A statement that the server has prepared.
#[derive(Debug)]
pub struct Statement {
    name: String,
    wanted: Vec<Wanted>,
    /// A Bind message up to its values: type, length, portal, name, formats, count.
    head: Vec<u8>,
    /// Where in `head` the formats begin, two bytes each.
    formats: usize,
    /// What follows the values: the form of the results, Execute, Sync.
    tail: Vec<u8>,
}

impl Statement {
    /// The statement of this name.
    pub fn new(name: String, wanted: Vec<Wanted>) -> Statement {
        let mut head = vec![b'B', 0, 0, 0, 0, 0];
        message::put_text(&mut head, &name);
        let count = (wanted.len() as u16).to_be_bytes();
        head.extend_from_slice(&count);
        let formats = head.len();
        head.extend(wanted.iter().flat_map(|_| [0, TEXT]));
        head.extend_from_slice(&count);
        let mut tail = vec![0, 0];
        message::put(&mut tail, b'E', |out| out.extend_from_slice(&[0; 5]));
        sync(&mut tail);
        Statement { name, wanted, head, formats, tail }
    }

    /// What the server knows it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parameters it has.
    pub fn parameters(&self) -> usize {
        self.wanted.len()
    }

    /// Appends Bind, Execute and Sync. There are as many values as parameters.
    #[inline]
    pub fn put(&self, values: &[Value<'_>], out: &mut Vec<u8>) {
        debug_assert_eq!(values.len(), self.wanted.len());
        let start = out.len();
        out.extend_from_slice(&self.head);
        for (i, (wanted, value)) in self.wanted.iter().zip(values).enumerate() {
            let format = wanted.put(value, out);
            out[start + self.formats + 2 * i + 1] = format;
        }
        // Two bytes of the tail belong to Bind, whose length does not count its type.
        let length = (out.len() + 2 - start - 1) as u32;
        out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.tail);
    }
}

/// Appends Parse, Describe and Sync.
pub fn put_prepare(name: &str, sql: &str, out: &mut Vec<u8>) {
    message::put(out, b'P', |out| {
        message::put_text(out, name);
        message::put_text(out, sql);
        out.extend_from_slice(&[0; 2]);
    });
    message::put(out, b'D', |out| named(name, out));
    sync(out);
}

/// Appends Close and Sync.
pub fn put_close(name: &str, out: &mut Vec<u8>) {
    message::put(out, b'C', |out| named(name, out));
    sync(out);
}

fn named(name: &str, out: &mut Vec<u8>) {
    out.push(b'S');
    message::put_text(out, name);
}

fn sync(out: &mut Vec<u8>) {
    message::put(out, b'S', |_| ());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_is_bind_execute_and_sync() {
        let wanted = Wanted::read(b"\0\x02\0\0\0\x17\0\0\x04\x12").unwrap();
        let statement = Statement::new("n".to_string(), wanted);
        assert_eq!(statement.parameters(), 2);
        let mut out = b"before".to_vec();
        statement.put(&[Value::Int(5), Value::Text("ab")], &mut out);
        let expected = b"beforeB\0\0\0\x1f\0n\0\0\x02\0\x01\0\0\0\x02\0\0\0\x04\0\0\0\x05\0\0\0\x02ab\0\0\
            E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
        assert_eq!(out, expected);
        out.clear();
        statement.put(&[Value::Text("x"), Value::Null], &mut out);
        assert_eq!(
            out,
            b"B\0\0\0\x1a\0n\0\0\x02\0\0\0\0\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"
        );
    }

    #[test]
    fn preparing_and_closing_name_the_statement() {
        let mut out = Vec::new();
        put_prepare("7", "BEGIN", &mut out);
        put_close("7", &mut out);
        assert_eq!(out, b"P\0\0\0\x0e7\0BEGIN\0\0\0D\0\0\0\x07S7\0S\0\0\0\x04C\0\0\0\x07S7\0S\0\0\0\x04");
    }
}
