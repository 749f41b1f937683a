//! The forms of tracepoints, as the kernel's own types tell them. Kernels differ, and distributions take changes back and
//! ahead, so that a release says nothing.

use libbpf_rs::btf::types::{FuncProto, Ptr, Struct, Typedef};
use libbpf_rs::btf::{Btf, BtfType, ReferencesType};

/// How many arguments a tracepoint has; `None` if the kernel has none of that name.
pub fn arguments(btf: &Btf<'_>, tracepoint: &str) -> Option<usize> {
    // The first is the program's own context.
    Some(prototype(btf, tracepoint)?.len().saturating_sub(1))
}

/// Which argument of a tracepoint is a pointer to this structure, counted from 0.
pub fn place_of(btf: &Btf<'_>, tracepoint: &str, structure: &str) -> Option<u32> {
    let prototype = prototype(btf, tracepoint)?;
    let is_it = |ty: BtfType<'_>| {
        let Ok(pointer) = Ptr::try_from(ty) else { return false };
        let pointed = pointer.referenced_type().skip_mods_and_typedefs();
        Struct::try_from(pointed).is_ok_and(|found| found.name().is_some_and(|name| name == structure))
    };
    let mut types = prototype.iter().skip(1).map(|argument| btf.type_by_id::<BtfType<'_>>(argument.ty));
    let place = types.position(|ty| ty.is_some_and(is_it))?;
    u32::try_from(place).ok()
}

fn prototype<'b>(btf: &'b Btf<'_>, tracepoint: &str) -> Option<FuncProto<'b>> {
    let named: Typedef<'_> = btf.type_by_name(&format!("btf_trace_{tracepoint}"))?;
    let pointer: BtfType<'_> = btf.type_by_id(named.referenced_type().type_id())?;
    let prototype = Ptr::try_from(pointer).ok()?.referenced_type().type_id();
    btf.type_by_id(prototype)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_running_kernel_s_forms_are_read() {
        let Ok(btf) = Btf::from_vmlinux() else {
            _ = writeln!(std::io::stderr(), "not run: this kernel has no /sys/kernel/btf/vmlinux");
            return;
        };
        // A queue has stood before the bio in every kernel, and before that there is the program's context.
        assert_eq!(
            (arguments(&btf, "block_bio_complete"), place_of(&btf, "block_bio_complete", "bio")),
            (Some(2), Some(1))
        );
        assert_eq!(place_of(&btf, "block_rq_complete", "request"), Some(0));
        assert_eq!(place_of(&btf, "block_rq_complete", "bio"), None);
        // A queue came first in early kernels of 5.10.
        let last = |tracepoint| arguments(&btf, tracepoint).map(|count| count as u32 - 1);
        for tracepoint in ["block_rq_insert", "block_rq_issue"] {
            assert_eq!(place_of(&btf, tracepoint, "request"), last(tracepoint), "{tracepoint}");
        }
        assert_eq!(arguments(&btf, "no_such_tracepoint"), None);
        assert_eq!(place_of(&btf, "no_such_tracepoint", "bio"), None);
    }
}
