// SPDX-License-Identifier: Apache-2.0 OR MIT
// An application that knows what it did: every operation is printed as "op start_ns end_ns offset bytes errno", times of
// CLOCK_MONOTONIC, the clock of block-layer traces. What it does follows from its arguments alone, so that a recording
// can be made again. Operations of a batch share start (before they are submitted) and end (after the last is done).
//
//   oplog write FILE BYTES BLOCK        buffered, in order, then one fsync
//   oplog read FILE BLOCK               buffered, in order, to the end
//   oplog commit FILE N BLOCK SPAN HOW  N times a buffered overwrite and its HOW: fsync, fdatasync or dsync (O_DSYNC); ring:
//                                       fsync by io_uring, every other linked to the write, the file registered in the second half
//   oplog direct FILE read|write N BLOCK DEPTH ORDER SPAN   O_DIRECT in batches of DEPTH; ORDER: random, up, down
//   oplog same FILE read|write THREADS N BLOCK   all threads at the same offsets at the same time, O_DIRECT
//   oplog discard DEVICE OFFSET BYTES
//   oplog flood FILE SECONDS            buffered overwrites of 64 MiB, over and over, without sync
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ALIGNMENT = 4096, DEPTH_MAX = 1024, THREADS_MAX = 64 };

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void log_op(const char *op, uint64_t start_ns, uint64_t end_ns, long offset, long bytes, int error) {
    printf("%s %lu %lu %ld %ld %d\n", op, (unsigned long)start_ns, (unsigned long)end_ns, offset, bytes, error);
}

static void die(const char *what) {
    perror(what);
    exit(4);
}

static int open_or_die(const char *path, int flags) {
    int fd = open(path, flags, 0644);
    if (fd < 0) die(path);
    return fd;
}

static char *buffer_of(size_t bytes) {
    void *memory;
    if (posix_memalign(&memory, ALIGNMENT, bytes)) die("memory");
    memset(memory, 0x5a, bytes);
    return memory;
}

// 0 or the errno of a call that should have moved `bytes`.
static int error_of(ssize_t moved, long bytes) { return moved == bytes ? 0 : moved < 0 ? errno : EIO; }

// splitmix64: the next of a sequence that is the same in every run.
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void write_in_order(char **arg) {
    long bytes = atol(arg[1]), block = atol(arg[2]);
    int fd = open_or_die(arg[0], O_CREAT | O_RDWR);
    char *data = buffer_of(block);
    for (long offset = 0; offset < bytes; offset += block) {
        uint64_t start = now_ns();
        int error = error_of(pwrite(fd, data, block, offset), block);
        log_op("write", start, now_ns(), offset, block, error);
    }
    uint64_t start = now_ns();
    int error = fsync(fd) ? errno : 0;
    log_op("fsync", start, now_ns(), 0, bytes, error);
}

static void read_in_order(char **arg) {
    long block = atol(arg[1]), offset = 0;
    int fd = open_or_die(arg[0], O_RDONLY);
    char *data = buffer_of(block);
    for (;;) {
        uint64_t start = now_ns();
        ssize_t moved = pread(fd, data, block, offset);
        if (moved <= 0) break;
        log_op("read", start, now_ns(), offset, moved, 0);
        offset += moved;
    }
}

static struct {
    int fd;
    struct io_uring_params said;
    char *rings;
    struct io_uring_sqe *sqes;
} ring;

static void open_ring(int file) {
    if ((ring.fd = (int)syscall(SYS_io_uring_setup, 2, &ring.said)) < 0) die("io_uring_setup");
    size_t bytes = ring.said.cq_off.cqes + ring.said.cq_entries * sizeof(struct io_uring_cqe);
    size_t other = ring.said.sq_off.array + ring.said.sq_entries * sizeof(unsigned);
    if (other > bytes) bytes = other;
    int access = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    // Since 5.4 both rings are one mapping.
    ring.rings = mmap(NULL, bytes, access, flags, ring.fd, IORING_OFF_SQ_RING);
    ring.sqes = mmap(NULL, ring.said.sq_entries * sizeof *ring.sqes, access, flags, ring.fd, IORING_OFF_SQES);
    if (ring.rings == MAP_FAILED || ring.sqes == MAP_FAILED) die("rings");
    if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, &file, 1)) die("register");
}

