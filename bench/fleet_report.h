/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies, CPU time by thread, and the report of bench-fleet as text and as JSON. */
#ifndef WPK_BENCH_FLEET_REPORT_H
#define WPK_BENCH_FLEET_REPORT_H

#include "common/err.h"

#include <stdint.h>
#include <stdio.h>

#define BENCH_THREADS_MAX 32
#define BENCH_LATENCIES_MAX (1 << 20)

/* The first BENCH_LATENCIES_MAX latencies; later ones are only counted, in `beyond`. */
struct bench_latencies {
    uint64_t ns[BENCH_LATENCIES_MAX];
    uint32_t count;
    uint64_t beyond;
};

void bench_latencies_reset(struct bench_latencies *latencies);
void bench_latencies_add(struct bench_latencies *latencies, uint64_t ns);
/* The quantile `share`, in [0, 1], in ms; 0 if there is none. Sorts the latencies. */
double bench_latencies_ms(struct bench_latencies *latencies, double share);

/* The CPU time that each thread of this process has used. */
struct bench_threads {
    int id[BENCH_THREADS_MAX];
    char name[BENCH_THREADS_MAX][24];
    double cpu_s[BENCH_THREADS_MAX];
    int count;
};

/* Read the threads of this process. */
void bench_threads_take(struct bench_threads *threads);
/* Resident memory of a process in MiB; 0 if it cannot be read. */
double bench_rss_mib(int pid);

/* The measurements of one part of the run. */
struct bench_fleet_part {
    double seconds;
    uint64_t results;
    uint64_t fsyncs; /* one for each commit, a few for checkpoints, two or more for each upload */
    uint64_t uploads;
    uint64_t uploads_refused;
    struct bench_latencies acks;    /* from results sent to results acknowledged */
    struct bench_latencies commits; /* from a batch handed to the writer until it is durable */
    struct bench_threads before;
    struct bench_threads after;
};

struct bench_fleet_report {
    uint32_t workers;
    uint32_t batch;
    int fsync_ms;
    int64_t rows;
    size_t artifact_size; /* of uploads in the second part; 0: there is no second part */
    uint64_t repeated;    /* as in struct bench_crew */
    uint64_t errors;      /* as in struct bench_crew */
    struct bench_fleet_part parts[2];
};

void bench_fleet_report_print(struct bench_fleet_report *report, FILE *out);
void bench_fleet_report_write(struct bench_fleet_report *report, const char *path);

#endif
