/* SPDX-License-Identifier: Apache-2.0 */
/* All trees are walked at once, a level at a time: a Gather reads the row of the node at which each
 * sample is in each tree, another one its feature, and an equation chooses the next node. A leaf is
 * its own next node, so that after as many levels as the deepest tree has, each sample is at its
 * leaves; a Gather reads what they give to each target, and an equation adds it up. */
#include "model/operator/expansion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEVELS_MAX = 128,
    NODES_MAX = 1 << 22, /* exact in f32 */
    WEIGHTS_MAX = 1 << 24,
    COLUMNS = 6
};

enum mode { LEQ, LESS, GEQ, GREATER, EQUAL, UNEQUAL, MEMBER, LEAF };
enum aggregate { AVERAGE, SUM, LEAST, MOST };

/* A row of the table. */
struct tree_node {
    double feature, split, yes, no, mode, tracks;
};

struct forest {
    struct tree_node *nodes; /* [capacity], owned */
    double *weights;         /* [capacity, targets], owned */
    bool *has_weight;        /* of a target, owned */
    int64_t *roots;          /* [tree_count], in the graph's arena */
    int count, capacity, tree_count, levels;
    int64_t targets;
    enum aggregate aggregate;
};

static wpk_err malformed(const struct wpk_expansion *e, const char *what)
{
    return wpk_fail(e->diag, WPK_EPARSE, "its trees are malformed: %s", what);
}

/* Make room for this many nodes. Members of sets become nodes of their own. */
static wpk_err open_forest(struct forest *f, int capacity, int64_t targets)
{
    if (capacity < 1 || capacity > NODES_MAX || targets < 1 || targets > WEIGHTS_MAX / capacity) {
        return WPK_ENOSPC;
    }
    f->capacity = capacity;
    f->targets = targets;
    f->nodes = WPK_DEMAND(calloc((size_t)capacity, sizeof(*f->nodes)));
    f->weights = WPK_DEMAND(calloc((size_t)capacity * (size_t)targets, sizeof(*f->weights)));
    f->has_weight = WPK_DEMAND(calloc((size_t)targets, sizeof(*f->has_weight)));
    return WPK_OK;
}

static bool add_weight(struct forest *f, int64_t node, int64_t target, double weight)
{
    if (node < 0 || node >= f->count || target < 0 || target >= f->targets) {
        return false;
    }
    double *at = &f->weights[node * f->targets + target];
    *at = f->aggregate >= LEAST && isinf(*at) ? weight : *at + weight;
    f->has_weight[target] = true;
    return true;
}

/* How many levels the deepest tree has.   returns  false: too many, or a cycle */
static bool find_levels(struct forest *f)
{
    bool *now = WPK_DEMAND(calloc((size_t)f->count, sizeof(bool)));
    bool *next = WPK_DEMAND(calloc((size_t)f->count, sizeof(bool)));
    bool any = true;

    for (int t = 0; t < f->tree_count; t++) {
        now[f->roots[t]] = true;
    }
    for (f->levels = 0; any && f->levels <= LEVELS_MAX; f->levels += any) {
        any = false;
        memset(next, 0, (size_t)f->count * sizeof(bool));
        for (int n = 0; n < f->count; n++) {
            if (now[n] && f->nodes[n].mode != LEAF) {
                any = true;
                next[(int)f->nodes[n].yes] = true;
                next[(int)f->nodes[n].no] = true;
            }
        }
        bool *swap = now;
        now = next;
        next = swap;
    }
    free(now);
    free(next);
    return !any;
}

/* ---- attributes */

struct numbers {
    const struct wpk_graph_attribute *ints, *reals;
    const struct wpk_graph_value *tensor;
    int count; /* 0: there is no such attribute */
};

