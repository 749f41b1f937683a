//! stdout and stderr, written at once, so that a report under way can be watched through a pipe.

use std::io::{self, Write};

use weir_core::printable;
use weir_io::runner::Stop;
use weir_sysbench::Console;

/// The console of a run. The first failure to write to stdout is kept, and asks the run to stop.
pub struct Terminal {
    stop: Stop,
    failure: Option<io::Error>,
}

impl Terminal {
    /// A console whose failures raise `stop`.
    pub fn new(stop: Stop) -> Self {
        Terminal { stop, failure: None }
    }

    /// The first failure, if any.
    pub fn result(self) -> io::Result<()> {
        self.failure.map_or(Ok(()), Err)
    }
}

impl Console for Terminal {
    fn out(&mut self, text: &str) {
        if self.failure.is_some() {
            return;
        }
        let mut stdout = io::stdout().lock();
        if let Err(error) = stdout.write_all(printable::lines(text).as_bytes()).and_then(|()| stdout.flush())
        {
            self.failure = Some(error);
            self.stop.request(libc::SIGPIPE as u8);
        }
    }

    fn err(&mut self, text: &str) {
        // Nothing is left to tell of a failure of stderr.
        let _ = io::stderr().write_all(printable::lines(text).as_bytes());
    }
}

/// Text of a thread, written at once; a reader that went away is noticed where the report is printed.
pub fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(printable::lines(text).as_bytes()).and_then(|()| stdout.flush());
}
