/* SPDX-License-Identifier: GPL-2.0 */
/* Buckets of durations, and where numbers go in tables. */
#ifndef WEIR_BUCKETS_H
#define WEIR_BUCKETS_H

#include "kernel.h"

/* 32 buckets an octave, 3.1 % wide; below 256 ns they are 8 ns wide, and the last is open (17 s and more). */
#define OCTAVE_BITS 5
#define FIRST_EXPONENT 8
#define LAST_EXPONENT 33
#define BUCKETS ((LAST_EXPONENT - FIRST_EXPONENT + 2) << OCTAVE_BITS)

static __always_inline u32 hash_of(u64 number)
{
	return (number * 0x9E3779B97F4A7C15ULL) >> 32;
}

/*
 * floor(log2), without a branch, which keeps the verifier's paths few: all bits below the highest are set, and a de Bruijn
 * sequence maps each of the 64 values that leaves to a place of its own (Leiserson, Prokop, Randall 1998).
 */
static const u8 exponents[64] = {
	0, 47, 1, 56, 48, 27, 2, 60, 57, 49, 41, 37, 28, 16, 3, 61, 54, 58, 35, 52, 50, 42, 21, 44, 38, 32, 29, 23, 17, 11, 4, 62,
	46, 55, 26, 59, 40, 36, 15, 53, 34, 51, 20, 43, 31, 22, 10, 45, 25, 39, 14, 33, 19, 30, 9, 24, 13, 18, 8, 12, 7, 6, 5, 63,
};

static __always_inline u32 exponent_of(u64 value)
{
	value |= value >> 1;
	value |= value >> 2;
	value |= value >> 4;
	value |= value >> 8;
	value |= value >> 16;
	value |= value >> 32;
	return exponents[(value * 0x03f79d71b4cb0a89ULL) >> 58];
}

static __always_inline u32 bucket_of(u64 ns)
{
	u32 exponent = exponent_of(ns);

	if (exponent < FIRST_EXPONENT)
		return ns >> (FIRST_EXPONENT - OCTAVE_BITS);
	if (exponent > LAST_EXPONENT)
		return BUCKETS - 1;
	return ((exponent - FIRST_EXPONENT + 1) << OCTAVE_BITS) + ((ns >> (exponent - OCTAVE_BITS)) & ((1 << OCTAVE_BITS) - 1));
}

#endif
