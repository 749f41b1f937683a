//! Tables made, filled, looked at, read into the server's memory, and removed.
