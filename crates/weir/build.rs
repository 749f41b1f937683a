//! Line tables of a release are packed: unpacked they are more than half of the binary. Backtraces unpack them.
//! Functions that came out the same, as generic code does for many types, are kept once where the linker can.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo:rustc-link-arg-bins=-Wl,--compress-debug-sections=zlib");
        // Rust links with lld there by itself; other linkers do not know the option.
        if std::env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu") {
            println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
        }
    }
}
