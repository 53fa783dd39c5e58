/* SPDX-License-Identifier: Apache-2.0 */
/* Reinforcement learning. The environment is the space: an episode chooses a variant, then a value
 * of one gene after the other, of those that the mask allows; its reward is the speed of the
 * candidate. The policy is a network that scores a value from what the gene is, what the value is
 * and what was decided before, so that one network serves every gene, algorithm and shape.
 *
 * The policy is updated by proximal policy optimization over episodes of two kinds: the latest
 * trials, and candidates of its own that the cost model judges. An ask is the best of some drafts
 * by the model.
 *
 *   source  Schulman et al., Proximal policy optimization algorithms, 2017; rollouts in a learnt
 *           model: Sutton, Integrated architectures for learning, planning, and reacting, 1990 */
#include "common/format.h"
#include "search/mask.h"
#include "search/model/prior.h"
#include "search/strategy/model.h"
#include "search/strategy/strategies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 16
#define DRAWN 4
#define EVERY 4    /* tells between updates */
#define REAL 16    /* latest trials of an update */
#define IMAGINED 8 /* episodes of the policy's own */
#define EPOCHS 2
#define CLIP 0.2        /* of the ratio of probabilities */
#define VALUES_MAX 1024 /* of all decisions of an episode; later ones do not learn */
#define DECISIONS_MAX 640

enum {
    INPUTS = 40,
    HIDDEN = 48,
    STATE = 12, /* inputs of the value network */
    STATE_HIDDEN = 16,
    EPISODES = REAL + IMAGINED
};

enum { RATE, MOMENTUM, DRAFTS, EXPLORE };

static const struct wpk_strategy_option options[] = {
    [RATE] = {"learning_rate", "of the policy's and the value's gradient", 0, 1, 0.05, false},
    [MOMENTUM] = {"momentum", "of both", 0, 0.99, 0.8, false},
    [DRAFTS] = {"drafts", "episodes of which the model chooses an ask", 1, 64, 6, true},
    [EXPLORE] = {"entropy", "reward of the policy's entropy", 0, 1, 0.01, false},
};

/* One decision: which of its values was taken. */
struct decision {
    int first, count; /* of the episode's inputs */
    int taken;        /* among them */
    double chance;    /* when it was taken */
    float state[STATE];
};

struct episode {
    struct decision decision[DECISIONS_MAX];
    int decision_count;
    float (*input)[INPUTS]; /* [VALUES_MAX] */
    int input_count;
    double reward;
};

struct rl {
    struct wpk_network policy, value;
    struct wpk_network_pass policy_pass, value_pass;
    struct wpk_cost_model *model;
    struct episode episode[EPISODES];
    float (*input)[INPUTS]; /* owned; of all episodes */
    struct wpk_rng rng;     /* of imagined episodes */
};

static void rl_free(void *state)
{
    struct rl *rl = state;
    wpk_cost_model_free(rl->model);
    free(rl->input);
    free(rl);
}

static wpk_err make(const struct wpk_course *course, void **state)
{
    struct rl *rl = calloc(1, sizeof *rl);
    struct wpk_rng rng = course->rng;
    if (rl == NULL) {
        return WPK_ENOMEM;
    }
    rl->model = wpk_cost_model_new(course->prior == NULL ? NULL : &course->prior->trees);
    rl->input = calloc((size_t)EPISODES * VALUES_MAX, sizeof(*rl->input));
    if (rl->model == NULL || rl->input == NULL) {
        rl_free(rl);
        return WPK_ENOMEM;
    }
    for (int e = 0; e < EPISODES; e++) {
        rl->episode[e].input = &rl->input[(size_t)e * VALUES_MAX];
    }
    wpk_rng_fork(&rng, &rl->rng);
    wpk_network_init(&rl->policy, INPUTS, HIDDEN, &rl->rng);
    if (course->prior != NULL && course->prior->policy.inputs == INPUTS &&
        course->prior->policy.hidden == HIDDEN) {
        rl->policy = course->prior->policy;
    }
    wpk_network_init(&rl->value, STATE, STATE_HIDDEN, &rl->rng);
    *state = rl;
    return WPK_OK;
}

/* ---- what the networks see */

