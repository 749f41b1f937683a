/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where a queue completes more requests than can be looked at for little, one of 2^n is counted, as 2^n. Address and start of
 * a request decide which, so that its issue and its completion agree without a table. Errors, flush sequences, what takes
 * many times as long as usual, and what comes after a pause are all counted, each as one.
 */
#ifndef WEIR_SAMPLING_H
#define WEIR_SAMPLING_H

#include "cells.h"

#define SAMPLE_SHIFT_MAX 10
#define WINDOW_NS 100000000ULL
#define SECOND_NS 1000000000ULL
/* Unusual are requests that take so many times the mean of the last window. */
#define UNUSUAL 8

/* After so many of the kernel's ticks without one that was counted, the queue stood still, or is no longer fast. */
#define PAUSE_TICKS 4

/* What the requests of a queue were like in the last window. A place is that of the first queue that came, until it is idle for a second. */
#define QUEUES 1024
struct queue_rate {
	u64 queue;
	u64 mask; /* One of mask + 1 is counted. */
	u64 unusual_ns;
	u64 clock_ns; /* When a request was last counted: not much before now. */
	u64 since_ns;
	u64 ios;
	u64 took_ns;
	u64 ticks; /* As clock_ns. */
} queue_rates[QUEUES] __attribute__((aligned(64)));

/* From here to is_unusual(), this runs for every request of a fast queue, mostly for nothing else: each instruction counts. */
static __always_inline struct queue_rate *rate_of(struct request_queue *queue)
{
	u32 offset = (low_half(queue) * SPREAD >> 16) & (sizeof(queue_rates) - sizeof(queue_rates[0]));
	struct queue_rate *rate = (void *)queue_rates + offset;

	/* Else the address is worked out anew for each field. */
	asm volatile("" : "+r"(rate));
	return rate;
}

/* One of so many of this request's queue is counted, less one. Without a start nothing draws it. */
static __always_inline u32 mask_of(struct queue_rate *rate, struct request_queue *queue, u64 start_ns)
{
	return rate->queue == (u64)queue && start_ns ? rate->mask : 0;
}

/* Whether another request stands for it. */
static __always_inline bool is_left_out(struct request *rq, u64 start_ns, u32 mask)
{
	return ((u32)start_ns ^ low_half(rq)) * SPREAD >> 16 & mask;
}

/* Others alone decide, not the request's own draw: so what is drawn of the rest still stands for all of the rest. */
static __always_inline bool is_unusual(struct queue_rate *rate, u64 start_ns)
{
	return rate->clock_ns > start_ns + rate->unusual_ns || bpf_jiffies64() - rate->ticks > PAUSE_TICKS;
}

/* A request counted as `ios` took so long: once in a window that decides on the next. */
static __always_inline void keep_rate(struct request *rq, u64 now_ns, u64 took_ns, u32 ios)
{
	struct request_queue *queue = READ(rq, q);
	struct queue_rate *rate = rate_of(queue);
	u64 a_second;
	/* Another CPU may have begun the window later than this one looked at the clock. */
	s64 window_ns = now_ns - rate->since_ns;
	u32 shift = 0;

	if (rate->queue != (u64)queue) {
		if (rate->queue && window_ns < (s64)SECOND_NS)
			return;
		rate->mask = 0;
		rate->ios = rate->took_ns = 0;
		rate->since_ns = now_ns;
		rate->queue = (u64)queue;
		return;
	}
	rate->clock_ns = now_ns;
	rate->ticks = bpf_jiffies64();
	rate->ios += ios;
	rate->took_ns += took_ns * ios;
	if (window_ns < (s64)WINDOW_NS)
		return;
	rate->since_ns = now_ns;
	a_second = rate->ios * SECOND_NS / (u64)window_ns;
	if (a_second >= 2 * (u64)settings.sampled)
		shift = exponent_of(a_second / settings.sampled);
	if (shift > SAMPLE_SHIFT_MAX)
		shift = SAMPLE_SHIFT_MAX;
	if (rate->ios)
		rate->unusual_ns = UNUSUAL * (rate->took_ns / rate->ios);
	rate->ios = rate->took_ns = 0;
	rate->mask = (1U << shift) - 1;
}

#endif
