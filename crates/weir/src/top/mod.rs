//! `weir top`: samples of this machine, and the terminal that shows them. What is shown, and how, is weir-top's.

mod machine;
mod screen;
mod syncs;

pub use machine::{Machine, Wishes};
pub use screen::run;
pub use syncs::Storage;
