//! PostgreSQL's protocol against a real server, and against servers that misbehave.
#![allow(
    clippy::unwrap_used,
    reason = "test code throughout; clippy knows that only of functions under #[test]"
)]

mod bed;
#[path = "../support/certificates.rs"]
mod certificates;
mod fake;
mod faults;
mod logins;
mod statements;
