// SPDX-License-Identifier: Apache-2.0 OR MIT
// A disk in memory that is as slow as it is told: slowdisk DEVICE MIB LATENCY_US [SLOTS], DEVICE of the nbd module.
//
// Standard input tells its limits, a line each time they change: WRITES_PER_SECOND BYTES_PER_SECOND, 0 for none. They are those of
// volumes in a cloud and of qemu's throttling: a bucket holds a tenth of a second, and what finds it empty waits, one after
// another. Every request takes the latency besides. With SLOTS so many are served at once, and others wait. It says "ready" when the
// device is there, and ends when standard input does.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/nbd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ull
#define BURST (SECOND / 10)
#define MOST_SLOTS 1024
#define MOST_UNDER_WAY 4096

struct answer {
    uint64_t due, from;
    uint32_t type, len;
    char handle[8];
};

static int device, ends[2];
static char *memory;
static uint64_t size, latency, slots;
// When each slot is free, and when each bucket is full again.
static uint64_t is_free[MOST_SLOTS], writes_full, bytes_full, last_start;
static double writes_per_second, bytes_per_second;
static struct answer under_way[MOST_UNDER_WAY];
static unsigned first, last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t comes = PTHREAD_COND_INITIALIZER;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * SECOND + at.tv_nsec;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static int all(int out, int file, char *data, size_t left) {
    while (left) {
        ssize_t did = out ? write(file, data, left) : read(file, data, left);
        if (did < 0 && errno == EINTR)
            continue;
        if (did <= 0)
            return -1;
        data += did;
        left -= did;
    }
    return 0;
}

// When so much may begin by a bucket, which is full again later then.
static uint64_t taken(uint64_t *full, double amount, double per_second, uint64_t at) {
    if (per_second <= 0)
        return at;
    uint64_t begins = later(at, *full > BURST ? *full - BURST : 0);
    *full = later(*full, at) + (uint64_t)(amount / per_second * SECOND);
    return begins;
}

// When a request that comes now is done.
static uint64_t done(uint32_t type, uint32_t len) {
    uint64_t at = now(), begins = at, *slot = &is_free[0];
    if (type == NBD_CMD_WRITE) {
        begins = later(taken(&writes_full, 1, writes_per_second, at), taken(&bytes_full, len, bytes_per_second, at));
        begins = last_start = later(begins, last_start);
    }
    if (!slots)
        return begins + latency;
    for (uint64_t other = 1; other < slots; other++)
        if (is_free[other] < *slot)
            slot = &is_free[other];
    return *slot = later(begins, *slot) + latency;
}

static void *answers(void *none) {
    prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
        pthread_mutex_lock(&lock);
        while (first == last)
            pthread_cond_wait(&comes, &lock);
        struct answer next = under_way[first % MOST_UNDER_WAY];
        first++;
        pthread_mutex_unlock(&lock);
        struct timespec due = { next.due / SECOND, next.due % SECOND };
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
            ;
        struct nbd_reply reply = { htonl(NBD_REPLY_MAGIC), 0, { 0 } };
        memcpy(reply.handle, next.handle, 8);
        if (all(1, ends[1], (char *)&reply, sizeof reply) ||
            (next.type == NBD_CMD_READ && all(1, ends[1], memory + next.from, next.len)))
            exit(0);
    }
    return none;
}

static void *requests(void *none) {
    struct nbd_request request;
    while (!all(0, ends[1], (char *)&request, sizeof request)) {
        struct answer next = { 0, be64toh(request.from), ntohl(request.type) & 0xffff, ntohl(request.len), { 0 } };
        memcpy(next.handle, request.handle, 8);
        if (next.type == NBD_CMD_DISC)
            break;
        if (next.from > size || next.len > size - next.from)
            exit(1);
        if (next.type == NBD_CMD_WRITE && all(0, ends[1], memory + next.from, next.len))
            break;
        pthread_mutex_lock(&lock);
        next.due = done(next.type, next.len);
        if (last - first == MOST_UNDER_WAY)
            exit(1);
        // In the order in which they are due: a read waits for one write at most, the next that is.
        unsigned place = last++;
        for (; place != first && under_way[(place - 1) % MOST_UNDER_WAY].due > next.due; place--)
            under_way[place % MOST_UNDER_WAY] = under_way[(place - 1) % MOST_UNDER_WAY];
        under_way[place % MOST_UNDER_WAY] = next;
        pthread_cond_signal(&comes);
        pthread_mutex_unlock(&lock);
    }
    exit(0);
    return none;
}

static void *serves(void *none) {
    if (ioctl(device, NBD_DO_IT) < 0)
        die("NBD_DO_IT");
    return none;
}

int main(int count, char **words) {
    pthread_t thread;
    char line[128];
    if (count < 4)
        return 2;
    size = strtoull(words[2], NULL, 10) << 20;
    latency = strtoull(words[3], NULL, 10) * 1000;
    slots = count > 4 ? strtoull(words[4], NULL, 10) : 0;
    if (slots > MOST_SLOTS)
        return 2;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        die("memory");
    device = open(words[1], O_RDWR);
    if (device < 0)
        die(words[1]);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        die("socketpair");
    if (ioctl(device, NBD_SET_BLKSIZE, 4096ul) || ioctl(device, NBD_SET_SIZE_BLOCKS, size / 4096) ||
        ioctl(device, NBD_SET_FLAGS, (unsigned long)NBD_FLAG_HAS_FLAGS) || ioctl(device, NBD_SET_SOCK, ends[0]))
        die("nbd");
    if (pthread_create(&thread, NULL, requests, NULL) || pthread_create(&thread, NULL, answers, NULL) ||
        pthread_create(&thread, NULL, serves, NULL))
        return 1;
    for (uint64_t has = 0; has != size;) {
        if (ioctl(device, BLKGETSIZE64, &has)) die("size");
        usleep(1000);
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        pthread_mutex_lock(&lock);
        // What was said before counts for what came before.
        sscanf(line, "%lf %lf", &writes_per_second, &bytes_per_second);
        writes_full = bytes_full = 0;
        pthread_mutex_unlock(&lock);
    }
    ioctl(device, NBD_DISCONNECT);
    ioctl(device, NBD_CLEAR_SOCK);
    return 0;
}
