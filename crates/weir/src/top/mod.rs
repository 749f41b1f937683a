//! `weir top`: samples of this machine and of a recorder's archive, and the terminal that shows them. What is shown, and how, is weir-top's.

mod machine;
mod recorded;
mod screen;
mod syncs;

pub use machine::{Machine, Wishes};
pub use recorded::Recorded;
pub use screen::run;
pub use syncs::Storage;
