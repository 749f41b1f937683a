//! Bytes to and from a server: TCP, Unix sockets, TLS; buffers that are read and written in as few calls as can be.
//!
//! A statement costs one `send` and, where its answer fits the buffer, one `recv`; on a Unix socket `poll` waits for it
//! first. Nothing here knows a protocol: packets are built in [`Wire::output`], sent by [`Wire::flush`], and read where
//! they lie, by [`Wire::need`] and [`Wire::consume`].

mod clock;
mod socket;
mod tls;

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::error::DbError;
use crate::server::{Place, Tls, TlsMode};
use clock::Clock;

pub(crate) use socket::connect_unix;

/// What the input buffer starts with, and comes back to: an answer of a hundred rows, and a MySQL server's
/// `net_buffer_length` twice.
const INPUT_BYTES: usize = 32 << 10;
/// Buffers above this are given back once they are empty.
const KEEP_BYTES: usize = 1 << 20;

/// A connection's bytes. Every error names the place.
pub struct Wire {
    socket: OwnedFd,
    /// A Unix socket, see [`Wire::has_come`].
    waits_by_poll: bool,
    place: Place,
    /// See [`Wire::is_trusted`].
    trusted: bool,
    tls: Option<Box<tls::Channel>>,
    clock: Clock,
    output: Vec<u8>,
    input: Vec<u8>,
    start: usize,
    end: usize,
}

impl Wire {
    /// Connects. Until [`Wire::set_answer_timeout`] everything together, logging in too, has `timeout`.
    pub fn connect(place: &Place, timeout: Duration) -> Result<Wire, DbError> {
        let clock = Clock::until(timeout);
        let socket = socket::connect(place, timeout).map_err(|source| match source.kind() {
            // A Unix socket whose backlog stays full says EAGAIN.
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => clock.timeout(place),
            _ => DbError::Connect { place: place.to_string(), source },
        })?;
        let mut wire = Wire {
            socket,
            waits_by_poll: matches!(place, Place::Unix(_)),
            place: place.clone(),
            trusted: false,
            tls: None,
            clock,
            output: Vec::with_capacity(4 << 10),
            input: vec![0; INPUT_BYTES],
            start: 0,
            end: 0,
        };
        if let Place::Unix(path) = place {
            wire.trusted = socket::is_the_servers(&wire.socket, path);
        }
        wire.arm()?;
        Ok(wire)
    }

    /// Ends the time for logging in: from now on every answer, from the flush that asks for it to its last byte, has
    /// `longest`.
    pub fn set_answer_timeout(&mut self, longest: Option<Duration>) -> Result<(), DbError> {
        self.clock = Clock::each(longest, self.clock.armed());
        self.arm()
    }

    /// Encrypts everything from here on. `host` is the name that the server's certificate is checked against.
    pub fn start_tls(&mut self, tls: &Tls, host: &str) -> Result<(), DbError> {
        let failed = |why: String, place: &Place| DbError::Tls { place: place.to_string(), why };
        if self.start < self.end {
            // Bytes from before the handshake would be taken for encrypted ones: somebody in between put them there.
            return Err(failed("unencrypted bytes follow the request for encryption".into(), &self.place));
        }
        let mut session = tls::Channel::new(tls, host).map_err(|why| failed(why, &self.place))?;
        while session.is_handshaking() {
            session.seal(&[]).map_err(|error| self.lost(error))?;
            self.send_all(session.sealed())?;
            session.sent();
            if !session.is_handshaking() {
                break;
            }
            let got = self.receive(session.incoming())?;
            if got == 0 {
                return Err(failed(
                    "the server closed the connection in the TLS handshake".into(),
                    &self.place,
                ));
            }
            session.open(got).map_err(|why| failed(why, &self.place))?;
        }
        self.tls = Some(Box::new(session));
        self.trusted = tls.effective() >= TlsMode::VerifyCa;
        Ok(())
    }

    /// Where to.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The process that listens, where that is one of this machine at a Unix socket.
    pub fn listener(&self) -> Option<u32> {
        let Place::Unix(_) = self.place else { return None };
        let process = socket::listener(&self.socket)?.pid;
        u32::try_from(process).ok().filter(|process| *process > 0)
    }

