//! What was installed: each file with its text, so that what others have changed since is known and left alone.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use weir_fs::Dir;

use crate::failure::Lacking;

/// Where a service's list of installed files lies.
#[derive(Debug, Clone, Copy)]
pub struct List {
    /// Its path.
    pub path: &'static str,
    /// Value of [`Manifest::schema`].
    pub schema: &'static str,
    /// The command that writes it.
    pub command: &'static str,
}

/// The longest file that is read: weir writes far shorter ones.
const LONGEST_BYTES: u64 = 16 << 20;

/// A file to install, or installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Its path on the machine.
    pub path: PathBuf,
    /// All of it.
    pub text: String,
}

impl Piece {
    /// As it is shown where nothing is written.
    pub fn shown(&self) -> String {
        format!("# {}\n{}\n", self.path.display(), self.text)
    }
}

/// Everything that was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    schema: String,
    /// In the order of writing. While a file is being replaced, it is here with its old text and with its new one.
    pieces: Vec<Piece>,
    /// Folders that were made for them, outermost first.
    folders: Vec<PathBuf>,
    /// Files of a package that were there before, and come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replaced: Vec<Piece>,
}

impl Manifest {
    /// Texts by which a file is known: weir's, a newer one that is to replace it, and a package's that comes back.
    fn texts_of<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a str> {
        let pieces = self.pieces.iter().chain(&self.replaced).filter(move |piece| piece.path == path);
        pieces.map(|piece| piece.text.as_str())
    }
}

/// What an uninstall did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files and folders that are gone.
    pub gone: Vec<PathBuf>,
    /// Files that somebody has changed since, and which stay.
    pub left: Vec<PathBuf>,
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.gone.iter().try_for_each(|path| writeln!(f, "removed {}", path.display()))?;
        let changed = "it was changed since weir wrote it";
        self.left.iter().try_for_each(|path| writeln!(f, "left {}: {changed}", path.display()))
    }
}

/// The machine itself, or a folder such as that of an image.
#[derive(Debug)]
pub struct Root {
    root: weir_fs::Root,
    list: List,
}

