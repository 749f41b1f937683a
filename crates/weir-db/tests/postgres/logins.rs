//! Every way to log in, and every way to be refused.

use weir_db::{Connection, Place, Secret, Server, Tls, TlsMode};

use crate::bed::{PASSWORD, code, os_user, shared};

/// What a login comes to: in, encrypted or not, or an error that has these words.
enum Outcome {
    Encrypted,
    Plain,
    Refused(&'static str),
}
use Outcome::{Encrypted, Plain, Refused};

fn check(server: &Server, expected: &Outcome) {
    let what = format!("{} at {} with {:?}", server.user, server.place, server.tls);
    match (Connection::open(server), expected) {
        (Ok(mut connection), Encrypted | Plain) => {
            assert_eq!(connection.is_encrypted(), matches!(expected, Encrypted), "{what}");
            assert!(connection.version().starts_with("PostgreSQL 1"), "{}", connection.version());
            let user = connection.query("SELECT current_user, current_setting('application_name')").unwrap();
            assert_eq!(user, [vec![Some(server.user.clone()), Some("weir".to_string())]], "{what}");
        }
        (Err(error), Refused(words)) => {
            let error = error.to_string();
            assert!(error.contains(words), "{what}: {error}");
            assert!(!error.contains(PASSWORD), "{error}");
        }
        (Ok(_), Refused(words)) => panic!("{what}: is in, and was to be refused: {words}"),
        (Err(error), _) => panic!("{what}: {error}"),
    }
}

#[test]
fn by_the_socket() {
    let Some(bed) = shared("by_the_socket") else { return };
    let me = os_user();
    for (user, password, expected) in [
        ("postgres", "", Plain),
        ("clear_user", PASSWORD, Plain),
        ("md5_user", PASSWORD, Plain),
        ("scram_user", PASSWORD, Plain),
        (&me, "", Plain),
        ("clear_user", "wrong", Refused("28P01")),
        ("md5_user", "wrong", Refused("28P01")),
        ("scram_user", "wrong", Refused("password authentication failed for user \"scram_user\" (28P01)")),
        ("scram_user", "", Refused("asks for a password of scram_user, and none was given")),
        ("md5_user", "", Refused("none was given")),
        ("other_user", PASSWORD, Refused("Peer authentication failed for user \"other_user\" (28000)")),
        ("unknown", "", Refused("role \"unknown\" does not exist (28000)")),
    ] {
        let tls = Tls { allow_cleartext: user == "clear_user", ..Tls::default() };
        let server = Server { user: user.to_string(), password: Secret::new(password), tls, ..bed.local() };
        check(&server, &expected);
    }
    // A throw-away server's account is not trusted, wherever its socket lies.
    let clear = Server { user: "clear_user".into(), password: Secret::new(PASSWORD), ..bed.local() };
    check(&clear, &Refused("has not proven its identity"));
}

#[test]
fn by_tcp_with_and_without_encryption() {
    let Some(bed) = shared("by_tcp_with_and_without_encryption") else { return };
    for (user, mode, expected) in [
        ("clear_user", TlsMode::Disabled, Refused("has not proven its identity")),
        ("clear_user", TlsMode::Required, Refused("has not proven its identity")),
        ("clear_user", TlsMode::VerifyCa, Encrypted),
        ("md5_user", TlsMode::Disabled, Plain),
        ("md5_user", TlsMode::Preferred, Encrypted),
        ("scram_user", TlsMode::Disabled, Plain),
        ("scram_user", TlsMode::Preferred, Encrypted),
        ("scram_user", TlsMode::VerifyCa, Encrypted),
        ("scram_user", TlsMode::VerifyIdentity, Encrypted),
        ("plain_user", TlsMode::Disabled, Plain),
        ("plain_user", TlsMode::Preferred, Plain),
        ("plain_user", TlsMode::Required, Refused("no pg_hba.conf entry")),
        ("client", TlsMode::Required, Refused("client certificate")),
        ("client", TlsMode::Disabled, Refused("no pg_hba.conf entry")),
    ] {
        check(&bed.remote(user, mode), &expected);
    }
    for (mode, expected) in [(TlsMode::Disabled, Plain), (TlsMode::Required, Encrypted)] {
        let server = bed.remote("clear_user", mode);
        let tls = Tls { allow_cleartext: true, ..server.tls };
        check(&Server { tls, ..server }, &expected);
    }
}

#[test]
fn certificates_of_both_sides_are_looked_at() {
    let Some(bed) = shared("certificates_of_both_sides_are_looked_at") else { return };
    let scram = |mode| bed.remote("scram_user", mode);
    let stranger = |mode| {
        let server = scram(mode);
        Server { tls: Tls { ca: Some(bed.file("other.pem")), ..server.tls }, ..server }
    };
    let misnamed = |mode| Server { place: bed.unnamed_address(), ..scram(mode) };
    let client = bed.remote("client", TlsMode::VerifyIdentity);
    let (cert, key) = (Some(bed.file("client.pem")), Some(bed.file("client.key")));
    let client = Server { tls: Tls { cert, key, ..client.tls }, ..client };
    for (server, expected) in [
        (client, Encrypted),
        (stranger(TlsMode::Preferred), Refused("no encrypted connection")),
        (stranger(TlsMode::Required), Refused("no encrypted connection")),
        (stranger(TlsMode::VerifyCa), Refused("no encrypted connection")),
        (stranger(TlsMode::VerifyIdentity), Refused("UnknownIssuer")),
        (misnamed(TlsMode::VerifyCa), Encrypted),
        (misnamed(TlsMode::VerifyIdentity), Refused("verify-ca does not look at them")),
    ] {
        check(&server, &expected);
    }
}

#[test]
fn databases_and_limits() {
    let Some(bed) = shared("databases_and_limits") else { return };
    let unknown = Server { database: "nowhere".to_string(), ..bed.local() };
    assert_eq!(code(Connection::open(&unknown).map(|_| ())), "3D000");
    let single = Server { user: "single_user".to_string(), ..bed.local() };
    let first = Connection::open(&single).unwrap();
    assert_eq!(code(Connection::open(&single).map(|_| ())), "53300");
    drop(first);
    let nobody = Server { place: Place::Unix("/nowhere/.s.PGSQL.5432".into()), ..bed.local() };
    let error = Connection::open(&nobody).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("cannot connect to unix:/nowhere/.s.PGSQL.5432: "), "{error}");
}
