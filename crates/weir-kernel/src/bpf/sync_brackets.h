/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two ways to be there when a call begins and when it returns; user space loads one of them.
 *
 * By the calls themselves (fentry, fexit): the functions that serve them call the programs, and no other call of the
 * machine is touched. By all calls (sys_enter, sys_exit): they run at every call of the machine, so they leave at once
 * where its number is none that counts. The tracepoints of single calls, syscalls:sys_enter_fsync, are no third way:
 * the kernel itself hangs them on sys_enter, and every call pays for that.
 *
 * Who includes this defines begins(call, registers) and ends().
 */
#ifndef WEIR_SYNC_BRACKETS_H
#define WEIR_SYNC_BRACKETS_H

#include "sync_calls.h"

/* The function's name is the machine's: user space says it. */
#define BRACKET(name, call) \
	SEC("?fentry") \
	int enter_##name(u64 *args) \
	{ \
		return begins(call, (struct pt_regs___sync *)args[0]); \
	} \
	SEC("?fexit") \
	int exit_##name(u64 *args) \
	{ \
		return ends(); \
	}

#define BRACKETS_OF_CALLS \
	BRACKET(fsync, FSYNC) \
	BRACKET(fdatasync, FDATASYNC) \
	BRACKET(write, WRITE) \
	BRACKET(writev, WRITE) \
	BRACKET(pwrite64, WRITE) \
	BRACKET(pwritev, WRITE) \
	BRACKET(pwritev2, PWRITEV2) \
	BRACKET(msync, MSYNC)

/* Beside them, what is no commit of a file: a range without metadata and flush, and more than one file. */
#define BRACKETS_OF_EVERYTHING \
	BRACKET(sync_file_range, SYNC_FILE_RANGE) \
	BRACKET(syncfs, SYNCFS) \
	BRACKET(sync, SYNC)

#define BRACKETS_OF_ALL_CALLS \
	HOOK(sys_enter) \
	int BPF_PROG(on_enter, struct pt_regs___sync *regs, long number) \
	{ \
		u8 call; \
		if ((unsigned long)number >= CALLS) \
			return 0; \
		call = calls[number]; \
		return call ? begins(call, regs) : 0; \
	} \
	HOOK(sys_exit) \
	int BPF_PROG(on_exit, struct pt_regs___sync *regs, long result) \
	{ \
		unsigned long number = call_number(regs); \
		return number < CALLS && calls[number] ? ends() : 0; \
	}

/* Raw tracepoints serve where BTF's are refused; there is no fentry without those. */
#ifdef RAW
#define BRACKETS BRACKETS_OF_ALL_CALLS
#else
#define BRACKETS BRACKETS_OF_CALLS BRACKETS_OF_ALL_CALLS
#endif

#endif
