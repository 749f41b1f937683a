//! The recorder's control socket, in the archive's folder, which only its owner may enter. A client's line `snap MS` asks for a
//! snapshot of so many milliseconds; the answer is a line of JSON.

use std::ffi::OsStr;
use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_fs::Dir;

use super::archive::CONTROL;
use crate::daemon::socket::{Files, answer_in_time, connect, line, listen_in, request};
use crate::failure::Lacking;

/// Value of [`Answer::schema`].
const SCHEMA: &str = "weir.recorder.snap/1";
/// What a snapshot may reach back, ms: seconds before that are not kept.
pub const LAST_MAX_MS: u64 = 60_000;
/// How long the disk has to take a snapshot.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a client waits: a little longer than for one that came before.
const CLIENT_PATIENCE: Duration = Duration::from_secs(45);
/// After an error that the next try would meet too, such as a lack of descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// Somebody asks for a snapshot.
pub struct Request {
    /// Of so much time.
    pub last: Duration,
    /// For the answer, once the file is written.
    pub reply: SyncSender<Reply>,
}

/// The snapshot's name within the archive's folder and its length, or why there is none.
pub type Reply = Result<(String, u64), String>;

/// What the recorder answers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    schema: String,
    /// The snapshot's path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Its length.
    #[serde(default)]
    pub bytes: u64,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Listens in the archive's folder. Requests come out of the channel; the socket's file goes with [`Files`].
///
/// # Errors
/// When the socket cannot be made or no thread started.
pub fn serve(archive: &Dir) -> io::Result<(Files, Receiver<Request>)> {
    let mut files = Files::default();
    let listener = listen_in(archive.try_clone()?, OsStr::new(CONTROL), 0o600, &mut files)?;
    // One waits for its answer while the next may come.
    let (sender, requests) = sync_channel(1);
    let archive = archive.path().to_path_buf();
    let answers = move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => answer(stream, &sender, &archive),
                Err(_) => thread::sleep(PAUSE),
            }
        }
    };
    thread::Builder::new().name("answers".to_string()).spawn(answers)?;
    Ok((files, requests))
}

fn answer(mut stream: UnixStream, sender: &SyncSender<Request>, archive: &Path) {
    let Some(wish) = request(&mut stream) else { return };
    let reply = reply(&wish, sender);
    let (file, bytes, error) = match reply {
        Ok((name, bytes)) => (Some(archive.join(name)), bytes, None),
        Err(why) => (None, 0, Some(why)),
    };
    let answer = Answer { schema: SCHEMA.to_string(), file, bytes, error };
    if let Ok(mut line) = serde_json::to_vec(&answer) {
        line.push(b'\n');
        let _ = answer_in_time(&mut stream, &line);
    }
}

fn reply(wish: &str, sender: &SyncSender<Request>) -> Reply {
    let last_ms = wish.trim().strip_prefix("snap ").and_then(|ms| ms.parse::<u64>().ok());
    let Some(last_ms) = last_ms.filter(|ms| (1..=LAST_MAX_MS).contains(ms)) else {
        return Err(format!("expected `snap MS`, got `{}`", wish.trim().escape_debug()));
    };
    let (reply, answered) = sync_channel(1);
    let asked = sender.try_send(Request { last: Duration::from_millis(last_ms), reply });
    asked.map_err(|_| "another snapshot is being taken".to_string())?;
    answered
        .recv_timeout(PATIENCE)
        .unwrap_or_else(|_| Err("the archive's disk does not take it in time".to_string()))
}

/// Asks the recorder that writes to an archive for a snapshot.
///
/// # Errors
/// When none runs, it may not be asked by this user, or it cannot write.
pub fn ask(archive: &Path, last: Duration) -> anyhow::Result<Answer> {
    let lacking = |why: String, hint: Option<&str>| Lacking {
        what: format!("no snapshot of {}: {why}", archive.display()),
        hint: hint.map(String::from),
    };
    let none = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => "run it as root",
            _ => "`weir recorder run` starts a recorder; --dir names its archive",
        };
        lacking(format!("no recorder answers: {error}"), Some(hint))
    };
    let mut stream = connect(archive, CONTROL).map_err(none)?;
    let asked = stream
        .set_write_timeout(Some(CLIENT_PATIENCE))
        .and_then(|()| stream.write_all(format!("snap {}\n", last.as_millis()).as_bytes()));
    asked.map_err(none)?;
    let said = line(&mut BufReader::new(stream), CLIENT_PATIENCE).map_err(none)?;
    if said.is_empty() {
        return Err(lacking("the recorder ended meanwhile".to_string(), None).into());
    }
    let answer: Answer = weir_core::json::parse(&said)
        .map_err(|error| lacking(format!("the recorder's answer cannot be understood: {error}"), None))?;
    match answer.error {
        Some(why) => Err(lacking(why, None).into()),
        None => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_asked_for_and_refusals_are_said() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("a".repeat(120));
        std::fs::create_dir(&dir).unwrap();
        let second = Duration::from_secs(1);
        assert!(ask(&dir, second).unwrap_err().to_string().contains("no recorder answers"));
        let (files, requests) = serve(&Dir::open(&dir).unwrap()).unwrap();
        let recorder = thread::spawn(move || {
            for reply in [Ok(("snapshots/a.json".to_string(), 7)), Err("full".to_string())] {
                let request: Request = requests.recv().unwrap();
                assert_eq!(request.last, second);
                request.reply.send(reply).unwrap();
            }
        });
        let answer = ask(&dir, second).unwrap();
        assert_eq!((answer.file, answer.bytes), (Some(dir.join("snapshots/a.json")), 7));
        assert!(ask(&dir, second).unwrap_err().to_string().ends_with("full"));
        recorder.join().unwrap();
        for wish in ["snap 0\n", "snap 60001\n", "snap\n", "x\n"] {
            let (sender, _requests) = sync_channel(1);
            assert!(reply(wish, &sender).unwrap_err().starts_with("expected `snap MS`"), "{wish}");
        }
        drop(files);
        assert!(!dir.join(CONTROL).exists());
    }

    #[test]
    fn it_listens_in_the_folder_that_the_recorder_holds() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("archive"), folder.path().join("moved"));
        std::fs::create_dir(&path).unwrap();
        let held = Dir::open(&path).unwrap();
        std::fs::rename(&path, &moved).unwrap();
        std::fs::create_dir(&path).unwrap();
        let (_files, _requests) = serve(&held).unwrap();
        assert!(moved.join(CONTROL).exists() && !path.join(CONTROL).exists());
    }
}
