//! Who may come in: passwords, ways to log in, encryption.

use weir_db::{Connection, DbError, Place, Secret, Server, Tls, TlsMode};

use crate::server::{MariaDb, mariadb_or_say, quoted};

fn refused(server: &Server, number: u16) {
    match Connection::open(server).err() {
        Some(DbError::Server(error)) => assert_eq!(error.number, number, "{error}"),
        other => panic!("{other:?} instead of {number}"),
    }
}

#[test]
fn wrong_names_and_passwords_are_the_servers_errors() {
    if !mariadb_or_say("wrong_names_and_passwords_are_the_servers_errors") {
        return;
    }
    let right = MariaDb::shared().remote(TlsMode::Disabled);
    Connection::open(&right).unwrap();
    refused(&Server { password: Secret::new("wrong"), ..right.clone() }, 1045);
    refused(&Server { password: Secret::default(), ..right.clone() }, 1045);
    refused(&Server { user: "nobody".into(), ..right.clone() }, 1045);
    refused(&Server { database: "nowhere".into(), ..right.clone() }, 1049);
    let error = Connection::open(&Server { user: "a\0b".into(), ..right }).err().unwrap();
    assert!(error.to_string().contains("NUL"), "{error}");
}

#[test]
fn every_way_to_log_in_is_gone_or_named() {
    if !mariadb_or_say("every_way_to_log_in_is_gone_or_named") {
        return;
    }
    let server = MariaDb::start(&[]);
    let mut admin = server.connect();
    let me = admin.query("SELECT SUBSTRING_INDEX(USER(), '@', 1)").unwrap()[0][0].clone().unwrap();
    assert_eq!(me, "root");
    // Only root may be root by the socket; the test may be anybody.
    let whoami =
        String::from_utf8(std::process::Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let whoami = whoami.trim().to_string();
    let local = |user: &str, password: &str| Server {
        user: user.into(),
        password: Secret::new(password),
        ..server.local()
    };
    let create = |admin: &mut Connection, user: &str, how: &str| {
        admin.run(&format!("CREATE OR REPLACE USER {user}@localhost IDENTIFIED VIA {how}")).unwrap();
    };
    let long = "p".repeat(300);
    for password in ["", "short", "ü€😀", &long] {
        create(&mut admin, "native", &format!("mysql_native_password USING PASSWORD({})", quoted(password)));
        Connection::open(&local("native", password)).unwrap();
        refused(&local("native", "other"), 1045);
    }
    // First the one way, then, asked again, the other.
    create(&mut admin, "either", "mysql_native_password USING 'invalid' OR unix_socket AS 'nobody-else'");
    refused(&local("either", ""), 1698);
    if whoami != "root" {
        create(&mut admin, &format!("`{whoami}`"), "unix_socket");
        Connection::open(&local(&whoami, "")).unwrap();
    } else {
        // The account that logs in everywhere else in these tests, by its default of packages.
        let how = "mysql_native_password USING 'invalid' OR unix_socket";
        admin.run(&format!("ALTER USER root@localhost IDENTIFIED VIA {how}")).unwrap();
        Connection::open(&local("root", "")).unwrap();
        admin.run("ALTER USER root@localhost IDENTIFIED VIA unix_socket").unwrap();
        Connection::open(&local("root", "not looked at")).unwrap();
    }
}

#[test]
fn encryption_has_five_degrees() {
    if !mariadb_or_say("encryption_has_five_degrees") {
        return;
    }
    let server = MariaDb::shared();
    let check = |mode: TlsMode, host: &str, ca: Option<&str>, expected: Result<bool, &str>| {
        let mut target = server.remote(mode);
        target.place = Place::Tcp { host: host.into(), port: server.port };
        target.tls.ca = ca.map(|name| server.path(name));
        match (Connection::open(&target), expected) {
            (Ok(mut connection), Ok(encrypted)) => {
                assert_eq!(connection.is_encrypted(), encrypted, "{mode:?}");
                let cipher = connection.query("SHOW SESSION STATUS LIKE 'Ssl_version'").unwrap();
                assert_eq!(cipher[0][1].as_deref().unwrap_or_default() != "", encrypted, "{mode:?}");
                assert_eq!(connection.run("SELECT * FROM mysql.seq_1_to_100000").unwrap().rows, 100_000);
            }
            (Err(error), Err(part)) => {
                assert!(matches!(error, DbError::Tls { .. }), "{mode:?} {host} {ca:?}: {error}");
                assert!(error.to_string().contains(part), "{mode:?} {host} {ca:?}: {error}");
            }
            (got, expected) => panic!("{mode:?} {host} {ca:?}: {expected:?}, got {:?}", got.err()),
        }
    };
    check(TlsMode::Disabled, "127.0.0.1", None, Ok(false));
    check(TlsMode::Preferred, "127.0.0.1", None, Ok(true));
    // An authority that was named is heeded in every mode.
    check(TlsMode::Preferred, "127.0.0.1", Some("ca.pem"), Ok(true));
    check(TlsMode::Preferred, "127.0.0.1", Some("other.pem"), Err("name the authority"));
    check(TlsMode::Required, "127.0.0.1", Some("other.pem"), Err("name the authority"));
    check(TlsMode::VerifyCa, "127.0.0.1", Some("ca.pem"), Ok(true));
    check(TlsMode::VerifyCa, "127.0.0.2", Some("ca.pem"), Ok(true));
    check(TlsMode::VerifyIdentity, "127.0.0.2", Some("ca.pem"), Err("subjectAltName"));
    check(TlsMode::VerifyCa, "127.0.0.1", Some("other.pem"), Err("name the authority"));
    check(TlsMode::VerifyCa, "127.0.0.1", None, Err("name the authority"));
    check(TlsMode::VerifyCa, "127.0.0.1", Some("missing.pem"), Err("missing.pem"));
    check(TlsMode::VerifyCa, "127.0.0.1", Some("key.pem"), Err("holds no certificate"));
    check(TlsMode::VerifyIdentity, "127.0.0.1", None, Err("name the authority"));
    check(TlsMode::VerifyIdentity, "127.0.0.1", Some("ca.pem"), Ok(true));
    check(TlsMode::VerifyIdentity, "localhost", Some("ca.pem"), Ok(true));
    check(TlsMode::VerifyIdentity, "localhost", Some("other.pem"), Err("name the authority"));
}

#[test]
fn clients_have_certificates_too() {
    if !mariadb_or_say("clients_have_certificates_too") {
        return;
    }
    let server = MariaDb::shared();
    let mut admin = server.connect();
    admin.run("CREATE OR REPLACE USER certain@'127.0.0.1' REQUIRE SUBJECT '/CN=client'").unwrap();
    let target = |cert: Option<&str>, key: Option<&str>| Server {
        user: "certain".into(),
        password: Secret::default(),
        tls: Tls {
            mode: TlsMode::Required,
            cert: cert.map(|name| server.path(name)),
            key: key.map(|name| server.path(name)),
            ..Tls::default()
        },
        ..server.remote(TlsMode::Required)
    };
    Connection::open(&target(Some("client.pem"), Some("client.key"))).unwrap();
    refused(&target(None, None), 1045);
    let check = |cert, key, part: &str| {
        let error = Connection::open(&target(cert, key)).err().unwrap();
        assert!(matches!(error, DbError::Tls { .. }) && error.to_string().contains(part), "{error}");
    };
    check(Some("client.pem"), None, "needs its key");
    check(None, Some("client.key"), "needs its certificate");
    check(Some("client.pem"), Some("ca.pem"), "ca.pem");
    check(Some("client.pem"), Some("key.pem"), "client.pem with");
}

#[test]
fn a_server_without_tls_is_told() {
    if !mariadb_or_say("a_server_without_tls_is_told") {
        return;
    }
    let server = MariaDb::start(&[("ssl", "0")]);
    assert!(!Connection::open(&server.remote(TlsMode::Preferred)).unwrap().is_encrypted());
    let with_authority = |mode| {
        let target = server.remote(mode);
        Server { tls: Tls { ca: Some(server.path("ca.pem")), ..target.tls.clone() }, ..target }
    };
    for target in [
        server.remote(TlsMode::Required),
        server.remote(TlsMode::VerifyCa),
        server.remote(TlsMode::VerifyIdentity),
        with_authority(TlsMode::Preferred),
    ] {
        let error = Connection::open(&target).err().unwrap();
        assert!(error.to_string().contains("offers none"), "{error}");
    }
}
