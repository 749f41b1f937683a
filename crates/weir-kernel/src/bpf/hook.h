/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One source for two ways to attach. BTF tracepoints (tp_btf) may follow the kernel's pointers themselves, which is
 * cheap; where they are refused, NAME_raw.bpf.c compiles the same source with RAW for raw tracepoints, whose reads go
 * through a helper.
 */
#ifndef WEIR_HOOK_H
#define WEIR_HOOK_H

#include "kernel.h"

#ifdef RAW
#define HOOK(tracepoint) SEC("raw_tp/" #tracepoint)
#define READ(from, field) BPF_CORE_READ(from, field)
#else
#define HOOK(tracepoint) SEC("tp_btf/" #tracepoint)
#define READ(from, field) ((from)->field)
#endif

#endif
