//! The screen of `weir top`: what it shows ([`Model`]), what keys do to it ([`Key`]), and how it looks ([`draw`]).
//!
//! Nothing here touches the machine or the terminal. Samples come in from a [`Samples`]; frames go out into cells.

mod draw;
mod history;
mod key;
mod model;
mod pane;
mod rows;
mod sample;
#[cfg(test)]
mod tests;

pub use draw::{Look, draw, text};
pub use history::History;
pub use key::{Action, Key, action};
pub use model::{Flow, Model, View};
pub use pane::Pane;
pub use sample::{About, Process, Sample, Samples, Syncs, Wish};
