//! Looks at what the server's sessions do, added up, as long as the server answers.

use weir_db::connection::Connection;
use weir_db::vitals::{Whose, add, sessions};
use weir_host::{Host, Numbers};
use weir_oltp::limits::{OffCpu, Sessions};

/// The kernel's thread that bears the server's number, 0 where there is none, and where it sleeps, as far as that may be seen.
pub fn thread(host: &Host, numbers: Option<&mut Numbers>, own: u32) -> (u32, Option<OffCpu>) {
    let thread = numbers.and_then(|numbers| numbers.find(host, own));
    thread.map_or((0, None), |thread| (thread, host.off_cpu(thread).ok().flatten()))
}

/// Looks, added up.
pub struct Looks {
    connection: Connection,
    /// The server's threads, where they are threads of this machine.
    numbers: Option<Numbers>,
    sum: Sessions,
    /// What the server or the kernel refused; looking ends with the server's refusal.
    pub refused: Option<String>,
}

impl Looks {
    /// Looks by this connection.
    pub fn new(connection: Connection, numbers: Option<Numbers>) -> Looks {
        Looks { connection, numbers, sum: Sessions::default(), refused: None }
    }

    /// The connection, for what else there is to ask.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Looks once; the threads of the sessions seen.
    pub fn look(&mut self, host: &Host) -> Vec<u32> {
        if self.refused.is_some() {
            return Vec::new();
        }
        let numbers = &mut self.numbers;
        numbers.iter_mut().for_each(Numbers::begin);
        let mut find = |own| thread(host, numbers.as_mut(), own);
        match sessions(&mut self.connection, Whose::OfThisDatabase, &mut find) {
            Ok(sessions) => {
                add(&mut self.sum, &sessions);
                sessions.iter().map(|session| session.thread).filter(|thread| *thread > 0).collect()
            }
            Err(error) => {
                self.refused = Some(format!("what sessions wait for: {error}"));
                Vec::new()
            }
        }
    }

    /// What was seen; `None` where nothing was.
    pub fn take(&mut self) -> Option<Sessions> {
        let sum = std::mem::take(&mut self.sum);
        (sum.samples() > 0).then_some(sum)
    }
}
