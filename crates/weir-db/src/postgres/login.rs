//! From a socket to a session: encryption, the start-up message, the password.

use md5::{Digest, Md5};

use crate::error::{DbError, NAME_CHARS_MAX, plain};
use crate::server::{Place, Server, TlsMode};
use crate::wire::Wire;

use super::answer::{self, Standing, Transaction};
use super::certificate;
use super::message::{self, Body, HEADER, Header, Malformed};
use super::scram::{Binding, Proven, Scram};

/// Codes in the place of a protocol version.
const SSL_REQUEST: i32 = 80_877_103;
const PROTOCOL_3_0: i32 = 196_608;
/// The oldest server that is spoken with.
const VERSION_MIN: u32 = 11;

/// A session that has begun.
pub(super) struct LoggedIn {
    pub wire: Wire,
    pub standing: Standing,
    /// `PostgreSQL 15.10`.
    pub version: String,
    /// Number of the server's process.
    pub process: u32,
    /// What proves that one may cancel its statements.
    pub key: Vec<u8>,
}

/// Connects and logs in.
pub(super) fn open(server: &Server) -> Result<LoggedIn, DbError> {
    let session = connect(server).and_then(|wire| log_in(wire, server));
    match session {
        Err(error) if server.tls.effective() == TlsMode::Preferred && may_do_without(&error) => {
            let mut plain = server.clone();
            plain.tls.mode = TlsMode::Disabled;
            // Both ways failed: the first one's error is about what was preferred.
            connect(&plain).and_then(|wire| log_in(wire, &plain)).map_err(|_| error)
        }
        session => session,
    }
}

/// `preferred`: the handshake failed, or pg_hba.conf has no line for encrypted connections (28000).
fn may_do_without(error: &DbError) -> bool {
    match error {
        DbError::Tls { .. } => true,
        DbError::Server(error) => error.sqlstate == "28000",
        _ => false,
    }
}

/// Connects, and encrypts where that is asked for and offered.
pub(super) fn connect(server: &Server) -> Result<Wire, DbError> {
    let mut wire = Wire::connect(&server.place, server.connect_timeout)?;
    let Place::Tcp { host, .. } = &server.place else { return Ok(wire) };
    if server.tls.effective() == TlsMode::Disabled {
        return Ok(wire);
    }
    message::put_untyped(wire.output(), |out| out.extend_from_slice(&SSL_REQUEST.to_be_bytes()));
    wire.flush()?;
    match wire.need(1)?[0] {
        b'S' => {
            wire.consume(1);
            wire.start_tls(&server.tls, host)?;
        }
        b'N' if server.tls.effective() == TlsMode::Preferred => wire.consume(1),
        b'N' => {
            let why = "the server offers none (its setting ssl is off)".to_string();
            return Err(DbError::Tls { place: server.place.to_string(), why });
        }
        // A server that cannot start a process says so before it has read anything.
        b'E' => return Err(first_error(&mut wire)?),
        _ => return Err(wire.odd("it answers the question for encryption with something else")),
    }
    Ok(wire)
}

fn first_error(wire: &mut Wire) -> Result<DbError, DbError> {
    let header = next(wire)?;
    Ok(answer::complaint(wire, header)?.error.into())
}

fn next(wire: &mut Wire) -> Result<Header, DbError> {
    let header = Header::read(wire.need(HEADER)?).map_err(|odd| wire.odd(odd.to_string()))?;
    header.ok_or_else(|| wire.odd("a message without a header"))
}

/// The start-up message. Nothing is set that poolers refuse to pass on, as PgBouncer does extra_float_digits; servers
/// from 12 on print floating-point numbers in full without it.
fn start_up(server: &Server, out: &mut Vec<u8>) {
    message::put_untyped(out, |out| {
        out.extend_from_slice(&PROTOCOL_3_0.to_be_bytes());
        let database = if server.database.is_empty() { &server.user } else { &server.database };
        for (name, value) in [
            ("user", server.user.as_str()),
            ("database", database),
            ("application_name", "weir"),
            ("client_encoding", "UTF8"),
        ] {
            message::put_text(out, name);
            message::put_text(out, value);
        }
        out.push(0);
    });
}

