/* SPDX-License-Identifier: Apache-2.0 */
#include "search/model/prior.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_SHOWN 40 /* bytes of another version that a message quotes */
#define VERSION WPK_PRIOR_VERSION " " WPK_SPACE_VERSION

wpk_err wpk_prior_encode(const struct wpk_prior *prior, struct wpk_buf *out)
{
    wpk_buf_append_text(out, VERSION);
    wpk_snapshot_put_number(out, WPK_FEATURES);
    wpk_snapshot_put_number(out, (uint64_t)prior->trees.count);
    for (int t = 0; t < prior->trees.count; t++) {
        const struct wpk_tree *tree = &prior->trees.tree[t];
        for (int n = 0; n < WPK_TREE_NODES; n++) {
            wpk_snapshot_put_number(out, (uint64_t)(tree->feature[n] + 1));
            wpk_snapshot_put_real(out, tree->threshold[n]);
        }
        for (int n = 0; n < WPK_TREE_LEAVES; n++) {
            wpk_snapshot_put_real(out, tree->leaf[n]);
        }
    }
    wpk_snapshot_put_number(out, (uint64_t)prior->policy.inputs);
    wpk_snapshot_put_number(out, (uint64_t)prior->policy.hidden);
    wpk_network_save(&prior->policy, out);
    wpk_buf_append_text(out, " end\n");
    return wpk_buf_status(out);
}

static double get_real(struct wpk_snapshot_reader *reader)
{
    double real = wpk_snapshot_real(reader);
    if (!isfinite(real)) {
        reader->err = WPK_EPARSE;
    }
    return real;
}

wpk_err wpk_prior_decode(const char *text, struct wpk_prior **out, struct wpk_diag *diag)
{
    struct wpk_snapshot_reader reader = {.at = text};
    size_t length = strlen(VERSION);
    if (!wpk_begins(text, "wpk-prior-")) {
        return wpk_fail(diag, WPK_EPARSE, "not a prior, which wpkctl learn makes");
    }
    if (!wpk_begins(text, VERSION " ")) {
        size_t first = strcspn(text, " \n"), both = first;
        both += text[first] == ' ' ? 1 + strcspn(text + first + 1, " \n") : 0;
        return wpk_fail(diag, WPK_EMISMATCH,
                        "a prior of version \"%.*s\", but this program reads \"%s\" only: "
                        "learn it again",
                        (int)(both < VERSION_SHOWN ? both : VERSION_SHOWN), text, VERSION);
    }
    struct wpk_prior *prior = calloc(1, sizeof *prior);
    if (prior == NULL) {
        return WPK_ENOMEM;
    }
    reader.at = text + length;
    bool same = wpk_snapshot_number(&reader, WPK_FEATURES) == WPK_FEATURES;
    prior->trees.count = (int)wpk_snapshot_number(&reader, WPK_TREES_MAX);
    for (int t = 0; t < prior->trees.count; t++) {
        struct wpk_tree *tree = &prior->trees.tree[t];
        for (int n = 0; n < WPK_TREE_NODES; n++) {
            tree->feature[n] = (int)wpk_snapshot_number(&reader, WPK_FEATURES) - 1;
            tree->threshold[n] = get_real(&reader);
        }
        for (int n = 0; n < WPK_TREE_LEAVES; n++) {
            tree->leaf[n] = get_real(&reader);
        }
    }
    struct wpk_network *policy = &prior->policy;
    policy->inputs = (int)wpk_snapshot_number(&reader, WPK_NETWORK_INPUTS_MAX);
    policy->hidden = (int)wpk_snapshot_number(&reader, WPK_NETWORK_HIDDEN_MAX);
    wpk_network_load(policy, &reader);
    memset(policy->speed, 0, sizeof(policy->speed));
    if (reader.err != WPK_OK || !same || strcmp(reader.at, " end\n") != 0) {
        wpk_diag_set(diag, "the prior is damaged");
        free(prior);
        return WPK_EPARSE;
    }
    *out = prior;
    return WPK_OK;
}
