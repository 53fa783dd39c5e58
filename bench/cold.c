/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cold.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_SIZE 64
#define STREAM_SIZE_MIN ((size_t)32 << 20)
#define STREAM_SIZE_MAX ((size_t)1 << 30)

static const char *const names[] = {
#define BENCH_CONDITIONS_NAME(id, name) name,
    BENCH_CONDITIONS_LIST(BENCH_CONDITIONS_NAME)
#undef BENCH_CONDITIONS_NAME
};

const char *bench_conditions_name(enum bench_conditions conditions)
{
    return names[conditions];
}

wpk_err bench_conditions_parse(const char *text, enum bench_conditions *out)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum bench_conditions)i;
            return WPK_OK;
        }
    }
    return WPK_ENOENT;
}

void bench_cold_read(const void *data, size_t size)
{
    const volatile unsigned char *bytes = data;
    for (size_t i = 0; i < size; i += LINE_SIZE) {
        (void)bytes[i];
    }
    if (size > 0) {
        (void)bytes[size - 1];
    }
}

/* Written once: pages that nobody wrote to are all the same page of zeros, which evicts nothing. */
static unsigned char *new_stream(size_t *size)
{
    const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    *size = cache > 0 ? 2 * (size_t)cache : 0;
    *size = *size < STREAM_SIZE_MIN ? STREAM_SIZE_MIN : *size;
    *size = *size > STREAM_SIZE_MAX ? STREAM_SIZE_MAX : *size;
    unsigned char *stream = malloc(*size);
    if (stream != NULL) {
        memset(stream, 1, *size);
    }
    return stream;
}

wpk_err bench_cold_stream(void)
{
    static unsigned char *stream;
    static size_t size;
    cpu_set_t all;
    stream = stream != NULL ? stream : new_stream(&size);
    if (stream == NULL) {
        return WPK_ENOMEM;
    }
    if (sched_getaffinity(0, sizeof(all), &all) != 0) {
        return WPK_ESYSTEM;
    }
    /* Caches below the last are each core's own. */
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all)) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            if (sched_setaffinity(0, sizeof(one), &one) != 0) {
                return WPK_ESYSTEM;
            }
            bench_cold_read(stream, size);
        }
    }
    return sched_setaffinity(0, sizeof(all), &all) == 0 ? WPK_OK : WPK_ESYSTEM;
}
