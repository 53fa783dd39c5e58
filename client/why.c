/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl why: why a search chose its winner: what was tried, what each gene is worth, what limits
 * the kernel, and how sure the choice is. Everything that is said of genes was measured. */
#include "client/command.h"
#include "client/find.h"
#include "client/output.h"
#include "client/trial_list.h"
#include "common/format.h"
#include "common/json.h"
#include "search/candidate_nest.h"
#include "search/feature.h"
#include "search/worth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KINDS_MAX 64 /* outcomes, and algorithms */
#define MEDIAN_SCATTER 0.59
#define FINAL_DIFFERS 0.02 /* below it two times of a kernel are one */

/* How many trials ended in one way, or were of one algorithm, and the best of these. */
struct kind {
    char name[WPK_ALGORITHM_MAX];
    int count, timed;
    double best; /* relative to the winner; +inf: none was timed */
};

struct why {
    const struct wpk_trial_list *list;
    const struct wpk_api_trial *winner;
    struct kind outcome[KINDS_MAX], algorithm[KINDS_MAX];
    int outcomes, algorithms;
    double final_ns;        /* of the winner beside the other finalists, as tables show it */
    struct wpk_worth worth; /* of times by the winner's */
    double bound_s, computing_s, moving_s; /* predicted; 0: unknown */
    double peak_share;                     /* of the device's peak; 0: unknown */
    double surely;                         /* probability that the winner is the fastest tried */
    int rivals;                            /* within the noise of it */
    double rival_most;                     /* time of the slowest of them, 1: the winner's */
    bool modelled;                         /* the device is emulated */
};

static double relative(const struct why *why, const struct wpk_api_trial *trial)
{
    bool ratios = trial->ratio > 0 && why->winner->ratio > 0;
    return ratios ? trial->ratio / why->winner->ratio : trial->median_ns / why->winner->median_ns;
}

static void add_kind(struct kind *kinds, int *count, const char *name, bool timed, double time)
{
    int at = 0;
    while (at < *count && strcmp(kinds[at].name, name) != 0) {
        at++;
    }
    if (at == KINDS_MAX) {
        return;
    }
    if (at == *count) {
        snprintf(kinds[at].name, sizeof(kinds[at].name), "%s", name);
        kinds[at].best = HUGE_VAL;
        (*count)++;
    }
    kinds[at].count++;
    kinds[at].timed += timed;
    kinds[at].best = timed ? fmin(kinds[at].best, time) : kinds[at].best;
}

static void count_kinds(struct why *why)
{
    for (int i = 0; i < why->list->count; i++) {
        const struct wpk_api_trial *one = &why->list->trial[i];
        char algorithm[WPK_ALGORITHM_MAX];
        bool timed = wpk_trial_is_timed(one);
        if (one->index < 0) {
            continue;
        }
        bool raced = one->censored && strcmp(one->outcome, "ok") == 0;
        add_kind(why->outcome, &why->outcomes, raced ? "raced out" : one->outcome, timed,
                 timed ? relative(why, one) : 0);
        wpk_trial_gene(one->candidate, "algorithm", algorithm, sizeof(algorithm));
        if (algorithm[0] != '\0') {
            add_kind(why->algorithm, &why->algorithms, algorithm, timed,
                     timed ? relative(why, one) : 0);
        }
    }
}

/* ---- genes */

static void judge_genes(struct why *why)
{
    for (int i = 0; i < why->list->count; i++) {
        const struct wpk_api_trial *one = &why->list->trial[i];
        if (one->index >= 0 && wpk_trial_is_timed(one)) {
            wpk_worth_add(&why->worth, one->candidate, relative(why, one), true);
        }
    }
    wpk_worth_finish(&why->worth);
}

/* The best value of a gene but the winner's own; NULL: the winner has no such gene, or no other
 * value was timed. */
static const struct wpk_worth_value *find_other(const struct why *why,
                                                const struct wpk_worth_gene *gene, char own[256])
{
    wpk_trial_gene(why->winner->candidate, gene->name, own, 256);
    int at = gene->value_count > 1 && strcmp(gene->values[0].text, own) == 0;
    return own[0] != '\0' && strcmp(gene->values[at].text, own) != 0 ? &gene->values[at] : NULL;
}

