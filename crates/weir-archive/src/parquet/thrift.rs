//! Thrift's compact protocol (thrift-compact-protocol.md): structures written field by field, and read into a tree.

use std::collections::BTreeMap;

use crate::Damaged;

/// A depth of structures and lists that no file of Parquet reaches.
const DEPTH_MAX: usize = 16;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// A structure in the making.
#[derive(Default)]
pub struct Out {
    bytes: Vec<u8>,
    last: i16,
}

impl Out {
    fn header(&mut self, field: i16, kind: u8) {
        match field - self.last {
            delta @ 1..=15 => self.bytes.push((delta as u8) << 4 | kind),
            _ => {
                self.bytes.push(kind);
                varint(&mut self.bytes, zigzag(i64::from(field)));
            }
        }
        self.last = field;
    }

    pub fn int32(&mut self, field: i16, value: i64) -> &mut Out {
        self.header(field, I32);
        varint(&mut self.bytes, zigzag(value));
        self
    }

    pub fn int64(&mut self, field: i16, value: i64) -> &mut Out {
        self.header(field, I64);
        varint(&mut self.bytes, zigzag(value));
        self
    }

    pub fn binary(&mut self, field: i16, value: &[u8]) -> &mut Out {
        self.header(field, BINARY);
        binary(&mut self.bytes, value);
        self
    }

    pub fn structure(&mut self, field: i16, value: &mut Out) -> &mut Out {
        self.header(field, STRUCT);
        self.bytes.extend(value.end());
        self
    }

    pub fn structures(&mut self, field: i16, values: impl ExactSizeIterator<Item = Out>) -> &mut Out {
        self.list(field, STRUCT, values.len());
        for mut value in values {
            self.bytes.extend(value.end());
        }
        self
    }

    pub fn numbers(&mut self, field: i16, values: &[i64]) -> &mut Out {
        self.list(field, I32, values.len());
        values.iter().for_each(|value| varint(&mut self.bytes, zigzag(*value)));
        self
    }

    pub fn names(&mut self, field: i16, values: &[&str]) -> &mut Out {
        self.list(field, BINARY, values.len());
        values.iter().for_each(|value| binary(&mut self.bytes, value.as_bytes()));
        self
    }

    fn list(&mut self, field: i16, kind: u8, length: usize) {
        self.header(field, LIST);
        if length < 15 {
            self.bytes.push((length as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            varint(&mut self.bytes, length as u64);
        }
    }

    /// The structure's bytes.
    pub fn end(&mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.last = 0;
        std::mem::take(&mut self.bytes)
    }
}

fn binary(to: &mut Vec<u8>, value: &[u8]) {
    varint(to, value.len() as u64);
    to.extend(value);
}

/// Seven bits a byte, the lowest first.
pub fn varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Small numbers of either sign become small ones without.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse.
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Something that was read. Bytes stay where they are, so that those that nobody wants cost nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    Number(i64),
    Bytes(&'a [u8]),
    List(Vec<Value<'a>>),
    Struct(BTreeMap<i16, Value<'a>>),
    /// What Parquet has no use for here.
    Other,
}

impl<'a> Value<'a> {
    pub fn field(&self, id: i16) -> Option<&Value<'a>> {
        match self {
            Value::Struct(fields) => fields.get(&id),
            _ => None,
        }
    }

    pub fn number(&self, id: i16) -> Option<i64> {
        match self.field(id)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn list(&self, id: i16) -> &[Value<'a>] {
        match self.field(id) {
            Some(Value::List(list)) => list,
            _ => &[],
        }
    }
}

/// Bytes, and how far they are read.
pub struct In<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Values that the structure may still have.
    values_left: usize,
}

impl<'a> In<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> In<'a> {
        In { bytes, at, values_left: 0 }
    }

    /// How far.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn damaged<T>(&self, what: &str) -> Result<T, Damaged> {
        Err(Damaged::new(self.at, what))
    }

    pub fn byte(&mut self) -> Result<u8, Damaged> {
        let Some(byte) = self.bytes.get(self.at) else { return self.damaged("the end is missing") };
        self.at += 1;
        Ok(*byte)
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Damaged> {
        let end = self.at.checked_add(length);
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(bytes) => {
                self.at += length;
                Ok(bytes)
            }
            None => self.damaged("the end is missing"),
        }
    }

    pub fn varint(&mut self) -> Result<u64, Damaged> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.damaged("a number of more than 64 bits")
    }

    /// A length, which cannot exceed what is left: each item takes a byte at least.
    pub fn length(&mut self) -> Result<usize, Damaged> {
        let length = self.varint()?;
        match usize::try_from(length) {
            Ok(length) if length <= self.bytes.len().saturating_sub(self.at) => Ok(length),
            _ => self.damaged("a length beyond the end"),
        }
    }

    /// A structure of so many values at most, those inside of others counted, too: one may take a hundred times its bytes.
    pub fn structure(&mut self, most: usize) -> Result<Value<'a>, Damaged> {
        self.values_left = most;
        self.structure_at(0)
    }

    fn count(&mut self) -> Result<(), Damaged> {
        match self.values_left.checked_sub(1) {
            Some(left) => self.values_left = left,
            None => return self.damaged("more values than weir writes"),
        }
        Ok(())
    }

    fn structure_at(&mut self, depth: usize) -> Result<Value<'a>, Damaged> {
        let (mut fields, mut last) = (BTreeMap::new(), 0_i16);
        loop {
            let header = self.byte()?;
            if header == 0 {
                return Ok(Value::Struct(fields));
            }
            self.count()?;
            let id = match header >> 4 {
                0 => unzigzag(self.varint()?) as i16,
                delta => last.wrapping_add(i16::from(delta)),
            };
            last = id;
            let value = match header & 0xf {
                TRUE => Value::Number(1),
                FALSE => Value::Number(0),
                kind => self.value(kind, depth)?,
            };
            fields.insert(id, value);
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<Value<'a>, Damaged> {
        if depth > DEPTH_MAX {
            return self.damaged("values that lie too deep");
        }
        Ok(match kind {
            // In a list, a boolean has a byte of its own.
            TRUE | FALSE | BYTE => Value::Number(i64::from(self.byte()?)),
            I16 | I32 | I64 => Value::Number(unzigzag(self.varint()?)),
            DOUBLE => self.take(8).map(|_| Value::Other)?,
            BINARY => {
                let length = self.length()?;
                Value::Bytes(self.take(length)?)
            }
            LIST | SET => {
                let header = self.byte()?;
                let length = match header >> 4 {
                    15 => self.length()?,
                    short => usize::from(short),
                };
                let item = |_| self.count().and_then(|()| self.value(header & 0xf, depth + 1));
                Value::List((0..length).map(item).collect::<Result<_, _>>()?)
            }
            STRUCT => self.structure_at(depth + 1)?,
            _ => return self.damaged("a kind of value that Parquet does not use"),
        })
    }
}
