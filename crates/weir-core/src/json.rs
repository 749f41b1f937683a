//! JSON into types, by one way: each further way (from a text, from a tree, from a stream) is another copy of the
//! code for every field there is, a third of a megabyte a way.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// What a text says.
pub fn parse<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_slice(text.as_bytes())
}

/// What a tree says. It costs a detour through text: for what is read once, not for what is read often.
pub fn typed<T: DeserializeOwned>(tree: &Value) -> serde_json::Result<T> {
    serde_json::from_slice(&serde_json::to_vec(tree)?)
}