impl Root {
    /// Opens it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(folder: Option<&Path>, list: List) -> anyhow::Result<Root> {
        let named = folder.unwrap_or(Path::new("/")).display();
        let root = weir_fs::Root::open(folder).with_context(|| format!("cannot open {named}"))?;
        Ok(Root { root, list })
    }

    /// Where a path of the machine lies.
    pub fn under(&self, path: &Path) -> PathBuf {
        self.root.under(path)
    }

    /// What is installed; `None` where nothing is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn installed(&self) -> anyhow::Result<Option<Manifest>> {
        let path = self.under(Path::new(self.list.path));
        // What it says is removed.
        let read = self
            .folder_of(Path::new(self.list.path))
            .and_then(|folder| folder.read_trusted(name_of(self.list.path), LONGEST_BYTES));
        let Some(text) = text_of(&path, read)? else { return Ok(None) };
        let manifest: Manifest =
            weir_core::json::parse(&text).map_err(|error| self.unreadable(&path, &error.to_string()))?;
        let (is, reads) = (&manifest.schema, self.list.schema);
        if is != reads {
            return Err(self.unreadable(&path, &format!("its schema is {is}, this weir reads {reads}")));
        }
        Ok(Some(manifest))
    }

    /// Writes the pieces, in place of what an earlier install wrote, and of what a package brought and nobody has edited.
    ///
    /// # Errors
    /// Before anything is written when a file is there that is not weir's or was changed since; later when a file
    /// cannot be written: what was written until then is in the manifest.
    pub fn install(&self, pieces: &[Piece], brought: &[Piece]) -> anyhow::Result<()> {
        let earlier = self.installed()?;
        let mut replaced = Vec::new();
        for piece in pieces {
            let there = self.read(&piece.path)?;
            let was: Vec<&str> = earlier.iter().flat_map(|manifest| manifest.texts_of(&piece.path)).collect();
            let ours = |text: &str| text == piece.text || was.contains(&text);
            let is_there = |known: &&Piece| known.path == piece.path && there.as_deref() == Some(&known.text);
            if was.is_empty()
                && let Some(known) = brought.iter().find(is_there)
            {
                replaced.push(known.clone());
                continue;
            }
            if there.as_deref().is_some_and(|text| !ours(text)) {
                return Err(in_the_way(&self.under(&piece.path), !was.is_empty()));
            }
        }
        let mut manifest = earlier.unwrap_or(Manifest {
            schema: self.list.schema.into(),
            pieces: Vec::new(),
            folders: Vec::new(),
            replaced: Vec::new(),
        });
        manifest.replaced.extend(replaced);
        for piece in pieces {
            self.make_folder(&piece.path, &mut manifest)?;
            // Noted before it is written: whatever ends this, the file is known by what it is and by what it was to be.
            if !manifest.pieces.contains(piece) {
                manifest.pieces.push(piece.clone());
            }
            self.save(&manifest)?;
            self.write(&piece.path, &piece.text, 0o644)?;
        }
        let is_old =
            |known: &Piece| pieces.iter().any(|piece| piece.path == known.path && piece.text != known.text);
        manifest.pieces.retain(|known| !is_old(known));
        self.save(&manifest)
    }

    fn make_folder(&self, file: &Path, manifest: &mut Manifest) -> anyhow::Result<()> {
        let folder = folder_of(file);
        let mut note = |made: &Path| manifest.folders.push(made.to_path_buf());
        let made = self.root.folder_or_make(folder, &mut note);
        made.map(drop).with_context(|| format!("cannot make {}", self.under(folder).display()))
    }

    fn save(&self, manifest: &Manifest) -> anyhow::Result<()> {
        let path = Path::new(self.list.path);
        let made = self.root.folder_or_make(folder_of(path), &mut |_| {});
        made.with_context(|| format!("cannot make {}", self.under(folder_of(path)).display()))?;
        self.write(path, &(serde_json::to_string_pretty(manifest)? + "\n"), 0o600)
    }

    /// Removes what is as it was installed, and the folders that were made for it and are empty now.
    ///
    /// # Errors
    /// When a file cannot be removed; the manifest stays then.
    pub fn uninstall(&self, manifest: &Manifest) -> anyhow::Result<Removed> {
        let mut removed = Removed::default();
        for (at, piece) in manifest.pieces.iter().enumerate() {
            let is_of_path = |known: &Piece| known.path == piece.path;
            if manifest.pieces[..at].iter().any(is_of_path) {
                continue;
            }
            let path = self.under(&piece.path);
            // A package's text is still there where the install was cut short.
            let is_ours = |text: &str| manifest.texts_of(&piece.path).any(|known| known == text);
            match self.read(&piece.path)? {
                None => {}
                Some(text) if is_ours(&text) => {
                    match manifest.replaced.iter().find(|of_package| is_of_path(of_package)) {
                        Some(of_package) => self.write(&piece.path, &of_package.text, 0o644)?,
                        None => self.remove(&piece.path)?,
                    }
                    removed.gone.push(path);
                }
                Some(_) => removed.left.push(path),
            }
        }
        // The guard and the recorder share folders of weir's own, and whichever goes last removes them.
        let own = manifest.pieces.iter().map(|piece| folder_of(&piece.path)).filter(|f| name_of(f) == "weir");
        let made = manifest.folders.iter().rev().map(PathBuf::as_path);
        for folder in made.chain(own) {
            // One that others use is not empty, and stays.
            if self.folder_of(folder).is_ok_and(|above| above.remove_dir(name_of(folder)).is_ok()) {
                removed.gone.push(self.under(folder));
            }
        }
        self.remove(Path::new(self.list.path))?;
        Ok(removed)
    }

    fn unreadable(&self, path: &Path, why: &str) -> anyhow::Error {
        let what = format!("{} cannot be used: {why}", path.display());
        let command = self.list.command;
        let hint = format!("it lists what `{command}` wrote; remove those files by hand, then it");
        Lacking { what, hint: Some(hint) }.into()
    }

    /// The folder that a path of the machine lies in.
    fn folder_of(&self, path: &Path) -> io::Result<Dir> {
        self.root.folder(folder_of(path))
    }

    /// The text of a file; `None` where there is none.
    fn read(&self, path: &Path) -> anyhow::Result<Option<String>> {
        let read = self.folder_of(path).and_then(|folder| folder.read(name_of(path), LONGEST_BYTES));
        text_of(&self.under(path), read)
    }

    /// Beside its place and renamed: nobody sees half a file.
    fn write(&self, path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
        let written = self.folder_of(path).and_then(|folder| {
            let mut fresh = folder.beside(name_of(path), 0o600)?;
            fresh.write_all(text.as_bytes())?;
            fresh.chmod(mode)?;
            fresh.commit()
        });
        written.with_context(|| format!("cannot write {}", self.under(path).display()))
    }

    fn remove(&self, path: &Path) -> anyhow::Result<()> {
        let removed = self.folder_of(path).and_then(|folder| folder.remove_file(name_of(path)));
        removed.with_context(|| format!("cannot remove {}", self.under(path).display()))
    }
}

