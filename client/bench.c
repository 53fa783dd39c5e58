/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl bench: times a model's plan, and other engines beside it: in turns, with as many threads,
 * on the same inputs. Each round gives one ratio; their median counts. */
#include "client/bench_peer.h"
#include "client/command.h"
#include "client/run_model.h"
#include "client/run_tensors.h"
#include "common/clock.h"
#include "common/format.h"
#include "common/fs.h"
#include "common/json.h"
#include "model/onnx/read.h"
#include "schema/convert.h"
#include "schema/npy.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 21
#define ROUND_S 0.1
#define RUNS_MAX 100000 /* of one round */
#define PEERS_MAX 8
#define DIFFERENCE_MAX 1e-3 /* of the largest output: beyond it one of the two is wrong */
/* The same where data is quantized: a value between two steps becomes either, and of a scale that
 * follows from data all later values do. */
#define DIFFERENCE_QUANTIZED_MAX 0.1
#define FILE_SIZE_MAX ((size_t)64 << 30)

struct entrant {
    struct wpk_bench_peer peer; /* of ours: pid 0 */
    double ns[ROUNDS];
    double difference;           /* of the largest output */
    char why[WPK_DIAG_TEXT_MAX]; /* it does not run the model; "" it does */
};

struct bench {
    struct wpk_run_model options;
    const char *onnx_path;
    const char *against; /* "onnxruntime,openvino"; NULL: none */
    const char *python;
    bool json;
    char folder[64];                       /* of the inputs and outputs; "" none */
    struct entrant entrant[PEERS_MAX + 1]; /* ours first */
    int entrant_count;
    int threads;
    int running_count; /* peers */
};

struct spread {
    double median;
    double mad; /* median absolute deviation */
};

static struct spread spread_of(const double *values, int count)
{
    double sorted[ROUNDS];
    struct spread out = {0};

    memcpy(sorted, values, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), wpk_real_compare);
    out.median = sorted[count / 2];
    for (int i = 0; i < count; i++) {
        sorted[i] = fabs(values[i] - out.median);
    }
    qsort(sorted, (size_t)count, sizeof(*sorted), wpk_real_compare);
    out.mad = sorted[count / 2];
    return out;
}

/* The ratio of a peer's time and ours, each round with itself. */
static struct spread ratio_of(const struct bench *bench, int peer)
{
    double ratios[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        ratios[i] = bench->entrant[peer].ns[i] / bench->entrant[0].ns[i];
    }
    return spread_of(ratios, ROUNDS);
}

/* ---- inputs and outputs */

static void path_of(const struct bench *bench, const char *stem, size_t index, char *out,
                    size_t size)
{
    snprintf(out, size, "%s/%s%zu.npy", bench->folder, stem, index);
}

static wpk_err write_inputs(const struct bench *bench, const struct wpk_plan_call *call,
                            struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    for (size_t i = 0; err == WPK_OK && i < call->input_count; i++) {
        char path[96];
        path_of(bench, "in", i, path, sizeof(path));
        err = wpk_run_write_npy(path, &wpk_model_input(call->model, call->shape, i)->type,
                                call->inputs[i].data, diag);
    }
    return err;
}

/* The largest difference, as a part of the largest of `theirs`. */
static double difference_between(const double *ours, const double *theirs, int64_t count)
{
    double largest = 0, difference = 0;

    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(theirs[i]));
        difference = fmax(difference, ours[i] == theirs[i] ? 0 : fabs(ours[i] - theirs[i]));
    }
    return largest > 0 ? difference / largest : difference;
}

