/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/verify/answers.h"

#include "common/rng.h"
#include "ir/cost.h"
#include "ir/infinite.h"
#include "ir/reference/direct.h"
#include "ir/reference/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BORDER 2       /* coordinates from each end that count as border */
#define BORDER_EVERY 8 /* of so many points one lies near a border */
/* Iterations of a winner's fresh set: a second or two, of the ten that a candidate has. */
#define FRESH_ITERATIONS_MAX 2e8
/* Iterations and elements of all draws of a set: some 10 ms of every candidate's time. */
#define DRAWS_WORK_MAX 2e6
/* Smaller ones are no larger than what the integer set has. */
#define LARGE_LEAST 16.0

/* The first points are the two corners, then each dimension's first and last index with the rest
 * drawn; of the others some lie near a border: there tails and padding go wrong. Errors are not
 * those of the whole output there, where fewer terms are summed. */
static bool is_chosen(int64_t p, int rank)
{
    return p < 2 * (rank + 1) || p % BORDER_EVERY == 0;
}

bool wpk_answers_count(const struct wpk_answers *answers, int64_t index)
{
    return answers->whole || !is_chosen(index, answers->rank);
}

static void draw_points(const struct wpk_tensor *output, uint64_t seed, int64_t count,
                        int64_t *points)
{
    struct wpk_rng rng;
    wpk_rng_seed(&rng, seed ^ UINT64_C(0x706f696e7473));
    for (int64_t p = 0; p < count; p++) {
        for (int d = 0; d < output->rank; d++) {
            int64_t extent = output->extent[d];
            int64_t at = wpk_rng_between(&rng, 0, extent - 1);
            if (p < 2 || p / 2 == d + 1) {
                at = p % 2 == 0 ? 0 : extent - 1;
            } else if (is_chosen(p, output->rank) && wpk_rng_chance(&rng, 0.5)) {
                int64_t depth = wpk_rng_between(&rng, 0, BORDER < extent ? BORDER - 1 : extent - 1);
                at = wpk_rng_chance(&rng, 0.5) ? depth : extent - 1 - depth;
            }
            *points++ = at;
        }
    }
}

