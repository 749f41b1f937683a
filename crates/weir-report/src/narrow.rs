//! Reports on a terminal that is narrower than they are: prose and tables are made for its width; commands stay whole, and the
//! terminal breaks them where it must.
//!
//! A finished report does not say which line goes on in the next, so none is broken anew. The width is kept by the thread:
//! every function that appends a paragraph or a table would have to hand it on.

use std::cell::Cell;

/// Widest line.
pub const COLUMNS: usize = 100;

thread_local! {
    static WIDTH: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// What `make` returns; paragraphs and tables that it lays out on this thread have at most so many columns, and paragraphs never
/// more than [`COLUMNS`].
pub fn within<T>(columns: usize, make: impl FnOnce() -> T) -> T {
    let before = WIDTH.replace(columns);
    let made = make();
    WIDTH.set(before);
    made
}

/// Widest line of prose.
pub(crate) fn columns() -> usize {
    terminal().min(COLUMNS)
}

/// Widest row of a table.
pub(crate) fn terminal() -> usize {
    WIDTH.get()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use weir_core::result::compare;
    use weir_core::stats::random::Random;
    use weir_oltp::samples;
    use weir_verdict::doctor::Statement;
    use weir_verdict::from_record;
    use weir_verdict::synthetic::throttled_and_flooded;

    use super::*;
    use crate::bench::tests::full;
    use crate::text;

    const WIDTHS: [usize; 3] = [80, 90, 99];

    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    /// The report at these widths: all its words, and no line wider than the terminal but commands.
    fn check(make: impl Fn() -> String) -> [String; 3] {
        let wide = make();
        assert!(wide.lines().any(|line| line.chars().count() > WIDTHS[1]), "nothing to break in\n{wide}");
        // A table in parts has its names again.
        let different = |text: &str| BTreeSet::from_iter(words(text).into_iter().map(String::from));
        WIDTHS.map(|columns| {
            let narrow = within(columns, &make);
            assert_eq!(different(&narrow), different(&wide), "{columns}");
            for line in narrow.lines().filter(|line| line.chars().count() > columns) {
                let is_command = ["Next, to ", "     do: ", "     undo: ", "show ", "again "];
                assert!(is_command.iter().any(|begin| line.starts_with(begin)), "{columns} columns: {line}");
                assert!(wide.lines().any(|whole| whole == line), "{columns} columns: {line}");
            }
            narrow
        })
    }

    /// The lines of a paragraph: the one with its label, and those that are indented below.
    fn paragraph<'a>(report: &'a str, label: &str) -> Vec<&'a str> {
        let mut lines = report.lines().skip_while(|line| !line.starts_with(label));
        let first = lines.next().unwrap_or_else(|| panic!("no {label} in\n{report}"));
        std::iter::once(first).chain(lines.take_while(|line| line.starts_with(' '))).collect()
    }

    #[test]
    fn commands_of_the_doctor_keep_their_lines_and_lists_their_sentences() {
        let mut report = from_record(&throttled_and_flooded().record(Vec::new())).unwrap();
        report.next[0].command.push_str(" --flood dd --duration 6s --budget 7m");
        let caveat =
            "Others wrote 41 MB/s and used 37 % of the processors, which takes from what was measured.";
        report.caveats = vec![Statement::new(caveat, Vec::new()); 3];
        for narrow in check(|| text::doctor(&report)) {
            for step in &report.next {
                let line = format!("Next, to {}: {}", step.purpose, step.command);
                assert!(narrow.lines().any(|shown| shown == line), "{line}:\n{narrow}");
            }
            for advice in &report.advice {
                assert!(narrow.contains(&format!("\n     do:   {}\n", advice.command)), "{narrow}");
            }
            let list = paragraph(&narrow, "What weakens this");
            let begins = |line: &str| line.starts_with("  - Others wrote 41 MB/s and used 37 %");
            assert_eq!(list.iter().filter(|line| begins(line)).count(), 3, "{narrow}");
            assert!(list[1..].iter().all(|line| begins(line) || line.starts_with("    ")), "{narrow}");
        }
    }

    /// Labels of eight letters have one blank behind them.
    #[test]
    fn paragraphs_are_not_joined_and_continued_lines_keep_their_indentation() {
        let raw = samples::raw(&mut Random::new(9), 10, 1.0);
        let record = samples::record(&raw);
        let mut result = weir_oltp::derive(&record, &raw);
        let rest = ", throttled to 200 transactions a second that arrive as a Poisson process";
        result.script_path = Some(format!("/srv/scripts/tpcc.lua{}", rest.repeat(2)));
        result.durability.sentence = format!("by the server's settings alone{}", rest.repeat(2));
        let [workload, measured] = ["workload ", "measured "].map(|label| {
            let wide = text::oltp(&result, &record);
            paragraph(&wide, label).join("\n")
        });
        for narrow in check(|| text::oltp(&result, &record)) {
            assert_eq!(paragraph(&narrow, "measured ").join("\n"), measured, "{narrow}");
            assert_eq!(words(&paragraph(&narrow, "workload ").join("\n")), words(&workload), "{narrow}");
            for label in ["workload ", "durable "] {
                let lines = paragraph(&narrow, label);
                assert!(lines.len() > 1, "{label}:\n{narrow}");
                assert!(lines[1..].iter().all(|line| line.rfind("  ") == Some(7)), "{label}:\n{narrow}");
            }
        }
        let a = full();
        let mut b = a.clone();
        for key in ["kernel", "hostname"] {
            b.conditions[key] =
                "a value that a comparison shows in a line of its own, however long it may be".into();
        }
        for narrow in check(|| text::comparison(&compare(&a, &b, 1))) {
            let lines = paragraph(&narrow, "differs ");
            assert!(lines[1..].iter().all(|line| line.rfind("  ") == Some(7)), "{narrow}");
        }
    }

    #[test]
    fn no_report_is_wider_than_can_be_read() {
        let report = from_record(&throttled_and_flooded().record(Vec::new())).unwrap();
        assert_eq!(within(300, || text::doctor(&report)), text::doctor(&report));
    }

    /// At 80 columns, which the statements of a run do not fit, and at 100, which they do.
    #[test]
    fn tables_fit_the_terminal() {
        let raw = samples::raw(&mut Random::new(9), 10, 1.0);
        let (record, result) = (samples::record(&raw), weir_oltp::derive(&samples::record(&raw), &raw));
        let whole = text::oltp(&result, &record);
        let is_table = |line: &&str| line.contains("  a transaction  ") || line.starts_with("statement ");
        let head = |text: &str| text.lines().filter(is_table).map(String::from).collect::<Vec<_>>();
        let narrow = within(80, || text::oltp(&result, &record));
        let (of_whole, of_narrow) = (head(&whole), head(&narrow));
        assert!(of_whole.len() == 1 && of_whole[0].chars().count() > 80, "{whole}");
        assert_eq!(head(&within(100, || text::oltp(&result, &record))), of_whole);
        assert!(of_narrow.len() == 2 && of_narrow[1].ends_with("  of a transaction"), "{narrow}");
        let mut again = of_narrow.join("  ").split_whitespace().collect::<Vec<_>>().join(" ");
        again = again.replacen(" statement ", " ", 1);
        assert_eq!(again, of_whole[0].split_whitespace().collect::<Vec<_>>().join(" "));
    }
}
