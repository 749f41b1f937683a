//! How long an answer may take. The kernel does the waiting (SO_RCVTIMEO, poll), so that a statement costs no call for it:
//! the socket's time-out is set anew only where an answer has used up a good part of its time.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::error::DbError;
use crate::server::Place;

/// A time limit and how much of it is gone.
pub(super) struct Clock {
    longest: Option<Duration>,
    since: Instant,
    /// Whether each flush starts it again: after logging in.
    restarts: bool,
    /// No wait has been made since the start: what is armed still holds.
    fresh: bool,
    /// What the socket's time-outs stand at.
    armed: Option<Duration>,
}

impl Clock {
    /// `longest` for everything from now on.
    pub(super) fn until(longest: Duration) -> Clock {
        Clock { longest: Some(longest), since: Instant::now(), restarts: false, fresh: false, armed: None }
    }

    /// `longest` for each answer, on a socket whose time-outs stand at `armed`.
    pub(super) fn each(longest: Option<Duration>, armed: Option<Duration>) -> Clock {
        Clock { longest, since: Instant::now(), restarts: true, fresh: false, armed }
    }

    pub(super) fn armed(&self) -> Option<Duration> {
        self.armed
    }

    /// A new answer is asked for.
    #[inline]
    pub(super) fn restart(&mut self) {
        if self.restarts && self.longest.is_some() {
            self.since = Instant::now();
            self.fresh = true;
        }
    }

    /// Whether [`Clock::arm`] has to look at the time before the next wait.
    #[inline]
    pub(super) fn is_due(&mut self) -> bool {
        let fresh = std::mem::replace(&mut self.fresh, false);
        self.longest.is_some() && !(fresh && self.armed == self.longest)
    }

    /// Sets the socket's time-outs to what is left, give or take an eighth; `false`: nothing is left.
    pub(super) fn arm(&mut self, socket: &OwnedFd) -> Result<bool, Errno> {
        let left = self.longest.map(|longest| longest.saturating_sub(self.since.elapsed()));
        if left == Some(Duration::ZERO) {
            return Ok(false);
        }
        let near = match (left, self.armed) {
            (None, None) => true,
            (Some(left), Some(armed)) => armed.abs_diff(left) <= self.longest.unwrap_or(left) / 8,
            _ => false,
        };
        if !near {
            // Zero would mean for ever, and the kernel counts in ticks.
            let timeout = left.map(|left| left.max(Duration::from_millis(1)));
            set_socket_timeout(socket.as_fd(), Timeout::Recv, timeout)?;
            set_socket_timeout(socket.as_fd(), Timeout::Send, timeout)?;
            self.armed = left;
        }
        Ok(true)
    }

    #[cold]
    pub(super) fn timeout(&self, place: &Place) -> DbError {
        let after_ns = u64::try_from(self.longest.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX);
        DbError::Timeout { place: place.to_string(), after_ns }
    }
}
