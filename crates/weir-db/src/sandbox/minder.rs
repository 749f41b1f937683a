//! The minder ends a server when weir is killed: it is a process that waits for the end of its channel to weir. A destructor does not
//! run after SIGKILL, and a signal at the death of a parent (prctl) comes at the death of its *thread*.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, Signal, kill_process_group, pidfd_send_signal};

use super::account::leave_keys;
use super::layout::{Layout, NAMES};
use super::quarters::path_of_programs;
use super::spawn::{self, Running};

/// So long a server may take to end in order where that matters, and to be gone when it was killed.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where the minder has its end of the channel.
const CHANNEL: libc::c_int = 3;

/// Removes what the sandbox made: `$1` its folder, `$2` what in it, `$3` its folder with that for the socket, `$4` whether the
/// data stay, `$5` whether the folder was made for it, `$6` the server's account. It stands in the folder itself: whatever takes
/// the place of its path meanwhile is not touched.
///
/// Folders of the account are closed to others first, who may have moved there what is not theirs to remove: folders of
/// other accounts stay. They are not entered: what a name in one means, its owner may change. So may any process of the
/// account, of those that are entered; and a set-user-id program of its makes one out of anybody's. So all of this is done with the
/// account's own permissions, from within: it need not be let through the folders above.
const SCRIPT: &str = r#"
caller=$(id -u)
as() {
  uid=$1 && shift
  [ "$caller" != "$uid" ] || { "$@"; return; }
  setpriv --reuid "$uid" --regid 65534 --clear-groups --no-new-privs -- "$@"
}
own() {
  (
    cd -P -- "$1" || exit
    as "$2" find . -xdev -type d ! -user "$2" -prune -o -type d -exec chmod 700 {} \;
    as "$2" find . -xdev -mindepth 1 -type d ! -user "$2" -prune -o ! -type d -exec rm -f -- {} +
    passes=0
    while [ $passes -lt 64 ] && [ -n "$(as "$2" find . -xdev -mindepth 1 -type d ! -user "$2" -prune -o -type d -exec rmdir -- {} \; -print)" ]; do
      passes=$((passes + 1))
    done
  )
  rmdir -- "$1"
} 2>/dev/null
# Once the server listens there, the folder is the caller's, and nobody else changes it.
owner=$(stat -c %u -- "$3/s")
[ "$owner" = "$caller" ] || owner=$6
own "$3/s" "$owner"
rm -f -- "$3"/*
rmdir -- "$3"
[ "$4" = keep ] && exit
for name in $2; do
  if [ -d "./$name" ] && ! [ -L "./$name" ]; then own "./$name" "$6"; else rm -f -- "./$name"; fi
  rm -f -- ".$name."*.tmp
done
# Another folder may be at its path by now, and where it lies another one may have its name.
here=$(stat -c %d:%i .)
cd -P .. 2>/dev/null || exit
[ "$5" = made ] && [ "$(stat -c %d:%i -- "${1##*/}")" = "$here" ] && rmdir -- "${1##*/}"
"#;

/// What a minder has to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Minded<'a> {
    /// The sandbox's folder.
    pub layout: &'a Layout,
    /// Its folder for the socket.
    pub run: &'a Path,
    /// Whether its data are to stay.
    pub keep: bool,
    /// Whether the server runs in namespaces of its own.
    pub apart: bool,
    /// The account that it runs as.
    pub account: u32,
}

/// A running minder.
#[derive(Debug)]
pub(super) struct Minder {
    // Dropped first, so that it does nothing when its channel ends.
    _process: Running,
    channel: OwnedFd,
}

impl Minder {
    /// From now on what the sandbox made goes away with this process; the data only unless they are to stay.
    pub fn start(minded: Minded<'_>) -> io::Result<Minder> {
        let word = |so: bool, word: &'static str| if so { word } else { "-" }.as_bytes().to_vec();
        let words: Vec<Vec<u8>> = vec![
            b"/bin/sh".to_vec(),
            b"-c".to_vec(),
            SCRIPT.as_bytes().to_vec(),
            b"weir-minder".to_vec(),
            minded.layout.path().as_os_str().as_bytes().to_vec(),
            NAMES.join(" ").into_bytes(),
            minded.run.as_os_str().as_bytes().to_vec(),
            word(minded.keep, "keep"),
            word(minded.layout.is_made(), "made"),
            minded.account.to_string().into_bytes(),
        ];
        let texts = |words: Vec<Vec<u8>>| words.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>();
        let words = texts(words)?;
        let environment = texts(vec![[b"PATH=", path_of_programs().as_bytes()].concat()])?;
        let (arguments, variables) = (spawn::pointers(&words), spawn::pointers(&environment));
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let (near, far) = spawn::channel()?;
        let (dir, minded) = (minded.layout.dir(), (minded.keep, minded.apart));
        let mut child = || {
            let settled = come_away(dir.as_fd(), &null, &far);
            if settled.is_ok() {
                // A process that is still alive may still write there: that is left for `clean`.
                if !mind(minded) {
                    return 1;
                }
                // SAFETY: texts and the lists of pointers to them, which end with null, are this process's copies.
                unsafe { libc::execve(words[0].as_ptr(), arguments.as_ptr(), variables.as_ptr()) };
            }
            1
        };
        // SAFETY: what the child does is system calls alone.
        let process = unsafe { spawn::fork(0, &mut child) }?;
        Ok(Minder { _process: process, channel: near })
    }