struct wpk_input_options wpk_answers_inputs(const struct wpk_answers *answers, int draw)
{
    struct wpk_input_options options = answers->inputs;
    options.seed += (uint64_t)draw << 32; /* the sets' own seeds are numbered from 0 */
    return options;
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool is_special_alike(double direct, double value, double largest)
{
    bool beyond = fabs(value) > largest;
    bool close = fabs(direct - value) <= 0x1p-10 * fabs(value);
    return is_same(direct, value) || (isfinite(value) && !beyond && isfinite(direct) && close) ||
           (beyond && isinf(direct) && (direct > 0) == (value > 0));
}

/* Leave out the points whose special values are not those of direct evaluation, and give the others
 * a magnitude that is a number. */
static void mark_special(const struct wpk_program *program, int64_t count, const double *direct,
                         const double *value, double *magnitude)
{
    double largest = wpk_accuracy_largest(program->tensors[wpk_program_output(program)].dtype);
    for (int64_t i = 0; i < count; i++) {
        if (!is_special_alike(direct[i], value[i], largest)) {
            magnitude[i] = -1;
        } else if (!isfinite(magnitude[i])) {
            magnitude[i] = isfinite(value[i]) ? fabs(value[i]) : 0;
        }
    }
}

/* Direct evaluation's error on one draw, with its answers; clears answers->exact if it has any. */
static wpk_err evaluate_directly(const struct wpk_program *program,
                                 const struct wpk_reference_args *args, struct wpk_answers *answers,
                                 int draw, struct wpk_accuracy_sums *sums, struct wpk_diag *diag)
{
    double *direct = malloc((size_t)answers->count * sizeof *direct + 1);
    if (direct == NULL) {
        return WPK_ENOMEM;
    }
    uint64_t set = wpk_answers_inputs(answers, draw).seed;
    const double *value = answers->value + draw * answers->count;
    const double *magnitude = answers->magnitude + draw * answers->count;
    wpk_err err = answers->whole ? wpk_direct_run(program, args, set, direct, diag)
                                 : wpk_direct_run_at(program, args, set, answers->points,
                                                     answers->count, direct, diag);
    if (err == WPK_OK && answers->inputs.kind == WPK_INPUT_SPECIAL) {
        mark_special(program, answers->count, direct, value,
                     (double *)answers->magnitude + draw * answers->count);
    }
    for (int64_t i = 0; i < answers->count && err == WPK_OK; i++) {
        answers->exact = answers->exact && (magnitude[i] < 0 || is_same(direct[i], value[i]));
        if (wpk_answers_count(answers, i)) {
            wpk_accuracy_add(sums, direct + i, value + i, magnitude + i, 1);
        }
    }
    free(direct);
    return err;
}

static wpk_err evaluate(const struct wpk_program *program, struct wpk_answers *answers, int draw,
                        struct wpk_accuracy_sums *sums, struct wpk_diag *diag)
{
    struct wpk_inputs inputs = {0};
    struct wpk_reference_args args = {.tensor = {NULL}};
    const struct wpk_input_options options = wpk_answers_inputs(answers, draw);
    wpk_err err = wpk_inputs_make(program, &options, &inputs);
    err = err == WPK_OK ? wpk_inputs_widen(program, &inputs) : err;
    for (int i = 0; i < program->tensor_count; i++) {
        args.tensor[i] = inputs.wide[i];
    }
    if (err == WPK_OK) {
        double *value = (double *)answers->value + draw * answers->count;
        double *magnitude = (double *)answers->magnitude + draw * answers->count;
        err = answers->whole ? wpk_reference_run(program, &args, value, magnitude, diag)
                             : wpk_reference_run_at(program, &args, answers->points, answers->count,
                                                    value, magnitude, diag);
        /* A value beyond the output's type counts in no error, like one beside a step. */
        int64_t count = answers->count;
        double largest = wpk_accuracy_largest(program->tensors[wpk_program_output(program)].dtype);
        for (int64_t i = 0; i < count; i++) {
            bool beyond = isfinite(value[i]) && fabs(value[i]) > largest && magnitude[i] >= 0;
            magnitude[i] = beyond ? fmax(magnitude[i], WPK_REFERENCE_STEP) : magnitude[i];
        }
        err = err == WPK_OK ? evaluate_directly(program, &args, answers, draw, sums, diag) : err;
    }
    wpk_inputs_fini(&inputs);
    return err;
}

/* Then direct evaluation is as precise as the reference: that both agree says nothing. */
static bool has_doubles(const struct wpk_program *program)
{
    bool has = false;
    for (int i = 0; i < program->node_count; i++) {
        has = has || program->nodes[i].dtype == WPK_F64;
    }
    return has;
}

/* All draws, and direct evaluation's error on them. */
static wpk_err evaluate_all(const struct wpk_program *program, struct wpk_answers *answers,
                            struct wpk_diag *diag)
{
    struct wpk_accuracy_sums sums = {0};
    wpk_err err = WPK_OK;
    answers->exact = !has_doubles(program);
    for (int draw = 0; draw < answers->draws && err == WPK_OK; draw++) {
        err = evaluate(program, answers, draw, &sums, diag);
    }
    answers->direct_error = wpk_accuracy_error(&sums);
    return err;
}

/* An output that may be infinite holds infinities, and a masked row may be no number. */
static bool all_defined(const struct wpk_program *program, const struct wpk_answers *answers)
{
    struct wpk_infinite infinite;
    wpk_infinite_find(program, &infinite);
    bool masked = answers->inputs.kind == WPK_INPUT_MASKED;
    bool writes = infinite.tensor[wpk_program_output(program)];
    int64_t count = answers->draws * answers->count;
    int64_t nan_count = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = answers->value[i];
        bool number = isfinite(value) && isfinite(answers->magnitude[i]);
        bool infinite_here = isinf(value) && (writes || (masked && value < 0));
        if (!number && !infinite_here && !(answers->inputs.rows && isnan(value))) {
            return false;
        }
        nan_count += isnan(value);
    }
    return 2 * nan_count <= count;
}

static void fill_head(const struct wpk_program *program, struct wpk_answers *answers)
{
    answers->magnitude_max = 0;
    for (int64_t i = 0; i < answers->draws * answers->count; i++) {
        if (answers->magnitude[i] < WPK_REFERENCE_STEP) {
            answers->magnitude_max = fmax(answers->magnitude_max, answers->magnitude[i]);
        }
    }
    if (answers->inputs.kind == WPK_INPUT_INTEGERS || answers->inputs.kind == WPK_INPUT_LARGE) {
        answers->exact = answers->magnitude_max < wpk_inputs_exact_below(program);
    }
    *(struct wpk_answers_head *)answers->block = (struct wpk_answers_head){
        .magic = WPK_ANSWERS_MAGIC,
        .seed = answers->inputs.seed,
        .constants_seed = answers->inputs.constants_seed,
        .count = answers->count,
        .magnitude_max = answers->magnitude_max,
        .direct_error = answers->direct_error,
        .large = answers->inputs.large,
        .rank = answers->rank,
        .draws = answers->draws,
        .kind = (uint8_t)answers->inputs.kind,
        .domain = (uint8_t)answers->inputs.domain,
        .whole = answers->whole,
        .exact = answers->exact,
        .rows = answers->inputs.rows,
    };
}

