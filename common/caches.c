/* SPDX-License-Identifier: Apache-2.0 */
#include "common/caches.h"

#include <cpuid.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_SIZE 64 /* of every x86-64 processor */
#define STREAM_SIZE_MIN ((size_t)32 << 20)
#define STREAM_SIZE_MAX ((size_t)1 << 30)

static bool has_clflushopt(void)
{
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_CLFLUSHOPT) != 0;
}

/* Flushes of clflushopt overlap; the older clflush waits for the one before. */
size_t wpk_caches_flush(const void *data, size_t size)
{
    const uintptr_t first = (uintptr_t)data / LINE_SIZE;
    const uintptr_t end = ((uintptr_t)data + size + LINE_SIZE - 1) / LINE_SIZE;
    const bool fast = has_clflushopt();

    if (size == 0) {
        return 0;
    }
    for (uintptr_t line = first; line < end; line++) {
        const char *at = (const char *)(line * LINE_SIZE);
        if (fast) {
            __asm__ volatile("clflushopt %0" : : "m"(*at) : "memory");
        } else {
            __asm__ volatile("clflush %0" : : "m"(*at) : "memory");
        }
    }
    __asm__ volatile("mfence" : : : "memory"); /* no later load may overtake a flush */
    return end - first;
}

void wpk_caches_read(const void *data, size_t size)
{
    const volatile unsigned char *bytes = data;

    for (size_t i = 0; i < size; i += LINE_SIZE) {
        (void)bytes[i];
    }
    if (size > 0) {
        (void)bytes[size - 1];
    }
}

/* Written once: pages that nobody wrote to are all the same page of zeros, which evicts nothing.
 * It is read afterwards and not written: a long memset may write past the caches. */
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

wpk_err wpk_caches_stream(void)
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
            wpk_caches_read(stream, size);
        }
    }
    return sched_setaffinity(0, sizeof(all), &all) == 0 ? WPK_OK : WPK_ESYSTEM;
}
