// SPDX-License-Identifier: GPL-2.0
/* The smallest program that needs all weir's programs need: it shows whether the kernel takes them. */
#include "hook.h"

char LICENSE[] SEC("license") = "GPL";

u64 completions;

HOOK(block_rq_complete)
int BPF_PROG(on_complete, struct request *rq)
{
	if (READ(rq, io_start_time_ns))
		__sync_fetch_and_add(&completions, 1);
	return 0;
}
