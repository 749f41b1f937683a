//! Values in the form that the server wants them.

use crate::value::Value;

use super::message::{Body, Malformed};

/// How a value stands in a Bind message: PostgreSQL's format codes.
pub const TEXT: u8 = 0;
/// As the type's binary form.
pub const BINARY: u8 = 1;

/// What a parameter's type takes in binary form. Everything else goes as text, which every type reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// `smallint`.
    Int2,
    /// `integer`.
    Int4,
    /// `bigint`.
    Int8,
    /// `double precision`.
    Float8,
    /// Any other type.
    Text,
}

impl Wanted {
    /// By the type's number in pg_type, which is fixed for built-in types (src/include/catalog/pg_type.dat).
    fn of(oid: i32) -> Wanted {
        match oid {
            21 => Wanted::Int2,
            23 => Wanted::Int4,
            20 => Wanted::Int8,
            701 => Wanted::Float8,
            _ => Wanted::Text,
        }
    }

    /// What a ParameterDescription asks for.
    pub fn read(body: &[u8]) -> Result<Vec<Wanted>, Malformed> {
        let mut body = Body(body);
        let count = body.count()?;
        (0..count).map(|_| body.i32().map(Wanted::of)).collect()
    }

    /// Appends length and bytes of a value, and says in which format they are. A value that the type cannot hold goes
    /// as text: the server then says itself what is wrong with it.
    #[inline]
    pub fn put(self, value: &Value<'_>, out: &mut Vec<u8>) -> u8 {
        match (self, value) {
            (Wanted::Int4, Value::Int(int)) if let Ok(int) = i32::try_from(*int) => {
                sized(out, int.to_be_bytes())
            }
            (Wanted::Int8, Value::Int(int)) => sized(out, int.to_be_bytes()),
            (Wanted::Int2, Value::Int(int)) if let Ok(int) = i16::try_from(*int) => {
                sized(out, int.to_be_bytes())
            }
            (Wanted::Float8, Value::Float(float)) => sized(out, float.to_be_bytes()),
            (_, Value::Text(text)) => {
                out.extend_from_slice(&(text.len() as u32).to_be_bytes());
                out.extend_from_slice(text.as_bytes());
                TEXT
            }
            (_, Value::Null) => {
                out.extend_from_slice(&(-1_i32).to_be_bytes());
                TEXT
            }
            (_, Value::Int(int)) => printed(out, format_args!("{int}")),
            (_, Value::Float(float)) => printed(out, format_args!("{float}")),
        }
    }
}

fn sized<const N: usize>(out: &mut Vec<u8>, bytes: [u8; N]) -> u8 {
    out.extend_from_slice(&(N as u32).to_be_bytes());
    out.extend_from_slice(&bytes);
    BINARY
}

fn printed(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) -> u8 {
    use std::io::Write;
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    TEXT
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_take_the_form_of_their_column() {
        let over_int4 = i64::from(i32::MAX) + 1;
        for (wanted, value, format, expected) in [
            (Wanted::Int4, Value::Int(-2), BINARY, &b"\0\0\0\x04\xff\xff\xff\xfe"[..]),
            (Wanted::Int8, Value::Int(258), BINARY, b"\0\0\0\x08\0\0\0\0\0\0\x01\x02"),
            (Wanted::Int2, Value::Int(7), BINARY, b"\0\0\0\x02\0\x07"),
            (Wanted::Int4, Value::Int(over_int4), TEXT, b"\0\0\0\x0a2147483648"),
            (Wanted::Int2, Value::Int(40_000), TEXT, b"\0\0\0\x0540000"),
            (Wanted::Float8, Value::Float(0.5), BINARY, b"\0\0\0\x08\x3f\xe0\0\0\0\0\0\0"),
            (Wanted::Float8, Value::Int(3), TEXT, b"\0\0\0\x013"),
            (Wanted::Text, Value::Int(-15), TEXT, b"\0\0\0\x03-15"),
            (Wanted::Text, Value::Float(f64::NAN), TEXT, b"\0\0\0\x03NaN"),
            (Wanted::Int4, Value::Text("12"), TEXT, b"\0\0\0\x0212"),
            (Wanted::Int8, Value::Null, TEXT, b"\xff\xff\xff\xff"),
        ] {
            let mut out = Vec::new();
            assert_eq!(wanted.put(&value, &mut out), format, "{wanted:?} {value:?}");
            assert_eq!(out, expected, "{wanted:?} {value:?}");
        }
    }

    #[test]
    fn a_description_of_parameters_has_as_many_types_as_it_says() {
        assert_eq!(Wanted::read(b"\0\x02\0\0\0\x17\0\0\x04\x12"), Ok(vec![Wanted::Int4, Wanted::Text]));
        assert_eq!(Wanted::read(b"\0\0"), Ok(vec![]));
        assert!(Wanted::read(b"\xff\xff\0\0\0\x17").is_err());
    }

    proptest! {
        #[test]
        fn no_description_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Wanted::read(&bytes);
        }
    }
}