fn log_in(mut wire: Wire, server: &Server) -> Result<LoggedIn, DbError> {
    start_up(server, wire.output());
    wire.flush()?;
    let mut login = Login { server, scram: None, proven: None, is_let_in: false };
    let (mut version, mut process, mut key) = (String::new(), 0, Vec::new());
    loop {
        let header = next(&mut wire)?;
        match header.tag {
            b'R' => {
                let body = answer::whole(&mut wire, header)?.to_vec();
                login.answer(&body, &mut wire)?;
            }
            b'E' => return Err(answer::complaint(&mut wire, header)?.error.into()),
            b'S' => {
                let parameter = parameter(answer::whole(&mut wire, header)?);
                let (name, value) = parameter.map_err(|odd| wire.odd(odd.to_string()))?;
                if name == "server_version" {
                    version = value;
                }
            }
            b'K' => {
                let mut body = Body(answer::whole(&mut wire, header)?);
                process = body.i32().unwrap_or(0) as u32;
                key = body.0.to_vec();
            }
            b'N' | b'v' | b'A' => {
                wire.skip(HEADER + header.body)?;
                continue;
            }
            b'Z' if login.is_let_in => break wire.skip(HEADER + header.body)?,
            b'Z' => return Err(wire.odd("it is ready before the log-in")),
            other => {
                let why = format!("a message of type {:?} while logging in", char::from(other));
                return Err(wire.odd(why));
            }
        }
        wire.consume(HEADER + header.body);
    }
    wire.set_answer_timeout(server.answer_timeout)?;
    let version = supported(&version, &server.place)?;
    let standing = Standing { transaction: Transaction::Idle, farewell: None, is_over: false };
    Ok(LoggedIn { wire, standing, version, process, key })
}

/// A ParameterStatus.
fn parameter(body: &[u8]) -> Result<(String, String), Malformed> {
    let mut body = Body(body);
    let mut text = || body.text().map(|text| plain(text, NAME_CHARS_MAX));
    Ok((text()?, text()?))
}

/// `15.10 (Debian 15.10-0+deb12u1)` in short, unless it is too old. Poolers and relatives of PostgreSQL may say
/// anything; they are taken at their word that they speak its protocol.
fn supported(version: &str, place: &Place) -> Result<String, DbError> {
    let number = version.split_whitespace().next().unwrap_or("of unknown version");
    let major =
        number.split(|c: char| !c.is_ascii_digit()).next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(..VERSION_MIN) => Err(DbError::Unsupported(format!(
            "{place} is PostgreSQL {number}; weir speaks with {VERSION_MIN} and later"
        ))),
        _ => Ok(format!("PostgreSQL {number}")),
    }
}

/// The conversation about who asks.
struct Login<'a> {
    server: &'a Server,
    scram: Option<Scram>,
    proven: Option<Proven>,
    is_let_in: bool,
}