    /// The server to end; `None`: there is none any more.
    pub fn mind(&self, server: Option<&Running>) -> io::Result<()> {
        let number = server.map_or(0, Running::id).to_ne_bytes();
        let held = server.map(|server| [server.as_fd()]);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = SendAncillaryBuffer::new(&mut space);
        if let Some(held) = &held {
            message.push(SendAncillaryMessage::ScmRights(held));
        }
        sendmsg(&self.channel, &[IoSlice::new(&number)], &mut message, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// Out of reach of a terminal's Ctrl-C, with nothing open but the channel.
fn come_away(dir: BorrowedFd<'_>, null: &File, far: &OwnedFd) -> io::Result<()> {
    rustix::process::setsid()?;
    leave_keys();
    rustix::thread::set_name(c"weir-minder")?;
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        // SAFETY: takes numbers.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    rustix::process::fchdir(dir)?;
    spawn::take_streams([null.as_raw_fd(); 3])?;
    let first: libc::c_uint = CHANNEL.unsigned_abs() + 1;
    // SAFETY: both take numbers; nothing that is closed is used any more.
    let done = unsafe {
        libc::dup2(far.as_raw_fd(), CHANNEL) == CHANNEL
            && libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waits for the end of weir, then ends the server that it was told of last; whether that is gone.
fn mind((keep, apart): (bool, bool)) -> bool {
    // SAFETY: it was put there, and stays open.
    let channel = unsafe { BorrowedFd::borrow_raw(CHANNEL) };
    let mut server: Option<(OwnedFd, u32)> = None;
    loop {
        let mut number = [0; 4];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut number)];
        match recvmsg(channel, &mut parts, &mut message, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) if received.bytes == 4 => {}
            Err(rustix::io::Errno::INTR) => continue,
            _ => break,
        }
        let held = message.drain().find_map(|part| match part {
            RecvAncillaryMessage::ScmRights(mut held) => held.next(),
            _ => None,
        });
        server = held.map(|held| (held, u32::from_ne_bytes(number)));
    }
    let Some((held, number)) = server else { return true };
    // Its number may be another's by now.
    if spawn::is_ready(held.as_fd(), Duration::ZERO) {
        return true;
    }
    // Data that stay are left in order. PostgreSQL gives its shared memory back; what is apart, the kernel frees.
    let group = i32::try_from(number).ok().and_then(Pid::from_raw).filter(|_| !apart);
    if keep || !apart {
        let _ = match group {
            Some(group) => kill_process_group(group, Signal::QUIT),
            None => pidfd_send_signal(&held, Signal::QUIT),
        };
        if spawn::is_ready(held.as_fd(), PATIENCE) {
            return true;
        }
    }
    // It has not ended, so the group bears its number.
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = pidfd_send_signal(&held, Signal::KILL);
    spawn::is_ready(held.as_fd(), PATIENCE)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::process::Command;

    use super::*;
    use crate::as_root::root_or_say;

    // That no process has.
    const NOBODY: u32 = 2_013_000_007;

    /// Between `find`'s look at a path and `rm`'s, a process of the account can put a link in its place.
    #[test]
    fn root_removes_what_others_can_change_with_their_own_permissions() {
        if !root_or_say("root_removes_what_others_can_change_with_their_own_permissions") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["bin", "box", "box/data", "box/data/sub", "run", "run/s"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(at("box/data/sub/file"), "").unwrap();
        for name in ["box/data", "box/data/sub", "box/data/sub/file", "run/s"] {
            chown(at(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        // As a folder that the caller had made before.
        fs::set_permissions(at("box"), fs::Permissions::from_mode(0o700)).unwrap();
        let (log, rm) = (at("log"), at("bin/rm"));
        fs::write(&log, "").unwrap();
        fs::set_permissions(&log, fs::Permissions::from_mode(0o666)).unwrap();
        let script = format!("#!/bin/sh\necho \"$(id -u) $*\" >> {}\nexec /bin/rm \"$@\"\n", log.display());
        fs::write(&rm, script).unwrap();
        fs::set_permissions(&rm, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", at("bin").display());
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "weir-minder"]).arg(at("box")).arg(NAMES.join(" ")).arg(at("run"));
        shell.args(["-", "made", &NOBODY.to_string()]).env("PATH", path);
        assert!(shell.current_dir(at("box")).status().unwrap().success());
        let text = fs::read_to_string(&log).unwrap();
        let removed: Vec<_> = text.lines().filter(|line| line.contains("./sub/file")).collect();
        assert_eq!(removed, [format!("{NOBODY} -f -- ./sub/file")]);
        assert!(!at("box").exists() && !at("run").exists(), "something is left");
    }

    /// The owner of a folder above has put another one in its place.
    #[test]
    fn the_folder_itself_is_removed_wherever_it_lies_by_now() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["moved/one", "victim/one", "run/s"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        std::os::unix::fs::symlink(at("victim"), at("named")).unwrap();
        let account = rustix::process::geteuid().as_raw().to_string();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "weir-minder"]).arg(at("named/one")).arg(NAMES.join(" ")).arg(at("run"));
        assert!(shell.args(["-", "made", &account]).current_dir(at("moved/one")).status().unwrap().success());
        assert_eq!([at("moved/one").exists(), at("victim/one").exists()], [false, true]);
    }
}