fn text_of(path: &Path, read: io::Result<Vec<u8>>) -> anyhow::Result<Option<String>> {
    match read {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn name_of(path: &(impl AsRef<Path> + ?Sized)) -> &OsStr {
    path.as_ref().file_name().unwrap_or_default()
}

fn in_the_way(path: &Path, was_ours: bool) -> anyhow::Error {
    let why = if was_ours { "was changed since weir wrote it" } else { "is there already and not weir's" };
    let what = format!("{} {why}", path.display());
    Lacking { what, hint: Some("move it away, or edit it yourself; nothing was written".to_string()) }.into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LIST: List = List {
        path: "/var/lib/weir/guard-installed.json",
        schema: "weir.guard-installed/1",
        command: "weir guard install",
    };

    fn piece(path: &str, text: &str) -> Piece {
        Piece { path: PathBuf::from(path), text: text.to_string() }
    }

    /// A folder with something in it that is not weir's.
    fn image() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("etc/systemd/system")).unwrap();
        fs::write(dir.path().join("etc/systemd/system/other.service"), "theirs").unwrap();
        let root = Root::open(Some(dir.path()), LIST).unwrap();
        (dir, root)
    }

    /// Every file and folder below, with the files' texts.
    fn all(folder: &Path) -> Vec<(PathBuf, Option<String>)> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                found.push((path.clone(), fs::read_to_string(&path).ok()));
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }

    const UNIT: &str = "/etc/systemd/system/weir-guard.service";
    const CONFIG: &str = "/etc/weir/guard.toml";
    const BOARD: &str = "/usr/local/share/weir/grafana-guard.json";

    fn pieces() -> [Piece; 3] {
        [piece(UNIT, "unit"), piece(CONFIG, "shadow = true\n"), piece(BOARD, "{}")]
    }

    #[test]
    fn there_and_back_leaves_nothing() {
        let (dir, root) = image();
        fs::create_dir_all(dir.path().join("var/lib/weir")).unwrap();
        let before = all(dir.path());
        root.install(&pieces(), &[]).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("etc/weir/guard.toml")).unwrap(), "shadow = true\n");
        // Again, with another text: what weir wrote it may replace.
        root.install(&[piece(UNIT, "newer unit")], &[]).unwrap();
        let removed = root.uninstall(&root.installed().unwrap().unwrap()).unwrap();
        assert_eq!(removed.left, Vec::<PathBuf>::new());
        assert_eq!(all(dir.path()), before);
        assert_eq!(root.installed().unwrap(), None);
    }

    /// Between the list and the file something ended it: the list has the new text, and the file the old one.
    #[test]
    fn an_install_that_was_cut_short_can_be_repeated_and_undone() {
        let newer = [piece(UNIT, "newer unit")];
        let cut_short = || {
            let (dir, root) = image();
            fs::create_dir_all(dir.path().join("var/lib/weir")).unwrap();
            let before = all(dir.path());
            root.install(&pieces(), &[]).unwrap();
            let mut manifest = root.installed().unwrap().unwrap();
            manifest.pieces.extend(newer.clone());
            root.save(&manifest).unwrap();
            (dir, root, before)
        };
        let (dir, root, before) = cut_short();
        assert_eq!(root.uninstall(&root.installed().unwrap().unwrap()).unwrap().left, Vec::<PathBuf>::new());
        assert_eq!(all(dir.path()), before);
        let (dir, root, _) = cut_short();
        root.install(&newer, &[]).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join(&UNIT[1..])).unwrap(), "newer unit");
        let listed = root.installed().unwrap().unwrap().pieces;
        assert_eq!(listed.iter().filter(|piece| piece.path == Path::new(UNIT)).count(), 1);
        // The list of an install that fails at a later file has both.
        std::os::unix::fs::symlink("nowhere", dir.path().join("etc/dangling")).unwrap();
        root.install(&[piece(UNIT, "third"), piece("/etc/dangling/x", "")], &[]).unwrap_err();
        let listed = root.installed().unwrap().unwrap().pieces;
        assert_eq!(listed.iter().filter(|piece| piece.path == Path::new(UNIT)).count(), 2);
    }

    /// An image is somebody else's: its links, and the manifest that it came with, lead nowhere but into it.
    #[test]
    fn nothing_in_an_image_leads_out_of_it() {
        let (elsewhere, mine) = (tempfile::tempdir().unwrap(), "mine");
        let precious = elsewhere.path().join("precious");
        fs::write(&precious, mine).unwrap();
        for to in [
            elsewhere.path().to_path_buf(),
            Path::new("../../../../../..").join(&elsewhere.path().as_os_str().to_str().unwrap()[1..]),
        ] {
            let (dir, root) = image();
            std::os::unix::fs::symlink(&to, dir.path().join("etc/weir")).unwrap();
            // Where it leads in the image there is nothing, or what the install makes there.
            let _ = root.install(&pieces(), &[]);
            assert_eq!(all(elsewhere.path()).len(), 1, "{}", to.display());
        }
        let (dir, root) = image();
        let climbing = Path::new("/../../../../../../../..").join(precious.strip_prefix("/").unwrap());
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("etc/link")).unwrap();
        let listed =
            [climbing, PathBuf::from("/etc/link/precious")].map(|path| Piece { path, text: mine.into() });
        let manifest = Manifest {
            schema: LIST.schema.into(),
            pieces: listed.into(),
            folders: vec![elsewhere.path().into()],
            replaced: Vec::new(),
        };
        fs::create_dir_all(dir.path().join("var/lib/weir")).unwrap();
        fs::write(dir.path().join(&LIST.path[1..]), serde_json::to_vec(&manifest).unwrap()).unwrap();
        root.uninstall(&root.installed().unwrap().unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), mine);
    }

    #[test]
    fn what_was_changed_since_stays_and_is_named() {
        let (dir, root) = image();
        root.install(&pieces(), &[]).unwrap();
        let config = dir.path().join("etc/weir/guard.toml");
        fs::write(&config, "shadow = false\n").unwrap();
        let error = root.install(&pieces(), &[]).unwrap_err().to_string();
        assert!(error.contains("guard.toml was changed since"), "{error}");
        let removed = root.uninstall(&root.installed().unwrap().unwrap()).unwrap();
        assert_eq!(removed.left, std::slice::from_ref(&config));
        assert_eq!(fs::read_to_string(&config).unwrap(), "shadow = false\n");
        assert!(!root.under(Path::new(UNIT)).exists() && !dir.path().join("usr").exists());
    }

    #[test]
    fn what_others_may_have_written_is_no_manifest() {
        use std::os::unix::fs::PermissionsExt;
        let (dir, root) = image();
        root.install(&pieces(), &[]).unwrap();
        let manifest = dir.path().join("var/lib/weir/guard-installed.json");
        fs::set_permissions(&manifest, fs::Permissions::from_mode(0o666)).unwrap();
        let before = all(dir.path());
        for refused in [root.installed().map(drop), root.install(&pieces(), &[])] {
            let why = format!("{:#}", refused.unwrap_err());
            assert!(
                why.contains("guard-installed.json") && why.contains("other accounts may write"),
                "{why}"
            );
        }
        assert_eq!(all(dir.path()), before);
    }

    #[test]
    fn a_packages_configuration_comes_back_and_an_edited_one_is_left_alone() {
        let (dir, root) = image();
        let brought = [piece(CONFIG, "# of the package\n")];
        let config = dir.path().join("etc/weir/guard.toml");
        fs::create_dir_all(dir.path().join("etc/weir")).unwrap();
        fs::create_dir_all(dir.path().join("var/lib/weir")).unwrap();
        fs::write(&config, "# edited\n").unwrap();
        assert!(root.install(&pieces(), &brought).is_err());
        fs::write(&config, "# of the package\n").unwrap();
        let before = all(dir.path());
        for _ in 0..2 {
            root.install(&pieces(), &brought).unwrap();
            assert_eq!(fs::read_to_string(&config).unwrap(), "shadow = true\n");
        }
        let removed = root.uninstall(&root.installed().unwrap().unwrap()).unwrap();
        assert_eq!(removed.left, Vec::<PathBuf>::new());
        assert_eq!(all(dir.path()), before);
    }

    #[test]
    fn nothing_is_written_over_what_is_not_weirs() {
        let (dir, root) = image();
        fs::write(dir.path().join("etc/systemd/system/weir-guard.service"), "theirs").unwrap();
        let before = all(dir.path());
        let error = root.install(&pieces(), &[]).unwrap_err().to_string();
        assert!(error.contains("not weir's"), "{error}");
        assert_eq!(all(dir.path()), before);
    }
}
