/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/runner_ops.h"

#include "common/rng.h"
#include "ir/derive/derive.h"
#include "ir/reference/reference.h"
#include "worker/verify/verify.h"

#include <stdio.h>
#include <stdlib.h>

#define POINTS_MAX 512
#define ITERATIONS_MAX 3e7 /* of one fault on one set: tens of milliseconds */

/* Some compared points of a set, and their inputs. */
struct probe {
    const struct wpk_program *op;
    const struct wpk_answers *answers;
    struct wpk_inputs inputs;
    struct wpk_reference_args args;
    int64_t count;
    int64_t at[POINTS_MAX]; /* index into the answers */
    int64_t points[POINTS_MAX * WPK_RANK_MAX];
};

/* The first and the last of the answers, and others between them. */
static void choose_points(struct probe *probe)
{
    const struct wpk_answers *answers = probe->answers;
    const struct wpk_tensor *output = &probe->op->tensors[wpk_program_output(probe->op)];
    struct wpk_rng rng;
    wpk_rng_seed(&rng, answers->inputs.seed);
    probe->count = answers->count < POINTS_MAX ? answers->count : POINTS_MAX;
    for (int64_t i = 0; i < probe->count; i++) {
        int64_t at = answers->count <= POINTS_MAX || !answers->whole || i == 0 ? i
                     : i == 1                                                  ? answers->count - 1
                              : wpk_rng_between(&rng, 0, answers->count - 1);
        int64_t *point = probe->points + i * output->rank;
        probe->at[i] = at;
        for (int d = output->rank - 1; d >= 0; d--) {
            point[d] = answers->whole ? at % output->extent[d]
                                      : answers->points[probe->at[i] * output->rank + d];
            at /= output->extent[d];
        }
    }
}

/* *out: the faulty program's output is wrong by far at some point. */
static wpk_err shows(const struct probe *probe, const struct wpk_program *faulty, bool *out)
{
    const struct wpk_verify_rule rule = {.times = WPK_VERIFY_TIMES};
    double value[POINTS_MAX];
    int64_t count = 0;
    wpk_err err = wpk_reference_points_within(faulty, probe->points, probe->count, ITERATIONS_MAX,
                                              &count, NULL);
    if (err == WPK_OK) {
        err = wpk_reference_run_at(faulty, &probe->args, probe->points, count, value, NULL, NULL);
    }
    *out = false;
    for (int64_t i = 0; i < count && err == WPK_OK && !*out; i++) {
        double ratio = wpk_verify_ratio(probe->op, probe->answers, &rule, probe->at[i], value[i]);
        *out = ratio > WPK_FAULTS_CLEAR;
    }
    return err == WPK_EUNSUPPORTED ? WPK_OK : err;
}

/* *out: the set of inputs shows the fault in all of its variants. */
static wpk_err look_for(const struct probe *probe, int stage, enum wpk_fault fault, bool *out)
{
    bool shown = true;
    int count = 0;
    wpk_err err = WPK_OK;
    for (int axis = 0; axis < WPK_RANK_MAX && shown && err == WPK_OK; axis++) {
        struct wpk_program faulty;
        if (wpk_fault_make(probe->op, stage, fault, axis, &faulty) == WPK_OK) {
            err = shows(probe, &faulty, &shown);
            wpk_program_fini(&faulty);
            count++;
        }
    }
    *out = shown && count > 0;
    return err;
}

static bool can_have(const struct wpk_program *op, int stage, enum wpk_fault fault)
{
    bool has = false;
    for (int axis = 0; axis < WPK_RANK_MAX && !has; axis++) {
        struct wpk_program faulty;
        has = wpk_fault_make(op, stage, fault, axis, &faulty) == WPK_OK;
        if (has) {
            wpk_program_fini(&faulty);
        }
    }
    return has;
}

/* Add the faults that the answers of one output show to `seen`. */
static wpk_err look_at(const struct wpk_program *op, const struct wpk_answers *answers,
                       uint8_t *seen)
{
    wpk_err err = WPK_OK;
    if (answers->count == 0) {
        return WPK_OK;
    }
    struct probe *probe = calloc(1, sizeof(*probe));
    if (probe == NULL) {
        return WPK_ENOMEM;
    }
    probe->op = op;
    probe->answers = answers;
    err = wpk_inputs_make(op, &answers->inputs, &probe->inputs);
    err = err == WPK_OK ? wpk_inputs_widen(op, &probe->inputs) : err;
    for (int t = 0; t < op->tensor_count; t++) {
        probe->args.tensor[t] = probe->inputs.wide[t];
    }
    choose_points(probe);
    for (int s = 0; s < op->stage_count && err == WPK_OK; s++) {
        for (int f = 0; f < WPK_FAULT_COUNT && err == WPK_OK; f++) {
            bool shown = false;
            if ((seen[s] >> f & 1) == 0) {
                err = look_for(probe, s, (enum wpk_fault)f, &shown);
                seen[s] |= (uint8_t)(shown << f);
            }
        }
    }
    wpk_inputs_fini(&probe->inputs);
    free(probe);
    return err;
}

