//! Number formats of sysbench's reports.

const PREFIXES: [char; 8] = ['K', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'];

/// `%.5g`: five significant digits without trailing zeros.
fn five_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (4 - magnitude).max(0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

fn scaled(mut value: f64) -> (f64, Option<char>) {
    let mut prefix = None;
    for next in PREFIXES {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        prefix = Some(next);
    }
    (value, prefix)
}

/// A number of bytes as 1.0.20 prints it, without the final `B`: `16Ki`, `2.5Gi`, `512`.
pub fn size(bytes: f64) -> String {
    match scaled(bytes) {
        (value, Some(prefix)) => format!("{}{prefix}i", five_digits(value)),
        (value, None) => five_digits(value),
    }
}

/// A number of bytes as 0.4.12 prints it, without the final `b`: `16K`, `52.828M`.
pub fn legacy_size(bytes: f64) -> String {
    match scaled(bytes) {
        (value, Some(prefix)) => format!("{}{prefix}", five_digits(value)),
        (value, None) => five_digits(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_print_as_in_known_reports() {
        let cases = [
            (0.0, "0"),
            (512.0, "512"),
            (16384.0, "16Ki"),
            (1_000_000.0, "976.56Ki"),
            (2.0 * 1024f64.powi(3), "2Gi"),
            (10.0 * 1024f64.powi(3) / 3.0, "3.3333Gi"),
            (1023.99999 * 1024.0, "1024Ki"),
            (1024f64.powi(4) * 1.5, "1.5Ti"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(size(bytes), expected, "{bytes}");
        }
        // From a published report: 13524 writes of 4 KiB, and 30 of them in 30.4642 s.
        assert_eq!(legacy_size(13524.0 * 4096.0), "52.828M");
        assert_eq!(legacy_size(30.0 * 4096.0 / 30.4642), "3.939K");
    }
}
