//! From a place to a connection: greeting, encryption, who asks, proof.

use crate::error::{DbError, NAME_CHARS_MAX, plain};
use crate::server::{Place, Server, TlsMode};
use crate::wire::Wire;

use super::Connection;
use super::answer::{parse_error, parse_ok};
use super::auth::{Disclosure, Plugin, readable, sealed};
use super::cursor::{Cursor, push_lenenc, push_lenenc_bytes};
use super::greeting::Greeting;
use super::packets::Packets;
use super::protocol::{EOF, ERR, MORE_AUTH, OK, PAYLOAD_BYTES_MAX, UTF8MB4, capability as can};
use super::rsa::PublicKey;
use super::version::Version;

/// What weir can do and makes use of where the server can.
pub(super) const WANTED: u32 = can::LONG_FLAG
    | can::LOCAL_FILES
    | can::PROTOCOL_41
    | can::TRANSACTIONS
    | can::SECURE_CONNECTION
    | can::MULTI_STATEMENTS
    | can::MULTI_RESULTS
    | can::PS_MULTI_RESULTS
    | can::PLUGIN_AUTH
    | can::CONNECT_ATTRS
    | can::PLUGIN_AUTH_LENENC
    | can::DEPRECATE_EOF;
const WANTED_OF_MARIADB: u32 = can::MARIADB_CACHE_METADATA | can::MARIADB_BULK_OPERATIONS;
const NEEDED: u32 = can::PROTOCOL_41 | can::SECURE_CONNECTION | can::PLUGIN_AUTH;
/// caching_sha2_password's second word: the proof was enough, or the password itself is needed.
const PROOF_ACCEPTED: u8 = 3;
const PASSWORD_NEEDED: u8 = 4;
/// More words than any way to log in has.
pub(super) const ROUNDS_MAX: usize = 16;

pub(super) fn open(server: &Server) -> Result<Connection, DbError> {
    if [&server.user, &server.database].iter().any(|name| name.contains('\0')) {
        return Err(DbError::Unsupported("a NUL cannot be part of a user's or database's name".into()));
    }
    let mut packets = Packets::new(Wire::connect(&server.place, server.connect_timeout)?);
    let greeting = read_greeting(&mut packets)?;
    let version = Version::parse(&greeting.version).map_err(DbError::Unsupported)?;
    let mut agreed = Agreed::with(&greeting, server);
    if agreed.capabilities & NEEDED != NEEDED {
        return Err(packets.wire.odd("the server lacks a capability that every supported version has"));
    }
    encrypt(&mut packets, &mut agreed, &greeting, server)?;
    log_in(&mut packets, &agreed, &greeting, server)?;
    packets.finished();
    packets.wire.set_answer_timeout(server.answer_timeout)?;
    Ok(Connection {
        packets,
        server: server.clone(),
        version,
        connection_id: greeting.connection_id,
        deprecates_eof: agreed.capabilities & can::DEPRECATE_EOF != 0,
        caches_metadata: agreed.extended & can::MARIADB_CACHE_METADATA != 0,
        takes_arrays: agreed.extended & can::MARIADB_BULK_OPERATIONS != 0,
        offers_files: agreed.capabilities & can::LOCAL_FILES != 0,
        statements: Vec::new(),
    })
}

/// A full server answers with an error instead.
fn read_greeting(packets: &mut Packets) -> Result<Greeting, DbError> {
    let payload = packets.read()?;
    if payload.first() == Some(&ERR) {
        return Err(refusal(packets));
    }
    Greeting::parse(payload).ok_or_else(|| packets.wire.odd("its greeting is not MySQL's or MariaDB's"))
}

/// The server's no; nothing follows it.
fn refusal(packets: &Packets) -> DbError {
    match parse_error(packets.shown()) {
        Some(error) => DbError::Server(error),
        None => packets.wire.odd("an error is truncated"),
    }
}

/// What both sides can.
struct Agreed {
    capabilities: u32,
    extended: u32,
}

impl Agreed {
    fn with(greeting: &Greeting, server: &Server) -> Agreed {
        let mut wanted = WANTED;
        if !server.database.is_empty() {
            wanted |= can::CONNECT_WITH_DB;
        }
        if server.tls.effective() != TlsMode::Disabled && matches!(server.place, Place::Tcp { .. }) {
            wanted |= can::SSL;
        }
        // Set, it tells MariaDB that nothing extended follows; MySQL knows no other way.
        wanted |= greeting.capabilities & can::LONG_PASSWORD;
        Agreed {
            capabilities: wanted & greeting.capabilities,
            extended: WANTED_OF_MARIADB & greeting.extended,
        }
    }

    /// What the request for encryption and the response to the greeting start with.
    fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.capabilities.to_le_bytes());
        out.extend_from_slice(&(PAYLOAD_BYTES_MAX as u32).to_le_bytes());
        out.push(UTF8MB4);
        out.extend_from_slice(&[0; 19]);
        out.extend_from_slice(&self.extended.to_le_bytes());
    }
}

fn encrypt(
    packets: &mut Packets,
    agreed: &mut Agreed,
    greeting: &Greeting,
    server: &Server,
) -> Result<(), DbError> {
    let Place::Tcp { host, .. } = &server.place else { return Ok(()) };
    match server.tls.effective() {
        TlsMode::Disabled => return Ok(()),
        TlsMode::Preferred if greeting.capabilities & can::SSL == 0 => return Ok(()),
        _ if greeting.capabilities & can::SSL == 0 => {
            let why = "the server offers none (have_ssl, ssl_cert, ssl_key)".to_string();
            return Err(DbError::Tls { place: server.place.to_string(), why });
        }
        _ => {}
    }
    packets.reply(|out| agreed.push(out))?;
    packets.wire.start_tls(&server.tls, host.trim_matches(['[', ']']))
}

