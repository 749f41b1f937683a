//! Files and folders in places that other accounts may write to.
//!
//! weir runs as root beside accounts that it does not trust. The owner of a folder can put a link in the place of any
//! name in it between two system calls. So a path is opened once, as a [`Dir`], and everything below it is reached from
//! that descriptor, without following links; owner and mode are asked of what was opened, never of its name.
//!
//! - [`Dir`]: open, make, rename, remove below a descriptor.
//! - [`Root`]: folders below one that is taken for `/`, such as an image.
//! - [`Private`]: a folder of weir's own in anybody's folder, and the proof that a folder is one.
//! - [`Fresh`] and [`Output`]: files that appear under their name when they are whole.
//! - [`trusted`]: whether what a file or folder says may be believed.
//! - [`close_at_exec`]: descriptors that a program which is started does not get.

mod descriptors;
mod dir;
mod file;
mod output;
mod owner;
mod private;
mod remove;
mod replace;
mod resolve;
mod root;
mod stranger;

pub use descriptors::close_at_exec;
pub use dir::{Access, Dir, lock, reopen};
pub use file::{regular_file, trusted_file};
pub use output::Output;
pub use owner::{
    Distrust, lasting_chain, owned, owned_at, owned_chain, steady_folder, trusted, trusted_chain,
};
pub use private::{Abandoned, Private};
pub use replace::Fresh;
pub use root::Root;
pub use stranger::{Facts, facts_unasked, text_of_task};

/// A name part that nobody can guess: 128 random bits in hex.
///
/// # Errors
/// When the kernel gives no random bytes, which it always does after boot.
pub fn unguessable() -> std::io::Result<String> {
    Ok(format!("{:016x}{:016x}", random()?, random()?))
}

/// A number that nobody can guess.
///
/// # Errors
/// When the kernel gives no random bytes, which it always does after boot.
pub fn random() -> std::io::Result<u64> {
    let mut bytes = [0_u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The text of a file of the kernel's in which other accounts choose bytes, such as the names of mounts and processes: bytes that are
/// no UTF-8 are replaced, where an error would let one account keep the rest from being read.
///
/// # Errors
/// Those of open(2) and read(2).
pub fn read_lossily(path: impl AsRef<std::path::Path>) -> std::io::Result<String> {
    Ok(match String::from_utf8(std::fs::read(path)?) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}
