//! The keys of a job, each with its type.

use std::path::PathBuf;
use std::str::FromStr;

use toml::de::DeValue;

use crate::units::{Bytes, Nanos, ParseUnitError};
use crate::workload::draft::{Draft, Place};
use crate::workload::text::unknown;
use crate::workload::validate::SpecError;

/// All keys of a job, as the documentation orders them.
pub const KEYS: &[&str] = &[
    "name",
    "dir",
    "file",
    "device",
    "prefix",
    "files",
    "size",
    "keep",
    "offset",
    "access",
    "distribution",
    "read-percent",
    "block",
    "engine",
    "depth",
    "threads",
    "direct",
    "invalidate",
    "iopoll",
    "open-sync",
    "sync",
    "rate",
    "late-after",
    "duration",
    "operations",
    "warmup",
    "ramp",
    "seed",
    "data",
    "verify",
    "after-previous",
];
const SYNC_KEYS: &[&str] = &["every", "mode", "at-end"];
const RATE_KEYS: &[&str] = &["iops", "arrival"];

/// States one key of a job.
pub fn set(draft: &mut Draft, key: &str, value: &DeValue<'_>) -> Result<(), SpecError> {
    let draft_or_rest = set_target(draft, key, value)?;
    if draft_or_rest || set_shape(draft, key, value)? || set_course(draft, key, value)? {
        return Ok(());
    }
    Err(unknown("key of a job", key, KEYS))
}