/* The numbers of an attribute, or of the tensor NAME_as_tensor. */
static struct numbers find_numbers(const struct wpk_expansion *e, const char *name,
                                   const char *tensor)
{
    struct numbers out = {.ints = wpk_graph_attribute(e->node, name, WPK_ATTRIBUTE_INTS),
                          .reals = wpk_graph_attribute(e->node, name, WPK_ATTRIBUTE_FLOATS)};
    const struct wpk_graph_attribute *found =
        wpk_graph_attribute(e->node, tensor, WPK_ATTRIBUTE_TENSOR);

    if (found != NULL && e->graph->values[found->tensor].size > 0) {
        out.tensor = &e->graph->values[found->tensor];
        out.count = (int)wpk_graph_elements(out.tensor);
    } else if (out.ints != NULL || out.reals != NULL) {
        out.count = out.ints != NULL ? out.ints->count : out.reals->count;
    }
    return out;
}

static double number(const struct numbers *n, int i)
{
    return n->tensor != NULL  ? wpk_graph_element(n->tensor, i)
           : n->ints != NULL  ? (double)n->ints->integers[i]
           : n->reals != NULL ? (double)n->reals->reals[i]
                              : 0;
}

/* The mode whose name *list begins with, and pass it. */
static enum mode read_mode(const char **list)
{
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF"};
    size_t size = strcspn(*list, ",");
    const char *name = *list;

    *list += size + ((*list)[size] == ',');
    for (enum mode m = LEQ; m <= LEAF; m++) {
        if (m != MEMBER && strlen(names[m]) == size && strncmp(names[m], name, size) == 0) {
            return m;
        }
    }
    return MEMBER;
}

/* ---- the deprecated operators: nodes are pairs of a tree and a number */

/* The node `id` of the tree to which node `of` belongs, whose nodes stand side by side; -1: none */
static int find_node(const struct numbers *trees, const struct numbers *ids, int of, double id)
{
    int first = of;

    while (first > 0 && number(trees, first - 1) == number(trees, of)) {
        first--;
    }
    if (id >= 0 && id < ids->count - first && number(ids, first + (int)id) == id &&
        number(trees, first + (int)id) == number(trees, of)) {
        return first + (int)id;
    }
    for (int n = first; n < ids->count && number(trees, n) == number(trees, of); n++) {
        if (number(ids, n) == id) {
            return n;
        }
    }
    return -1;
}

static wpk_err read_pairs(struct wpk_expansion *e, struct forest *f)
{
    const struct numbers trees = find_numbers(e, "nodes_treeids", ""),
                         ids = find_numbers(e, "nodes_nodeids", ""),
                         features = find_numbers(e, "nodes_featureids", ""),
                         yes = find_numbers(e, "nodes_truenodeids", ""),
                         no = find_numbers(e, "nodes_falsenodeids", ""),
                         values = find_numbers(e, "nodes_values", "nodes_values_as_tensor"),
                         tracks = find_numbers(e, "nodes_missing_value_tracks_true", "");
    const char *modes = wpk_graph_text(e->node, "nodes_modes", "");
    int count = f->capacity;

    if (trees.count != count || ids.count != count || features.count != count ||
        yes.count != count || no.count != count || values.count != count ||
        (tracks.count != 0 && tracks.count != count)) {
        return malformed(e, "their lists differ in length");
    }
    f->count = count;
    f->roots = WPK_ARENA_DEMAND(&e->graph->arena, int64_t, (size_t)count);
    for (int n = 0; n < count; n++) {
        struct tree_node *node = &f->nodes[n];
        enum mode mode = read_mode(&modes);
        bool is_leaf = mode == LEAF;
        int to[] = {is_leaf ? n : find_node(&trees, &ids, n, number(&yes, n)),
                    is_leaf ? n : find_node(&trees, &ids, n, number(&no, n))};
        if (mode == MEMBER || to[0] < 0 || to[1] < 0) {
            return malformed(e, "a node has no such child, or an unknown mode");
        }
        *node = (struct tree_node){.feature = is_leaf ? 0 : number(&features, n),
                                   .split = is_leaf ? 0 : number(&values, n),
                                   .yes = to[0],
                                   .no = to[1],
                                   .mode = mode,
                                   .tracks = tracks.count > 0 ? number(&tracks, n) : 0};
        if (n == 0 || number(&trees, n) != number(&trees, n - 1)) {
            f->roots[f->tree_count++] = n;
        }
    }
    return WPK_OK;
}

