//! The course of time as columns of numbers.

use serde::Serialize;

use super::figures::{rate, share};
use weir_blocktrace::analysis::{Direction, Slice};
use weir_blocktrace::{Grid, Sketch};

/// One entry a slice in every list; I/Os count where they end.
#[derive(Debug, Serialize)]
pub struct Timeline {
    start_ns: u64,
    width_ns: u64,
    read_pieces_per_s: Vec<f64>,
    write_pieces_per_s: Vec<f64>,
    read_mb_per_s: Vec<f64>,
    write_mb_per_s: Vec<f64>,
    depth_queue_mean: Vec<f64>,
    depth_issue_mean: Vec<f64>,
    read_q2c_mean_ns: Vec<u64>,
    read_q2c_p50_ns: Vec<u64>,
    read_q2c_p99_ns: Vec<u64>,
    write_q2c_mean_ns: Vec<u64>,
    write_q2c_p50_ns: Vec<u64>,
    write_q2c_p99_ns: Vec<u64>,
}

impl Timeline {
    /// Of a device.
    pub fn of(grid: &Grid<Slice>) -> Timeline {
        let (read, write) = (Direction::Read as usize, Direction::Write as usize);
        let each =
            |of: &dyn Fn(&Slice) -> f64| -> Vec<f64> { grid.slices.iter().map(of).map(rounded).collect() };
        let ns = |of: &dyn Fn(&Slice) -> u64| -> Vec<u64> { grid.slices.iter().map(of).collect() };
        let width_ns = grid.width_ns;
        let mean = |s: &Slice, d: usize| share(s.q2c_sum_ns[d], s.q2c[d].count()) as u64;
        Timeline {
            start_ns: grid.start_ns,
            width_ns,
            read_pieces_per_s: each(&|s| rate(s.pieces[read], width_ns)),
            write_pieces_per_s: each(&|s| rate(s.pieces[write], width_ns)),
            read_mb_per_s: each(&|s| rate(s.bytes[read], width_ns) / 1e6),
            write_mb_per_s: each(&|s| rate(s.bytes[write], width_ns) / 1e6),
            depth_queue_mean: each(&|s| s.depth_queue_area_ns as f64 / width_ns as f64),
            depth_issue_mean: each(&|s| s.depth_issue_area_ns as f64 / width_ns as f64),
            read_q2c_mean_ns: ns(&|s| mean(s, read)),
            read_q2c_p50_ns: ns(&|s| s.q2c[read].quantile(0.5)),
            read_q2c_p99_ns: ns(&|s| s.q2c[read].quantile(0.99)),
            write_q2c_mean_ns: ns(&|s| mean(s, write)),
            write_q2c_p50_ns: ns(&|s| s.q2c[write].quantile(0.5)),
            write_q2c_p99_ns: ns(&|s| s.q2c[write].quantile(0.99)),
        }
    }
}

/// Pieces by time and Q2C, reads, writes and discards together.
#[derive(Debug, Serialize)]
pub struct Heat {
    start_ns: u64,
    width_ns: u64,
    /// Lower edges of the rows.
    latency_low_ns: Vec<u64>,
    /// `[slice, row, pieces]` where there are any.
    cells: Vec<(usize, usize, u64)>,
}

impl Heat {
    /// Of a device.
    pub fn of(grid: &Grid<Slice>) -> Heat {
        let columns: Vec<Sketch> = grid.slices.iter().map(Slice::q2c_of_data).collect();
        let mut latency_low_ns: Vec<u64> =
            columns.iter().flat_map(|sketch| sketch.buckets().map(|(low, ..)| low)).collect();
        latency_low_ns.sort_unstable();
        latency_low_ns.dedup();
        let mut cells = Vec::new();
        for (slice, sketch) in columns.iter().enumerate() {
            for (low, _, n) in sketch.buckets() {
                let row = latency_low_ns.partition_point(|edge| *edge < low);
                cells.push((slice, row, n));
            }
        }
        Heat { start_ns: grid.start_ns, width_ns: grid.width_ns, latency_low_ns, cells }
    }
}

/// Enough digits for a plot.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