/* ---- limits */

/* Fill in the winner's predicted seconds by the target's rules: of arithmetic, and of traffic
 * between caches. They stay 0 if this program's space has another version than the trial's. */
static void find_limits(struct why *why, const struct wpk_api_kernel *kernel)
{
    struct wpk_space space = {0};
    struct wpk_candidate candidate;
    why->modelled = wpk_device_class_is_emulated(kernel->device);
    if (!why->modelled && /* another model of the same GPU says nothing of this one */
        wpk_space_derive_text(kernel->op, kernel->device, kernel->layouts, kernel->threads, &space,
                              NULL) == WPK_OK &&
        wpk_candidate_decode(&space, why->winner->candidate, &candidate, NULL) == WPK_OK &&
        wpk_space_bound(&space, &candidate, &why->bound_s) == WPK_OK) {
        static struct wpk_nest nest;
        static struct wpk_features features;
        const struct wpk_structure *structure = space.variants[candidate.variant].plan;
        const struct wpk_machine *machine = &space.options.target.machine;
        if (wpk_candidate_nest(&space, &candidate, &nest) == WPK_OK) {
            wpk_features(&structure->accesses, &nest, machine, kernel->threads, &features);
            why->computing_s = features.arithmetic / machine->multiply_adds / machine->hertz;
            for (int i = 0; i < WPK_CACHES; i++) {
                bool warm = features.bytes <= (double)machine->cache_bytes[i];
                double moved =
                    features.traffic_bytes[i] / machine->cache_bytes_per_cycle[i] / machine->hertz;
                why->moving_s = fmax(why->moving_s, warm ? 0 : moved);
            }
        }
    }
    wpk_space_fini(&space);
    if (kernel->peak_flops_per_s > 0 && kernel->flops > 0) {
        why->peak_share =
            kernel->flops / (why->final_ns * 1e-9) / (kernel->peak_flops_per_s * kernel->threads);
    }
}

/* ---- how sure */

/* Scatter of a trial's median, relative to it. The median of ten samples that are normal scatters
 * by 0.59 of their median absolute deviation. */
static double scatter_of(const struct wpk_api_trial *one)
{
    return fmax(MEDIAN_SCATTER * one->mad_ns / one->median_ns, 1e-4);
}

/* Probability that the winner is faster than every other one: the mean over its own time, which is
 * normal, of the product of the chances that each other one is slower than that. */
static void judge_sureness(struct why *why)
{
    enum { STEPS = 81 }; /* of -4 to 4 standard deviations */
    double fastest[STEPS], own = scatter_of(why->winner), sum = 0, weights = 0;
    for (int k = 0; k < STEPS; k++) {
        fastest[k] = 1;
    }
    for (int i = 0; i < why->list->count; i++) {
        const struct wpk_api_trial *one = &why->list->trial[i];
        if (one == why->winner || one->index < 0 || !wpk_trial_is_timed(one)) {
            continue;
        }
        double other = scatter_of(one);
        if ((relative(why, one) - 1) / hypot(own, other) < 2) {
            why->rivals++;
            why->rival_most = fmax(why->rival_most, relative(why, one));
        }
        for (int k = 0; k < STEPS; k++) {
            double time = 1 + own * (k - STEPS / 2) / 10;
            fastest[k] *= 0.5 * erfc((time - relative(why, one)) / other / sqrt(2));
        }
    }
    for (int k = 0; k < STEPS; k++) {
        double z = (k - STEPS / 2) / 10.0, weight = exp(-z * z / 2);
        sum += weight * fastest[k];
        weights += weight;
    }
    why->surely = sum / weights;
}

/* ---- words */

