/* The floor of a client: sends the bytes of a recorded conversation and receives as many as came back, over and over.
 *
 *   floor SOCKET CONVERSATION FIRST LAST ROUNDS
 *
 * The conversation is a file of exchanges: length of the request (32 bits), the request, length of the answer (32 bits).
 * Exchanges before FIRST (logging in, preparing) are sent once, those from FIRST to LAST (exclusive) ROUNDS times.
 * Prints how many answers were shorter than recorded: values that lost a digit. */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct exchange { uint32_t sent, received; const char *request; };

static char answer[1 << 20];
static long odd;

static void fail(const char *what) { perror(what); exit(1); }

static void converse(int fd, const struct exchange *it) {
    if (it->sent && send(fd, it->request, it->sent, MSG_NOSIGNAL) != (ssize_t)it->sent) fail("send");
    for (uint32_t got = 0; got < it->received;) {
        /* Who waits on a Unix socket in recv is also woken when the server reads the request. */
        struct pollfd wanted = { .fd = fd, .events = POLLIN };
        if (poll(&wanted, 1, 200) == 0) { odd++; return; }
        ssize_t n = recv(fd, answer, sizeof answer, 0);
        if (n == 0) { fputs("the server closed the connection\n", stderr); exit(1); }
        if (n < 0) { odd++; return; }
        got += n;
    }
}

int main(int count, char **words) {
    if (count != 6) { fputs("floor SOCKET CONVERSATION FIRST LAST ROUNDS\n", stderr); return 2; }
    FILE *file = fopen(words[2], "rb");
    if (!file) fail(words[2]);
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    rewind(file);
    char *all = malloc(bytes);
    struct exchange *exchanges = calloc(bytes / 8 + 1, sizeof *exchanges);
    if (!all || !exchanges || fread(all, 1, bytes, file) != (size_t)bytes) fail("reading");
    long have = 0;
    for (long at = 0; at + 8 <= bytes; have++) {
        struct exchange *it = &exchanges[have];
        memcpy(&it->sent, all + at, 4);
        it->request = all + at + 4;
        memcpy(&it->received, all + at + 4 + it->sent, 4);
        at += 8 + it->sent;
    }
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strncpy(address.sun_path, words[1], sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) fail(words[1]);
    long first = atol(words[3]), last = atol(words[4]), rounds = atol(words[5]);
    if (first > last || last > have) { fputs("no such exchanges\n", stderr); return 2; }
    for (long at = 0; at < first; at++) converse(fd, &exchanges[at]);
    for (long round = 0; round < rounds; round++)
        for (long at = first; at < last; at++) converse(fd, &exchanges[at]);
    printf("%ld\n", odd);
    return 0;
}
