//! The tables in an object store: push, questions, what is superseded, two pushes at once, no keys.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::Ran;
use crate::engines::fill;
use crate::servers::Server;
use crate::tables::Fleet;

/// As much of S3 as a push and a question need, in memory.
#[derive(Clone, Default)]
struct Bucket {
    objects: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    /// Keys that somebody had removed.
    removed: Arc<Mutex<Vec<String>>>,
}

impl Bucket {
    /// Its endpoint. It ends with the test's process.
    fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let bucket = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (bucket, stream) = (bucket.clone(), stream.unwrap());
                std::thread::spawn(move || while bucket.answer(&stream).is_some() {});
            }
        });
        endpoint
    }

    fn answer(&self, stream: &TcpStream) -> Option<()> {
        let mut from = BufReader::new(stream);
        let (mut line, mut headers) = (String::new(), BTreeMap::new());
        from.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let mut words = line.split_whitespace().map(String::from);
        let (method, path) = (words.next()?, words.next()?.replace("%3D", "=").replace("%7E", "~"));
        loop {
            let mut line = String::new();
            from.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim().split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_string());
        }
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        from.read_exact(&mut body).ok()?;
        let (code, tag, body) = self.done(&method, &path, &headers, body);
        let (range, length) = match headers.get("range").filter(|_| code == 200) {
            None => (None, body.len()),
            Some(range) => {
                let (from, to) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
                let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse::<usize>().unwrap() + 1);
                (Some(from..to.min(body.len())), body.len())
            }
        };
        let mut head = format!(
            "HTTP/1.1 {} x\r\nLast-Modified: Wed, 25 Nov 2026 03:00:00 GMT\r\n",
            if range.is_some() { 206 } else { code }
        );
        if let Some(tag) = tag {
            head += &format!("ETag: \"{tag}\"\r\n");
        }
        if let Some(range) = &range {
            head += &format!("Content-Range: bytes {}-{}/{length}\r\n", range.start, range.end - 1);
        }
        let part = &body[range.unwrap_or(0..length)];
        head += &format!("Content-Length: {}\r\n\r\n", part.len());
        let mut to = stream;
        to.write_all(head.as_bytes()).ok()?;
        if method != "HEAD" {
            to.write_all(part).ok()?;
        }
        Some(())
    }

    fn done(
        &self,
        method: &str,
        path: &str,
        headers: &BTreeMap<String, String>,
        body: Vec<u8>,
    ) -> (u16, Option<String>, Vec<u8>) {
        if !headers.get("authorization").is_some_and(|words| words.contains("Credential=right/")) {
            return (403, None, b"<Error><Code>AccessDenied</Code></Error>".to_vec());
        }
        let mut objects = self.objects.lock().unwrap();
        let tag = |bytes: &Vec<u8>| {
            format!("{:x}", bytes.iter().fold(7_u64, |tag, b| tag.wrapping_mul(31) + u64::from(*b)))
        };
        let found = objects.get(path).map(tag);
        match method {
            "PUT" => {
                let is_new = !headers.contains_key("if-none-match") || found.is_none();
                let is_same = headers
                    .get("if-match")
                    .is_none_or(|wanted| Some(wanted.trim_matches('"')) == found.as_deref());
                if !is_new || !is_same {
                    return (412, None, Vec::new());
                }
                let made = tag(&body);
                objects.insert(path.to_string(), body);
                (200, Some(made), Vec::new())
            }
            // Several at once, as XML.
            "POST" => {
                let body = String::from_utf8(body).unwrap();
                let keys: Vec<&str> =
                    body.split("<Key>").skip(1).filter_map(|rest| rest.split('<').next()).collect();
                for key in &keys {
                    objects.remove(&format!("/fleet/{key}"));
                    self.removed.lock().unwrap().push((*key).to_string());
                }
                let said: String =
                    keys.iter().map(|key| format!("<Deleted><Key>{key}</Key></Deleted>")).collect();
                (200, None, format!("<DeleteResult>{said}</DeleteResult>").into_bytes())
            }
            _ => match objects.get(path) {
                Some(bytes) => (200, found, bytes.clone()),
                None => (404, None, b"<Error><Code>NoSuchKey</Code></Error>".to_vec()),
            },
        }
    }

    fn names(&self) -> Vec<String> {
        self.objects.lock().unwrap().keys().cloned().collect()
    }
}

