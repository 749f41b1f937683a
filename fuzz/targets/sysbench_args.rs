//! Any words as sysbench's command line, a configuration file included: parsing ends, with a request or a message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_sysbench::{Console, Log, parse};

/// Keeps how much was said.
#[derive(Default)]
struct Said(usize);

impl Console for Said {
    fn out(&mut self, text: &str) {
        self.0 += text.len();
    }

    fn err(&mut self, text: &str) {
        self.0 += text.len();
    }
}

fuzz_target!(|text: &str| {
    // What follows an empty line is the configuration file.
    let (line, config) = text.split_once("\n\n").unwrap_or((text, ""));
    let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
    let mut said = Said::default();
    let request = parse(&words, &|_| Ok(config.to_string()), &mut Log::new(&mut said));
    if let Err(quit) = request {
        assert!(quit.0 != 0 && said.0 > 0, "exit code {} after {} bytes", quit.0, said.0);
    }
});
