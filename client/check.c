/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl check: validate a job file, or a model, and show its operators. The command stores
 * no data. */
#include "client/command.h"
#include "client/job_file.h"
#include "client/run_model.h"
#include "client/session.h"
#include "common/format.h"
#include "common/json.h"
#include "common/machine.h"
#include "ir/canonical/canonical.h"
#include "ir/cost.h"
#include "ir/instruction/instruction.h"
#include "ir/notation/definition.h"
#include "ir/notation/notation.h"
#include "model/plan/model_file.h"

#include <math.h>
#include <stdio.h>

/* The properties of one operator that are printed. */
struct finding {
    struct wpk_buf notation;
    struct wpk_fingerprint fingerprint;
    struct wpk_cost cost;
    int instruction; /* that adds several terms of a sum, on CPUs that have it; -1: none */
    double roofline_ns[WPK_CONDITIONS_COUNT]; /* 0: the machine was not measured */
    double space_size_log2;
    int variant_count;
    bool unseen_known;
    struct wpk_buf unseen; /* why, where it is not known */
};

struct check {
    struct wpk_job job;
    struct wpk_device device;
    struct wpk_roofline roofline; /* of one core; zeros: not measured */
    const char *tmp_dir;
    bool no_faults;
    bool json;
    struct wpk_session_options session; /* whose workers are looked for; no server: none */
    int worker_count;                   /* of the job's kind that are ready; -1: not known */
};

/* Count the service's workers of the kind that are ready.
 *   errors  those of wpk_session_open and wpk_list_read */
static wpk_err count_workers(const struct wpk_command_context *context,
                             const struct wpk_session_options *options, const char *kind, int *out,
                             struct wpk_diag *diag)
{
    struct wpk_session session = {0};
    struct wpk_arena arena = {0};
    struct wpk_api_list list = {.count = 0};

    wpk_err err = wpk_session_open(context, options, &session, diag);
    if (err == WPK_OK) {
        err = wpk_list_read(&session, "workers", "", WPK_API_LIST_MAX, &arena, &list, diag);
    }
    *out = 0;
    for (int i = 0; i < list.count; i++) {
        *out += wpk_list_is_ready(&list.workers[i], kind);
    }
    wpk_session_close(&session);
    wpk_arena_fini(&arena);
    return err;
}

/* Bandwidth is shared by the cores, arithmetic is not. */
static double roofline_ns(const struct check *check, const struct wpk_cost *cost,
                          enum wpk_conditions conditions)
{
    const struct wpk_roofline roofline = {
        .flops_per_s = check->roofline.flops_per_s * check->job.threads,
        .bytes_per_s = check->roofline.bytes_per_s,
    };

    double bytes = wpk_cost_memory_bytes(cost, conditions, (double)check->device.cpu.l3_bytes);
    return check->roofline.flops_per_s > 0 ? wpk_cost_roofline_ns(cost, bytes, &roofline) : 0;
}

static wpk_err measure_space(const struct check *check, int op, const struct wpk_program *program,
                             struct finding *out, struct wpk_diag *diag)
{
    struct wpk_space space = {0};

    wpk_err err = wpk_job_space(&check->job, check->job.ops[op].layouts, program, &check->device,
                                &space, diag);
    if (err == WPK_OK) {
        out->space_size_log2 = space.size_log2;
        out->variant_count = space.variant_count;
    }
    wpk_space_fini(&space);
    return err;
}

/* List the faults that verification would not see. A failure to find them does not end the check:
 * the job can be tuned. */
static void look_for_faults(const struct check *check, const struct wpk_program *program,
                            struct finding *out)
{
    struct wpk_diag diag = {0};

    wpk_err err = check->no_faults ? WPK_EUNSUPPORTED
                                   : wpk_unseen_find(check->tmp_dir, program, &out->unseen, &diag);
    out->unseen_known = err == WPK_OK;
    if (err != WPK_OK) {
        wpk_buf_reset(&out->unseen);
        wpk_buf_append_text(&out->unseen, check->no_faults       ? "--no-faults"
                                          : diag.text[0] != '\0' ? diag.text
                                                                 : wpk_err_text(err));
    }
}

