//! What a stored text would cost whoever reads it, told before it is read. Memory: a hundred bytes of text can name the first
//! and the last bucket, and a histogram holds all between them. Sums: figures that no run has overflow them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::histogram::{Histogram, PRECISION_BITS};

/// All figures of a real run add up to less: nanoseconds of 146 years. Sums of some of them, each taken up to four times,
/// fit into 64 bits then.
const FIGURES_MAX: f64 = (1_u64 << 62) as f64;
/// Keys of numbers that are no figures, and are never added: seeds, and what a clock on the wall showed.
const NO_FIGURES: [&str; 2] = ["seed", "wall_ns"];

/// Whether figures in one JSON text after the other, up to the first that is none, can be trusted: they may lie, but no
/// sum of them overflows.
///
/// # Errors
/// When they are too large.
pub fn check_figures(text: &[u8]) -> serde_json::Result<()> {
    let nodes = serde_json::Deserializer::from_slice(text).into_iter::<Node>();
    check(nodes.map_while(Result::ok).map(|node| node.figures).sum())
}

/// Bytes that all histograms in a JSON text take once they are read, about; more for those of coarser ones.
///
/// # Errors
/// When it is no JSON, or as [`check_figures`].
pub fn histogram_bytes(text: &[u8]) -> serde_json::Result<u64> {
    let whole: Node = serde_json::from_slice(text)?;
    check(whole.figures)?;
    Ok(whole.claims)
}

fn check(figures: f64) -> serde_json::Result<()> {
    if figures < FIGURES_MAX {
        return Ok(());
    }
    Err(serde_json::Error::custom(format!("its figures add up to {figures:.1e}, more than any run has")))
}

/// Of a value what a histogram would be known by.
#[derive(Default)]
struct Node {
    /// Of it and all in it.
    claims: u64,
    /// Sizes of all numbers in it, added up.
    figures: f64,
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
        Ok(Node { number: Some(number), figures: number as f64, ..Node::default() })
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node { figures: (number as f64).abs(), ..Node::default() })
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node { figures: number.abs(), ..Node::default() })
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
            node.figures += item.figures;
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
            if !NO_FIGURES.contains(&key.as_str()) {
                node.figures += item.figures;
            }
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
            (wide.replace(":10,", ":4611686018427300000,"), 8192),
        ] {
            assert_eq!(histogram_bytes(text.as_bytes()).unwrap(), expected, "{text}");
        }
        assert!(histogram_bytes(b"{\"a\":").is_err());
    }

    #[test]
    fn figures_of_no_run_are_refused() {
        for (text, good) in [
            ("[4611686018427387000, 100]", true),
            ("[4611686018427387000, 2000]", false),
            ("{\"a\":[18446744073709551615]}", false),
            ("{\"seed\":18446744073709551615}", true),
            ("[-1e300]", false),
            ("[-9223372036854775808]", false),
            ("[1e308] 1", false),
            ("4611686018427387000\n5000", false),
            ("4611686018427387000\n{5000", true),
        ] {
            assert_eq!(check_figures(text.as_bytes()).is_ok(), good, "{text}");
        }
    }
}
