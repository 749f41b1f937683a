//! From what was typed, files and variables to servers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use super::*;
use crate::as_root::root_or_say;

/// A made-up machine.
struct Machine {
    dir: tempfile::TempDir,
    around: Around,
}

impl Machine {
    fn new(variables: &[(&str, &str)]) -> Machine {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("home")).unwrap();
        let variables = variables.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let around = Around {
            variables,
            home: Some(dir.path().join("home")),
            root: dir.path().to_path_buf(),
            user: "os".to_string(),
        };
        Machine { dir, around }
    }

    fn file(&self, path: &str, mode: u32, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn socket(&self, path: &str) -> (PathBuf, UnixListener) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let listener = UnixListener::bind(&path).unwrap();
        (path, listener)
    }

    fn resolve(&self, text: &str) -> Login {
        resolve(&parse_url(text, None).unwrap(), &self.around).unwrap()
    }
}

/// One line about a server, its password included: this is a test.
fn line(server: &Server) -> String {
    let family = match server.dialect {
        Dialect::MySql => "mysql",
        Dialect::Postgres => "postgres",
    };
    let (user, place, database, password) =
        (&server.user, &server.place, &server.database, server.password.reveal());
    format!("{family} {user}@{place}/{database} {password} {:?}", server.tls.mode)
}

#[test]
fn servers_are_named_in_one_word() {
    for (text, expected) in [
        ("mysql://ann@db1/shop", "mysql ann@db1:3306/shop  Preferred"),
        ("mariadb://db1:3307", "mysql os@db1:3307/  Preferred"),
        ("mysql://a%40b@db1?tls=required", "mysql a@b@db1:3306/  Required"),
        ("postgresql://ann@[::1]:5433/x?sslmode=disable", "postgres ann@[::1]:5433/x  Disabled"),
        ("postgres://ann@%2Frun%2Fpg/x", "postgres ann@unix:/run/pg/.s.PGSQL.5432/x  Preferred"),
        ("postgres:///x?host=db9", "postgres os@db9:5432/x  Preferred"),
        ("unix:/x/mysqld.sock", "mysql os@unix:/x/mysqld.sock/  Preferred"),
        ("/x/.s.PGSQL.6000", "postgres os@unix:/x/.s.PGSQL.6000/  Preferred"),
        ("db1:5432", "postgres os@db1:5432/  Preferred"),
    ] {
        let login = Machine::new(&[]).resolve(text);
        assert_eq!(login.servers.iter().map(line).collect::<Vec<_>>(), [expected], "{text}");
    }
    let several = Machine::new(&[]).resolve("mysql://ann@db1,db2:3310/shop");
    let places: Vec<String> = several.servers.iter().map(|s| s.place.to_string()).collect();
    assert_eq!(places, ["db1:3306", "db2:3310"]);
}

#[test]
fn bad_names_are_refused_and_no_password_is_repeated() {
    for (text, word) in [
        ("mysql://ann:geheim@db1/", "list of processes"),
        ("oracle://db1/", "family of servers"),
        ("mysql://db1:0/", "a port"),
        ("mysql://db1:x/", "a port"),
        ("mysql://db1/?sesame=1", "no parameter"),
        ("mysql://db1/?tls=maybe", "a mode of encryption"),
        ("mysql://db%zz/", "%25"),
    ] {
        let error = parse_url(text, None).unwrap_err();
        assert!(error.what.contains(word), "{text}: {error}");
        assert!(!format!("{error:?}").contains("geheim"), "{error:?}");
    }
    assert!(parse_url("postgres://db1", Some(Dialect::MySql)).is_err());
    let torn = parse_url("mysql://db1/?tls=disabled&tls-ca=/ca.pem", None).unwrap();
    assert!(resolve(&torn, &Machine::new(&[]).around).unwrap_err().what.contains("encryption is disabled"));
    let unsigned = parse_url("mysql://db1/?tls=verify-ca", None).unwrap();
    assert!(resolve(&unsigned, &Machine::new(&[]).around).unwrap_err().what.contains("authority"));
}

