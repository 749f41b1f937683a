//! Who ends a server when weir is killed: a shell that waits for the end of its pipe. A destructor does not run after
//! SIGKILL, and a signal at the death of a parent (prctl) comes at the death of its *thread*.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Reads process groups, one a line, the last of which counts; an empty line: none. At the end of its input it ends
/// the group, politely first (PostgreSQL leaves shared memory otherwise), and waits until it is gone, so that data that
/// stay can be used again. Then it removes what the sandbox made: `$1` its folder, `$2` what in it, `$3` its folder for
/// the socket, `$4` whether the data stay. Shared memory of a PostgreSQL that did not go politely goes as in
/// `shared_memory::release`: where this server made it.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
group=
while read -r line; do group=$line; done
gone() {
  tries=0
  while kill -s 0 "$group" && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
}
if [ -n "$group" ]; then
  kill -s QUIT "$group"
  gone
  kill -s KILL -- "-$group"
  gone
fi 2>/dev/null
segment() {
  [ -n "$3" ] || return
  ipcs -m -p | while read -r id owner maker last; do
    [ "$id" = "$3" ] && [ "$maker" = "$1" ] && ipcrm -m "$id"
  done
}
segment $(sed -n '1p;7p' "$1/data/postmaster.pid" 2>/dev/null) 2>/dev/null
rm -rf -- "$3"
[ "$4" = keep ] && exit
cd "$1" && { for name in $2; do rm -rf -- "./$name"; done; cd /; rmdir -- "$1"; } 2>/dev/null
"#;

/// A running minder.
#[derive(Debug)]
pub(super) struct Minder {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Minder {
    /// From now on what lies in `dir` (these names) and `run` goes away with this process; the data only unless they
    /// are to stay.
    pub fn start(dir: &Path, names: &[&str], run: &Path, keep: bool) -> io::Result<Minder> {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "weir-minder"])
            .arg(dir)
            .arg(names.join(" "))
            .arg(run)
            .arg(if keep { "keep" } else { "remove" })
            // Not in a folder that somebody may want to unmount, nor in reach of a terminal's Ctrl-C.
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
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