/* The largest difference of one output, as a part of the peer's largest value. */
static wpk_err compare_output(const struct bench *bench, const struct wpk_plan_call *call,
                              size_t index, double *worst, struct wpk_diag *diag)
{
    const struct wpk_tensor_type *type = &wpk_model_output(call->model, call->shape, index)->type;
    int64_t count = wpk_tensor_type_elements(type);
    double *ours = WPK_DEMAND(calloc((size_t)count + 1, sizeof(double)));
    double *theirs = WPK_DEMAND(calloc((size_t)count + 1, sizeof(double)));
    struct wpk_buf bytes = {.size_max = FILE_SIZE_MAX};
    struct wpk_npy npy;
    char path[96];

    path_of(bench, "out", index, path, sizeof(path));
    wpk_err err = wpk_fs_read(path, FILE_SIZE_MAX - 1, &bytes, diag);
    err = err == WPK_OK ? wpk_npy_decode(wpk_buf_text(&bytes), bytes.size, &npy, diag) : err;
    if (err == WPK_OK) {
        err = wpk_npy_read(&npy, type, theirs, diag); /* of no more bytes than doubles */
    }
    if (err == WPK_OK) {
        memcpy(ours, theirs, (size_t)count * wpk_dtype_size(type->dtype));
        wpk_convert_widen(type->dtype, ours, count, theirs);
        wpk_convert_widen(type->dtype, call->outputs[index].data, count, ours);
        *worst = fmax(*worst, difference_between(ours, theirs, count));
    }
    wpk_buf_fini(&bytes);
    free(ours);
    free(theirs);
    return err;
}

/* Let one engine run the model. One that cannot has a reason in place of times. */
static wpk_err start_peer(struct bench *bench, const struct wpk_plan_call *call, const char *name,
                          struct wpk_diag *diag)
{
    struct wpk_diag said = {0};

    if (!wpk_bench_peer_is_known(name)) {
        return wpk_fail(diag, WPK_EINVAL, "--against: '%s' is none of " WPK_BENCH_PEERS, name);
    }
    if (bench->entrant_count > PEERS_MAX) {
        return wpk_fail(diag, WPK_EINVAL, "--against: more than %d engines", PEERS_MAX);
    }
    struct entrant *entrant = &bench->entrant[bench->entrant_count++];
    wpk_err err = wpk_bench_peer_start(&entrant->peer, bench->python, name, bench->onnx_path,
                                       bench->folder, bench->threads, ROUND_S, &said);
    for (size_t o = 0; err == WPK_OK && o < call->output_count; o++) {
        err = compare_output(bench, call, o, &entrant->difference, &said);
    }
    if (err != WPK_OK) {
        snprintf(entrant->why, sizeof(entrant->why), "%s",
                 said.text[0] != '\0' ? said.text : wpk_err_text(err));
        wpk_bench_peer_stop(&entrant->peer);
        snprintf(entrant->peer.name, sizeof(entrant->peer.name), "%s", name);
    }
    bench->running_count += err == WPK_OK;
    return WPK_OK;
}

static wpk_err start_peers(struct bench *bench, const struct wpk_plan_call *call,
                           struct wpk_diag *diag)
{
    wpk_err err = write_inputs(bench, call, diag);

    if (err == WPK_OK) {
        err = wpk_model_run(call->context, call->inputs, call->input_count, call->outputs,
                            call->output_count);
    }
    for (const char *at = bench->against; err == WPK_OK && at[0] != '\0';) {
        char name[32];
        int size = (int)strcspn(at, ",");
        snprintf(name, sizeof(name), "%.*s", size, at);
        at += size + (at[size] == ',');
        err = start_peer(bench, call, name, diag);
    }
    return err;
}

/* ---- timing */

static wpk_err time_ours(const struct wpk_plan_call *call, double *ns)
{
    static double samples[RUNS_MAX];
    const struct wpk_clock *clock = wpk_clock_system();
    uint64_t end_ns = 0;
    int count = 0;

    /* After one run that is not counted: another engine was in the caches. */
    wpk_err err = wpk_model_run(call->context, call->inputs, call->input_count, call->outputs,
                                call->output_count);
    end_ns = wpk_clock_now_ns(clock) + (uint64_t)(ROUND_S * WPK_NS_PER_S);
    while (err == WPK_OK && count < RUNS_MAX && (count == 0 || wpk_clock_now_ns(clock) < end_ns)) {
        uint64_t began_ns = wpk_clock_now_ns(clock);
        err = wpk_model_run(call->context, call->inputs, call->input_count, call->outputs,
                            call->output_count);
        samples[count++] = (double)(wpk_clock_now_ns(clock) - began_ns);
    }
    qsort(samples, (size_t)count, sizeof(*samples), wpk_real_compare);
    *ns = samples[count / 2];
    return err;
}

