//! Transactions under load: one thread a connection, paced, measured, watched.
