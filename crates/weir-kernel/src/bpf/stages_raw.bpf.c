// SPDX-License-Identifier: GPL-2.0
/* stages.bpf.c for kernels that refuse BTF tracepoints. */
#define RAW
#include "stages.bpf.c"