/* One round of a peer; an engine that ends is timed no more. */
static void time_peer(struct bench *bench, struct entrant *entrant, int round)
{
    struct wpk_diag said = {0};
    uint64_t ns = 0;

    if (entrant->why[0] == '\0' && wpk_bench_peer_time(&entrant->peer, &ns, &said) != WPK_OK) {
        snprintf(entrant->why, sizeof(entrant->why), "%s", said.text);
        bench->running_count--;
    }
    entrant->ns[round] = (double)ns;
}

static wpk_err time_all(struct bench *bench, const struct wpk_plan_call *call)
{
    wpk_err err = WPK_OK;

    for (int round = 0; err == WPK_OK && round < ROUNDS; round++) {
        for (int i = 0; err == WPK_OK && i < bench->entrant_count; i++) {
            /* Every other round in the other order. */
            int e = round % 2 == 0 ? i : bench->entrant_count - 1 - i;
            if (e == 0) {
                err = time_ours(call, &bench->entrant[0].ns[round]);
            } else {
                time_peer(bench, &bench->entrant[e], round);
            }
        }
    }
    return err;
}

/* ---- results */

/* Calls of steps in one run. */
static unsigned long long call_count(const struct wpk_plan_call *call)
{
    unsigned long long count = 0;

    for (size_t s = 0; s < wpk_model_step_count(call->model, call->shape); s++) {
        count += wpk_model_step(call->model, call->shape, s).calls;
    }
    return count;
}

static void print_table(const struct bench *bench, const struct wpk_plan_call *call)
{
    struct spread ours = spread_of(bench->entrant[0].ns, ROUNDS);

    printf("%-22s %10s %8s  %14s  %s\n", "engine", "ms", "MAD", "time / wpk", "difference");
    printf("%-22s %10.3f %8.3f\n", "wpk", ours.median / 1e6, ours.mad / 1e6);
    for (int e = 1; e < bench->entrant_count; e++) {
        const struct entrant *entrant = &bench->entrant[e];
        struct spread theirs = spread_of(entrant->ns, ROUNDS);
        struct spread ratio = ratio_of(bench, e);
        char name[112];
        if (entrant->why[0] != '\0') {
            printf("%-22s %s\n", entrant->peer.name, entrant->why);
            continue;
        }
        snprintf(name, sizeof(name), "%s %s", entrant->peer.name, entrant->peer.version);
        printf("%-22s %10.3f %8.3f  %7.2f ± %.2f  %.1e of the largest output\n", name,
               theirs.median / 1e6, theirs.mad / 1e6, ratio.median, ratio.mad, entrant->difference);
    }
    printf("%zu steps, %llu calls, %d thread%s, %d rounds of %g s\n",
           wpk_model_step_count(call->model, call->shape), call_count(call), bench->threads,
           bench->threads == 1 ? "" : "s", ROUNDS, ROUND_S);
}

static wpk_err print_json(const struct bench *bench, const struct wpk_plan_call *call)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();

    wpk_json_put_int(w, "steps", (int64_t)wpk_model_step_count(call->model, call->shape));
    wpk_json_put_int(w, "calls", (int64_t)call_count(call));
    wpk_json_put_int(w, "threads", bench->threads);
    wpk_json_put_int(w, "rounds", ROUNDS);
    wpk_json_begin_array(w, "engines");
    for (int e = 0; e < bench->entrant_count; e++) {
        const struct entrant *entrant = &bench->entrant[e];
        struct spread time = spread_of(entrant->ns, ROUNDS);
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", e == 0 ? "wpk" : entrant->peer.name);
        if (entrant->why[0] != '\0') {
            wpk_json_put_text(w, "why", entrant->why);
            wpk_json_end(w);
            continue;
        }
        wpk_json_put_text(w, "version", e == 0 ? WPK_VERSION : entrant->peer.version);
        wpk_json_put_int(w, "median_ns", (int64_t)time.median);
        wpk_json_put_int(w, "mad_ns", (int64_t)time.mad);
        if (e > 0) {
            struct spread ratio = ratio_of(bench, e);
            wpk_json_put_real(w, "ratio", ratio.median);
            wpk_json_put_real(w, "ratio_mad", ratio.mad);
            wpk_json_put_real(w, "difference", entrant->difference);
        }
        wpk_json_end(w);
    }
    wpk_json_end(w);
    return wpk_json_puts(w, true);
}