#[test]
fn mysqls_files_lie_over_each_other() {
    let machine = Machine::new(&[("MYSQL_PWD", "from-env"), ("MYSQL_HOST", "env-host")]);
    assert_eq!(line(&machine.resolve("mysql://").servers[0]), "mysql os@env-host:3306/ from-env Preferred");
    machine.file("etc/mysql/my.cnf", 0o644, "[client]\nhost=file-host\nuser=sys\nssl-mode=REQUIRED\n");
    machine.file("home/.my.cnf", 0o600, "[client]\npassword=own\n[weir]\nuser=me\ndatabase=bench\n");
    let login = machine.resolve("mysql://");
    assert_eq!(line(&login.servers[0]), "mysql me@file-host:3306/bench own Required");
    assert_eq!(login.notes, Vec::<String>::new());
    assert!(login.looked_in.iter().any(|file| file.ends_with(".my.cnf")), "{:?}", login.looked_in);
    // What was typed counts most, and takes the socket of no file.
    machine.file("home/.my.cnf", 0o644, "[client]\npassword=own\nsocket=/x/y.sock\n");
    let login = machine.resolve("mysql://ann@db1");
    assert_eq!(line(&login.servers[0]), "mysql ann@db1:3306/ own Required");
    assert!(login.notes[0].contains("others may read"), "{:?}", login.notes);

    let only = Typed {
        dialect: Some(Dialect::MySql),
        defaults_file: Some(machine.file(
            "own.cnf",
            0o600,
            "[client]\nuser=only\nport=3399\nhost=localhost\n",
        )),
        ..Typed::default()
    };
    let login = resolve(&only, &machine.around).unwrap();
    assert_eq!(line(&login.servers[0]), "mysql only@localhost:3399/ from-env Preferred");
    let missing = Typed { defaults_file: Some(Path::new("/gone.cnf").into()), ..only };
    assert!(resolve(&missing, &machine.around).unwrap_err().what.contains("/gone.cnf"));
}

#[test]
fn postgress_files_and_variables() {
    let machine = Machine::new(&[("PGUSER", "ann"), ("PGHOST", "db1"), ("PGDATABASE", "shop")]);
    machine.file("home/.pgpass", 0o600, "db1:5432:shop:ann:secret\n");
    assert_eq!(
        line(&machine.resolve("postgres://").servers[0]),
        "postgres ann@db1:5432/shop secret Preferred"
    );
    machine.file("home/.pgpass", 0o640, "db1:5432:shop:ann:secret\n");
    let login = machine.resolve("postgres://");
    assert_eq!(line(&login.servers[0]), "postgres ann@db1:5432/shop  Preferred");
    assert!(login.notes[0].contains("chmod 600"), "{:?}", login.notes);

    machine.file("home/.pg_service.conf", 0o600, "[prod]\nhost=db7\nport=5555\nuser=bob\npassword=p\n");
    let typed = Typed { dialect: Some(Dialect::Postgres), service: Some("prod".into()), ..Typed::default() };
    let login = resolve(&typed, &machine.around).unwrap();
    assert_eq!(line(&login.servers[0]), "postgres bob@db7:5555/shop p Preferred");
    let unknown = Typed { service: Some("dev".into()), ..typed };
    assert!(resolve(&unknown, &machine.around).unwrap_err().what.contains("no service `dev`"));
}

#[test]
fn without_a_name_the_only_server_here_is_meant() {
    let machine = Machine::new(&[]);
    let nothing = resolve(&Typed::default(), &machine.around).unwrap_err();
    assert!(nothing.what.contains("none has a socket"), "{nothing}");
    let (mysql, _one) = machine.socket("run/mysqld/mysqld.sock");
    let login = resolve(&Typed::default(), &machine.around).unwrap();
    assert_eq!(login.servers[0].place, Place::Unix(mysql));
    assert!(login.notes[0].contains("mysqld.sock"));
    let (postgres, _other) = machine.socket("run/postgresql/.s.PGSQL.5432");
    let both = resolve(&Typed::default(), &machine.around).unwrap_err();
    assert!(both.hint.unwrap().contains("--mysql or --postgres"));
    let typed = Typed { dialect: Some(Dialect::Postgres), ..Typed::default() };
    assert_eq!(resolve(&typed, &machine.around).unwrap().servers[0].place, Place::Unix(postgres));
}

