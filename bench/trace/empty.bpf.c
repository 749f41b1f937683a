// SPDX-License-Identifier: GPL-2.0
/* Programs that do nothing, at the hooks of `weir trace fsync`: what their being called costs, whatever they would do. */
#define EMPTY(name) \
	__attribute__((section("tp_btf/" #name), used)) int on_##name(void *context) \
	{ \
		return 0; \
	}

EMPTY(sys_enter)
EMPTY(sys_exit)
EMPTY(sched_switch)
EMPTY(sched_process_exit)
EMPTY(balance_dirty_pages)
EMPTY(writeback_dirty_folio)
EMPTY(block_bio_queue)
EMPTY(block_rq_complete)
EMPTY(io_uring_queue_async_work)

char LICENSE[] __attribute__((section("license"), used)) = "GPL";
