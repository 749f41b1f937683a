// SPDX-License-Identifier: GPL-2.0
/* pieces.bpf.c for kernels that refuse BTF tracepoints. */
#define RAW
#include "pieces.bpf.c"