    /// The account at the other end, by the kernel's word, where that is one of this machine. Never root's: what root listens with
    /// is passed on to anybody, as systemd does with its sockets.
    pub fn serving_account(&self) -> Option<u32> {
        let account = match self.place {
            Place::Unix(_) => socket::listener(&self.socket).map(|listener| listener.uid),
            Place::Tcp { .. } => socket::account_at_the_other_end(&self.socket),
        };
        account.filter(|account| *account != 0)
    }

    /// Whether it is a Unix socket.
    pub fn is_local(&self) -> bool {
        matches!(self.place, Place::Unix(_))
    }

    /// Whether nobody on the way can read along: encrypted, or a socket of this machine. That says nothing of the
    /// identity of the other end.
    pub fn is_private(&self) -> bool {
        self.is_encrypted() || self.is_local()
    }

    /// Whether it is the server that is meant, and nobody reads along: its certificate was verified, or its socket
    /// lies where nobody else can have put one.
    pub fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// The server's certificate (DER), where the connection is encrypted: what SCRAM's channel binding hashes.
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        self.tls.as_ref().and_then(|session| session.peer_certificate())
    }

    /// What the next [`Wire::flush`] sends; append to it.
    #[inline]
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Sends the output, in one call where the socket takes it, and empties it. Starts the answer's time.
    #[inline]
    pub fn flush(&mut self) -> Result<(), DbError> {
        self.clock.restart();
        self.flush_within()
    }

    /// The same in the middle of an answer, whose time goes on: a server that asks and asks gets no more of it.
    pub fn flush_within(&mut self) -> Result<(), DbError> {
        let mut output = std::mem::take(&mut self.output);
        let sent = if self.tls.is_some() { self.seal_and_send(&output) } else { self.send_all(&output) };
        output.clear();
        if output.capacity() > KEEP_BYTES {
            output.shrink_to(KEEP_BYTES);
        }
        self.output = output;
        sent
    }

    /// Sends the output if the socket takes it at once: a goodbye that nobody waits for.
    pub fn send_last(&mut self) {
        let output = std::mem::take(&mut self.output);
        let sealed = self.tls.as_mut().map(|session| session.seal(&output).map(|()| session.sealed()));
        let bytes = match &sealed {
            None => output.as_slice(),
            Some(Ok(bytes)) => bytes,
            Some(Err(_)) => return,
        };
        let _ = send(&self.socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// All bytes that are there, at least `bytes_min`; waits for them. They stay until they are consumed. The buffer
    /// grows with what has arrived, not with what was announced.
    #[inline]
    pub fn need(&mut self, bytes_min: usize) -> Result<&[u8], DbError> {
        if self.end - self.start < bytes_min {
            self.fill(bytes_min)?;
        }
        Ok(&self.input[self.start..self.end])
    }

    /// What is there already, without waiting.
    #[inline]
    pub fn buffered(&self) -> &[u8] {
        &self.input[self.start..self.end]
    }

    /// Whether the server has sent something, or closed, without waiting. Of an encrypted connection this says only what
    /// is decrypted already: the bytes on their way may be TLS's own.
    pub fn has_input(&self) -> bool {
        self.start < self.end
            || self.tls.is_none()
                && recv(&self.socket, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT).is_ok()
    }

    /// Gives up bytes that [`Wire::need`] showed.
    #[inline]
    pub fn consume(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.end - self.start, "more is consumed than there is");
        self.start = (self.start + bytes).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Throws the next bytes away, waiting for them, in no more memory than the buffer has.
    pub fn skip(&mut self, mut bytes: usize) -> Result<(), DbError> {
        loop {
            let there = (self.end - self.start).min(bytes);
            self.consume(there);
            bytes -= there;
            if bytes == 0 {
                return Ok(());
            }
            self.fill(1)?;
        }
    }

    /// The error for bytes that do not fit the protocol.
    #[cold]
    pub fn odd(&self, why: impl Into<String>) -> DbError {
        DbError::Protocol { place: self.place.to_string(), why: why.into() }
    }

    /// The error for a way to log in that cannot be gone.
    #[cold]
    pub fn refused_login(&self, why: impl Into<String>) -> DbError {
        DbError::Login { place: self.place.to_string(), why: why.into() }
    }

    #[cold]
    fn lost(&self, source: io::Error) -> DbError {
        DbError::Lost { place: self.place.to_string(), source }
    }

    fn fill(&mut self, bytes_min: usize) -> Result<(), DbError> {
        self.make_room(bytes_min);
        while self.end - self.start < bytes_min {
            if self.end == self.input.len() {
                let doubled = self.input.len() * 2;
                self.input.resize(doubled, 0);
            }
            let mut input = std::mem::take(&mut self.input);
            let got = match self.tls.take() {
                None => self.receive(&mut input[self.end..]),
                Some(mut session) => {
                    let got = self.receive_sealed(&mut session, &mut input[self.end..]);
                    self.tls = Some(session);
                    got
                }
            };
            self.input = input;
            match got? {
                0 => return Err(self.lost(closed())),
                got => self.end += got,
            }
        }
        Ok(())
    }

    /// Moves what is left to the front where the rest would not fit behind it, and gives back a buffer that one long
    /// row made large.
    fn make_room(&mut self, bytes_min: usize) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.input.len() > KEEP_BYTES && bytes_min <= INPUT_BYTES {
                self.input = vec![0; INPUT_BYTES];
            }
        } else if self.start + bytes_min > self.input.len() || self.end == self.input.len() {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, DbError> {
        loop {
            if self.clock.is_due() {
                self.arm()?;
            }
            if self.waits_by_poll && !self.has_come()? {
                return Err(self.clock.timeout(&self.place));
            }
            match recv(&self.socket, &mut *into, RecvFlags::empty()) {
                Ok((_, got)) => return Ok(got),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(self.clock.timeout(&self.place)),
                Err(errno) => return Err(self.lost(errno.into())),
            }
        }
    }

    /// Whether something has come before the socket's time-out. A thread that waits on a Unix socket in `recv` is also woken when the
    /// server reads the request, finds nothing and goes to sleep again; `poll` heeds only what it was asked for.
    fn has_come(&self) -> Result<bool, DbError> {
        let longest = self.clock.armed().and_then(|longest| Timespec::try_from(longest).ok());
        loop {
            match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], longest.as_ref()) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.lost(errno.into())),
            }
        }
    }

    fn receive_sealed(&mut self, session: &mut tls::Channel, into: &mut [u8]) -> Result<usize, DbError> {
        loop {
            if let Some(got) = session.read(into).map_err(|error| self.lost(error))? {
                return Ok(got);
            }
            let got = self.receive(session.incoming())?;
            if got == 0 {
                return Ok(0);
            }
            session.open(got).map_err(|why| DbError::Lost {
                place: self.place.to_string(),
                source: io::Error::other(why),
            })?;
        }
    }

    fn seal_and_send(&mut self, plain: &[u8]) -> Result<(), DbError> {
        let Some(mut session) = self.tls.take() else { return Ok(()) };
        let sealed = session.seal(plain).map_err(|error| self.lost(error));
        let sent = sealed.and_then(|()| self.send_all(session.sealed()));
        session.sent();
        self.tls = Some(session);
        sent
    }

    fn send_all(&mut self, mut bytes: &[u8]) -> Result<(), DbError> {
        while !bytes.is_empty() {
            match send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(self.clock.timeout(&self.place)),
                Err(errno) => return Err(self.lost(errno.into())),
            }
            if !bytes.is_empty() && self.clock.is_due() {
                self.arm()?;
            }
        }
        Ok(())
    }

    /// Lets the kernel end the next wait when the time is up.
    fn arm(&mut self) -> Result<(), DbError> {
        match self.clock.arm(&self.socket) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.clock.timeout(&self.place)),
            Err(errno) => Err(self.lost(errno.into())),
        }
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")
}

#[cfg(test)]
mod tests;