/// What holds of encryption after all: the mode, and whose word counts.
fn trust(login: &Login) -> String {
    let tls = &login.servers[0].tls;
    let ca = tls.ca.as_ref().or(tls.found_ca.as_ref().map(|found| &found.path));
    format!("{:?} {}", tls.effective(), ca.map_or("-".into(), |path| path.display().to_string()))
}

#[test]
fn a_named_authority_means_that_certificates_are_looked_at() {
    for (file, name, expected) in [
        ("", "mysql://db1", "Preferred -"),
        ("ssl-ca=/f.pem", "mysql://db1", "VerifyCa /f.pem"),
        ("ssl-mode=PREFERRED\nssl-ca=/f.pem", "mysql://db1", "VerifyCa /f.pem"),
        ("ssl-mode=REQUIRED\nssl-ca=/f.pem", "mysql://db1", "VerifyCa /f.pem"),
        ("ssl-mode=VERIFY_IDENTITY\nssl-ca=/f.pem", "mysql://db1", "VerifyIdentity /f.pem"),
        ("ssl-mode=VERIFY_IDENTITY", "mysql://db1", "VerifyIdentity -"),
        ("ssl-verify-server-cert\nssl-ca=/f.pem", "mysql://db1", "VerifyIdentity /f.pem"),
        ("ssl-verify-server-cert", "mysql://db1", "VerifyIdentity -"),
        ("ssl-ca=/f.pem", "mysql://db1?tls=required", "VerifyCa /f.pem"),
        ("", "mysql://db1?tls=preferred&tls-ca=/t.pem", "VerifyCa /t.pem"),
        // What is typed over a file that says no, or less.
        ("skip-ssl", "mysql://db1?tls-ca=/t.pem", "VerifyCa /t.pem"),
        ("ssl-mode=VERIFY_IDENTITY", "mysql://db1?tls-ca=/t.pem", "VerifyIdentity /t.pem"),
        ("ssl-ca=/f.pem", "mysql://db1?tls=disabled", "Disabled /f.pem"),
    ] {
        let machine = Machine::new(&[]);
        machine.file("home/.my.cnf", 0o600, format!("[client]\n{file}\n"));
        assert_eq!(trust(&machine.resolve(name)), expected, "{file} and {name}");
    }
    for (variables, root, name, expected) in [
        (&[][..], false, "postgres://db1", "Preferred -"),
        (&[("PGSSLROOTCERT", "/e.pem")], false, "postgres://db1", "VerifyCa /e.pem"),
        (&[("PGSSLMODE", "disable")], false, "postgres://db1?sslrootcert=/t.pem", "VerifyCa /t.pem"),
        (&[("PGSSLROOTCERT", "system")], false, "postgres://db1", "VerifyIdentity -"),
        (&[("PGSSLMODE", "verify-full")], false, "postgres://db1", "VerifyIdentity -"),
        // As libpq has it: the file in the home counts where encryption is a must.
        (&[], true, "postgres://db1", "Preferred -"),
        (&[], true, "postgres://db1?sslmode=require", "VerifyCa HOME"),
        (&[], true, "postgres://db1?sslmode=verify-full", "VerifyIdentity HOME"),
    ] {
        let machine = Machine::new(variables);
        let mut home = String::new();
        if root {
            home = machine.file("home/.postgresql/root.crt", 0o644, "").display().to_string();
        }
        let expected = expected.replace("HOME", &home);
        assert_eq!(trust(&machine.resolve(name)), expected, "{variables:?} and {name}");
    }
}

#[test]
fn leave_to_show_a_password_is_given_by_files_and_names() {
    let machine = Machine::new(&[]);
    let told = |name: &str| {
        let tls = machine.resolve(name).servers[0].tls.clone();
        (tls.allow_cleartext, tls.ask_server_key, tls.server_key)
    };
    assert_eq!(told("mysql://db1"), (false, false, None));
    let on = "mysql://db1?allow-cleartext-password=on&get-server-public-key=1&server-public-key=/k.pem";
    assert_eq!(told(on), (true, true, Some("/k.pem".into())));
    let text = "[client]\nenable-cleartext-plugin\nget-server-public-key=ON\nserver-public-key-path=/f.pem\n";
    machine.file("home/.my.cnf", 0o600, text);
    assert_eq!(told("mysql://db1"), (true, true, Some("/f.pem".into())));
    assert_eq!(told("mysql://db1?allow-cleartext-password=off"), (false, true, Some("/f.pem".into())));
    assert!(parse_url("mysql://db1?allow-cleartext-password=maybe", None).is_err());
}

