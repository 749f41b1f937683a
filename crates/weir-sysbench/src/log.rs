//! sysbench's log: priorities, prefixes, and the line that stands for repeated messages.

/// Where text goes. The binary's writes to stdout and stderr at once; a test's keeps it.
pub trait Console {
    /// Text for stdout, newlines included.
    fn out(&mut self, text: &str);
    /// Text for stderr, newlines included.
    fn err(&mut self, text: &str);
}

/// Ends the program with this exit code; what there was to say has been said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quit(pub u8);

/// How much a message matters; `--verbosity` shows those up to its own number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// The run cannot go on.
    Fatal,
    /// Somebody must act.
    Alert,
    /// Something is not as it should be.
    Warning,
    /// What everybody reads.
    Notice,
    /// Details.
    Info,
    /// For those who look for an error.
    Debug,
}

impl Priority {
    /// What stands before a message.
    pub fn prefix(self) -> &'static str {
        match self {
            Priority::Fatal => "FATAL: ",
            Priority::Alert => "ALERT: ",
            Priority::Warning => "WARNING: ",
            Priority::Debug => "DEBUG: ",
            Priority::Notice | Priority::Info => "",
        }
    }
}

/// Everything that sysbench prints through its logger, errors included, goes to stdout.
pub struct Log<'a> {
    /// Where it goes.
    pub console: &'a mut dyn Console,
    verbosity: Option<i32>,
    last: String,
    repeated: u32,
}

impl<'a> Log<'a> {
    /// A log that is not set up yet: it prints everything.
    pub fn new(console: &'a mut dyn Console) -> Self {
        Log { console, verbosity: None, last: String::new(), repeated: 0 }
    }

    /// From now on messages above `verbosity` are dropped, and repeated ones are counted instead of printed.
    pub fn set_verbosity(&mut self, verbosity: i32) {
        self.verbosity = Some(verbosity);
    }

    /// Whether messages of this priority are shown. Fatal ones always are: no failure is silent.
    pub fn shows(&self, priority: Priority) -> bool {
        priority == Priority::Fatal || self.verbosity.is_none_or(|verbosity| priority as i32 <= verbosity)
    }

    /// One message; a newline is added.
    pub fn text(&mut self, priority: Priority, text: &str) {
        if !self.shows(priority) {
            return;
        }
        if self.verbosity.is_some() && self.is_repeated(text) {
            return;
        }
        self.console.out(&format!("{}{text}\n", priority.prefix()));
    }

    /// A message with the time since the start, in seconds; never taken for a repetition.
    pub fn stamped(&mut self, seconds: f64, text: &str) {
        if self.shows(Priority::Notice) {
            self.console.out(&format!("[ {seconds:.0}s ] {text}\n"));
        }
    }

    /// Text past the logger, whatever the verbosity: histograms and lists of options.
    pub fn raw(&mut self, text: &str) {
        self.console.out(text);
    }

    fn is_repeated(&mut self, text: &str) -> bool {
        if self.last == text {
            self.repeated += 1;
            return true;
        }
        if self.repeated > 0 {
            self.console.out(&format!("(last message repeated {} times)\n", self.repeated));
        }
        self.repeated = 0;
        self.last = text.to_string();
        false
    }

    /// A [`Priority::Notice`].
    pub fn notice(&mut self, text: impl AsRef<str>) {
        self.text(Priority::Notice, text.as_ref());
    }

    /// A [`Priority::Warning`].
    pub fn warning(&mut self, text: impl AsRef<str>) {
        self.text(Priority::Warning, text.as_ref());
    }

    /// A [`Priority::Info`].
    pub fn info(&mut self, text: impl AsRef<str>) {
        self.text(Priority::Info, text.as_ref());
    }

    /// A [`Priority::Debug`].
    pub fn debug(&mut self, text: impl AsRef<str>) {
        self.text(Priority::Debug, text.as_ref());
    }

    /// A [`Priority::Fatal`]; returns the exit code 1 that follows it.
    pub fn fatal(&mut self, text: impl AsRef<str>) -> Quit {
        self.text(Priority::Fatal, text.as_ref());
        Quit(1)
    }

    /// A mistake in the command line, on stderr; returns the exit code 1 that follows it.
    pub fn usage(&mut self, text: impl AsRef<str>) -> Quit {
        self.console.err(&format!("{}\n", text.as_ref()));
        Quit(1)
    }
}

/// Keeps what was printed: for tests, and where it is to be looked at first.
#[derive(Default)]
pub struct Kept {
    /// stdout.
    pub out: String,
    /// stderr.
    pub err: String,
}

impl Console for Kept {
    fn out(&mut self, text: &str) {
        self.out.push_str(text);
    }
    fn err(&mut self, text: &str) {
        self.err.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_counted_and_verbosity_hides() {
        let mut kept = Kept::default();
        let mut log = Log::new(&mut kept);
        log.debug("before the log is set up everything shows");
        log.set_verbosity(3);
        log.info("hidden");
        (0..3).for_each(|_| log.warning("same"));
        log.notice("other");
        log.stamped(1.6, "tick");
        log.stamped(1.6, "tick");
        assert_eq!(log.fatal("end"), Quit(1));
        assert_eq!(
            kept.out,
            "DEBUG: before the log is set up everything shows\nWARNING: same\n\
             (last message repeated 2 times)\nother\n[ 2s ] tick\n[ 2s ] tick\nFATAL: end\n"
        );
    }
}
