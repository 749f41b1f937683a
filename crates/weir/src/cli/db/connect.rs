//! How a server is named and how to log in: options that every command has that talks to one.