// Hands in `count` operations and waits for them; 0 or the errno of the last.
static int ring_run(const struct io_uring_sqe *wanted, unsigned count) {
    unsigned *tail = (void *)(ring.rings + ring.said.sq_off.tail), *array = (void *)(ring.rings + ring.said.sq_off.array);
    unsigned *seen = (void *)(ring.rings + ring.said.cq_off.head);
    struct io_uring_cqe *cqes = (void *)(ring.rings + ring.said.cq_off.cqes);
    for (unsigned i = 0; i < count; i++) {
        unsigned at = (*tail + i) & (ring.said.sq_entries - 1);
        ring.sqes[at] = wanted[i];
        array[at] = at;
    }
    __atomic_store_n(tail, *tail + count, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring.fd, count, count, IORING_ENTER_GETEVENTS, NULL, 0) != (long)count) die("io_uring_enter");
    int result = cqes[(*seen + count - 1) & (ring.said.cq_entries - 1)].res;
    __atomic_store_n(seen, *seen + count, __ATOMIC_RELEASE);
    return result < 0 ? -result : 0;
}

// An overwrite and its fsync by io_uring.
static void ring_commit(int fd, int is_fixed, int is_linked, char *data, long block, long offset) {
    uint8_t fixed = is_fixed ? IOSQE_FIXED_FILE : 0;
    struct io_uring_sqe both[2] = {{.opcode = IORING_OP_WRITE, .flags = fixed | IOSQE_IO_LINK, .fd = is_fixed ? 0 : fd,
        .off = (uint64_t)offset, .addr = (uint64_t)(uintptr_t)data, .len = (uint32_t)block},
        {.opcode = IORING_OP_FSYNC, .flags = fixed, .fd = is_fixed ? 0 : fd, .fsync_flags = IORING_FSYNC_DATASYNC}};
    if (!is_linked && pwrite(fd, data, block, offset) != block) die("write");
    uint64_t start = now_ns();
    int error = is_linked ? ring_run(both, 2) : ring_run(both + 1, 1);
    log_op("ring", start, now_ns(), offset, block, error);
}

static void commits(char **arg) {
    long n = atol(arg[1]), block = atol(arg[2]), span = atol(arg[3]);
    int by_ring = !strcmp(arg[4], "ring");
    int dsync = !strcmp(arg[4], "dsync"), data_only = !strcmp(arg[4], "fdatasync");
    int fd = open_or_die(arg[0], O_CREAT | O_RDWR | (dsync ? O_DSYNC : 0));
    char *data = buffer_of(block);
    uint64_t state = 1;
    if (by_ring) open_ring(fd);
    for (long i = 0; i < n; i++) {
        long offset = (long)(next_random(&state) % (uint64_t)(span / block)) * block;
        if (by_ring) {
            ring_commit(fd, i >= n / 2, i % 2, data, block, offset);
            continue;
        }
        uint64_t start = now_ns();
        int error = error_of(pwrite(fd, data, block, offset), block);
        log_op(dsync ? "dsync" : "write", start, now_ns(), offset, block, error);
        if (dsync) continue;
        start = now_ns();
        error = (data_only ? fdatasync(fd) : fsync(fd)) ? errno : 0;
        log_op(arg[4], start, now_ns(), offset, block, error);
    }
}

