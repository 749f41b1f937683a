/* SPDX-License-Identifier: GPL-2.0 */
/* Buffered writers that are made to pause, and who dirtied which inode last. */
#ifndef WEIR_FSYNC_PAUSES_H
#define WEIR_FSYNC_PAUSES_H

#include "fsync_calls.h"

/* ---- buffered writers that are made to pause ---- */

static __always_inline void pauses(struct bdi_writeback___sync *wb, long pause)
{
	u64 both = bpf_get_current_pid_tgid();
	struct sync *s;

	if (pause <= 0)
		return;
	s = state_of((u32)both);
	if (!s || s->under_way)
		return;
	s->tid = (u32)both;
	if (!s->stall_ns) {
		__sync_fetch_and_add(&stalling, 1);
		watch(s->tid, 1);
	}
	s->tgid = both >> 32;
	bpf_get_current_comm(s->comm, sizeof(s->comm));
	bpf_probe_read_kernel_str(s->bdi, sizeof(s->bdi), &wb->bdi->dev_name);
	s->stall_slept_ns = 0;
	s->stall_ns = bpf_ktime_get_ns();
}

/* Until 6.17: thresholds one by one; the pause, in jiffies, is the 11th argument. */
SEC("tp_btf/balance_dirty_pages")
int on_pause_12(u64 *args)
{
	pauses((void *)args[0], (long)args[10]);
	return 0;
}

/* Since then they come in one structure, and the pause is the 7th. */
SEC("tp_btf/balance_dirty_pages")
int on_pause_8(u64 *args)
{
	pauses((void *)args[0], (long)args[6]);
	return 0;
}

/* ---- who dirtied which inode last ---- */

static __always_inline void dirtied(struct address_space___sync *mapping)
{
	struct inode___sync *host = mapping ? mapping->host : 0;
	struct inode_key key = {};
	struct last_dirty *last;
	struct dirtier who = {};
	u32 zero = 0, tgid;
	u64 rest;

	if (!host)
		return;
	last = bpf_map_lookup_elem(&last_dirties, &zero);
	if (!last)
		return;
	tgid = bpf_get_current_pid_tgid() >> 32;
	key.inode = host->i_ino;
	key.file_system = host->i_sb->s_dev;
	rest = (u64)key.file_system << 32 | tgid;
	if (last->inode == key.inode && last->file_system_and_tgid == rest)
		return;
	last->inode = key.inode;
	last->file_system_and_tgid = rest;
	who.tgid = tgid;
	bpf_get_current_comm(who.comm, sizeof(who.comm));
	bpf_map_update_elem(&dirtiers, &key, &who, BPF_ANY);
}

SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(on_dirty_folio, void *folio, struct address_space___sync *mapping)
{
	dirtied(mapping);
	return 0;
}

/* Until 5.17 it was a page; the name alone differs. */
SEC("tp_btf/writeback_dirty_page")
int BPF_PROG(on_dirty_page, void *page, struct address_space___sync *mapping)
{
	dirtied(mapping);
	return 0;
}

#endif
