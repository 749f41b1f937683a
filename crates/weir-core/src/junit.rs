//! JUnit's XML, in the form that CI servers read (testmoapp's description of it).

use std::fmt::Write;

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Well.
    Passed,
    /// What was asked for does not hold.
    Failed(String),
    /// It could not be judged.
    Error(String),
    /// Its turn did not come.
    Skipped(String),
}

/// A test case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// How long it took.
    pub elapsed_ns: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// More about it.
    pub details: Option<String>,
}

/// The only suite of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suite {
    /// The program, as the document's name: `weir doctor`.
    pub program: &'static str,
    /// Its name.
    pub name: String,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// How long all took.
    pub elapsed_ns: u64,
    /// Names and values.
    pub properties: Vec<(&'static str, String)>,
    /// Its cases.
    pub cases: Vec<Case>,
}

impl Suite {
    /// The whole document, with a final newline.
    pub fn xml(&self) -> String {
        let count = |is: fn(&Outcome) -> bool| self.cases.iter().filter(|case| is(&case.outcome)).count();
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\"",
            self.cases.len(),
            count(|outcome| matches!(outcome, Outcome::Failed(_))),
            count(|outcome| matches!(outcome, Outcome::Error(_))),
            count(|outcome| matches!(outcome, Outcome::Skipped(_))),
            seconds(self.elapsed_ns)
        );
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" {counts}>\n<testsuite name=\"{}\" {counts} timestamp=\"{}\">\n",
            escaped(self.program),
            escaped(&self.name),
            escaped(&self.started_at)
        );
        if !self.properties.is_empty() {
            out.push_str("<properties>\n");
            for (name, value) in &self.properties {
                let _ = writeln!(out, "<property name=\"{}\" value=\"{}\"/>", escaped(name), escaped(value));
            }
            out.push_str("</properties>\n");
        }
        self.cases.iter().for_each(|case| case.write(&mut out));
        out + "</testsuite>\n</testsuites>\n"
    }
}

impl Case {
    fn write(&self, out: &mut String) {
        let _ =
            write!(out, "<testcase name=\"{}\" classname=\"{}\"", escaped(&self.name), escaped(&self.class));
        if let Some(ns) = self.elapsed_ns {
            let _ = write!(out, " time=\"{}\"", seconds(ns));
        }
        out.push('>');
        let said = match &self.outcome {
            Outcome::Passed => None,
            Outcome::Failed(why) => Some(("failure", why)),
            Outcome::Error(why) => Some(("error", why)),
            Outcome::Skipped(why) => Some(("skipped", why)),
        };
        if let Some((element, why)) = said {
            let why = escaped(why);
            let _ = write!(out, "<{element} message=\"{why}\">{why}</{element}>");
        }
        if let Some(details) = &self.details {
            let _ = write!(out, "<system-out>{}</system-out>", escaped(details));
        }
        out.push_str("</testcase>\n");
    }
}

fn seconds(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e9)
}

/// Text between tags or quotes. XML 1.0 (2.2, `Char`) has no way to write some characters, which a path may hold.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => {
                out.push(c)
            }
            _ => out.push('\u{fffd}'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, outcome: Outcome) -> Case {
        Case {
            name: name.into(),
            class: "weir.x".into(),
            elapsed_ns: Some(1_500_000_000),
            outcome,
            details: None,
        }
    }

    #[test]
    fn nothing_breaks_the_document() {
        let suite = Suite {
            program: "weir x",
            name: "a \u{1}<b a=\"'&>\u{fffe}".into(),
            started_at: "2026-11-25T12:00:00Z".into(),
            elapsed_ns: 2_000_000,
            properties: vec![("path", "/<".into())],
            cases: vec![
                case("good", Outcome::Passed),
                Case {
                    details: Some("two\nlines".into()),
                    ..case("b<", Outcome::Failed("<12 ms> & \"more\"".into()))
                },
                case("c", Outcome::Error("no answer".into())),
                case("d", Outcome::Skipped("not run".into())),
            ],
        };
        let text = suite.xml();
        for words in [
            "<testsuites name=\"weir x\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"0.002\">",
            "<testsuite name=\"a \u{fffd}&lt;b a=&quot;'&amp;&gt;\u{fffd}\" tests=\"4\"",
            "<property name=\"path\" value=\"/&lt;\"/>",
            "<testcase name=\"good\" classname=\"weir.x\" time=\"1.500\"></testcase>",
            "<failure message=\"&lt;12 ms&gt; &amp; &quot;more&quot;\">",
            "<system-out>two\nlines</system-out></testcase>",
            "<skipped message=\"not run\">",
        ] {
            assert!(text.contains(words), "{words} is not in {text}");
        }
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
                None if inside.ends_with('/') => {}
                None => open.push(inside.split_whitespace().next().unwrap()),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}
