//! The classes of a device as a table that drops columns where a terminal is narrow.

use weir_blocktrace::{Class, Row, Spread, Stage};
use weir_core::units::{per_second, significant};

/// A duration in few characters: `142µs`, `1.23ms`.
pub fn duration(ns: f64) -> String {
    match ns {
        ns if ns < 999.5 => format!("{ns:.0}ns"),
        ns if ns < 999_500.0 => format!("{}µs", significant(ns / 1e3)),
        ns if ns < 999_500_000.0 => format!("{}ms", significant(ns / 1e6)),
        ns => format!("{}s", significant(ns / 1e9)),
    }
}

/// A column: the group it stands under, its own name, and the cells.
struct Column {
    group: &'static str,
    name: &'static str,
    /// Which goes first where there is no room: the larger.
    spare: u8,
    cell: fn(&Row) -> String,
}

fn figure(value: Option<u64>) -> String {
    value.map_or(String::new(), |ns| duration(ns as f64))
}

/// A flush moves nothing.
fn megabytes(row: &Row) -> String {
    if row.class == Class::Flush { String::new() } else { significant(row.bytes_per_second / 1e6) }
}

fn mean(spread: Option<Spread>) -> String {
    spread.map_or(String::new(), |spread| duration(spread.mean_ns))
}

const COLUMNS: [Column; 12] = [
    Column { group: "", name: "", spare: 0, cell: |row| format!("  {}", row.class.words()) },
    Column { group: "", name: "IOPS", spare: 0, cell: |row| per_second(row.iops) },
    Column { group: "", name: "MB/s", spare: 2, cell: megabytes },
    Column { group: "total", name: "mean", spare: 1, cell: |row| mean(row.total) },
    Column { group: "total", name: "p50", spare: 5, cell: |row| figure(row.total.and_then(|t| t.p50_ns)) },
    Column { group: "total", name: "p99", spare: 1, cell: |row| figure(row.total.and_then(|t| t.p99_ns)) },
    Column { group: "total", name: "max", spare: 7, cell: |row| figure(row.total.and_then(|t| t.max_ns)) },
    Column { group: "in queue", name: "p50", spare: 6, cell: |row| figure(row.queue.and_then(|t| t.p50_ns)) },
    Column { group: "in queue", name: "p99", spare: 3, cell: |row| figure(row.queue.and_then(|t| t.p99_ns)) },
    Column {
        group: "in device",
        name: "p50",
        spare: 6,
        cell: |row| figure(row.device.and_then(|t| t.p50_ns)),
    },
    Column {
        group: "in device",
        name: "p99",
        spare: 3,
        cell: |row| figure(row.device.and_then(|t| t.p99_ns)),
    },
    Column { group: "time spent", name: "queue▕device", spare: 4, cell: share },
];

/// The share of the time before the driver as a bar and a figure.
fn share(row: &Row) -> String {
    const CELLS: usize = 8;
    let Some(share) = row.queue_share else { return String::new() };
    let queue = (share * CELLS as f64).round() as usize;
    format!("{:>3.0}%{}{}", share * 100.0, "█".repeat(queue), "░".repeat(CELLS - queue))
}

/// Two lines of heading and a line a class, at most so wide, as far as the most important columns allow.
pub fn table(rows: &[Row], columns: usize) -> Vec<String> {
    let rows = shown(rows);
    if rows.is_empty() {
        return vec!["  nothing of what was asked for".to_string()];
    }
    let mut cells: Vec<(&Column, Vec<String>)> = COLUMNS
        .iter()
        .map(|column| (column, rows.iter().map(|row| (column.cell)(row)).collect()))
        .filter(|(column, cells): &(_, Vec<String>)| column.spare == 0 || cells.iter().any(|c| !c.is_empty()))
        .collect();
    while width(&cells) > columns
        && let Some(most) = cells.iter().map(|(column, _)| column.spare).max().filter(|most| *most > 0)
    {
        cells.retain(|(column, _)| column.spare != most);
    }
    let mut lines = vec![groups(&cells), line(&cells, |(column, _)| column.name)];
    lines.extend((0..rows.len()).map(|at| line(&cells, |(_, cells)| cells[at].as_str())));
    lines.retain(|line| !line.trim().is_empty());
    lines
}

/// The rows worth a line: `all` where there is more than one kind, and no class twice.
pub fn shown(rows: &[Row]) -> Vec<&Row> {
    let of = |class| rows.iter().find(|row| row.class == class);
    let same = |a, b| of(a).zip(of(b)).is_some_and(|(a, b)| a.ios == b.ios);
    let kinds = [Class::Read, Class::Write, Class::Discard].into_iter().filter(|&class| of(class).is_some());
    let several = kinds.count() > 1;
    let worth = |row: &&Row| match row.class {
        Class::All => several,
        Class::Write => !same(Class::Write, Class::SyncWrite),
        _ => true,
    };
    rows.iter().filter(worth).collect()
}

fn column_width((column, cells): &(&Column, Vec<String>)) -> usize {
    let cells = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    // Figures change from one second to the next; columns should not move with each.
    let least = match column.name {
        "" => 13,
        "queue▕device" => 12,
        "IOPS" => 7,
        _ => 6,
    };
    cells.max(column.name.chars().count()).max(least)
}

fn width(cells: &[(&Column, Vec<String>)]) -> usize {
    cells.iter().map(|cell| column_width(cell) + 1).sum::<usize>() - 1
}

