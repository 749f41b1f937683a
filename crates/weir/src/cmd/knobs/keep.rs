//! Settings for the next boot: files written, and taken away again.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use weir_fs::{Dir, Root};
use weir_host::Host;
use weir_host::knob;
use weir_knobs::Setting;
use weir_knobs::persist::{self, Found, Keeper, Kept, Persisted};
use weir_report::text;

use super::apply;
use crate::change_journal::{refused, the_journal};
use crate::cli::knobs::Apply;
use crate::failure::{Lacking, Outcome, Usage};
use crate::machine::{self, root_or};
use crate::output::print;

/// The longest file that is read: weir writes far shorter ones.
const LONGEST_BYTES: u64 = 1 << 20;

/// Shows the file, or writes it.
pub fn persist(args: &Apply, keeper: Keeper) -> anyhow::Result<Outcome> {
    let host = machine::host();
    let allow = apply::accepts(args)?;
    let plan = knob::plan(&host, &args.settings, allow).map_err(|refusals| refused(&refusals))?;
    for note in plan.notes.iter().filter(|note| !note.ends_with(" already")) {
        say!("note: {note}");
    }
    let (earlier, profile) = ours(keeper, args.root.as_deref())?;
    let (changes, _) = knob::entries(&the_journal());
    let before = |setting: &Setting| knob::before(&host, &changes, &setting.knob);
    let wanted = args.settings.iter().map(|setting| Kept {
        setting: setting.clone(),
        before: before(setting).filter(|value| *value != setting.value),
    });
    let kept = persist::merged(earlier.unwrap_or_default(), wanted.collect());
    let mut persisted = keeper.persist(&kept, profile.as_deref());
    let machine = args.root.as_deref().map_or_else(machine::host, Host::at);
    let overruled = persist::overruled(keeper, &persisted, &kept, knob::configuration(&machine));
    persisted.notes.splice(0..0, overruled);
    if persisted.left_out.len() == kept.len() {
        let why: Vec<String> =
            persisted.left_out.iter().map(|left| format!("{}: {}", left.setting, left.why)).collect();
        let what = format!("{keeper} holds none of this: {}", why.join("; "));
        return Err(Usage { what, hint: None }.into());
    }
    if args.write {
        write(&persisted, keeper, args.root.as_deref())?;
    }
    let mut said = text::knobs::persisted(&persisted, args.write);
    said.push_str(&match args.write {
        true => format!(
            "it acts from the next boot on; now: `weir knobs apply` without --persist\n\
             undo: weir knobs rollback --persist {keeper}\n"
        ),
        false => "nothing was written; --write does\n".to_string(),
    });
    print(&said)?;
    Ok(Outcome::Done)
}

/// Takes the file away.
pub fn remove(keeper: Keeper, root: Option<&Path>) -> anyhow::Result<Outcome> {
    let (Some(kept), profile) = ours(keeper, root)? else {
        print(&format!("there is no {}: nothing to remove\n", under(root, keeper.path()).display()))?;
        return Ok(Outcome::Done);
    };
    needs_root(root)?;
    let links = keeper.link().into_iter().map(|(link, _)| link);
    for path in links.chain([keeper.path().to_string()]) {
        match place(root, &path).and_then(|(folder, name)| folder.remove_file(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", under(root, &path).display()));
            }
            _ => {}
        }
    }
    if keeper == Keeper::Tuned
        && let Some(folder) = Path::new(keeper.path()).parent().and_then(Path::to_str)
    {
        // The profile's folder, if nothing else is in it.
        let _ = place(root, folder).and_then(|(above, name)| above.remove_dir(name));
    }
    let then = keeper.persist(&kept, profile.as_deref()).then_undo;
    print(&text::knobs::removed(keeper, &then))?;
    Ok(Outcome::Done)
}