static void direct(char **arg) {
    int writes = !strcmp(arg[1], "write");
    long n = atol(arg[2]), block = atol(arg[3]), depth = atol(arg[4]), blocks = atol(arg[6]) / block;
    int fd = open_or_die(arg[0], (writes ? O_RDWR : O_RDONLY) | O_DIRECT);
    if (depth > DEPTH_MAX) depth = DEPTH_MAX;
    char *data = buffer_of((size_t)(block * depth));
    uint64_t state = writes ? 2 : 3;
    aio_context_t context = 0;
    if (syscall(SYS_io_setup, depth, &context)) die("io_setup");
    static struct iocb ops[DEPTH_MAX], *batch[DEPTH_MAX];
    static struct io_event events[DEPTH_MAX];
    for (long done = 0; done < n;) {
        long count = n - done < depth ? n - done : depth;
        for (long i = 0; i < count; i++) {
            long at = done + i;
            long block_at = *arg[5] == 'r'   ? (long)(next_random(&state) % (uint64_t)blocks)
                            : *arg[5] == 'u' ? at % blocks
                                             : blocks - 1 - at % blocks;
            ops[i] = (struct iocb){.aio_lio_opcode = writes ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD, .aio_fildes = (uint32_t)fd,
                .aio_buf = (uint64_t)(uintptr_t)(data + i * block), .aio_nbytes = (uint64_t)block,
                .aio_offset = block_at * block, .aio_data = (uint64_t)i};
            batch[i] = &ops[i];
        }
        uint64_t start = now_ns();
        if (syscall(SYS_io_submit, context, count, batch) != count) die("io_submit");
        if (syscall(SYS_io_getevents, context, count, count, events, NULL) != count) die("io_getevents");
        uint64_t end = now_ns();
        for (long i = 0; i < count; i++) {
            long result = (long)events[i].res;
            int error = result == block ? 0 : result < 0 ? (int)-result : EIO;
            log_op(writes ? "write" : "read", start, end, ops[events[i].data].aio_offset, block, error);
        }
        done += count;
    }
}

static struct {
    const char *path;
    int writes;
    long n, block;
    pthread_barrier_t together;
    pthread_mutex_t log;
} same;

static void *same_offsets(void *unused) {
    int fd = open_or_die(same.path, (same.writes ? O_RDWR : O_RDONLY) | O_DIRECT);
    char *data = buffer_of(same.block);
    for (long i = 0; i < same.n; i++) {
        long offset = i % 4 * same.block;
        pthread_barrier_wait(&same.together);
        uint64_t start = now_ns();
        ssize_t moved = same.writes ? pwrite(fd, data, same.block, offset) : pread(fd, data, same.block, offset);
        uint64_t end = now_ns();
        pthread_mutex_lock(&same.log);
        log_op(same.writes ? "write" : "read", start, end, offset, same.block, error_of(moved, same.block));
        pthread_mutex_unlock(&same.log);
    }
    return unused;
}

static void same_sector(char **arg) {
    long threads = atol(arg[2]);
    if (threads > THREADS_MAX) threads = THREADS_MAX;
    same.path = arg[0];
    same.writes = !strcmp(arg[1], "write");
    same.n = atol(arg[3]);
    same.block = atol(arg[4]);
    pthread_barrier_init(&same.together, NULL, (unsigned)threads);
    pthread_mutex_init(&same.log, NULL);
    pthread_t ids[THREADS_MAX];
    for (long i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, same_offsets, NULL)) die("thread");
    for (long i = 0; i < threads; i++) pthread_join(ids[i], NULL);
}

static void discard(char **arg) {
    uint64_t range[2] = {strtoull(arg[1], NULL, 10), strtoull(arg[2], NULL, 10)};
    int fd = open_or_die(arg[0], O_RDWR);
    uint64_t start = now_ns();
    int error = ioctl(fd, BLKDISCARD, range) ? errno : 0;
    log_op("discard", start, now_ns(), (long)range[0], (long)range[1], error);
}

static void flood(char **arg) {
    enum { BLOCK = 1 << 20, SPAN = 64 << 20 };
    uint64_t end_ns = now_ns() + strtoull(arg[1], NULL, 10) * 1000000000u;
    int fd = open_or_die(arg[0], O_CREAT | O_RDWR);
    char *data = buffer_of(BLOCK);
    for (long offset = 0; now_ns() < end_ns; offset = (offset + BLOCK) % SPAN) {
        uint64_t start = now_ns();
        int error = error_of(pwrite(fd, data, BLOCK, offset), BLOCK);
        log_op("write", start, now_ns(), offset, BLOCK, error);
    }
}

int main(int count, char **arg) {
    static const struct {
        const char *name;
        int arguments;
        void (*run)(char **);
    } modes[] = {{"write", 3, write_in_order}, {"read", 2, read_in_order}, {"commit", 5, commits},
        {"direct", 7, direct}, {"same", 5, same_sector}, {"discard", 3, discard}, {"flood", 2, flood}};
    for (size_t i = 0; count > 1 && i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(arg[1], modes[i].name) && count == modes[i].arguments + 2) {
            modes[i].run(arg + 2);
            return fflush(stdout) ? 4 : 0;
        }
    fprintf(stderr, "oplog: see the head of oplog.c for what it can do\n");
    return 2;
}
