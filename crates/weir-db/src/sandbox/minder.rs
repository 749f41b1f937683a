//! Who ends a server when weir is killed: a shell that waits for the end of its pipe. A destructor does not run after
//! SIGKILL, and a signal at the death of a parent (prctl) comes at the death of its *thread*.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::layout::{Layout, NAMES};

/// Reads process groups, one a line, the last of which counts; an empty line: none. At the end of its input it ends
/// the group, politely first (PostgreSQL leaves shared memory otherwise), and waits until it is gone, so that data that
/// stay can be used again. Then it removes what the sandbox made: `$1` its folder, `$2` what in it, `$3` its folder for
/// the socket, `$4` whether the data stay, `$5` whether the folder was made for it, `$6` whether memory files may be
/// left. It stands in the folder itself: whatever takes the place of its path meanwhile is not touched.
///
/// Shared memory of a PostgreSQL that did not go politely: System V segments that a process of the server's session made
/// since it was started; and memory files that the server's processes have open, where it runs as this very user and
/// shares /dev/shm with it. Nothing that the server wrote is asked.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
group= since=
while read -r line; do group=$line since=$(date +%s); done
gone() {
  tries=0
  while kill -s 0 "$group" && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
}
session() { set -- $(sed 's/.*) //' "/proc/$1/stat"); echo "$4"; }
segments() {
  while read -r key id perms size maker last attached uid gid cuid cgid atime dtime ctime rest; do
    [ "$ctime" -ge "$since" ] || continue
    [ "$maker" = "$group" ] || [ "$(session "$maker")" = "$group" ] && echo "$id"
  done </proc/sysvipc/shm
}
files() {
  for process in "$group" $(cat "/proc/$group/task/"*/children); do cat "/proc/$process/maps"; done |
    grep -o '/dev/shm/PostgreSQL\.[0-9]*$'
}
left= memory=
if [ -n "$group" ]; then
  left=$(segments)
  [ "$6" = shared ] && memory=$(files | sort -u)
  kill -s QUIT "$group"
  gone
  kill -s KILL -- "-$group"
  gone
fi 2>/dev/null
for id in $left; do ipcrm -m "$id"; done 2>/dev/null
for file in $memory; do rm -f -- "$file"; done
rm -rf -- "$3"
[ "$4" = keep ] && exit
for name in $2; do rm -rf -- "./$name" ".$name."*.tmp; done
cd /
[ "$5" = made ] && rmdir -- "$1" 2>/dev/null
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
    /// Whether the server's memory files are among this user's.
    pub shared: bool,
}

/// A running minder.
#[derive(Debug)]
pub(super) struct Minder {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Minder {
    /// From now on what the sandbox made goes away with this process; the data only unless they are to stay.
    pub fn start(minded: Minded<'_>) -> io::Result<Minder> {
        let dir = minded.layout.dir().try_clone()?;
        let word = |so: bool, word: &'static str| if so { word } else { "-" };
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", SCRIPT, "weir-minder"])
            .arg(minded.layout.path())
            .arg(NAMES.join(" "))
            .arg(minded.run)
            .args([
                word(minded.keep, "keep"),
                word(minded.layout.is_made(), "made"),
                word(minded.shared, "shared"),
            ])
            // Not in reach of a terminal's Ctrl-C.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let stand = move || Ok(rustix::process::fchdir(&dir)?);
        // SAFETY: between fork and exec only a system call is made, which is async-signal-safe.
        unsafe { command.pre_exec(stand) };
        let mut shell = command.spawn()?;
        let pipe = shell.stdin.take();
        Ok(Minder { shell, pipe })
    }

    /// The process group to end; `None`: there is none any more.
    pub fn mind(&mut self, group: Option<u32>) -> io::Result<()> {
        let line = group.map_or("\n".to_string(), |group| format!("{group}\n"));
        self.pipe.as_mut().map_or(Ok(()), |pipe| pipe.write_all(line.as_bytes()))
    }
}

impl Drop for Minder {
    fn drop(&mut self) {
        // Killed before its pipe ends, so that it does nothing.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
