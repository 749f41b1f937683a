//! Words to stderr that outlive its reader.

/// As `eprintln!`, but a standard error that is gone is no reason to panic, and what hosts chose reaches no terminal as it is.
macro_rules! say {
    ($($what:tt)*) => {{
        let line = weir_core::printable::message(&format!($($what)*)) + "\n";
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    }};
}
