// SPDX-License-Identifier: GPL-2.0
/* syncs.bpf.c for kernels that refuse BTF tracepoints. */
#define RAW
#include "syncs.bpf.c"
