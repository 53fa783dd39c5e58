/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/fleet_fill.h"

#include <stdio.h>

#define CHUNK 50000 /* rows of one transaction */

/* Of a kernel's document; as long as a real one's, without its schedule. */
#define CANDIDATE                                                                                  \
    "'cpu-1 algorithm=winograd(6) layout=halo-last1 Y_acc_v.vec=c Y_acc_v.lanes=16"                \
    " Y_acc_v.tile.ty=1 Y_acc_v.tile.tx=1 Y_acc_v.tile.c=16 Y.block.y=1 Y.tile.x=6 Y.block.x=all"  \
    " Y.tile.k=16 Y.outer=y,x,k Y.inner=y,x,k Y.roll=yes n=' || n"
/* Spread as hashes are: what is found by their first digits is to be found here as fast. */
#define HASH(number) "printf('%08x%056x', (" number ") * 2654435761 & 4294967295, " number ")"
#define SHA256 HASH("n")
#define DEVICE "'cpu/bench/avx2'"
#define ENVIRONMENT "'codegen=1;halide=21.0.0'"
#define COUNTED "WITH RECURSIVE c(n) AS (SELECT ? UNION ALL SELECT n + 1 FROM c WHERE n < ?) "

static const char problems_sql[] =
    "INSERT INTO problem (id, fingerprint, layouts, device_class, environment, policy, family,"
    " extents, op, flops, bytes, created_at, epoch) " COUNTED "SELECT n, " SHA256
    ", 'fixed', " DEVICE ", " ENVIRONMENT
    ", 'threads=1;conditions=warm;time_ns=20000000;samples=10', " HASH(
        "n / 50") ","
                  " printf('64,64,%d,%d,3,3', n % 50 + 7, n % 50 + 7), 'Y[i] = X[i] * ' || n, "
                  "231411712.0, 1000000.0, 1, 1"
                  " FROM c";

static const char searches_sql[] =
    "INSERT INTO search (id, problem_id, strategy, options, prior, pins, seed, providers,"
    " space_version, elapsed_ns, ended_asks, exhausted, kernel_id, snapshot, snapshot_version, "
    "snapshot_told,"
    " ok_count, failed_count, known_count, best, accuracy, anchor, stand_in, stand_in_ratio,"
    " created_at, epoch) " COUNTED "SELECT n, n, 'ga', '', '', '', '1', 'halide-cpu', 'cpu-1', "
    "60000000000, 100, 0, NULL, '', '', 0, 0, 0,"
    " 0, '', 'standard', '', '', 0, 1, 1 FROM c";

static const char kernels_sql[] =
    "INSERT INTO kernel (id, problem_id, search_id, provider, artifact_sha256, plain_sha256,"
    " accuracy, times_direct, median_ns, served, served_at, pinned, revoked_at, revoked_reason, "
    "verified_by, document, manifest, signature, "
    "created_at,"
    " epoch) " COUNTED "SELECT n, n, n, 'halide-cpu', " SHA256
    ", '', 'standard', 1.75, 500000, 1, 1, 0, 0, '', 'bench/1', '{\"fingerprint\":\"' || " SHA256
    " || '\",\"provider\":\"halide-cpu\",\"algorithm\":\"winograd(6)\",\"detail\":\"\","
    "\"candidate\":\"' || " CANDIDATE
    " || '\",\"time_ns\":{\"median\":500000,\"min\":490000,\"mad\":3000},\"baseline\":null,"
    "\"own\":{\"provider\":\"halide-cpu\",\"algorithm\":\"winograd(6)\",\"detail\":\"\","
    "\"candidate\":\"' || " CANDIDATE
    " || '\",\"time_ns\":{\"median\":500000,\"min\":490000,\"mad\":3000},\"speedup\":null,"
    "\"artifact\":\"' || " SHA256 " || '\",\"schedule\":\"' || printf('%.4000c', 's') || '\"},"
    "\"speedup\":null,\"candidates\":{\"measured\":100,\"failed\":0},\"verified\":{\"max_error\":"
    "0.01,\"tolerance\":0.07,\"of_rms\":1e-6,\"times_direct\":1.75},\"accuracy\":\"standard\","
    "\"conditions\":\"warm\",\"artifact\":\"' || " SHA256
    " || '\",\"schedule\":\"' || printf('%.4000c', 's') || '\",\"op\":\"Y[i] = X[i] * ' || n ||"
    " '\",\"flops\":231411712,\"device\":\"cpu/bench/avx2\",\"device_peak_flops_per_s\":1e11,"
    "\"environment\":\"codegen=1;halide=21.0.0\",\"layouts\":\"fixed\",\"threads\":1,"
    "\"created\":\"2026-01-01T00:00:00.000Z\"}', '', '', 1, 1 FROM c";