/// Where the I/O goes. True where the key is one of these.
fn set_target(draft: &mut Draft, key: &str, value: &DeValue<'_>) -> Result<bool, SpecError> {
    match key {
        "name" => draft.name = Some(text(key, value)?.to_string()),
        "dir" => set_place(draft, Place::Dir(path(key, value)?))?,
        "file" => set_place(draft, Place::File(path(key, value)?))?,
        "device" => set_place(draft, Place::Device(path(key, value)?))?,
        "prefix" => draft.prefix = Some(text(key, value)?.to_string()),
        "files" => draft.files = Some(whole(key, value)?),
        "size" => draft.size = Some(bytes(key, value)?),
        "keep" => draft.keep = Some(flag(key, value)?),
        "offset" => draft.offset = Some(bytes(key, value)?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Which operations are issued, and how. True where the key is one of these.
fn set_shape(draft: &mut Draft, key: &str, value: &DeValue<'_>) -> Result<bool, SpecError> {
    match key {
        "access" => draft.access = Some(word(key, value)?),
        "distribution" => draft.distribution = Some(word(key, value)?),
        "read-percent" => draft.read_percent = Some(number(key, value)?),
        "block" => draft.block = Some(block(key, value)?),
        "engine" => draft.engine = Some(word(key, value)?),
        "depth" => draft.depth = Some(whole(key, value)?),
        "threads" => draft.threads = Some(whole(key, value)?),
        "direct" => draft.direct = Some(flag(key, value)?),
        "invalidate" => draft.invalidate = Some(flag(key, value)?),
        "iopoll" => draft.iopoll = Some(flag(key, value)?),
        "open-sync" => draft.open_sync = Some(word(key, value)?),
        "sync" => set_sync(draft, value)?,
        "data" => draft.data = Some(word(key, value)?),
        "verify" => draft.verify = Some(flag(key, value)?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// How long and how fast. True where the key is one of these.
fn set_course(draft: &mut Draft, key: &str, value: &DeValue<'_>) -> Result<bool, SpecError> {
    match key {
        "rate" => set_rate(draft, value)?,
        "late-after" => draft.late_after = Some(time(key, value)?),
        "duration" => draft.duration = Some(time(key, value)?),
        "operations" => draft.operations = Some(whole(key, value)?),
        "warmup" => draft.warmup = Some(time(key, value)?),
        "ramp" => draft.ramp = Some(time(key, value)?),
        "seed" => draft.seed = Some(whole(key, value)?),
        "after-previous" => draft.after_previous = Some(flag(key, value)?),
        _ => return Ok(false),
    }
    Ok(true)
}

fn set_place(draft: &mut Draft, place: Place) -> Result<(), SpecError> {
    match draft.place.replace(place) {
        None => Ok(()),
        Some(_) => Err(SpecError::new("a job has one target").hint("state one of dir, file and device")),
    }
}

fn set_sync(draft: &mut Draft, value: &DeValue<'_>) -> Result<(), SpecError> {
    let DeValue::Table(table) = value else {
        return Err(wrong_type("sync", "a table", value)
            .hint("for example sync = { every = 1, mode = \"fdatasync\" }"));
    };
    for (key, value) in table {
        let (key, value) = (key.get_ref().as_ref(), value.get_ref());
        match key {
            "every" => draft.sync_every = Some(whole("sync.every", value)?),
            "mode" => draft.sync_mode = Some(word("sync.mode", value)?),
            "at-end" => draft.sync_at_end = Some(flag("sync.at-end", value)?),
            _ => return Err(unknown("key of sync", key, SYNC_KEYS)),
        }
    }
    Ok(())
}

/// `rate = 1000`, or a table with the arrival too.
fn set_rate(draft: &mut Draft, value: &DeValue<'_>) -> Result<(), SpecError> {
    let DeValue::Table(table) = value else {
        draft.rate_iops = Some(number("rate", value)?);
        return Ok(());
    };
    for (key, value) in table {
        let (key, value) = (key.get_ref().as_ref(), value.get_ref());
        match key {
            "iops" => draft.rate_iops = Some(number("rate.iops", value)?),
            "arrival" => draft.arrival = Some(word("rate.arrival", value)?),
            _ => return Err(unknown("key of rate", key, RATE_KEYS)),
        }
    }
    Ok(())
}

fn wrong_type(key: &str, wanted: &str, value: &DeValue<'_>) -> SpecError {
    SpecError::new(format!("`{key}` takes {wanted}, not {}", value.type_str()))
}

fn text<'a>(key: &str, value: &'a DeValue<'_>) -> Result<&'a str, SpecError> {
    value.as_str().ok_or_else(|| wrong_type(key, "a text in quotes", value))
}

fn path(key: &str, value: &DeValue<'_>) -> Result<PathBuf, SpecError> {
    let path = text(key, value)?;
    if path.is_empty() || path.contains('\0') {
        return Err(SpecError::new(format!("`{key}` takes a path")));
    }
    Ok(PathBuf::from(path))
}

fn word<T: FromStr<Err = SpecError>>(key: &str, value: &DeValue<'_>) -> Result<T, SpecError> {
    text(key, value)?.parse()
}

fn flag(key: &str, value: &DeValue<'_>) -> Result<bool, SpecError> {
    value.as_bool().ok_or_else(|| wrong_type(key, "true or false", value))
}

fn whole<T: TryFrom<u64>>(key: &str, value: &DeValue<'_>) -> Result<T, SpecError> {
    let DeValue::Integer(integer) = value else {
        return Err(wrong_type(key, "a whole number", value));
    };
    let parsed = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
    parsed.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        SpecError::new(format!("`{key}` cannot be {}", integer.as_str()))
            .hint("it takes a whole number from 0 up")
    })
}

fn number(key: &str, value: &DeValue<'_>) -> Result<f64, SpecError> {
    let digits = match value {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
        DeValue::Float(float) => float.as_str(),
        _ => return Err(wrong_type(key, "a number", value)),
    };
    digits.parse().map_err(|_| SpecError::new(format!("`{key}` cannot be {digits}")))
}

/// A quantity in quotes with its unit; a bare whole number is read as the same text.
fn quantity<T: FromStr<Err = ParseUnitError>>(
    key: &str,
    value: &DeValue<'_>,
    example: &str,
) -> Result<T, SpecError> {
    let typed = match value {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
        DeValue::Float(float) => float.as_str(),
        DeValue::String(text) => text.as_ref(),
        _ => return Err(wrong_type(key, example, value)),
    };
    typed
        .parse()
        .map_err(|error| SpecError::new(format!("`{key}`: {error}")).hint(format!("it takes {example}")))
}

fn bytes(key: &str, value: &DeValue<'_>) -> Result<Bytes, SpecError> {
    quantity(key, value, "a size such as \"16k\" or \"4G\"")
}

fn time(key: &str, value: &DeValue<'_>) -> Result<Nanos, SpecError> {
    quantity(key, value, "a time such as \"30s\" or \"10ms\"")
}

fn block(key: &str, value: &DeValue<'_>) -> Result<crate::workload::spec::BlockSize, SpecError> {
    match value {
        DeValue::String(text) => text.parse(),
        _ => bytes(key, value).map(crate::workload::spec::BlockSize::Fixed),
    }
}
