//! The release binary carries line tables, so that a backtrace from the field names its lines. Compressed, they take a
//! third of the room; the standard library's backtraces and debuggers read them as they are.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rustc-link-arg-bins=-Wl,--compress-debug-sections=zlib");
    }
}
