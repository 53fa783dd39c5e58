/* SPDX-License-Identifier: Apache-2.0 */
/* Small networks with one hidden layer: y = b + v . tanh(W x + c). Weights are kept in single
 * precision and computed with in double, in a fixed order: updates are the same on every machine.
 *
 *   source  Rumelhart, Hinton & Williams, Learning representations by back-propagating errors,
 *           Nature, 1986 */
#ifndef WPK_SEARCH_MODEL_RL_NETWORK_H
#define WPK_SEARCH_MODEL_RL_NETWORK_H

#include "search/snapshot.h"

#define WPK_NETWORK_INPUTS_MAX 40
#define WPK_NETWORK_HIDDEN_MAX 48
#define WPK_NETWORK_WEIGHTS_MAX (WPK_NETWORK_HIDDEN_MAX * (WPK_NETWORK_INPUTS_MAX + 2) + 1)

struct wpk_network {
    int inputs, hidden;
    float weight[WPK_NETWORK_WEIGHTS_MAX]; /* for each hidden unit W, c and v; then b */
    float speed[WPK_NETWORK_WEIGHTS_MAX];  /* the momentum of each */
};

/* The gradient of a network, and the activations that a forward pass keeps for the backward
 * pass. */
struct wpk_network_pass {
    double hidden[WPK_NETWORK_HIDDEN_MAX];
    double gradient[WPK_NETWORK_WEIGHTS_MAX];
};

int wpk_network_weights(const struct wpk_network *network);
/* Small random weights; the result is 0 at first, whatever the input. */
void wpk_network_init(struct wpk_network *network, int inputs, int hidden, struct wpk_rng *rng);
/*   shape   x [inputs] */
double wpk_network_forward(const struct wpk_network *network, const float *x,
                           struct wpk_network_pass *pass);
/* Add `slope` times the gradient of the result of the last forward pass, of the same `x`. */
void wpk_network_backward(const struct wpk_network *network, const float *x, double slope,
                          struct wpk_network_pass *pass);
/* Step against the gradient, which is cleared: by at most `rate` times its length if that exceeds
 * 1. */
void wpk_network_step(struct wpk_network *network, double rate, double momentum,
                      struct wpk_network_pass *pass);

/* Multiply the result by a factor, whatever the input; forget the momentum. */
void wpk_network_scale(struct wpk_network *network, float factor);

void wpk_network_save(const struct wpk_network *network, struct wpk_buf *out);
/*   shape   network: made by wpk_network_init() with the same sizes */
void wpk_network_load(struct wpk_network *network, struct wpk_snapshot_reader *reader);

#endif