static bool fits_whole(const struct wpk_program *program)
{
    struct wpk_cost cost;
    wpk_cost(program, &cost);
    return cost.iterations <= (double)WPK_REFERENCE_WHOLE_MAX &&
           cost.elements <= (double)WPK_REFERENCE_WHOLE_ELEMENTS_MAX;
}

/* Memory for the answers at `count` points. */
static wpk_err make_block(struct wpk_answers *answers, bool whole, int64_t count)
{
    answers->whole = whole;
    answers->count = count;
    answers->block_size = wpk_answers_block_size(whole, answers->rank, count, answers->draws);
    answers->block = malloc(answers->block_size);
    if (answers->block == NULL) {
        return WPK_ENOMEM;
    }
    wpk_answers_point_into(answers);
    return WPK_OK;
}

/* Memory for the answers, with the points in it, as many as are not too much work. */
static wpk_err choose_points(const struct wpk_program *program, const struct wpk_tensor *output,
                             int64_t count, double iterations_max, struct wpk_answers *answers,
                             struct wpk_diag *diag)
{
    size_t point_size = (size_t)output->rank * sizeof(int64_t);
    int64_t *points = malloc((size_t)count * point_size + 1);
    if (points == NULL) {
        return WPK_ENOMEM;
    }
    draw_points(output, answers->inputs.seed, count, points);
    wpk_err err =
        wpk_reference_points_within(program, points, count, iterations_max, &answers->count, diag);
    if (err == WPK_OK && answers->count == 0) {
        err = wpk_fail(diag, WPK_EUNSUPPORTED, "one point takes more than %.0f iterations",
                       iterations_max);
    }
    err = err == WPK_OK ? make_block(answers, false, answers->count) : err;
    if (err == WPK_OK) {
        memcpy((int64_t *)answers->points, points, (size_t)answers->count * point_size);
    }
    free(points);
    return err;
}

static wpk_err evaluate_defined(const struct wpk_program *program, struct wpk_answers *answers,
                                struct wpk_diag *diag)
{
    wpk_err err = evaluate_all(program, answers, diag);
    if (err != WPK_OK || all_defined(program, answers)) {
        return err;
    }
    bool defined = false;
    for (int d = 1; d < WPK_DRAW_DOMAINS && err == WPK_OK && !defined; d++) {
        answers->inputs.domain = (enum wpk_draw_domain)d;
        err = evaluate_all(program, answers, diag);
        defined = err == WPK_OK && all_defined(program, answers);
    }
    if (err == WPK_OK && !defined) {
        err = wpk_fail(diag, WPK_EUNSUPPORTED,
                       "the operator's values are not finite on inputs of any domain");
    }
    return err;
}

/* Evaluate special values. Direct evaluation decides which points are compared: it overflows, or
 * underflows, where the reference does not. The few points that are left out have magnitude -1.
 */
static wpk_err evaluate_special(const struct wpk_program *program, struct wpk_answers *answers,
                                struct wpk_diag *diag)
{
    int64_t compared = 0;
    wpk_err err = evaluate_all(program, answers, diag);
    for (int64_t i = 0; i < answers->draws * answers->count; i++) {
        compared += answers->magnitude[i] >= 0;
    }
    return err != WPK_OK ? err : compared > 0 ? WPK_OK : WPK_EUNSUPPORTED;
}

/* With whole rows masked if that is defined. */
static wpk_err evaluate_masked(const struct wpk_program *program, struct wpk_answers *answers,
                               struct wpk_diag *diag)
{
    struct wpk_infinite infinite;
    wpk_infinite_find(program, &infinite);
    if (infinite.rows) {
        answers->inputs.rows = true;
        wpk_err err = evaluate_all(program, answers, diag);
        if (err != WPK_OK || all_defined(program, answers)) {
            return err;
        }
        answers->inputs.rows = false;
    }
    return evaluate_defined(program, answers, diag);
}

/* Draw smaller integers until their sums are exact, at last positive ones. Most sums are of
 * products of two. */
static wpk_err evaluate_large(const struct wpk_program *program, struct wpk_answers *answers,
                              struct wpk_diag *diag)
{
    const double below = wpk_inputs_exact_below(program);
    bool given = answers->inputs.large > 0;
    double large = given ? answers->inputs.large : below / 2;
    for (;;) {
        answers->inputs.large = large;
        wpk_err err = evaluate_all(program, answers, diag);
        if (err != WPK_OK) {
            return err;
        }
        bool defined = all_defined(program, answers);
        /* The largest sum, or value where a step hides it. */
        double most = 0;
        for (int64_t i = 0; i < answers->count; i++) {
            double magnitude = answers->magnitude[i];
            most = fmax(most, magnitude < WPK_REFERENCE_STEP ? magnitude : fabs(answers->value[i]));
        }
        if (defined && (given || most < below)) {
            return WPK_OK;
        }
        bool least = large <= LARGE_LEAST;
        if (given || (least && answers->inputs.domain != WPK_DRAW_ANY)) {
            return WPK_EUNSUPPORTED;
        }
        answers->inputs.domain = least ? WPK_DRAW_POSITIVE : answers->inputs.domain;
        double step = defined ? fmin(0.5, 0.9 * sqrt(below / most)) : 1.0 / 16;
        large = least ? below / 2 : fmax(LARGE_LEAST, floor(large * step));
    }
}