/* Read the weights of leaves: lists that begin with "target" or "class". */
static wpk_err read_votes(struct wpk_expansion *e, struct forest *f, bool is_classifier)
{
    const struct numbers trees = find_numbers(e, "nodes_treeids", ""),
                         ids = find_numbers(e, "nodes_nodeids", ""),
                         of_tree = find_numbers(
                             e, is_classifier ? "class_treeids" : "target_treeids", ""),
                         of_node = find_numbers(
                             e, is_classifier ? "class_nodeids" : "target_nodeids", ""),
                         target = find_numbers(e, is_classifier ? "class_ids" : "target_ids", ""),
                         weight =
                             find_numbers(e, is_classifier ? "class_weights" : "target_weights",
                                          is_classifier ? "class_weights_as_tensor"
                                                        : "target_weights_as_tensor");
    int tree = 0;

    if (of_tree.count != of_node.count || target.count != of_node.count ||
        weight.count != of_node.count) {
        return malformed(e, "the lists of votes differ in length");
    }
    for (int i = 0; i < of_node.count; i++) {
        for (int t = 0; t <= f->tree_count; t++) { /* mostly the tree of the vote before */
            int at = (tree + t) % f->tree_count;
            if (number(&trees, (int)f->roots[at]) == number(&of_tree, i)) {
                tree = at;
                break;
            }
        }
        int node = find_node(&trees, &ids, (int)f->roots[tree], number(&of_node, i));
        if (number(&trees, (int)f->roots[tree]) != number(&of_tree, i) ||
            !add_weight(f, node, (int64_t)number(&target, i), number(&weight, i))) {
            return malformed(e, "a vote is of no leaf or for no target");
        }
    }
    return WPK_OK;
}

/* ---- TreeEnsemble: leaves have lists of their own, and a node may test for members of a set */

/* Spread a node over one for each member, which all lead to the same `yes`. */
static bool spread_members(struct forest *f, int node, const struct numbers *members, int *at)
{
    const struct tree_node first = f->nodes[node];
    int last = node;

    for (; *at < members->count && !isnan(number(members, *at)); (*at)++) {
        if (f->nodes[last].mode == EQUAL) {
            if (f->count == f->capacity) {
                return false;
            }
            f->nodes[last].no = f->count;
            last = f->count++;
            f->nodes[last] = first;
        }
        f->nodes[last].mode = EQUAL;
        f->nodes[last].split = number(members, *at);
    }
    (*at)++; /* the NaN behind a set */
    return f->nodes[last].mode == EQUAL;
}

static wpk_err read_ensemble(struct wpk_expansion *e, struct forest *f)
{
    const struct numbers roots = find_numbers(e, "tree_roots", ""),
                         features = find_numbers(e, "nodes_featureids", ""),
                         splits = find_numbers(e, "", "nodes_splits"),
                         modes = find_numbers(e, "", "nodes_modes"),
                         yes = find_numbers(e, "nodes_truenodeids", ""),
                         no = find_numbers(e, "nodes_falsenodeids", ""),
                         yes_leaf = find_numbers(e, "nodes_trueleafs", ""),
                         no_leaf = find_numbers(e, "nodes_falseleafs", ""),
                         tracks = find_numbers(e, "nodes_missing_value_tracks_true", ""),
                         targets = find_numbers(e, "leaf_targetids", ""),
                         weights = find_numbers(e, "", "leaf_weights"),
                         members = find_numbers(e, "", "membership_values");
    int count = features.count, leaves = targets.count, member = 0;

    if (splits.count != count || modes.count != count || yes.count != count || no.count != count ||
        yes_leaf.count != count || no_leaf.count != count || weights.count != leaves ||
        (tracks.count != 0 && tracks.count != count) || count + leaves > f->capacity ||
        roots.count < 1) {
        return malformed(e, "their lists differ in length");
    }
    f->count = count + leaves;
    f->tree_count = roots.count;
    f->roots = (int64_t *)roots.ints->integers;
    for (int n = 0; n < count + leaves; n++) {
        bool is_leaf = n >= count;
        f->nodes[n] = (struct tree_node){.yes = n, .no = n, .mode = LEAF};
        if (is_leaf) {
            if (!add_weight(f, n, (int64_t)number(&targets, n - count),
                            number(&weights, n - count))) {
                return malformed(e, "a leaf is for no target");
            }
            continue;
        }
        f->nodes[n] =
            (struct tree_node){.feature = number(&features, n),
                               .split = number(&splits, n),
                               .yes = number(&yes, n) + (number(&yes_leaf, n) != 0 ? count : 0),
                               .no = number(&no, n) + (number(&no_leaf, n) != 0 ? count : 0),
                               .mode = number(&modes, n),
                               .tracks = tracks.count > 0 ? number(&tracks, n) : 0};
    }
    for (int n = 0; n < count; n++) {
        if (f->nodes[n].mode == MEMBER && !spread_members(f, n, &members, &member)) {
            return malformed(e, "a set has no members");
        }
    }
    return WPK_OK;
}