/* The decisions so far, as the networks see them. */
struct view {
    const struct wpk_space *space;
    const struct wpk_variant *variant; /* NULL: the variant is to be chosen */
    int step, steps;
    double tile, lanes, blocks, place; /* logs of sizes of this group; place of the last choice */
    char group[WPK_NAME_MAX];
};

static double log2_of(int64_t value)
{
    return value > 0 && value < WPK_GENE_ALL ? wpk_real_log((double)value) * 1.4426950408889634 : 0;
}

/* Operations of a variant, so that the network's units do not saturate: about 1. */
static float see_operations(const struct wpk_variant *variant)
{
    return (float)(wpk_real_log(1 + variant->operations) / 20);
}

static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text != '\0'; text++) {
        hash = (hash ^ (uint8_t)*text) * 16777619u;
    }
    return hash ^ hash >> 15;
}

/* The word behind the group's name: "tile" of "Y.tile.x". */
static int kind_of(const char *name, size_t *group)
{
    static const char *const kinds[] = {"vec",  "lanes", "tile", "block", "outer",  "inner",
                                        "red",  "split", "sum",  "panel", "unroll", "roll",
                                        "pack", "at",    "par",  "tail"};
    const char *dot = strchr(name, '.');
    *group = dot == NULL ? 0 : (size_t)(dot - name);
    for (int k = 0; dot != NULL && k < 16; k++) {
        size_t length = strlen(kinds[k]);
        if (strncmp(dot + 1, kinds[k], length) == 0 &&
            (dot[1 + length] == '.' || dot[1 + length] == '\0')) {
            return k;
        }
    }
    return 15;
}

static void see_state(const struct view *view, int count, float *out)
{
    memset(out, 0, STATE * sizeof(*out));
    out[0] = 1;
    out[1] = (float)view->step / (float)view->steps;
    out[2] = (float)(view->tile / 8);
    out[3] = (float)(view->lanes / 4);
    out[4] = (float)(view->blocks / 8);
    out[5] = (float)view->place;
    out[6] = (float)(1.0 / count);
    out[7] = (float)(view->space->size_log2 / 100);
    if (view->variant != NULL) {
        out[8] = see_operations(view->variant);
        out[9] = (float)(view->variant->last >= 0);
        out[10] = (float)view->variant->staged;
        out[11] = 1;
    }
}

static void see_choice(const struct view *view, const struct wpk_gene *gene, int choice, float *out)
{
    size_t group;
    uint32_t hash = hash_of(gene->name);
    int64_t value = gene->choice[choice].value;
    float state[STATE];
    memset(out, 0, INPUTS * sizeof(*out));
    see_state(view, gene->choice_count, state);
    out[kind_of(gene->name, &group)] = 1;
    out[16] = (float)(log2_of(value) / 8);
    out[17] = value == WPK_GENE_ALL || value <= 0;
    out[18] = gene->choice_count > 1 ? (float)choice / (float)(gene->choice_count - 1) : 0;
    out[19] = gene->ordered;
    out[20] = out[18] * out[18];
    for (int i = 1; i < 10; i++) {
        out[20 + i] = state[i];
    }
    for (int i = 0; i < 10; i++) { /* who it is, and who it is at this place */
        out[30 + i] = (hash >> i & 1) != 0 ? 0.5f : -0.5f;
        out[30 + i] *= i < 5 ? 1 : out[18];
    }
}

static void see_variant(const struct view *view, int v, float *out)
{
    const struct wpk_variant *variant = &view->space->variants[v];
    uint32_t hash = hash_of(variant->algorithm);
    memset(out, 0, INPUTS * sizeof(*out));
    out[16] = see_operations(variant);
    out[17] = variant->last >= 0;
    out[18] =
        view->space->variant_count > 1 ? (float)v / (float)(view->space->variant_count - 1) : 0;
    out[19] = variant->staged;
    out[29] = 1;
    for (int i = 0; i < 10; i++) {
        out[30 + i] = (hash >> i & 1) != 0 ? 0.5f : -0.5f;
    }
}

/* ---- episodes */

