//! The buffer pool: do reads come from memory?

use super::{DbAdvice, Judged, View, is_memory};
use crate::doctor::{Grade, Statement};
use crate::view::{fact, percent};
use weir_core::units::{Bytes, per_second};

/// Below this hit ratio a point read often waits for storage.
const HITS_FAIR: f64 = 0.99;
const HITS_POOR: f64 = 0.95;
/// Fewer reads of storage than this are no matter.
const READS_MIN: f64 = 20.0;
/// Of the memory that is available now, a pool may take so much more.
const SHARE_OF_AVAILABLE: f64 = 0.6;

pub(super) fn judge(view: &View) -> Option<Judged> {
    let pool = view.vitals.pool_bytes()?;
    let (hits, reads) = (view.vitals.hit_ratio()?, view.rate(view.counters.page_reads));
    if !view.is_loaded() {
        return None;
    }
    let name = if view.is_postgres() { "shared_buffers" } else { "innodb_buffer_pool_size" };
    let evidence = vec![fact(name, Bytes(pool).to_string())];
    let waits = view.counters.free_page_waits.unwrap_or(0);
    let misses = format!("{} of page requests hit; {} pages/s were read", percent(hits), per_second(reads));
    let (grade, text) = if reads < READS_MIN || hits >= HITS_FAIR {
        (Grade::Good, format!("The data in use fit: {misses}."))
    } else if hits >= HITS_POOR {
        (Grade::Fair, format!("Some reads wait for storage: {misses}."))
    } else {
        (Grade::Poor, format!("The data in use do not fit into {}: {misses}.", Bytes(pool)))
    };
    let mut statements = vec![Statement::new(text, evidence)];
    if view.is_postgres() && grade != Grade::Good {
        let text = "PostgreSQL counts what it asked the kernel for, whose page cache may have had it.";
        statements.push(Statement::new(text, Vec::new()));
    }
    let mut worst = grade;
    if waits > 0 && !view.is_postgres() {
        let text = format!("Sessions waited {waits} times for a free page: flushing does not keep up.");
        statements.push(Statement::new(text, Vec::new()));
        worst = Grade::Poor;
    }
    let larger = if grade == Grade::Good { None } else { larger(view, name, pool) };
    Some(Judged::new("Buffer pool", Some(worst), statements).with(larger))
}

/// As far as this machine has memory for it, up to twice the size: the next look tells more.
fn larger(view: &View, name: &str, pool: u64) -> Option<DbAdvice> {
    let memory = &view.exam.conditions.as_ref()?.memory;
    let room = (memory.available_bytes as f64 * SHARE_OF_AVAILABLE) as u64;
    let size = pool + room.min(pool);
    if is_memory(view) || size < pool / 4 * 5 {
        return None;
    }
    let mebibytes = size >> 20;
    let value = if view.is_postgres() { format!("{mebibytes}MB") } else { (mebibytes << 20).to_string() };
    let why =
        format!("reads wait for storage, and {} of memory are available", Bytes(memory.available_bytes));
    // Some versions of MariaDB have room for as much as they were started with.
    let is_beyond = view.size("innodb_buffer_pool_size_max").is_some_and(|most| most > 0 && size > most);
    let restart = view.is_postgres() || is_beyond;
    view.advise(name, &value, restart, why, "that much memory, which nothing else can have")
}