static wpk_err look(const struct check *check, int op, struct finding *out, struct wpk_diag *diag)
{
    struct wpk_program program = {0};

    wpk_err err = wpk_job_op_program(&check->job, op, &program, diag);
    if (err != WPK_OK) {
        return err;
    }
    err = wpk_notation_print(&program, &out->notation);
    err = err == WPK_OK ? wpk_fingerprint(&program, &out->fingerprint) : err;
    if (err == WPK_OK) {
        wpk_cost(&program, &out->cost);
        out->instruction = wpk_program_instruction(&program, WPK_CPU_FLAGS_ALL);
        for (int c = 0; c < WPK_CONDITIONS_COUNT; c++) {
            out->roofline_ns[c] = roofline_ns(check, &out->cost, (enum wpk_conditions)c);
        }
        err = measure_space(check, op, &program, out, diag);
    }
    if (err == WPK_OK) {
        look_for_faults(check, &program, out);
    }
    wpk_program_fini(&program);
    return err;
}

static void print_rooflines(const struct check *check, const struct finding *finding)
{
    char times[WPK_CONDITIONS_COUNT][WPK_FORMAT_SIZE];
    char constants[WPK_FORMAT_SIZE];

    if (finding->roofline_ns[WPK_CONDITIONS_WARM] <= 0) {
        return;
    }
    for (int c = 0; c < WPK_CONDITIONS_COUNT; c++) {
        wpk_format_ns((uint64_t)llround(fmax(finding->roofline_ns[c], 1)), times[c]);
    }
    wpk_format_count(finding->cost.bytes_constants, constants);
    printf("  roofline     %s warm, %s with cold constants (%sB), %s cold, on %d core%s of this "
           "machine, with as many operations\n",
           times[WPK_CONDITIONS_WARM], times[WPK_CONDITIONS_COLD_CONSTANTS], constants,
           times[WPK_CONDITIONS_COLD], check->job.threads, check->job.threads == 1 ? "" : "s");
}

static void print_unseen(const struct finding *finding)
{
    const char *text = wpk_buf_text(&finding->unseen);

    if (!finding->unseen_known) {
        printf("  unseen       not known: %s\n", text);
    } else if (text[0] != '\0') {
        printf("  unseen       %s: no inputs show these faults of a stage to verification\n", text);
    } else {
        puts("  unseen       none: verification shows each fault of every stage");
    }
}

static void print_finding(const struct check *check, const char *name,
                          const struct finding *finding)
{
    char flops[WPK_FORMAT_SIZE];
    char bytes[WPK_FORMAT_SIZE];

    wpk_format_count(finding->cost.flops, flops);
    wpk_format_count(finding->cost.bytes_min, bytes);
    printf("%s\n  notation     %s\n  fingerprint  %s\n", name, wpk_buf_text(&finding->notation),
           finding->fingerprint.exact);
    printf("  work         %sFLOP, %sB at least, %.1f FLOP/B\n", flops, bytes,
           finding->cost.flops / finding->cost.bytes_min);
    if (finding->instruction >= 0) {
        const struct wpk_instruction *instruction = wpk_instruction_at(finding->instruction);
        char flags[WPK_CPU_FLAGS_TEXT_MAX];
        wpk_cpu_flags_print(instruction->flags, flags);
        printf("  instruction  %s, on CPUs with %s: adds %d terms at a time\n", instruction->name,
               flags, instruction->terms);
    }
    print_rooflines(check, finding);
    printf("  space        about 10^%.1f candidates in %d variants of algorithm and layout\n",
           finding->space_size_log2 * log10(2), finding->variant_count);
    print_unseen(finding);
}

static void put_roofline(struct wpk_json_writer *writer, const char *key, double ns)
{
    if (ns > 0) {
        wpk_json_put_real(writer, key, ns);
    } else {
        wpk_json_put_null(writer, key);
    }
}

static void put_finding(struct wpk_json_writer *writer, const char *name,
                        const struct finding *finding)
{
    wpk_json_begin_object(writer, NULL);
    wpk_json_put_text(writer, "name", name);
    wpk_json_put_text(writer, "notation", wpk_buf_text(&finding->notation));
    wpk_json_put_text(writer, "fingerprint", finding->fingerprint.exact);
    wpk_json_put_text(writer, "family", finding->fingerprint.family);
    wpk_json_put_real(writer, "flops", finding->cost.flops);
    wpk_json_put_real(writer, "bytes", finding->cost.bytes_min);
    wpk_json_put_real(writer, "constants_bytes", finding->cost.bytes_constants);
    wpk_json_put_text(writer, "instruction",
                      finding->instruction >= 0 ? wpk_instruction_at(finding->instruction)->name
                                                : "");
    put_roofline(writer, "roofline_ns", finding->roofline_ns[WPK_CONDITIONS_WARM]);
    put_roofline(writer, "roofline_cold_constants_ns",
                 finding->roofline_ns[WPK_CONDITIONS_COLD_CONSTANTS]);
    put_roofline(writer, "roofline_cold_ns", finding->roofline_ns[WPK_CONDITIONS_COLD]);
    wpk_json_put_real(writer, "space_size_log2", finding->space_size_log2);
    wpk_json_put_int(writer, "variants", finding->variant_count);
    if (finding->unseen_known) {
        wpk_json_put_text(writer, "unseen", wpk_buf_text(&finding->unseen));
    } else {
        wpk_json_put_null(writer, "unseen");
    }
    wpk_json_end(writer);
}