fn log_in(
    packets: &mut Packets,
    agreed: &Agreed,
    greeting: &Greeting,
    server: &Server,
) -> Result<(), DbError> {
    let mut proof =
        Proof { server, plugin: Plugin::Native, scramble: greeting.scramble.clone(), asked: false };
    // The server's default need not be the account's way: where weir cannot go it, the account's is asked for.
    let first = Plugin::by_name(&greeting.plugin).and_then(|plugin| proof.by(plugin, &packets.wire));
    let first = match first {
        Ok(answer) => answer,
        Err(_) => proof.by(Plugin::Native, &packets.wire).map_err(|why| packets.wire.refused_login(why))?,
    };
    packets.reply(|out| push_response(out, agreed, server, proof.plugin, &first))?;
    for _ in 0..ROUNDS_MAX {
        let payload = packets.read()?;
        let reply = match payload.first() {
            Some(&OK) if parse_ok(payload).is_some() => return Ok(()),
            Some(&ERR) => return Err(refusal(packets)),
            Some(&MORE_AUTH) => {
                let more = payload.get(1..).unwrap_or_default().to_vec();
                match proof.go_on(&more, &packets.wire)? {
                    Some(reply) => reply,
                    None => continue,
                }
            }
            Some(&EOF) => {
                let (name, scramble) = parse_switch(payload).ok_or_else(|| {
                    packets.wire.refused_login("the account's password has the form of MySQL 4.0 and earlier")
                })?;
                proof.scramble = scramble;
                Plugin::by_name(&name).and_then(|other| proof.by(other, &packets.wire))
            }
            _ => return Err(packets.wire.odd("an answer of unknown type to the log-in")),
        };
        let reply = reply.map_err(|why| packets.wire.refused_login(why))?;
        packets.reply(|out| out.extend_from_slice(&reply))?;
    }
    Err(packets.wire.odd("the log-in does not end"))
}

/// The conversation about who asks.
struct Proof<'a> {
    server: &'a Server,
    plugin: Plugin,
    scramble: Vec<u8>,
    /// The server's public key was asked for and is to come.
    asked: bool,
}

impl Proof<'_> {
    /// The answer to a way to log in.
    fn by(&mut self, plugin: Plugin, wire: &Wire) -> Result<Vec<u8>, String> {
        (self.plugin, self.asked) = (plugin, false);
        match plugin.proof(self.server.password.reveal(), &self.scramble) {
            Some(proof) => Ok(proof),
            None => self.disclose(wire),
        }
    }

    /// The password itself, or what leads to it.
    fn disclose(&mut self, wire: &Wire) -> Result<Vec<u8>, String> {
        let password = self.server.password.reveal();
        match self.plugin.disclosure(wire, &self.server.tls)? {
            Disclosure::Readable => Ok(readable(password)),
            Disclosure::ByKey(key) => sealed(password, &self.scramble, &key),
            Disclosure::ByAskedKey => {
                self.asked = true;
                Ok(self.plugin.key_request().into_iter().collect())
            }
        }
    }

    /// The answer to more than a yes or no: the outer error is the server's, the inner one a way that is not gone.
    fn go_on(&mut self, more: &[u8], wire: &Wire) -> Result<Option<Result<Vec<u8>, String>>, DbError> {
        if std::mem::take(&mut self.asked) {
            let key = PublicKey::parse(more).map_err(|why| wire.odd(why))?;
            return Ok(Some(sealed(self.server.password.reveal(), &self.scramble, &key)));
        }
        match more.first() {
            Some(&PROOF_ACCEPTED) if self.plugin == Plugin::CachingSha2 => Ok(None),
            Some(&PASSWORD_NEEDED) if self.plugin == Plugin::CachingSha2 => Ok(Some(self.disclose(wire))),
            _ => Err(wire.odd(format!("{} sends an unexpected request", self.plugin.name()))),
        }
    }
}

/// Protocol::HandshakeResponse41.
fn push_response(out: &mut Vec<u8>, agreed: &Agreed, server: &Server, plugin: Plugin, proof: &[u8]) {
    agreed.push(out);
    out.extend_from_slice(server.user.as_bytes());
    out.push(0);
    if agreed.capabilities & can::PLUGIN_AUTH_LENENC != 0 {
        push_lenenc_bytes(out, proof);
    } else {
        // Proofs have 32 bytes at most; passwords of more than 255 bytes need a server that knows lengths.
        out.push(proof.len().min(255) as u8);
        out.extend_from_slice(&proof[..proof.len().min(255)]);
    }
    if agreed.capabilities & can::CONNECT_WITH_DB != 0 {
        out.extend_from_slice(server.database.as_bytes());
        out.push(0);
    }
    out.extend_from_slice(plugin.name().as_bytes());
    out.push(0);
    if agreed.capabilities & can::CONNECT_ATTRS != 0 {
        let mut attributes = Vec::new();
        for text in
            ["program_name", "weir", "_client_name", "weir", "_client_version", env!("CARGO_PKG_VERSION")]
        {
            push_lenenc_bytes(&mut attributes, text.as_bytes());
        }
        push_lenenc(out, attributes.len());
        out.extend_from_slice(&attributes);
    }
}

/// Another way to log in, and what its proof is made with.
pub(super) fn parse_switch(payload: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut cursor = Cursor(payload.strip_prefix(&[EOF])?);
    let name = plain(cursor.nul_bytes()?, NAME_CHARS_MAX);
    let scramble = cursor.0.strip_suffix(&[0]).unwrap_or(cursor.0);
    Some((name, scramble.to_vec()))
}