/* An output that has no answers on such a set shows no fault. */
static wpk_err look_at_view(const struct wpk_program *op, int output,
                            const struct wpk_answers *first, uint8_t *seen)
{
    struct wpk_program view = {0};
    struct wpk_answers answers = {0};
    wpk_err err = wpk_program_view(op, output, &view);
    err = err == WPK_OK ? wpk_answers_make(&view, &first->inputs, POINTS_MAX, &answers, NULL) : err;
    err = err == WPK_OK ? look_at(&view, &answers, seen) : err;
    wpk_answers_fini(&answers);
    wpk_program_fini(&view);
    return err == WPK_EUNSUPPORTED ? WPK_OK : err;
}

wpk_err wpk_faults_look(const struct wpk_program *op, struct wpk_answers *answers)
{
    uint8_t seen[WPK_STAGES_MAX] = {0};
    wpk_err err = look_at(op, answers, seen);
    for (int t = 0; t < op->tensor_count && err == WPK_OK; t++) {
        if (op->tensors[t].role == WPK_ROLE_OUTPUT && t != wpk_program_output(op)) {
            err = look_at_view(op, t, answers, seen);
        }
    }
    if (err == WPK_OK) {
        wpk_answers_note(answers, seen);
    }
    return err;
}

bool wpk_faults_ask_for(const struct wpk_program *op, const struct wpk_answers *answers,
                        enum wpk_input_kind kind)
{
    char unseen[WPK_FAULTS_TEXT_MAX] = "";
    if (kind >= WPK_INPUT_JOINING) {
        wpk_faults_unseen(op, answers, (int)kind, unseen);
    }
    return kind < WPK_INPUT_JOINING || unseen[0] != '\0';
}

void wpk_faults_unseen(const struct wpk_program *op, const struct wpk_answers *answers,
                       int set_count, char *out)
{
    size_t used = 0;
    out[0] = '\0';
    for (int s = 0; s < op->stage_count; s++) {
        uint8_t seen = 0;
        for (int k = 0; k < set_count; k++) {
            seen |= answers[k].count > 0 ? answers[k].seen[s] : 0;
        }
        for (int f = 0; f < WPK_FAULT_COUNT; f++) {
            if ((seen >> f & 1) != 0 || !can_have(op, s, (enum wpk_fault)f)) {
                continue;
            }
            used += (size_t)snprintf(out + used, WPK_FAULTS_TEXT_MAX - used, "%s%s: %s",
                                     used > 0 ? "; " : "", op->tensors[op->stages[s].output].name,
                                     wpk_fault_name((enum wpk_fault)f));
            if (used >= WPK_FAULTS_TEXT_MAX) {
                return;
            }
        }
    }
}

wpk_err wpk_faults_find(const struct wpk_program *op, uint64_t seed, int64_t sample_count,
                        int set_count, char *out, struct wpk_diag *diag)
{
    struct wpk_answers answers[WPK_INPUT_KINDS] = {0};
    wpk_err err = WPK_OK;
    WPK_ASSERT(set_count <= WPK_INPUT_KINDS);
    for (int k = 0; k < set_count && err == WPK_OK; k++) {
        const struct wpk_input_options inputs = {
            .kind = (enum wpk_input_kind)k, .seed = seed + (uint64_t)k, .constants_seed = seed};
        if (!wpk_faults_ask_for(op, answers, inputs.kind)) {
            continue;
        }
        err = wpk_answers_make(op, &inputs, sample_count, &answers[k], diag);
        err = err == WPK_OK ? wpk_faults_look(op, &answers[k]) : err;
    }
    if (err == WPK_OK) {
        wpk_faults_unseen(op, answers, set_count, out);
    }
    for (int k = 0; k < set_count; k++) {
        wpk_answers_fini(&answers[k]);
    }
    return err;
}