/* ---- equations */

static wpk_err check_forest(const struct wpk_expansion *e, struct forest *f, int64_t features)
{
    for (int n = 0; n < f->count; n++) {
        const struct tree_node *node = &f->nodes[n];
        if (!(node->yes >= 0 && node->yes < f->count && node->no >= 0 && node->no < f->count &&
              node->mode >= 0 && node->mode <= LEAF && node->mode != MEMBER && node->feature >= 0 &&
              node->feature < (double)features)) {
            return malformed(e, "a node has no such child, feature or mode");
        }
    }
    for (int t = 0; t < f->tree_count; t++) {
        if (f->roots[t] < 0 || f->roots[t] >= f->count) {
            return malformed(e, "a root is no node");
        }
    }
    if (!find_levels(f)) {
        return wpk_fail(e->diag, WPK_EUNSUPPORTED, "its trees have more than %d levels, or a cycle",
                        LEVELS_MAX);
    }
    return WPK_OK;
}

/* "select(m == 0, v <= s, ...)" of the modes that the forest has. */
static void print_choice(struct wpk_expansion *e, const struct forest *f)
{
    static const char *const compare[] = {"<=", "<", ">=", ">", "==", "!="};
    bool has[LEAF + 1] = {false};
    bool tracks = false;
    int open = 0;

    for (int n = 0; n < f->count; n++) {
        has[(int)f->nodes[n].mode] = true;
        tracks = tracks || f->nodes[n].tracks != 0;
    }
    wpk_buf_append_text(&e->text, "Y[d0,d1] = i64(select(");
    for (int m = LEQ; m <= UNEQUAL; m++) {
        if (has[m]) {
            wpk_buf_printf(&e->text, "%s(X[d0,d1,4] == %d && X1[d0,d1] %s X[d0,d1,1])",
                           open++ > 0 ? " || " : "", m, compare[m]);
        }
    }
    if (open == 0) {
        wpk_buf_append_text(&e->text, "X1[d0,d1] != X1[d0,d1]");
    }
    if (tracks) {
        wpk_buf_append_text(&e->text, " || (X[d0,d1,5] != 0 && isnan(X1[d0,d1]))");
    }
    wpk_buf_append_text(&e->text, ", X[d0,d1,2], X[d0,d1,3]))");
}