fn with(fleet: &Fleet, endpoint: &str, key: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-fleet"));
    command.env("WEIR_FLEET", fleet.path("results")).args(arguments);
    command.env("AWS_ENDPOINT", endpoint).env("AWS_ALLOW_HTTP", "true").env("AWS_REGION", "eu-central-1");
    command.env("AWS_ACCESS_KEY_ID", key).env("AWS_SECRET_ACCESS_KEY", "secret");
    Ran::of(command.output().unwrap())
}

const BUCKET: &str = "s3://fleet/prod";
const COUNTS: &str =
    "SELECT host, device, SUM(n) AS n FROM stages GROUP BY host, device ORDER BY host, device";

/// All that a bucket goes through, whoever serves it.
fn goes_there_and_back(endpoint: &str, key: &str) -> Fleet {
    let (fleet, reader) = (Fleet::new(), Fleet::new());
    fill(&fleet);
    let ask = |arguments: &[&str]| with(&reader, endpoint, key, arguments);
    let nothing = ask(&["sql", "--bucket", BUCKET, COUNTS]);
    assert!(nothing.code == Some(2) && nothing.err.contains("weir fleet push"), "{}", nothing.err);
    with(&fleet, endpoint, key, &["push", "--bucket", BUCKET]).says(0, &["files sent", "; 0 superseded"]);
    with(&fleet, endpoint, key, &["push", "--bucket", BUCKET]).says(0, &["0 files sent"]);

    let (here, there) = (fleet.run(&["sql", COUNTS]), ask(&["sql", "--bucket", BUCKET, COUNTS]));
    there.says(0, &["host"]);
    assert_eq!(here.out, there.out);
    let slow = ask(&["show", "slow", "--bucket", BUCKET]);
    slow.says(1, &["1 device is slow"]);
    assert_eq!(slow.out, fleet.run(&["show", "slow"]).out);

    // Compacted, the small files are superseded: those who ask see the same, and the next push but one has removed them.
    fleet.run(&["compact"]).says(0, &["became"]);
    with(&fleet, endpoint, key, &["push", "--bucket", BUCKET]).says(0, &["; 0 superseded"]);
    assert_eq!(ask(&["sql", "--bucket", BUCKET, COUNTS]).out, here.out);
    let removed = with(&fleet, endpoint, key, &["push", "--bucket", BUCKET]);
    removed.says(0, &["0 files sent"]);
    assert!(!removed.out.contains("; 0 superseded"), "{}", removed.out);
    assert_eq!(ask(&["sql", "--bucket", BUCKET, COUNTS]).out, here.out);
    with(&fleet, endpoint, key, &["push", "--bucket", BUCKET]).says(0, &["0 files sent", "; 0 superseded"]);
    fleet
}

