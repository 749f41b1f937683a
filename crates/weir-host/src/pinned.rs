//! A server on fewer processors than it has, for as long as a value lives.

use std::io;

use crate::host::Host;

/// Processors that threads may use.
type Mask = libc::cpu_set_t;

/// A family of processes that is kept to a part of its processors. Dropped, all its threads have their own again.
pub struct Pinned {
    host: Host,
    process: u32,
    /// What its first thread had, which is what new threads get.
    whole: Mask,
    /// Threads that had something else.
    before: Vec<(u32, Mask)>,
}

impl Host {
    /// Keeps a process, and all that it started, to the first half of the processors that it may use.
    ///
    /// # Errors
    /// When there is no such process, it has only one processor, or the kernel does not allow it.
    pub fn halve_processors(&self, process: u32) -> io::Result<Pinned> {
        let whole = mask_of(process)?;
        let half = half_of(&whole)
            .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "it may use one processor only"))?;
        let mut pinned = Pinned { host: self.clone(), process, whole, before: Vec::new() };
        for thread in pinned.threads() {
            // A thread that ended meanwhile needs no place.
            let Ok(mask) = mask_of(thread) else { continue };
            pinned.before.push((thread, mask));
            give(thread, &half).or_else(unless_gone)?;
        }
        Ok(pinned)
    }
}

impl Pinned {
    fn threads(&self) -> Vec<u32> {
        let family = self.host.family_of(self.process);
        family.into_iter().flat_map(|process| self.host.threads_of(process)).collect()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        for thread in self.threads() {
            let own = self.before.iter().find(|(known, _)| *known == thread);
            // One that cannot be given back its processors has ended.
            let _ = give(thread, own.map_or(&self.whole, |(_, mask)| mask));
        }
    }
}

fn unless_gone(error: io::Error) -> io::Result<()> {
    if error.raw_os_error() == Some(libc::ESRCH) { Ok(()) } else { Err(error) }
}

fn mask_of(thread: u32) -> io::Result<Mask> {
    // SAFETY: all zeros is the empty set.
    let mut mask: Mask = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most so many bytes where it is told to.
    let answer = unsafe { libc::sched_getaffinity(thread.cast_signed(), size_of::<Mask>(), &mut mask) };
    if answer == 0 { Ok(mask) } else { Err(io::Error::last_os_error()) }
}

fn give(thread: u32, mask: &Mask) -> io::Result<()> {
    // SAFETY: the kernel reads so many bytes where it is told to.
    let answer = unsafe { libc::sched_setaffinity(thread.cast_signed(), size_of::<Mask>(), mask) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The first half of a set, rounded down; `None` of one processor.
fn half_of(whole: &Mask) -> Option<Mask> {
    // SAFETY: reads bits of a set by numbers below its size.
    let all: Vec<usize> =
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, whole) }).collect();
    if all.len() < 2 {
        return None;
    }
    // SAFETY: all zeros is the empty set.
    let mut half: Mask = unsafe { std::mem::zeroed() };
    for cpu in &all[..all.len() / 2] {
        // SAFETY: sets a bit of a set by a number below its size.
        unsafe { libc::CPU_SET(*cpu, &mut half) };
    }
    Some(half)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn count(mask: &Mask) -> i32 {
        // SAFETY: counts the bits of a set.
        unsafe { libc::CPU_COUNT(mask) }
    }

    #[test]
    fn a_process_has_its_processors_again_afterwards() {
        let sleeper = Sleeper(Command::new("sleep").arg("60").spawn().unwrap());
        let process = sleeper.0.id();
        let before = mask_of(process).unwrap();
        match Host::live().halve_processors(process) {
            Ok(pinned) => {
                assert_eq!(count(&mask_of(process).unwrap()), count(&before) / 2);
                drop(pinned);
            }
            Err(error) => assert_eq!((count(&before), error.kind()), (1, io::ErrorKind::Unsupported)),
        }
        assert_eq!(count(&mask_of(process).unwrap()), count(&before));
        assert!(Host::live().halve_processors(u32::MAX >> 1).is_err());
    }
}
