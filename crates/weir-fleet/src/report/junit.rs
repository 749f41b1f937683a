//! JUnit's XML, which tools for tests read.

use weir_core::junit::{Case, Outcome, Suite};
use weir_core::printable;

use super::{HostReport, Report, State};

/// For tools that read test results: a case for each host.
pub fn junit(report: &Report) -> String {
    let class = format!("weir.{}", report.kind);
    Suite {
        program: "weir fleet",
        name: format!("weir {}", report.command.join(" ")),
        started_at: report.started_at.clone(),
        elapsed_ns: report.elapsed_ns,
        properties: Vec::new(),
        cases: report.hosts.iter().map(|host| case(host, &class)).collect(),
    }
    .xml()
}

fn case(host: &HostReport, class: &str) -> Case {
    let words = host.why.clone().or_else(|| host.figures.headline.clone());
    let words = words.unwrap_or_else(|| host.state.words().to_string());
    let words = printable::line(&format!("{}: {words}", host.state.words())).into_owned();
    Case {
        name: host.host.clone(),
        class: class.to_string(),
        elapsed_ns: Some(host.elapsed_ns),
        outcome: match host.state {
            State::Done => Outcome::Passed,
            State::BelowBar | State::WorkloadFailed => Outcome::Failed(words),
            State::NotRun => Outcome::Skipped(words),
            _ => Outcome::Error(words),
        },
        details: None,
    }
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
            xml.contains("<error message=\"failed: &lt;a&gt; &amp; &quot;b&quot; \u{fffd} \u{fffd}\">"),
            "{xml}"
        );
        assert!(xml.contains("name=\"db1\" classname=\"weir.doctor\" time=\"0.000\">"), "{xml}");
    }
}
