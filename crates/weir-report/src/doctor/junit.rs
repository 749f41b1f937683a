//! The bars as JUnit XML, in the form that CI servers read (testmoapp's description of it): a suite, a test case for
//! each bar, `failure` for one that was missed and `error` for one that could not be judged.

use maud::{Markup, html};
use weir_verdict::doctor::{BarResult, DoctorReport, Evidence};

/// How every file of this form begins.
pub const OPENING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"weir doctor\"";

/// The whole document, with a final newline.
pub fn doctor(report: &DoctorReport) -> String {
    let seconds = format!("{:.3}", report.elapsed_ns as f64 / 1e9);
    let class = format!("weir.doctor.{}", report.product.map_or("storage", |product| product.name()));
    let (missed, unjudged) = (count(report, Some(false)), count(report, None));
    let properties = [
        ("path", &report.path),
        ("verdict", &report.headline.text),
        ("record", &report.record_id),
        ("weir", &report.weir_version),
    ];
    let suite = html! {
        testsuite name=(class) tests=(report.bars.len()) failures=(missed) errors=(unjudged) time=(seconds)
            timestamp=(xml(&report.started_at)) {
            properties {
                @for (name, value) in properties { property name=(name) value=(xml(value)) {} }
            }
            @for bar in &report.bars { (case(bar, &class)) }
        }
    };
    let tests = report.bars.len();
    format!(
        "{OPENING} tests=\"{tests}\" failures=\"{missed}\" errors=\"{unjudged}\" time=\"{seconds}\">{}</testsuites>\n",
        suite.into_string()
    )
}

fn count(report: &DoctorReport, met: Option<bool>) -> usize {
    report.bars.iter().filter(|bar| bar.met == met).count()
}

fn case(bar: &BarResult, class: &str) -> Markup {
    let said = xml(&bar.statement.text);
    html! {
        testcase name=(xml(&bar.bar)) classname=(class) {
            @match bar.met {
                Some(true) => {}
                Some(false) => { failure message=(said) { (said) } }
                None => { error message=(said) { (said) } }
            }
            system-out { (xml(&details(bar))) }
        }
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

/// Text without the characters that XML 1.0 has no way to write (2.2, `Char`), which a path may hold.
fn xml(text: &str) -> String {
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|c| if allowed(c) { c } else { '\u{fffd}' }).collect()
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
        well_formed(&text);
    }

    /// Every opened element is closed, in order, and no value holds what must be escaped.
    fn well_formed(text: &str) {
        let mut open = Vec::new();
        let (_, body) = text.split_once("?>").unwrap();
        for tag in body.split('<').skip(1) {
            let (inside, after) = tag.split_once('>').unwrap();
            assert!(!after.contains('&') || after.contains(';'), "{after}");
            match inside.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{text}"),
                None => open.push(inside.split_whitespace().next().unwrap()),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}
