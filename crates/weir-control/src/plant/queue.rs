//! The queue before the device: budgets of bytes and of requests, given out slice by slice, first come, first served.

use std::collections::VecDeque;

/// Whose a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// Write-back of bulk writers.
    Bulk,
    /// What a sync thread waits for.
    Sync(u32),
}

/// One write request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Request {
    pub bytes: u64,
    /// How many of them are pages of the cache, which are clean when it ends.
    pub pages: u64,
    pub owner: Owner,
}

/// What was given out of one budget since the slice began.
#[derive(Debug, Clone, Copy, Default)]
struct Budget {
    per_second: f64,
    spent: f64,
}

/// A throttle as the kernel's: within a slice everything passes that the budget up to the slice's end covers; what
/// does not fit waits for the end of the slice, and everybody after it too. Bytes are asked for first, then requests,
/// each with a queue of its own.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    slice_ns: u64,
    start_ns: u64,
    last_ns: u64,
    bytes: Budget,
    requests: Budget,
    for_bytes: VecDeque<Request>,
    for_requests: VecDeque<Request>,
}

impl Budget {
    /// What may be given out in total until `until_ns` after the slice's begin.
    fn allowed(&self, until_ns: u64) -> f64 {
        self.per_second * until_ns as f64 / 1e9
    }

    fn set_rate(&mut self, per_second: f64) {
        if self.per_second > 0.0 {
            self.spent *= per_second / self.per_second;
        }
        self.per_second = per_second;
    }

    fn lacks(&self, amount: f64, until_ns: u64) -> f64 {
        if self.per_second <= 0.0 { 0.0 } else { (self.spent + amount - self.allowed(until_ns)).max(0.0) }
    }
}

impl Queue {
    pub fn new(slice_ns: u64) -> Queue {
        Queue {
            slice_ns,
            start_ns: 0,
            last_ns: 0,
            bytes: Budget::default(),
            requests: Budget::default(),
            for_bytes: VecDeque::new(),
            for_requests: VecDeque::new(),
        }
    }

    /// From now on so much a second; 0 for no bound. The share of the slice that was given out stays.
    pub fn set_rates(&mut self, bytes_per_second: f64, requests_per_second: f64) {
        self.bytes.set_rate(bytes_per_second);
        self.requests.set_rate(requests_per_second);
    }

    pub fn push(&mut self, request: Request) {
        self.for_bytes.push_back(request);
    }

    /// The next request that may pass now.
    pub fn pop(&mut self, now: u64) -> Option<Request> {
        self.roll(now);
        let until = self.slice_end(now);
        while let Some(request) = self.for_bytes.front() {
            let amount = request.bytes as f64;
            if self.bytes.lacks(amount, until) > 0.0 {
                break;
            }
            self.bytes.spent += amount;
            self.for_requests.extend(self.for_bytes.pop_front());
        }
        if self.for_requests.is_empty() || self.requests.lacks(1.0, until) > 0.0 {
            return None;
        }
        self.requests.spent += 1.0;
        self.last_ns = now;
        self.for_requests.pop_front()
    }

    /// When to ask again after [`Queue::pop`] gave nothing; `None` while nothing waits.
    pub fn ready_ns(&self, now: u64) -> Option<u64> {
        let until = self.slice_end(now);
        let end = self.start_ns + until;
        let requests = (!self.for_requests.is_empty()).then_some(end);
        let bytes = self.for_bytes.front().map(|head| {
            // A request beyond what is left waits for the end of the slice, and for its missing bytes on top.
            let lacking = self.bytes.lacks(head.bytes as f64, until);
            end + (lacking / self.bytes.per_second.max(1.0) * 1e9) as u64
        });
        requests.into_iter().chain(bytes).min()
    }

    /// From the slice's begin to the end of the part of it that `now` lies in.
    fn slice_end(&self, now: u64) -> u64 {
        let slice = self.slice_ns.max(1);
        ((now - self.start_ns) / slice + 1) * slice
    }

    /// Lets slices go that are over. One that is over stays, with what is left of its budget.
    fn roll(&mut self, now: u64) {
        let slice = self.slice_ns.max(1);
        if self.for_requests.is_empty() && now.saturating_sub(self.last_ns) > 2 * slice {
            self.start_ns = now;
            self.bytes.spent = 0.0;
            self.requests.spent = 0.0;
            return;
        }
        let slices = (now - self.start_ns) / slice;
        if slices < 2 {
            return;
        }
        let gone = (slices - 1) * slice;
        self.bytes.spent = (self.bytes.spent - self.bytes.allowed(gone)).max(0.0);
        self.requests.spent = (self.requests.spent - self.requests.allowed(gone)).max(0.0);
        self.start_ns += gone;
    }
}
