//! Looks at what the server's sessions do, added up, as long as the server answers.

use weir_core::oltp::limits::Sessions;
use weir_db::connection::Connection;
use weir_db::vitals::{Whose, add, sessions};
use weir_host::Host;

/// Looks, added up.
pub struct Looks {
    connection: Connection,
    /// Whether the server's threads are threads of this machine.
    is_here: bool,
    sum: Sessions,
    /// What the server or the kernel refused; looking ends with the server's refusal.
    pub refused: Option<String>,
}

impl Looks {
    /// Looks by this connection.
    pub fn new(connection: Connection, is_here: bool) -> Looks {
        Looks { connection, is_here, sum: Sessions::default(), refused: None }
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
        let is_here = self.is_here;
        let off_cpu = |thread| if is_here { host.off_cpu(thread).ok().flatten() } else { None };
        match sessions(&mut self.connection, Whose::OfThisDatabase, &off_cpu) {
            Ok(sessions) => {
                add(&mut self.sum, &sessions);
                let here = sessions.iter().filter(|_| is_here);
                here.map(|session| session.thread).filter(|thread| *thread > 0).collect()
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