impl Login<'_> {
    /// Answers an authentication message.
    fn answer(&mut self, body: &[u8], wire: &mut Wire) -> Result<(), DbError> {
        let mut body = Body(body);
        let request = body.i32().map_err(|odd| wire.odd(odd.to_string()))?;
        let rest = body.0;
        match request {
            0 if self.scram.is_some() || self.proven.is_some() => {
                return Err(wire.refused_login("the server breaks SCRAM off without proving itself"));
            }
            0 => {
                self.is_let_in = true;
                return Ok(());
            }
            3 if !(wire.is_trusted() || self.server.tls.allow_cleartext) => {
                return Err(wire.refused_login(
                    "the server asks for the password itself, and has not proven its identity; give the \
                     authority of its certificate (--tls-ca), scram-sha-256 in pg_hba.conf, its Unix socket in a folder of its own, or send the password to any server that answers (--allow-cleartext-password)",
                ));
            }
            3 => {
                let password = self.password(wire)?;
                message::put(wire.output(), b'p', |out| message::put_text(out, password));
            }
            5 => {
                let salt = body.bytes(4).map_err(|odd| wire.odd(odd.to_string()))?;
                let hashed = md5_password(&self.server.user, self.password(wire)?, salt);
                message::put(wire.output(), b'p', |out| message::put_text(out, &hashed));
            }
            10 => self.begin_scram(rest, wire)?,
            11 => self.go_on_with_scram(rest, wire)?,
            12 => {
                let Some(proven) = self.proven.take() else {
                    return Err(wire.odd("SCRAM ends before it began"));
                };
                let last = std::str::from_utf8(rest).unwrap_or_default();
                return proven.verify(last).map_err(|why| wire.refused_login(why));
            }
            other => return Err(wire.refused_login(lacking(other))),
        }
        wire.flush()
    }

    fn password(&self, wire: &Wire) -> Result<&str, DbError> {
        if self.server.password.is_empty() {
            let why = format!("the server asks for a password of {}, and none was given", self.server.user);
            return Err(wire.refused_login(why));
        }
        Ok(self.server.password.reveal())
    }

    fn begin_scram(&mut self, mechanisms: &[u8], wire: &mut Wire) -> Result<(), DbError> {
        self.password(wire)?;
        let mut offered = mechanisms.split(|&byte| byte == 0).take_while(|name| !name.is_empty());
        let (mut plain, mut plus) = (false, false);
        offered.by_ref().for_each(|name| {
            plain |= name == b"SCRAM-SHA-256";
            plus |= name == b"SCRAM-SHA-256-PLUS";
        });
        // Where the certificate is not verified, neither is it proven that the server holds its key: the binding then
        // costs nothing and proves little.
        let binding = match wire.peer_certificate().and_then(certificate::end_point) {
            Some(hash) if plus => Binding::EndPoint(hash),
            Some(_) => Binding::NotOffered,
            None => Binding::Impossible,
        };
        if !plain && !matches!(binding, Binding::EndPoint(_)) {
            return Err(wire.refused_login("the server offers only methods of SASL that weir lacks"));
        }
        let mechanism = binding.mechanism();
        let scram = Scram::new("", nonce(wire)?, binding);
        let first = scram.client_first();
        message::put(wire.output(), b'p', |out| {
            message::put_text(out, mechanism);
            out.extend_from_slice(&(first.len() as u32).to_be_bytes());
            out.extend_from_slice(first.as_bytes());
        });
        self.scram = Some(scram);
        Ok(())
    }

    fn go_on_with_scram(&mut self, challenge: &[u8], wire: &mut Wire) -> Result<(), DbError> {
        let Some(scram) = self.scram.take() else {
            return Err(wire.odd("SCRAM goes on before it began"));
        };
        let challenge = std::str::from_utf8(challenge).unwrap_or_default();
        let answered = scram.client_final(challenge, self.password(wire)?);
        let (last, proven) = answered.map_err(|why| wire.refused_login(why))?;
        message::put(wire.output(), b'p', |out| out.extend_from_slice(last.as_bytes()));
        self.proven = Some(proven);
        Ok(())
    }
}

/// 18 bytes nobody can guess, as libpq's nonces have.
fn nonce(wire: &Wire) -> Result<String, DbError> {
    let mut bytes = [0; 18];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| wire.refused_login("this system has no randomness"))?;
    Ok(super::base64::encode(&bytes))
}

/// Documentation, "Message Flow", AuthenticationMD5Password.
fn md5_password(user: &str, password: &str, salt: &[u8]) -> String {
    let inner = hex(&Md5::new().chain_update(password).chain_update(user).finalize());
    format!("md5{}", hex(&Md5::new().chain_update(inner).chain_update(salt).finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Why a request for authentication cannot be met.
fn lacking(request: i32) -> String {
    let way = match request {
        2 => "Kerberos V5",
        6 => "SCM credentials",
        7 | 8 => "GSSAPI (Kerberos)",
        9 => "SSPI",
        _ => {
            return format!("the server asks for a log-in method that weir does not know (number {request})");
        }
    };
    format!(
        "the server asks for {way}, which weir lacks; set scram-sha-256, cert or peer for this user in \
         pg_hba.conf"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_in_short_and_old_ones_refused() {
        let place = Place::Tcp { host: "db".into(), port: 5432 };
        for (version, expected) in [
            ("15.10 (Debian 15.10-0+deb12u1)", Ok("PostgreSQL 15.10")),
            ("18devel", Ok("PostgreSQL 18devel")),
            ("11.22", Ok("PostgreSQL 11.22")),
            ("", Ok("PostgreSQL of unknown version")),
            ("9.6.24", Err("db:5432 is PostgreSQL 9.6.24; weir speaks with 11 and later")),
            ("10.23", Err("db:5432 is PostgreSQL 10.23; weir speaks with 11 and later")),
        ] {
            let got = supported(version, &place).map_err(|error| error.to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), expected, "{version}");
        }
    }

    #[test]
    fn the_password_hash_of_md5() {
        // As `select 'md5' || md5(md5('secret' || 'user') || 'salt')` says.
        assert_eq!(md5_password("user", "secret", b"salt"), "md5440c573f34f2e2f3ff4b6dbdd8a2686b");
        assert_eq!(hex(&[0, 0xff]), "00ff");
    }

    #[test]
    fn a_way_to_log_in_that_is_lacking_is_named() {
        assert!(lacking(7).contains("GSSAPI"));
        assert!(lacking(9).contains("SSPI"));
        assert!(lacking(77).contains("number 77"));
    }
}
