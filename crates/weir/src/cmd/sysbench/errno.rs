//! System errors in sysbench's words.

use std::io;

/// The system's text for an error, without Rust's addition of its number.
pub fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) if error.raw_os_error().is_some() => text[..end].to_string(),
        _ => text,
    }
}

/// `what errno = 2 (No such file or directory)`.
pub fn with_number(what: &str, error: &io::Error) -> String {
    format!("{what} errno = {} ({})", error.raw_os_error().unwrap_or(0), words(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_in_c() {
        let missing = io::Error::from_raw_os_error(2);
        assert_eq!(words(&missing), "No such file or directory");
        assert_eq!(
            with_number("Cannot open file 'test_file.0'", &missing),
            "Cannot open file 'test_file.0' errno = 2 (No such file or directory)"
        );
        assert_eq!(words(&io::Error::other("own words (os error 3)")), "own words (os error 3)");
    }
}
