/* SPDX-License-Identifier: GPL-2.0 */
/* Slow requests one by one, through a ring whose size the loader sets. live/slow.rs reads this layout. */
#ifndef WEIR_SLOW_H
#define WEIR_SLOW_H

#include "cells.h"

struct slow_request {
	u64 device;
	u64 sector;
	u64 queue_ns; /* Times that are unknown are 0. */
	u64 get_request_ns;
	u64 insert_ns;
	u64 merge_ns;
	u64 issue_ns;
	u64 complete_ns;
	u64 cgroup;
	u32 flags; /* As weir-core's Flags. */
	u32 bytes;
	s32 error;
	u32 pid;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} slow_requests SEC(".maps");

/* weir_blocktrace::Flags, which are blktrace's categories. */
static __always_inline u32 flags_of(u32 flags)
{
	u32 op = flags & OP_MASK;
	u32 said = op & 1 ? 1 << 1 : 1 << 0;

	if (op == OP_FLUSH)
		said = 1 << 2;
	if (flags & FLAG(__REQ_PREFLUSH))
		said |= 1 << 2;
	if (flags & FLAG(__REQ_SYNC))
		said |= 1 << 3;
	if (op >= OP_PASSTHROUGH)
		said |= 1 << 9;
	if (flags & FLAG(__REQ_RAHEAD))
		said |= 1 << 11;
	if (flags & FLAG(__REQ_META))
		said |= 1 << 12;
	if (op == OP_DISCARD || op == OP_SECURE_ERASE)
		said |= 1 << 13;
	if (flags & FLAG(__REQ_FUA))
		said |= 1 << 15;
	return said;
}

#endif
