//! Throw-away servers: found, initialised, started on a Unix socket, stopped, removed, however weir ends.