fn line<'a>(
    cells: &'a [(&Column, Vec<String>)],
    text: impl Fn(&'a (&Column, Vec<String>)) -> &'a str,
) -> String {
    let padded = cells.iter().enumerate().map(|(at, cell)| {
        let width = column_width(cell);
        let text = text(cell);
        if at == 0 { format!("{text:<width$}") } else { format!("{text:>width$}") }
    });
    padded.collect::<Vec<_>>().join(" ")
}

/// Names of groups over their columns, each at its right edge.
fn groups(cells: &[(&Column, Vec<String>)]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < cells.len() {
        let group = cells[at].0.group;
        let many = cells[at..].iter().take_while(|cell| cell.0.group == group).count();
        let width = cells[at..at + many].iter().map(|cell| column_width(cell) + 1).sum::<usize>() - 1;
        // Where its columns are few, `in device` is said as `device`: without a name they would all look alike.
        let names = [group, group.rsplit(' ').next().unwrap_or(group)];
        let text = names.into_iter().find(|name| name.chars().count() <= width).unwrap_or_default();
        let fill = width.saturating_sub(text.chars().count());
        let rule = if text.is_empty() || fill < 2 {
            " ".repeat(fill)
        } else {
            format!("{} ", "╌".repeat(fill - 1))
        };
        out.push_str(if at == 0 { "" } else { " " });
        out.push_str(&format!("{rule}{text}"));
        at += many;
    }
    out
}

/// The single stages of each class, where more than the device's is known: mean and 99th percentile.
pub fn stages(rows: &[Row], columns: usize) -> Vec<String> {
    let known = |row: &&&Row| row.stages.iter().any(|(stage, _)| *stage != Stage::D2C);
    let rows = shown(rows);
    let mut lines = Vec::new();
    for row in rows.iter().filter(known) {
        let each: Vec<String> = row
            .stages
            .iter()
            .map(|(stage, spread)| {
                let p99 = spread.p99_ns.map_or(String::new(), |ns| format!("/{}", duration(ns as f64)));
                format!("{} {}{p99}", stage.name(), duration(spread.mean_ns))
            })
            .collect();
        let text = format!("{}: {}", row.class.words(), each.join(", "));
        lines.extend(
            crate::layout::wrap(&text, columns.saturating_sub(2)).iter().map(|line| format!("  {line}")),
        );
    }
    if !lines.is_empty() {
        lines.insert(0, "  stages, mean/p99".to_string());
    }
    lines
}

/// A class in one line of words and figures.
pub fn words(row: &Row) -> String {
    let mut out = format!("{} {}/s", row.class.words(), per_second(row.iops));
    if let Some(total) = row.total {
        out.push_str(&format!(" mean {}", duration(total.mean_ns)));
        let quantiles = [("p50", total.p50_ns), ("p99", total.p99_ns)];
        for (name, ns) in quantiles.into_iter().filter_map(|(name, ns)| Some((name, ns?))) {
            out.push_str(&format!(" {name} {}", duration(ns as f64)));
        }
    }
    out.extend(row.queue_share.map(|share| format!(" {:.0} % in queue", share * 100.0)));
    if row.errors > 0 {
        out.push_str(&format!(" {} FAILED", row.errors));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(class: Class, iops: f64, queue_share: Option<f64>) -> Row {
        let spread = Spread {
            count: 5,
            mean_ns: 1.5e6,
            p50_ns: Some(1_200_000),
            p99_ns: Some(45_000_000),
            max_ns: Some(2_000_000_000),
        };
        let staged = queue_share.map(|_| spread);
        Row {
            class,
            ios: iops as u64,
            iops,
            bytes_per_second: iops * 4096.0,
            errors: 0,
            total: Some(spread),
            queue: staged,
            device: staged,
            queue_share,
            stages: vec![(Stage::Q2G, spread), (Stage::D2C, spread)],
        }
    }

    #[test]
    fn tables_fit_any_terminal_and_keep_what_matters() {
        let rows = [
            row(Class::All, 123_456.0, Some(0.7)),
            row(Class::Read, 99.0, Some(0.1)),
            row(Class::Write, 12.0, Some(1.0)),
            row(Class::SyncWrite, 12.0, None),
        ];
        for columns in [140, 100, 80, 60, 40, 30] {
            let lines = table(&rows, columns);
            for line in &lines {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
            let text = lines.join("\n");
            assert!(text.contains("123,456") && text.contains("sync write"), "{text}");
            assert!(!text.contains("  write"), "a class twice:\n{text}");
            assert_eq!(text.contains("70%"), columns >= 80, "{columns}:\n{text}");
            assert_eq!(text.contains("45.0ms"), columns >= 40, "{columns}:\n{text}");
            // Quantiles of the whole, of the queue and of the device are distinguished wherever they stand.
            for name in ["total", "queue", "device"] {
                let p99s = lines[1].matches("p99").count();
                assert!(p99s < 3 || lines[0].matches(name).count() == 1, "{columns}:\n{text}");
            }
        }
    }

    #[test]
    fn single_stages_are_told_where_they_are_known() {
        let mut known = row(Class::Read, 5.0, None);
        assert_eq!(
            stages(&[known.clone()], 80),
            ["  stages, mean/p99", "  read: Q2G 1.50ms/45.0ms, D2C 1.50ms/45.0ms"]
        );
        known.stages.remove(0);
        assert!(stages(&[known], 80).is_empty());
    }

    #[test]
    fn durations_are_short() {
        let cases = [
            (7.0, "7ns"),
            (142_300.0, "142µs"),
            (999_600.0, "1.00ms"),
            (12_300_000.0, "12.3ms"),
            (2e9, "2.00s"),
        ];
        cases.into_iter().for_each(|(ns, text)| assert_eq!(duration(ns), text));
    }
}