static void say_limits(const struct why *why, struct wpk_buf *out)
{
    char time[WPK_FORMAT_SIZE], bound[WPK_FORMAT_SIZE];
    wpk_format_ns((uint64_t)why->final_ns, time);
    wpk_buf_printf(
        out, why->modelled ? "Nothing was timed; a model says that it takes %s" : "It takes %s",
        time);
    if (fabs(why->final_ns / why->winner->median_ns - 1) > FINAL_DIFFERS) {
        wpk_format_ns((uint64_t)why->winner->median_ns, time);
        wpk_buf_printf(out, " (%s when it was first tried)", time);
    }
    if (why->bound_s > 0) {
        wpk_format_ns((uint64_t)(why->bound_s * 1e9), bound);
        wpk_buf_printf(
            out,
            "; the rules of this device predict %s, and that it is limited "
            "by %s",
            bound, why->computing_s >= why->moving_s ? "arithmetic" : "moving data between caches");
    }
    if (why->peak_share > 0) {
        wpk_buf_printf(out, "; it reaches %.0f %% of the peak%s", 100 * why->peak_share,
                       why->peak_share > 1 ? ", with fewer operations than the operator says" : "");
    }
    wpk_buf_append_text(out, ".\n");
}

static void say_tried(const struct why *why, struct wpk_buf *out)
{
    int all = 0;
    for (int i = 0; i < why->outcomes; i++) {
        all += why->outcome[i].count;
    }
    wpk_buf_printf(out, "%d candidates were tried:", all);
    for (int i = 0; i < why->outcomes; i++) {
        wpk_buf_printf(out, "%s %d %s", i > 0 ? "," : "", why->outcome[i].count,
                       why->outcome[i].name);
    }
    wpk_buf_append_text(out, ".\n");
    for (int i = 0; i < why->algorithms; i++) {
        const struct kind *kind = &why->algorithm[i];
        if (isfinite(kind->best)) {
            wpk_buf_printf(out, "  %-24s %4d tried, best %.2fx the winner's time\n", kind->name,
                           kind->count, kind->best);
        } else {
            wpk_buf_printf(out, "  %-24s %4d tried, none was timed whole\n", kind->name,
                           kind->count);
        }
    }
}

static void say_sureness(const struct why *why, struct wpk_buf *out)
{
    if (why->rivals == 0) {
        wpk_buf_printf(out, "No other is within the noise of the winner.\n");
        return;
    }
    wpk_buf_printf(out,
                   "%d other%s within the noise of the winner: whichever is taken costs at most "
                   "%.1f %%. The winner is the fastest with a probability of %.0f %%.\n",
                   why->rivals, why->rivals == 1 ? " is" : "s are",
                   100 * fmax(why->rival_most - 1, 0), 100 * why->surely);
}

static void say_genes(const struct why *why, struct wpk_buf *out)
{
    wpk_buf_append_text(out, "Genes: the share of the scatter of all times that each explains, the "
                             "winner's value, and the best other value with its best time and its "
                             "median:\n");
    for (int i = 0; i < why->worth.gene_count; i++) {
        const struct wpk_worth_gene *gene = &why->worth.genes[i];
        char own[256];
        const struct wpk_worth_value *other = find_other(why, gene, own);
        if (other != NULL) {
            wpk_buf_printf(out, "  %3.0f %% %-22s %-16s %-16s %.2fx %.2fx\n", 100 * gene->share,
                           gene->name, own, other->text, other->best,
                           other->times[other->count / 2]);
        }
    }
}

static void put_kinds(struct wpk_json_writer *w, const char *key, const struct kind *kinds,
                      int count)
{
    wpk_json_begin_array(w, key);
    for (int i = 0; i < count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", kinds[i].name);
        wpk_json_put_int(w, "tried", kinds[i].count);
        wpk_json_put_int(w, "timed", kinds[i].timed);
        wpk_json_put_real(w, "best", isfinite(kinds[i].best) ? kinds[i].best : 0);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static wpk_err print_json(const struct why *why)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "job", why->list->job);
    wpk_json_put_text(w, "op", why->list->op);
    wpk_json_put_text(w, "candidate", why->winner->candidate);
    wpk_json_put_real(w, "median_ns", why->final_ns);
    wpk_json_put_real(w, "tried_ns", why->winner->median_ns);
    wpk_json_put_real(w, "bound_ns", why->bound_s * 1e9);
    wpk_json_put_text(w, "limit",
                      why->bound_s == 0                   ? ""
                      : why->computing_s >= why->moving_s ? "arithmetic"
                                                          : "traffic");
    wpk_json_put_real(w, "of_peak", why->peak_share);
    wpk_json_put_real(w, "probability", why->surely);
    wpk_json_put_int(w, "rivals", why->rivals);
    put_kinds(w, "outcomes", why->outcome, why->outcomes);
    put_kinds(w, "algorithms", why->algorithm, why->algorithms);
    wpk_json_begin_array(w, "genes");
    for (int i = 0; i < why->worth.gene_count; i++) {
        const struct wpk_worth_gene *gene = &why->worth.genes[i];
        char own[256];
        const struct wpk_worth_value *other = find_other(why, gene, own);
        if (other != NULL) {
            wpk_json_begin_object(w, NULL);
            wpk_json_put_text(w, "gene", gene->name);
            wpk_json_put_real(w, "share", gene->share);
            wpk_json_put_text(w, "value", own);
            wpk_json_put_text(w, "other", other->text);
            wpk_json_put_real(w, "ratio", other->best);
            wpk_json_put_real(w, "median", other->times[other->count / 2]);
            wpk_json_end(w);
        }
    }
    wpk_json_end(w);
    return wpk_json_puts(w, false);
}

