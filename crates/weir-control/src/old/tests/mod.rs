//! The law against a toy device: each branch, and what must hold whatever happens.

mod branches;
mod long;
mod toy;
