//! The order of a transaction's statements, which is that of sysbench's scripts.

use super::{Kind, OltpSpec, Script};

/// One statement of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// What it does.
    pub kind: Kind,
    /// It draws a table of its own; else it stays with the table of the statement before it.
    pub draws_table: bool,
}

/// A transaction's statements in order. Statements of one sort share a table, drawn once a transaction.
pub fn of(spec: &OltpSpec) -> Vec<Part> {
    let mut parts = Vec::new();
    let framed = !spec.skip_trx && in_transaction(spec.script);
    if framed {
        parts.push(Part { kind: Kind::Begin, draws_table: false });
    }
    for (kinds, times) in body(spec) {
        for time in 0..times {
            for (index, kind) in kinds.iter().enumerate() {
                parts.push(Part { kind: *kind, draws_table: time == 0 && index == 0 });
            }
        }
    }
    if framed {
        parts.push(Part { kind: Kind::Commit, draws_table: false });
    }
    parts
}

/// The statements to prepare, each once, in the order of their first use; an INSERT of many rows is never prepared.
pub fn kinds(spec: &OltpSpec) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for part in of(spec) {
        if !kinds.contains(&part.kind) {
            kinds.push(part.kind);
        }
    }
    kinds
}

/// Scripts whose statements stand between BEGIN and COMMIT.
fn in_transaction(script: Script) -> bool {
    matches!(script, Script::ReadWrite | Script::ReadOnly | Script::WriteOnly | Script::Commit)
}

/// Groups of statements and how often each group comes.
fn body(spec: &OltpSpec) -> Vec<(&'static [Kind], u32)> {
    match spec.script {
        Script::ReadWrite => reads(spec).into_iter().chain(writes(spec)).collect(),
        Script::ReadOnly => reads(spec),
        Script::WriteOnly => writes(spec),
        Script::PointSelect => vec![(&[Kind::PointSelect], 1)],
        Script::UpdateIndex => vec![(&[Kind::IndexUpdate], 1)],
        Script::UpdateNonIndex | Script::Commit => vec![(&[Kind::NonIndexUpdate], 1)],
        Script::Insert => vec![(&[Kind::Insert], 1)],
        Script::Delete => vec![(&[Kind::Delete], 1)],
        Script::BulkInsert => vec![(&[Kind::BulkInsert], 1)],
        Script::SelectRandomPoints => vec![(&[Kind::RandomPoints], 1)],
        Script::SelectRandomRanges => vec![(&[Kind::RandomRanges], 1)],
    }
}

fn reads(spec: &OltpSpec) -> Vec<(&'static [Kind], u32)> {
    let ranges = |times: u32| if spec.range_selects { times } else { 0 };
    vec![
        (&[Kind::PointSelect], spec.point_selects),
        (&[Kind::SimpleRange], ranges(spec.simple_ranges)),
        (&[Kind::SumRange], ranges(spec.sum_ranges)),
        (&[Kind::OrderRange], ranges(spec.order_ranges)),
        (&[Kind::DistinctRange], ranges(spec.distinct_ranges)),
    ]
}

fn writes(spec: &OltpSpec) -> Vec<(&'static [Kind], u32)> {
    vec![
        (&[Kind::IndexUpdate], spec.index_updates),
        (&[Kind::NonIndexUpdate], spec.non_index_updates),
        (&[Kind::Delete, Kind::Insert], spec.delete_inserts),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Tally;

    #[test]
    fn transactions_read_write_and_frame_as_sysbench_counts() {
        let check = |script, expected: (usize, usize, usize)| {
            let parts = of(&OltpSpec { script, ..OltpSpec::default() });
            let count = |tally| parts.iter().filter(|part| part.kind.tally() == Some(tally)).count();
            assert_eq!(
                (count(Tally::Read), count(Tally::Write), count(Tally::Other)),
                expected,
                "{script:?}: {parts:?}"
            );
        };
        check(Script::ReadWrite, (14, 4, 2));
        check(Script::ReadOnly, (14, 0, 2));
        check(Script::WriteOnly, (0, 4, 2));
        check(Script::PointSelect, (1, 0, 0));
        check(Script::SelectRandomRanges, (1, 0, 0));
        check(Script::Commit, (0, 1, 2));
        for script in [Script::UpdateIndex, Script::UpdateNonIndex, Script::Insert, Script::Delete] {
            check(script, (0, 1, 0));
        }
    }

    #[test]
    fn statements_of_one_sort_share_a_table_and_a_delete_is_followed_by_its_insert() {
        let spec = OltpSpec {
            script: Script::ReadWrite,
            point_selects: 2,
            range_selects: false,
            delete_inserts: 2,
            skip_trx: true,
            ..OltpSpec::default()
        };
        let drawn: Vec<(Kind, bool)> = of(&spec).iter().map(|part| (part.kind, part.draws_table)).collect();
        assert_eq!(
            drawn,
            [
                (Kind::PointSelect, true),
                (Kind::PointSelect, false),
                (Kind::IndexUpdate, true),
                (Kind::NonIndexUpdate, true),
                (Kind::Delete, true),
                (Kind::Insert, false),
                (Kind::Delete, false),
                (Kind::Insert, false),
            ]
        );
    }
}