/* Only the head. */
static wpk_err make_none(struct wpk_answers *answers)
{
    free(answers->block);
    return make_block(answers, false, 0);
}

static wpk_err choose(const struct wpk_program *program, const struct wpk_tensor *output,
                      int64_t sample_count, struct wpk_answers *answers, struct wpk_diag *diag)
{
    struct wpk_cost cost;
    wpk_cost(program, &cost);
    int64_t elements = wpk_tensor_elements(output);
    bool few = elements <= sample_count; /* drawn, they would repeat themselves */
    if (few && cost.iterations <= FRESH_ITERATIONS_MAX) {
        return make_block(answers, true, elements);
    }
    if (sample_count > 0) {
        return choose_points(program, output, sample_count, FRESH_ITERATIONS_MAX, answers, diag);
    }
    return fits_whole(program) ? make_block(answers, true, elements)
                               : choose_points(program, output, WPK_ANSWERS_SAMPLE_COUNT,
                                               (double)WPK_REFERENCE_WHOLE_MAX, answers, diag);
}

wpk_err wpk_answers_make(const struct wpk_program *program, const struct wpk_input_options *inputs,
                         int64_t sample_count, struct wpk_answers *out, struct wpk_diag *diag)
{
    int tensor = wpk_program_output(program);
    WPK_ASSERT(tensor >= 0);
    const struct wpk_tensor *output = &program->tensors[tensor];
    struct wpk_answers answers = {.inputs = *inputs, .rank = output->rank, .draws = 1};
    bool optional = inputs->kind != WPK_INPUT_INTEGERS && inputs->kind != WPK_INPUT_REALS;
    wpk_err err = WPK_OK;
    if (optional && !wpk_inputs_differ(program, inputs->kind)) {
        err = make_none(&answers);
    } else {
        err = choose(program, output, sample_count, &answers, diag);
        err = err != WPK_OK                       ? err
              : inputs->kind == WPK_INPUT_LARGE   ? evaluate_large(program, &answers, diag)
              : inputs->kind == WPK_INPUT_SPECIAL ? evaluate_special(program, &answers, diag)
              : inputs->kind == WPK_INPUT_MASKED  ? evaluate_masked(program, &answers, diag)
                                                  : evaluate_defined(program, &answers, diag);
        err = err == WPK_EUNSUPPORTED && optional ? make_none(&answers) : err;
    }
    if (err != WPK_OK) {
        wpk_answers_fini(&answers);
        return err;
    }
    fill_head(program, &answers);
    *out = answers;
    return WPK_OK;
}

wpk_err wpk_answers_draw_more(const struct wpk_program *program, struct wpk_answers *answers,
                              struct wpk_diag *diag)
{
    struct wpk_answers more = *answers;
    bool special = answers->inputs.kind == WPK_INPUT_SPECIAL;
    if (!answers->whole || answers->count == 0 || (answers->direct_error == 0 && !special)) {
        return WPK_OK;
    }
    /* How many draws make as many values as an error needs, or as many as there is time for. */
    struct wpk_cost cost;
    int64_t wanted = (WPK_ACCURACY_POINTS_MIN + answers->count - 1) / answers->count;
    wpk_cost(program, &cost);
    double affordable = DRAWS_WORK_MAX / (cost.iterations + cost.elements);
    more.draws = (double)wanted <= affordable ? (int)wanted : (int)affordable;
    if (more.draws < 2) {
        return WPK_OK;
    }
    wpk_err err = make_block(&more, true, more.count);
    if (err != WPK_OK) {
        return err;
    }
    err = evaluate_all(program, &more, diag);
    if (err != WPK_OK || !(special || all_defined(program, &more))) {
        free(more.block);
        return err; /* some other draw is undefined: the first one has to do */
    }
    fill_head(program, &more);
    wpk_answers_fini(answers);
    *answers = more;
    return WPK_OK;
}

void wpk_answers_note(struct wpk_answers *answers, const uint8_t *seen)
{
    struct wpk_answers_head *head = answers->block;
    memcpy(answers->seen, seen, sizeof(answers->seen));
    memcpy(head->seen, seen, sizeof(head->seen));
}

void wpk_answers_fini(struct wpk_answers *answers)
{
    if (answers == NULL) {
        return;
    }
    if (answers->mapped) {
        munmap(answers->block, answers->block_size);
    } else {
        free(answers->block);
    }
    *answers = (struct wpk_answers){0};
}