#[test]
fn files_that_everybody_may_write_are_left_out() {
    let machine = Machine::new(&[("PGSERVICE", "prod")]);
    machine.file("etc/postgresql-common/pg_service.conf", 0o644, "[prod]\nuser=os\n");
    machine.file("home/.pg_service.conf", 0o666, "[prod]\nhost=theirs\n");
    machine.file("home/.postgresql/root.crt", 0o666, "");
    let login = machine.resolve("postgres://?sslmode=require");
    assert!(!line(&login.servers[0]).contains("theirs"), "{}", line(&login.servers[0]));
    assert!(!login.servers[0].tls.has_ca());
    let left_out = |note: &&String| note.contains("left out: everybody may write it");
    assert_eq!(login.notes.iter().filter(left_out).count(), 2, "{:?}", login.notes);
}

#[test]
fn root_a_link_of_anothers_does_not_lend_a_file_of_roots() {
    use std::os::unix::fs::{chown, lchown, symlink};
    if !root_or_say("root_a_link_of_anothers_does_not_lend_a_file_of_roots") {
        return;
    }
    // Theirs is the link, or the folder that a link of root's lies in.
    for theirs in ["home/.postgresql/root.crt", "home/.postgresql"] {
        let machine = Machine::new(&[]);
        let authority = machine.file("authority.pem", 0o644, "");
        let link = machine.file("home/.postgresql/root.crt", 0o644, "");
        std::fs::remove_file(&link).unwrap();
        symlink(&authority, &link).unwrap();
        let trusted = machine.resolve("postgres://db1?sslmode=require");
        let found = trusted.servers[0].tls.found_ca.as_ref().map(|found| &found.path);
        assert_eq!(found, Some(&link), "a link of root's own");
        let theirs = machine.around.root.join(theirs);
        if theirs.is_dir() { chown(theirs, Some(65534), None) } else { lchown(theirs, Some(65534), None) }
            .unwrap();
        let login = machine.resolve("postgres://db1?sslmode=require");
        assert!(!login.servers[0].tls.has_ca());
        assert!(login.notes[0].contains("left out: it belongs to account 65534"), "{:?}", login.notes);
    }
}

/// The link is root's, and so is the file; the folder between them, in which the file may be another one tomorrow, is not.
#[test]
fn root_a_link_of_roots_through_anothers_folder_is_not_believed() {
    use std::os::unix::fs::{chown, symlink};
    if !root_or_say("root_a_link_of_roots_through_anothers_folder_is_not_believed") {
        return;
    }
    let machine = Machine::new(&[]);
    let file = machine.file("theirs/sub/ca.pem", 0o644, "");
    chown(machine.around.root.join("theirs"), Some(65534), None).unwrap();
    let link = machine.file("home/.postgresql/root.crt", 0o644, "");
    std::fs::remove_file(&link).unwrap();
    symlink(&file, &link).unwrap();
    let login = machine.resolve("postgres://db1?sslmode=require");
    assert!(!login.servers[0].tls.has_ca());
    assert!(login.notes[0].contains("left out: it belongs to account 65534"), "{:?}", login.notes);
}

#[test]
fn an_authority_that_was_found_is_read_once() {
    let machine = Machine::new(&[]);
    let path = machine.file("home/.postgresql/root.crt", 0o644, "first");
    let login = machine.resolve("postgres://db1?sslmode=verify-ca");
    std::fs::write(&path, "another").unwrap();
    assert_eq!(&*login.servers[0].tls.found_ca.clone().unwrap().pem, b"first");
    assert_eq!(login.servers[0].tls.ca, None, "nobody named it, and nobody reads it again by its path");
}