/* The difference that the answers of two engines may have. */
static double difference_max(const char *onnx_path)
{
    struct wpk_graph graph = {0};
    bool quantizes = false;

    if (onnx_path != NULL && wpk_onnx_read(onnx_path, &graph, NULL) == WPK_OK) {
        for (int n = 0; n < graph.node_count; n++) {
            const char *op = graph.nodes[n].op;
            quantizes = quantizes || strstr(op, "Quantize") != NULL || wpk_begins(op, "QLinear");
        }
    }
    wpk_graph_fini(&graph);
    return quantizes ? DIFFERENCE_QUANTIZED_MAX : DIFFERENCE_MAX;
}

/* Say what is wrong with the answers: one that differs, or none of any peer. */
static enum wpk_exit judge(const struct bench *bench, const char *plan)
{
    double allowed = difference_max(bench->onnx_path);

    for (int e = 1; e < bench->entrant_count; e++) {
        const struct entrant *entrant = &bench->entrant[e];
        if (entrant->why[0] == '\0' && !(entrant->difference <= allowed)) {
            fprintf(stderr,
                    "wpkctl: the outputs of %s differ by %.1e of the largest; this says whose are "
                    "wrong: wpkctl run %s --random --verify %s\n",
                    entrant->peer.name, entrant->difference, plan, bench->onnx_path);
            return WPK_EXIT_FAILED;
        }
    }
    if (bench->entrant_count > 1 && bench->running_count == 0) {
        fprintf(stderr, "wpkctl: no other engine ran the model\n");
        return WPK_EXIT_FAILED;
    }
    return WPK_EXIT_OK;
}

/* Stay on the last of our CPUs; the other engines inherit that. */
static void pin(void)
{
    cpu_set_t all;
    cpu_set_t one;

    if (sched_getaffinity(0, sizeof(all), &all) != 0) {
        return;
    }
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
        if (CPU_ISSET((size_t)cpu, &all)) {
            CPU_ZERO(&one);
            CPU_SET((size_t)cpu, &one);
            (void)!sched_setaffinity(0, sizeof(one), &one);
            return;
        }
    }
}

static wpk_err use(const struct wpk_plan_call *call, void *user, struct wpk_diag *diag)
{
    struct bench *bench = user;
    wpk_err err = WPK_OK;

    bench->threads = (int)wpk_model_threads(call->model);
    bench->entrant_count = 1;
    if (bench->threads == 1) {
        pin();
    }
    if (bench->against != NULL) {
        err = start_peers(bench, call, diag);
    }
    err = err == WPK_OK ? time_all(bench, call) : err;
    if (err == WPK_OK && bench->json) {
        err = print_json(bench, call);
    } else if (err == WPK_OK) {
        print_table(bench, call);
    }
    for (int e = 1; e < bench->entrant_count; e++) {
        wpk_bench_peer_stop(&bench->entrant[e].peer);
    }
    return err;
}

/* With --onnx and no --against: ONNX Runtime. */
static wpk_err arrange(const struct wpk_invocation *call, struct bench *bench,
                       struct wpk_diag *diag)
{
    if (bench->against != NULL && bench->onnx_path == NULL) {
        return wpk_fail(diag, WPK_EINVAL,
                        "--against needs --onnx FILE, the model that the others run");
    }
    if (bench->onnx_path == NULL) {
        return WPK_OK;
    }
    bench->against = bench->against != NULL ? bench->against : "onnxruntime";
    return wpk_fs_make_temporary(call->context->tmp_dir, "wpk-bench", bench->folder,
                                 sizeof(bench->folder), diag);
}