/* The leaves of all samples, [rows, trees]. */
static int walk(struct wpk_expansion *e, const struct forest *f, const struct wpk_graph_value *x,
                int data)
{
    const int64_t extent[] = {x->extent[0], f->tree_count};
    const int64_t flat = wpk_graph_elements(x);
    int64_t *start = WPK_ARENA_NEW(&e->graph->arena, int64_t, (size_t)(extent[0] * extent[1]));
    int table = wpk_expansion_constant(e, x->dtype, 2, (int64_t[]){f->count, COLUMNS},
                                       &f->nodes[0].feature);
    int values = wpk_compose_reshape(&e->to, data, "", 1, &flat, -1);

    if (start == NULL) {
        e->to.err = WPK_ENOMEM;
        return 0;
    }
    for (int64_t i = 0; i < extent[0] * extent[1]; i++) {
        start[i] = f->roots[i % extent[1]];
    }
    int at = wpk_compose_constant(&e->to, WPK_I64, 2, extent, start);
    for (int level = 0; level < f->levels; level++) {
        int rows = wpk_expansion_gather(e, table, at, -1);
        wpk_buf_printf(&e->text, "Y[d0,d1] = i64(d0) * %lld + i64(X[d0,d1,0])",
                       (long long)x->extent[1]);
        int feature = wpk_expansion_equation(e, &rows, 1, WPK_I64, 2, extent, -1);
        int value = wpk_expansion_gather(e, values, feature, -1);
        print_choice(e, f);
        at = wpk_expansion_equation(e, (int[]){rows, value}, 2, WPK_I64, 2, extent, -1);
    }
    return at;
}

/* The scores [rows, targets] of the leaves. */
static int add_scores(struct wpk_expansion *e, const struct forest *f, int64_t rows,
                      enum wpk_dtype dtype, int leaves, const struct numbers *base)
{
    const int64_t extent[] = {f->count, f->targets};
    const int64_t scores[] = {rows, f->targets};
    int inputs[] = {wpk_expansion_gather(e, wpk_expansion_constant(e, dtype, 2, extent, f->weights),
                                         leaves, -1),
                    -1};
    const char *reduce = f->aggregate == LEAST ? "min" : f->aggregate == MOST ? "max" : "sum";

    wpk_buf_printf(&e->text, f->aggregate >= LEAST ? "Y[d0,d1] = select(isinf(M[d0,d1]), 0, "
                                                     "M[d0,d1])"
                                                   : "Y[d0,d1] = M[d0,d1]");
    if (f->aggregate == AVERAGE) {
        wpk_buf_printf(&e->text, " / %d", f->tree_count);
    }
    if (base->count > 0) {
        const int64_t count = base->count;
        double *cells = WPK_ARENA_DEMAND(&e->graph->arena, double, (size_t)base->count);
        for (int i = 0; i < base->count; i++) {
            cells[i] = number(base, i);
        }
        inputs[1] = wpk_expansion_constant(e, dtype, 1, &count, cells);
        wpk_buf_append_text(&e->text, count > 1 ? " + X1[d1]" : " + X1[0]");
    }
    wpk_buf_printf(&e->text, " where M[d0:%lld,d1:%lld] = %s(t:%d) X[d0,t,d1]", (long long)rows,
                   (long long)f->targets, reduce, f->tree_count);
    return wpk_expansion_equation(e, inputs, inputs[1] >= 0 ? 2 : 1, dtype, 2, scores, -1);
}

/* ---- classes */

/* Both scores of two classes of which one alone has votes: the other has what is left of 1, or of 0
 * if a vote is negative. */
static int add_pair(struct wpk_expansion *e, int64_t rows, int scores, int voted, bool is_signed)
{
    wpk_buf_printf(&e->text, "Y[d0,d1] = select(d1 == 1, X[d0,%d], %s - X[d0,%d])", voted,
                   is_signed ? "0" : "1", voted);
    return wpk_expansion_equation(e, &scores, 1, WPK_F32, 2, (int64_t[]){rows, 2}, -1);
}

/* As ONNX Runtime: of two classes of which class 0 alone has votes, the pair is the output, and
 * only LOGISTIC is applied to it, with what is left of 0. */