/// The text of a keeper's file; `None` where there is none.
pub fn text_of(keeper: Keeper, root: Option<&Path>) -> anyhow::Result<Option<String>> {
    match place(root, keeper.path()).and_then(|(folder, name)| folder.read(name, LONGEST_BYTES)) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(error).with_context(|| format!("cannot read {}", under(root, keeper.path()).display()))
        }
    }
}

/// What weir keeps there already, and TuneD's profile beneath it. A file that is not weir's is left alone, and so is one
/// that somebody edited.
fn ours(keeper: Keeper, root: Option<&Path>) -> anyhow::Result<(Option<Vec<Kept>>, Option<String>)> {
    let text = text_of(keeper, root)?;
    let profile = persist::base(active_profile(root), text.as_deref());
    let path = || under(root, keeper.path()).display().to_string();
    let (what, hint) = match text.map(|text| keeper.found(&text)) {
        None => return Ok((None, profile)),
        Some(Found::Kept(kept)) => return Ok((Some(kept), profile)),
        Some(Found::Foreign) => {
            (format!("{} is there already and not weir's", path()), "move it away, or choose another keeper")
        }
        Some(Found::Edited(line)) => (
            format!("{} was edited after weir wrote it, at the line `{line}`", path()),
            "move it away: what weir kept in it stands in its lines that begin with `# weir:`",
        ),
    };
    Err(Lacking { what, hint: Some(hint.to_string()) }.into())
}

fn active_profile(root: Option<&Path>) -> Option<String> {
    let read =
        place(root, "/etc/tuned/active_profile").and_then(|(folder, name)| folder.read(name, LONGEST_BYTES));
    String::from_utf8(read.ok()?).ok()
}

/// Writes the file beside its place and renames it, then its link.
fn write(persisted: &Persisted, keeper: Keeper, root: Option<&Path>) -> anyhow::Result<()> {
    needs_root(root)?;
    let path = Path::new(&persisted.path);
    let top = Root::open(root).with_context(|| format!("cannot open {}", under(root, "/").display()))?;
    if keeper == Keeper::Tuned && top.folder(Path::new("/etc/tuned")).is_err() {
        let what = format!("there is no {}: TuneD is not installed", under(root, "/etc/tuned").display());
        return Err(
            Lacking { what, hint: Some("sysctl.d, udev and systemd work without it".to_string()) }.into()
        );
    }
    let written = folder_for(&top, path).and_then(|folder| {
        let name = path.file_name().unwrap_or_default();
        folder.replace(name, 0o644, persisted.text.as_bytes())
    });
    written.with_context(|| format!("cannot write {}", top.under(path).display()))?;
    let Some((link, to)) = &persisted.link else { return Ok(()) };
    let link = Path::new(link);
    folder_for(&top, link)
        .and_then(|folder| match folder.make_link(link.file_name().unwrap_or_default(), to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        })
        .with_context(|| format!("cannot make {}", top.under(link).display()))
}

/// The folder that a path of the machine lies in, made where it is missing.
fn folder_for(top: &Root, path: &Path) -> io::Result<Dir> {
    top.folder_or_make(path.parent().unwrap_or(Path::new("/")), &mut |_| {})
}

/// The folder that a path of the machine lies in, and its name there. An image's links lead nowhere but into it.
fn place<'a>(root: Option<&Path>, path: &'a str) -> io::Result<(Dir, &'a OsStr)> {
    let path = Path::new(path);
    let folder = Root::open(root)?.folder(path.parent().unwrap_or(Path::new("/")))?;
    Ok((folder, path.file_name().unwrap_or_default()))
}

/// Files of the machine itself take root; those of another root, whoever may write there.
fn needs_root(root: Option<&Path>) -> anyhow::Result<()> {
    if root.is_some() { Ok(()) } else { root_or("writing there", "to look at the file, leave out --write") }
}

/// A path of the machine, under a folder taken for its root.
fn under(root: Option<&Path>, path: &str) -> PathBuf {
    root.map_or_else(|| PathBuf::from(path), |root| root.join(path.trim_start_matches('/')))
}
