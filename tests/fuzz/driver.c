/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target without libFuzzer, so that it is an ordinary test with any compiler:
 *
 *     fuzz_job CORPUS_DIR [SECONDS [SEED]]
 *
 * The driver runs every file of the corpus, then mutations of them until the time is up. When the
 * target dies, or takes more than DEADLINE_S of CPU for one input, a handler writes the input to
 * fuzz-crash-<pid> in the working directory. */
#include "common/buf.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/rng.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define CORPUS_MAX 256
#define INPUT_MAX ((size_t)64 << 10)
#define MUTATIONS_MAX 8
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DEADLINE_S 10
#else
#define DEADLINE_S 1
#endif

struct input {
    uint8_t *data; /* owned */
    size_t size;
};

static struct input corpus[CORPUS_MAX];
static int corpus_count;
static uint8_t at_work[INPUT_MAX];
static size_t at_work_size;
static char crash_path[64];

/* Only calls that a signal handler may make. */
static void save_crash(int number)
{
    int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd >= 0) {
        ssize_t written = write(fd, at_work, at_work_size);
        (void)written;
        close(fd);
    }
    signal(number, SIG_DFL);
    raise(number);
}

static bool read_corpus(const char *path)
{
    struct dirent *entry;
    DIR *directory = opendir(path);

    while (directory != NULL && corpus_count < CORPUS_MAX && (entry = readdir(directory)) != NULL) {
        char file[4096];
        struct wpk_buf bytes = {.size_max = INPUT_MAX};
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
        struct input *input = &corpus[corpus_count];
        if (wpk_fs_read(file, INPUT_MAX, &bytes, NULL) == WPK_OK &&
            wpk_buf_take(&bytes, (char **)(void *)&input->data, &input->size) == WPK_OK) {
            corpus_count++;
        }
        wpk_buf_fini(&bytes);
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return corpus_count > 0;
}

static size_t draw(struct wpk_rng *rng, size_t below)
{
    return below > 0 ? (size_t)(wpk_rng_next(rng) % below) : 0;
}

/* Make room for, or close, `size` bytes at `at`; returns how many there were room for. */
static size_t open_gap(size_t at, size_t size)
{
    size = size < INPUT_MAX - at_work_size ? size : INPUT_MAX - at_work_size;
    memmove(at_work + at + size, at_work + at, at_work_size - at);
    at_work_size += size;
    return size;
}

static void mutate(struct wpk_rng *rng)
{
    static const char *const words[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        "\"",
                                        ":",
                                        ",",
                                        "\\u0000",
                                        "\xff",
                                        "1e400",
                                        "-1",
                                        "0",
                                        "9007199254740993",
                                        "null",
                                        "true",
                                        "sum(r:3)",
                                        "f32[1,1]",
                                        "where",
                                        "|",
                                        "-inf",
                                        ">=",
                                        "gelu(",
                                        "max(i, j)",
                                        "i8(",
                                        "\\n",
                                        "18446744073709551616"};
    size_t at = draw(rng, at_work_size + 1);
    const struct input *other = &corpus[draw(rng, (size_t)corpus_count)];
    size_t length;

    switch (draw(rng, 6)) {
    case 0:
        if (at < at_work_size) {
            at_work[at] ^= (uint8_t)(1U << draw(rng, 8));
        }
        break;
    case 1:
        if (at < at_work_size) {
            at_work[at] = (uint8_t)draw(rng, 256);
        }
        break;
    case 2:
        length = draw(rng, at_work_size - at + 1) % 64;
        memmove(at_work + at, at_work + at + length, at_work_size - at - length);
        at_work_size -= length;
        break;
    case 3: {
        const char *word = words[draw(rng, sizeof(words) / sizeof(words[0]))];
        length = open_gap(at, strlen(word));
        memcpy(at_work + at, word, length);
        break;
    }
    case 4: {
        size_t from = draw(rng, other->size + 1);
        length = open_gap(at, draw(rng, other->size - from + 1));
        memcpy(at_work + at, other->data + from, length);
        break;
    }
    default:
        at_work_size = at;
        break;
    }
}

static int run_one(void)
{
    /* A copy of exact size, so that a sanitizer sees a read past the end. */
    uint8_t *copy = malloc(at_work_size > 0 ? at_work_size : 1);

    const struct itimerval deadline = {.it_value = {.tv_sec = DEADLINE_S}};

    WPK_ASSERT(copy != NULL);
    memcpy(copy, at_work, at_work_size);
    setitimer(ITIMER_VIRTUAL, &deadline, NULL);
    int result = LLVMFuzzerTestOneInput(copy, at_work_size);
    free(copy);
    return result;
}

static void load(const struct input *input)
{
    memcpy(at_work, input->data, input->size);
    at_work_size = input->size;
}

int main(int argc, char **argv)
{
    static const int deadly[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGVTALRM};
    const struct wpk_clock *clock = wpk_clock_system();
    uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : 2;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    uint64_t count = 0;
    struct wpk_rng rng;

    if (argc < 2 || !read_corpus(argv[1])) {
        fprintf(stderr, "usage: %s CORPUS_DIR [SECONDS [SEED]]; the corpus must not be empty\n",
                argv[0]);
        return 2;
    }
    snprintf(crash_path, sizeof(crash_path), "fuzz-crash-%ld", (long)getpid());
    for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++) {
        signal(deadly[i], save_crash);
    }
    for (int i = 0; i < corpus_count; i++) {
        load(&corpus[i]);
        WPK_ASSERT(run_one() != WPK_FUZZ_REJECTED);
    }
    wpk_rng_seed(&rng, seed);
    uint64_t end_ns = wpk_clock_now_ns(clock) + seconds * WPK_NS_PER_S;
    while (wpk_clock_now_ns(clock) < end_ns) {
        load(&corpus[draw(&rng, (size_t)corpus_count)]);
        for (size_t i = draw(&rng, MUTATIONS_MAX) + 1; i > 0; i--) {
            mutate(&rng);
        }
        (void)run_one();
        count++;
    }
    printf("%d files, %llu mutations, seed %llu\n", corpus_count, (unsigned long long)count,
           (unsigned long long)seed);
    for (int i = 0; i < corpus_count; i++) {
        free(corpus[i].data);
    }
    return 0;
}