/* The third value: how many trials a problem has. */
static const char trials_sql[] =
    "INSERT INTO trial (id, problem_id, provider, candidate, candidate_hash, outcome, log, detail,"
    " schedule_sha256, artifact_sha256, error_max, error_tolerance, of_rms, times_direct,"
    " constants_bytes, unseen, recipe, build_ns, verify_ns, recorded_at, epoch) " COUNTED
    "SELECT n, (n - 1) / ? + 1, 'halide-cpu', " CANDIDATE ", randomblob(16), 'ok', '', '', " SHA256
    ", '', 1.5e-6, 3e-6, 1e-6, 1.75, 0, '', '', 150000000, 20000000, 1, 1 FROM c";

static const char measurements_sql[] =
    "INSERT INTO measurement (trial_id, number, kind, search_id, worker, instance, median_ns,"
    " min_ns, mad_ns, repeat_count, censored, anchor_ns, anchor_ratio, anchor, samples_ns, "
    "counters, measured_at,"
    " epoch) " COUNTED "SELECT n, 0, 'trial', (n - 1) / ? + 1, 'bench/1', 'bench1/cpu0', 500000,"
    " 490000, 3000, 20, 0, 1000000, 0.5, '',"
    " '[500000,500100,500200,500300,500400,500500,500600,500700,500800,500900]', '', 1, 1 FROM c";

static const char asks_sql[] =
    "INSERT INTO ask (search_id, number, trial_id, source, ended, known, epoch) " COUNTED
    "SELECT (n - 1) / ? + 1, (n - 1) % ?, n, 'drawn', 1, 0, 1 FROM c";

static wpk_err fill_problems(struct wpk_store *store, int64_t kernels, struct wpk_diag *diag)
{
    wpk_store_begin(store);
    wpk_store_run(store, problems_sql, "ii", INT64_C(1), kernels);
    wpk_store_run(store, searches_sql, "ii", INT64_C(1), kernels);
    wpk_store_run(store, kernels_sql, "ii", INT64_C(1), kernels);
    wpk_store_run(store, "UPDATE search SET kernel_id = id", "");
    return wpk_store_commit(store, diag);
}

wpk_err bench_fleet_fill(struct wpk_store *store, int64_t trials, int64_t kernels,
                         struct wpk_diag *diag)
{
    int64_t there = 0;
    int64_t each = trials / kernels;
    struct wpk_rows *rows = wpk_store_query(store, "SELECT COALESCE(MAX(id), 0) FROM trial", "");
    if (wpk_rows_next(rows)) {
        there = wpk_rows_int(rows, 0);
    }
    wpk_rows_close(rows);
    wpk_err err = there == 0 ? fill_problems(store, kernels, diag) : WPK_OK;
    for (int64_t first = there + 1; err == WPK_OK && first <= each * kernels; first += CHUNK) {
        int64_t last = first + CHUNK - 1 < each * kernels ? first + CHUNK - 1 : each * kernels;
        wpk_store_begin(store);
        wpk_store_run(store, trials_sql, "iii", first, last, each);
        wpk_store_run(store, measurements_sql, "iii", first, last, each);
        wpk_store_run(store, asks_sql, "iiii", first, last, each, each);
        err = wpk_store_commit(store, diag);
    }
    return err;
}
