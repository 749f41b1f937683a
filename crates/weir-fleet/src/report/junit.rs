//! JUnit's XML, which tools for tests read.

use std::fmt::Write;

use weir_core::printable;

use super::{Report, State};

/// For tools that read test results: a case for each host.
pub fn junit(report: &Report) -> String {
    let count = |states: &[State]| report.hosts.iter().filter(|host| states.contains(&host.state)).count();
    let failures = count(&[State::BelowBar, State::WorkloadFailed]);
    let skipped = count(&[State::NotRun]);
    let errors = report.hosts.len() - failures - skipped - report.done();
    let name = xml(&format!("weir {}", report.command.join(" ")));
    let seconds = |ns: u64| format!("{:.3}", ns as f64 / 1e9);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{name}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{}\" timestamp=\"{}\">\n",
        report.hosts.len(),
        seconds(report.elapsed_ns),
        xml(&report.started_at)
    );
    for host in &report.hosts {
        let _ = write!(
            out,
            "<testcase classname=\"weir.{}\" name=\"{}\" time=\"{}\"",
            xml(&report.kind),
            xml(&host.host),
            seconds(host.elapsed_ns)
        );
        let words = host
            .why
            .clone()
            .or_else(|| host.figures.headline.clone())
            .unwrap_or_else(|| host.state.words().to_string());
        let element = match host.state {
            State::Done => None,
            State::BelowBar | State::WorkloadFailed => Some("failure"),
            State::NotRun => Some("skipped"),
            _ => Some("error"),
        };
        let _ = match element {
            Some(element) => writeln!(
                out,
                "><{element} message=\"{}\"/></testcase>",
                xml(&format!("{}: {words}", host.state.words()))
            ),
            None => writeln!(out, "/>"),
        };
    }
    out + "</testsuite>\n</testsuites>\n"
}

/// Text in XML 1.0, which has no words for most control characters.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in printable::line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::{host, report};
    use super::*;

    #[test]
    fn junit_is_xml_whatever_hosts_say() {
        let mut bad = host("db2", State::Failed);
        bad.why = Some("<a> & \"b\" \u{0} \u{ffff}".to_string());
        let xml = junit(&report(vec![
            host("db1", State::Done),
            bad,
            host("db3", State::BelowBar),
            host("db4", State::NotRun),
        ]));
        assert!(xml.contains("tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\""), "{xml}");
        assert!(
            xml.contains("<error message=\"failed: &lt;a&gt; &amp; &quot;b&quot; \u{fffd} \u{fffd}\"/>"),
            "{xml}"
        );
        assert!(xml.contains("name=\"db1\" time=\"0.000\"/>"), "{xml}");
    }
}
