//! Whether this kernel and this user can run weir's BPF programs.

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};

mod skeleton {
    #![allow(
        missing_docs,
        clippy::all,
        clippy::undocumented_unsafe_blocks,
        clippy::unwrap_used,
        reason = "generated"
    )]
    include!(concat!(env!("OUT_DIR"), "/probe.skel.rs"));
}

/// Loads and attaches the smallest program there is, and takes it away again.
///
/// # Errors
/// What the kernel or libbpf said.
pub fn bpf_works() -> Result<(), libbpf_rs::Error> {
    let mut object = MaybeUninit::uninit();
    let mut loaded = skeleton::ProbeSkelBuilder::default().open(&mut object)?.load()?;
    loaded.attach()
}

#[cfg(test)]
mod tests {
    #[test]
    fn loads() {
        println!("{:?}", super::bpf_works());
    }
}