static wpk_err check_ops(const struct check *check, struct wpk_diag *diag)
{
    struct wpk_json_writer *writer = check->json ? wpk_json_writer_new_object() : NULL;
    wpk_err err = WPK_OK;

    wpk_json_begin_array(writer, "ops");
    for (int i = 0; err == WPK_OK && i < check->job.op_count; i++) {
        struct finding finding = {0};
        err = look(check, i, &finding, diag);
        if (err == WPK_OK && check->json) {
            put_finding(writer, check->job.ops[i].name, &finding);
        } else if (err == WPK_OK) {
            print_finding(check, check->job.ops[i].name, &finding);
        }
        wpk_buf_fini(&finding.notation);
        wpk_buf_fini(&finding.unseen);
    }
    wpk_json_end(writer);
    if (check->worker_count >= 0) {
        wpk_json_put_int(writer, "workers", check->worker_count);
    }
    if (err == WPK_OK && check->json) {
        return wpk_json_puts(writer, true);
    }
    wpk_json_writer_free(writer);
    return err;
}

static void print_workers(const struct check *check)
{
    if (check->worker_count == 0 && !check->json) {
        printf("no worker of kind %s is ready: the job would wait for one\n", check->job.kind);
    } else if (check->worker_count > 0 && !check->json) {
        printf("ready workers of kind %s: %d\n", check->job.kind, check->worker_count);
    }
}

enum wpk_exit wpk_command_check(struct wpk_invocation *call)
{
    static struct check check;
    static struct wpk_check_model model;
    bool no_peak = false;
    const struct wpk_option options[] = {
        WPK_ARGS_FLAG("no-roofline", "do not measure this machine (a tenth of a second)", &no_peak),
        WPK_ARGS_FLAG("no-faults", "do not look for faults that verification would not see",
                      &check.no_faults),
        WPK_SESSION_OPTION_ROWS(check.session),
        WPK_MODEL_FIXING_OPTION_ROWS(model.fixing),
        WPK_ARGS_FLAG("expand", "print the equations of a model's nodes", &model.expand),
        WPK_ARGS_INT("calls", "N", "tell the service of runs of a model that had no plan",
                     &model.missed_calls, 0, 1000000000),
        WPK_ARGS_INT("time-ns", "NS", "of these runs together", &model.missed_ns, 0,
                     WPK_JSON_INT_MAX),
        WPK_ARGS_FLAG("json", "as JSON", &check.json),
        WPK_ARGS_END,
    };
    struct wpk_peak peak;

    check.tmp_dir = call->context->tmp_dir;
    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    if (wpk_model_file_is_onnx(call->args.operands[0])) {
        bool asks = check.session.given.server != NULL || check.session.data_dir != NULL;
        check.session.need = WPK_SESSION_HISTORY;
        model.json = check.json;
        model.no_peak = no_peak;
        model.history = asks ? &check.session : NULL;
        return wpk_command_end(
            call, wpk_check_model(call->context, call->args.operands[0], &model, &call->diag));
    }
    wpk_err err = wpk_job_file_read(call->args.operands[0], &check.job, &call->diag);
    err = err == WPK_OK ? wpk_job_space_device(&check.job, &check.device, &call->diag) : err;
    if (err == WPK_OK && !no_peak && !wpk_device_is_cuda(&check.device) &&
        wpk_peak_measure(&peak) == WPK_OK) {
        check.roofline = (struct wpk_roofline){peak.flops_per_s, peak.bytes_per_s};
    }
    check.worker_count = -1;
    if (err == WPK_OK && (check.session.given.server != NULL || check.session.data_dir != NULL)) {
        check.session.need = WPK_SESSION_RUNNING;
        err = count_workers(call->context, &check.session, check.job.kind, &check.worker_count,
                            &call->diag);
        print_workers(&check);
    }
    if (err == WPK_OK) {
        err = check_ops(&check, &call->diag);
        if (err != WPK_OK && call->diag.file[0] == '\0') {
            snprintf(call->diag.file, sizeof(call->diag.file), "%s", call->args.operands[0]);
        }
    }
    wpk_job_fini(&check.job);
    return wpk_command_end(call, err);
}
