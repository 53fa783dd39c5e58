/* SPDX-License-Identifier: Apache-2.0 */
#include "common/machine.h"

#include <cpuid.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CACHE_INDEX_MAX 8 /* entries of sysfs per core; four are usual */
#define LINE_SIZE 64      /* of every x86-64 processor */
#define STREAM_SIZE_MIN ((size_t)32 << 20)
#define STREAM_SIZE_MAX ((size_t)1 << 30)

/* Flushes of clflushopt overlap; the older clflush waits for the one before. */
size_t wpk_caches_flush(const void *data, size_t size)
{
    const uintptr_t first = (uintptr_t)data / LINE_SIZE;
    const uintptr_t end = ((uintptr_t)data + size + LINE_SIZE - 1) / LINE_SIZE;
    unsigned a, b, c, d;
    const bool fast = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_CLFLUSHOPT) != 0;

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

/* The first line of a file of sysfs, "" when it is not there. */
static void read_line(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "re");

    out[0] = '\0';
    if (file == NULL) {
        return;
    }
    if (fgets(out, (int)size, file) == NULL) {
        out[0] = '\0';
    }
    fclose(file);
    out[strcspn(out, "\n")] = '\0';
}

/* sysfs writes "48K"; 0 when it is nothing of the kind. */
static int64_t parse_size(const char *text)
{
    char *end = NULL;
    long long value = strtoll(text, &end, 10);

    if (end == text || value <= 0 || value > (1 << 30)) {
        return 0;
    }
    return *end == 'K' ? value * 1024 : *end == 'M' ? value * 1024 * 1024 : value;
}

int64_t wpk_caches_size(int cpu, int level)
{
    static const int names[] = {0, _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                _SC_LEVEL3_CACHE_SIZE};
    char path[128];
    char text[32];

    WPK_ASSERT(level >= 1);
    WPK_ASSERT(level <= 3);
    for (int i = 0; i < CACHE_INDEX_MAX; i++) {
        const char *base = "/sys/devices/system/cpu/cpu%d/cache/index%d/%s";
        snprintf(path, sizeof(path), base, cpu, i, "level");
        read_line(path, text, sizeof(text));
        if (strtol(text, NULL, 10) != level) {
            continue;
        }
        snprintf(path, sizeof(path), base, cpu, i, "type");
        read_line(path, text, sizeof(text));
        if (strcmp(text, "Instruction") == 0) {
            continue;
        }
        snprintf(path, sizeof(path), base, cpu, i, "size");
        read_line(path, text, sizeof(text));
        if (parse_size(text) > 0) {
            return parse_size(text);
        }
    }
    long size = sysconf(names[level]);
    return size > 0 ? size : 0;
}

/* Written once: pages that nobody wrote to are all the same page of zeros, which evicts nothing.
 * It is read afterwards and not written: a long memset may write past the caches. */
static unsigned char *new_stream(size_t *size)
{
    const int64_t cache = wpk_caches_size(0, 3);

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
