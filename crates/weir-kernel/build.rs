//! Compiles every `src/bpf/NAME.bpf.c` into an object, `$OUT_DIR/NAME.bpf.o`, and a skeleton, `$OUT_DIR/NAME.skel.rs`.
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use libbpf_cargo::SkeletonBuilder;

const SOURCES: &str = "src/bpf";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    println!("cargo::rerun-if-changed={SOURCES}");
    for program in programs(Path::new(SOURCES))? {
        let name = program.file_name().and_then(|name| name.to_str()).ok_or("a file name that is text")?;
        let skeleton = out.join(name.replace(".bpf.c", ".skel.rs"));
        SkeletonBuilder::new()
            .source(&program)
            .obj(out.join(name.replace(".bpf.c", ".bpf.o")))
            // v3: 32-bit registers and jumps, which kernels know since 5.1.
            .clang_args(["-I", SOURCES, "-mcpu=v3", "-Wall", "-Werror"])
            .build_and_generate(&skeleton)?;
    }
    Ok(())
}

fn programs(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".bpf.c") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
