//! How much memory the histograms of a stored text would take, told before they are made: a hundred bytes of text can
//! name the first and the last bucket, and a histogram holds all between them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::histogram::{Histogram, PRECISION_BITS};

/// Bytes that all histograms in a JSON text take once they are read, about; more for those of coarser ones.
///
/// # Errors
/// When it is no JSON.
pub fn histogram_bytes(text: &[u8]) -> serde_json::Result<u64> {
    Ok(serde_json::from_slice::<Node>(text)?.claims)
}

/// Of a value what a histogram would be known by.
#[derive(Default)]
struct Node {
    /// Of it and all in it.
    claims: u64,
    /// The value, if it is a whole number.
    number: Option<u64>,
    /// The first item of a list, if that is a number.
    first: Option<u64>,
    /// Least and greatest first item of the lists in a list.
    span: Option<(u64, u64)>,
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Node, D::Error> {
        from.deserialize_any(Walk)
    }
}

struct Walk;

impl<'de> Visitor<'de> for Walk {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node { number: Some(number), ..Node::default() })
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::default())
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut node = Node::default();
        let mut at = 0_u64;
        while let Some(item) = list.next_element::<Node>()? {
            node.claims = node.claims.saturating_add(item.claims);
            if at == 0 {
                node.first = item.number;
            }
            if let Some(first) = item.first {
                let (least, most) = node.span.unwrap_or((first, first));
                node.span = Some((least.min(first), most.max(first)));
            }
            at += 1;
        }
        Ok(node)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let (mut node, mut bits, mut span) = (Node::default(), None, None);
        while let Some(key) = map.next_key::<String>()? {
            let item = map.next_value::<Node>()?;
            node.claims = node.claims.saturating_add(item.claims);
            match key.as_str() {
                "precision_bits" => bits = item.number,
                "buckets" => span = item.span,
                _ => {}
            }
        }
        if let (Some(bits), Some((least, most))) = (bits, span) {
            node.claims = node.claims.saturating_add(dense_bytes(bits, least, most));
        }
        Ok(node)
    }
}

/// Of a histogram from the power of two in which one bucket lies to that of another.
fn dense_bytes(bits: u64, least: u64, most: u64) -> u64 {
    const OCTAVE_BYTES: u64 = 8 << PRECISION_BITS;
    let octave = |bucket: u64| bucket.checked_shr(bits.min(64) as u32).unwrap_or(0).min(64);
    let all = Histogram::BUCKETS as u64 * 8;
    ((octave(most) - octave(least) + 1) * OCTAVE_BYTES).min(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_histograms_claim_what_they_take() {
        let wide =
            r#"{"precision_bits":10,"count":2,"sum_ns":1,"min_ns":0,"max_ns":9,"buckets":[[0,1],[56000,1]]}"#;
        let narrow = wide.replace("56000", "5");
        let all = Histogram::BUCKETS as u64 * 8;
        for (text, expected) in [
            (wide.to_string(), all),
            (narrow.clone(), 8192),
            (format!("[{wide},{{\"a\":[{wide},{narrow}]}},null,true,-1,1e9,\"x\"]"), 2 * all + 8192),
            (r#"{"buckets":[[1,2]],"other":3}"#.to_string(), 0),
            ("[[1,2],[99999,3]]".to_string(), 0),
            (wide.replace(":10,", ":18446744073709551615,"), 8192),
        ] {
            assert_eq!(histogram_bytes(text.as_bytes()).unwrap(), expected, "{text}");
        }
        assert!(histogram_bytes(b"{\"a\":").is_err());
    }
}