enum wpk_exit wpk_command_bench(struct wpk_invocation *call)
{
    static struct bench bench;
    const struct wpk_option options[] = {
        WPK_ARGS_TEXT("onnx", "MODEL.onnx", "the model itself, which other engines run",
                      &bench.onnx_path),
        WPK_ARGS_TEXT("against", "ENGINE,...", "of " WPK_BENCH_PEERS "; with --onnx, onnxruntime",
                      &bench.against),
        WPK_ARGS_LIST("input", "TENSOR=FILE.npy",
                      "an input; drawn where none is given (repeatable)", &bench.options.inputs),
        WPK_PLAN_SHAPE_OPTION_ROW(bench.options.fixing.shapes),
        WPK_ARGS_TEXT("python", "PROGRAM", "the Python that has the engines; default python3",
                      &bench.python),
        WPK_ARGS_FLAG("json", "as JSON", &bench.json),
        WPK_ARGS_END,
    };

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    bench.options.draw = true;
    bench.python = bench.python != NULL ? bench.python : "python3";
    wpk_err err = arrange(call, &bench, &call->diag);
    if (err == WPK_OK) {
        err = wpk_run_model_with(call->args.operands[0], &bench.options, use, &bench, &call->diag);
    }
    if (err == WPK_OK) {
        call->status = judge(&bench, call->args.operands[0]);
    }
    if (bench.folder[0] != '\0') {
        (void)!wpk_fs_remove_tree(bench.folder, NULL);
    }
    return wpk_command_end(call, err);
}

/* ---- wpkctl prove: two plans of one model */

#define FASTER_MIN 1.02      /* before over after */
#define ROUNDS_FASTER_MIN 16 /* of 21; so many by chance: one in 75 */

struct proof {
    struct wpk_run_model options;
    const char *after;
    bool json;
    struct bench bench; /* entrants: after, before */
    const struct wpk_plan_call *before;
    bool is_faster;
};

/* The largest difference between two plans' outputs, as a part of the largest value. */
static wpk_err difference_of(const struct wpk_plan_call *a, const struct wpk_plan_call *b,
                             double *out, struct wpk_diag *diag)
{
    for (size_t o = 0; o < a->output_count; o++) {
        const struct wpk_argument *mine = wpk_model_output(a->model, a->shape, o);
        const struct wpk_argument *other = wpk_model_output(b->model, b->shape, o);
        int64_t count = wpk_tensor_type_elements(&mine->type);
        if (strcmp(mine->name, other->name) != 0 ||
            !wpk_tensor_type_equal(&mine->type, &other->type)) {
            return wpk_fail(diag, WPK_EINVAL, "the plans are of two models: outputs %s and %s",
                            mine->name, other->name);
        }
        double *x = WPK_DEMAND(calloc(2 * (size_t)count + 1, sizeof(double))), *y = x + count;
        wpk_convert_widen(mine->type.dtype, a->outputs[o].data, count, x);
        wpk_convert_widen(mine->type.dtype, b->outputs[o].data, count, y);
        *out = fmax(*out, difference_between(x, y, count));
        free(x);
    }
    return WPK_OK;
}