/* Probabilities of the values whose inputs begin at `first`.   shape  out [count] */
static void score(struct rl *rl, const struct episode *episode, int begin, int count, double *out)
{
    double most = -HUGE_VAL, sum = 0;
    for (int i = 0; i < count; i++) {
        out[i] = wpk_network_forward(&rl->policy, episode->input[begin + i], &rl->policy_pass);
        most = fmax(most, out[i]);
    }
    for (int i = 0; i < count; i++) {
        out[i] = wpk_real_exp(out[i] - most);
        sum += out[i];
    }
    for (int i = 0; i < count; i++) {
        out[i] /= sum;
    }
}

/* Take one of the values whose inputs were added last: the wanted one, or, if that is -1, one drawn
 * by the policy. */
static int decide(struct rl *rl, struct episode *episode, int count, int wanted, const float *state,
                  struct wpk_rng *rng)
{
    double chance[WPK_CHOICES_MAX];
    int begin = episode->input_count - count, taken = wanted;
    score(rl, episode, begin, count, chance);
    if (wanted < 0) {
        double ball = wpk_rng_unit(rng);
        for (taken = 0; taken < count - 1 && ball >= chance[taken]; taken++) {
            ball -= chance[taken];
        }
    }
    if (episode->decision_count < DECISIONS_MAX) {
        struct decision *d = &episode->decision[episode->decision_count++];
        *d = (struct decision){begin, count, taken, chance[taken], {0}};
        memcpy(d->state, state, sizeof(d->state));
    } else {
        episode->input_count = begin;
    }
    return taken;
}

/* Choose the variant: that of `wanted`, or one that the policy draws, of those that trials have if
 * it is imagined: these are derived, which needs no memory.
 *   shape   known [variant_count], NULL: all */
static wpk_err choose_variant(struct rl *rl, struct view *view, struct episode *episode,
                              const struct wpk_candidate *wanted, const bool *known,
                              struct wpk_rng *rng, struct wpk_candidate *out)
{
    int list[WPK_VARIANTS_MAX], count = 0, at = -1;
    float state[STATE];
    for (int v = 0; v < view->space->variant_count; v++) {
        if (known == NULL ? view->space->variants[v].state != WPK_VARIANT_NONE : known[v]) {
            see_variant(view, v, episode->input[episode->input_count++]);
            at = wanted != NULL && wanted->variant == v ? count : at;
            list[count++] = v;
        }
    }
    if (count == 0 || (wanted != NULL && at < 0)) {
        return WPK_EEXHAUSTED;
    }
    see_state(view, count, state);
    int v = list[decide(rl, episode, count, at, state, rng)];
    if (known == NULL && wpk_space_variant(view->space, v) == NULL) {
        return wpk_space_variant_error(view->space, v) == WPK_ENOMEM ? WPK_ENOMEM : WPK_EEXHAUSTED;
    }
    view->variant = &view->space->variants[v];
    view->steps = view->variant->gene_count > 0 ? view->variant->gene_count : 1;
    return wpk_mask_begin(view->space, v, out);
}

/* Decide one gene.   shape  returns its choice */
static int choose_value(struct rl *rl, struct view *view, struct episode *episode, int step,
                        const struct wpk_candidate *wanted, struct wpk_rng *rng,
                        const struct wpk_candidate *so_far)
{
    bool allowed[WPK_CHOICES_MAX];
    int g = wpk_mask_gene(view->space, view->variant, step), list[WPK_CHOICES_MAX], count = 0,
        at = -1;
    const struct wpk_gene *gene = &view->variant->genes[g];
    float state[STATE];
    (void)wpk_mask_values(view->space, so_far, step, allowed);
    for (int c = 0; c < gene->choice_count; c++) {
        if (allowed[c] || (wanted != NULL && wanted->gene[g] == c)) {
            at = wanted != NULL && wanted->gene[g] == c ? count : at;
            list[count++] = c;
        }
    }
    if (count < 2 || episode->input_count + WPK_CHOICES_MAX > VALUES_MAX) {
        return wanted != NULL ? wanted->gene[g]
               : count == 0   ? so_far->gene[g]
                              : list[count == 1 ? 0 : (int)wpk_rng_below(rng, (uint64_t)count)];
    }
    for (int i = 0; i < count; i++) {
        see_choice(view, gene, list[i], episode->input[episode->input_count++]);
    }
    see_state(view, count, state);
    return list[decide(rl, episode, count, at, state, rng)];
}