#[test]
fn root_files_of_other_accounts_are_believed_only_when_named() {
    if !root_or_say("root_files_of_other_accounts_are_believed_only_when_named") {
        return;
    }
    let theirs = |machine: &Machine, path: &str, text: &[u8]| {
        let path = machine.file(path, 0o600, text);
        std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
        path
    };
    let cnf = b"[client]\nhost=theirs\npassword=p\n";
    let pass = b"*:*:*:*:p\n";
    let service = b"[prod]\nhost=theirs\npassword=p\n";
    // Found in a home or a folder of settings.
    for (path, text, name) in [
        ("home/.my.cnf", &cnf[..], "mysql://"),
        ("etc/mysql/my.cnf", cnf, "mysql://"),
        ("home/.pgpass", pass, "postgres://"),
        ("home/.pg_service.conf", service, "postgres://"),
        ("home/.postgresql/root.crt", b"", "postgres://db1?sslmode=require"),
    ] {
        let machine = Machine::new(&[("PGSERVICE", "prod")]);
        // A service of that name is a must.
        machine.file("etc/postgresql-common/pg_service.conf", 0o644, "[prod]\nuser=os\n");
        theirs(&machine, path, text);
        let login = machine.resolve(name);
        let server = &login.servers[0];
        assert!(!line(server).contains("theirs") && server.password.reveal().is_empty(), "{}", line(server));
        assert!(!server.tls.has_ca(), "{path}");
        assert!(
            login.notes.iter().any(|note| note.contains("left out: it belongs to account 65534")),
            "{path}"
        );
    }
    // By a file that is believed.
    let machine = Machine::new(&[]);
    machine.file(
        "home/.my.cnf",
        0o600,
        "[client]\nuser=own\n!include conf.d/theirs.cnf\n!includedir conf.d\n",
    );
    theirs(&machine, "home/conf.d/theirs.cnf", cnf);
    assert_eq!(line(&machine.resolve("mysql://").servers[0]), "mysql own@localhost:3306/  Preferred");
    // Named: the user means it.
    let machine = Machine::new(&[]);
    let defaults_file = Some(theirs(&machine, "their.cnf", cnf));
    let typed = Typed { dialect: Some(Dialect::MySql), defaults_file, ..Typed::default() };
    let login = resolve(&typed, &machine.around).unwrap();
    assert_eq!(line(&login.servers[0]), "mysql os@theirs:3306/ p Preferred");
    let mut machine = Machine::new(&[]);
    let file = theirs(&machine, "their.pgpass", pass);
    machine.around.variables.insert("PGPASSFILE".to_string(), file.display().to_string());
    assert_eq!(machine.resolve("postgres://").servers[0].password.reveal(), "p");
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    for (path, name) in
        [("home/.my.cnf", "mysql://"), ("home/.mylogin.cnf", "mysql://"), ("home/.pgpass", "postgres://")]
    {
        let machine = Machine::new(&[]);
        let path = machine.dir.path().join(path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let login = machine.resolve(name);
        assert!(login.notes.iter().any(|note| note.contains("regular")), "{path:?}: {login:?}");
    }
}

/// It has none, and whoever its account is would ask for it.
#[test]
fn passwords_of_other_servers_are_not_for_a_throw_away_one() {
    let machine = Machine::new(&[("MYSQL_PWD", "secret"), ("PGPASSWORD", "secret")]);
    machine.file("home/.my.cnf", 0o600, "[client]\npassword = secret\n");
    machine.file("home/.pgpass", 0o600, "*:*:*:*:secret\n");
    for name in ["mysql.sock", ".s.PGSQL.5432"] {
        let (path, _listener) = machine.socket(&format!("run/{name}/s/{name}"));
        let family = if name == "mysql.sock" { ("mysql", "root") } else { ("postgres", "postgres") };
        let password = |user: &str, path: &Path| {
            let url = format!("{}://{user}@/x?socket={}", family.0, path.display());
            machine.resolve(&url).servers[0].password.reveal().to_string()
        };
        assert_eq!(password(family.1, &path), "secret", "{name}");
        machine.file(&format!("run/{name}/sandbox.json"), 0o600, "{}");
        assert_eq!(password(family.1, &path), "", "{name}");
        assert_eq!(password("ann", &path), "secret", "{name}: an account that was made in it");
        let link = machine.dir.path().join(format!("elsewhere-{name}"));
        std::os::unix::fs::symlink(path.parent().unwrap(), &link).unwrap();
        assert_eq!(password(family.1, &link.join(name)), "", "{name}");
    }
}
