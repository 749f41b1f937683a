//! Who gets how much of a question's memory.

use std::fmt::{Display, Formatter};
use std::sync::{Mutex, MutexGuard, PoisonError};

use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// Half of the memory goes to whoever asks first, the other half in equal shares to all that can write to files. The engine's own pool
/// has shares alone, and a plan has dozens of operators that take one and use nothing of it: a sort of 100 MB went to files
/// where 6 GB were free.
#[derive(Debug)]
pub struct HalfFairPool {
    bytes: usize,
    state: Mutex<State>,
}

/// Bytes, and operators that can write to files.
#[derive(Debug, Default)]
struct State {
    spillers: usize,
    spillable: usize,
    unspillable: usize,
}

impl State {
    fn of(&mut self, reservation: &MemoryReservation) -> &mut usize {
        if reservation.consumer().can_spill() { &mut self.spillable } else { &mut self.unspillable }
    }

    fn used(&self) -> usize {
        self.spillable + self.unspillable
    }
}

impl HalfFairPool {
    /// A pool of so many bytes.
    pub fn new(bytes: usize) -> HalfFairPool {
        HalfFairPool { bytes, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a reservation may grow by.
    fn available(&self, state: &State, reservation: &MemoryReservation) -> usize {
        if !reservation.consumer().can_spill() {
            return self.bytes.saturating_sub(state.used());
        }
        let unasked = (self.bytes / 2).saturating_sub(state.used());
        let share = self.bytes.saturating_sub(state.unspillable) / 2 / state.spillers.max(1);
        unasked.max(share.saturating_sub(reservation.size()))
    }
}

impl Display for HalfFairPool {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} of {} bytes used", self.reserved(), self.bytes)
    }
}

impl MemoryPool for HalfFairPool {
    fn name(&self) -> &'static str {
        "half fair"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.state().spillers += usize::from(consumer.can_spill());
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.state().spillers -= usize::from(consumer.can_spill());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        *self.state().of(reservation) += additional;
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        *self.state().of(reservation) -= shrink;
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<(), DataFusionError> {
        let mut state = self.state();
        let available = self.available(&state, reservation);
        if additional > available {
            let name = reservation.consumer().name();
            let text = format!("{name} asked for {additional} bytes of memory, {available} are left for it");
            return Err(DataFusionError::ResourcesExhausted(text));
        }
        *state.of(reservation) += additional;
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.state().used()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn spillers(pool: &Arc<dyn MemoryPool>, count: usize) -> Vec<MemoryReservation> {
        let consumer = |at| MemoryConsumer::new(format!("sort {at}")).with_can_spill(true);
        (0..count).map(|at| consumer(at).register(pool)).collect()
    }

    #[test]
    fn one_of_many_takes_half_and_leaves_the_others_their_share() {
        let pool: Arc<dyn MemoryPool> = Arc::new(HalfFairPool::new(1000));
        let sorts = spillers(&pool, 10);
        sorts[0].try_grow(500).expect("half for the first");
        sorts[0].try_grow(1).expect_err("no more than half");
        for sort in &sorts[1..] {
            sort.try_grow(50).expect("a share of the other half");
            sort.try_grow(1).expect_err("no more than the share");
        }
        assert_eq!(pool.reserved(), 950);
        sorts[0].shrink(500);
        sorts[1].try_grow(50).expect("half is for whoever asks");
        drop(sorts);
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn who_cannot_spill_takes_what_is_left_and_makes_shares_smaller() {
        let pool: Arc<dyn MemoryPool> = Arc::new(HalfFairPool::new(1000));
        let sorts = spillers(&pool, 2);
        let join = MemoryConsumer::new("join").register(&pool);
        join.try_grow(600).expect("there is room");
        sorts[0].try_grow(101).expect_err("(1000 - 600) / 2 / 2");
        sorts[0].try_grow(100).expect("its share");
        join.try_grow(301).expect_err("300 are left");
        join.try_grow(300).expect("what is left");
        assert_eq!(pool.reserved(), 1000);
    }
}
