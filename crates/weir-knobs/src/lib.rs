//! Knobs as data: what a setting is called, what it may hold, what it means, in which order settings are written,
//! and how they are kept for the next boot. weir-host reads and writes them.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod name;
pub mod owner;
pub mod persist;
pub mod plan;
pub mod reading;
pub mod script;
pub mod value;

pub use catalog::{Kind, Risk, ScopeKind, Spec};
pub use name::{KnobName, Scope, ServerName};
pub use plan::{Plan, Refusal, Step};
pub use reading::{Became, Owner, Reading};
pub use value::{Setting, Value};