static wpk_err add_classes(struct wpk_expansion *e, const struct forest *f, int64_t rows,
                           int scores)
{
    bool is_binary = f->targets == 2 && f->has_weight[0] != f->has_weight[1];
    bool is_logistic = strcmp(wpk_graph_text(e->node, "post_transform", ""), "LOGISTIC") == 0;
    bool is_signed = false;
    int output = wpk_expansion_output(e, 1);
    int pair = scores;

    for (int64_t i = 0; i < (int64_t)f->count * f->targets; i++) {
        is_signed = is_signed || f->weights[i] < 0;
    }
    if (is_binary) {
        pair = add_pair(e, rows, scores, f->has_weight[1] ? 1 : 0, is_signed);
    }
    wpk_err err = wpk_expand_labels(e, pair, rows, f->targets);
    if (err != WPK_OK || output < 0) {
        return err;
    }
    if (is_binary && f->has_weight[0] && !is_logistic) {
        (void)wpk_compose_reshape(&e->to, pair, e->node->name, 2, (int64_t[]){rows, 2}, output);
        return WPK_OK;
    }
    if (is_binary && f->has_weight[0]) {
        scores = add_pair(e, rows, scores, 0, true);
    }
    return wpk_expand_post_transform(e, scores, output);
}

static wpk_err read_forest(struct wpk_expansion *e, struct forest *f, bool is_classifier)
{
    const int64_t *labels = NULL;
    bool is_ensemble = strcmp(e->node->op, "TreeEnsemble") == 0;
    int64_t targets = is_classifier ? wpk_expand_label_count(e, &labels)
                                    : wpk_graph_int(e->node, "n_targets", is_ensemble ? 0 : 1);
    int count = is_ensemble ? find_numbers(e, "nodes_featureids", "").count +
                                  find_numbers(e, "leaf_targetids", "").count +
                                  find_numbers(e, "", "membership_values").count
                            : find_numbers(e, "nodes_treeids", "").count;

    static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    const char *name = wpk_graph_text(e->node, "aggregate_function", "SUM");
    int64_t given = wpk_graph_int(e->node, "aggregate_function", SUM);
    for (int a = AVERAGE; a <= MOST; a++) {
        given = strcmp(name, "SUM") != 0 && strcmp(names[a], name) == 0 ? a : given;
    }
    f->aggregate = (enum aggregate)given;
    if (f->aggregate < AVERAGE || f->aggregate > MOST) {
        return malformed(e, "an unknown aggregate_function");
    }
    wpk_err err = open_forest(f, count, targets);
    if (err == WPK_ENOSPC) {
        return wpk_expansion_refuse(e, "its trees have no nodes, or too many");
    }
    /* Give leaves without a vote the neutral element of min or max. */
    for (int64_t i = 0; f->aggregate >= LEAST && i < f->capacity * f->targets; i++) {
        f->weights[i] = f->aggregate == LEAST ? (double)INFINITY : -(double)INFINITY;
    }
    err = err != WPK_OK ? err : is_ensemble ? read_ensemble(e, f) : read_pairs(e, f);
    return err == WPK_OK && !is_ensemble ? read_votes(e, f, is_classifier) : err;
}

wpk_err wpk_expand_trees(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    bool is_classifier = strcmp(e->node->op, "TreeEnsembleClassifier") == 0;
    bool is_ensemble = strcmp(e->node->op, "TreeEnsemble") == 0;
    const struct numbers base = find_numbers(e, "base_values", "base_values_as_tensor");
    struct forest f = {.count = 0};

    if (x.rank != 2 || (x.dtype != WPK_F32 && (!is_ensemble || x.dtype != WPK_F64))) {
        return wpk_expansion_refuse(e, "its input is no f32[rows,features]");
    }
    wpk_err err = read_forest(e, &f, is_classifier);
    err = err == WPK_OK ? check_forest(e, &f, x.extent[1]) : err;
    bool is_binary =
        is_classifier && f.targets == 2 && err == WPK_OK && f.has_weight[0] != f.has_weight[1];
    if (err == WPK_OK && base.count != 0 && base.count != (is_binary ? 1 : f.targets)) {
        err = wpk_expansion_refuse(e, "its base_values are not one for each target");
    }
    if (err == WPK_OK) {
        int leaves = walk(e, &f, &x, e->node->inputs[0]);
        int scores = add_scores(e, &f, x.extent[0], x.dtype, leaves, &base);
        err = is_classifier ? add_classes(e, &f, x.extent[0], scores)
                            : wpk_expand_post_transform(e, scores, wpk_expansion_output(e, 0));
    }
    free(f.nodes);
    free(f.weights);
    free(f.has_weight);
    return err;
}