/* Play an episode: the policy's own, or, if `wanted` is one, that which leads to it.
 *   shape   known: as for choose_variant()
 *   errors  WPK_EEXHAUSTED, WPK_ENOMEM */
static wpk_err play(struct rl *rl, const struct wpk_space *space, struct episode *episode,
                    const struct wpk_candidate *wanted, const bool *known, struct wpk_rng *rng,
                    struct wpk_candidate *out)
{
    struct view view = {.space = space, .steps = 1};
    episode->decision_count = episode->input_count = 0;
    wpk_err err = choose_variant(rl, &view, episode, wanted, known, rng, out);
    for (int step = 0; err == WPK_OK && step < view.variant->gene_count; step++) {
        int g = wpk_mask_gene(space, view.variant, step);
        view.step = step;
        if (view.variant->genes[g].choice_count == 0) {
            continue;
        }
        int choice = choose_value(rl, &view, episode, step, wanted, rng, out);
        wpk_mask_decide(space, out, step, choice);
        /* The decision changes what the next ones see. */
        const struct wpk_gene *gene = &view.variant->genes[g];
        size_t group;
        int kind = kind_of(gene->name, &group);
        double size = log2_of(gene->choice[choice].value);
        if (strncmp(view.group, gene->name, group) != 0 || view.group[group] != '\0') {
            view.tile = view.lanes = view.blocks = 0;
            memcpy(view.group, gene->name, group < WPK_NAME_MAX ? group : WPK_NAME_MAX - 1);
            view.group[group < WPK_NAME_MAX ? group : WPK_NAME_MAX - 1] = '\0';
        }
        view.lanes += kind == 1 ? size : 0;
        view.tile += kind == 2 ? size : 0;
        view.blocks += kind == 3 ? size : 0;
        view.place = gene->choice_count > 1 ? (double)choice / (gene->choice_count - 1) : 0;
    }
    if (err == WPK_OK && wanted == NULL && !wpk_space_is_legal(space, out)) {
        err = wpk_space_repair(space, rng, out);
    }
    return err;
}

/* ---- learning */

/* Ascend the clipped objective by one decision.   unit  advantage: standard deviations */
static void push(struct rl *rl, const struct episode *episode, const struct decision *d,
                 double advantage, double entropy)
{
    double chance[WPK_CHOICES_MAX];
    score(rl, episode, d->first, d->count, chance);
    double ratio = chance[d->taken] / fmax(d->chance, 1e-6);
    bool clipped = advantage > 0 ? ratio > 1 + CLIP : ratio < 1 - CLIP;
    double mean = 0;
    for (int i = 0; i < d->count; i++) {
        mean += chance[i] * wpk_real_log(fmax(chance[i], 1e-12));
    }
    for (int i = 0; i < d->count; i++) {
        double slope = clipped ? 0 : -advantage * ratio * ((i == d->taken) - chance[i]);
        slope += entropy * chance[i] * (wpk_real_log(fmax(chance[i], 1e-12)) - mean);
        const float *x = episode->input[d->first + i];
        (void)wpk_network_forward(&rl->policy, x, &rl->policy_pass);
        wpk_network_backward(&rl->policy, x, slope / episode->decision_count, &rl->policy_pass);
    }
}

static void improve(struct rl *rl, const struct wpk_course *course, int count)
{
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (int e = 0; e < count; e++) {
            struct episode *episode = &rl->episode[e];
            for (int i = 0; i < episode->decision_count; i++) {
                const struct decision *d = &episode->decision[i];
                double expected = wpk_network_forward(&rl->value, d->state, &rl->value_pass);
                double wrong = expected - episode->reward;
                push(rl, episode, d, -wrong, course->option[EXPLORE]);
                wpk_network_backward(&rl->value, d->state, wrong / episode->decision_count,
                                     &rl->value_pass);
            }
            wpk_network_step(&rl->policy, course->option[RATE], course->option[MOMENTUM],
                             &rl->policy_pass);
            wpk_network_step(&rl->value, course->option[RATE], course->option[MOMENTUM],
                             &rl->value_pass);
        }
    }
}

