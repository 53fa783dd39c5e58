/* SPDX-License-Identifier: Apache-2.0 */
#include "search/model/prior.h"

#include "common/format.h"

#include <math.h>
#include <string.h>

#define DIGITS 8 /* of a weight in a snapshot: its bits */

int wpk_network_weights(const struct wpk_network *network)
{
    return network->hidden * (network->inputs + 2) + 1;
}

void wpk_network_init(struct wpk_network *network, int inputs, int hidden, struct wpk_rng *rng)
{
    memset(network, 0, sizeof(*network));
    network->inputs = inputs;
    network->hidden = hidden;
    double wide = 1 / sqrt(inputs);
    for (int h = 0; h < hidden; h++) {
        for (int i = 0; i < inputs; i++) {
            network->weight[h * (inputs + 2) + i] = (float)(wide * (2 * wpk_rng_unit(rng) - 1));
        }
    }
}

double wpk_network_forward(const struct wpk_network *network, const float *x,
                           struct wpk_network_pass *pass)
{
    int inputs = network->inputs, width = inputs + 2;
    double sum = network->weight[network->hidden * width];
    for (int h = 0; h < network->hidden; h++) {
        const float *w = &network->weight[h * width];
        double in = w[inputs];
        for (int i = 0; i < inputs; i++) {
            in += (double)w[i] * (double)x[i];
        }
        pass->hidden[h] = wpk_real_tanh(in);
        sum += (double)w[inputs + 1] * pass->hidden[h];
    }
    return sum;
}

void wpk_network_backward(const struct wpk_network *network, const float *x, double slope,
                          struct wpk_network_pass *pass)
{
    int inputs = network->inputs, width = inputs + 2;
    pass->gradient[network->hidden * width] += slope;
    for (int h = 0; h < network->hidden; h++) {
        const float *w = &network->weight[h * width];
        double *g = &pass->gradient[h * width];
        double out = pass->hidden[h], in = slope * (double)w[inputs + 1] * (1 - out * out);
        for (int i = 0; i < inputs; i++) {
            g[i] += in * (double)x[i];
        }
        g[inputs] += in;
        g[inputs + 1] += slope * out;
    }
}

void wpk_network_step(struct wpk_network *network, double rate, double momentum,
                      struct wpk_network_pass *pass)
{
    int count = wpk_network_weights(network);
    double square = 0;
    for (int i = 0; i < count; i++) {
        square += pass->gradient[i] * pass->gradient[i];
    }
    double scale = square > 1 ? rate / sqrt(square) : rate;
    for (int i = 0; i < count && isfinite(square); i++) {
        double speed = momentum * (double)network->speed[i] - scale * pass->gradient[i];
        network->speed[i] = (float)speed;
        network->weight[i] = (float)((double)network->weight[i] + speed);
    }
    memset(pass->gradient, 0, sizeof(pass->gradient));
}

void wpk_network_scale(struct wpk_network *network, float factor)
{
    int width = network->inputs + 2;
    for (int h = 0; h < network->hidden; h++) {
        network->weight[h * width + width - 1] *= factor;
    }
    network->weight[network->hidden * width] *= factor;
    memset(network->speed, 0, sizeof(network->speed));
}

static void put_floats(struct wpk_buf *out, const float *values, int count)
{
    wpk_buf_append_byte(out, ' ');
    for (int i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof(bits));
        wpk_buf_printf(out, "%08x", bits);
    }
}

static void get_floats(struct wpk_snapshot_reader *reader, float *values, int count)
{
    size_t length;
    const char *word = wpk_snapshot_word(reader, &length);
    if (length != (size_t)count * DIGITS) {
        reader->err = WPK_EPARSE;
        return;
    }
    for (int i = 0; i < count; i++) {
        uint32_t bits = 0;
        for (int k = 0; k < DIGITS; k++) {
            static const char digits[] = "0123456789abcdef";
            const char *digit = memchr(digits, word[i * DIGITS + k], 16);
            if (digit == NULL) {
                reader->err = WPK_EPARSE;
                return;
            }
            bits = bits << 4 | (uint32_t)(digit - digits);
        }
        memcpy(&values[i], &bits, sizeof(bits));
        if (!isfinite(values[i])) {
            reader->err = WPK_EPARSE;
            return;
        }
    }
}

void wpk_network_save(const struct wpk_network *network, struct wpk_buf *out)
{
    put_floats(out, network->weight, wpk_network_weights(network));
    put_floats(out, network->speed, wpk_network_weights(network));
}

void wpk_network_load(struct wpk_network *network, struct wpk_snapshot_reader *reader)
{
    get_floats(reader, network->weight, wpk_network_weights(network));
    get_floats(reader, network->speed, wpk_network_weights(network));
}
