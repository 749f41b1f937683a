//! Bars as they are typed: `commit-p99=5ms`, `read-iops=20000`, `flood=50`.

use std::str::FromStr;

use super::notes::{Bar, BarRule};

/// All bars with an example each, for help and errors.
pub const KNOWN: &str = "commit-p99=5ms, commit-iops=500, read-iops=20000, write-iops=5000, read-rate=400MB, \
                         write-rate=200MB, flood=50 (percent of idle commits)";

impl FromStr for Bar {
    type Err = String;

    fn from_str(text: &str) -> Result<Bar, String> {
        let (key, value) =
            text.split_once('=').ok_or_else(|| format!("`{text}` has no `=`; known: {KNOWN}"))?;
        let wrong = |e: &dyn std::fmt::Display| format!("`{text}`: {e}");
        let number = || {
            let number = value.trim_end_matches('%').trim().parse::<f64>().map_err(|e| wrong(&e))?;
            if number.is_finite() && number >= 0.0 { Ok(number) } else { Err(wrong(&"not a rate")) }
        };
        let bytes = || value.trim_end_matches("/s").parse().map_err(|e| wrong(&e));
        let rule = match key {
            "commit-p99" => BarRule::CommitP99(value.parse().map_err(|e| wrong(&e))?),
            "commit-iops" => BarRule::CommitIops(number()?),
            "read-iops" => BarRule::ReadIops(number()?),
            "write-iops" => BarRule::WriteIops(number()?),
            "read-rate" => BarRule::ReadRate(bytes()?),
            "write-rate" => BarRule::WriteRate(bytes()?),
            "flood" => BarRule::FloodPercent(number()?),
            _ => return Err(format!("expected one of {KNOWN}, got `{key}`")),
        };
        Ok(Bar { text: text.to_string(), rule })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::units::{Bytes, Nanos};

    #[test]
    fn bars_parse_or_say_what_is_known() {
        for (text, rule) in [
            ("commit-p99=5ms", BarRule::CommitP99(Nanos::from_millis(5))),
            ("read-rate=400MB/s", BarRule::ReadRate(Bytes(400_000_000))),
            ("flood=50%", BarRule::FloodPercent(50.0)),
            ("write-iops=1e3", BarRule::WriteIops(1000.0)),
        ] {
            assert_eq!(text.parse::<Bar>().unwrap().rule, rule, "{text}");
        }
        for (text, says) in [
            ("commit-p99", "no `=`"),
            ("latency=1ms", "expected one of commit-p99"),
            ("commit-p99=5 parsecs", "not one of"),
            ("flood=inf", "not a rate"),
        ] {
            let error = text.parse::<Bar>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
