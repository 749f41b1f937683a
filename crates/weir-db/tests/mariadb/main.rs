//! The MySQL protocol against a real MariaDB, started and removed by the tests.

#![allow(clippy::unwrap_used, reason = "test code throughout")]

mod faults;
mod logins;
mod server;
mod statements;
