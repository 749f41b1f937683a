//! The bars as JUnit XML: a test case for each bar, `failure` for one that was missed and `error` for one that could not be
//! judged.

use weir_core::junit::{Case, Outcome, Suite};
use weir_verdict::doctor::{BarResult, DoctorReport, Evidence};

/// How every file of this form begins.
pub const OPENING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"weir doctor\"";

/// The whole document, with a final newline.
pub fn doctor(report: &DoctorReport) -> String {
    let class = format!("weir.doctor.{}", report.product.map_or("storage", |product| product.name()));
    Suite {
        program: "weir doctor",
        started_at: report.started_at.clone(),
        elapsed_ns: report.elapsed_ns,
        properties: vec![
            ("path", report.path.clone()),
            ("verdict", report.headline.text.clone()),
            ("record", report.record_id.clone()),
            ("weir", report.weir_version.clone()),
        ],
        cases: report.bars.iter().map(|bar| case(bar, &class)).collect(),
        name: class,
    }
    .xml()
}

fn case(bar: &BarResult, class: &str) -> Case {
    let said = || bar.statement.text.clone();
    Case {
        name: bar.bar.to_string(),
        class: class.to_string(),
        elapsed_ns: None,
        outcome: match bar.met {
            Some(true) => Outcome::Passed,
            Some(false) => Outcome::Failed(said()),
            None => Outcome::Error(said()),
        },
        details: Some(details(bar)),
    }
}

/// The sentence, its source, and what it stands on, a line each.
fn details(bar: &BarResult) -> String {
    let mut lines = vec![bar.statement.text.clone()];
    lines.extend(bar.source.clone());
    lines.extend(bar.statement.evidence.iter().map(evidence));
    lines.join("\n")
}

fn evidence(evidence: &Evidence) -> String {
    let interval = evidence.interval.as_ref().map_or(String::new(), |i| format!(", 95 % {i}"));
    format!("{}: {}, n = {}{interval}", evidence.source, evidence.figure, evidence.n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_verdict::doctor::Statement;
    use weir_verdict::from_record;
    use weir_verdict::synthetic::throttled_and_flooded;

    fn bar(name: &str, met: Option<bool>) -> BarResult {
        let evidence =
            Evidence { source: "etcd-wal".into(), figure: "p99 12 ms".into(), n: 400, interval: None };
        let statement = Statement::new("it took <12 ms> & \"more\"", vec![evidence]);
        BarResult { bar: name.into(), met, statement, source: Some("published bar: etcd".into()) }
    }

    #[test]
    fn bars_are_cases_and_nothing_breaks_the_document() {
        let mut report = from_record(&throttled_and_flooded().record(Vec::new())).unwrap();
        report.path = "/srv/\u{1}<b a=\"'&>\u{fffe}".into();
        report.bars = vec![bar("a ≤ 10 ms", Some(true)), bar("b<", Some(false)), bar("c", None)];
        let text = doctor(&report);
        assert!(text.starts_with(OPENING) && text.ends_with("</testsuites>\n"), "{text}");
        assert!(text.contains("tests=\"3\" failures=\"1\" errors=\"1\""), "{text}");
        assert_eq!(text.matches("<testcase ").count(), 3);
        assert!(text.contains("<testcase name=\"b&lt;\""), "{text}");
        let failure = "<failure message=\"it took &lt;12 ms&gt; &amp; &quot;more&quot;\">";
        assert!(text.contains(failure) && text.contains("etcd-wal: p99 12 ms, n = 400"), "{text}");
        assert!(!text.contains('\u{1}') && !text.contains('\u{fffe}'), "{text}");
    }
}
