/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where a queue completes more requests than can be looked at for little, one of 2^n is counted, as 2^n. Address and start of
 * a request decide which, so that its issue and its completion agree without a table. Errors, flush sequences and what takes
 * many times as long as usual are all counted, each as one.
 */
#ifndef WEIR_SAMPLING_H
#define WEIR_SAMPLING_H

#include "cells.h"

#define SAMPLE_SHIFT_MAX 10
#define WINDOW_NS 100000000ULL
#define SECOND_NS 1000000000ULL
/* Unusual are requests that take so many times the mean of the last window. */
#define UNUSUAL 8

/* What a queue's requests of the last window were like. Its owner is the first that came, until that is idle. */
#define QUEUES 64
struct queue_rate {
	u64 queue;
	u64 mask; /* One of mask + 1 is counted. */
	u64 unusual_ns;
	u64 clock_ns; /* When one was last counted: the time, or nearly. */
	u64 since_ns;
	u64 ios;
	u64 took_ns;
	u64 unused;
} queue_rates[QUEUES] __attribute__((aligned(64)));

/* The low half of a pointer: the verifier takes a moved one for a number, and no other arithmetic on it. */
static __always_inline u32 low_half(void *pointer)
{
	u32 low;

	asm volatile("%0 = %1" : "=w"(low) : "w"((u32)(u64)pointer));
	return low;
}

static __always_inline struct queue_rate *rate_of(struct request *rq)
{
	return &queue_rates[(low_half(READ(rq, q)) >> 6) * 0x9E3779B1U >> 26 & (QUEUES - 1)];
}

/* One of so many of this request's queue is counted, less one. */
static __always_inline u32 mask_of(struct queue_rate *rate, struct request *rq)
{
	return rate->queue == (u64)READ(rq, q) ? rate->mask : 0;
}

static __always_inline bool is_drawn(struct request *rq, u32 mask)
{
	u32 mixed = (u32)READ(rq, start_time_ns) ^ low_half(rq) >> 6;

	return !(mixed * 0x9E3779B1U >> 16 & mask);
}

/* By a clock that may be late: then it is one of those of which one is drawn. */
static __always_inline bool is_unusual(struct queue_rate *rate, u64 start_ns)
{
	return start_ns && rate->clock_ns > start_ns + rate->unusual_ns;
}

/* A request counted as `ios` took so long: once in a window that decides on the next. */
static __always_inline void keep_rate(struct queue_rate *rate, struct request *rq, u64 now_ns, u64 took_ns, u32 ios)
{
	u64 queue = (u64)READ(rq, q), window_ns = now_ns - rate->since_ns, a_second;
	u32 shift = 0;

	if (rate->queue != queue) {
		if (rate->queue && window_ns < SECOND_NS)
			return;
		rate->mask = 0;
		rate->ios = rate->took_ns = 0;
		rate->since_ns = now_ns;
		rate->queue = queue;
		return;
	}
	rate->clock_ns = now_ns;
	rate->ios += ios;
	rate->took_ns += took_ns * ios;
	if (window_ns < WINDOW_NS)
		return;
	rate->since_ns = now_ns;
	a_second = rate->ios * SECOND_NS / window_ns;
	if (settings.sampled && a_second >= 2 * (u64)settings.sampled)
		shift = exponent_of(a_second / settings.sampled);
	if (shift > SAMPLE_SHIFT_MAX)
		shift = SAMPLE_SHIFT_MAX;
	if (rate->ios)
		rate->unusual_ns = UNUSUAL * (rate->took_ns / rate->ios);
	rate->ios = rate->took_ns = 0;
	rate->mask = (1U << shift) - 1;
}

#endif