static wpk_err print_proof(struct proof *proof)
{
    const struct bench *bench = &proof->bench;
    struct spread after = spread_of(bench->entrant[0].ns, ROUNDS);
    struct spread before = spread_of(bench->entrant[1].ns, ROUNDS), ratio = ratio_of(bench, 1);
    int faster = 0;
    for (int i = 0; i < ROUNDS; i++) {
        faster += bench->entrant[1].ns[i] > bench->entrant[0].ns[i];
    }
    proof->is_faster = ratio.median >= FASTER_MIN && faster >= ROUNDS_FASTER_MIN;
    const char *verdict = proof->is_faster ? "faster" : "a wash, or slower";
    if (!proof->json) {
        printf(
            "before %.3f ± %.3f ms, after %.3f ± %.3f ms: %.3f ± %.3f times as fast, in %d of %d "
            "rounds: %s\nthe outputs differ by %.1e of the largest\n",
            before.median / 1e6, before.mad / 1e6, after.median / 1e6, after.mad / 1e6,
            ratio.median, ratio.mad, faster, ROUNDS, verdict, bench->entrant[1].difference);
        return WPK_OK;
    }
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_int(w, "before_ns", (int64_t)before.median);
    wpk_json_put_int(w, "after_ns", (int64_t)after.median);
    wpk_json_put_real(w, "ratio", ratio.median);
    wpk_json_put_real(w, "ratio_mad", ratio.mad);
    wpk_json_put_int(w, "rounds", ROUNDS);
    wpk_json_put_int(w, "rounds_faster", faster);
    wpk_json_put_real(w, "difference", bench->entrant[1].difference);
    wpk_json_put_bool(w, "faster", proof->is_faster);
    return wpk_json_puts(w, true);
}

static wpk_err use_after(const struct wpk_plan_call *after, void *user, struct wpk_diag *diag)
{
    struct proof *proof = user;
    struct bench *bench = &proof->bench;
    const struct wpk_plan_call *const calls[] = {after, proof->before};
    wpk_err err = WPK_OK;

    if (after->output_count != calls[1]->output_count ||
        after->input_count != calls[1]->input_count) {
        return wpk_fail(diag, WPK_EINVAL, "the plans are of two models");
    }
    if (wpk_model_threads(after->model) == 1 && wpk_model_threads(calls[1]->model) == 1) {
        pin();
    }
    for (int round = 0; err == WPK_OK && round < ROUNDS; round++) {
        for (int i = 0; err == WPK_OK && i < 2; i++) {
            int e = round % 2 == 0 ? i : 1 - i;
            err = time_ours(calls[e], &bench->entrant[e].ns[round]);
        }
    }
    err = err == WPK_OK ? difference_of(after, calls[1], &bench->entrant[1].difference, diag) : err;
    return err == WPK_OK ? print_proof(proof) : err;
}

/* A model after it has as many threads. */
static wpk_err use_before(const struct wpk_plan_call *before, void *user, struct wpk_diag *diag)
{
    struct proof *proof = user;
    proof->before = before;
    proof->options.threads = (int)wpk_model_threads(before->model);
    return wpk_run_model_with(proof->after, &proof->options, use_after, proof, diag);
}

enum wpk_exit wpk_command_prove(struct wpk_invocation *call)
{
    static struct proof proof;
    struct wpk_session_options history = {0};
    const struct wpk_option options[] = {
        WPK_ARGS_LIST("input", "TENSOR=FILE.npy",
                      "an input; drawn where none is given (repeatable)", &proof.options.inputs),
        WPK_MODEL_FIXING_OPTION_ROWS(proof.options.fixing),
        WPK_SESSION_OPTION_ROWS(history),
        WPK_ARGS_FLAG("json", "as JSON", &proof.json),
        WPK_ARGS_END,
    };

    if (!wpk_command_begin(call, options, 2, 2)) {
        return call->status;
    }
    proof.options.draw = true;
    proof.options.history = &history;
    proof.options.tmp_dir = call->context->tmp_dir;
    proof.after = call->args.operands[1];
    wpk_err err =
        wpk_run_model_with(call->args.operands[0], &proof.options, use_before, &proof, &call->diag);
    if (err == WPK_OK && !(proof.bench.entrant[1].difference <= DIFFERENCE_QUANTIZED_MAX)) {
        fprintf(stderr, "wpkctl: the outputs differ: one of the two plans is wrong\n");
        call->status = WPK_EXIT_FAILED;
    } else if (err == WPK_OK && !proof.is_faster) {
        call->status = WPK_EXIT_FAILED;
    }
    return wpk_command_end(call, err);
}
