//! What all sets of programs share when they are loaded: silence, and refusals on purpose, so that tests see what follows
//! where a kernel does not take a program.

use libbpf_rs::{OpenObject, ProgramType};

/// Names programs that the kernel is to refuse: `OBJECT` or `OBJECT:PROGRAM`, with commas between; `all` is every one.
/// The objects are the files under `src/bpf`: stages, pieces (and both with `_raw`), record, fsync, syncs, probe, function.
const REFUSED: &str = "WEIR_REFUSE_PROGRAMS";
/// Has libbpf say on stderr what it does and what the kernel's verifier said: a program that is refused is mostly one of
/// several ways, so this is for those who look for the reason.
const TALKS: &str = "WEIR_BPF_LOG";

/// Does it without libbpf's words on stderr.
pub fn quietly<T>(act: impl FnOnce() -> T) -> T {
    if std::env::var_os(TALKS).is_some() {
        return act();
    }
    let before = libbpf_rs::set_print(None);
    let done = act();
    libbpf_rs::set_print(before);
    done
}

/// Makes those programs of an object that are named something that the kernel takes for invalid when it loads them.
pub fn refuse_as_asked(object: &str, open: &mut OpenObject) {
    let Ok(names) = std::env::var(REFUSED) else { return };
    for mut program in open.progs_mut() {
        let is_named = program.name().to_str().is_some_and(|program| is_named(&names, object, program));
        if is_named {
            // No program of weir's makes sense of a packet.
            program.set_prog_type(ProgramType::SocketFilter);
        }
    }
}

fn is_named(names: &str, object: &str, program: &str) -> bool {
    names.split(',').any(|name| match name.split_once(':') {
        Some((of, one)) => of == object && one == program,
        None => name == object || name == "all",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_by_object_or_one_by_one() {
        for (names, is) in [
            ("", false),
            ("fsync", true),
            ("live,fsync:on_queue", true),
            ("fsync:on_switch", false),
            ("all", true),
        ] {
            assert_eq!(is_named(names, "fsync", "on_queue"), is, "{names}");
        }
    }
}