static wpk_err explain(const struct wpk_trial_list *list, const struct wpk_api_kernel *kernel,
                       bool json, struct wpk_diag *diag)
{
    static struct why why; /* large, and there is one per process */
    int best = wpk_trial_list_best(list);
    if (best < 0) {
        return wpk_fail(diag, WPK_ENOENT,
                        "job %s timed no candidate of %s; wpkctl trials %s --failed says why",
                        list->job, list->op, list->job);
    }
    why.list = list;
    why.winner = &list->trial[best];
    for (int i = 0; i < list->count; i++) { /* what was chosen in the end, if it was tried here */
        if (kernel != NULL && kernel->own.candidate != NULL &&
            strcmp(list->trial[i].candidate, kernel->own.candidate) == 0 &&
            wpk_trial_is_timed(&list->trial[i])) {
            why.winner = &list->trial[i];
        }
    }
    why.final_ns = kernel != NULL && kernel->own.candidate != NULL &&
                           strcmp(why.winner->candidate, kernel->own.candidate) == 0
                       ? (double)kernel->own.time.median_ns
                       : why.winner->median_ns;
    count_kinds(&why);
    judge_genes(&why);
    judge_sureness(&why);
    if (kernel != NULL) {
        find_limits(&why, kernel);
    }
    if (json) {
        return print_json(&why);
    }
    struct wpk_buf out = {0};
    wpk_buf_printf(&out, "%s of job %s: %s\n", list->op, list->job, why.winner->candidate);
    say_limits(&why, &out);
    say_sureness(&why, &out);
    say_tried(&why, &out);
    say_genes(&why, &out);
    fputs(wpk_buf_text(&out), stdout);
    wpk_err err = wpk_buf_status(&out);
    wpk_buf_fini(&out);
    return err;
}

enum wpk_exit wpk_command_why(struct wpk_invocation *call)
{
    struct wpk_session_options given = {.need = WPK_SESSION_HISTORY};
    struct wpk_output output = {0};
    const char *op = NULL;
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(given),
        WPK_ARGS_TEXT("op", "NAME", "an operator of a job that has several", &op),
        WPK_ARGS_FLAG("json", "for programs", &output.json),
        WPK_ARGS_END,
    };
    struct wpk_session session = {0};
    struct wpk_arena arena = {0};
    struct wpk_trial_list list = {0};
    const struct wpk_api_kernel *kernel = NULL;

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    wpk_err err = wpk_session_open(call->context, &given, &session, &call->diag);
    if (err == WPK_OK) {
        err =
            wpk_trial_list_fetch(&session, call->args.operands[0], op, &arena, &list, &call->diag);
    }
    if (err == WPK_OK) {
        const struct wpk_find_wanted wanted = {.job = list.job};
        struct wpk_diag none = {0}; /* a job may have ended without a kernel: trials say why */
        wpk_err found = wpk_find_kernel(&session, list.op, &wanted, &arena, &kernel, &none);
        kernel = found == WPK_OK ? kernel : NULL;
        err = explain(&list, kernel, output.json, &call->diag);
    }
    wpk_arena_fini(&arena);
    wpk_session_close(&session);
    return wpk_command_end(call, err);
}
