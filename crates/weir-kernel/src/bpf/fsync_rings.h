/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Syncs through io_uring: no system call brackets them, so they are counted and not followed. The kernel hands every one to
 * a thread of its own (REQ_F_FORCE_ASYNC), and this hook is there, where few other operations come.
 */
#ifndef WEIR_FSYNC_RINGS_H
#define WEIR_FSYNC_RINGS_H

#include "fsync_calls.h"

/* The uapi's IORING_OP_FSYNC and IORING_OP_SYNC_FILE_RANGE. */
enum { RING_FSYNC = 3, RING_SYNC_FILE_RANGE = 8 };

static __always_inline int ring_work(struct io_kiocb___sync *operation)
{
	u8 opcode = BPF_CORE_READ(operation, opcode);

	if (opcode != RING_FSYNC && opcode != RING_SYNC_FILE_RANGE)
		return 0;
	if (only_tgid && bpf_get_current_pid_tgid() >> 32 != only_tgid)
		return 0;
	if (is_wanted())
		LOSE(LOST_RING);
	return 0;
}

/* Since 6.0: the operation comes first. */
SEC("tp_btf/io_uring_queue_async_work")
int on_ring_work_2(u64 *args)
{
	return ring_work((void *)args[0]);
}

/* Until 5.17 third, of five. */
SEC("tp_btf/io_uring_queue_async_work")
int on_ring_work_5(u64 *args)
{
	return ring_work((void *)args[2]);
}

/* Between them second, of seven. */
SEC("tp_btf/io_uring_queue_async_work")
int on_ring_work_7(u64 *args)
{
	return ring_work((void *)args[1]);
}

#endif
