// SPDX-License-Identifier: GPL-2.0
/* probe.bpf.c for kernels that refuse BTF tracepoints. */
#define RAW
#include "probe.bpf.c"