static void learn(void *state, struct wpk_course *course,
                  const struct wpk_course_trial *trial WPK_UNUSED)
{
    struct rl *rl = state;
    struct wpk_candidate played;
    bool known[WPK_VARIANTS_MAX] = {false};
    int count = 0;
    /* trials that were thinned out are no longer those of the model */
    bool is_due = (course->learnt >= FIRST && course->learnt % EVERY == 0) ||
                  wpk_cost_model_fitted(rl->model) > course->trial_count;
    if (!is_due || course->best < 0) {
        return;
    }
    wpk_cost_model_fit(rl->model, course);
    double worst = course->trial[course->best].time;
    for (int t = course->trial_count - 1; t >= 0; t--) {
        worst = course->trial[t].tell.ok ? fmax(worst, course->trial[t].time) : worst;
        known[course->trial[t].candidate.variant] = true;
    }
    for (int t = course->trial_count - 1; t >= 0 && count < REAL; t--) {
        const struct wpk_course_trial *one = &course->trial[t];
        struct episode *episode = &rl->episode[count];
        if (play(rl, course->space, episode, &one->candidate, known, &rl->rng, &played) == WPK_OK) {
            episode->reward = one->tell.ok ? -one->time : -worst - 1;
            count++;
        }
    }
    for (int i = 0; i < IMAGINED; i++) {
        struct episode *episode = &rl->episode[count];
        if (play(rl, course->space, episode, NULL, known, &rl->rng, &played) == WPK_OK) {
            episode->reward = -wpk_cost_model_time(rl->model, course->space, &played);
            count += isfinite(episode->reward);
        }
    }
    if (count > 1) {
        /* Rewards in standard deviations around their mean. */
        double sum = 0, square = 0;
        for (int e = 0; e < count; e++) {
            sum += rl->episode[e].reward;
        }
        for (int e = 0; e < count; e++) {
            rl->episode[e].reward -= sum / count;
            square += rl->episode[e].reward * rl->episode[e].reward;
        }
        double deviation = sqrt(square / count) + 1e-6;
        for (int e = 0; e < count; e++) {
            rl->episode[e].reward /= deviation;
        }
        improve(rl, course, count);
    }
}

static wpk_err propose(void *state, struct wpk_course *course, struct wpk_candidate *out)
{
    struct rl *rl = state;
    double best = HUGE_VAL;
    bool found = false;
    for (int i = 0; i < (int)course->option[DRAFTS]; i++) {
        struct wpk_candidate one;
        wpk_err err =
            play(rl, course->space, &rl->episode[EPISODES - 1], NULL, NULL, &course->rng, &one);
        if (err == WPK_ENOMEM) {
            return err;
        }
        if (err != WPK_OK || wpk_seen_has(&course->seen, course->space, &one)) {
            continue;
        }
        double time = wpk_cost_model_time(rl->model, course->space, &one);
        if (!found || time < best) {
            best = time;
            *out = one;
            found = true;
        }
    }
    return found ? WPK_OK : WPK_EEXHAUSTED;
}

static const struct wpk_network *policy(const void *state)
{
    return &((const struct rl *)state)->policy;
}

/* ---- snapshots */

static void save(const void *state, struct wpk_buf *out)
{
    const struct rl *rl = state;
    wpk_network_save(&rl->policy, out);
    wpk_network_save(&rl->value, out);
    wpk_snapshot_put_rng(out, &rl->rng);
    wpk_snapshot_put_number(out, (uint64_t)wpk_cost_model_fitted(rl->model));
}

static void load(void *state, const struct wpk_course *course, struct wpk_snapshot_reader *reader)
{
    struct rl *rl = state;
    wpk_network_load(&rl->policy, reader);
    wpk_network_load(&rl->value, reader);
    wpk_snapshot_rng(reader, &rl->rng);
    int fitted = (int)wpk_snapshot_number(reader, (uint64_t)course->trial_count);
    if (fitted > 0 && reader->err == WPK_OK) {
        wpk_cost_model_restore(rl->model, course, fitted);
    }
}

const struct wpk_strategy_class wpk_strategy_rl = {
    .name = "rl",
    .version = "rl-3",
    .summary = "reinforcement learning: a policy decides gene by gene; for many similar operators",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .ahead = 8,
    .keeps = true,
    .takes_prior = true,
    .first = FIRST,
    .drawn = DRAWN,
    .is_slow = true,
    .make = make,
    .free = rl_free,
    .propose = propose,
    .learn = learn,
    .policy = policy,
    .save = save,
    .load = load,
};
