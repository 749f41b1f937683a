// SPDX-License-Identifier: GPL-2.0
/* The smallest program at a function, to learn whether this kernel lets functions be traced; user space says which. */
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

SEC("fentry")
int on_function(u64 *args)
{
	return 0;
}
