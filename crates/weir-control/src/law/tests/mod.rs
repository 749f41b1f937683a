//! The law against a toy device: each branch, and what must hold whatever happens.

mod beside;
mod branches;
mod long;
mod toy;
