//! Where a commit's time goes, as bars of equal length.

use crate::page::{Table, stacks};
use crate::plot::{Stack, StackFigure};
use maud::Markup;
use weir_core::units::{Nanos, grouped, significant};
use weir_verdict::doctor::{CommitStages, DoctorReport};

const PARTS: [(&str, usize); 4] =
    [("device's queue", 3), ("device", 0), ("flush", 1), ("outside of the block layer", 2)];

/// One bar for each measurement of commits whose stages were seen; nothing where none were.
pub fn html(report: &DoctorReport) -> Markup {
    if report.commit_stages.is_empty() {
        return Markup::default();
    }
    let figure = StackFigure {
        id: "commit-stages".to_string(),
        title: "Where a commit's time goes".to_string(),
        finding:
            "Means of the requests on the device while each step ran. Outside: page cache, file system and \
                  journal, throttling before the queue, processors."
                .to_string(),
        parts: PARTS.map(|(name, look)| (name.to_string(), look)).to_vec(),
        stacks: report.commit_stages.iter().map(stack).collect(),
    };
    stacks(&figure, &table(&report.commit_stages))
}

fn stack(stages: &CommitStages) -> Stack {
    Stack {
        label: stages.title.clone(),
        note: format!("{}, n = {}", mean(stages.mean_ns), grouped(stages.commits)),
        values: stages.shares().to_vec(),
    }
}

fn mean(ns: f64) -> String {
    Nanos(ns.round() as u64).to_string()
}

fn table(all: &[CommitStages]) -> Table {
    let head = ["commits", "mean", "queue", "device", "flush", "outside", "writes each", "flushes each"];
    let row = |s: &CommitStages| {
        let times = [s.mean_ns, s.queue_ns, s.device_ns, s.flush_ns, s.elsewhere_ns].map(mean);
        let counts = [s.writes_per_commit, s.flushes_per_commit].map(significant);
        [vec![s.title.clone()], times.to_vec(), counts.to_vec()].concat()
    };
    Table { head: head.map(str::to_string).to_vec(), rows: all.iter().map(row).collect(), ..Table::default() }
}

#[cfg(test)]
mod tests {
    use crate::{html, text};
    use weir_verdict::from_record;
    use weir_verdict::synthetic::with_stages;

    #[test]
    fn page_and_text_show_where_a_commits_time_went() {
        let report = from_record(&with_stages()).unwrap();
        let page = html::doctor(&report);
        assert!(
            page.contains("id=\"commit-stages\"") && page.contains("outside of the block layer"),
            "no bars"
        );
        let text = text::doctor(&report);
        assert!(text.contains("\nStages "), "{text}");
    }
}
