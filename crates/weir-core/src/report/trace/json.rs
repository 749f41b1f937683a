//! An analysis as JSON: figures for people and scripts first, then `data`, from which it can be read back.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::trace::Analysis;

/// Version of the document; fields may be added without it changing.
const SCHEMA: u32 = 1;

/// An analysis, with a newline at the end.
pub fn analysis(analysis: &Analysis) -> serde_json::Result<String> {
    let mut document = Map::new();
    document.insert("schema".to_string(), json!(SCHEMA));
    document.insert("data".to_string(), serde_json::to_value(analysis)?);
    serde_json::to_string(&Value::Object(document)).map(|text| text + "\n")
}

/// What [`analysis`] wrote, read back.
pub fn read(text: &str) -> serde_json::Result<Analysis> {
    #[derive(Deserialize)]
    struct Document {
        data: Analysis,
    }
    serde_json::from_str::<Document>(text).map(|document| document.data)
}