#[test]
fn a_bucket_answers_as_the_folder_does() {
    let bucket = Bucket::default();
    let endpoint = bucket.serve();
    // Somebody else's, in the same prefix.
    bucket.objects.lock().unwrap().insert("/fleet/prod/notes.txt".into(), b"mine".to_vec());
    let fleet = goes_there_and_back(&endpoint, "right");
    let names = bucket.names();
    assert!(names.contains(&"/fleet/prod/notes.txt".to_string()));
    let files = names.iter().filter(|name| name.ends_with(".parquet")).count();
    let here =
        walk(&fleet.path("results/store")).into_iter().filter(|name| name.ends_with(".parquet")).count();
    assert_eq!(files, here, "{names:?}");

    // A push with keys that are wrong, and questions with none, change nothing and say why.
    let wrong = with(&fleet, &endpoint, "wrong", &["push", "--bucket", BUCKET]);
    assert!(wrong.code == Some(3) && wrong.err.contains("AWS_ACCESS_KEY_ID"), "{}", wrong.err);
    assert_eq!(bucket.names(), names);
    // Names that an index may not have are no files; those of a schema to come are refused.
    let index = "/fleet/prod/weir-store.json".to_string();
    let good = bucket.objects.lock().unwrap()[&index].clone();
    let text = String::from_utf8(good.clone()).unwrap();
    bucket
        .objects
        .lock()
        .unwrap()
        .insert(index.clone(), text.replace("weir.store.index/1", "weir.store.index/2").into_bytes());
    let newer = with(&fleet, &endpoint, "right", &["sql", "--bucket", BUCKET, COUNTS]);
    assert!(newer.code == Some(3) && newer.err.contains("does not know"), "{}", newer.err);
    let planted = text.replace("\"superseded\":[]", "\"superseded\":[\"notes.txt\",\"../../etc/x.parquet\"]");
    assert_ne!(planted, text);
    bucket.objects.lock().unwrap().insert(index, planted.into_bytes());
    with(&fleet, &endpoint, "right", &["push", "--bucket", BUCKET]).says(0, &["; 0 superseded"]);
    assert!(bucket.names().contains(&"/fleet/prod/notes.txt".to_string()));
    let removed = bucket.removed.lock().unwrap();
    assert!(
        !removed.is_empty()
            && removed.iter().all(|key| key.starts_with("prod/kind=") && key.ends_with(".parquet")),
        "{removed:?}"
    );
}

fn walk(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(walk(&path)) } else { found.push(path.display().to_string()) }
    }
    found
}

#[test]
fn the_bucket_keeps_its_copy_of_a_file_that_is_damaged_here() {
    let bucket = Bucket::default();
    let endpoint = bucket.serve();
    let fleet = Fleet::new();
    fill(&fleet);
    let push = || with(&fleet, &endpoint, "right", &["push", "--bucket", BUCKET]);
    let ask = || with(&Fleet::new(), &endpoint, "right", &["sql", "--bucket", BUCKET, COUNTS]).out;
    push().says(0, &["files sent"]);
    let before = ask();
    let mut stages = walk(&fleet.path("results/store/kind=stages"));
    stages.retain(|name| name.ends_with(".parquet"));
    fs::write(&stages[0], b"torn").unwrap();
    for _ in 0..3 {
        let ran = push();
        ran.says(3, &["0 files sent", "; 0 superseded"]);
        assert!(ran.err.contains("left out"), "{}", ran.err);
        assert_eq!(ask(), before);
    }
}

#[test]
fn of_two_pushes_at_once_one_is_told_of_the_other() {
    let bucket = Bucket::default();
    let endpoint = bucket.serve();
    let first = Fleet::new();
    fill(&first);
    let stop = Arc::new(Mutex::new(false));
    let (objects, watched) = (Arc::clone(&bucket.objects), Arc::clone(&stop));
    // As soon as a table is there, somebody else writes an index.
    let other = std::thread::spawn(move || {
        while !*watched.lock().unwrap() {
            let mut objects = objects.lock().unwrap();
            if objects.len() > 3 {
                objects.insert("/fleet/prod/weir-store.json".into(), b"{\"another\": \"index\"}".to_vec());
                return;
            }
            drop(objects);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let ran = with(&first, &endpoint, "right", &["push", "--bucket", BUCKET]);
    *stop.lock().unwrap() = true;
    other.join().unwrap();
    assert!(ran.code == Some(3) && ran.err.contains("at the same time"), "{}\n{}", ran.out, ran.err);
}

#[test]
fn a_bucket_of_another_make_answers_as_the_folder_does() {
    let Some(server) = Server::moto("a_bucket_of_another_make_answers_as_the_folder_does") else { return };
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let made =
        Command::new("curl").args(["-sS", "-f", "-X", "PUT", &format!("{endpoint}/fleet")]).status().unwrap();
    assert!(made.success());
    goes_there_and_back(&endpoint, "right");
}
